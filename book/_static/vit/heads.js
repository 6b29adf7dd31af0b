/**
 * What the widgets of chapters 13 and 14 share: a photo on the left, whose patches ask; on the right what the model sees,
 * darkened where a head does not look.
 */
import { asSeen, lookOf, pixelsOf } from "./looking.js";
import { PatchGrid, element, percent, picker, placeOf, slider } from "./parts.js";

export const ASKS = "On the left, point at a patch, drag, or use the arrow keys: it asks. On the right, point, or rest a finger, to read a share.";

/** What has a `build()`, which returns more controls. */
export class Heads {
    /**
     * @param {object} first `names` of photos, `layer` and `head` from 1 (head 0: their mean, offered if `mean`
     *     says so), and the `token` that asks, 0 for the class token
     */
    constructor(place, model, { names, layer, head, token, mean = false }) {
        const { grid: [rows, columns], depth, heads, num_patches: N } = model.config;
        Object.assign(this, { model, layer, head, token, columns, heads, N, pointed: null });
        this.left = new PatchGrid({
            rows, columns, drag: true, choose: (patch) => this.ask(patch + 1), hover: (patch) => this.point(patch),
            label: `The photo, ${rows} by ${columns} patches. Arrow keys choose the patch that asks.`,
        });
        this.right = new PatchGrid({
            rows, columns, choose: (patch) => this.ask(patch + 1), hover: (patch) => this.say(patch),
            label: "What the model sees, with the map over it. Arrow keys read a patch's share, Enter asks from there.",
        });
        this.scaleBar = element("p", { class: "vit-scale" });
        this.status = element("p", { class: "vit-status", role: "status" });
        const change = (name) => (value) => { this[name] = value; this.draw(); };
        const names_ = (value) => (value ? String(value) : "mean of all");
        this.layers = slider("layer", { min: 1, max: depth, value: layer }, change("layer"));
        this.headsOf = slider("head", { min: mean ? 0 : 1, max: heads, value: head, words: names_ }, change("head"));
        const photos = picker(place.dataset.photos, names, (square) => this.came(square));
        place.replaceChildren(
            ...photos, element("div", { class: "pictures" }, this.left.whole, this.right.whole),
            element("div", { class: "below" }, this.scaleBar, this.status, this.layers, this.headsOf, ...this.build(),
                this.help = element("p", { class: "vit-help" }, ASKS)),
        );
        if (token) this.left.move(token - 1);
    }

    async came(square) {
        this.left.draw(square);
        Object.assign(this, { pixels: pixelsOf(square, this.model.config.image_size), hidden: [], answer: null });
        await this.look();
    }

    /** Ask the model about the photo, but for the patches that are hidden. */
    async look() {
        const { pixels, hidden: erase, model: { config } } = this;
        const answer = await this.model.forward(pixels, { erase });
        if (!answer) return; // a newer question came
        this.right.draw(asSeen(pixels, config, { erase }), config.image_size);
        this.answered(answer);
        this.draw();
    }

    /** Keep what is needed of an answer. */
    answered(answer) {
        this.answer = answer;
    }

    /** Let a token ask from now on. */
    ask(token) {
        Object.assign(this, { token, pointed: null });
        if (token) this.left.move(token - 1);
        this.draw();
    }

    /** Let the patch under a mouse ask, as long as it is there. */
    point(patch) {
        this.pointed = patch === null ? null : patch + 1;
        this.draw();
    }

    /** Which token asks, 0 for the class token. */
    get asks() {
        return this.pointed ?? this.token;
    }

    /** Shares of all tokens in what the one that asks looks at, (T). */
    row() {
        const T = this.N + 1, layer = this.answer.attention[this.layer - 1];
        return lookOf(layer, this.head, this.heads).subarray(this.asks * T, (this.asks + 1) * T);
    }

    draw() {
        if (!this.answer) return;
        const [classToken, ...patches] = this.row();
        Object.assign(this, { classToken, patches });
        this.right.map(patches);
        const marks = { hidden: this.hidden, asks: this.asks ? [this.asks - 1] : [] };
        this.left.mark(marks);
        this.right.mark(marks);
        this.scaleBar.textContent = `dim: 0 %, bright: ${percent(Math.max(...patches))}`;
        this.say(null);
    }

    say(patch) {
        if (!this.answer) return;
        this.status.textContent = patch === null ? this.summary() : `${placeOf(patch, this.columns)}: ${percent(this.patches[patch])}`;
    }

    /** Which token asks, in words. */
    who() {
        return this.asks ? `the patch in ${placeOf(this.asks - 1, this.columns)}` : "the class token";
    }

    /** What the map shows, in words. */
    summary() {
        const most = this.patches.indexOf(Math.max(...this.patches));
        return `${this.where()}: ${this.who()} looks most at ${placeOf(most, this.columns)}, ${percent(this.patches[most])}; `
            + `the class token gets ${percent(this.classToken)}.`;
    }

    where() {
        return `Layer ${this.layer}, ${this.head ? `head ${this.head}` : "all heads"}`;
    }
}
