/**
 * One head of the trained model: how much a patch of the cat looks at each patch, and what a factor on the scores
 * does to it. Every element of class `vit-attention` becomes one.
 */
import { cutSquare, openPicture, pixelsOf } from "./looking.js";
import { PatchGrid, element, percent, placeOf, slider, whenNear } from "./parts.js";
import { softmax } from "./vit.js";

class Head {
    constructor(place, model, canvas) {
        const { grid: [rows, columns], depth, heads } = model.config;
        Object.assign(this, { layer: 2, head: 1, scale: 1, patch: 26, columns }); // an eye, and a head that finds both
        this.grid = new PatchGrid({
            rows, columns, hover: (patch) => this.say(patch),
            choose: (patch) => { this.patch = patch; this.draw(); },
            label: `The photo, ${rows} by ${columns} patches. Arrow keys read a patch's share, Enter asks from there.`,
        });
        this.grid.draw(canvas);
        this.status = element("p", { class: "vit-status", role: "status" });
        this.scaleBar = element("p", { class: "vit-scale" });
        const control = (name, label, range) => slider(label, { ...range, value: this[name] }, (value) => {
            this[name] = value;
            this.draw();
        });
        place.replaceChildren(
            this.grid.whole,
            element("div", { class: "vit-side" },
                control("layer", "layer", { min: 1, max: depth }), control("head", "head", { min: 1, max: heads }),
                control("scale", "scores times", { max: 4, step: 0.05, words: (x) => x.toFixed(2) }),
                this.scaleBar, this.status, element("p", { class: "vit-help" },
                    "A click asks from that patch. A mouse, a resting finger or the arrow keys read a share.")),
        );
    }

    /** The chosen patch's row of A, (T): exp(s · score), brought to a sum of 1, is the share to the power s. */
    row() {
        const T = this.grid.rows * this.columns + 1, weights = this.attention[this.layer - 1];
        const from = ((this.head - 1) * T + this.patch + 1) * T;
        return softmax(weights.subarray(from, from + T).map((share) => Math.log(share || 1e-45)), T, this.scale);
    }

    draw() {
        const [classToken, ...patches] = this.shares = this.row();
        this.grid.map(patches);
        this.grid.mark({ asks: [this.patch] });
        this.scaleBar.textContent = `dim: 0 %, bright: ${percent(Math.max(...patches))}`;
        const attended = Math.exp(this.shares.reduce((sum, share) => sum - (share && share * Math.log(share)), 0));
        const most = patches.indexOf(Math.max(...patches)), at = (patch) => placeOf(patch, this.columns);
        const where = this.scale === 0 ? `every token alike, ${percent(classToken)}`
            : `most at ${at(most)}, ${percent(patches[most])}; at the class token ${percent(classToken)}`;
        this.summary = `From ${at(this.patch)}: ${where}. `
            + `${attended.toFixed(1)} of ${this.shares.length} tokens attended to.`;
        this.say(null);
    }

    say(patch) {
        const here = () => `${placeOf(patch, this.columns)}: ${percent(this.shares[patch + 1])}`;
        this.status.textContent = patch === null ? this.summary : here();
    }
}

whenNear(".vit-attention", async (place, model) => {
    const canvas = cutSquare(await openPicture(`${place.dataset.photos}/cat.jpg`));
    const { attention } = await model.forward(pixelsOf(canvas, model.config.image_size));
    const widget = new Head(place, model, canvas);
    widget.attention = attention;
    widget.draw();
});
