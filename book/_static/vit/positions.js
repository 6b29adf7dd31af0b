/**
 * What the trained model answers to the cat's patches in order and shuffled, with positions and without; a thin line shows
 * the answer before. Every element of class `vit-positions` becomes one.
 */
import { asSeen, catOf, pixelsOf, shuffled } from "./looking.js";
import { bars, element, likeliest, paint, percent, toggle, whenNear } from "./parts.js";

class Positions {
    constructor(place, model, pixels) {
        Object.assign(this, { model, pixels, changes: { shuffle: null, positions: true } });
        this.canvas = element("canvas", { class: "vit-picture", role: "img" });
        this.likely = bars(`The five likeliest of ${model.classes.length} classes`);
        this.status = element("p", { class: "vit-status", role: "status" });
        const shuffle = (on) => { this.changes.shuffle = on ? shuffled(model.config.num_patches) : null; this.ask(); };
        const inOrder = toggle("patches shuffled", shuffle);
        place.replaceChildren(this.canvas, element("div", { class: "vit-side" },
            inOrder, toggle("without positions", (on) => { this.changes.positions = !on; this.ask(); }),
            element("button", { type: "button", click: () => { inOrder.set(true); shuffle(true); } }, "Shuffle anew"),
            this.likely, this.status,
        ));
        this.ask();
    }

    /** Ask the model; an answer to an older question does not come. */
    async ask() {
        const { model: { config, classes }, changes: { shuffle, positions } } = this;
        const answer = await this.model.forward(this.pixels, this.changes);
        if (!answer) return;
        const shares = answer.probabilities, last = this.last ?? shares;
        const before = last.map((share, k) => (Math.abs(share - shares[k]) < 1e-3 ? shares[k] : share)); // but for rounding
        this.last = shares;
        paint(this.canvas, asSeen(this.pixels, config, { shuffle }), config.image_size);
        const order = `patches ${shuffle ? "shuffled" : "in order"}`;
        this.canvas.setAttribute("aria-label", `The cat as the model gets it, ${order}.`);
        const first = likeliest(shares, 5);
        this.likely.show(first.map((k) => ({ name: classes[k], share: shares[k], before: before[k] })));
        this.status.textContent = `With ${positions ? "" : "no "}positions, ${order}: `
            + `${classes[first[0]]}, ${percent(shares[first[0]])}.${last !== shares && before.every((share, k) => share === shares[k]) ? " Nothing has moved." : ""}`;
    }
}

whenNear(".vit-positions", async (place, model) => {
    const canvas = await catOf(place);
    new Positions(place, model, pixelsOf(canvas, model.config.image_size));
});
