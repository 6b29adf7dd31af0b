"""Build the book into _build/html: the notebooks that come from the chapters, then Jupyter Book's pages.

    python tools/build_book.py             # any warning is an error
    python tools/build_book.py linkcheck   # follow the links that lead out of the book

As `jupyter-book build . -W -n --keep-going`, in one process.
"""

import sys

from project_facts import ROOT


def main(builder: str = "html") -> int:
    """Export the notebooks and build the book; return the exit code."""
    # What checks the syntax of addresses for jsonschema takes seconds to load, and no notebook holds any.
    sys.modules["rfc3987_syntax"] = None  # pyright: ignore[reportArgumentType]
    import export_notebooks
    from jupyter_book.sphinx import build_sphinx

    if export_notebooks.main([]):
        return 1
    strict = builder == "html"
    result = build_sphinx(
        ROOT,
        ROOT / "_build" / builder,
        use_external_toc=True,
        noconfig=True,
        path_config=ROOT / "_config.yml",
        confoverrides={"external_toc_path": str(ROOT / "_toc.yml"), "latex_individualpages": False}
        | {"nitpicky": strict},
        builder=builder,
        warningiserror=strict,
        keep_going=True,
    )
    if isinstance(result, Exception):
        raise result
    return int(result)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
