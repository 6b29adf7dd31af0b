"""What in a student's cells a person should look at: code that may reach for the grading instead of the task.

Much of it has honest uses, so none of it costs points, except writing to the checks or to the worksheet. In
the process in which it runs there is nothing to gain by it.
"""

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass

from vit_classroom.assignments.notebooks import (
    LONGEST_CELL,
    UNREADABLE,
    Cell,
    Chapter,
    bound_by,
    parsed,
    plain_python,
    statements_of,
)

PROCESS = {
    "os": {"_exit", "abort", "kill", "killpg", "fork", "execv", "execve", "execvp", "system", "popen"},
    "sys": {"exit", "setprofile", "settrace", "modules", "_getframe", "meta_path"},
    "threading": {"setprofile", "settrace"},
    "inspect": {"getsource", "getsourcelines", "getsourcefile", "stack", "currentframe"},
} | {name: {"*"} for name in ("ctypes", "gc", "importlib", "multiprocessing", "requests", "signal", "socket")}
PROCESS |= {"subprocess": {"*"}, "urllib": {"*"}}
FILES = {"remove", "unlink", "rmtree", "rmdir", "rename", "replace", "truncate"}
PACKAGES = ("vit_from_scratch", "vit_lab", "vit_classroom")
OPEN = {"checks", "examples", "plots", "__version__"}
"""What students may use of the packages."""
OWN = {"checks", "sheet", "assignments"}
RENAMED = {"checks", "sheet"}
SHARED = {"torch", "nn", "F", "np"}
TAKEN = {name for name in vars(builtins) if name[0].isupper()}  # all exceptions
CALLS = {"exec", "eval", "compile", "__import__", "exit", "quit", "open", "globals", "setattr", "delattr"}
FINISHED = {
    "scaled_dot_product_attention",
    "multi_head_attention_forward",
    "MultiheadAttention",
    "TransformerEncoder",
    "TransformerEncoderLayer",
}
"""What torch has finished of the chapters' pieces; honest where an answer is compared with it."""
FINISHED_FOR = {
    "layer_norm": {"layer_norm", "LayerNorm"},
    "stretch_positions": {"interpolate", "Upsample"},
    "group_norm": {"group_norm", "GroupNorm"},
    "cross_entropy": {"cross_entropy", "CrossEntropyLoss"},
    "smoothed_cross_entropy": {"label_smoothing"},
}
"""And of one answer alone: functions, classes and arguments that others may use."""
INSIDES = {"__code__", "__globals__", "__builtins__", "__subclasses__", "__wrapped__"}


@dataclass(frozen=True)
class Suspicion:
    """Something that a person should look at.

    Attributes:
        cell: the place of the cell in the notebook, from 1.
        what: in words.
        severe: whether it writes to the checks or the worksheet, so that the answer it stands with earns
            nothing.
    """

    cell: int
    what: str
    severe: bool = False

    def __str__(self) -> str:
        """In one line."""
        return f"cell {self.cell}: {self.what}"


def suspicions(chapter: Chapter, cells: list[Cell]) -> list[Suspicion]:
    """Look through a notebook that was handed in."""
    given = {ast.dump(one) for source in chapter.given for one in statements_of(plain_python(source))}
    asked = {task.name for task in chapter.tasks if task.check}
    found = []
    for place, cell in enumerate(cells, start=1):
        if cell.kind != "code":
            continue
        try:
            own = "\n".join(own_code(cell)) if len(cell.source) <= LONGEST_CELL else cell.source
            tree = parsed(plain_python(own))
            imports = [one for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names]
            modules = {alias.asname or alias.name.split(".")[0]: alias.name for alias in imports}
            tree.body = [one for one in tree.body if ast.dump(one) not in given]
            seen = dict(_in(tree, modules, rebound(tree)))
            seen |= {what: False for one in tree.body for what in _taken_over(one, asked)}
        except (SyntaxError, ValueError):
            continue
        except (RecursionError, MemoryError):
            seen = {f"cannot be read: too deep, or more than {LONGEST_CELL // 1000} kB of code": False}
        found += [Suspicion(place, what, severe) for what, severe in seen.items()]
    expected = {cell.name: cell.form for cell in chapter.cells if is_check(cell)}
    for place, cell in enumerate(cells, start=1):
        if cell.name in expected and (cell.assignment or cell.form != expected[cell.name]):
            state = "is gone" if cell.assignment else "was changed"
            found.append(Suspicion(place, f"the cell {cell.name} {state}"))
    return found


def is_check(cell: Cell) -> bool:
    """Say whether a cell is one that checks an answer."""
    return cell.kind == "code" and bool(cell.about.get("grade")) and cell.name.startswith("check-")


