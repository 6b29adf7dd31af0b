/**
 * "Draw a digit": the MNIST model in the page. Draw with a mouse, a finger or keys, and see what the model reads, and
 * where each head of each layer looks. Every element of class `vit-digit` becomes one; `data-model` is the file.
 */
import { lookOf } from "./looking.js";
import { PatchGrid, STEPS, bars, choice, element, fold, likeliest, percent, placeOf, whenNear } from "./parts.js";
import { SIDE, centred, moved, written } from "./strokes.js";

const SHARP = 560; // pixels a side of the canvas
const PEN = 0.045, THICKEST = 0.12, THINNEST = 0.015; // half a stroke's width, as a share of the canvas
const STEP = 0.04; // of the pen, with a key
const FURTHEST = 12; // pixels that the image may be moved by
const KEYS = "Arrow keys move the pen; the space bar sets it down and lifts it.";

class Digit {
    constructor(place, model) {
        const { grid: [rows, columns], depth, heads, num_patches: N } = model.config;
        Object.assign(this, { model, rows, columns, heads, N, layer: depth, head: 0, token: 0, does: "look" });
        Object.assign(this, { pen: [0.5, 0.2], down: false, asking: false });
        this.clear();
        place.replaceChildren(...this.build(depth));
        this.example(3);
    }

    clear() {
        Object.assign(this, { strokes: [], drawnWith: PEN, before: null, shows: false });
        this.putBack();
    }

    putBack() {
        Object.assign(this, { shift: [0, 0], erase: [], radius: this.drawnWith });
    }

    example(digit) {
        this.clear();
        Object.assign(this, written(digit, Math.floor(1e6 * Math.random())));
        [this.drawnWith, this.shows] = [this.radius, true];
        this.ask();
    }

    build(depth) {
        const { rows, columns, heads } = this;
        const button = (words, click) => element("button", { type: "button", click: () => { click(); this.ask(); } }, words);
        const keys = "Arrow keys go from one to the next, Enter chooses one.";
        this.pad = element("canvas", {
            class: "vit-pad", width: SHARP, height: SHARP, tabindex: 0, role: "application",
            "aria-label": `A square to draw a digit on. ${KEYS}`,
            pointerdown: (event) => this.touched(event), pointermove: (event) => this.dragged(event),
            pointerup: (event) => this.lifted(event), pointercancel: (event) => this.lifted(event),
            keydown: (event) => this.pressed(event), blur: () => this.left(),
        });
        this.right = new PatchGrid({
            rows, columns, label: `What the model sees, ${rows} by ${columns} patches. ${keys}`,
            choose: (patch) => this.chosen(patch), hover: (patch) => this.sayMap(patch),
        });
        this.maps = new PatchGrid({
            rows: depth, columns: heads + 1,
            label: `Where each layer looks: a row each, first the mean, then ${heads} heads. ${keys}`,
            choose: (map) => { this.setMap(map); this.draw(); },
            hover: (map) => this.sayMaps(map ?? this.map),
        });
        this.maps.canvas.style.aspectRatio = `${heads + 1} / ${depth}`;
        this.maps.move((this.layer - 1) * (heads + 1) + this.head);
        this.help = element("p", { class: "vit-help", role: "status" }, `Draw with a mouse or a finger. ${KEYS}`);
        this.status = element("p", { class: "vit-status", role: "status" });
        this.reads = element("p", { class: "vit-reads", role: "status" });
        this.likely = bars("How likely each digit is");
        this.whole = button("Class token", () => { this.token = 0; });
        const does = choice("A click on a patch that it sees", [
            ["look", "shows where it looks"], ["erase", "erases it, or brings it back"],
        ], (value) => { this.does = value; });
        does.set(this.does);
        const group = (name, ...children) => element("div", { class: name }, ...children);
        const title = (words) => element("p", { class: "vit-title" }, words);
        this.where = fold("Where it looks", group("looks", title("A row for each layer, first the mean of its heads"), this.maps.whole, does, this.whole));
        this.where.addEventListener("toggle", () => this.draw());
        const move = (right, down) => () => {
            this.shift = this.shift.map((by, i) => Math.max(-FURTHEST, Math.min(FURTHEST, by + [right, down][i])));
        };
        const thicken = (factor) => () => {
            this.radius = Math.max(THINNEST, Math.min(THICKEST, factor * this.radius));
        };
        return [
            element("div", { class: "photos", role: "group", "aria-label": "An example" }, element("span", {}, "An example: "),
                ...this.model.classes.map((name, digit) => button(name, () => this.example(digit))),
                button("Clear", () => this.clear())),
            this.help,
            group("pictures", element("div", {}, title("Draw here"), this.pad),
                element("div", {}, title("What it sees"), this.right.whole)),
            this.status,
            group("answers", title("What it reads"), this.likely, this.reads),
            this.where,
            group("breaks", title("Change it"), button("thicker", thicken(1.25)), button("thinner", thicken(0.8)),
                button("move left", move(-1, 0)), button("move right", move(1, 0)), button("move up", move(0, -1)),
                button("move down", move(0, 1)), button("Put it back", () => this.putBack())),
        ];
    }

