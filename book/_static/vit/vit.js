/**
 * The book's Vision Transformer in the page: what `vit_from_scratch/model` computes, for one image at a time.
 *
 *     const model = await load("tiny-imagenet.bin");
 *     const { probabilities, attention } = model.forward(pixels, { erase: [27], scale: 2 });
 *
 * Letters: C channels, H W image size, P patch size, N patches, T = N + 1 tokens, D width, h heads,
 * Dh = D / h head width, M MLP width, L layers, K classes. A matrix (rows, columns) is a Float32Array, row
 * after row. Layers are named as in the package; a dense one holds `weight` (out, in) and `bias` (out).
 */
const MAGIC = 0x50546956, VERSION = 1; // of the file, as tools/export_page_model.py writes it; "ViTP"

// ---- Chapter 1: an image becomes a sequence of flattened patches
/**
 * Cut an image into patches, row by row as one reads; in a patch run rows, then columns, then channels.
 * @param {Float32Array} pixels (H W C)
 * @returns {Float32Array} (N, P²C)
 */
export function patchify(pixels, { image_shape: [H, W], patch_size: P, channels: C }) {
    const patches = new Float32Array(pixels.length);
    let place = 0;
    for (let top = 0; top < H; top += P) {
        for (let left = 0; left < W; left += P) {
            for (let row = top; row < top + P; row++, place += P * C) { // P pixels lie side by side
                patches.set(pixels.subarray((row * W + left) * C, (row * W + left + P) * C), place);
            }
        }
    }
    return patches;
}

/** Paint some patches in the image's mean colour: (N, P²C) to (N, P²C). */
function paintOver(patches, chosen, { patch_size: P, channels: C }) {
    const colour = new Float64Array(C), numbers = P * P * C;
    patches.forEach((value, i) => { colour[i % C] += value / (patches.length / C); });
    return patches.map((value, i) => (chosen.includes(Math.floor(i / numbers)) ? colour[i % C] : value));
}

// ---- Chapter 2: patches become tokens, with a class token in front and a position each
/**
 * Equation 1: z_0 = [x_class; x_p^1 E; ...; x_p^N E] + E_pos, with the mask token for some x_p E (chapter 11).
 * @param {Float32Array} patches (N, P²C)
 * @returns {Float32Array} (T, D)
 */
export function tokens(patches, weights, { positions = true, masked = [] } = {}) {
    const { class_token: first, position, mask } = weights.tokens; // (D), (T, D), (D)
    const z = new Float32Array(position.length), D = first.length; // (T, D)
    z.set(first);
    z.set(linear(patches, weights.patch_embedding.projection), D);
    masked.forEach((patch) => z.set(mask, (patch + 1) * D));
    return positions ? add(z, position) : z;
}

// ---- Chapter 3: every token gathers from all
/**
 * Multi-head self-attention (equations 5 to 8).
 * @param {Float32Array} x (T, D)
 * @param {{qkv: object, projection: object}} layer all heads' queries, then all keys, then all values
 * @param {{scale?: number, silent?: number[]}} options a factor on the scores; heads that add nothing
 * @returns {[Float32Array, Float32Array]} (T, D), and how much each token looks at each, (h, T, T)
 */
export function attention(x, { qkv, projection }, heads, { scale = 1, silent = [] } = {}) {
    const D = projection.bias.length, T = x.length / D, Dh = D / heads;
    const packed = linear(x, qkv); // (T, 3D)
    const weights = new Float32Array(heads * T * T); // (h, T, T)
    const joined = new Float32Array(T * D); // (T, D), the heads' Dh values side by side
    for (let head = 0; head < heads; head++) {
        const value = (t, part, c) => packed[(3 * t + part) * D + head * Dh + c];
        const q = matrix(T, Dh, (t, c) => value(t, 0, c)), k = matrix(T, Dh, (t, c) => value(t, 1, c));
        const vT = matrix(Dh, T, (c, t) => value(t, 2, c)); // transposed: (Dh, T)
        const A = softmax(product(q, k, Dh), T, scale / Math.sqrt(Dh)); // (T, T), each row sums to 1
        weights.set(A, head * T * T);
        if (silent.includes(head)) continue;
        const gathered = product(A, vT, T); // (T, Dh)
        for (let t = 0; t < T; t++) joined.set(gathered.subarray(t * Dh, (t + 1) * Dh), t * D + head * Dh);
    }
    return [linear(joined, projection), weights];
}