def own_code(cell: Cell) -> tuple[str, str]:
    """Return a cell's code; of one that checks an answer what somebody wrote above its call, and below it."""
    if not is_check(cell):
        return cell.source, ""
    body = statements_of(plain_python(cell.source))
    try:
        written = [ast.unparse(one) for one in body]
    except (AssertionError, *UNREADABLE):  # what Python reads, and cannot write again
        return "", ""
    calls = [place for place, one in enumerate(written) if one.startswith("sheet.check(")]
    first = min(calls, default=len(written))
    below = [one for place, one in enumerate(written) if place > first and place not in calls]
    return "\n".join(written[:first]), "\n".join(below)


def rebound(tree: ast.Module) -> set[str]:
    """Return the names that a cell binds for the whole notebook; a function's own are its own affair."""
    found = set().union(*map(bound_by, tree.body))
    return found.union(*(node.names for node in ast.walk(tree) if isinstance(node, ast.Global)))


def _in(tree: ast.AST, modules: dict[str, str], bound: set[str]) -> Iterator[tuple[str, bool]]:
    """Yield what a person should look at, and whether it is severe.

    `modules` by the names they have here; `bound` are the names that the cell binds.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((what, False) for what in _imports(node))
        elif isinstance(node, ast.Attribute):
            yield from _attribute(node, modules)
        elif (name := _name_given(node)) in bound & RENAMED or name in TAKEN:
            yield f"gives `{name}` another meaning", False
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
            yield f"calls {node.func.id}()", False
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "✓" in node.value:
            yield "prints the mark of a passed check", False


def _name_given(node: ast.AST) -> str:
    """Return the name that a node gives to something; "" if it gives none."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name
    return node.id if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) else ""


def _taken_over(statement: ast.stmt, asked: set[str]) -> Iterator[str]:
    """Yield what makes an answer, or a function that one may call, of something finished."""
    bound = bound_by(statement)
    if isinstance(statement, ast.FunctionDef | ast.ClassDef) or bound & asked:
        own_names = [name.removesuffix("_varied") for name in bound & asked]
        finished = FINISHED.union(*(FINISHED_FOR.get(name, ()) for name in own_names))
        for node in ast.walk(statement):
            own = getattr(node, "attr", getattr(node, "id", ""))
            own = node.arg or "" if isinstance(node, ast.keyword) else own
            name = node.name if isinstance(node, ast.alias) else own
            itself = isinstance(node, ast.Name) and name in bound
            if (last := name.split(".")[-1]) in finished and not itself:
                yield f"uses torch's {last}"
    if bound & asked and (name := _handed_on(statement)) in asked - bound:
        yield f"takes {name} for {', '.join(sorted(bound))}"


def _handed_on(statement: ast.stmt) -> str:
    """Return the function that a statement gives another name, or calls with all that it is given; or ""."""
    match statement:
        case ast.Assign(value=ast.Name(id=name)):
            return name
        case ast.Assign(value=ast.Lambda(args=given, body=value)):
            pass
        case ast.FunctionDef(args=given, body=[*above, ast.Return(value=value)]):
            if not all(isinstance(one, ast.Expr) for one in above):
                return ""
        case _:
            return ""
    match value:
        case ast.Call(func=ast.Name(id=name), args=passed):
            return name if [ast.unparse(one) for one in passed] == [one.arg for one in given.args] else ""
    return ""


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    names = [alias.name for alias in node.names]
    module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
    for whole in [f"{module}.{name}" if module else name for name in names]:
        top, last = whole.split(".")[0], whole.split(".")[-1]
        own = top in PACKAGES and "." in whole and last not in OPEN
        if own or "*" in PROCESS.get(top, ()) or (module and last in PROCESS.get(top, ())):
            yield f"imports {whole}"


def _attribute(node: ast.Attribute, modules: dict[str, str]) -> Iterator[tuple[str, bool]]:
    root, text = node.value, ast.unparse(node)
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name):
        return
    whole = modules.get(root.id, root.id)
    if not isinstance(node.ctx, ast.Load) and (root.id in modules or root.id in OWN | SHARED):
        yield f"changes {text}", root.id in OWN or whole.startswith(PACKAGES)
    removes = node.attr in FILES and root.id in (*modules, "os", "shutil")
    if whole in PACKAGES and isinstance(node.value, ast.Name) and node.attr not in OPEN:
        yield f"uses {text}", False
    if node.attr in PROCESS.get(whole.split(".")[0], ()) or removes or node.attr in INSIDES:
        yield f"uses {text}", False
