/**
 * Parts that the book's widgets are made of: sliders, switches, a grid of patches with a map over it, bars.
 * CONTRIBUTING says how to add a widget.
 */
import { cutSquare, openPicture } from "./looking.js";
import { load } from "./worker.js";

/**
 * Begin a widget in each element that a selector finds, when a reader comes near: the model that its `data-model`
 * names, if it names one, is fetched, with a line that says so, and `begin(place, model)` is called.
 */
export function whenNear(selector, begin) {
    const near = new IntersectionObserver((entries) => {
        for (const { isIntersecting, target } of entries) {
            if (!isIntersecting) continue;
            near.unobserve(target);
            fetchFor(target, begin);
        }
    }, { rootMargin: "300px" });
    document.querySelectorAll(selector).forEach((place) => near.observe(place));
}

async function fetchFor(place, begin) {
    // The first sentence below the still figure says on paper how the widget began; only there, for one may have changed it.
    const [still] = place.querySelector("figcaption").textContent.split(". ");
    const high = place.offsetHeight;
    const started = async (model) => {
        await styled;
        await begin(place, model);
        const above = place.getBoundingClientRect().top < 0 && !CSS.supports("overflow-anchor", "auto");
        if (above) scrollBy(0, place.offsetHeight - high); // Safari lets what is read move away
        place.append(element("p", { class: "vit-caption" }, `At first: ${still}.`));
        place.setAttribute("role", "group");
        place.setAttribute("aria-label", still);
    };
    const come = element("span", { "aria-hidden": "true" }), { model } = place.dataset;
    const note = element("p", { class: "vit-note", role: "status" }, "Loading the model …", come);
    let told = false;
    const failed = (error) => {
        place.removeAttribute("aria-busy");
        if (told) return;
        told = true;
        note.setAttribute("role", "alert");
        const odd = error instanceof TypeError || error instanceof ReferenceError;
        note.textContent = odd ? "This does not work here; load the page again, or use a newer browser." : error.message;
        place.append(note);
        console.error(error);
    };
    const heard = (asked) => ({ ...asked, forward: (...what) => asked.forward(...what).catch(failed) }); // then no answer comes
    if (model) place.append(note);
    try {
        await started(model && heard(await load(model, (share) => { come.textContent = ` ${Math.round(100 * share)} %`; })));
        if (!told) note.remove();
    } catch (error) {
        failed(error);
    }
}

/** Make an element: `element("p", { class: "a" }, "text", child)`; an attribute that is a function listens. */
export function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
        if (typeof value === "function") made.addEventListener(name, value);
        else if (value === true) made.setAttribute(name, "");
        else if (value !== false) made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
}

/** Make an element of a drawing: `shape("svg", { viewBox: "0 0 9 9" })`. */
export function shape(tag, attributes) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
}

// After widgets.css, which stands in the body, too.
const styled = new Promise((come) => {
    document.body.append(element("link", { rel: "stylesheet", href: new URL("./live.css", import.meta.url).href, load: come, error: come }));
});

/** A name that nothing else on the page has. */
const nameOf = () => `vit-${Math.random().toString(36).slice(2)}`;

/**
 * A slider with its value in words beside it.
 * @param {string} label
 * @param {{min?: number, max: number, step?: number, value: number, words?: (value: number) => string, marks?: number[]}} range
 * @param {(value: number) => void} changed
 * @returns {HTMLElement} with `set(value)`, which does not call `changed`, and `range(max)`
 */
export function slider(label, { min = 0, max, step = 1, value, words = String, marks = [] }, changed) {
    const id = nameOf(), ticks = element("datalist", { id }, ...marks.map((at) => element("option", { value: at })));
    const shown = element("output", { "aria-hidden": "true" }); // the slider itself tells its value
    let held = value;
    const say = () => { input.setAttribute("aria-valuetext", shown.textContent = words(+input.value)); };
    const input = element("input", {
        type: "range", min, max, step, value, list: marks.length > 0 && id, input: () => { say(); changed(+input.value); },
        pointerdown: () => { held = input.value; },
        pointercancel: () => { // the finger scrolls the page
            if (input.value === held) return;
            whole.set(held);
            changed(+held);
        },
    });
    const whole = element("label", { class: "vit-slider" }, element("span", {}, label), input, shown, ticks);
    whole.set = (next) => { input.value = next; say(); };
    whole.range = (most) => { input.max = most; };
    say();
    return whole;
}

/**
 * A slider over time, with a button that plays it on, from the end anew. Once it is seen it plays by itself, but if it `waits`, and for readers
 * who want less motion; while it does, what changes is not read aloud.
 */