/** The softmax of each row of `scores` times a factor: (rows, width) to (rows, width). */
export function softmax(scores, width, factor = 1) {
    const shares = new Float32Array(scores.length);
    for (let row = 0; row < scores.length; row += width) {
        let most = -Infinity, sum = 0;
        for (let i = row; i < row + width; i++) most = Math.max(most, factor * scores[i]);
        for (let i = row; i < row + width; i++) sum += Math.exp(factor * scores[i] - most);
        for (let i = row; i < row + width; i++) shares[i] = Math.exp(factor * scores[i] - most) / sum;
    }
    return shares;
}

// ---- Chapter 4: MLP, block, encoder
/** x times the share of a normal distribution below x: 0.5 x (1 + erf(x / √2)), within 3e-7. */
export function gelu(x) {
    const z = Math.abs(x) / Math.SQRT2, t = 1 / (1 + 0.3275911 * z); // Abramowitz and Stegun, 7.1.26
    const inner = -0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429));
    const beyond = 0.5 * t * (0.254829592 + t * inner) * Math.exp(-z * z); // the share above |x|
    return x * (x < 0 ? beyond : 1 - beyond);
}

/** Two dense layers with a GELU between them, for each token on its own: (T, D) to (T, D). */
export function mlp(x, { hidden, output }) {
    return linear(linear(x, hidden).map(gelu), output); // by way of (T, M)
}

/** Take each token's mean away, divide by its standard deviation, then weight and bias: (T, D) to (T, D). */
export function layerNorm(x, { weight, bias }, eps) {
    const D = weight.length, normed = new Float32Array(x.length);
    for (let row = 0; row < x.length; row += D) {
        let mean = 0, variance = 0;
        for (let i = 0; i < D; i++) mean += x[row + i] / D;
        for (let i = 0; i < D; i++) variance += (x[row + i] - mean) ** 2 / D;
        const factor = 1 / Math.sqrt(variance + eps);
        for (let i = 0; i < D; i++) normed[row + i] = (x[row + i] - mean) * factor * weight[i] + bias[i];
    }
    return normed;
}

/** Equations 2 and 3: attention, then MLP, each on normalised input and added back. */
export function block(x, layer, { heads, layer_norm_eps: eps }, options) {
    const normed = layerNorm(x, layer.attention_norm, eps);
    const [gathered, weights] = attention(normed, layer.attention, heads, options);
    const between = add(gathered, x);
    return [add(mlp(layerNorm(between, layer.mlp_norm, eps), layer.mlp), between), weights];
}

/**
 * L blocks, one at each step, so that who asked may stop between two.
 * @yields {[Float32Array, Float32Array]} z_l (T, D) and the attention (h, T, T), 0 in a layer left out
 */
export function* encoder(z, { blocks }, config, { scale = 1, without = [] } = {}) {
    for (const [number, layer] of Object.values(blocks).entries()) {
        const silent = without.filter(([its]) => its === number).map(([, head]) => head);
        let weights = new Float32Array(config.heads * (z.length / config.dim) ** 2);
        if (!silent.includes(undefined)) [z, weights] = block(z, layer, config, { scale, silent });
        yield [z, weights];
    }
}

// ---- Chapter 5: the whole model
export class VisionTransformer {
    constructor(config, classes, weights) { Object.assign(this, { config, classes, weights }); }

    /**
     * Classify an image.
     * @param {Float32Array} pixels (H W C) from 0 to 1
     * @param {object} [options] all of them to try what happens; everything is counted from 0
     * @param {number[]} [options.erase] patches to paint in the image's mean colour
     * @param {boolean} [options.positions] whether tokens get their positions
     * @param {number[]} [options.masked] patches in whose place the mask token stands, in a model that has one
     * @param {?number[]} [options.shuffle] which patch (of N) comes at each place
     * @param {number} [options.scale] a factor on all attention scores
     * @param {number[][]} [options.without] [layer, head] to leave out, or [layer], the whole of it
     * @param {string} [options.pool] what the head reads: "cls", the class token; "gap", the patches' mean; or
     *     "each", every patch for itself, and K is then N K
     * @returns {object} logits (K), probabilities (K), attention (L of (h, T, T)), tokens (z_0 to z_L,
     *     L + 1 of (T, D)), and lens (L of (K)): the logits that each layer's class token would give
     */
    forward(pixels, options = {}) {
        for (const steps = this.steps(pixels, options); ;) {
            const { done, value } = steps.next();
            if (done) return value;
        }
    }

