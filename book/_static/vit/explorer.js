/**
 * Chapter 13's attention explorer: where each patch of a photo looks, in any layer and head, or through all layers.
 * Every element of class `vit-explorer` becomes one.
 */
import { Heads } from "./heads.js";
import { rollout } from "./looking.js";
import { choice, element, likeliest, percent, whenNear } from "./parts.js";

class Explorer extends Heads {
    build() {
        this.view = "attention";
        const view = choice("The map", [
            ["attention", "of this layer and head"], ["rollout", "rollout through all layers"],
        ], (value) => {
            this.view = value;
            this.layers.hidden = this.headsOf.hidden = value === "rollout";
            this.draw();
        });
        view.set(this.view);
        this.whole = element("button", { type: "button", click: () => this.ask(0) }, "Class token");
        this.says = element("p", { class: "vit-scale" });
        return [view, element("div", {}, this.whole), this.says];
    }

    answered(answer) {
        super.answered(answer);
        this.rolled = rollout(answer.attention, this.heads);
        const { probabilities } = answer, { classes } = this.model;
        const first = likeliest(probabilities, 3);
        this.says.textContent = `The model says: ${first.map((k) => `${classes[k]} ${percent(probabilities[k])}`).join(", ")}.`;
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
    place, model, { names: ["coffee", "cat", "rocket", "astronaut"], layer: 8, head: 1, token: 0, mean: true },
));
