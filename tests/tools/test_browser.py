"""The browser that looks at pages and prints them."""

import re

import browser
import pytest
from project_facts import ROOT


def put(folder, name):
    program = folder / name
    program.touch()
    program.chmod(0o755)
    return str(program)


def test_the_browser_without_a_window_is_taken_before_one_with(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert browser.find_browser() is None
    chrome = put(tmp_path, "google-chrome")
    assert browser.find_browser() == chrome
    shell = put(tmp_path, "chromium-headless-shell")
    assert browser.find_browser() == shell


@pytest.mark.parametrize("name", ["Makefile", ".ci/run"])
def test_make_and_ci_look_for_the_same_browsers(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    [listed] = re.findall(r"command -v ([a-z -]*chrom[a-z -]*) >", text)
    assert tuple(listed.split()) == browser.BROWSERS
    assert f'"error: {browser.NONE_HERE}"' in text
