/**
 * Chapter 12: what a ViT of any size costs, and whether a step of training fits into a GPU's memory. Every element of
 * class `vit-cost` becomes one; it needs no model.
 */
import { choice, element, shape, slider, toggle, whenNear } from "./parts.js";

const SIZES = { // Table 1 of the paper, and two smaller ones
    Ti: { depth: 12, D: 192, M: 768, heads: 3 },
    S: { depth: 12, D: 384, M: 1536, heads: 6 },
    B: { depth: 12, D: 768, M: 3072, heads: 12 },
    L: { depth: 24, D: 1024, M: 4096, heads: 16 },
    H: { depth: 32, D: 1280, M: 5120, heads: 16 },
};
const PATCHES = [8, 14, 16, 32], GIB = 2 ** 30, K = 1000; // classes
const FIRST = { size: "L", P: 16, side: 384, batch: 32, fused: false, half: false, again: false };

/**
 * What a step of training a ViT costs, as the chapter counts it.
 * @param {{size: string, P: number, side: number, batch: number, fused: boolean, half: boolean, again: boolean}} setting
 *     fused attention or explicit, bfloat16 or float32, with activation checkpointing or without
 * @returns {object} tokens, parameters, the operations of a block for an image (projections, pairs, MLP) and of an
 *     image's forward pass, and the bytes of a step: { activations, weights, gradients, optimiser, copies }
 */
export function cost({ size, P, side, batch, fused, half, again }) {
    const { depth, D, M, heads } = SIZES[size], N = (side / P) ** 2, T = N + 1, values = 3 * P * P;
    const matrices = depth * (4 * D * D + 2 * D * M) + D * K; // all but the patch embedding
    const vectors = depth * (4 * D + M + D + 4 * D) + 2 * D + K + D + D + T * D; // biases, norms, class token, positions
    const parameters = matrices + vectors + values * D, weights = 4 * parameters;
    const block = [8 * T * D * D, 4 * T * T * D, 4 * T * D * M];
    const forward = 2 * N * values * D + depth * (block[0] + block[1] + block[2]) + 2 * D * K;
    // What the backward pass needs of the forward pass, in bytes an image.
    const bytes = half ? 2 : 4, statistics = 4 * T + (fused ? heads * T : 0);
    const inBlock = bytes * (T * (8 * D + 2 * M) + (fused ? 0 : heads * T * T)) + 4 * statistics;
    const end = bytes * 2 * T * D + 8 * T + 4 * K + 8, edge = bytes * T * D;
    const blocks = again ? (depth - 1) * edge + Math.max(inBlock, edge + end) : depth * inBlock + end;
    const memory = {
        activations: batch * (bytes * N * values + blocks),
        weights, gradients: weights, optimiser: 2 * weights, // Adam's two moments
        copies: half ? 2 * matrices : 0,
    };
    return { tokens: T, parameters, block, forward, memory };
}

class Cost {
    constructor(place) {
        this.setting = { ...FIRST };
        [this.room, this.wanted] = [16, FIRST.side];
        const names = Object.keys(SIZES), { setting } = this;
        const change = (name, value) => { setting[name] = value; this.draw(); };
        this.image = slider("image", { min: 4, max: 64, value: FIRST.side / FIRST.P, words: (n) => `${n * setting.P} pixels` }, (n) => {
            this.wanted = setting.side = n * setting.P;
            this.draw();
        });
        const patch = slider("patch", { max: PATCHES.length - 1, value: PATCHES.indexOf(FIRST.P), words: (i) => `${PATCHES[i]} pixels` }, (i) => {
            const n = Math.max(4, Math.min(64, Math.round(this.wanted / PATCHES[i]))); // about the same image
            Object.assign(setting, { P: PATCHES[i], side: n * PATCHES[i] });
            this.image.set(n);
            this.draw();
        });
        const remedy = (label, name) => toggle(label, (on) => change(name, on));
        const room = choice("On a GPU with", [16, 24, 80].map((size) => [size, `${size} GiB`]), (gib) => { this.room = gib; this.draw(); });
        room.set(this.room);
        this.memory = shape("svg", { viewBox: "0 0 340 60", role: "img" });
        this.counts = element("p", { class: "vit-title" });
        this.status = element("p", { class: "vit-status", role: "status" });
        place.replaceChildren(
            element("div", {},
                slider("size", { max: names.length - 1, value: names.indexOf(FIRST.size), words: (i) => `ViT-${names[i]}` }, (i) => change("size", names[i])),
                patch, this.image,
                slider("batch", { max: 10, value: Math.log2(FIRST.batch), words: (n) => `${2 ** n} images` }, (n) => change("batch", 2 ** n)),
                remedy("fused attention", "fused"), remedy("bfloat16", "half"), remedy("activation checkpointing", "again"), room),
            element("div", { class: "vit-side" }, element("div", { class: "vit-lines" }, this.counts, this.memory), this.status,
                element("p", { class: "vit-help" }, "Counted as in the figure above. A GPU keeps more with explicit attention in bfloat16, and needs some memory for itself.")),
        );
        this.draw();
    }

    draw() {
        const now = cost(this.setting), { P, side, size, batch } = this.setting, { room } = this;
        const { activations, weights, gradients, optimiser, copies } = now.memory;
        const [held, rest] = [activations, weights + gradients + optimiser + copies].map((bytes) => bytes / GIB);
        this.counts.textContent = `Activations ${held.toFixed(1)} GiB (blue), all else ${rest.toFixed(1)} GiB`;
        const scale = 338 / Math.max(1.15 * room, held + rest), along = (gib) => (gib * scale).toFixed(1); // from 1 to 339
        const bar = (from, much, fill) => shape("rect", { x: 1 + +along(from), y: 8, width: along(much), height: 30, fill });
        const edge = shape("path", { d: `M${1 + +along(room)} 2V58`, class: "axes", "stroke-width": 2, "stroke-dasharray": "4 3" });
        const left = room * scale > 80, at = left ? along(room) - 4 : +along(room) + 6;
        const name = shape("text", { x: at, y: 54, "text-anchor": left ? "end" : "start", "font-size": 13, fill: "currentColor" });
        name.textContent = `${room} GiB`;
        this.memory.replaceChildren(bar(0, held, "var(--vit-blue)"), bar(held, rest, "#7d8a96"), edge, name);
        this.memory.setAttribute("aria-label", `A bar of ${(held + rest).toFixed(1)} GiB, and a line at ${room}.`);
        const short = (number, unit) => (number / unit).toFixed(number < 10 * unit ? 1 : 0);
        this.status.textContent = `${(held + rest).toFixed(1)} GiB: it ${held + rest <= room ? "fits" : "does not fit"}. `
            + `A training step of ViT-${size}/${P} with ${batch === 1 ? "one image" : `${batch} images`} of ${side} pixels, ${now.tokens.toLocaleString("en")} tokens each: `
            + `${short(now.parameters, 1e6)} million parameters, ${short(now.forward, 1e9)} billion operations an image forward`
            + `${this.setting.again ? ", which is computed twice" : ""}.`;
    }
}

whenNear(".vit-cost", (place) => { new Cost(place); });
