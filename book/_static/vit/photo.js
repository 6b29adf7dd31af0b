/**
 * "Look at a photo": the Tiny-ImageNet model in the page. Give it a photo, hide patches, follow what looks
 * where, and break it. Every element of class `vit-photo` becomes one; `data-model` and `data-photos` say
 * where the files are.
 */
import { allDistances, asSeen, componentColours, lookOf, pixelsOf, rollout, shuffled, uniformDistance } from "./looking.js";
import {
    PHOTOS, PatchGrid, bars, choice, dotChart, element, fold, likeliest, percent, picker, placeOf, slider, toggle, whenNear,
} from "./parts.js";
import { softmax } from "./vit.js";

const FOREHEAD = [4, 12, 13]; // patches of the cat
const UNTOUCHED = { erase: [], positions: true, shuffle: null, scale: 1, without: [], pool: "cls" };

class Photo {
    /** Build the controls in place of the still picture, and ask for the first answer. */
    constructor(place, model) {
        const { config } = model;
        Object.assign(this, { place, model, changes: structuredClone(UNTOUCHED) });
        Object.assign(this, { layer: config.depth, heads: config.heads, N: config.num_patches });
        Object.assign(this, { head: 0, view: "attention", does: "look", token: 0 });
        place.replaceChildren(...this.build(config));
    }

    build({ grid: [rows, columns], depth, heads }) {
        const ask = () => this.ask(), draw = () => this.draw();
        const about = { rows, columns, choose: (place) => this.chosen(place), hover: (place) => this.say(place) };
        const ofPhoto = {
            ...about, choose: (patch) => this.chosen(this.placeOf(patch)),
            hover: (patch) => this.say(patch === null ? null : this.placeOf(patch)),
        };
        const keys = "Arrow keys go from patch to patch, Enter chooses one.";
        this.left = new PatchGrid({ ...ofPhoto, label: `The photo, ${rows} by ${columns} patches. ${keys}` });
        this.right = new PatchGrid({ ...about, label: `What the model sees, with the map over it. ${keys}` });
        this.status = element("p", { class: "vit-status", role: "status" });
        this.scaleBar = element("p", { class: "vit-scale" });
        this.likely = bars(`The five likeliest of ${this.model.classes.length} classes`);
        this.says = element("p", { class: "vit-reads", role: "status" });
        this.lens = element("ol", { class: "vit-lens" });
        this.reach = element("table", { class: "vit-values" });
        const photos = picker(
            this.place.dataset.photos, PHOTOS, (square, anew) => this.came(square, anew),
        );
        this.photos = photos[0];
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
        const uniform = uniformDistance(this.model.config);
        this.chart = dotChart(
            "How far each head looks, in pixels: one column of dots a layer. The table has the values.",
            uniform, `everywhere alike, ${uniform.toFixed(1)} pixels`, (i, h) => {
                [this.layer, this.head] = [i + 1, h + 1];
                layer.set(this.layer);
                head.set(this.head);
                this.showLeftOut();
                draw();
            },
        );
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
        const patches = toggle("read the mean of the patches, not the class token", (on) => {
            this.changes.pool = on ? "gap" : "cls";
            ask();
        });
        this.out = toggle("leave out this head", (on) => this.leaveOut(on));
        const again = element("button", { type: "button", click: () => this.begin() }, "Put everything back");
        this.breaks = { positions, shuffle, scale, patches };
        this.looks = { layer, head, does, view };
        view.set(this.view);
        does.set(this.does);
        this.showLeftOut();
        const group = (name, ...children) => element("div", { class: name }, ...children);
        return [
            ...photos,
            group("pictures", this.left.whole, this.right.whole),
            this.scaleBar, this.status,
            group("answers", element("p", { class: "vit-title" }, "What it says"), this.likely, this.says),
            group("looks", view, layer, head, does, whole),
            group("breaks", element("p", { class: "vit-title" }, "Break it"), positions, shuffle, patches, scale, this.out, again),
            fold("What each layer would answer (logit lens)", this.lens),
            fold("How far each head looks, in pixels", this.chart, this.reach),
        ];
    }

