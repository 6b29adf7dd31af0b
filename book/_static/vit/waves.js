/**
 * Positions made of sines and cosines, along one side of the grid: one wave, how alike each wave finds a place and all
 * others, and the mean of the waves. Every element of class `vit-waves` becomes one.
 */
import { element, shape, signed, slider, whenNear } from "./parts.js";

const PLACES = 14, WAVES = 48; // of chapter 2: 14 patches along a side, 48 waves for each
const WIDTH = 560, HEIGHT = 200, LOW = 90, STEPS = 8; // of the drawings; points from a place to the next

/** How far wave number i (0 is the fastest) turns from a place to the next, in radians. */
const frequency = (i) => 10_000 ** -(i / (WAVES - 1));

/** How alike the first waves find places x and p: the mean of sin sin + cos cos, which is cos of the difference. */
function alike(x, p, waves) {
    let sum = 0;
    for (let i = 0; i < waves; i++) sum += Math.cos(frequency(i) * (x - p));
    return sum / waves;
}

const across = (x) => 10 + ((WIDTH - 20) * x) / (PLACES - 1);
const down = (y, height = HEIGHT) => 10 + ((height - 20) * (1 - y)) / 2;

/** The line of a function of the place, from the first place to the last. */
function line(f, kind, height) {
    const xs = Array.from({ length: (PLACES - 1) * STEPS + 1 }, (_, i) => i / STEPS);
    return shape("polyline", { class: kind, points: xs.map((x) => `${across(x).toFixed(1)},${down(f(x), height).toFixed(1)}`).join(" ") });
}

class Waves {
    constructor(place) {
        Object.assign(this, { place: 4, waves: 1 });
        this.picture = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
        ["pointerdown", "pointermove"].forEach((kind) => this.picture.addEventListener(kind, (event) => this.drag(event)));
        this.picture.addEventListener("click", (event) => this.take(event));
        this.along = slider("place", { max: PLACES - 1, value: this.place }, (value) => { this.place = value; this.draw(); });
        this.one = shape("svg", { viewBox: `0 0 ${WIDTH} ${LOW}`, role: "img", "aria-label": "The sine and the cosine of one wave." });
        this.ofOne = element("p", { class: "vit-title" });
        this.status = element("p", { class: "vit-status", role: "status" });
        place.replaceChildren(
            element("div", { class: "vit-lines" }, this.ofOne, this.one, element("p", { class: "vit-title" }, "How alike each place is to the chosen one"), this.picture),
            element("div", { class: "below" },
                this.along,
                slider("waves", { min: 1, max: WAVES, value: this.waves }, (value) => { this.waves = value; this.draw(); }),
                this.status,
                element("p", { class: "vit-help" }, "Likeness goes from −1 to 1. Thin: by the single waves, the fastest ten at most. Thick: by all that are chosen, their mean."),
            ),
        );
        this.draw();
    }

    /** Take the place under a pointer that is down. */
    drag(event) {
        if (!event.isPrimary || event.buttons !== 1) return;
        const mouse = event.pointerType === "mouse";
        if (event.type === "pointerdown") {
            getSelection().removeAllRanges(); // else selected text would be dragged
            this.picture.setPointerCapture(event.pointerId);
            this.began = event.clientX;
        } else if (!this.picture.hasPointerCapture(event.pointerId)) return;
        if (!mouse && Math.abs(event.clientX - this.began) < 8) return; // a finger that scrolls the page moves nothing
        this.take(event);
    }

    take(event) {
        const { left, width } = this.picture.getBoundingClientRect(), x = (WIDTH * (event.clientX - left)) / width;
        this.place = Math.max(0, Math.min(PLACES - 1, Math.round(((PLACES - 1) * (x - 10)) / (WIDTH - 20))));
        this.along.set(this.place);
        this.draw();
    }

    draw() {
        const { place: p, waves } = this;
        const single = Array.from({ length: Math.min(10, waves) }, (_, i) => line((x) => Math.cos(frequency(i) * (x - p)), "wave"));
        const others = [...Array(PLACES).keys()].filter((x) => x !== p), likeness = (x) => alike(x, p, waves);
        const best = Math.max(...others.map(likeness)), next = others.filter((x) => likeness(x) > best - 1e-9);
        this.picture.replaceChildren(
            shape("path", { class: "axes", d: `M10 ${down(0)}H${WIDTH - 10}` }), ...single, line(likeness, "line-0"),
            ...[...Array(PLACES).keys()].map((x) => shape("circle", { class: "line-0", cx: across(x), cy: down(likeness(x)), r: x === p ? 7 : 3.5 })),
        );
        const turn = (x) => frequency(waves - 1) * x;
        this.ofOne.textContent = `Wave ${waves} gives place ${p} two numbers: ${signed(Math.sin(turn(p)))}, its sine, and `
            + `${signed(Math.cos(turn(p)))}, its cosine (dashed)`;
        this.one.replaceChildren(
            shape("path", { class: "axes", d: `M10 ${down(0, LOW)}H${WIDTH - 10}M${across(p)} 4V${LOW - 4}` }),
            line((x) => Math.sin(turn(x)), "line-0", LOW), line((x) => Math.cos(turn(x)), "line-1", LOW),
        );
        this.status.textContent = `Place ${p}, ${waves === 1 ? "the fastest wave" : `the fastest ${waves} waves`}: ${next.length > 1 ? `places ${next.join(" and ")} are` : `place ${next} is`} most like it, ${signed(best)}; `
            + `the farthest, ${p < PLACES / 2 ? PLACES - 1 : 0}, has ${signed(likeness(p < PLACES / 2 ? PLACES - 1 : 0))}.`;
        this.picture.setAttribute("aria-label", `Likeness of 14 places to place ${p}, lines for the fastest waves, ten at most, and for the mean of all.`);
    }
}

whenNear(".vit-waves", (place) => { new Waves(place); });
