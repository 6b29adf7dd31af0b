/**
 * Chapter 11: hide patches of a photo, and the model without labels names their colours. Every element of class
 * `vit-masked` becomes one.
 */
import { pixelsOf, shuffled } from "./looking.js";
import { PHOTOS, PatchGrid, choice, element, percent, picker, placeOf, whenNear } from "./parts.js";

const LEVELS = 8, BIN = 256 / LEVELS; // 3 bits a channel

/** The patch in which the i-th number of an image (side side 3) lies. */
const patchOf = (i, { image_size: side, patch_size: P, grid: [, columns] }) => (
    Math.floor(i / 3 / side / P) * columns + Math.floor((Math.floor(i / 3) % side) / P)
);

/** The mean colours of patches (N, 3), from 0 to 255, of an image (side side 3) from 0 to 1. */
function meanColours(pixels, config) {
    const means = Array.from({ length: config.num_patches }, () => [0, 0, 0]);
    pixels.forEach((value, i) => { means[patchOf(i, config)][i % 3] += (255 * value) / config.patch_size ** 2; });
    return means;
}

/** The mean of a patch's visible neighbours; of all visible patches where it has none, else grey. */
function guessed(patch, means, hidden, columns) {
    const [row, column] = [Math.floor(patch / columns), patch % columns];
    const near = (other) => Math.max(Math.abs(Math.floor(other / columns) - row), Math.abs((other % columns) - column)) === 1;
    const visible = [...means.keys()].filter((other) => !hidden.has(other)), around = visible.filter(near);
    const asked = around.length ? around : visible;
    return [0, 1, 2].map((c) => (asked.length ? asked.reduce((sum, other) => sum + means[other][c], 0) / asked.length : 128));
}

/** The number of a mean colour among 512, 64 r + 8 g + b. */
const numberOf = (mean) => mean.reduce((sum, value) => LEVELS * sum + Math.min(LEVELS - 1, Math.floor(value / BIN)), 0);

class Masked {
    constructor(place, model) {
        const { config: { grid: [rows, columns], num_patches: N } } = model;
        Object.assign(this, { place, model, N, columns, shows: "model" });
        const about = {
            rows, columns, drag: "pointer", choose: (patch) => this.chosen(patch), hover: (patch) => this.say(patch),
        };
        const keys = "Arrow keys go from patch to patch, Enter hides one, or shows it again.";
        this.left = new PatchGrid({ ...about, label: `The photo, ${rows} by ${columns} patches. ${keys}` });
        this.right = new PatchGrid({ ...about, label: `The photo with colours in place of what is hidden. ${keys}` });
        for (const grid of [this.left, this.right]) { // a stroke hides, or shows, as its first patch
            grid.whole.addEventListener("pointerdown", (event) => { [this.first, this.hides] = [grid.patchAt(event), null]; }, true);
            for (const [kind, before] of [["keydown", true], ["click", false]]) {
                grid.whole.addEventListener(kind, () => { this.first = this.hides = null; }, before);
            }
        }
        const shows = choice("A hidden patch is painted", [
            ["model", "as the model says"], ["guess", "as the mean of its visible neighbours"], ["true", "as it truly is, on the average"],
        ], (value) => { this.shows = value; this.draw(); });
        shows.set(this.shows);
        const hiding = {
            "every second": (patch) => (Math.floor(patch / columns) + patch) % 2 === 1,
            "half, at random": null,
            "the upper half": (patch) => patch < N / 2,
            all: () => true,
            none: () => false,
        };
        const buttons = Object.entries(hiding).map(([name, which]) => element("button", { type: "button", click: () => {
            this.hide(which ? [...Array(N).keys()].filter(which) : shuffled(N).slice(N / 2));
        } }, name));
        this.status = element("p", { class: "vit-status", role: "status" });
        const photos = picker(place.dataset.photos, PHOTOS, (square) => {
            this.pixels = pixelsOf(square, model.config.image_size);
            this.means = meanColours(this.pixels, model.config);
            this.left.draw(square);
            this.last = null;
            this.ask();
        });
        place.replaceChildren(
            ...photos, element("div", { class: "pictures" }, this.left.whole, this.right.whole),
            element("div", { class: "below" },
                element("div", { class: "photos", role: "group", "aria-label": "Hide" }, element("span", {}, "Hide: "), ...buttons), shows, this.status,
                element("p", { class: "vit-help" }, "Click, or draw over patches, to hide them or to show them again. Each colour is the middle of one of "
                    + `${model.classes.length}: ${LEVELS} levels of red, of green and of blue.`)),
        );
        this.hidden = new Set([...Array(N).keys()].filter(hiding["every second"]));
    }

    /** Hide a patch, or show it again; the others of a stroke, until the click at its end, as its first. */
    chosen(patch) {
        const first = this.first ?? patch, stroke = [first, patch];
        this.hides ??= !this.hidden.has(first);
        this.first = null;
        const others = [...this.hidden].filter((one) => !stroke.includes(one));
        this.hide(this.hides ? [...others, ...stroke] : others, patch);
    }

    hide(patches, last = null) {
        [this.hidden, this.last] = [new Set(patches), last];
        this.ask();
    }

    /** Ask the model; an answer to an older question does not come. */
    async ask() {
        if (!this.pixels) return;
        const { pixels, means, hidden, model: { classes } } = this, masked = [...hidden];
        this.known = null;
        this.left.mark({ hidden: masked });
        this.place.setAttribute("aria-busy", "true");
        const answer = await this.model.forward(pixels, { masked, pool: "each" });
        if (!answer) return;
        const K = classes.length;
        this.known = new Map(masked.map((patch) => { // of each hidden patch
            const shares = answer.probabilities.subarray(patch * K, (patch + 1) * K);
            const model = shares.indexOf(Math.max(...shares)), guess = numberOf(guessed(patch, means, hidden, this.columns));
            return [patch, { model, guess, true: numberOf(means[patch]), share: shares[model] }];
        }));
        this.draw();
        this.place.removeAttribute("aria-busy");
    }

    draw() {
        if (!this.known) return;
        const { pixels, known, shows, model: { config } } = this;
        this.right.draw(pixels.map((value, i) => {
            const it = known.get(patchOf(i, config));
            return it ? this.colour(it[shows])[i % 3] / 255 : value;
        }), config.image_size);
        this.say(null);
    }

    /** The middle of a numbered colour's bin: red, green and blue. */
    colour(number) {
        return this.model.classes[number].match(/\d+/g);
    }

    /** Say what is known of the patch under the pointer, or of the last chosen, and how many are right. */
    say(patch) {
        if (!this.known) return;
        const asked = patch ?? this.last; // the last that was hidden, or shown
        const all = [...this.known.values()], it = this.known.get(asked), words = (number) => this.colour(number).join(" ");
        const right = (who) => all.filter((one) => one[who] === one.true).length;
        const of = !it ? `${placeOf(asked, this.columns)} is in plain view. `
            : `${placeOf(asked, this.columns)}, red green blue: the model says ${words(it.model)} (${percent(it.share)}), `
                + `the neighbours ${words(it.guess)}; it is ${words(it.true)}. `;
        this.status.textContent = (asked === null ? "" : of) + (all.length
            ? `Of ${all.length} hidden patches, right among ${this.model.classes.length} colours: the model ${right("model")}, `
                + `the mean of the neighbours ${right("guess")}.` : "Nothing is hidden.");
    }
}

whenNear(".vit-masked", (place, model) => new Masked(place, model));
