/**
 * Chapter 7: the window of a photo that a place of a ResNet's map sees, as the ResNet's units open one by one. Every element
 * of class `vit-window` becomes one; it needs no model.
 */
import { catOf } from "./looking.js";
import { PatchGrid, element, slider, whenNear } from "./parts.js";

const SIDE = 224, PATCH = 16, ROWS = SIDE / PATCH; // the photo, the hybrid's total stride, and its map
const STRIDES = [3, 4, 9].flatMap((units, stage) => Array.from({ length: units }, (_, unit) => (stage && !unit ? 2 : 1)));
const UNITS = STRIDES.length;

/**
 * The first and the last row of pixels that a row of the map sees, with SAME padding, once the lowest units are open.
 * A closed unit is its shortcut, which looks at one place; an open one looks at 3 × 3. Rows may lie outside the photo.
 */
export function windowOf(row, open) {
    const units = STRIDES.map((stride, unit) => (unit < open ? [3, stride, stride === 1 ? 1 : 0] : [1, stride, 0]));
    return [[7, 2, 2], [3, 2, 0], ...units].reduceRight( // root and pool: kernel, stride, padding before
        ([first, last], [kernel, stride, before]) => [first * stride - before, last * stride - before + kernel - 1], [row, row],
    );
}

class Seen {
    constructor(place, canvas) {
        Object.assign(this, { patch: 7 * ROWS + 7, over: null, open: 0 });
        this.grid = new PatchGrid({
            rows: ROWS, columns: ROWS, drag: true, label: `The photo, ${ROWS} by ${ROWS} patches. Arrow keys choose the token that looks.`,
            choose: (patch) => { Object.assign(this, { patch, over: null }); this.draw(); },
            hover: (patch) => { this.over = patch; this.draw(); },
        });
        this.window = element("u", { class: "window" });
        this.grid.cells[0].parentNode.append(this.window);
        this.grid.draw(canvas);
        this.status = element("p", { class: "vit-status", role: "status" });
        const units = slider("open units", { max: UNITS, value: 0, words: (n) => `${n} of ${UNITS}` }, (n) => { this.open = n; this.draw(); });
        place.replaceChildren(this.grid.whole, element("div", { class: "vit-side" }, units, this.status,
            element("p", { class: "vit-help" }, "Bright: what the token sees; framed: its own patch. Point at another patch, drag, or use the arrow keys. Pixels are counted from 0.")));
        this.draw();
    }

    draw() {
        const patch = this.over ?? this.patch, places = [Math.floor(patch / ROWS), patch % ROWS];
        const seen = places.map((at) => windowOf(at, this.open)), { style } = this.window;
        const [top, left] = seen.map(([first]) => (100 * first) / SIDE), [high, wide] = seen.map(([first, last]) => last - first + 1);
        style.inset = `${top}% auto auto ${left}%`;
        [style.height, style.width] = [high, wide].map((pixels) => `${(100 * pixels) / SIDE}%`);
        this.grid.point(patch);
        const within = seen.map(([first, last]) => [Math.max(0, first), Math.min(SIDE - 1, last)]);
        const [rows, columns] = within.map(([first, last]) => `${first} to ${last}`);
        const whole = within.every(([first, last]) => last - first + 1 === SIDE);
        this.status.textContent = `The token of row ${places[0]}, column ${places[1]}, sees ${whole ? "the whole photo"
            : `rows ${rows} and columns ${columns} of the photo`}: a window of ${high} × ${wide} pixels, `
            + `${high < PATCH ? "smaller" : "larger"} than its patch of ${PATCH} × ${PATCH}.`;
    }
}

whenNear(".vit-window", async (place) => {
    new Seen(place, await catOf(place));
});
