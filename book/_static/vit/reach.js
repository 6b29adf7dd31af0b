/**
 * Chapter 14: how far a head looks, as a circle over the photo, and all heads in a chart. Every element of class
 * `vit-reach` becomes one.
 */
import { Heads } from "./heads.js";
import { allDistances, distanceFrom, uniformDistance } from "./looking.js";
import { dotChart, element, whenNear } from "./parts.js";

class Reach extends Heads {
    build() {
        const uniform = uniformDistance(this.model.config);
        this.chart = dotChart(
            "How far each head looks, in pixels: one column of dots a layer. The sliders choose a head, the text says its distance.",
            uniform, `everywhere alike, ${uniform.toFixed(1)} pixels`, (layer, head) => {
                Object.assign(this, { layer: layer + 1, head: head + 1 });
                this.layers.set(this.layer);
                this.headsOf.set(this.head);
                this.draw();
            },
        );
        this.rings = [this.left, this.right].map((grid) => {
            const ring = element("u");
            grid.cells[0].parentNode.append(ring);
            return ring;
        });
        return [element("p", { class: "vit-title" }, "How far each head looks in this photo, in pixels, layer by layer"), this.chart];
    }

    answered(answer) {
        super.answered(answer);
        this.far = allDistances(answer.attention, this.model.config);
    }

    draw() {
        super.draw();
        if (!this.answer) return;
        this.chart.show(this.far, [this.layer - 1, this.head - 1]);
        const { image_size: side } = this.model.config, { columns } = this, rows = this.N / columns, patch = this.asks - 1;
        const radius = (100 * this.far[this.layer - 1][this.head - 1]) / side; // in per cent of the photo
        const middle = [(100 * ((patch % columns) + 0.5)) / columns, (100 * (Math.floor(patch / columns) + 0.5)) / rows];
        for (const { style } of this.rings) {
            style.width = style.height = `${2 * radius}%`;
            style.inset = `${middle[1] - radius}% auto auto ${middle[0] - radius}%`;
        }
    }

    summary() {
        const own = distanceFrom(this.asks - 1, this.answer.attention[this.layer - 1], this.head - 1, this.model.config);
        return `${this.where()}: ${this.far[this.layer - 1][this.head - 1].toFixed(1)} pixels far on the average of all patches, `
            + `the circle; ${this.who()}, ${own.toFixed(1)}.`;
    }
}

whenNear(".vit-reach", (place, model) => new Reach(
    place, model, { names: ["coffee", "cat", "rocket", "astronaut"], layer: 3, head: 1, token: 27 },
));
