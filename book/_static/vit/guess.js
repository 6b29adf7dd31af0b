/**
 * Draw a curve before you see it (chapters 9, 10 and 17). Every element of class `vit-guess` becomes one; its `data-runs`
 * says what was measured:
 *
 *     { what: "photos", x: [1000, 4000], range: [0, 100], known: { "ResNet": [46.7, 64.7] }, told: 0,
 *       wanted: "ViT", runs: [[38.9, 37.3], [52.2, 51.9]] }
 *
 * `runs` are seeds at each place of `x`; the first `told` places are shown from the start. All in per cent.
 */
import { element, shape, slider, whenNear } from "./parts.js";

const WIDE = 360, HIGH = 230, LEFT = 40, BOTTOM = 190, TOP = 10, INSET = 30;

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

class Guess {
    constructor(place) {
        Object.assign(this, JSON.parse(place.dataset.runs), { shown: false });
        this.truth = this.runs.map(mean);
        const [low, high] = this.range, [least, most] = [this.x[0], this.x.at(-1)].map(Math.log);
        this.across = this.x.map((value) => LEFT + INSET + ((WIDE - LEFT - 2 * INSET) * (Math.log(value) - least)) / (most - least));
        this.up = (value) => BOTTOM - ((BOTTOM - TOP) * (value - low)) / (high - low);
        this.guess = this.truth.map((value, i) => (i < this.told ? value : this.told ? this.truth[0] : (low + high) / 2));
        this.names = this.x.map((value) => `${value.toLocaleString("en")} ${this.what}`);
        this.sliders = this.x.map((_, i) => slider(this.names[i], {
            min: low, max: high, value: Math.round(this.guess[i]), words: (value) => `${value} %`,
        }, (value) => { this.guess[i] = value; this.draw(); }));
        this.svg = shape("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img" });
        ["pointerdown", "pointermove"].forEach((kind) => this.svg.addEventListener(kind, (event) => this.reach(event)));
        this.button = element("button", { type: "button", click: () => { this.shown = !this.shown; this.draw(); } });
        this.status = element("p", { class: "vit-status", role: "status" });
        const key = (name, style) => element("span", { class: `key ${style}` }, name);
        this.key = key(this.wanted, "line-0");
        place.replaceChildren(
            element("div", { class: "vit-lines" },
                element("p", { class: "vit-title" }, "Accuracy, %", ...Object.keys(this.known).map((name) => key(name, "line-1")), key("yours", "yours"), this.key),
                this.svg),
            element("div", { class: "vit-side" }, ...this.sliders.slice(this.told), element("p", {}, this.button), this.status),
        );
        this.draw();
    }

    /** A pointer that is down takes the nearest place to its height. */
    reach(event) {
        if (!event.buttons || this.shown) return;
        const box = this.svg.getBoundingClientRect(), [low, high] = this.range;
        const x = (WIDE * (event.clientX - box.left)) / box.width, y = (HIGH * (event.clientY - box.top)) / box.height;
        const off = this.across.map((at, i) => (i < this.told ? Infinity : Math.abs(at - x))), i = off.indexOf(Math.min(...off));
        const value = Math.round(low + ((high - low) * (BOTTOM - y)) / (BOTTOM - TOP));
        this.guess[i] = Math.min(high, Math.max(low, value));
        this.sliders[i].set(this.guess[i]);
        this.draw();
        event.preventDefault();
    }

    line(values, style, from = 0) {
        const points = values.map((value, i) => [this.across[from + i], this.up(value)]);
        return [
            shape("polyline", { class: style, points: points.map((point) => point.map((n) => n.toFixed(1)).join(",")).join(" ") }),
            ...points.map(([cx, cy]) => shape("circle", { class: style, cx: cx.toFixed(1), cy: cy.toFixed(1), r: 4 })),
        ];
    }

    text(words, x, y, anchor) {
        const made = shape("text", { x, y, "text-anchor": anchor, "font-size": 12, fill: "currentColor" });
        made.textContent = words;
        return made;
    }

    draw() {
        const { shown, told, truth, guess } = this, [low, high] = this.range, step = (high - low) / 5;
        const ticks = Array.from({ length: 6 }, (_, i) => low + i * step);
        const marks = shown
            ? [...this.runs.flatMap((seeds, i) => seeds.map((value) => shape("circle", { class: "line-0", cx: this.across[i].toFixed(1), cy: this.up(value).toFixed(1), r: 2 }))),
                ...this.line(truth, "line-0")]
            : told > 0 ? this.line(truth.slice(0, told), "line-0") : [];
        this.svg.replaceChildren(
            shape("path", { d: `M${LEFT} ${TOP}V${BOTTOM}H${WIDE - 4}`, class: "axes" }),
            ...ticks.map((value) => this.text(value, LEFT - 6, this.up(value) + 4, "end")),
            ...this.x.map((value, i) => this.text(value.toLocaleString("en"), this.across[i], BOTTOM + 17, "middle")),
            this.text(this.what, (LEFT + WIDE) / 2, BOTTOM + 34, "middle"),
            ...Object.values(this.known).flatMap((values) => this.line(values, "line-1")),
            ...(shown ? truth.map((value, i) => shape("path", { d: `M${this.across[i]} ${this.up(guess[i])}V${this.up(value)}`, class: "axes" })) : []),
            ...this.line(guess, "yours"), ...marks,
        );
        this.svg.setAttribute("aria-label", `Your curve${shown ? ", and the measured one" : ""}. The sliders and the text say the values.`);
        this.sliders.forEach((one) => { one.querySelector("input").disabled = shown; });
        this.key.hidden = !marks.length;
        this.button.textContent = shown ? "Guess again" : "Show what came out";
        this.say();
    }

    say() {
        const off = this.guess.map((value, i) => Math.abs(value - this.truth[i])).slice(this.told);
        const worst = this.told + off.indexOf(Math.max(...off));
        this.status.textContent = this.shown
            ? `You were ${mean(off).toFixed(1)} points off on average, most with ${this.names[worst]}: ${Math.round(this.guess[worst])} % by you, ${this.truth[worst].toFixed(1)} % in ${this.runs[worst].length > 1 ? "the mean of the runs" : "the run"}.`
            : "Draw in the plot, or move the sliders.";
    }
}

whenNear(".vit-guess", (place) => { new Guess(place); });
