/**
 * Chapter 16: the filters of the trained patch embedding, and what a photo looks like through each. Every element of class
 * `vit-filters` becomes one.
 */
import { pixelsOf } from "./looking.js";
import { PHOTOS, PatchGrid, element, paint, picker, placeOf, signed, slider, whenNear } from "./parts.js";

const COLUMNS = 16, STEPS = [1, 2, 4, 8]; // pixels that a filter moves on by; the last is the model's

class Filters {
    /** Take the filters (D, P²C) and their biases (D). */
    constructor(place, config, weight, bias) {
        Object.assign(this, { config, weight, bias, filter: 7, pointed: null, step: STEPS[0] });
        this.sheet = new PatchGrid({
            rows: Math.ceil(config.dim / COLUMNS), columns: COLUMNS, drag: true,
            choose: (filter) => this.hold(filter), hover: (filter) => this.point(filter),
            label: `The ${config.dim} filters. Arrow keys choose one.`,
        });
        this.sheet.canvas.style.aspectRatio = `${COLUMNS} / ${this.sheet.rows}`;
        this.through = new PatchGrid({
            label: "The photo through the chosen filter. Arrow keys read a value.",
            choose: (at) => this.say(at), hover: (at) => this.say(at),
        });
        const small = (label) => element("canvas", { class: "vit-picture", role: "img", "aria-label": label });
        this.large = small("The chosen filter, large.");
        this.photo = small("The photo, as the model gets it.");
        this.status = element("p", { class: "vit-status", role: "status" });
        const photos = picker(place.dataset.photos, PHOTOS, (square) => {
            this.pixels = pixelsOf(square, config.image_size);
            paint(this.photo, this.pixels, config.image_size);
            this.draw();
        });
        const step = slider("a step of", {
            max: STEPS.length - 1, value: 0, words: (i) => (STEPS[i] === config.patch_size ? "a patch" : `${STEPS[i]} pixel${i ? "s" : ""}`),
        }, (i) => { this.step = STEPS[i]; this.draw(); });
        place.replaceChildren(
            ...photos,
            element("div", { class: "pictures" },
                element("div", {}, this.sheet.whole, element("div", { class: "small" }, this.photo, this.large)), this.through.whole),
            element("div", { class: "below" }, this.status, step,
                element("p", { class: "vit-help" }, "Point at a filter, drag, or use the arrow keys; in what comes out of it, point to read a value.")),
        );
        this.drawSheet();
        this.sheet.move(this.filter);
    }

    /** A filter as a picture (P P C): mid-grey is zero, its largest number black or white. */
    picture(filter) {
        const numbers = this.weight.length / this.bias.length, row = this.weight.subarray(filter * numbers, (filter + 1) * numbers);
        const most = row.reduce((largest, value) => Math.max(largest, Math.abs(value)), 0);
        return row.map((value) => 0.5 + (0.5 * value) / most);
    }

    drawSheet() {
        const { patch_size: P, dim } = this.config, { canvas } = this.sheet, tile = element("canvas");
        [canvas.width, canvas.height] = [COLUMNS * (P + 1), this.sheet.rows * (P + 1)]; // with a gap between filters
        for (let filter = 0; filter < dim; filter++) {
            paint(tile, this.picture(filter), P);
            canvas.getContext("2d").drawImage(tile, (filter % COLUMNS) * (P + 1), Math.floor(filter / COLUMNS) * (P + 1));
        }
    }

    hold(filter) {
        Object.assign(this, { filter, pointed: null });
        this.draw();
    }

    /** Show the filter under a mouse, as long as it is there. */
    point(filter) {
        this.pointed = filter;
        this.draw();
    }

    /** The chosen filter's value for the square of P pixels at each step: (n n), by the embedding's equation. */
    values(filter) {
        const { config: { patch_size: P, image_size: side, mean, std }, step, pixels, weight, bias } = this;
        const n = (side - P) / step + 1, found = new Float32Array(n * n).fill(bias[filter]), first = filter * P * P * 3;
        for (let row = 0; row < n; row++) {
            for (let column = 0; column < n; column++) {
                for (let i = 0; i < P * P * 3; i++) {
                    const y = row * step + Math.floor(i / (P * 3)), x = column * step + (Math.floor(i / 3) % P);
                    found[row * n + column] += (weight[first + i] * (pixels[(y * side + x) * 3 + (i % 3)] - mean[i % 3])) / std[i % 3];
                }
            }
        }
        return found;
    }

    draw() {
        if (!this.pixels) return;
        const filter = this.pointed ?? this.filter, found = this.found = this.values(filter), n = Math.sqrt(found.length);
        this.sheet.mark({ chosen: [filter] });
        paint(this.large, this.picture(filter), this.config.patch_size);
        const most = found.reduce((largest, value) => Math.max(largest, Math.abs(value)), 0);
        this.through.cut(n, n);
        this.through.draw(found.map((value) => 0.5 + (0.5 * value) / most), n);
        const end = (value) => `${signed(value)} in ${placeOf(found.indexOf(value), n)}`;
        this.summary = `Value ${filter} of the token, at ${n} × ${n} places: from ${end(Math.min(...found))}, `
            + `to ${end(Math.max(...found))}. Mid-grey is 0.`;
        this.say(null);
    }

    say(at) {
        if (!this.found) return;
        this.status.textContent = at === null ? this.summary
            : `${placeOf(at, this.through.columns)}: ${signed(this.found[at])}`;
    }
}

whenNear(".vit-filters", async (place, model) => {
    const path = "patch_embedding.projection";
    new Filters(place, model.config, await model.weights(`${path}.weight`), await model.weights(`${path}.bias`));
});
