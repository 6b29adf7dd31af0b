/**
 * Drawn digits: strokes as lists of points [x, y], 0 to 1 from the left and from the top. How they become 28 x 28 pixels
 * as MNIST's makers did it, and ten digits drawn by nobody.
 */
export const SIDE = 28, BOX = 20; // pixels: of an image, and of the square that the ink is fitted into

/**
 * Fit the ink into 20 x 20 pixels, its proportions kept, and move it by whole pixels until its centre of mass lies in
 * the pixel in row 14, column 14, counted from 0, where all of MNIST has it.
 * @param {number[][][]} strokes
 * @param {number} radius half a stroke's width, as a share of the square that is drawn on
 * @returns {Float32Array} (28 28) from 0 to 1, all 0 where nothing is drawn
 */
export function centred(strokes, radius) {
    const points = strokes.flat();
    if (!points.length) return new Float32Array(SIDE * SIDE);
    const edges = [0, 1].map((axis) => {
        const along = points.map((point) => point[axis]);
        return [Math.min, Math.max].map((end, i) => along.reduce((a, b) => end(a, b)) + [-radius, radius][i]);
    });
    const scale = BOX / Math.max(...edges.map(([low, high]) => high - low));
    const ink = painted(strokes.map((stroke) => stroke.map((point) => point.map(
        (value, axis) => (SIDE - BOX) / 2 + scale * (value - edges[axis][0]),
    ))), scale * radius);
    let [sum, across, down] = [0, 0, 0];
    ink.forEach((value, i) => {
        sum += value;
        across += value * (i % SIDE + 0.5);
        down += value * (Math.floor(i / SIDE) + 0.5);
    });
    return moved(ink, SIDE / 2 - Math.floor(across / sum), SIDE / 2 - Math.floor(down / sum));
}

/** How much of each pixel strokes cover, (28 28); points and radius are in pixels. */
function painted(strokes, radius) {
    const ink = new Float32Array(SIDE * SIDE);
    for (const stroke of strokes) {
        stroke.forEach(([x, y], i) => {
            const [fromX, fromY] = stroke[Math.max(0, i - 1)], dx = x - fromX, dy = y - fromY;
            const lengthSquared = dx * dx + dy * dy || 1;
            const rows = reached(fromY, y, radius), columns = reached(fromX, x, radius);
            for (const row of rows) {
                for (const column of columns) {
                    const px = column + 0.5 - fromX, py = row + 0.5 - fromY;
                    const along = Math.min(1, Math.max(0, (px * dx + py * dy) / lengthSquared));
                    const far = Math.hypot(px - along * dx, py - along * dy);
                    const at = row * SIDE + column;
                    ink[at] = Math.max(ink[at], Math.min(1, Math.max(0, radius - far + 0.5)));
                }
            }
        });
    }
    return ink;
}

/** The rows, or columns, that a piece of a stroke can touch. */
function reached(a, b, radius) {
    const first = Math.max(0, Math.floor(Math.min(a, b) - radius - 1));
    const last = Math.min(SIDE - 1, Math.ceil(Math.max(a, b) + radius + 1));
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i);
}

/** Move an image (28 28) by whole pixels to the right and down; what leaves it is lost. */
export function moved(image, right, down) {
    return image.map((_, i) => {
        const column = i % SIDE - right, row = Math.floor(i / SIDE) - down;
        return Math.min(row, column) >= 0 && Math.max(row, column) < SIDE ? image[row * SIDE + column] : 0;
    });
}

// ---- Ten digits. Points to go through, "x,y" in a box 100 wide and 140 high; a point twice is a corner.
const DIGITS = [
    ["50,0 14,22 2,70 16,120 50,140 85,120 98,70 86,22 50,0"],
    ["50,0 50,140"],
    ["6,38 20,8 50,0 82,12 88,42 62,86 4,140 4,140 98,138"],
    ["8,16 45,0 82,14 80,48 38,66 38,66 86,82 92,115 50,140 4,122"],
    ["22,0 8,78 8,78 98,74", "74,30 66,140"],
    ["90,2 24,4 24,4 15,60 15,60 55,50 92,82 82,126 45,140 4,124"],
    ["74,0 30,38 8,92 22,132 56,140 88,116 78,82 44,76 12,100"],
    ["5,6 94,4 94,4 56,70 40,140"],
    ["84,24 52,0 20,22 40,60 80,98 74,132 48,140 22,130 18,98 62,58 84,24"],
    ["86,28 52,0 16,22 16,58 48,74 82,46 86,24 86,24 80,84 68,140"],
].map((strokes) => strokes.map((points) => points.split(" ").map((pair) => pair.split(",").map(Number))));

/** Other ways to write some of them. */
const OTHERS = {
    1: [[[18, 36], [58, 0], [58, 0], [58, 140]]],
    4: [[[72, 140], [72, 0], [72, 0], [4, 96], [4, 96], [100, 94]]],
    7: [[[5, 6], [94, 4], [94, 4], [56, 70], [40, 140]], [[22, 74], [86, 70]]],
};

/**
 * A digit in somebody's hand.
 * @param {number} digit
 * @param {number} hand any whole number; another one writes with another slant, size, width, pen and care
 * @returns {{strokes: number[][][], radius: number}}
 */
export function written(digit, hand) {
    const chance = randomNumbers(hand), between = (low, high) => low + (high - low) * chance();
    const slant = between(-0.15, 0.35), size = between(0.7, 1), wide = between(0.7, 1.1), turn = between(-0.12, 0.12);
    const radius = between(0.025, 0.055), care = between(1, 5), other = chance() < 0.5;
    const draw = (stroke) => smooth(shaken(stroke, () => between(-care, care))).map(([x, y]) => {
        const right = wide * (x - 50) + slant * (70 - y), down = y - 70;
        const cos = Math.cos(turn), sin = Math.sin(turn);
        return [right * cos - down * sin, right * sin + down * cos].map((value) => 0.5 + (size * value) / 190);
    });
    return { strokes: ((other && OTHERS[digit]) || DIGITS[digit]).map(draw), radius };
}

/** Points a little off their places; where two are one they stay so. */
function shaken(points, off) {
    const found = [];
    points.forEach(([x, y], i) => {
        const same = i && x === points[i - 1][0] && y === points[i - 1][1];
        found.push(same ? found[i - 1] : [x + off(), y + off()]);
    });
    return found;
}

/** A smooth line through points, ten steps from each to the next (Catmull and Rom's). */
function smooth(points) {
    const line = [points[0]];
    for (let i = 0; i + 1 < points.length; i++) {
        const [a, b, c, d] = [points[Math.max(0, i - 1)], points[i], points[i + 1], points[Math.min(points.length - 1, i + 2)]];
        if (b === c) continue; // a corner: the line comes from one side and leaves to another
        const [before, after] = [a === b ? b : a, c === d ? c : d];
        for (let step = 1; step <= 10; step++) {
            const t = step / 10;
            line.push([0, 1].map((axis) => 0.5 * (
                2 * b[axis] + (c[axis] - before[axis]) * t
                + (2 * before[axis] - 5 * b[axis] + 4 * c[axis] - after[axis]) * t * t
                + (3 * b[axis] - before[axis] - 3 * c[axis] + after[axis]) * t ** 3
            )));
        }
    }
    return line;
}

/** Numbers from 0 to 1, the same again for the same seed (mulberry32). */
function randomNumbers(seed) {
    let state = Math.imul(seed + 1, 0x9e3779b9);
    return () => {
        state = (state + 0x6d2b79f5) | 0;
        let mixed = Math.imul(state ^ (state >>> 15), state | 1);
        mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
        return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    };
}
