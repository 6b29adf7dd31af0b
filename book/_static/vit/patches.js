/**
 * The photo cut into patches of any size, one of them large, and the row of numbers that it becomes. Every element
 * of class `vit-patches` becomes one; it needs no model.
 */
import { catOf, pixelsOf } from "./looking.js";
import { PatchGrid, element, paint, slider, whenNear } from "./parts.js";

const SIDE = 224, SIZES = [4, 7, 8, 14, 16, 28, 32, 56, 112]; // pixels: of the photo, and of a patch

class Patches {
    constructor(place, canvas) {
        Object.assign(this, { pixels: pixelsOf(canvas, SIDE), P: 16, patch: 88, place: 0 });
        const say = () => this.say(), keys = "Arrow keys go from one to the next, Enter chooses.";
        this.photo = new PatchGrid({
            label: `The photo in patches. ${keys}`, drag: "pointer",
            choose: (patch) => { Object.assign(this, { patch, over: null }); this.draw(); },
            hover: (patch) => { this.over = patch; this.drawLarge(); },
        });
        this.large = new PatchGrid({
            label: `The pixels of the chosen patch. ${keys}`, drag: "pointer",
            hover: (pixel) => { if (pixel !== null) this.pointAt(pixel); }, choose: (pixel) => this.pointAt(pixel),
        });
        this.row = element("canvas", { height: 1 });
        this.mark = element("b");
        const strip = element("div", {
            class: "vit-strip", "aria-hidden": "true", click: (event) => this.pointIn(event),
            pointermove: (event) => this.pointIn(event),
        }, this.row, this.mark);
        this.counts = element("p", { class: "vit-title" });
        this.status = element("p", { class: "vit-status", role: "status" });
        const size = slider("patch size P", {
            max: SIZES.length - 1, value: SIZES.indexOf(this.P), words: (i) => `${SIZES[i]} pixels`,
        }, (i) => this.cut(SIZES[i]));
        this.along = slider("place in the row", { max: 0, value: 0 }, (value) => { this.place = value; say(); });
        place.replaceChildren(
            element("div", { class: "pictures" }, this.photo.whole, this.large.whole),
            element("div", { class: "below" }, size, this.counts, strip, this.along, this.status,
                element("p", { class: "vit-help" }, "Point at a patch on the left to see it large, and click to keep it; on the right, point at a pixel.")),
        );
        this.cut(this.P);
    }

    /** Cut anew: the patch that holds the middle of the chosen one is chosen now. */
    cut(P) {
        const [before, now] = [SIDE / this.P, SIDE / P];
        const moved = (at) => Math.floor((at + 0.5) * (this.P / P));
        this.patch = moved(Math.floor(this.patch / before)) * now + moved(this.patch % before);
        Object.assign(this, { P, place: 0, over: null });
        this.photo.cut(now, now);
        this.large.cut(P, P);
        this.along.range(P * P * 3 - 1);
        const [N, numbers, pairs] = [now ** 2, P * P * 3, now ** 4].map((number) => number.toLocaleString("en"));
        this.counts.textContent = `N = ${now} × ${now} = ${N} patches of P² C = ${P} · ${P} · 3 = ${numbers} numbers; `
            + `each compared with each, N² = ${pairs} pairs`;
        this.draw();
    }

    /** The place of a pixel's red in the flattened photo, (H W C). */
    first(pixel) {
        const { P, shown: patch } = this, columns = SIDE / P;
        const row = Math.floor(patch / columns) * P + Math.floor(pixel / P), column = (patch % columns) * P + (pixel % P);
        return (row * SIDE + column) * 3;
    }

    draw() {
        const { P, pixels } = this, gap = 2, spread = SIDE + gap * (SIDE / P - 1);
        const apart = element("canvas", { width: spread, height: spread }), context = apart.getContext("2d");
        const whole = element("canvas");
        paint(whole, pixels, SIDE);
        for (let top = 0; top < SIDE; top += P) {
            for (let left = 0; left < SIDE; left += P) {
                const moved = (at) => at + (gap * at) / P;
                context.drawImage(whole, left, top, P, P, moved(left), moved(top), P, P);
            }
        }
        this.photo.draw(apart);
        this.photo.point(this.patch);
        this.drawLarge();
    }

    /** The patch that is shown large: the one under a mouse, as long as it is there, else the chosen one. */
    get shown() {
        return this.over ?? this.patch;
    }

    drawLarge() {
        const { P, pixels } = this;
        const numbers = Float32Array.from({ length: P * P * 3 }, (_, i) => pixels[this.first(Math.floor(i / 3)) + (i % 3)]);
        this.large.draw(numbers, P);
        this.row.width = P * P;
        this.row.getContext("2d").putImageData(new ImageData(
            this.large.canvas.getContext("2d").getImageData(0, 0, P, P).data, P * P, 1,
        ), 0, 0);
        this.say();
    }

    pointAt(pixel) {
        this.place = 3 * pixel;
        this.say();
    }

    /** The pixel under the pointer, of those that lie side by side in the row. */
    pointIn(event) {
        const { left, width } = this.row.getBoundingClientRect(), last = this.P ** 2 - 1;
        this.pointAt(Math.max(0, Math.min(last, Math.floor(((event.clientX - left) / width) * (last + 1)))));
    }

    say() {
        const { P, shown: patch, place } = this, pixel = Math.floor(place / 3), columns = SIDE / P;
        this.along.set(place);
        this.large.point(pixel);
        this.mark.style.left = `${(100 * (pixel + 0.5)) / P ** 2}%`;
        const value = this.pixels[this.first(pixel) + (place % 3)].toFixed(2);
        this.status.textContent = `patches[${patch}, ${place}] = ${value}, the ${["red", "green", "blue"][place % 3]} of row `
            + `${Math.floor(pixel / P)}, column ${pixel % P} in the patch of row ${Math.floor(patch / columns)}, `
            + `column ${patch % columns}. Its three colours stand at ${3 * pixel}, ${3 * pixel + 1} and ${3 * pixel + 2}.`;
    }
}

whenNear(".vit-patches", async (place) => {
    new Patches(place, await catOf(place));
});
