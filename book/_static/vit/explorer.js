/**
 * Chapter 13's attention explorer: where each patch of a photo looks, in any layer and head, or through all layers, and
 * what the model says when patches are hidden. Every element of class `vit-explorer` becomes one.
 */
import { ASKS, Heads } from "./heads.js";
import { rollout } from "./looking.js";
import { choice, element, likeliest, percent, whenNear } from "./parts.js";

const HIDES = "A click hides a patch, or shows it again. With keys: the arrows read a share, Enter hides.";
const KEYS = [ // as the labels of the two pictures say it, of asking and of hiding
    ["choose the patch that asks", "choose a patch, Enter hides it, or shows it again"],
    ["Enter asks from there", "Enter hides it, or shows it again"],
];

class Explorer extends Heads {
    build() {
        this.view = "attention";
        const view = choice("The map", [
            ["attention", "of this layer and head"], ["rollout", "rollout through all layers"],
        ], (value) => {
            this.view = value;
            [this.layers, this.headsOf].forEach(({ style }) => { style.visibility = value === "rollout" ? "hidden" : ""; });
            this.draw();
        });
        view.set(this.view);
        const does = choice("A click on a patch", [
            ["ask", "asks from there"], ["hide", "hides it, or shows it again"],
        ], (value) => {
            this.hides = value === "hide";
            this.left.drag = !this.hides; // else the arrow keys would hide each patch that they come to
            this.help.textContent = this.hides ? HIDES : ASKS;
            [this.left, this.right].forEach(({ whole }, i) => {
                const [asks, hides] = KEYS[i];
                const label = whole.getAttribute("aria-label");
                whole.setAttribute("aria-label", label.replace(...(this.hides ? [asks, hides] : [hides, asks])));
            });
            super.point(null);
        });
        does.set("ask");
        this.whole = element("button", { type: "button", click: () => this.ask(0) }, "Class token");
        this.says = element("p", { class: "vit-scale", role: "status" });
        return [view, does, element("div", {}, this.whole), this.says];
    }

    ask(token) {
        if (!this.hides || token === 0) super.ask(token);
        else if (this.answer) { // of the whole photo first
            const patch = token - 1, others = this.hidden.filter((one) => one !== patch);
            this.hidden = others.length < this.hidden.length ? others : [...others, patch];
            this.look();
        }
    }

    point(patch) {
        if (this.hides) this.say(patch);
        else super.point(patch);
    }

    answered(answer) {
        super.answered(answer);
        this.rolled = rollout(answer.attention, this.heads);
        const { probabilities } = answer, { classes } = this.model;
        const first = likeliest(probabilities, 3), many = this.hidden.length;
        if (!many) this.before = [first[0], probabilities[first[0]]];
        const [most, share] = this.before, change = many ? ` With ${many === 1 ? "one patch" : `${many} patches`} hidden, `
            + `${classes[most]} went from ${percent(share)} to ${percent(probabilities[most])}.` : "";
        this.says.textContent = `The model says: ${first.map((k) => `${classes[k]} ${percent(probabilities[k])}`).join(", ")}.${change}`;
    }

    row() {
        const T = this.N + 1;
        return this.view === "rollout" ? this.rolled.subarray(this.asks * T, (this.asks + 1) * T) : super.row();
    }

    draw() {
        super.draw();
        this.whole.setAttribute("aria-pressed", this.asks === 0);
    }

    where() {
        return this.view === "rollout" ? "Through all layers" : super.where();
    }
}

whenNear(".vit-explorer", (place, model) => new Explorer(
    place, model, { names: ["coffee", "cat", "rocket", "astronaut"], layer: 2, head: 2, token: 27, mean: true },
));
