"""What the book, the exported notebooks and the tools must agree on: the address, the version, the minutes.

Imported by the scripts of this folder and by the book's Sphinx extension; needs PyYAML and nothing else.
"""

import functools
import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("vit_from_scratch", "vit_lab", "vit_classroom")  # what one `pip install` brings
TITLED = re.compile(r"(.+?)\s*<([^<>]+)>", re.DOTALL)  # text <target>, as roles write it
CHAPTER_NAME = re.compile(r"(\d\d)_\w+")
TRAINING_CHAPTERS = range(8, 13)  # Part II, which asks Colab for a GPU
# Of someone who reads to understand: prose, open code, and what it prints. Fitted (least squares) to the
# minutes that a newcomer took for nine chapters of an earlier edition: tests/tools/test_project_facts.py.
WORDS_A_MINUTE, LINES_A_MINUTE, PRINTED_A_MINUTE = 63, 8.2, 9.6
DEVICES = {"cpu": "two CPU cores", "gpu": "a GPU"}


@dataclass(frozen=True)
class Repository:
    """Where the project is hosted, as `_config.yml` says."""

    url: str
    branch: str

    @property
    def slug(self) -> str:
        """The last two parts of the address: OWNER/NAME."""
        return "/".join(self.url.rsplit("/", 2)[1:])

    @property
    def pages_url(self) -> str:
        """Where GitHub Pages shows the book."""
        owner, name = self.slug.split("/")
        host = f"{owner.lower()}.github.io"
        return f"https://{host}" if name.lower() == host else f"https://{host}/{name}"

    def file_url(self, path: str) -> str:
        """The page that shows the file `path`, or the folder where `path` ends with a slash."""
        return f"{self.url}/{'tree' if path.endswith('/') else 'blob'}/{self.branch}/{path.rstrip('/')}"

    def raw_url(self, path: str) -> str:
        """The bytes of the file `path`, for images in exported notebooks."""
        return f"{self.url}/raw/{self.branch}/{path}"

    def colab_url(self, path: str) -> str:
        """The address at which Colab opens the notebook `path`."""
        return f"https://colab.research.google.com/github/{self.slug}/blob/{self.branch}/{path}"


def read_repository(root: Path = ROOT) -> Repository:
    """Read the hosting address from `_config.yml`, the one place where it is written."""
    return _repository_in((root / "_config.yml").read_text(encoding="utf-8"))


@functools.cache
def _repository_in(config: str) -> Repository:
    entry = yaml.safe_load(config)["repository"]
    return Repository(url=entry["url"].rstrip("/"), branch=entry["branch"])


def read_code_prompt(root: Path = ROOT) -> str:
    """What stands on a folded cell of code that has no words of its own, as `_config.yml` says."""
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    return config["sphinx"]["config"]["nb_code_prompt_show"]


def read_project(root: Path = ROOT) -> dict[str, Any]:
    """What pyproject.toml says of the project: its version, what it needs."""
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read_version(root: Path = ROOT) -> str:
    """The package's version, which is also the name of its release tag without the v."""
    return read_project(root)["version"]


def chapter_number(name: str) -> int | None:
    """The number a chapter's file name begins with; None for a page that is not a chapter.

    >>> chapter_number("notebooks/03_attention"), chapter_number("book/notation")
    (3, None)
    """
    match = CHAPTER_NAME.fullmatch(name.rsplit("/", 1)[-1])
    return int(match[1]) if match else None


def split_title(content: str) -> tuple[str, str]:
    """Split what a role holds, 'text <target>', into both; a bare target has no text."""
    match = TITLED.fullmatch(content)
    return (match[1], match[2]) if match else ("", content.strip())


def chapters(root: Path = ROOT) -> list[Path]:
    """The chapters' sources, in the book's order."""
    return sorted(path for path in (root / "notebooks").glob("*.md") if chapter_number(path.stem) is not None)


def minutes_file(root: Path = ROOT) -> Path:
    """Where tools/measure_chapters.py records how long each chapter takes."""
    return root / "vit_lab" / "results" / "chapter_minutes.json"