    /** `forward` with a pause after each layer: yields how many are done, and returns what `forward` does. */
    * steps(pixels, options = {}) {
        const { erase = [], positions = true, masked = [], shuffle = null, scale = 1, without = [], pool = "cls" } = options;
        const { mean, std, channels: C, dim: D, num_patches: N } = this.config;
        refuseWrong(this.config, pixels, [...erase, ...masked], shuffle, without);
        if (masked.length && !this.weights.tokens.mask) throw new RangeError("expected no masked patches, for this model has no mask token");
        const painted = paintOver(patchify(pixels, this.config), erase, this.config); // (N, P²C)
        const scaled = painted.map((value, i) => (value - mean[i % C]) / std[i % C]); // as in training
        const from = (n, i) => scaled[(shuffle ? shuffle[n] : n) * (scaled.length / N) + i];
        const z0 = tokens(matrix(N, scaled.length / N, from), this.weights, { positions, masked });
        const found = { attention: [], tokens: [z0], lens: [] };
        for (const [z, weights] of encoder(z0, this.weights.encoder, this.config, { scale, without })) {
            found.attention.push(weights);
            found.tokens.push(z);
            found.lens.push(this.answers(z.subarray(0, D)));
            yield found.lens.length;
        }
        const each = pool === "cls" ? found.lens.at(-1) : this.answers(found.tokens.at(-1).subarray(D)); // (n, K)
        const K = this.classes.length, pooled = new Float32Array(K);
        each.forEach((logit, i) => { pooled[i % K] += logit / (each.length / K); });
        const logits = pool === "each" ? each : pooled;
        return { logits, probabilities: softmax(logits, K), ...found };
    }

    /** The logits (n, K) that tokens (n, D) of any layer give: last LayerNorm, then head (equation 4). */
    answers(some) {
        const { encoder: { norm }, head } = this.weights;
        return linear(layerNorm(some, norm, this.config.layer_norm_eps), head);
    }
}

/** Throw one sentence if an image or an option does not fit the model. */
function refuseWrong(config, pixels, erase, shuffle, without) {
    const { image_shape: [H, W], channels: C, num_patches: N, depth: L, heads: h } = config;
    const among = (count) => (number) => Number.isInteger(number) && number >= 0 && number < count;
    const expect = (fits, what) => { if (!fits) throw new RangeError(`expected ${what}`); };
    expect(pixels.length === H * W * C, `${H} x ${W} x ${C} numbers as image, not ${pixels.length}`);
    expect(erase.every(among(N)), `patches to erase or mask from 0 to ${N - 1}, not ${erase}`);
    const each = !shuffle || (shuffle.length === N && new Set(shuffle).size === N && shuffle.every(among(N)));
    expect(each, `a shuffle with each patch from 0 to ${N - 1} once`);
    const known = without.every(([layer, head = 0]) => among(L)(layer) && among(h)(head));
    expect(known, `layers from 0 to ${L - 1} and heads from 0 to ${h - 1} to be without, not ${without}`);
}

// ---- Matrices
/**
 * a b^T + bias, where each row of a meets each row of b: (n, k) and (m, k) to (n, m). Rows meet two by four,
 * so that each number read is used often and the eight sums stay in registers; at the edges the last row
 * stands in for those that are missing.
 */
