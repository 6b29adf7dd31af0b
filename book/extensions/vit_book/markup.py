"""What the theme and its companions write into a page twice, or so that it needs a script.

Each function takes a finished page's text and returns it changed; what it has been over stays as it is.
"""

import re

REPEATED_ID = re.compile(r'(<section) id="(?:exercise|solution)-content"')
DRAWING_NAME = re.compile(r"<(title|desc) id=")
# Said in the page itself, before anything is drawn: no flash of the other theme, and colours without scripts.
THEME = """<script data-cfasync="false">
    {
      const root = document.documentElement.dataset;
      root.mode = localStorage.getItem("mode") || "auto";
      const dark = matchMedia("(prefers-color-scheme: dark)").matches;
      root.theme = root.mode === "auto" ? (dark ? "dark" : "light") : root.mode;
    }
  </script>"""
THEIR_THEME = re.compile(r'<script data-cfasync="false">.*?</script>', re.DOTALL)


def theme_from_the_start(page: str) -> str:
    """Light colours without scripts; with them, the theme that the reader wants, before anything is drawn."""
    page = re.sub(r'(<html[^>]*data-theme=)"auto"', r'\1"light"', page)
    return THEIR_THEME.sub(lambda _: THEME, page, count=1)


def unique_ids(page: str) -> str:
    """Exercises and solutions all name their text alike; nothing leads there, so it goes without a name."""
    return REPEATED_ID.sub(r"\1", page)


def names_of_drawings_unmarked(page: str) -> str:
    """The search marks what it found; it would end at a word in a drawing's name, which has no place."""
    return DRAWING_NAME.sub(r'<\1 class="nohighlight" id=', page)
