"""The measure of contrast that tests of figures and pages share agrees with published examples."""

import pytest
from contrast import contrast


def test_contrast_is_that_of_the_standard():
    assert contrast("#000000", "#ffffff") == contrast("#ffffff", "#000000") == pytest.approx(21)
    just_fails, just_passes = "#777777", "#767676"  # examples of WebAIM's and of WCAG's own
    assert contrast(just_fails, "#ffffff") == pytest.approx(4.48, abs=0.005)
    assert contrast(just_passes, "#ffffff") == pytest.approx(4.54, abs=0.01)
