"""What in a student's cells a person should look at: code that reaches for the grading instead of the task.

Nothing here decides alone what an answer is worth, but that what tampers with the grading earns nothing: in
the process in which it runs there is nothing to gain by it.
"""

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass

from vit_classroom.assignments.notebooks import Cell, Chapter, plain_python

PROCESS = {
    "os": {"_exit", "abort", "kill", "killpg", "fork", "execv", "execve", "execvp", "system", "popen"},
    "sys": {"exit", "setprofile", "settrace", "modules", "_getframe", "meta_path"},
    "threading": {"setprofile", "settrace"},
    "signal": {"*"},
    "ctypes": {"*"},
    "gc": {"*"},
    "inspect": {"getsource", "getsourcelines", "getsourcefile", "stack", "currentframe"},
    "subprocess": {"*"},
    "multiprocessing": {"*"},
    "importlib": {"*"},
    "socket": {"*"},
    "urllib": {"*"},
    "requests": {"*"},
}
FILES = {"remove", "unlink", "rmtree", "rmdir", "rename", "replace", "truncate"}
PACKAGES = ("vit_from_scratch", "vit_lab", "vit_classroom")
OWN = {"checks", "sheet", "assignments"}
SHARED = {"torch", "nn", "F", "np"}
TAKEN = OWN | {name for name in vars(builtins) if name[0].isupper()}  # with all exceptions
ENDS = {"exec", "eval", "compile", "__import__", "exit", "quit"}
OPENS = {"open", "globals", "setattr", "delattr"}
HARMLESS_AT_TIMES = {"gc", "importlib", "multiprocessing", "requests", "socket", "urllib"}
"""What has its uses outside of an attack: a person looks at it, and it costs nothing."""


@dataclass(frozen=True)
class Suspicion:
    """Something that a person should look at.

    Attributes:
        cell: the place of the cell in the notebook, from 1.
        what: in words.
        severe: whether it reaches for the grading, so that the answer it stands with earns nothing.
    """

    cell: int
    what: str
    severe: bool = True

    def __str__(self) -> str:
        """In one line."""
        return f"cell {self.cell}: {self.what}"


def suspicions(chapter: Chapter, cells: list[Cell]) -> list[Suspicion]:
    """Look through a notebook that was handed in."""
    known = {source.strip() for source in chapter.given}
    found = []
    for place, cell in enumerate(cells, start=1):
        if cell.kind != "code" or cell.source.strip() in known or is_check(cell):
            continue
        try:
            seen = dict(_in(ast.parse(plain_python(cell.source))))
        except (SyntaxError, ValueError):
            continue
        except (RecursionError, MemoryError):
            seen = {"cannot be read": False}
        found += [Suspicion(place, what, severe) for what, severe in seen.items()]
    expected = {cell.name: cell.source.strip() for cell in chapter.cells if is_check(cell)}
    there = {cell.name: (place, cell.source.strip()) for place, cell in enumerate(cells, start=1)}
    for name, source in expected.items():
        if name not in there:
            found.append(Suspicion(len(cells), f"the cell {name} is gone", severe=False))
        elif there[name][1] != source:
            found.append(Suspicion(there[name][0], f"the cell {name} was changed", severe=False))
    return found


def is_check(cell: Cell) -> bool:
    """Say whether a cell is one that checks an answer."""
    return cell.kind == "code" and bool(cell.about.get("grade")) and cell.name.startswith("check-")


def _in(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Yield what code does that a person should look at, and whether it is severe."""
    modules: dict[str, str] = {}  # names of imported modules
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.asname or alias.name.split(".")[0]: alias.name for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _imports(node)
        elif isinstance(node, ast.Attribute):
            yield from _attribute(node, modules)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node.id in TAKEN:
            yield f"gives `{node.id}` another meaning", True
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in TAKEN:
            yield f"gives `{node.name}` another meaning", True
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ENDS | OPENS:
            yield f"calls {node.func.id}()", node.func.id in ENDS
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "✓" in node.value:
            yield "prints the mark of a passed check", False


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, bool]]:
    names = [alias.name for alias in node.names]
    module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
    for whole in [f"{module}.{name}" if module else name for name in names]:
        top = whole.split(".")[0]
        if top in PACKAGES and "." in whole and not whole.endswith((".checks", ".examples", ".plots")):
            yield f"imports {whole}", False
        elif "*" in PROCESS.get(top, ()) or (module and whole.split(".")[-1] in PROCESS.get(top, ())):
            yield f"imports {whole}", top not in HARMLESS_AT_TIMES


def _attribute(node: ast.Attribute, modules: dict[str, str]) -> Iterator[tuple[str, bool]]:
    base = node.value
    text = ast.unparse(node)
    root = base
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name):
        return
    whole = modules.get(root.id, root.id)
    if not isinstance(node.ctx, ast.Load) and (root.id in modules or root.id in OWN | SHARED):
        yield f"changes {text}", root.id in OWN or whole.startswith(PACKAGES)
    top = whole.split(".")[0]
    if node.attr in PROCESS.get(top, ()) or (node.attr in FILES and root.id in (*modules, "os", "shutil")):
        yield f"uses {text}", top not in HARMLESS_AT_TIMES
    if node.attr in ("__code__", "__globals__", "__builtins__", "__subclasses__", "__wrapped__"):
        yield f"uses {text}", True
