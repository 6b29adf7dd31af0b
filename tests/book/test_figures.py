"""What a cell draws has a numbered caption, and a narrow picture where its labels would be too small."""

import base64
import io
import re
from itertools import combinations

import kernel_figures
import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
import torch
from kernel_figures import COLUMN, LEAST_LABEL, MIME, narrow_picture
from matplotlib.text import Text
from PIL import Image
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

from vit_from_scratch import plots


@pytest.fixture(autouse=True)
def _style():
    with plt.rc_context():
        plots.use_style()
        yield
    plt.close("all")


def two_curves():
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.4), sharey=True)
    for ax in axes:
        ax.plot(range(0, 9000, 1000), range(9), label="training")
        ax.plot(range(0, 9000, 1000), range(9, 0, -1), label="validation")
        ax.legend()
        ax.set_xlabel("step")
    axes[0].set_ylabel("loss")
    return figure


def wide_matrix():
    _, axes = plt.subplots(1, 2, figsize=(9.5, 4))
    for ax in axes:
        plots.matrix(12 * values(8, 8), ax, "title", "across", "down", numbers=".1f", colorbar="weight")
    return axes[0].figure


def values(*shape):
    return torch.linspace(0, 1, int(np.prod(shape))).reshape(shape)


def digits():
    return plots.image_row(values(16, 1, 8, 8), [str(n) for n in range(16)])[0, 0].figure


def heads():
    maps = values(6, 8, 4, 4)
    rows, columns = ([f"{word} {n + 1}" for n in range(8)] for word in ("head", "layer"))
    return plots.attention_grid(values(3, 16, 16), maps, rows[:6], columns)[0, 0].figure


def long_legend():
    ax = plt.subplots(figsize=(7, 3.4))[1]
    for name in ("nothing at all", "another photo's map", "most attended"):
        ax.plot([1, 2], label=name)
    plots.legend_beside(ax)
    return ax.figure


FIGURES = (two_curves, wide_matrix, digits, heads, long_legend)


@pytest.mark.parametrize("draw", FIGURES)
def test_letters_are_large_enough_on_a_phone_and_none_runs_into_another(draw):
    figure = draw()
    figure.canvas.draw()
    drawn = [text for ax in figure.axes for text in ax.findobj(Text) if text.get_text()]
    points = min(text.get_fontsize() for text in drawn)
    assert points * COLUMN / (72 * figure.get_figwidth()) < LEAST_LABEL  # or there were nothing to do
    found = narrow_picture(figure)
    picture = Image.open(io.BytesIO(base64.b64decode(found["png"])))
    points = min(text.get_fontsize() for text in drawn if text.figure is not None)
    inches = figure.get_tightbbox().width  # the picture is that wide, and a little for its margin
    assert points * COLUMN / (72 * (inches + 0.04)) >= LEAST_LABEL
    assert picture.width == pytest.approx(2 * COLUMN, abs=2)
    figure.canvas.draw()
    for ax in figure.axes:
        labels = [label for label in ax.get_xticklabels() if label.get_visible()]
        legend = ax.get_legend().get_texts() if ax.get_legend() else []
        texts = [*labels, *(other.title for other in figure.axes), ax.xaxis.label, *legend]
        boxes = [text.get_window_extent().padded(-1) for text in texts if text.get_text()]
        assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


def test_plots_stand_below_one_another_and_legends_below_plots():
    figure = two_curves()
    narrow_picture(figure)
    first, second = figure.axes
    assert first.get_position().y0 > second.get_position().y1
    assert first.get_position().x0 == pytest.approx(second.get_position().x0, abs=0.01)
    assert second.get_ylabel() == "loss"
    assert any(label.get_visible() for label in second.get_yticklabels())
    assert first.get_legend().get_window_extent().y1 < first.get_window_extent().y0


@pytest.mark.filterwarnings("error")
def test_a_legend_in_one_row_that_is_wider_than_a_phone_stands_below_its_plot():
    plots.use_style()
    figure, ax = plt.subplots(figsize=(7, 3.4))
    for name in ("thirty steps of warm-up", "no warm-up at all", "ln 10, which is a guess"):
        ax.plot([1, 2, 3], label=name)
    plots.legend_above(ax)
    narrow_picture(figure)
    plot, legend = (part.get_window_extent() for part in (ax.patch, ax.get_legend()))
    assert legend.y1 <= plot.y0
    assert legend.width < COLUMN