    // ---- The pen
    at(event) {
        const box = this.pad.getBoundingClientRect(), within = (share) => Math.min(1, Math.max(0, share));
        return [within((event.clientX - box.left) / box.width), within((event.clientY - box.top) / box.height)];
    }

    touched(event) {
        if (event.button || this.down) return; // a second finger draws nothing
        this.pad.setPointerCapture(this.pointer = event.pointerId);
        this.setDown(this.at(event));
    }

    dragged(event) {
        if (!this.down || event.pointerId !== this.pointer) return;
        const several = event.getCoalescedEvents?.() ?? [];
        for (const one of several.length ? several : [event]) this.strokes.at(-1).push(this.at(one));
        this.ask();
    }

    lifted(event) {
        if (event.pointerId === this.pointer) this.lift();
    }

    setDown(point) {
        if (this.shows) this.clear(); // one's own drawing does not lie on an example
        Object.assign(this, { down: true, pen: point, before: null });
        this.strokes.push([point]);
        this.ask();
    }

    lift() {
        if (!this.down) return;
        [this.down, this.pointer] = [false, null];
        this.pen = this.strokes.at(-1).at(-1);
        this.ask();
    }

    pressed(event) {
        const step = STEPS[event.key];
        if (event.altKey || event.ctrlKey || event.metaKey || !(step || event.key === " ")) return;
        event.preventDefault();
        if (step) {
            const along = [step[1], step[0]]; // steps are of rows and columns
            this.pen = this.pen.map((value, i) => Math.min(1, Math.max(0, value + STEP * along[i])));
            if (this.down) this.strokes.at(-1).push(this.pen);
        } else if (this.down) this.lift();
        else if (!event.repeat) this.setDown(this.pen);
        if (step && !this.down) this.paint(); // nothing new to read
        else this.ask();
        this.sayPen();
    }

    /** The keyboard has gone elsewhere: the pen is up. */
    left() {
        if (this.down) {
            this.lift();
            this.sayPen();
        }
        this.paint();
    }

    sayPen() {
        const [left, top] = this.pen.map((value) => `${Math.round(100 * value)} %`);
        this.help.textContent = `The pen is ${this.down ? "down" : "up"}, ${left} from the left, ${top} from the top.`;
    }

    /** Draw the strokes, and the pen where keys move it. */
    paint() {
        const context = this.pad.getContext("2d"), place = (point) => point.map((value) => value * SHARP);
        context.fillStyle = "#000";
        context.fillRect(0, 0, SHARP, SHARP);
        Object.assign(context, { strokeStyle: "#fff", lineCap: "round", lineJoin: "round", lineWidth: 2 * this.radius * SHARP });
        for (const stroke of this.strokes) {
            context.beginPath();
            context.moveTo(...place(stroke[0]));
            stroke.forEach((point) => context.lineTo(...place(point)));
            context.stroke();
        }
        if (!this.pad.matches(":focus-visible")) return;
        Object.assign(context, { strokeStyle: "#f0ab4a", lineWidth: this.down ? 14 : 5 });
        context.beginPath();
        context.arc(...place(this.pen), 16, 0, 7);
        context.stroke();
    }

    // ---- The model
    /** Show the drawing and ask about it: one question at a time, the newest when the last is answered. */
    async ask() {
        this.paint();
        this.again = this.asking;
        if (this.asking) return;
        this.asking = true;
        const { strokes, radius, shift, erase } = this, drawn = strokes.length > 0;
        this.seen = moved(centred(strokes, radius), ...shift);
        this.answer = drawn ? await this.model.forward(this.seen, { erase }) : null;
        this.asking = false;
        const changed = erase.length > 0 || shift.some(Boolean) || radius !== this.drawnWith;
        if (drawn && !changed) this.before = this.answer?.probabilities ?? null;
        this.draw();
        if (this.again) this.ask();
    }

    chosen(patch) {
        if (this.does === "look") {
            this.token = patch + 1;
            this.where.open = true;
            this.draw();
            return;
        }
        this.erase = this.erase.includes(patch) ? this.erase.filter((one) => one !== patch) : [...this.erase, patch];
        this.ask();
    }

    setMap(map) {
        [this.layer, this.head] = [Math.floor(map / (this.heads + 1)) + 1, map % (this.heads + 1)];
    }

