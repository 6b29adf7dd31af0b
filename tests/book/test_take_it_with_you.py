"""The code of the page "Take it with you" runs, and does what the page says."""

import re
import shutil
from pathlib import Path

import torch

from vit_from_scratch.pretrained import class_names, load_pretrained
from vit_lab.cli import main

BOOK = Path(__file__).resolve().parents[2] / "book"
PAGE = BOOK / "take_it_with_you.md"


def blocks():
    return re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def test_a_model_answers_for_files_as_the_page_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("one.jpg", "two.jpg"):
        shutil.copy(BOOK / "_static/vit/photos/cat.jpg", name)
    exec(blocks()[0].replace('"RUN"', '"tiny-imagenet"'), {})
    assert capsys.readouterr().out.strip() == "['tabby', 'tabby']"
    assert main(["predict", "one.jpg", "--weights", "tiny-imagenet"]) == 0
    assert "tabby" in capsys.readouterr().out


def test_the_exported_model_names_classes_as_the_page_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    _, onnx, timm = blocks()
    assert main(["export", "cifar10"]) == 0
    capsys.readouterr()
    shutil.copy(BOOK / "_static/vit/photos/cat.jpg", "photo.jpg")
    found: dict = {}
    exec(onnx, found)  # the page's own code
    images = torch.from_numpy(found["images"])
    with torch.no_grad():
        logits = load_pretrained("cifar10")(2 * images - 1)
    assert torch.allclose(torch.from_numpy(found["logits"]), logits, atol=1e-4)
    said = str([class_names("cifar10")[k] for k in logits.argmax(dim=1)])
    assert capsys.readouterr().out.strip() == said
    exec(timm, found)
    scaled = 2 * torch.rand(2, 3, 64, 64) - 1
    with torch.no_grad():
        assert torch.allclose(found["theirs"](scaled), load_pretrained("tiny-imagenet")(scaled), atol=1e-4)
