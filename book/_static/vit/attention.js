/**
 * One head of the trained model, step by step: how well a patch's query fits all keys, the shares that the softmax makes
 * of it, and the mixture of values. Every element of class `vit-attention` becomes one.
 */
import { catOf, pixelsOf } from "./looking.js";
import { PatchGrid, choice, element, percent, placeOf, signed, slider, whenNear } from "./parts.js";
import { layerNorm, product, softmax } from "./vit.js";

const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
const cosine = (a, b) => dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));

/** All heads' queries, keys and values of a layer that gets z (T, D), as `attention` of vit.js packs them: (T, 3D). */
async function packedOf({ config: { dim, layer_norm_eps: eps }, weights }, z, layer) {
    const names = ["attention_norm.weight", "attention_norm.bias", "attention.qkv.weight", "attention.qkv.bias"];
    const [weight, bias, qkv, more] = await Promise.all(names.map((name) => weights(`encoder.blocks.${layer}.${name}`)));
    return product(layerNorm(z, { weight, bias }, eps), qkv, dim, more);
}

class Head {
    /** @param {Float32Array[]} packed queries, keys and values of each layer, (T, 3D) */
    constructor(place, { config: { grid: [rows, columns], depth, heads, dim } }, canvas, packed) {
        const width = dim / heads, root = Math.sqrt(width), most = Math.floor(20 * root) / 20; // its end stands for the root
        Object.assign(this, { packed, dim, width, most, columns, view: "shares" });
        Object.assign(this, { layer: 2, head: 1, scale: 1, patch: 26 }); // an eye, and a head that finds both
        this.grid = new PatchGrid({
            rows, columns, hover: (patch) => this.say(patch),
            choose: (patch) => { this.patch = patch; this.draw(); },
            label: `The photo, ${rows} by ${columns} patches. Arrow keys read a patch's value, Enter asks from there.`,
        });
        this.grid.draw(canvas);
        this.grid.move(this.patch);
        this.status = element("p", { class: "vit-status", role: "status" });
        this.scaleBar = element("p", { class: "vit-scale" });
        const control = (name, label, range) => slider(label, { ...range, value: this[name] }, (value) => {
            this[name] = value;
            this.draw();
        });
        const words = (x) => (x === most ? `${root.toFixed(2)}, not divided` : x.toFixed(2) + (x === 1 ? ", divided" : ""));
        const views = choice("The map", [
            ["scores", "scores: q · k"], ["shares", "shares: their softmax"], ["mixture", "mixture: how like each value"],
        ], (view) => { this.view = view; this.draw(); });
        views.set(this.view);
        place.replaceChildren(
            this.grid.whole,
            element("div", { class: "vit-side" },
                control("layer", "layer", { min: 1, max: depth }), control("head", "head", { min: 1, max: heads }),
                control("scale", "scores times", { max: most, step: 0.05, words, marks: [1, most] }), views, this.scaleBar, this.status, element("p", { class: "vit-help" },
                    "A click asks from that patch. A mouse, a resting finger or the arrow keys read a value.")),
        );
        this.draw();
    }

    /** The query (0), key (1) or value (2) of a token in this head, (Dh). */
    part(which, token) {
        const from = (3 * token + which) * this.dim + (this.head - 1) * this.width;
        return this.packed[this.layer - 1].subarray(from, from + this.width);
    }

    draw() {
        const T = this.grid.cells.length + 1, q = this.part(0, this.patch + 1);
        const each = (f) => Float32Array.from({ length: T }, (_, token) => f(token));
        const whole = this.scale === this.most, factor = whole ? 1 : this.scale / Math.sqrt(this.width);
        const scores = each((token) => factor * dot(q, this.part(1, token)));
        const shares = softmax(scores, T);
        const mixture = q.map((_, c) => shares.reduce((sum, share, token) => sum + share * this.part(2, token)[c], 0)); // (Dh)
        this.shown = { scores, shares, mixture: each((token) => cosine(mixture, this.part(2, token))) }[this.view];
        this.words = this.view === "shares" ? percent : signed;
        const [first, ...patches] = this.shown, low = this.view === "shares" ? 0 : Math.min(...patches);
        const flat = this.scale === 0;
        this.grid.map(patches.map((value) => (flat && this.view === "scores" ? 1 : value - low)));
        this.grid.mark({ asks: [this.patch] });
        this.scaleBar.textContent = `dim: ${low ? this.words(low) : "0"}, bright: ${this.words(Math.max(...patches))}`;
        const attended = Math.exp(shares.reduce((sum, share) => sum - (share && share * Math.log(share)), 0));
        const at = (value) => `${placeOf(patches.indexOf(value), this.columns)}, ${this.words(value)}`;
        const [high, deep] = [at(Math.max(...patches)), at(Math.min(...patches))], from = placeOf(this.patch, this.columns);
        const times = this.scale === 1 ? "" : `${signed(this.scale)} `;
        this.summary = {
            scores: flat ? "With factor 0 every score is 0." : `${whole ? "q · k" : `${times}q · k / √${this.width}`} from ${from}: highest with ${high}; lowest with ${deep}; `
                + `with the class token ${signed(first)}.`,
            shares: `From ${from}: ${flat ? `every token alike, ${percent(first)}`
                : `most at ${high}; at the class token ${percent(first)}`}. ${attended.toFixed(1)} of ${T} tokens attended to.`,
            mixture: `The mixture for ${from}, ${this.width} numbers, is most like the value of ${high}, and least like that of ${deep}, as cosines.`,
        }[this.view];
        this.say(null);
    }

    say(patch) {
        const here = () => `${placeOf(patch, this.columns)}: ${this.words(this.shown[patch + 1])}`;
        this.status.textContent = patch === null ? this.summary : here();
    }
}

whenNear(".vit-attention", async (place, model) => {
    const canvas = await catOf(place);
    const { tokens } = await model.forward(pixelsOf(canvas, model.config.image_size));
    const packed = await Promise.all(tokens.slice(0, -1).map((z, layer) => packedOf(model, z, layer)));
    new Head(place, model, canvas, packed);
});