    /** Begin with a model that is whole, or changed in these ways, as the controls then show. */
    begin(changes = {}, { layer = this.layer, head = this.head } = {}) {
        this.changes = { ...structuredClone(UNTOUCHED), ...changes };
        const { positions, shuffle, scale, pool } = this.changes;
        this.breaks.positions.set(!positions);
        this.breaks.shuffle.set(shuffle !== null);
        this.breaks.scale.set(scale);
        this.breaks.patches.set(pool === "gap");
        [this.layer, this.head] = [layer, head];
        this.looks.layer.set(layer);
        this.looks.head.set(head);
        this.showLeftOut();
        this.ask();
    }

    /** What the page's "Do it" does with the cat, by the words in bold that it stands behind. */
    tries() {
        return {
            "Hide patches of the cat.": () => {
                this.begin();
                this.looks.does.set(this.does = "hide");
                this.hidden = FOREHEAD;
            },
            "Ask each layer.": () => {
                this.begin();
                this.lens.parentElement.open = true;
                return this.lens.parentElement;
            },
            "Take the positions away, then shuffle the patches.": () => this.begin({ positions: false, shuffle: shuffled(this.N) }),
            "Multiply the scores.": () => this.begin({ scale: 4 }),
            "Leave out a layer.": () => this.begin({ without: [[0]] }, { layer: 1, head: 0 }),
            "Leave out a head.": () => this.begin({ without: [[3, 1]] }, { layer: 4, head: 2 }),
            "Let the patches answer.": () => this.begin({ pool: "gap" }),
            "Follow one patch.": () => {
                this.token = 1 + this.left.move(this.right.move(26));
                this.begin({}, { layer: 2, head: 1 });
            },
            "Show it what it does not know.": () => {
                this.begin();
                this.photos.pick("rocket");
            },
        };
    }

    /** Put "Do it" behind each thing to try; what there is to notice opens, for when a reader comes back. */
    offer() {
        const tries = this.tries();
        for (const words of document.querySelectorAll("p > strong:first-child")) {
            const told = words.parentElement, act = tries[words.textContent];
            if (!act) continue;
            const smooth = !matchMedia("(prefers-reduced-motion: reduce)").matches;
            told.append(" ", element("button", { type: "button", class: "vit-try", "aria-label": `Do it: ${words.textContent}`, click: () => {
                [this.token, this.hidden] = [0, []];
                this.looks.does.set(this.does = "look");
                this.looks.view.set(this.view = "attention");
                this.photos.pick("cat");
                history.pushState(null, "", "#vit-photo"); // so that Back leads to what there is to try
                const shows = act() ?? this.place;
                if (told.nextElementSibling?.matches("details")) told.nextElementSibling.open = true;
                shows.scrollIntoView({ behavior: smooth ? "smooth" : "auto" });
            } }, "Do it"));
        }
    }

    /** Take a square: another picture has all of its patches. */
    came(square, anew) {
        if (anew) {
            const cat = this.photos.querySelector("[aria-pressed=true]")?.textContent === "cat";
            [this.changes.erase, this.hidden] = [(cat && this.hidden) || [], []];
        }
        this.left.draw(square);
        this.pixels = pixelsOf(square, this.model.config.image_size);
        this.before = this.answer = this.shown = null;
        this.ask();
    }

    /** Ask the model; an answer to an older question does not come. The first is of the untouched photo. */
    async ask() {
        if (!this.pixels) return;
        const { pixels } = this;
        this.place.setAttribute("aria-busy", "true");
        if (!this.before) {
            const before = await this.model.forward(pixels);
            if (!before || pixels !== this.pixels) return;
            this.before = before.probabilities;
        }
        const answer = await this.model.forward(pixels, this.changes);
        if (!answer || pixels !== this.pixels) return;
        this.answered(answer);
        this.draw();
        this.place.removeAttribute("aria-busy");
    }

