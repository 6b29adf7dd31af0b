"""The directive `peers`: how fast and large ours is beside other libraries, from the benchmark's results."""

from collections import Counter
from collections.abc import Callable
from statistics import median
from typing import Any

from sphinx.application import Sphinx

from vit_book.recipes import add_table, table
from vit_lab.experiments.packaged import load_result

RESULT = "peers_cpu"
OURS, UNKEPT = "vit_from_scratch", "memory not kept"
AIMS = {"training": 1.1, "inference": 1.0}
"""How fast ours was to be in every cell, as a multiple of the fastest peer."""
HEAD = ("model", "type", "ratio", "quartiles", "alone", "of the peak", "memory", "fastest peer")
KINDS = {
    "matrix products": ("matrix products",),
    "attention": ("products of attention", "softmax"),
    "copies and casts": ("copies and casts",),
    "norms, GELU, sums": ("norms", "GELU", "sums and additions"),
    "optimiser": ("optimiser",),
}
"""Kinds of operators as the page has them, each with those of the benchmark."""

Cell = dict[str, Any]


def machine(result: dict[str, Any]) -> list[str]:
    """Say what measured, when, and at which versions."""
    hardware, versions = result["hardware"], result["versions"]
    named = ("torch", "timm", "torchvision", "transformers", "vit-pytorch")
    listed = ", ".join(f"{name} {versions[name]}" for name in named)
    best = peaks(result)
    reached = " and ".join(f"{best[dtype]:,.0f} GFLOP/s in {dtype}" for dtype in ("float32", "bfloat16"))
    date, _, _ = result["date"].partition("T")
    imitated = ""
    if best["bfloat16"] < best["float32"]:
        slower, pairs = slower_in_bfloat16(result)
        imitated = (
            f" It imitates bfloat16: ours is slower in it than in float32 in {slower} of {pairs} cells."
        )
    _, *others = sorted(Counter(cell["commit"] for cell in result["cells"].values()).values(), reverse=True)
    later = f" After a change of our code {sum(others)} cells were measured again." if others else ""
    return [
        f"Measured on {date} on {hardware['threads']} threads of a CPU whose matrix products alone reach "
        f"{reached}; {result['settings']['rounds']} rounds; {listed}.{imitated}{later}"
    ]


def slower_in_bfloat16(result: dict[str, Any]) -> tuple[int, int]:
    """Count the cells in which our model is slower in bfloat16 than in float32, and all such pairs."""
    speed = {name: cell["models"][OURS]["images_per_second"] for name, cell in result["cells"].items()}
    sizes = {name.rsplit(maxsplit=1)[0] for name in speed}
    return sum(speed[f"{size} bfloat16"] < speed[f"{size} float32"] for size in sizes), len(sizes)


def peaks(result: dict[str, Any]) -> dict[str, float]:
    """Return the best speed of matrix products that any cell saw, in GFLOP/s, by type."""
    found: dict[str, float] = {}
    for name, cell in result["cells"].items():
        dtype = name.split()[-1]
        found[dtype] = max(found.get(dtype, 0.0), cell["peak_gflops"])
    return found


def cells_of(result: dict[str, Any], mode: str) -> dict[str, Cell]:
    """Return the cells of "training" or "inference" by the rest of their names: "Ti 32/4 float32"."""
    found = ((name.split(maxsplit=1), cell) for name, cell in result["cells"].items())
    return {rest: cell for (first, rest), cell in found if first == mode}


def beside(cell: Cell, name: str = OURS) -> float:
    """Return a model's speed as a multiple of the fastest peer's."""
    return cell["models"][name]["to_fastest_peer"]


def speeds(result: dict[str, Any], mode: str) -> list[str]:
    """Write a table with a row for each cell of "training" or "inference"."""
    best = peaks(result)
    rows = []
    for name, cell in cells_of(result, mode).items():
        ours, fastest = (cell["models"][model] for model in (OURS, cell["fastest_peer"]))
        low, high = ours["quartiles"]
        alone = [f"{beside(cell, UNKEPT):.2f}"] if mode == "training" else []
        size, dtype = name.rsplit(maxsplit=1)
        share = ours["share_of_peak"] * cell["peak_gflops"] / best[dtype]
        memory = f"{ours['memory_mib'] / fastest['memory_mib']:.2f}"
        speed = [f"{beside(cell):.2f}", f"{low:.2f} to {high:.2f}", *alone, f"{share:.0%}"]
        rows.append([size, dtype, *speed, memory, cell["fastest_peer"]])
    head = [word for word in HEAD if mode == "training" or word != "alone"]
    return table(head, rows)