export function player(label, { max, value, waits = false }, changed) {
    let timer = null;
    const stop = () => {
        clearInterval(timer);
        timer = null;
        button.textContent = "Play";
        whole.closest(".vit-widget")?.removeAttribute("aria-busy");
    };
    const bar = slider(label, { max, value }, (next) => { stop(); changed(next); });
    const play = () => {
        let at = +bar.querySelector("input").value % max;
        const step = () => {
            if (at === max) stop();
            bar.set(at);
            changed(at++);
        };
        step();
        timer = setInterval(step, 600);
        button.textContent = "Stop";
        whole.closest(".vit-widget").setAttribute("aria-busy", "true");
    };
    const button = element("button", { type: "button", click: () => (timer ? stop() : play()) }, "Play");
    const whole = element("div", { class: "vit-player" }, bar, button);
    const seen = new IntersectionObserver((entries) => {
        if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
        seen.disconnect();
        if (!timer && !whole.contains(document.activeElement) && !matchMedia("(prefers-reduced-motion: reduce), print").matches) play();
    }, { threshold: 1 });
    if (!waits) seen.observe(whole);
    bar.querySelector("input").addEventListener("focus", stop); // else each step would be read aloud
    return whole;
}

/** A switch; returns it with `set(on)`, which does not call `changed`. */
export function toggle(label, changed) {
    const input = element("input", { type: "checkbox", change: () => changed(input.checked) });
    const whole = element("label", { class: "vit-toggle" }, input, element("span", {}, label));
    whole.set = (on) => { input.checked = on; };
    return whole;
}

/** One choice of several; `options` are [value, label]. Returns it with `set(value)`. */
export function choice(legend, options, changed) {
    const name = nameOf();
    const inputs = options.map(([value]) => element("input", {
        type: "radio", name, value, change: () => changed(value),
    }));
    const labels = options.map(([, label], i) => element("label", {}, inputs[i], element("span", {}, label)));
    const whole = element("fieldset", { class: "vit-choice" }, element("legend", {}, legend), ...labels);
    whole.set = (value) => inputs.forEach((input) => { input.checked = input.value === String(value); });
    return whole;
}

/**
 * A list of shares as bars, with a thin line where each stood before.
 * @returns {HTMLElement} with `show([{ name, share, before }])`
 */
export function bars(label) {
    const list = element("ol", { class: "vit-bars", role: "list", "aria-label": label });
    list.show = (rows) => list.replaceChildren(...rows.map(({ name, share, before }) => element(
        "li", { style: `--share: ${share}; --before: ${before}`, class: share === before ? "" : "moved" },
        element("span", { class: "name" }, name), element("span", { class: "value" }, percent(share)),
    )));
    return list;
}

/** The photos that come with the book. */
export const PHOTOS = ["cat", "coffee", "rocket", "astronaut"];

/**
 * Photos to choose from, one of the reader's own, and the square that is cut out of it.
 * @param {string} folder of the photos
 * @param {string[]} names of those that are offered; the first is opened at once
 * @param {(square: HTMLCanvasElement, anew: boolean) => void} came hears each square, and whether the picture is new
 * @returns {HTMLElement[]} what to choose, and a fold with how to cut
 */
export function picker(folder, names, came) {
    const square = [1, 0.5, 0.5], refused = element("p", { class: "vit-refused", role: "alert" });
    let bitmap = null, turn;
    const cut = (anew) => bitmap && came(cutSquare(bitmap, square), anew);
    const open = async (what, button) => {
        const own = turn = {};
        let opened;
        try {
            opened = await openPicture(what);
        } catch (error) {
            if (own === turn) refused.textContent = error.message;
            return;
        }
        (own === turn ? bitmap : opened)?.close();
        if (own !== turn) return; // another was chosen
        bitmap = opened;
        refused.textContent = "";
        if (button) file.value = ""; // so that the same file can be chosen again
        ours.forEach((one) => one.setAttribute("aria-pressed", one === button));
        cut(true);
    };
    const address = (name) => `${folder}/${name}.jpg`;
    const ours = names.map((name) => element(
        "button", { type: "button", click: ({ target }) => open(address(name), target) }, name,
    ));
    const own = () => file.files[0] && open(file.files[0]);
    const file = element("input", { type: "file", accept: "image/*", change: own });
    const cuts = [["size of the square", 0.2], ["from left to right", 0], ["from top to bottom", 0]].map(
        ([label, min], i) => slider(
            label, { min, max: 1, step: 0.01, value: square[i], words: (x) => `${Math.round(100 * x)} %` },
            (value) => { square[i] = value; cut(false); },
        ),
    );
    open(address(names[0]), ours[0]);
    const choose = element("div", { class: "photos", role: "group", "aria-label": "A photo" }, element("span", {}, "A photo: "), ...ours,
        element("label", { class: "vit-file" }, "or one of your own, which stays on this device: ", file), refused);
    choose.pick = (name) => {
        [1, 0.5, 0.5].forEach((value, i) => cuts[i].set(square[i] = value));
        ours[names.indexOf(name)].click();
    };
    return [choose, fold("Cut another square out of it", ...cuts)];
}

