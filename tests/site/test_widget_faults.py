"""Each widget's own tests are seen to fail when its module is wrong in one place."""

import json
from inspect import signature

import pytest
import test_chapter_widgets as chapters
import test_cost_widget as costs
import test_digit as digits
import test_guess as guesses
import test_hunt as hunts
import test_masked as masked
import test_part_3_widgets as part_3
import test_playground as playground
from widgets import FOLDER, MODULES, come_near

from vit_from_scratch.data.photos import load_photo
from vit_lab.runs.trained_models import open_model

pytestmark = pytest.mark.site

# A module, what stands in it once, what comes instead, and a test that must notice.
FAULTS = [
    ("patches", "(row * SIDE + column) * 3", "(column * SIDE + row) * 3",
     chapters.test_numbers_stand_where_patchify_puts_them),
    ("positions", "forward(this.pixels, this.changes)", "forward(this.pixels, { shuffle })",
     chapters.test_what_chapter_2_says_of_positions),
    ("waves", "10_000 **", "1_000 **", chapters.test_the_waves_are_those_of_the_packages_positions),
    ("attention", "dot(q, this.part(1, token))", "dot(q, this.part(0, token))",
     chapters.test_scores_and_the_mixture_are_the_packages),
    ("wirings", "norm(add(z, f(z)))", "add(z, norm(f(z)))",
     chapters.test_a_wiring_does_to_tokens_what_the_chapters_does),
    ("answers", "likeliest(shares, 5)", "likeliest(shares, 4)",
     chapters.test_the_five_answers_are_the_packages),
    ("run", "shares.indexOf(Math.max", "shares.indexOf(Math.min",
     chapters.test_each_epoch_is_told_as_it_was_kept),
    ("masked", "column)) === 1", "column)) <= 2", masked.test_colours_and_neighbours_are_the_packages),
    ("guess", "(at - was) * (at - x) <= 0", "i === nearest",
     guesses.test_each_dot_lies_where_the_stroke_went_over_it),
    ("hunt", "!by !== !is", "!by === !is", hunts.test_what_speaks_against_a_suspect_is_said),
    ("window", "stride === 1 ? 1 : 0", "1", chapters.test_the_window_is_where_the_gradient_is),
    ("cost", "depth * inBlock + end", "depth * inBlock", costs.test_every_number_is_the_packages),
    ("explorer", "if (!many) this.before", "this.before",
     part_3.test_a_click_hides_a_patch_and_words_say_what_becomes_of_the_answer),
    ("heads", "forward(pixels, { erase })", "forward(pixels)",
     part_3.test_a_click_hides_a_patch_and_words_say_what_becomes_of_the_answer),
    ("reach", "(patch % columns) + 0.5", "(patch % columns) + 1",
     part_3.test_the_circle_follows_the_pointer_and_the_chart_chooses_a_head),
    ("similarity", "/ lengths[i] / lengths[j]", "/ lengths[i]",
     part_3.test_cosines_are_the_packages_in_all_tables),
    ("filters", " / std[i % 3]", "", part_3.test_values_are_those_of_the_patch_embedding_at_each_step),
    ("digit", "[right, down][i]", "[down, right][i]", digits.test_a_digit_is_moved_thickened_and_put_back),
    ("photo", "this.token = place + 1", "this.token = place", playground.test_the_keyboard_does_all_of_it),
    ("looking", "(i % (T + 1) === 0)) / whole", "(i % (T + 1) === 0)) / 3",
     playground.test_rollout_and_distances_are_the_packages),
    ("parts", "ArrowRight: [0, 1]", "ArrowRight: [0, -1]", chapters.test_keys_choose_a_patch_and_read_shares),
]  # fmt: skip


def given(test, page, book):
    """What a test asks for, by name."""
    trained = open_model("tiny-imagenet")
    whatever = {
        "page": lambda: page,
        "book": lambda: book,
        "trained": lambda: trained,
        "cat": lambda: trained.scaling(255 * load_photo(FOLDER / "photos/cat.jpg", (64, 64))[None]),
        "run": lambda: json.loads((FOLDER / "digits-run.json").read_text(encoding="utf-8")),
        "pad": lambda: digits.opened(page, book),
        "playground": lambda: playground.opened(page, book),
        "size": lambda: 32,
        "steps": lambda: 2,
        "back": lambda: False,
        "place": lambda: 1,
        "waves": lambda: 12,
        "units": lambda: 4,
        "stem": chapters.new_stem,
        "bugs": hunts.planted,
        **{
            name: lambda name=name: come_near(page, book, name)
            for name in ("hunt", "reach", "similarity", "filters")
        },
    }
    return {name: whatever[name]() for name in signature(test).parameters}


def test_every_widget_has_a_fault():
    assert {*MODULES.values(), "digit", "photo"} <= {module for module, *_ in FAULTS}


@pytest.mark.parametrize(("module", "what", "instead", "test"), FAULTS, ids=[fault[0] for fault in FAULTS])
def test_a_planted_fault_is_noticed(module, what, instead, test, page, book):
    program = (FOLDER / f"{module}.js").read_text(encoding="utf-8")
    assert program.count(what) == 1
    faulty = {"body": program.replace(what, instead), "content_type": "text/javascript"}
    page.route(f"**/vit/{module}.js", lambda route: route.fulfill(**faulty))
    arguments = given(test, page, book)
    with pytest.raises(AssertionError):
        test(**arguments)
