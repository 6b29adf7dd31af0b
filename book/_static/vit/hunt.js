/**
 * Find the bug in a model by comparing it with another, part by part (chapter 6). Every element of class `vit-hunt` becomes
 * one; its `data-bugs` says what was measured when each was planted:
 *
 *     { bugs: [{ name: "no bug", clue: "...", off: { "attention": [0], "whole model": [0] } }, ...] }
 *
 * `off` holds how far each part is from the other model's, a number a measurement, and 0 for rounding.
 */
import { shuffled } from "./looking.js";
import { element, whenNear } from "./parts.js";

/** What lies in what: a part's name, and the parts in it. */
const PARTS = ["whole model", [
    ["patch embedding", []], ["tokens", []], ["encoder", [["block", [["attention", []], ["MLP", []]]]]],
]];

const told = (off) => (off >= 0.01 ? off.toPrecision(2) : off.toExponential(1));
const sum = (values) => values.reduce((all, value) => all + value, 0);
/** What a bug does to a part, on average over its measurements. */
const usual = (bug, part) => sum(bug.off[part]) / bug.off[part].length;

class Hunt {
    constructor(place) {
        Object.assign(this, JSON.parse(place.dataset.bugs), { parts: {}, toCome: [] });
        this.suspects = this.bugs.map((bug) => element("button", { type: "button", click: () => this.accuse(bug) }, bug.name));
        this.status = element("p", { class: "vit-status", role: "status" });
        place.replaceChildren(
            element("div", { class: "vit-parts", role: "group", "aria-label": "Parts of the model, each inside the one that holds it" }, this.part(PARTS)),
            element("div", { class: "vit-side" },
                element("p", { class: "vit-help" }, "Press a part to compare it with timm's. Then name the bug:"),
                element("div", { class: "photos", role: "group", "aria-label": "Suspects" }, ...this.suspects),
                this.status,
                element("div", {}, element("button", { type: "button", click: () => this.plant() }, "Plant another"))),
        );
        this.plant();
    }

    /** A box with a part's name, what was measured, and the parts that it holds. */
    part([name, inside]) {
        const value = element("span"), button = element("button", { type: "button", click: () => this.measure(name) }, name, " ", value);
        const box = element("div", { class: "part" }, button, ...inside.map((one) => this.part(one)));
        this.parts[name] = { box, value };
        return box;
    }

    /** Plant a bug: each once, in any order, before one comes again. */
    plant() {
        if (this.toCome.length === 0) this.toCome = [...shuffled(this.bugs.length)];
        Object.assign(this, { bug: this.bugs[this.toCome.pop()], measured: [], wrong: 0, found: false });
        Object.values(this.parts).forEach(({ box, value }) => { box.className = "part"; value.textContent = "?"; });
        this.suspects.forEach((button) => { ["aria-disabled", "aria-pressed"].forEach((name) => button.removeAttribute(name)); });
        this.status.textContent = "One of these bugs, or none, is in the model.";
    }

    measure(name) {
        const values = this.bug.off[name], times = this.times(name), [before, off] = [times - 1, times].map((i) => values[i % values.length]);
        this.measured.push(name);
        const { box, value } = this.parts[name];
        box.className = off ? "part wrong" : "part right";
        value.textContent = off ? `✗ ${told(off)}` : "✓";
        const again = times ? ` (last time ${before ? told(before) : "as well"})` : "";
        this.status.textContent = `${name}: ${off ? `off by up to ${told(off)}` : "equal, up to rounding"}${again}.`;
    }

    accuse(named) {
        const button = this.suspects[this.bugs.indexOf(named)], count = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
        if (button.hasAttribute("aria-disabled") || this.found) return; // it keeps the focus
        this.found = named === this.bug;
        if (this.found) {
            button.setAttribute("aria-pressed", true);
            this.status.textContent = `Yes, it is “${named.name}”. ${named.clue} `
                + `You needed ${count(this.measured.length, "comparison")}, and named ${count(this.wrong, "wrong one")}.`;
        } else {
            this.wrong++;
            button.setAttribute("aria-disabled", true);
            this.status.textContent = this.against(named);
        }
    }

    /** What speaks against a bug that is not the one, of what was compared. */
    against(named) {
        const compared = [...new Set(this.measured)].map((part) => [part, this.otherwise(named, part)]);
        const [part, how] = compared.find(([, other]) => other) ?? [];
        const why = part ? `: with it, “${part}” would be ${how}` : ", though nothing that you compared speaks against it";
        return `Not “${named.name}”${why}.`;
    }

    /** How a part would be with another bug, where that is not how it is. */
    otherwise(named, part) {
        const [by, is] = [named, this.bug].map((bug) => usual(bug, part));
        const [drawn, same] = [named, this.bug].map((bug) => new Set(bug.off[part]).size > 1);
        if (!by !== !is) return by ? `off by about ${told(by)}` : "equal";
        if (drawn !== same && this.times(part) > 1) return `off by ${drawn ? "a different amount" : "the same amount"} each time`;
        return by > 2 * is || is > 2 * by ? `off by about ${told(by)}` : null;
    }

    /** How often a part was compared. */
    times(part) {
        return this.measured.filter((one) => one === part).length;
    }
}

whenNear(".vit-hunt", (place) => { new Hunt(place); });