/** What stands folded under a title. */
export const fold = (title, ...inside) => element("details", {}, element("summary", {}, title), ...inside);

/** A number with two digits and a true minus. */
export const signed = (value) => (Math.round(100 * value) / 100 + 0).toFixed(2).replace("-", "−");

/** A share in per cent, with a digit more where it is small. */
export const percent = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;

/**
 * A chart with a column of dots for each layer, one dot a head; a click chooses the nearest.
 * @param {string} label what it shows, for those who do not see it
 * @param {number} usual where a dotted line lies, and `name` what it stands for
 * @returns {HTMLElement} with `show(values, [layer, head])`: layers of heads, and the chosen one, from 0
 */
export function dotChart(label, usual, name, choose) {
    let shown = [], top = 1;
    const plot = element("div", { class: "plot", role: "img", "aria-label": label, click: (event) => {
        const box = plot.getBoundingClientRect(), y = top * (1 - (event.clientY - box.top) / box.height);
        const layer = Math.min(shown.length - 1, Math.max(0, Math.floor(
            (shown.length * (event.clientX - box.left)) / box.width,
        )));
        const off = shown[layer]?.map((value) => (Number.isFinite(value) ? Math.abs(value - y) : Infinity));
        if (off?.some(Number.isFinite)) choose(layer, off.indexOf(Math.min(...off)));
    } });
    const whole = element("div", { class: "vit-dots" }, plot, element("p", { class: "vit-scale" }, `Dotted: ${name}.`));
    const across = (layer) => `left: ${(100 * (layer + 0.5)) / shown.length}%`;
    const up = (value) => `bottom: ${(100 * value) / top}%`;
    let dots = [];
    whole.show = (values, [layer, head] = []) => {
        if (values !== shown) draw(values);
        dots.forEach((heads, l) => heads.forEach((dot, h) => { dot.className = l === layer && h === head ? "chosen" : ""; }));
    };
    const draw = (values) => {
        shown = values;
        top = 10 * Math.ceil((1 + Math.max(usual, ...values.flat().filter(Number.isFinite))) / 10);
        dots = values.map((heads, l) => heads.map((value) => element("i", { style: `${across(l)}; ${up(value)}`, hidden: !Number.isFinite(value) })));
        plot.replaceChildren(
            ...Array.from({ length: top / 10 + 1 }, (_, i) => element("span", { class: "tick", style: up(10 * i) }, 10 * i)),
            element("s", { style: up(usual) }), ...dots.flat(),
            ...values.map((_, l) => element("span", { class: "layer", style: across(l) }, l + 1)),
        );
    };
    return whole;
}

/** The places of the largest shares, the largest first. */
export const likeliest = (shares, count) => [...shares.keys()].sort((a, b) => shares[b] - shares[a]).slice(0, count);

/** Where a patch is in a grid, counted from 1. */
export const placeOf = (patch, columns) => `row ${Math.floor(patch / columns) + 1}, column ${(patch % columns) + 1}`;

export const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** Draw pixels (side side C), from 0 to 1, on a canvas, which gets their size. */
export function paint(canvas, pixels, side) {
    canvas.width = canvas.height = side;
    const context = canvas.getContext("2d");
    const data = context.createImageData(side, side), channels = pixels.length / side ** 2;
    for (let i = 0; i < side ** 2; i++) {
        for (let c = 0; c < 3; c++) data.data[4 * i + c] = 255 * pixels[i * channels + (c % channels)];
        data.data[4 * i + 3] = 255;
    }
    context.putImageData(data, 0, 0);
}

/**
 * A picture cut into patches. A pointer or the arrow keys go from patch to patch; a click, Enter or the space
 * bar chooses one. Over it lies a map, one number a patch: the larger, the brighter the patch stays.
 */