def measured_chapters(root: Path = ROOT) -> dict[str, dict[str, Any]]:
    """What that file records: for each chapter, one record for each device that it was measured on."""
    path = minutes_file(root)
    return json.loads(path.read_text(encoding="utf-8"))["chapters"] if path.exists() else {}


def time_text(chapter: str, root: Path = ROOT) -> str:
    """Say how long a chapter takes to read, to write and to run, and how many exercises come on top."""
    if not (root / "notebooks" / f"{chapter}.md").exists():  # a page that is not a chapter of the book
        return minutes_text(chapter, root)
    written = writing_minutes(chapter, root)
    asked = f" and {written} to write" if written else ""
    exercises = (root / "notebooks" / f"{chapter}.md").read_text(encoding="utf-8").count("\n```{exercise} ")
    more = f", {exercises} exercises on top" if exercises else ""
    read = reading_minutes(chapter, root)
    return f"{read} minutes to read{asked}{more}; it runs {minutes_text(chapter, root)}"


def writing_minutes(chapter: str, root: Path = ROOT) -> int:
    """Add up what the boxes "Your turn" of a chapter say they take."""
    text = (root / "notebooks" / f"{chapter}.md").read_text(encoding="utf-8")
    return sum(map(int, re.findall(r"\} Your turn: .* about (\d+) minutes?$", text, re.MULTILINE)))


BLOCK = re.DOTALL | re.MULTILINE
SOLUTION = re.compile(r"^```\{solution-start\}.*?^```\{solution-end\}\n```$", BLOCK)
FOLD = re.compile(r"^(:{3,})\{(?:dropdown\}|admonition\} [^\n]*\n:class: [^\n]*\bdropdown\b).*?^\1$", BLOCK)
"""In a chapter's text: a solution, and a box that is folded when the page opens."""


def reading_minutes(chapter: str, root: Path = ROOT) -> int:
    """Estimate how long a chapter takes to read up to its exercises: what stands open, and what it prints."""
    printed = measured_chapters(root).get(chapter, {}).get("cpu", {}).get("printed_lines", 0)
    words, lines = open_text((root / "notebooks" / f"{chapter}.md").read_text(encoding="utf-8"))
    return round(words / WORDS_A_MINUTE + lines / LINES_A_MINUTE + printed / PRINTED_A_MINUTE)


def open_text(text: str) -> tuple[int, int]:
    """Count the words and the lines of code that stand open before a chapter's exercises."""
    text = re.split(r"(?m)^## Exercises$", text.partition("\n# ")[2])[0]
    text = FOLD.sub("", SOLUTION.sub("", text))
    prose = re.sub(r"^```\{code-cell\}.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    prose = re.sub(r"^([+-] .*) :: .*$", r"\1", prose, flags=re.MULTILINE)  # reasons in a quiz are folded
    cells = re.findall(r"^```\{code-cell\}.*?\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    code = "".join(
        re.sub(r"\A---\n.*?\n---\n", "", cell, flags=re.DOTALL)
        for cell in cells
        if not re.search("hide-(input|cell)", cell)
    )
    return len(prose.split()), sum(bool(line.strip()) for line in code.splitlines())


def minutes_text(chapter: str, root: Path = ROOT) -> str:
    """Say how long a chapter runs, wherever it was measured: 'about 0.4 minutes on two CPU cores'."""
    records = measured_chapters(root).get(chapter, {})
    phrases = [
        f"about {_minutes(records[device]['seconds'])} on {place}"
        for device, place in DEVICES.items()
        if device in records
    ]
    return ", ".join(phrases) or "for a time not yet measured"


def full_budget_text(chapter: str, root: Path = ROOT) -> str:
    """Say whether a chapter has run with the full budget on a GPU, and how long that took, in one line."""
    record = measured_chapters(root).get(chapter, {}).get("gpu-full")
    if record is None:
        return "Not yet run with the full budget on a GPU."
    where = f"a GPU ({record['gpu']}, {record['date']})"
    return f"Run with the full budget on {where} in about {_minutes(record['seconds'])}."


def _minutes(seconds: float) -> str:
    """Round up to a tenth of a minute: a reader had rather be done early."""
    tenths = max(1, -(-seconds // 6))
    return "1 minute" if tenths == 10 else f"{tenths / 10:g} minutes"