    nameOf(map) {
        const head = map % (this.heads + 1);
        return `Layer ${Math.floor(map / (this.heads + 1)) + 1}, ${head ? `head ${head}` : "the mean of all heads"}`;
    }

    /** Where the chosen token looks in a map: one number a patch (N). */
    values(map) {
        const T = this.N + 1, layer = this.answer.attention[Math.floor(map / (this.heads + 1))];
        const head = map % (this.heads + 1), first = this.token * T + 1;
        return lookOf(layer, head, this.heads).subarray(first, first + this.N);
    }

    draw() {
        const { answer, erase } = this, painted = this.seen.map((value, i) => {
            const patch = Math.floor(Math.floor(i / SIDE) / (SIDE / this.rows)) * this.columns
                + Math.floor((i % SIDE) / (SIDE / this.columns));
            return erase.includes(patch) ? this.seen.reduce((sum, one) => sum + one) / this.seen.length : value;
        });
        this.right.draw(painted, SIDE);
        this.map = (this.layer - 1) * (this.heads + 1) + this.head;
        this.right.mark({ hidden: erase, asks: this.token && answer && this.where.open ? [this.token - 1] : [] });
        this.maps.mark({ chosen: answer ? [this.map] : [] });
        this.whole.setAttribute("aria-pressed", this.token === 0);
        this.right.map(answer && this.where.open ? tinted(this.values(this.map)) : null);
        this.drawMaps();
        this.likely.show(this.model.classes.map((name, digit) => {
            const share = answer ? answer.probabilities[digit] : 0;
            return { name, share, before: this.before?.[digit] ?? share };
        }));
        this.likely.classList.toggle("nothing", !answer);
        if (this.down) return; // one is told when the pen is up
        this.sayMap(null);
        this.sayAnswer();
    }

    /** All maps, 7 by 7 pixels each, with a line between them. */
    drawMaps() {
        const { rows, columns, heads, maps } = this, context = maps.canvas.getContext("2d");
        [maps.canvas.width, maps.canvas.height] = [(columns + 1) * (heads + 1), (rows + 1) * maps.rows];
        context.fillStyle = "#3c4650";
        context.fillRect(0, 0, maps.canvas.width, maps.canvas.height);
        for (let map = 0; map < maps.rows * (heads + 1); map++) {
            const values = this.answer ? this.values(map) : new Float32Array(this.N), most = Math.max(...values, 1e-9);
            const left = (columns + 1) * (map % (heads + 1)), top = (rows + 1) * Math.floor(map / (heads + 1));
            values.forEach((value, i) => {
                const share = value / most;
                context.fillStyle = `rgb(${[240, 171, 74].map((channel) => Math.round(channel * share)).join(" ")})`;
                context.fillRect(left + (i % columns), top + Math.floor(i / columns), 1, 1);
            });
        }
    }

    // ---- In words
    sayAnswer() {
        if (!this.answer) {
            this.reads.textContent = this.strokes.length ? "" : "Nothing is drawn yet.";
            return;
        }
        const { probabilities } = this.answer, { classes } = this.model;
        const [first, second] = likeliest(probabilities, 2);
        const named = (digit) => `${classes[digit]}, with ${percent(probabilities[digit])}`;
        const erased = this.erase.length ? ` Patches erased: ${this.erase.length}.` : "";
        const next = probabilities[second] < 0.0005 ? "" : `; next is ${named(second)}`; // 0.0 % says nothing
        this.reads.textContent = `It reads ${named(first)}${next}.${erased}`;
    }

    place(patch) {
        return placeOf(patch, this.columns);
    }

    /** Where the chosen token looks most in a map. */
    most(map) {
        const values = this.values(map), most = values.indexOf(Math.max(...values));
        const who = this.token ? `The patch in ${this.place(this.token - 1)}` : "The class token";
        return `${who} looks most at ${this.place(most)}, ${percent(values[most])}.`;
    }

    sayMaps(map) {
        this.status.textContent = this.answer && this.where.open ? `${this.nameOf(map)}. ${this.most(map)}` : "";
    }

    /** The share of the patch under the pointer; without one, what the map shows. */
    sayMap(patch) {
        if (patch === null || !this.answer) this.sayMaps(this.map);
        else {
            const share = this.where.open ? `, ${percent(this.values(this.map)[patch])}` : "";
            this.status.textContent = `${this.place(patch)}${this.erase.includes(patch) ? ", erased" : ""}${share}`;
        }
    }
}

/** Colours for a map: the more attention, the more orange, so that it shows on the black ground, too. */
function tinted(values) {
    const most = Math.max(...values, 1e-9);
    return Array.from(values, (value) => `rgb(240 171 74 / ${(0.75 * value) / most})`);
}

whenNear(".vit-digit", (place, model) => new Digit(place, model));
