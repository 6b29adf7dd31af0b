"""Set the address that the project is hosted at: in _config.yml, and in everything that follows from it.

python tools/set_repository.py https://github.com/OWNER/NAME
python tools/set_repository.py --check     # fail when any of these files disagrees with _config.yml
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import export_notebooks
from project_facts import ROOT, Repository, read_repository

ADDRESS = re.compile(r"https://[\w.-]+/[\w.-]+/[\w.-]+")
FOLLOWERS = ("README.md", "CITATION.cff", "pyproject.toml")
IN_COLAB = re.compile(r"colab\.research\.google\.com/github/([\w.-]+/[\w.-]+)/")
STATED = re.compile(r"(?:git clone |git\+|Repository = \"|repository-code: \"?)(https://[^\s@'\"]+)")


def set_repository(root: Path, url: str) -> None:
    """Write the address into _config.yml and the files that hold it; notebooks are exported afterwards."""
    old = read_repository(root)
    new = Repository(url=url.rstrip("/"), branch=old.branch)
    changes = {
        old.url: new.url,
        f"colab.research.google.com/github/{old.slug}": f"colab.research.google.com/github/{new.slug}",
        old.pages_url: new.pages_url,
    }
    for name in ("_config.yml", *FOLLOWERS):
        path = root / name
        text = path.read_text(encoding="utf-8")
        for before, after in changes.items():
            text = re.sub(rf"{re.escape(before)}(?![\w-])", after.replace("\\", r"\\"), text)
        path.write_text(text, encoding="utf-8")


def disagreements(root: Path) -> Iterator[str]:
    """Say which files hold another address than _config.yml."""
    repository = read_repository(root)
    home = repository.url.removesuffix(repository.slug)
    for name in FOLLOWERS:
        text = (root / name).read_text(encoding="utf-8")
        stated = [url.removesuffix(".git") for url in STATED.findall(text)]
        for url in (*stated, *(f"{home}{slug}" for slug in IN_COLAB.findall(text))):
            if url != repository.url:
                yield f"{name} says {url}"
        if repository.url not in text:
            yield f"{name} does not hold {repository.url}"


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Run from the command line."""
    options = argparse.ArgumentParser(description="Set the address that the project is hosted at.")
    options.add_argument("url", nargs="?", help="the new address, https://HOST/OWNER/NAME")
    options.add_argument("--check", action="store_true", help="write nothing; fail when a file disagrees")
    given = options.parse_args(arguments)
    if given.check == bool(given.url):
        options.error("give either an address or --check")
    if given.url:
        url = given.url.removesuffix("/").removesuffix(".git")
        if not ADDRESS.fullmatch(url):
            options.error(f"{given.url!r} is not an address of the form https://HOST/OWNER/NAME")
        set_repository(root, url)
        return export_notebooks.main([], root)
    found = list(disagreements(root))
    for sentence in found:
        print(f"error: {sentence}; _config.yml says {read_repository(root).url}.", file=sys.stderr)
    return int(bool(found)) or export_notebooks.main(["--check"], root)


if __name__ == "__main__":
    sys.exit(main())
