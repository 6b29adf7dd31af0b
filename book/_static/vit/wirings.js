/**
 * Chapter 4: do the tokens of an image become alike? An untrained encoder of twelve layers, wired in four ways, computed in
 * the page with random weights. Every element of class `vit-wirings` becomes one.
 */
import { catOf, gaussian, pixelsOf } from "./looking.js";
import { element, paint, player, whenNear } from "./parts.js";
import { add, attention, layerNorm, mlp, patchify, product } from "./vit.js";

export const SIZES = { image: 32, P: 4, D: 32, M: 64, heads: 4, depth: 12 };
const { image, P, D, M, heads, depth } = SIZES, N = (image / P) ** 2;

/** A block's two steps in each wiring, as in the chapter: z (T, D), f and its norm. */
export const WIRINGS = {
    "pre-norm": (z, f, norm) => add(z, f(norm(z))),
    "post-norm": (z, f, norm) => norm(add(z, f(z))),
    "no residual": (z, f, norm) => f(norm(z)),
    "no norm": (z, f) => add(z, f(z)),
};

/** A dense layer as the package begins it: uniform, within the square root of 6 / (in + out). */
function dense(inputs, outputs) {
    const bound = Math.sqrt(6 / (inputs + outputs));
    return { weight: Float32Array.from({ length: inputs * outputs }, () => bound * (2 * Math.random() - 1)), bias: new Float32Array(outputs) };
}

/** Random weights: the embedding of patches, positions, and the layers. */
export function drawn() {
    const qkv = () => {
        const parts = [0, 1, 2].map(() => dense(D, D).weight);
        return { weight: Float32Array.from(parts.flatMap((part) => [...part])), bias: new Float32Array(3 * D) };
    };
    return {
        embed: gaussian(D * P * P * 3, 1 / Math.sqrt(P * P * 3)), positions: gaussian((N + 1) * D, 0.02),
        blocks: Array.from({ length: depth }, () => ({
            attention: { qkv: qkv(), projection: dense(D, D) }, mlp: { hidden: dense(D, M), output: dense(M, D) },
        })),
    };
}

/** The tokens before the first layer and after each: depth + 1 of (T, D), of an image's pixels from 0 to 1. */
export function states(pixels, { embed, positions, blocks }, wiring) {
    const mean = pixels.reduce((sum, value) => sum + value / pixels.length, 0), spread = deviation(pixels);
    const scaled = pixels.map((value) => (value - mean) / spread); // or all patches would be nearly one colour
    const patches = patchify(scaled, { image_shape: [image, image], patch_size: P, channels: 3 });
    const norm = (z) => layerNorm(z, { weight: new Float32Array(D).fill(1), bias: new Float32Array(D) }, 1e-6);
    let z = positions.slice();
    z.set(add(product(patches, embed, P * P * 3), z.subarray(D)), D); // the class token begins at 0
    const found = [z];
    for (const layer of blocks) {
        z = wiring(z, (x) => attention(x, layer.attention, heads)[0], norm);
        z = wiring(z, (x) => mlp(x, layer.mlp), norm);
        found.push(z);
    }
    return found;
}

/** The standard deviation of some numbers. */
function deviation(values) {
    const mean = values.reduce((sum, value) => sum + value / values.length, 0);
    return Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1));
}

/** Spread of the tokens of one image, over the spread of all values: (T, D) to a number. */
export function within(z) {
    const each = Array.from({ length: D }, (_, d) => deviation(z.filter((_, i) => i % D === d)));
    return each.reduce((sum, value) => sum + value / D, 0) / deviation(z);
}

/** How each patch's token differs from their mean, along three directions, as colours (N 3): grey where all are alike. */
function colours(z, directions) {
    const patches = z.slice(D), scale = deviation(z), mean = new Float64Array(D);
    patches.forEach((value, i) => { mean[i % D] += value / N; });
    const along = product(patches.map((value, i) => value - mean[i % D]), directions, D); // (N, 3)
    return along.map((value) => 0.5 + Math.max(-0.5, Math.min(0.5, (0.3 * value) / scale)));
}

class Wirings {
    constructor(place, pixels) {
        this.pixels = pixels;
        this.directions = gaussian(3 * D, 1 / Math.sqrt(D));
        this.tiles = Object.keys(WIRINGS).map((name) => {
            const picture = element("canvas", { class: "vit-picture", role: "img", "aria-label": `Tokens of the cat as colours, ${name}.` });
            const value = element("span"), bar = element("i");
            const whole = element("div", {}, element("p", { class: "vit-title" }, name), picture, element("div", { class: "meter" }, bar), value);
            return { name, picture, value, bar, whole };
        });
        this.status = element("p", { class: "vit-status", role: "status" });
        this.layer = depth;
        this.time = player("after layer", { max: depth, value: depth }, (layer) => { this.layer = layer; this.draw(); });
        const again = element("button", { type: "button", click: () => { this.begin(); this.draw(); } }, "Other random weights");
        place.replaceChildren(
            element("div", { class: "pictures four" }, ...this.tiles.map(({ whole }) => whole)),
            element("div", { class: "below" }, this.time, element("div", {}, again), this.status,
                element("p", { class: "vit-help" }, "Each square is a token of the cat. The greyer the picture, the more alike the tokens are.")),
        );
        this.begin();
        this.draw();
    }

    /** Draw new weights, and send the cat through them. */
    begin() {
        const weights = drawn();
        this.states = Object.values(WIRINGS).map((wiring) => states(this.pixels, weights, wiring));
    }

    draw() {
        const said = this.tiles.map(({ name, picture, value, bar }, n) => {
            const z = this.states[n][this.layer], spread = within(z);
            paint(picture, colours(z, this.directions), image / P);
            bar.style.width = `${100 * spread}%`;
            value.textContent = spread.toFixed(2);
            return `${name} ${spread.toFixed(2)}`;
        });
        this.status.textContent = `${this.layer ? `After layer ${this.layer}` : "Before the first layer"}, spread of the cat's tokens over `
            + `that of all values: ${said.join(", ")}.`;
    }
}

whenNear(".vit-wirings", async (place) => {
    new Wirings(place, pixelsOf(await catOf(place), image));
});
