/**
 * "Look at a photo": the Tiny-ImageNet model in the page. Give it a photo, hide patches, follow what looks
 * where, and break it. Every element of class `vit-photo` becomes one; `data-model` and `data-photos` say
 * where the files are.
 */
import {
    asSeen, componentColours, cutSquare, meanDistance, meanOfHeads, openPicture, pixelsOf, rollout, shuffled,
} from "./looking.js";
import { PatchGrid, bars, choice, element, percent, placeOf, slider, toggle, whenNear } from "./parts.js";

const PHOTOS = ["cat", "coffee", "rocket", "astronaut"];
const UNTOUCHED = { erase: [], positions: true, shuffle: null, scale: 1, without: [] };

class Photo {
    /** Build the controls in place of the still picture, and ask for the first answer. */
    constructor(place, model) {
        const { config } = model;
        Object.assign(this, { place, model, changes: structuredClone(UNTOUCHED) });
        Object.assign(this, { layer: config.depth, heads: config.heads, N: config.num_patches });
        Object.assign(this, { head: 0, view: "attention", does: "look", token: 0, square: [1, 0.5, 0.5] });
        place.replaceChildren(...this.build(config));
        this.open(`${place.dataset.photos}/cat.jpg`);
    }

    build({ grid: [rows, columns], depth, heads }) {
        const ask = () => this.ask(), draw = () => this.draw();
        const about = { rows, columns, choose: (patch) => this.chosen(patch), hover: (patch) => this.say(patch) };
        const keys = "Arrow keys go from patch to patch, Enter chooses one.";
        this.left = new PatchGrid({ ...about, label: `The photo, ${rows} by ${columns} patches. ${keys}` });
        this.right = new PatchGrid({ ...about, label: `What the model sees, with the map over it. ${keys}` });
        this.status = element("p", { class: "vit-status", role: "status" });
        this.scaleBar = element("p", { class: "vit-scale" });
        this.likely = bars(`The five likeliest of ${this.model.classes.length} classes`);
        this.lens = element("ol", { class: "vit-lens" });
        this.reach = element("table", { class: "vit-reach" });
        const file = element("input", { type: "file", accept: "image/*", change: () => this.openFile(file.files[0]) });
        const photos = PHOTOS.map((name) => element("button", {
            type: "button", click: () => this.open(`${this.place.dataset.photos}/${name}.jpg`),
        }, name));
        const squares = [["size of the square", 0.2, 1], ["from left to right", 0, 1], ["from top to bottom", 0, 1]]
            .map(([label, min, max], i) => slider(
                label, { min, max, step: 0.01, value: this.square[i], words: (x) => `${Math.round(100 * x)} %` },
                (value) => { this.square[i] = value; this.crop(); },
            ));
        const layer = slider("layer", { min: 1, max: depth, value: this.layer }, (value) => {
            this.layer = value;
            this.showLeftOut();
            draw();
        });
        const names = (value) => (value ? String(value) : "mean of all");
        const head = slider("head", { max: heads, value: 0, words: names }, (value) => {
            this.head = value;
            this.showLeftOut();
            draw();
        });
        const view = choice("The map", [
            ["attention", "attention of the layer and head"], ["rollout", "rollout through all layers"],
            ["tokens", "tokens after the layer, in colours"],
        ], (value) => { this.view = value; draw(); });
        const does = choice("A click on a patch", [
            ["look", "shows where it looks"], ["hide", "hides it, or shows it again"],
        ], (value) => { this.does = value; });
        const whole = element("button", { type: "button", click: () => { this.token = 0; draw(); } }, "Class token");
        this.whole = whole;
        const positions = toggle("without positions", (on) => { this.changes.positions = !on; ask(); });
        const shuffle = toggle("patches shuffled", (on) => { this.changes.shuffle = on ? shuffled(this.N) : null; ask(); });
        const scale = slider(
            "scores times", { max: 4, step: 0.25, value: 1, words: (x) => x.toFixed(2) },
            (value) => { this.changes.scale = value; ask(); },
        );
        this.out = toggle("leave out this head", (on) => this.leaveOut(on));
        const again = element("button", {
            type: "button",
            click: () => {
                this.changes = structuredClone(UNTOUCHED);
                this.reset.forEach(([control, value]) => control.set(value));
                this.showLeftOut();
                ask();
            },
        }, "Put everything back");
        this.reset = [[positions, false], [shuffle, false], [scale, 1]];
        view.set(this.view);
        does.set(this.does);
        this.showLeftOut();
        const group = (name, ...children) => element("div", { class: `vit-group ${name}` }, ...children);
        const fold = (title, ...children) => element("details", {}, element("summary", {}, title), ...children);
        return [
            group("photos", element("span", {}, "A photo: "), ...photos,
                element("label", { class: "vit-file" }, "or one of your own, which stays on this device: ", file)),
            fold("Cut another square out of it", ...squares),
            group("pictures", this.left.whole, this.right.whole),
            this.scaleBar, this.status,
            group("answers", element("p", { class: "vit-title" }, "What it says"), this.likely),
            group("looks", view, layer, head, does, whole),
            group("breaks", element("p", { class: "vit-title" }, "Break it"), positions, shuffle, scale, this.out, again),
            fold("What each layer would answer (logit lens)", this.lens),
            fold("How far each head looks, in pixels", this.reach),
        ];
    }

    async openFile(file) {
        if (file) await this.open(URL.createObjectURL(file));
    }

