/**
 * Draw a curve before you see it (chapters 9, 10 and 17). Every element of class `vit-guess` becomes one; its `data-runs`
 * says what was measured, in per cent:
 *
 *     { what: "photos", x: [1000, 4000], range: [0, 100], known: { "ResNet": [46.7, 64.7] }, told: 0,
 *       wanted: "ViT", runs: [[38.9, 37.3], [52.2, 51.9]] }
 *
 * `runs` are seeds at each place of `x`, of which the means are drawn; the first `told` places are shown from the start.
 */
import { element, shape, slider, whenNear } from "./parts.js";

const WIDE = 360, HIGH = 230, LEFT = 40, BOTTOM = 190, TOP = 10, INSET = 30;

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const listed = (values) => `${values.map((value) => value.toFixed(1)).join(", ")} %`;

class Guess {
    constructor(place) {
        Object.assign(this, JSON.parse(place.dataset.runs), { shown: false });
        this.truth = this.runs.map(mean);
        const [low, high] = this.range, [least, most] = [this.x[0], this.x.at(-1)].map(Math.log);
        this.step = high - low < 30 ? 0.5 : 1;
        this.across = this.x.map((value) => LEFT + INSET + ((WIDE - LEFT - 2 * INSET) * (Math.log(value) - least)) / (most - least));
        this.up = (value) => BOTTOM - ((BOTTOM - TOP) * (value - low)) / (high - low);
        const start = this.rounded(this.told ? this.truth[0] : (low + high) / 2);
        this.guess = this.truth.map((value, i) => (i < this.told ? value : null)); // until one has guessed
        this.sliders = this.x.map((value, i) => slider(`${value.toLocaleString("en")} ${this.what}`, {
            min: low, max: high, step: this.step, value: this.guess[i] ?? start, words: (now) => (this.guess[i] === null ? "none" : `${now} %`),
        }, (now) => this.put(i, now)));
        this.svg = shape("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img" });
        for (const part of [this.svg, ...this.sliders]) {
            part.addEventListener("pointerdown", (event) => { if (event.isPrimary) this.held = [...this.guess]; });
            part.addEventListener("pointercancel", () => { // the finger scrolls the page
                this.guess = [...this.held];
                this.sliders.forEach((one, i) => one.set(this.guess[i] ?? start));
                this.draw();
            });
        }
        ["pointerdown", "pointermove"].forEach((kind) => this.svg.addEventListener(kind, (event) => this.reach(event)));
        this.button = element("button", { type: "button", click: () => { this.shown = !this.shown; this.draw(); this.say(); } });
        this.status = element("p", { class: "vit-status", role: "status" });
        const key = (name, style) => element("span", { class: `key ${style}` }, name);
        this.keys = { yours: key("yours", "yours"), wanted: key(this.wanted, "line-0") };
        const known = Object.keys(this.known).map((name) => key(name, "line-1"));
        place.replaceChildren(
            element("div", { class: "vit-lines" },
                element("p", { class: "vit-title" }, "Accuracy, %", ...[...known, ...Object.values(this.keys)].flatMap((one) => [" ", one])), this.svg),
            element("div", { class: "vit-side", role: "group", "aria-label": `Your guess: ${this.wanted}` },
                element("p", { class: "vit-help" }, "Draw in the plot, or move the sliders."),
                ...this.sliders.slice(this.told), element("div", {}, this.button), this.status),
        );
        this.draw();
        this.say();
    }

    rounded(value) {
        const [low, high] = this.range;
        return Math.min(high, Math.max(low, this.step * Math.round(value / this.step)));
    }

    /** Guess a value at a place. */
    put(i, value) {
        this.sliders[i].set(this.guess[i] = this.rounded(value));
        this.draw();
    }

    /** A stroke gives each place that it passes over its height there, and the place where it begins or ends the nearest. */
    reach(event) {
        const down = event.type === "pointerdown";
        if (!event.isPrimary || event.buttons !== 1 || this.shown) return;
        if (down) {
            getSelection().removeAllRanges(); // else selected text would be dragged
            this.svg.setPointerCapture(event.pointerId);
            this.crossed = new Set();
        } else if (!this.svg.hasPointerCapture(event.pointerId)) return;
        const box = this.svg.getBoundingClientRect(), [low, high] = this.range;
        const x = (WIDE * (event.clientX - box.left)) / box.width, y = (HIGH * (event.clientY - box.top)) / box.height;
        const value = low + ((high - low) * (BOTTOM - y)) / (BOTTOM - TOP), [was, from] = down ? [x, value] : this.pen;
        const off = this.across.map((at) => Math.abs(at - x)), nearest = off.indexOf(Math.min(...off));
        this.pen = [x, value];
        for (let i = this.told; i < this.x.length; i++) {
            const at = this.across[i], over = x !== was && (at - was) * (at - x) <= 0;
            if (over) this.crossed.add(i);
            else if (i !== nearest || this.crossed.has(i)) continue;
            this.put(i, over ? from + ((value - from) * (at - was)) / (x - was) : value);
        }
    }

    line(values, style, attributes = {}) {
        const points = values.flatMap((value, i) => (value === null ? [] : [[this.across[i], this.up(value)].map((n) => n.toFixed(1))]));
        return [
            shape("polyline", { class: style, points: points.map((point) => point.join(",")).join(" "), ...attributes }),
            ...points.map(([cx, cy]) => shape("circle", { class: style, cx, cy, r: 4 })),
        ];
    }

    text(words, x, y, anchor) {
        const made = shape("text", { x, y, "text-anchor": anchor, "font-size": 12, fill: "currentColor" });
        made.textContent = words;
        return made;
    }

    draw() {
        const { shown, told, truth, guess } = this, mine = guess.some((value, i) => i >= told && value !== null), [low, high] = this.range;
        const ticks = Array.from({ length: 6 }, (_, i) => low + (i * (high - low)) / 5);
        const seen = truth.slice(0, shown ? truth.length : told);
        const gaps = shown && mine ? truth.map((value, i) => guess[i] !== null && shape("path", { class: "axes", d: `M${this.across[i]} ${this.up(guess[i])}V${this.up(value)}` })).filter(Boolean) : [];
        this.svg.replaceChildren(
            shape("path", { d: `M${LEFT} ${TOP}V${BOTTOM}H${WIDE - 4}`, class: "axes" }),
            ...ticks.map((value) => this.text(value, LEFT - 6, this.up(value) + 4, "end")),
            ...this.x.map((value, i) => this.text(value.toLocaleString("en"), this.across[i], BOTTOM + 17, "middle")),
            this.text(this.what, (LEFT + WIDE) / 2, BOTTOM + 34, "middle"),
            ...Object.values(this.known).flatMap((values) => this.line(values, "line-1")), ...gaps,
            ...(mine ? this.line(guess, "yours") : []), ...(seen.length ? this.line(seen, "line-0", { pathLength: 1 }) : []),
        );
        this.svg.classList.toggle("shown", shown);
        this.svg.setAttribute("aria-label", "A plot of the accuracies that the text says, and of your guess.");
        [this.keys.yours.hidden, this.keys.wanted.hidden] = [!mine, seen.length === 0];
        this.sliders.forEach((one) => { one.querySelector("input").disabled = shown; });
        this.button.textContent = shown ? "Back to your guess" : "Show what came out";
    }

    say() {
        const { told, truth } = this, off = this.guess.flatMap((value, i) => (i < told || value === null ? [] : [value - truth[i]]));
        const always = [["too high", 1], ["too low", -1]].find(([, sign]) => off.length > 1 && off.length === truth.length - told && off.every((one) => one * sign > 0));
        const start = `${this.wanted} at ${this.x[0]} ${this.what}: ${listed(truth.slice(0, told))}`;
        const facts = [...Object.entries(this.known).map(([name, values]) => `${name}: ${listed(values)}`), ...(told ? [start] : [])];
        this.status.textContent = !this.shown ? `${facts.join(". ")}.`
            : `${this.wanted}: ${listed(truth)}.`
            + (off.length ? ` You were ${mean(off.map(Math.abs)).toFixed(1)} points off on average${always ? `, ${always[0]} everywhere` : ""}.` : "");
    }
}

whenNear(".vit-guess", (place) => { new Guess(place); });
