/**
 * What Part III computes from a forward pass: rollout, how far heads look, components of tokens. And what
 * turns a photo into the model's pixels.
 */

/** The mean of a layer's heads: (h, T, T) to (T, T). */
export function meanOfHeads(weights, heads) {
    const size = weights.length / heads, mean = new Float32Array(size);
    weights.forEach((value, i) => { mean[i % size] += value / heads; });
    return mean;
}

/** The weights of one head of a layer (h, T, T), or for head 0 the mean of all: (T, T). */
export function lookOf(weights, head, heads) {
    const size = weights.length / heads;
    return head ? weights.subarray((head - 1) * size, head * size) : meanOfHeads(weights, heads);
}

/** Attention rollout (chapter 13): the product of (mean + identity) / 2 over the layers, (T, T); one left out hands all on. */
export function rollout(attention, heads) {
    let product = null;
    for (const weights of attention) {
        const A = meanOfHeads(weights, heads), T = Math.sqrt(A.length);
        const whole = A.some(Boolean) ? 2 : 1;
        const step = A.map((value, i) => (value + (i % (T + 1) === 0)) / whole); // row t sums to 1
        const before = product;
        product = before ? new Float32Array(T * T) : step;
        for (let t = 0; before && t < T; t++) {
            for (let s = 0; s < T; s++) {
                for (let r = 0; r < T; r++) product[t * T + r] += step[t * T + s] * before[s * T + r];
            }
        }
    }
    return product;
}

/** How far a patch looks in pixels (chapter 14), on the average over the patches that it looks at, (h, T, T). */
export function distanceFrom(patch, weights, head, { grid: [rows, columns], patch_size: P }) {
    const N = rows * columns, T = N + 1, first = (head * T + patch + 1) * T + 1; // the class token lies nowhere
    let share = 0, far = 0;
    for (let k = 0; k < N; k++) {
        const down = Math.floor(patch / columns) - Math.floor(k / columns);
        share += weights[first + k];
        far += weights[first + k] * P * Math.hypot(down, (patch % columns) - (k % columns));
    }
    return far / share;
}

/** Mean attention distance of a head in pixels (chapter 14): patches that look at patches, (h, T, T). */
export function meanDistance(weights, head, config) {
    const N = config.num_patches;
    let sum = 0;
    for (let patch = 0; patch < N; patch++) sum += distanceFrom(patch, weights, head, config) / N;
    return sum;
}

/** The mean distance of attention that is the same everywhere. */
export const uniformDistance = (config) => meanDistance(new Float32Array((config.num_patches + 1) ** 2).fill(1), 0, config);

/** The mean distances of all heads: L lists of h. */
export const allDistances = (attention, config) => attention.map(
    (weights) => Array.from({ length: config.heads }, (_, head) => meanDistance(weights, head, config)),
);

/**
 * The three directions in which patches' tokens differ most, as amounts of red, green and blue.
 * @param {Float32Array} z (T, D), the class token first
 * @returns {string[]} N colours
 */
export function componentColours(z, N) {
    const D = z.length / (N + 1), patches = z.slice(D), mean = new Float64Array(D);
    patches.forEach((value, i) => { mean[i % D] += value / N; });
    const centred = patches.map((value, i) => value - mean[i % D]);
    const likeness = Array.from({ length: N }, (_, i) => Float64Array.from({ length: N }, (_, j) => {
        let sum = 0;
        for (let d = 0; d < D; d++) sum += centred[i * D + d] * centred[j * D + d];
        return sum;
    })); // (N, N), whose leading eigenvectors are the components
    const channels = [0, 1, 2].map(() => {
        let v = Float64Array.from({ length: N }, (_, i) => Math.sin(1 + i)), length = 0;
        for (let round = 0; round < 60; round++) {
            const w = likeness.map((row) => row.reduce((sum, value, j) => sum + value * v[j], 0));
            length = Math.hypot(...w) || 1;
            v = Float64Array.from(w, (value) => value / length);
        }
        likeness.forEach((row, i) => row.forEach((_, j) => { row[j] -= length * v[i] * v[j]; }));
        const [low, high] = [Math.min(...v), Math.max(...v)];
        return v.map((value) => Math.round((255 * (value - low)) / (high - low || 1)));
    });
    return Array.from({ length: N }, (_, i) => `rgb(${channels.map((one) => one[i]).join(" ")})`);
}