def verdict(result: dict[str, Any], mode: str) -> list[str]:
    """Count the cells that reach their aim, and those in which one side wins three rounds of four."""
    cells = cells_of(result, mode).values()
    found = [beside(cell) for cell in cells]
    aim = AIMS[mode]
    wins = sum(cell["models"][OURS]["quartiles"][0] > 1 for cell in cells)
    losses = sum(cell["models"][OURS]["quartiles"][1] < 1 for cell in cells)
    wanted = f"{aim} times as fast as the fastest peer" if aim > 1 else "at least as fast as the fastest peer"
    words = (
        f"The aim was {wanted} in every cell. It is reached in {sum(ratio >= aim for ratio in found)} of "
        f"{len(found)}; the median of all is {median(found):.2f}. In {wins} cell{'s' * (wins != 1)} ours is "
        f"the faster one in three rounds of four or more, in {losses} the fastest peer."
    )
    if mode == "training":
        words += f" The median of the models alone is {median(beside(cell, UNKEPT) for cell in cells):.2f}."
    return [words]


def each(result: dict[str, Any]) -> list[str]:
    """Write a table of our model beside each peer: the median over the cells of one kind and type."""
    kinds = [(mode, dtype) for mode in AIMS for dtype in peaks(result)]
    rows = []
    for peer in (name for name in result["start_up"] if name != OURS):
        found = []
        for mode, dtype in kinds:
            models = [cell["models"] for name, cell in cells_of(result, mode).items() if name.endswith(dtype)]
            own = UNKEPT if mode == "training" else OURS
            found.append(f"{median(faster(both[own], both[peer]) for both in models):.2f}")
        rows.append([peer, *found])
    return table(("beside", *(f"{mode}, {dtype}" for mode, dtype in kinds)), rows)


def faster(one: dict[str, Any], other: dict[str, Any]) -> float:
    """Return how many times as fast one model is as another: the median over the rounds."""
    return median(b / a for a, b in zip(one["seconds"], other["seconds"], strict=True))


def missed(result: dict[str, Any]) -> list[str]:
    """Write a table of the cells that missed their aim, with where the time of our step goes, in per cent."""
    rows = []
    for mode, aim in AIMS.items():
        for name, cell in cells_of(result, mode).items():
            if beside(cell) < aim:
                left = dict(cell["profile"])
                shares = [sum(left.pop(kind, 0.0) for kind in kinds) for kinds in KINDS.values()]
                parts = [f"{100 * share:.0f}" for share in (*shares, sum(left.values()))]
                rows.append([mode, *name.rsplit(maxsplit=1), f"{beside(cell):.2f}", *parts])
    return table(("", "model", "type", "ratio", *KINDS, "the rest"), rows) if rows else []


def start_up(result: dict[str, Any]) -> list[str]:
    """Write a table of the seconds to a first answer."""
    rows = (
        [name, f"{median(times):.1f}", f"{min(times):.1f} to {max(times):.1f}"]
        for name, times in result["start_up"].items()
    )
    return table(("library", "seconds, median", "all tries"), rows)


def in_the_page(result: dict[str, Any]) -> list[str]:
    """Say how long the model in the page takes for a photo, beside onnxruntime-web."""
    ours, theirs = (result["milliseconds"][name]["median"] for name in ("ours", "theirs"))
    date, _, _ = result["date"].partition("T")
    return [
        f"One photo takes the model in the page {ours:.0f} ms on one core, and `onnxruntime-web` "
        f"{theirs:.0f} ms ({result['browser']} on {result['hardware']['processor']}, {date}, medians of "
        f"{result['passes']} passes)."
    ]


PARTS: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "machine": machine,
    "each": each,
    "training": lambda result: [*verdict(result, "training"), "", *speeds(result, "training")],
    "inference": lambda result: [*verdict(result, "inference"), "", *speeds(result, "inference")],
    "missed": missed,
    "start_up": start_up,
}


def setup(app: Sphinx) -> None:
    """Register the directive: `{peers} PART` stands for a part of the results, a key of `PARTS`."""
    add_table(app, "peers", lambda part: PARTS[part](load_result(RESULT)))
    add_table(app, "in_the_page", lambda: in_the_page(load_result("page_model_cpu")))
