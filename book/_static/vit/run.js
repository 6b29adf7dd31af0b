/**
 * Chapter 8: a training run epoch by epoch, as tools/export_run.py kept it: curves, and what the model says of twelve
 * test digits. Every element of class `vit-run` becomes one; `data-run` is the file.
 */
import { element, paint, percent, player, shape, whenNear } from "./parts.js";

const WIDE = 320, HIGH = 150;

/** Lines over epochs, {name: values} with the largest value at the top; `show(epoch)` draws them up to there. */
function lines(title, series, top) {
    const names = Object.keys(series), count = series[names[0]].length;
    const place = (value, i) => [8 + ((WIDE - 16) * i) / (count - 1), 8 + (HIGH - 16) * (1 - value / top)];
    const svg = shape("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": `${title}, by epoch. The text says the values.` });
    const parts = names.map((name, n) => [series[name], shape("polyline", { class: `line-${n}` }), shape("circle", { r: 5, class: `line-${n}` })]);
    svg.append(shape("path", { d: `M8 8V${HIGH - 8}H${WIDE - 8}`, class: "axes" }), ...parts.flatMap(([, line, dot]) => [line, dot]));
    const legend = names.map((name, n) => element("span", { class: `key line-${n}` }, name));
    const whole = element("div", { class: "vit-lines" }, element("p", { class: "vit-title" }, title, ...legend.flatMap((one) => [" ", one])), svg);
    whole.show = (epoch) => parts.forEach(([values, line, dot]) => {
        const points = values.slice(0, epoch + 1).map(place);
        line.setAttribute("points", points.map((point) => point.join(",")).join(" "));
        [["cx", 0], ["cy", 1]].forEach(([name, axis]) => dot.setAttribute(name, points.at(-1)[axis]));
    });
    return whole;
}

/** A test digit, and what the model says of it: a column for each of the ten digits. */
function tile({ pixels, label }) {
    const picture = element("canvas", { "aria-hidden": "true" }), says = element("span");
    paint(picture, Float32Array.from(pixels, (value) => value / 255), Math.sqrt(pixels.length));
    const columns = Array.from({ length: 10 }, (_, digit) => element("i", { class: digit === label ? "right" : "" }));
    const whole = element("li", {}, picture, element("div", { class: "columns", "aria-hidden": "true" }, ...columns), says);
    whole.show = (shares) => {
        const most = shares.indexOf(Math.max(...shares));
        columns.forEach(({ style }, digit) => { style.height = `${100 * shares[digit]}%`; });
        const even = shares[most] - Math.min(...shares) < 1e-3, right = most === label && !even;
        says.textContent = `a ${label}${even ? ": no idea" : `${right ? "" : `, read as ${most}`}: ${percent(shares[most])}`}`;
        whole.className = right ? "" : "wrong";
    };
    return whole;
}

whenNear(".vit-run", async (place) => {
    const answer = await fetch(place.dataset.run).catch(() => null);
    const run = answer?.ok && await answer.json().catch(() => null);
    if (!run) throw new Error("The run cannot be fetched; try again later.");
    const { epochs, digits } = run;
    const of = (name) => epochs.map((epoch) => epoch[name]);
    const losses = lines("Loss, nats", { training: of("train_loss"), validation: of("validation_loss") }, Math.log(10));
    const rights = lines("Accuracy", { training: of("train_accuracy"), validation: of("validation_accuracy") }, 1);
    const tiles = digits.map(tile), status = element("p", { class: "vit-status", role: "status" });
    const show = (epoch) => {
        const { train_loss, validation_loss, validation_accuracy, shares } = epochs[epoch];
        [losses, rights].forEach((chart) => chart.show(epoch));
        tiles.forEach((one, i) => one.show(shares[i]));
        const right = tiles.filter(({ className }) => !className).length;
        status.textContent = `${epoch ? `After epoch ${epoch}` : "Before training"}: training loss ${train_loss.toFixed(2)}, `
            + `validation loss ${validation_loss.toFixed(2)}, ${percent(validation_accuracy)} of the validation digits right, `
            + `${right} of these ${tiles.length}.`;
    };
    const last = epochs.length - 1, time = player("after epoch", { max: last, value: 0, waits: true }, show); // for a bet
    place.replaceChildren(
        element("div", { class: "pictures" }, losses, rights),
        element("div", { class: "below" }, time, status,
            element("ul", { class: "vit-digits", role: "list", "aria-label": "Twelve test digits, and how likely the model holds 0 to 9" }, ...tiles)),
    );
    show(0);
});