export class PatchGrid {
    /**
     * @param {{rows?: number, columns?: number, label: string, choose: Function, hover?: Function}} about
     *     `choose(patch)`; `hover(patch)`, with null when the pointer leaves; with `drag` a pointer that is down, a
     *     finger (sideways, for a page must scroll) and the arrow keys choose each patch that they come to, and with
     *     drag "pointer" the keys do not
     */
    constructor({ rows = 1, columns = 1, label, choose, hover = () => {}, drag = false }) {
        Object.assign(this, { rows, columns, choose, hover, drag, at: 0 });
        this.canvas = element("canvas", { "aria-hidden": "true" });
        this.cells = Array.from({ length: rows * columns }, () => element("i"));
        this.cursor = element("b", { hidden: true });
        const grid = `grid: repeat(${rows}, 1fr) / repeat(${columns}, 1fr)`;
        const cells = element("div", { class: "cells", style: grid, "aria-hidden": "true" }, ...this.cells);
        this.whole = element("div", {
            class: drag ? "vit-grid drag" : "vit-grid", tabindex: 0, role: "application", "aria-label": label,
            keydown: (event) => this.pressed(event),
            pointerdown: (event) => {
                this.began = [event.clientX, event.clientY];
                this.over(this.patchAt(event)); // a resting finger reads as a mouse does
            },
            pointermove: (event) => {
                const drags = this.drag && event.buttons === 1 && this.began !== undefined; // not what was pressed elsewhere
                if (drags && this.goesSideways(event)) this.reach(this.patchAt(event));
                else if (event.pointerType === "mouse") this.over(this.patchAt(event));
            },
            pointerleave: () => this.over(null),
            click: (event) => {
                this.under = undefined; // what is shown changes, and is told anew
                this.choose(this.move(this.patchAt(event)));
            },
            focus: () => { if (this.whole.matches(":focus-visible")) this.cursor.hidden = false; },
            blur: () => {
                if (this.pinned === undefined) this.cursor.hidden = true;
                else this.move(this.pinned);
                this.under = undefined;
                hover(null);
            },
        }, this.canvas, cells, this.cursor);
        for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => { this.began = undefined; });
        this.move(0);
    }

    /** Draw an image: a canvas, or pixels (side side C) from 0 to 1. */
    draw(image, side) {
        if (!(image instanceof HTMLCanvasElement)) {
            paint(this.canvas, image, side);
            return;
        }
        [this.canvas.width, this.canvas.height] = [image.width, image.height];
        this.canvas.getContext("2d").drawImage(image, 0, 0);
    }

    /** Cut the picture into other patches than it had at first; no map is laid over these. */
    cut(rows, columns) {
        Object.assign(this, { rows, columns });
        this.move(Math.min(this.at, rows * columns - 1));
    }

    /** Put the cursor on a patch, where it stays, and returns to when the keyboard leaves. */
    point(patch) {
        this.pinned = this.move(patch);
        this.cursor.hidden = false;
    }

    /** Lay a map over it: numbers, one a patch, or null; or colours, as "rgb(...)". */
    map(values) {
        const most = values && Math.max(...values.filter(Number.isFinite), 1e-9);
        this.cells.forEach((cell, i) => {
            const colour = values && typeof values[i] === "string";
            cell.style.background = colour ? values[i] : "";
            cell.style.opacity = !values ? 0 : colour ? 0.85 : 0.66 * (1 - values[i] / most); // never black
        });
    }

    /** Mark patches: `{ name: [patch, ...] }` gives them these classes. */
    mark(classes) {
        this.cells.forEach((cell, i) => {
            cell.className = Object.keys(classes).filter((name) => classes[name].includes(i)).join(" ");
        });
    }

    patchAt(event) {
        const box = this.canvas.getBoundingClientRect();
        const place = (share, count) => Math.min(count - 1, Math.max(0, Math.floor(share * count)));
        const row = place((event.clientY - box.top) / box.height, this.rows);
        return row * this.columns + place((event.clientX - box.left) / box.width, this.columns);
    }

    /** Whether a pointer that is down drags: a finger does once it has gone sideways, for else it scrolls the page. */
    goesSideways(event) {
        const [x, y] = this.began ?? [event.clientX, event.clientY], aside = Math.abs(event.clientX - x);
        if (event.pointerType === "mouse" || aside > Math.max(8, Math.abs(event.clientY - y))) this.began = null;
        return this.began === null;
    }

    /** Tell of the patch under a pointer, once. */
    over(patch) {
        if (patch !== this.under) this.hover(this.under = patch);
    }

    /** Go to a patch while dragging: chosen once, when it is another. */
    reach(patch) {
        if (patch !== this.at) this.choose(this.move(patch));
    }

    move(patch) {
        this.at = patch;
        const [row, column] = [Math.floor(patch / this.columns), patch % this.columns];
        this.cursor.style.inset = `${(100 * row) / this.rows}% auto auto ${(100 * column) / this.columns}%`;
        this.cursor.style.width = `${100 / this.columns}%`;
        this.cursor.style.height = `${100 / this.rows}%`;
        return patch;
    }

    pressed(event) {
        const step = STEPS[event.key];
        if (event.altKey || event.ctrlKey || event.metaKey) return;
        if (event.key === "Enter" || event.key === " ") {
            if (!event.repeat) this.choose(this.at);
        } else if (step) {
            const within = (value, count) => Math.min(count - 1, Math.max(0, value));
            const row = within(Math.floor(this.at / this.columns) + step[0], this.rows);
            const to = row * this.columns + within((this.at % this.columns) + step[1], this.columns);
            (this.drag === true ? this.choose : this.hover)(this.move(to));
            this.cursor.hidden = false;
        } else return;
        event.preventDefault();
    }
}