export function product(a, b, k, bias = null) {
    const n = a.length / k, m = b.length / k, out = new Float32Array(n * m);
    for (let j = 0; j < m; j += 4) {
        const j1 = Math.min(j + 1, m - 1), j2 = Math.min(j + 2, m - 1), j3 = Math.min(j + 3, m - 1);
        const b0 = j * k, b1 = j1 * k, b2 = j2 * k, b3 = j3 * k;
        for (let i = 0; i < n; i += 2) {
            const i1 = Math.min(i + 1, n - 1), a0 = i * k, a1 = i1 * k;
            let s00 = 0, s01 = 0, s02 = 0, s03 = 0, s10 = 0, s11 = 0, s12 = 0, s13 = 0;
            for (let c = 0; c < k; c++) {
                const x = a[a0 + c], y = a[a1 + c];
                const p = b[b0 + c], q = b[b1 + c], r = b[b2 + c], s = b[b3 + c];
                s00 += x * p; s01 += x * q; s02 += x * r; s03 += x * s;
                s10 += y * p; s11 += y * q; s12 += y * r; s13 += y * s;
            }
            const o = i * m, o1 = i1 * m;
            out[o + j] = s00; out[o + j1] = s01; out[o + j2] = s02; out[o + j3] = s03;
            out[o1 + j] = s10; out[o1 + j1] = s11; out[o1 + j2] = s12; out[o1 + j3] = s13;
        }
    }
    return bias ? out.map((value, i) => value + bias[i % m]) : out;
}

/** A dense layer: (n, in) to (n, out). */
const linear = (x, { weight, bias }) => product(x, weight, weight.length / bias.length, bias);

/** x + y, number by number. */
export const add = (x, y) => x.map((value, i) => value + y[i]);

/** The matrix (rows, width) of the numbers `at(row, column)`. */
function matrix(rows, width, at) {
    const out = new Float32Array(rows * width);
    for (let row = 0, i = 0; row < rows; row++) {
        for (let column = 0; column < width; column++) out[i++] = at(row, column);
    }
    return out;
}

// ---- The file of weights
/** Fetch a model, after the page's pictures; `progress` hears the share that has come. An Error says in one sentence what failed. */
export async function load(url, progress = () => {}) {
    const refuse = (why) => { throw new Error(`${url} cannot be fetched (${why}); try again later.`); };
    const response = await fetch(url, { priority: "low" }).catch((error) => refuse(error.message));
    if (!response.ok) refuse(`the server answered ${response.status}`);
    const parts = [];
    let came = 0, whole = Infinity;
    for (const reader = response.body.getReader(); ;) {
        const { done, value } = await reader.read().catch((error) => refuse(error.message));
        if (done) return read(await new Blob(parts).arrayBuffer(), url);
        if (parts.length === 0 && value.length >= 12) { // the third number says how long the file is
            whole = new DataView(value.buffer, value.byteOffset).getUint32(8, true);
        }
        parts.push(value);
        progress(Math.min(1, (came += value.length) / whole));
    }
}

/** Read a file's bytes: four numbers, a header in JSON, the weights, a checksum of all before it. */
export function read(buffer, name = "the file") {
    const view = new DataView(buffer), end = buffer.byteLength - 4, number = (at) => view.getUint32(at, true);
    const expect = (fits, why) => { if (!fits) throw new Error(`${name} ${why}; load the page again.`); };
    expect(end >= 16 && number(0) === MAGIC, "is not a whole model of this book");
    expect(number(4) === VERSION, `is of version ${number(4)}, and this page reads version ${VERSION}`);
    expect(number(8) === end + 4, `holds ${end + 4} of ${number(8)} bytes`);
    expect(number(end) === crc32(new Uint8Array(buffer, 0, end)), "is damaged: its checksum is another");
    let at = 16 + number(12);
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 16, number(12))));
    const take = (Type, count) => {
        const taken = new Type(buffer, at, count);
        at += taken.byteLength;
        return taken;
    };
    const weights = {};
    for (const { name: path, shape: [rows, width = 1], type } of header.tensors) {
        const scales = type === "int8" ? take(Float32Array, rows) : null; // one a row
        const numbers = take(scales ? Int8Array : Float32Array, rows * width);
        const names = path.split("."), last = names.pop();
        names.reduce((branch, key) => branch[key] ??= {}, weights)[last] =
            scales ? matrix(rows, width, (row, i) => scales[row] * numbers[row * width + i]) : numbers;
        at += -at & 3; // each begins at a multiple of four bytes
    }
    return new VisionTransformer(header.config, header.classes, weights);
}

/** The checksum of the same name in zlib. */
function crc32(bytes) {
    const table = new Int32Array(256).map((_, n) => { // what the checksum makes of each byte
        for (let bit = 0; bit < 8; bit++) n = (n >>> 1) ^ (n & 1 ? 0xedb88320 : 0);
        return n;
    });
    return ~bytes.reduce((sum, byte) => table[(sum ^ byte) & 255] ^ (sum >>> 8), -1) >>> 0;
}
