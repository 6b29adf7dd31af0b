"""The measure of contrast that tests of figures and pages share agrees with published examples."""

import pytest
from contrast import contrast


def test_contrast_is_that_of_the_standard():
    assert contrast("#000000", "#ffffff") == contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(
        4.48, abs=0.005
    )  # WebAIM's example that just fails
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)  # WCAG's own


def test_one_grey_reaches_at_most_the_root_of_what_the_grounds_have():
    assert contrast("#ffffff", "#12161b") ** 0.5 == pytest.approx(4.26, abs=0.01)