def test_pictures_wrap_and_a_table_keeps_its_shape():
    row, table = digits(), heads()
    for figure in (row, table):
        narrow_picture(figure)
    assert len({round(ax.get_position().x0, 3) for ax in row.axes}) == 4
    table.canvas.draw()
    *maps, bar = table.axes
    assert len({round(ax.get_position().x0, 3) for ax in maps}) == 8
    assert bar.get_position().y1 < min(ax.get_position().y0 for ax in maps)
    names = [ax.yaxis.label.get_window_extent() for ax in maps[::8]]
    assert not any(one.overlaps(other) for one, other in combinations(names, 2))


def test_what_can_be_read_already_or_has_no_letters_stays_as_it_is():
    assert narrow_picture(plots.matrix(values(3, 3), title="small").figure) is None
    assert narrow_picture(plots.image_row(values(16, 1, 8, 8))[0, 0].figure) is None


def test_a_drawing_scrolls_at_a_width_where_it_can_be_read():
    figure, ax = plt.subplots(figsize=(10, 2))
    ax.axis("off")
    ax.text(0.5, 0.5, "a box", fontsize=9)
    width = narrow_picture(figure)["scroll"]
    inches = figure.get_tightbbox().width + 0.2
    assert 9 * width / (72 * inches) == pytest.approx(LEAST_LABEL, rel=0.01)


def test_ipython_asks_even_after_a_chapter_has_chosen_its_own_formats():
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.core.pylabtools import select_figure_formats

    shell = InteractiveShell()
    kernel_figures.load_ipython_extension(shell)
    select_figure_formats(shell, {"retina"})  # strikes figures off the lists of all formatters
    data, _ = shell.display_formatter.format(two_curves())
    assert {"image/png", MIME} <= data.keys()
    assert MIME not in shell.display_formatter.format(1)[0]


def png(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels, "RGBA").save(file, format="PNG")
    return file.getvalue()


@pytest.fixture
def page(tmp_path):
    """A page of the third chapter: a cell that prints and draws, and one whose drawing scrolls."""
    wide, narrow = (png(np.full((20, across, 4), across, np.uint8)) for across in (90, 40))
    text = {key: base64.b64encode(value).decode() for key, value in (("wide", wide), ("narrow", narrow))}
    about = {"image": {"alt": "What is seen."}, "figure": {"name": "fig-a", "caption": "What to *notice*."}}
    cells = []
    for extra in ({"png": text["narrow"], "width": COLUMN, "labels": 10}, {"scroll": 700}):
        data = {"image/png": text["wide"], "text/plain": "<Figure>", MIME: extra}
        cell = nbformat.v4.new_code_cell("draw()", metadata={"mystnb": about} if "png" in extra else {})
        cell.outputs = [
            nbformat.v4.new_output("stream", text="printed\n"),
            nbformat.v4.new_output("display_data", data, metadata={"image/png": {"width": 45, "height": 10}}),
        ]
        cells.append(cell)
    head = nbformat.v4.new_markdown_cell("# A chapter\n\nLook at {numref}`fig-a`.")
    known = {"language_info": {"name": "python", "pygments_lexer": "python"}}
    notebook = nbformat.v4.new_notebook(cells=[head, *cells], metadata=known)
    nbformat.write(notebook, tmp_path / "03_page.ipynb")
    (tmp_path / "conf.py").write_text(
        "extensions = ['myst_nb', 'vit_book.figures', 'vit_book.numbering']\nroot_doc = '03_page'\n"
        "nb_execution_mode = 'off'\nnumfig = True\nnumfig_format = {'figure': 'Figure %s'}\n",
        encoding="utf-8",
    )
    warnings = io.StringIO()
    with docutils_namespace():
        out = tmp_path / "out"
        Sphinx(tmp_path, tmp_path, out, tmp_path / "trees", "html", status=None, warning=warnings).build()
    assert not warnings.getvalue()
    return out, (out / "03_page.html").read_text(encoding="utf-8")


def test_a_page_chooses_the_picture_by_its_width_and_numbers_the_caption_by_chapter(page):
    out, html = page
    figure = re.search(r"<figure.*?</figure>", html, re.DOTALL)[0]
    source = re.search(
        r'<picture><source media="\(max-width: 600px\)" srcset="(\S+)" width="358" height="179">', figure
    )
    assert Image.open(out / source[1]).width == 40
    image = re.search(r'<img alt="What is seen." class="no-scaled-link" src="(\S+)"', figure)
    assert f'<a class="reference internal image-reference" href="{image[1]}"><picture><source' in figure
    assert Image.open(out / image[1]).width == 90
    assert re.search(r"<figcaption>.*Figure 3\.1 .*What to <em>notice</em>\.", figure, re.DOTALL)
    assert re.search(r'href="#fig-a".*Figure 3\.1<', html)
    assert html.count("printed") == 2
    assert '<div class="scrolls" tabindex="0" style="--readable: 700px"><a class="reference' in html
