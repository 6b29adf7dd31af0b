/**
 * Chapter 5: what the reader's class, with the trained weights, answers to a photo. Every element of class `vit-answers`
 * becomes one.
 */
import { pixelsOf } from "./looking.js";
import { PHOTOS, bars, element, likeliest, paint, percent, picker, whenNear } from "./parts.js";

whenNear(".vit-answers", (place, { config: { image_size: side }, classes, forward }) => {
    const seen = element("canvas", { class: "vit-picture", role: "img", "aria-label": `The photo as the model gets it, ${side} by ${side} pixels.` });
    const likely = bars(`The five likeliest of ${classes.length} classes`), status = element("p", { class: "vit-status", role: "status" });
    const came = async (square) => {
        const pixels = pixelsOf(square, side), answer = await forward(pixels);
        if (!answer) return; // a newer photo came
        const shares = answer.probabilities, first = likeliest(shares, 5);
        paint(seen, pixels, side);
        likely.show(first.map((k) => ({ name: classes[k], share: shares[k], before: shares[k] })));
        status.textContent = `${classes[first[0]]}, ${percent(shares[first[0]])}. All five together: `
            + `${percent(first.reduce((sum, k) => sum + shares[k], 0))}.`;
    };
    const photos = picker(place.dataset.photos, PHOTOS, came);
    place.replaceChildren(...photos, seen, element("div", { class: "vit-side" }, likely, status));
});
