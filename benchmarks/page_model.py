"""How long does the model in the page take for one photo, beside onnxruntime-web in the same browser?

    python benchmarks/page_model.py
    npm pack onnxruntime-web && tar xzf onnxruntime-web-*.tgz
    python benchmarks/page_model.py --peer package/dist --results vit_lab/results/page_model_cpu.json

Each asks the Tiny-ImageNet model in Chromium on one thread, by turns, and prints the best and the median
time of a forward pass. The peer runs WebAssembly with SIMD, weights in single precision, and answers with
logits alone; ours is plain JavaScript and also returns every attention matrix, token and layer's answer.
"""

import argparse
import base64
import os
import platform
import statistics
import sys
import tempfile
from pathlib import Path

from vit_from_scratch.files import write_json
from vit_lab.export.exports import export_model
from vit_lab.runs.environment import environment
from vit_lab.runs.trained_models import open_model

ROOT = Path(__file__).resolve().parent.parent
NAME = "tiny-imagenet"
OURS = """async (file) => {
    const { load } = await import("/vit/vit.js");
    const start = performance.now();
    const model = await load(`/vit/${file}`);
    window.ours = (pixels) => model.forward(pixels).logits;
    return performance.now() - start;
}"""
THEIRS = """async (text) => {
    const ort = await import("/peer/ort.wasm.min.mjs");
    ort.env.wasm.numThreads = 1;
    ort.env.wasm.wasmPaths = "/peer/";
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const start = performance.now();
    const session = await ort.InferenceSession.create(bytes, { executionProviders: ["wasm"] });
    window.theirs = async (pixels) => {
        const planes = pixels.map((_, i) => pixels[(i % 4096) * 3 + Math.floor(i / 4096)]); // (C, H, W)
        const images = new ort.Tensor("float32", planes, [1, 3, 64, 64]);
        return (await session.run({ images })).logits.data;
    };
    return performance.now() - start;
}"""
TIME = """async ([name, passes]) => {
    const pixels = new Float32Array(64 * 64 * 3).map((_, i) => Math.abs(Math.sin(i * i)));
    const took = [];
    let logits;
    for (let pass = 0; pass < passes; pass++) {
        const start = performance.now();
        logits = await window[name](pixels);
        took.push(performance.now() - start);
    }
    return [took, [...logits]];
}"""


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--peer", type=Path, help="the folder dist of onnxruntime-web")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--passes", type=int, default=5, help="of each, in each round")
    parser.add_argument("--results", type=Path, metavar="FILE", help="also write what was found here")
    given = parser.parse_args()
    sys.path.insert(0, str(ROOT / "tools"))  # scripts, and no package
    from browser import open_browser
    from serve import served

    with served(ROOT / "book/_static") as root, open_browser() as browser:
        page = browser.new_page()
        page.goto(f"{root}vit/vit.js")
        print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, load ", end="")
        print(f"{os.getloadavg()[0]:.1f}, Chromium {browser.version}")
        here = environment() | {"browser": f"Chromium {browser.version}"}
        ready = {"ours": page.evaluate(OURS, f"{NAME}.bin")}
        if given.peer:
            page.route(
                "**/peer/*", lambda route: route.fulfill(path=given.peer / Path(route.request.url).name)
            )
            with tempfile.TemporaryDirectory() as folder:
                exported = export_model(open_model(NAME), Path(folder) / f"{NAME}.onnx")
                content = exported.path.read_bytes()
            ready["theirs"] = page.evaluate(THEIRS, base64.b64encode(content).decode())
        times: dict[str, list[float]] = {name: [] for name in ready}
        logits = {}
        for turn in range(given.rounds + 1):
            for name in ready:
                took, logits[name] = page.evaluate(TIME, [name, given.passes])
                times[name] += took if turn else []  # the first round is for the compiler
    print(f"{'':8}  {'ready':>9}  {'best':>9}  {'median':>9}   of {len(times['ours'])} passes")
    for name, took in times.items():
        print(f"{name:8}", *(f" {ms:6.0f} ms" for ms in (ready[name], min(took), statistics.median(took))))
    if given.peer:
        apart = max(abs(a - b) for a, b in zip(logits["ours"], logits["theirs"], strict=True))
        print(f"their logits differ by at most {apart:.3f}, as a byte a weight is coarser")
    if given.results:
        found = {
            name: {"ready": ready[name], "best": min(took), "median": statistics.median(took)}
            for name, took in times.items()
        }
        write_json(given.results, {"milliseconds": found, "passes": len(times["ours"]), **here})


if __name__ == "__main__":
    main()