    /** Keep an answer, and what is made of it once. */
    answered(answer) {
        this.answer = answer;
        this.far = allDistances(answer.attention, this.model.config); // a layer that was left out has none
        const row = (kind, cells) => element("tr", {}, ...cells.map((cell) => element(kind, {}, cell)));
        this.reach.replaceChildren(
            row("th", ["layer", ...this.far[0].map((_, head) => `head ${head + 1}`)]),
            ...this.far.map((heads, i) => row("td", [i + 1, ...heads.map((one) => (Number.isNaN(one) ? "–" : one.toFixed(1)))])),
        );
        this.lens.replaceChildren(...answer.lens.map((logits) => {
            const [most] = likeliest(logits, 1);
            return element("li", {}, `${this.model.classes[most]}, ${percent(softmax(logits, logits.length)[most])}`);
        }));
    }

    // Shuffled, a patch of the photo has another place in what the model sees.
    placeOf(patch) {
        return this.changes.shuffle?.indexOf(patch) ?? patch;
    }

    patchAt(place) {
        return this.changes.shuffle?.[place] ?? place;
    }

    /** Let the patch at a place ask, or hide it. */
    chosen(place) {
        if (this.does === "look") {
            this.token = place + 1;
            this.draw();
            return;
        }
        const { erase } = this.changes, patch = this.patchAt(place);
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
        const maps = this.view === "rollout" ? rollout(attention, this.heads) : lookOf(layer, this.head, this.heads);
        return Array.from(maps.subarray(this.token * T + 1, (this.token + 1) * T));
    }

    draw() {
        if (!this.answer) return;
        const { config, classes } = this.model, { probabilities } = this.answer, { erase } = this.changes;
        this.shown = this.values();
        this.right.draw(asSeen(this.pixels, config, this.changes), config.image_size);
        this.right.map(this.shown);
        this.left.map(null);
        const asks = this.token && this.view !== "tokens" ? [this.token - 1] : [];
        this.left.mark({ hidden: erase, asks: asks.map((place) => this.patchAt(place)) });
        this.right.mark({ hidden: erase.map((patch) => this.placeOf(patch)), asks });
        this.whole.setAttribute("aria-pressed", this.token === 0);
        const order = likeliest(probabilities, 5);
        const says = `Likeliest: ${classes[order[0]]}, ${percent(probabilities[order[0]])}.${erase.length ? ` Patches hidden: ${erase.length}.` : ""}`;
        if (this.says.textContent !== says) this.says.textContent = says; // or it is read aloud again
        this.likely.show(order.map((k) => ({ name: classes[k], share: probabilities[k], before: this.before[k] })));
        this.chart.show(this.far, [this.layer - 1, this.head - 1]);
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
            const hidden = this.changes.erase.includes(this.patchAt(patch));
            this.status.textContent = `${at(patch)}${hidden ? ", hidden" : ""}${share(patch)}`;
        } else if (this.view === "tokens") {
            this.status.textContent = `Patches of one colour have like tokens after layer ${this.layer}.`;
        } else if (!this.shown.some(Boolean)) {
            this.status.textContent = `Layer ${this.layer} is left out: nothing looks anywhere in it.`;
        } else {
            const who = this.token ? `the patch in ${at(this.token - 1)}` : "the class token";
            const where = this.view === "rollout" ? "Through all layers"
                : `Layer ${this.layer}, ${this.head ? `head ${this.head}` : "all heads"}`;
            const most = this.shown.indexOf(Math.max(...this.shown));
            this.status.textContent = `${where}: ${who} looks most at ${at(most)}${share(most)}.`;
        }
    }
}

whenNear(".vit-photo", (place, model) => new Photo(place, model).offer());
