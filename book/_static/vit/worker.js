/**
 * A model that answers in a worker, so that the page never freezes. In the page:
 *
 *     import { load } from "./worker.js";
 *     const model = await load(url, (share) => { bar.value = share; });
 *     const answer = await model.forward(pixels, options); // as in vit.js; null if a newer question came
 *
 * `await model.weights("tokens.position")` is a copy of one of its matrices, by its path in vit.js's `weights`.
 * Each `load` gives an asker of its own, whose newer question stops its older one between two layers. Askers
 * of the same file share one worker and one download. This file is also what runs in the worker.
 */
import { load as loadHere } from "./vit.js";

// ---- In the page
const workers = new Map(); // one for each file, by its address

/**
 * Load a model into a worker, or join the one that has it.
 * @param {string} url of the file, as from the page
 * @param {(share: number) => void} [progress] hears the share that has come, from 0 to 1
 * @returns {Promise<{config: object, classes: string[], forward: Function, weights: Function}>} or an Error of one sentence
 */
export async function load(url, progress = () => {}) {
    const address = new URL(url, document.baseURI).href;
    if (!workers.has(address)) workers.set(address, start(address));
    const shared = workers.get(address);
    shared.listeners.push(progress);
    const asker = shared.listeners.length;
    const { config, classes } = await shared.ready;
    let stop = () => {};
    const ask = (what) => new Promise((resolve, reject) => {
        if (shared.failed) throw shared.failed;
        shared.worker.postMessage({ ...what, question: shared.pending.push({ resolve, reject }) - 1 });
    });
    const forward = (pixels, options = {}) => new Promise((resolve, reject) => {
        stop();
        stop = () => resolve(null);
        ask({ asker, pixels, options }).then(resolve, reject);
    });
    return { config, classes, forward, weights: (path) => ask({ path }) };
}

/** Start a worker on a file; one that fails is forgotten, so that the next `load` tries anew. */
function start(address) {
    const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    const shared = { worker, listeners: [], pending: [] };
    shared.ready = new Promise((resolve, reject) => {
        const fail = (why) => {
            workers.delete(address);
            worker.terminate();
            shared.failed = new Error(why);
            [{ reject }, ...shared.pending].forEach((one) => one?.reject(shared.failed));
        };
        worker.onerror = () => fail("The model's program does not run; load the page again, or use a newer browser.");
        worker.onmessage = ({ data: { progress, loaded, failed, question, answer, refused } }) => {
            if (progress !== undefined) shared.listeners.forEach((listener) => listener(progress));
            if (loaded) resolve(loaded);
            if (failed) fail(failed);
            if (question === undefined) return;
            if (refused) shared.pending[question].reject(new RangeError(refused));
            else shared.pending[question].resolve(answer);
            delete shared.pending[question];
        };
    });
    worker.postMessage({ address });
    return shared;
}

// ---- In the worker
const newest = new Map(); // each asker's question
let model = null;

async function open(address) {
    try {
        model = await loadHere(address, (progress) => postMessage({ progress }));
        postMessage({ loaded: { config: model.config, classes: model.classes } });
    } catch (error) {
        postMessage({ failed: error.message });
    }
}

/** Answer layer by layer; between two, look whether the asker has asked something newer. */
async function answer({ asker, question, pixels, options }) {
    newest.set(asker, question);
    try {
        const steps = model.steps(pixels, options);
        for (;;) {
            const { done, value } = steps.next();
            if (done) return postMessage({ question, answer: value }, buffers(value));
            await new Promise((resolve) => { setTimeout(resolve); }); // let messages in
            if (newest.get(asker) !== question) return postMessage({ question, answer: null });
        }
    } catch (error) {
        return postMessage({ question, refused: error.message });
    }
}

/** Hand over a copy of one of the model's matrices. */
function give({ path, question }) {
    const answer = path.split(".").reduce((branch, name) => branch?.[name], model.weights);
    // Sliced, for a view would be sent with the whole file that it lies in.
    postMessage(answer instanceof Float32Array ? { question, answer: answer.slice() } : { question, refused: `there is no ${path}` });
}

/** What can be handed over without a copy: the memory of each array of an answer. */
const buffers = (found) => [...new Set(Object.values(found).flat().map((array) => array.buffer))];

if (typeof WorkerGlobalScope !== "undefined") {
    onmessage = ({ data }) => {
        if (data.address) open(data.address);
        else if (data.path) give(data);
        else answer(data);
    };
}