/**
 * Make a square of a picture as small as the model wants it, each new pixel a weighted mean of those it covers
 * (as `torch.nn.functional.interpolate` does with `antialias=True`).
 * @param {Uint8ClampedArray} rgba (from from 4)
 * @returns {Float32Array} (side side 3) from 0 to 1
 */
function resize(rgba, from, side) {
    const scale = from / side, reach = Math.max(1, scale);
    const shares = Array.from({ length: side }, (_, i) => {
        const middle = (i + 0.5) * scale, first = Math.max(0, Math.floor(middle - reach + 0.5));
        const last = Math.min(from, Math.floor(middle + reach + 0.5)), weights = [];
        for (let j = first; j < last; j++) weights.push(Math.max(0, 1 - Math.abs(j + 0.5 - middle) / reach));
        const sum = weights.reduce((a, b) => a + b);
        return [first, weights.map((weight) => weight / sum)];
    });
    const narrow = new Float32Array(from * side * 3), small = new Float32Array(side * side * 3);
    for (let row = 0; row < from; row++) {
        shares.forEach(([first, weights], column) => weights.forEach((weight, j) => {
            for (let c = 0; c < 3; c++) {
                narrow[(row * side + column) * 3 + c] += (weight * rgba[(row * from + first + j) * 4 + c]) / 255;
            }
        }));
    }
    shares.forEach(([first, weights], row) => weights.forEach((weight, j) => {
        for (let i = 0; i < side * 3; i++) small[row * side * 3 + i] += weight * narrow[(first + j) * side * 3 + i];
    }));
    return small;
}

const SHARP = 256; // pixels a side of a picture that is shown

/** Read a picture, a file or what is at an address, or raise an Error of one sentence. */
export async function openPicture(what) {
    const blob = what instanceof Blob ? what : await fetch(what).then((answer) => answer.ok && answer.blob()).catch(() => null);
    if (!blob) throw new Error("This photo cannot be fetched; try again later.");
    try {
        return await createImageBitmap(blob);
    } catch {
        throw new Error("This picture cannot be read: expected a JPEG, PNG or WebP file, not too large for this device.");
    }
}

/** Cut a square out of a picture, as a canvas: its share of the shorter side, and where it lies, each from 0 to 1. */
export function cutSquare(bitmap, [size, x, y] = [1, 0.5, 0.5]) {
    const { width, height } = bitmap, side = Math.max(1, Math.round(size * Math.min(width, height)));
    const canvas = Object.assign(document.createElement("canvas"), { width: SHARP, height: SHARP });
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.imageSmoothingQuality = "high";
    context.fillStyle = "#fff"; // where the picture is transparent
    context.fillRect(0, 0, SHARP, SHARP);
    context.drawImage(bitmap, x * (width - side), y * (height - side), side, side, 0, 0, SHARP, SHARP);
    return canvas;
}

/** The cat of the widgets that need no other photo. */
export const catOf = async (place) => cutSquare(await openPicture(`${place.dataset.photos}/cat.jpg`));

/** The pixels (side side 3) of a square canvas, as a model takes them. */
export function pixelsOf(canvas, side) {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.width);
    return resize(data, canvas.width, side);
}

/** The image (side side 3) after all that was done to its patches before the model. */
export function asSeen(pixels, { grid: [, columns], patch_size: P, image_size: side }, { erase = [], shuffle = null }) {
    const mean = [0, 1, 2].map((c) => pixels.reduce((sum, x, i) => sum + (i % 3 === c ? x : 0), 0) / side ** 2);
    return pixels.map((_, i) => {
        const [row, column] = [Math.floor(i / 3 / side), Math.floor(i / 3) % side];
        const patch = Math.floor(row / P) * columns + Math.floor(column / P);
        const from = shuffle ? shuffle[patch] : patch;
        if (erase.includes(from)) return mean[i % 3];
        const at = (Math.floor(from / columns) * P + (row % P)) * side + (from % columns) * P + (column % P);
        return pixels[at * 3 + (i % 3)];
    });
}

/** Random numbers from a normal distribution around 0. */
export const gaussian = (count, std) => Float32Array.from(
    { length: count }, () => std * Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random()),
);

/** A random order of n things. */
export function shuffled(n) {
    const order = Array.from({ length: n }, (_, i) => i);
    for (let i = n - 1; i > 0; i--) {
        const j = Math.floor(Math.random() * (i + 1));
        [order[i], order[j]] = [order[j], order[i]];
    }
    return order;
}
