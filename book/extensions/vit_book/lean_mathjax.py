"""The part of MathJax that the book uses, in one file: no menu, no speech, formulas are no tab stops.

The whole of `tex-chtml.js` is 1.1 MB, nearly half of it a menu. `formulas.js` holds the components that are
needed, each as a function that MathJax's own loader calls where it would otherwise fetch a file.
"""

import json
import shutil
from pathlib import Path

BUNDLE = "formulas.js"
COMPONENTS = ("core", "input/tex", "output/chtml", "output/chtml/fonts/tex", "a11y/assistive-mml")
KEPT = (BUNDLE, "output/chtml/fonts/woff-v2", "input/tex/extensions")

# A small x of Literata is so much taller than one of MathJax's letters. Left to itself, MathJax measures the
# text around a formula: often before the page's own letters have come, and then it ends up a tenth too small.
SCALE = 1.147

# assistive-mml stays: it is what readers who listen to the page hear of a formula.
TEMPLATE = """(() => {{
const parts = {{
{parts}
}};
const given = window.MathJax ?? {{}};
const root = document.currentScript.src.replace(/\\/[^\\/]*$/, "/");
const fetched = (url) => new Promise((done, failed) => {{
  const script = Object.assign(document.createElement("script"), {{src: url, onload: done, onerror: failed}});
  document.head.append(script);
}});
window.MathJax = {{
  ...given,
  loader: {{
    ...given.loader,
    load: {names},
    require: (url) => {{
      const part = parts[url.replace(root, "").replace(/\\.js$/, "")];
      return part ? part() : fetched(url);
    }},
  }},
  options: {{...given.options, enableAssistiveMml: true}},
  chtml: {{...given.chtml, matchFontHeight: false, scale: {scale}}},
}};
{startup}
}})();
"""


def bundle(mathjax: Path) -> str:
    """Write one script of the components in the folder `mathjax` that the book needs."""
    parts = ",\n".join(
        f"{json.dumps(name)}: () => {{\n{(mathjax / f'{name}.js').read_text(encoding='utf-8')}\n}}"
        for name in COMPONENTS
    )
    startup = (mathjax / "startup.js").read_text(encoding="utf-8")
    return TEMPLATE.format(parts=parts, names=json.dumps(COMPONENTS), startup=startup, scale=SCALE)


def lighten_mathjax(static: Path) -> None:
    """Leave the bundle, its fonts and the extensions that formulas may ask for; drop the rest (20 MB).

    Args:
        static: the folder `_static` of the built book. Where MathJax has been lightened, nothing happens.
    """
    mathjax = static / "mathjax"
    if not (mathjax / "startup.js").exists():
        return
    (mathjax / BUNDLE).write_text(bundle(mathjax), encoding="utf-8")
    kept = [mathjax / name for name in KEPT]
    for path in sorted(mathjax.rglob("*"), reverse=True):
        if path.is_file() and not any(path == place or place in path.parents for place in kept):
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            shutil.rmtree(path)
