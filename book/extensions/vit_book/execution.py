"""When chapters are run again, and in which environment.

jupyter-cache recognises a chapter by the text of its cells alone. A chapter's outputs also depend on the
package, its recipes, results and weights, on the versions installed and on the budget, so a key made of all
these names the folder of the cache, and a change of the key makes Sphinx read every page again.
"""

import hashlib
import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from project_facts import PACKAGES, ROOT
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ConfigError

BUDGETS = ("quick", "full")
SHARED = (
    "_config.yml",
    *(f"tools/{name}.py" for name in ("project_facts", "notation_page", "drawings", "check_book")),
)
"""What pages are made with, beside this extension and `tools/chapter_export`."""


def tree_files(folder: Path) -> list[Path]:
    """Every file below `folder` in a fixed order, without what Python compiles."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def digest(root: Path, files: Iterable[Path], *words: str) -> str:
    """A short name for the contents of `files`, their places below `root`, and `words`."""
    total = hashlib.sha256("\0".join(words).encode())
    for path in files:
        total.update(f"\0{path.relative_to(root).as_posix()}\0".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:16]


def execution_key(root: Path, budget: str) -> str:
    """Name everything besides its own cells that a chapter's outputs depend on.

    What draws figures for phones is loaded into the kernels. Assignments are made of chapters, and no chapter
    reads them.
    """
    assignments = root / "vit_classroom" / "assignments"
    files = [path for name in PACKAGES for path in tree_files(root / name) if assignments not in path.parents]
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    files += tree_files(root / "book" / "extensions" / "kernel_figures")
    return digest(root, [*files, root / "requirements.lock"], budget, python)


def pages_key(root: Path) -> str:
    """Name what pages depend on besides their source and the package: settings, extension and its tools."""
    files = [root / name for name in SHARED]
    folders = (root / "book" / "extensions", root / "tools" / "chapter_export")
    return digest(root, [*files, *(path for folder in folders for path in tree_files(folder))])


def styles_key(root: Path) -> str:
    """Name what written pages depend on besides what was read for them: styles, scripts, templates.

    Sphinx copies these only where it has a page to write, and pages name their versions.
    """
    return digest(root, [*tree_files(root / "book" / "_static"), *tree_files(root / "book" / "templates")])


def prepare_environment() -> str:
    """Set what the chapters' kernels inherit, and return the budget they run with."""
    budget = os.environ.setdefault("VIT_BUDGET", "quick")
    if budget not in BUDGETS:
        raise ConfigError(f"VIT_BUDGET is {budget!r}; it must be one of {', '.join(BUDGETS)}.")
    os.environ["TQDM_DISABLE"] = "1"  # a page is no place for a moving bar
    os.environ.pop("MPLBACKEND", None)  # with a shell's choice, such as Agg, pages would have no pictures
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # waiting threads sleep: 4 times faster if busy
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # the kernel's debugger warns about frozen modules
    return budget


def choose_cache(app: Sphinx, config: Config) -> None:
    """Point myst-nb at the cache of the present key, and drop the caches of earlier ones."""
    key = execution_key(ROOT, prepare_environment())
    caches = Path(app.outdir).parent / ".jupyter_cache"
    for folder in caches.glob("*"):
        if folder.is_dir() and folder.name != key:
            shutil.rmtree(folder)
    (caches / key).mkdir(parents=True, exist_ok=True)
    config.nb_execution_cache_path = str(caches / key)
    config.vit_execution_key = key
    config.vit_pages_key = pages_key(ROOT)
    config.vit_styles_key = styles_key(ROOT)


def setup(app: Sphinx) -> None:
    """Register the keys as values on which every page depends: as it is read, or as it is written."""
    app.add_config_value("vit_execution_key", "", "env", [str])
    app.add_config_value("vit_pages_key", "", "env", [str])
    app.add_config_value("vit_styles_key", "", "html", [str])
    app.connect("config-inited", choose_cache)
