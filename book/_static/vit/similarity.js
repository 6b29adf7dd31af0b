/**
 * Chapter 15: how alike the positions of two patches are, with one map for each patch in its place on the left, and the
 * chosen one large. Every element of class `vit-similarity` becomes one.
 */
import { gaussian } from "./looking.js";
import { PatchGrid, choice, element, placeOf, signed, whenNear } from "./parts.js";

const STOPS = [[179, 89, 0], [245, 176, 65], [232, 232, 232], [93, 173, 226], [26, 82, 118]]; // from -1 to 1, as in figures

/** The colour of a cosine: orange below zero, blue above, pale grey at zero. */
function colourOf(cosine) {
    const at = 2 * (Math.max(-1, Math.min(1, cosine)) + 1), i = Math.min(3, Math.floor(at));
    return `rgb(${STOPS[i].map((low, c) => Math.round(low + (at - i) * (STOPS[i + 1][c] - low))).join(" ")})`;
}

/** Cosines between all rows of a table: (N, D) to (N, N). */
function cosines(table, N) {
    const rows = Array.from({ length: N }, (_, n) => table.subarray((n * table.length) / N, ((n + 1) * table.length) / N));
    const dot = (a, b) => a.reduce((sum, value, d) => sum + value * b[d], 0), lengths = rows.map((row) => Math.sqrt(dot(row, row)));
    return rows.map((a, i) => rows.map((b, j) => dot(a, b) / lengths[i] / lengths[j]));
}

/** Chapter 2's fixed positions (N, D): sines and cosines of the row, then of the column. */
function sincos([rows, columns], D) {
    return Float32Array.from({ length: rows * columns * D }, (_, i) => {
        const n = Math.floor(i / D), d = i % D, wave = (d % (D / 4)) / (D / 4 - 1);
        const angle = (d < D / 2 ? Math.floor(n / columns) : n % columns) * 10000 ** -wave;
        return d % (D / 2) < D / 4 ? Math.sin(angle) : Math.cos(angle);
    });
}

class Similarity {
    constructor(place, { grid, num_patches: N, dim: D }, trained) {
        const [rows, columns] = grid;
        Object.assign(this, { rows, columns, patch: columns + 1, pointed: null });
        const tables = { trained, fixed: sincos(grid, D), untrained: gaussian(N * D, 0.02) };
        this.left = new PatchGrid({
            rows, columns, drag: true, choose: (patch) => this.hold(patch), hover: (patch) => this.point(patch),
            label: `A map for each of ${rows} by ${columns} patches. Arrow keys choose one.`,
        });
        this.right = new PatchGrid({
            rows, columns, choose: (patch) => this.hold(patch), hover: (patch) => this.say(patch),
            label: "The chosen map, large. Arrow keys read it, Enter goes to that patch's map.",
        });
        this.status = element("p", { class: "vit-status", role: "status" });
        const table = choice("Positions", [
            ["trained", "of the trained model"], ["fixed", "sines and cosines"], ["untrained", "untrained, random"],
        ], (name) => this.take(tables[name]));
        table.set("trained");
        place.replaceChildren(
            element("div", { class: "pictures" }, this.left.whole, this.right.whole),
            element("div", { class: "below" },
                element("p", { class: "vit-scale" }, "−1 ", element("span", { class: "vit-ramp" }), " 1, the cosine of two patches' positions"),
                this.status, table,
                element("p", { class: "vit-help" }, "On the left, point at a map, drag, or use the arrow keys. On the right, point to read a value.")),
        );
        this.take(trained);
        this.left.move(this.patch);
    }

    /** Take a table (N, D), and draw all of its maps. */
    take(table) {
        const { rows, columns, left: { canvas } } = this;
        this.alike = cosines(table, rows * columns);
        [canvas.width, canvas.height] = [columns * (columns + 1), rows * (rows + 1)]; // with a gap between maps
        this.alike.forEach((map, n) => this.paint(canvas, map, (n % columns) * (columns + 1), Math.floor(n / columns) * (rows + 1)));
        this.draw();
    }

    paint(canvas, map, left, top) {
        const context = canvas.getContext("2d");
        map.forEach((value, i) => {
            context.fillStyle = colourOf(value);
            context.fillRect(left + (i % this.columns), top + Math.floor(i / this.columns), 1, 1);
        });
    }

    hold(patch) {
        Object.assign(this, { patch, pointed: null, touched: true });
        this.left.move(patch);
        this.draw();
    }

    /** Show the map under a mouse, as long as it is there. */
    point(patch) {
        Object.assign(this, { pointed: patch, touched: true });
        this.draw();
    }

    draw() {
        const patch = this.pointed ?? this.patch, { canvas } = this.right;
        [canvas.width, canvas.height] = [this.columns, this.rows];
        this.paint(canvas, this.alike[patch], 0, 0);
        this.left.mark({ asks: [patch] });
        this.right.mark({ asks: [patch] });
        this.say(null);
    }

    say(other) {
        const patch = this.pointed ?? this.patch, { rows, columns } = this, column = patch % columns, row = Math.floor(patch / columns);
        const at = (one) => placeOf(one, columns), value = (one) => signed(this.alike[patch][one]);
        const aside = (row + 1) * columns - 1 - column, below = (rows - 1 - row) * columns + column;
        const next = patch + Math.sign(aside - patch), half = Math.floor((patch + aside) / 2); // on the way to the mirror image
        const way = Math.abs(aside - patch) > 3 ? `${value(half)} half-way to its left-right mirror image, ${value(aside)} with that`
            : `${value(aside)} with its left-right mirror image`;
        const mirrors = `, ${way}, ${at(aside)}; ${value(below)} with its top-bottom one, ${at(below)}`;
        this.status.textContent = other !== null ? `${at(patch)}, and ${at(other)}: ${value(other)}`
            : `${at(patch)}: ${value(next)} with the next in its row${this.touched ? mirrors : ""}.`; // at first the reader looks
    }
}

whenNear(".vit-similarity", async (place, model) => {
    const table = await model.weights("tokens.position"); // (T, D), the class token first
    new Similarity(place, model.config, table.subarray(model.config.dim));
});
