"""Figures show the data they are given, on the Axes they are given."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from contrast import contrast
from matplotlib import font_manager
from scipy.stats import ttest_1samp

from vit_from_scratch import InputError, examples, plots


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def test_functions_draw_on_the_axes_they_are_given_and_return_them():
    _, ax = plt.subplots()
    assert plots.image(examples.photo(32), ax) is ax
    assert plots.patch_mosaic(examples.photo(32), 8, ax) is ax
    assert plots.matrix(torch.eye(3), ax, numbers=".1f", colorbar="value") is ax
    assert plots.curves({"a": [1.0, 2.0]}, ax) is ax


@pytest.mark.parametrize("limits", [(0.0, 1.0), (-1.0, 1.0)])
def test_numbers_in_squares_stand_out_from_every_shade(limits):
    """4.5:1, which black or white always reaches: where one has less, the other has more."""
    values = torch.linspace(*limits, 101)[None]
    ax = plots.matrix(values, numbers=".2f", limits=limits)
    [image] = ax.images
    shades = image.cmap(image.norm(values[0].numpy()))
    found = [contrast(text.get_color(), shade) for text, shade in zip(ax.texts, shades, strict=True)]
    assert min(found) >= 4.5


def test_the_mosaic_holds_every_patch_once():
    ax = plots.patch_mosaic(examples.tiny_image(), 2)
    shown = [picture.get_array() for picture in ax.images]
    assert [patch.tolist() for patch in shown][1] == [[2.0, 3.0], [6.0, 7.0]]
    assert len(shown) == 4
    left, right = (picture.get_extent() for picture in plots.patch_mosaic(torch.zeros(1, 4, 8), 4).images)
    assert left == [0, 4, 4, 0]
    assert right == pytest.approx([4.6, 8.6, 4, 0])


def test_a_matrix_with_negative_values_is_centred_at_zero():
    limits = plots.matrix(torch.tensor([[-1.0, 3.0]])).images[0].get_clim()
    assert limits == (-3.0, 3.0)


def test_curves_are_numbered_from_one():
    ax = plots.curves({"loss": [3.0, 2.0, 1.0]})
    assert ax.lines[0].get_xydata().tolist() == [[1, 3], [2, 2], [3, 1]]


def test_images_wrap_into_rows():
    assert plots.image_row(torch.rand(10, 1, 8, 8), columns=4).shape == (3, 4)
    with pytest.raises(InputError, match="no pictures: expected one or more"):
        plots.image_row([])


def test_a_picture_of_another_shape_is_refused():
    with pytest.raises(InputError, match=r"shape \(5, 8, 8\): expected \(C, H, W\) with 1 or 3 channels"):
        plots.image(torch.zeros(5, 8, 8))


def test_the_style_is_transparent_for_both_themes():
    plots.use_style()
    assert plt.rcParams["figure.facecolor"] == plt.rcParams["savefig.facecolor"] == "none"


GROUNDS = ("#ffffff", "#12161b")  # of pages, light and dark


@pytest.mark.parametrize("ground", GROUNDS)
def test_lines_stand_out_from_white_and_from_dark_pages(ground):
    names = ("BLUE", "ORANGE", "GREEN", "PINK", "SKY", "RED", "GREY")
    colours = [getattr(plots, name) for name in names]
    assert min(contrast(colour, ground) for colour in colours) >= 3


def test_texts_can_be_read_on_white_and_on_dark_pages():
    """No grey has 4.5:1 on both: 4.26 is the most that there is."""
    assert min(contrast(plots.GREY, ground) for ground in GROUNDS) >= 4.25
    plots.use_style()
    texts = (
        "axes.labelcolor",
        "axes.titlecolor",
        "legend.labelcolor",
        "text.color",
        "xtick.color",
        "ytick.color",
    )
    assert {plt.rcParams[text] for text in texts} == {plots.GREY}


def test_no_line_runs_through_a_legend_that_stands_beside_or_above():
    figure, axes = plt.subplots(2, 2, layout="constrained")
    axes[0, 0].plot([0, 1], label="a line")
    plots.legend_beside(axes[0, 0], title="title")
    plots.attention_distance(torch.rand(3, 2), axes[0, 1], "model", uniform=1.0)
    for label in ("one", "another"):
        axes[1, 0].plot([0, 1], label=label)
    plots.legend_above(axes[1, 0])
    plots.curves({"one": [1.0], "another": [2.0]}, axes[1, 1])
    figure.canvas.draw()
    for ax in axes.flat:
        assert not ax.get_legend().get_window_extent().overlaps(ax.patch.get_window_extent())


def test_figures_of_inspection_draw_on_the_axes_they_are_given_and_return_them():
    _, ax = plt.subplots()
    photo = examples.photo(32)[0]
    assert plots.attention_overlay(photo, torch.rand(4, 4), ax) is ax
    assert plots.attention_distance(torch.rand(3, 2), ax, "model", uniform=1.0) is ax
    assert plots.position_similarity(torch.rand(2, 3, 2, 3), ax) is ax
    assert plots.attention_grid(photo, torch.rand(2, 3, 4, 4), ["1", "2"], ["a", "b", "c"]).shape == (2, 3)
    assert plots.filters(torch.randn(5, 3, 4, 4), columns=3).shape == (2, 3)


def test_a_grid_of_maps_has_layers_as_rows_and_heads_as_columns():
    maps = torch.rand(2, 3, 4, 4)
    axes = plots.attention_grid(torch.zeros(3, 8, 8), maps)
    for layer, head in np.ndindex(2, 3):
        _, heat = axes[layer, head].images
        _, alone = plots.attention_overlay(torch.zeros(3, 8, 8), maps[layer, head]).images
        assert np.array_equal(heat.get_array(), alone.get_array())


def test_filters_are_stretched_around_a_grey_of_zero():
    kernels = torch.tensor([[[[-2.0, 0.0], [1.0, 2.0]]], [[[0.0, 0.5], [0.0, 0.25]]]])
    shown = [ax.images[0].get_array().squeeze().tolist() for ax in plots.filters(kernels).flat]
    assert shown == [[[0, 0.5], [0.75, 1]], [[0.5, 1], [0.5, 0.75]]]


def test_the_mean_attention_distance_is_a_solid_line_whichever_model_is_drawn_first():
    plots.use_style()  # its lines are dashed in turn
    _, ax = plt.subplots()
    for label in ("untrained", "trained", "another"):
        plots.attention_distance(torch.rand(3, 2), ax, label)
    assert [line.get_linestyle() for line in ax.lines] == ["-"] * 3


def test_the_band_around_a_layers_mean_distance_is_students_interval_over_its_heads():
    distances = torch.tensor([[1.0, 3.0, 8.0], [2.0, 2.0, 2.0]])
    ax = plots.attention_distance(distances)
    corners = ax.collections[-1].get_paths()[0].vertices
    low, high = ttest_1samp(distances[0].numpy(), 0).confidence_interval()
    of_first = corners[corners[:, 0] == 1, 1]
    assert [of_first.min(), of_first.max()] == pytest.approx([low, high])
    assert len(plots.attention_distance(distances[:, :1]).collections) == 1  # one head has no interval


def test_an_overlay_shows_shares_of_the_largest_attention_over_a_photo_that_stays_visible():
    attention = torch.zeros(2, 2)
    attention[0, 1] = 0.3
    photo, heat = plots.attention_overlay(torch.zeros(3, 8, 8), attention).images
    assert heat.get_array()[0, -1] == pytest.approx(1)
    assert heat.get_array()[-1, 0] == 0
    assert heat.get_clim() == (0, 1)
    assert 0 < heat.get_alpha() < 1  # the photo can be seen through it
    assert photo.get_array().min() > 0.2  # even a black one is not black


def test_an_overlay_turns_a_batch_of_one_grey_as_it_does_a_photo():
    picture = torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    drawn = [
        plots.attention_overlay(one, torch.rand(2, 2)).images[0].get_array() for one in (picture, picture[0])
    ]
    assert np.array_equal(*drawn)
    assert np.ptp(drawn[0], axis=-1).max() < 1e-6


def test_each_photo_has_a_row_with_what_was_seen_and_answered():
    photos, seen, answer = (torch.full((2, 3, 4, 4), share) for share in (0.25, 0.5, 0.75))
    axes = plots.masked_rows(photos, seen, answer)
    shown = [[float(ax.images[0].get_array().mean()) for ax in row] for row in axes]
    assert shown == [[0.25, 0.5, 0.75]] * 2
    assert [ax.get_title() for ax in axes.flat] == ["photo", "seen", "answer", "", "", ""]


def test_grey_pictures_in_a_row_are_as_dark_as_they_are():
    photos = torch.rand(1, 1, 4, 4)
    axes = plots.masked_rows(photos, photos, 0.5 + 0.01 * photos)
    assert [ax.images[0].get_clim() for ax in axes[0]] == [(0, 1)] * 3


@pytest.mark.parametrize("seen", [torch.zeros(1, 3, 4, 4), torch.zeros(2, 3, 4, 8)])
def test_pictures_of_other_photos_are_refused(seen):
    photos = torch.zeros(2, 3, 4, 4)
    with pytest.raises(InputError, match=r"pictures of shapes \(2, 3, 4, 4\), .*expected three times"):
        plots.masked_rows(photos, seen, photos)
    with pytest.raises(InputError, match=r"shapes \(0, 3, 4, 4\)"):
        plots.masked_rows(photos[:0], photos[:0], photos[:0])


def test_answers_are_bars_of_the_likeliest_classes_from_the_top():
    picture, bars = plots.answers(examples.photo(16), torch.tensor([0.1, 0.6, 0.3]), "abc", count=2)
    assert len(picture.images) == 1
    assert [bar.get_width() for bar in bars.patches] == pytest.approx([60, 30])
    assert [label.get_text() for label in bars.get_yticklabels()] == ["b", "c"]
    assert [text.get_text() for text in bars.texts] == ["60%", "30%"]
    assert bars.yaxis_inverted()


def test_answers_want_a_chance_for_each_name():
    with pytest.raises(
        InputError, match=r"probabilities of shape \(1, 3\) for 3 names: .* without the axis of the"
    ):
        plots.answers(examples.photo(16), torch.rand(1, 3), "abc")


def test_similarity_maps_stand_in_their_patches_places():
    similarity = torch.arange(36.0).reshape(2, 3, 2, 3) / 36
    shown = plots.position_similarity(similarity).images[0].get_array()
    assert shown[0:2, 4:7].tolist() == similarity[0, 1].tolist()
    assert shown[3:5, 8:11].tolist() == similarity[1, 2].tolist()


@pytest.mark.parametrize("weight", ["normal", "bold"])
def test_figures_are_set_in_the_typeface_that_ships(weight):
    plots.use_style()
    found = Path(font_manager.findfont(font_manager.FontProperties(weight=weight), fallback_to_default=False))
    assert found.parent == Path(plots.__file__).parent / "fonts"
    assert font_manager.get_font(found).style_name.lower() == {"normal": "regular"}.get(weight, weight)


def test_chapters_leave_the_place_of_a_legend_to_the_package():
    """Inside the axes grid lines and curves would cross it."""
    notebooks = Path(__file__).resolve().parents[1] / "notebooks"
    sources = {path.name: path.read_text(encoding="utf-8") for path in sorted(notebooks.glob("*.md"))}
    assert any("plots.legend_beside(" in source for source in sources.values())
    assert [name for name, source in sources.items() if ".legend(" in source] == []


@pytest.mark.parametrize("draw", [plots.image, lambda pictures: plots.patch_mosaic(pictures, 8)])
@pytest.mark.parametrize("count", [0, 8])
def test_a_batch_of_several_is_not_taken_for_its_first(draw, count):
    with pytest.raises(InputError, match=rf"shape \({count}, 3, 32, 32\): expected \(C, H, W\)"):
        draw(torch.rand(count, 3, 32, 32))