    /** Read a picture by its address, and cut the largest square out of its middle. */
    async open(address) {
        try {
            this.bitmap = await openPicture(address);
        } catch {
            this.status.textContent = "This picture cannot be read: expected a JPEG, PNG or WebP file.";
            return;
        }
        this.changes.erase = [];
        this.crop();
    }

    crop() {
        const canvas = cutSquare(this.bitmap, this.square);
        this.left.draw(canvas);
        this.pixels = pixelsOf(canvas, this.model.config.image_size);
        this.before = null;
        this.ask();
    }

    /** Ask the model; an answer to an older question does not come. The first is of the untouched photo. */
    async ask() {
        if (!this.pixels) return;
        const { pixels } = this;
        if (!this.before) {
            const before = await this.model.forward(pixels);
            if (!before || pixels !== this.pixels) return;
            this.before = before.probabilities;
        }
        const answer = await this.model.forward(pixels, this.changes);
        if (!answer || pixels !== this.pixels) return;
        this.answer = answer;
        this.draw();
    }

    chosen(patch) {
        if (this.does === "look") {
            this.token = patch + 1;
            this.draw();
            return;
        }
        const { erase } = this.changes;
        this.changes.erase = erase.includes(patch) ? erase.filter((one) => one !== patch) : [...erase, patch];
        this.ask();
    }

    leaveOut(on) {
        const what = this.head ? [this.layer - 1, this.head - 1] : [this.layer - 1];
        const others = this.changes.without.filter((one) => String(one) !== String(what));
        this.changes.without = on ? [...others, what] : others;
        this.ask();
    }

    showLeftOut() {
        const what = this.head ? [this.layer - 1, this.head - 1] : [this.layer - 1];
        this.out.set(this.changes.without.some((one) => String(one) === String(what)));
        this.out.lastChild.textContent = this.head ? "leave out this head" : "leave out this layer";
    }

    /** The map of the chosen token over the patches: numbers, or colours. */
    values() {
        const { attention, tokens } = this.answer, T = this.N + 1;
        if (this.view === "tokens") return componentColours(tokens[this.layer], this.N);
        const layer = attention[this.layer - 1];
        const maps = this.view === "rollout" ? rollout(attention, this.heads)
            : this.head ? layer.subarray((this.head - 1) * T * T, this.head * T * T) : meanOfHeads(layer, this.heads);
        return Array.from(maps.subarray(this.token * T + 1, (this.token + 1) * T));
    }

    draw() {
        if (!this.answer) return;
        const { config, classes } = this.model, { probabilities, lens, attention } = this.answer;
        this.shown = this.values();
        this.right.draw(asSeen(this.pixels, config, this.changes), config.image_size);
        this.right.map(this.shown);
        this.left.map(null);
        const marks = { hidden: this.changes.erase, asks: this.token && this.view !== "tokens" ? [this.token - 1] : [] };
        this.left.mark(marks);
        this.right.mark(marks);
        this.whole.setAttribute("aria-pressed", this.token === 0);
        const order = [...probabilities.keys()].sort((a, b) => probabilities[b] - probabilities[a]).slice(0, 5);
        this.likely.show(order.map((k) => ({ name: classes[k], share: probabilities[k], before: this.before[k] })));
        this.lens.replaceChildren(...lens.map((logits) => {
            const most = logits.indexOf(Math.max(...logits));
            const sum = logits.reduce((total, value) => total + Math.exp(value - logits[most]), 0);
            return element("li", {}, `${classes[most]}, ${percent(1 / sum)}`);
        }));
        const row = (kind, cells) => element("tr", {}, ...cells.map((cell) => element(kind, {}, cell)));
        const heads = Array.from({ length: this.heads }, (_, head) => head);
        this.reach.replaceChildren(row("th", ["layer", ...heads.map((head) => `head ${head + 1}`)]), ...attention.map(
            (weights, i) => row("td", [i + 1, ...heads.map((head) => reached(weights, head, config))]),
        ));
        const colours = this.view === "tokens";
        this.scaleBar.hidden = colours;
        this.scaleBar.textContent = colours ? "" : `dim: 0 %, bright: ${percent(Math.max(...this.shown))}`;
        this.say(null);
    }

    /** Say in words what the map shows, and the share under the pointer. */
    say(patch) {
        if (!this.shown) return;
        const columns = this.right.columns;
        const at = (one) => placeOf(one, columns);
        const share = (one) => (typeof this.shown[one] === "number" ? `, ${percent(this.shown[one])}` : "");
        if (patch !== null) {
            this.status.textContent = `${at(patch)}${share(patch)}`;
        } else if (this.view === "tokens") {
            this.status.textContent = `Patches of one colour have like tokens after layer ${this.layer}.`;
        } else {
            const who = this.token ? `the patch in ${at(this.token - 1)}` : "the class token";
            const where = this.view === "rollout" ? "Through all layers"
                : `Layer ${this.layer}, ${this.head ? `head ${this.head}` : "all heads"}`;
            const most = this.shown.indexOf(Math.max(...this.shown));
            this.status.textContent = `${where}: ${who} looks most at ${at(most)}${share(most)}.`;
        }
    }
}

/** A head's mean distance as text; a head that was left out has none. */
function reached(weights, head, config) {
    const distance = meanDistance(weights, head, config);
    return Number.isNaN(distance) ? "–" : distance.toFixed(1);
}

whenNear(".vit-photo", (place, model) => new Photo(place, model));
