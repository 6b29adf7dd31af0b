"""Commands show how far they are, in a terminal only."""

import pytest
import torch
from PIL import Image

from vit_from_scratch import VisionTransformer, ViTConfig
from vit_from_scratch.model.checkpoints import save_checkpoint
from vit_lab.bars import images_with_bar, say, with_bar
from vit_lab.cli import main
from vit_lab.probes import Frozen
from vit_lab.runs.trained_models import TrainedModel


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("VIT_PROGRESS", "1")


def test_items_come_as_they_are_and_the_bar_counts_what_each_stands_for(terminal, capsys):
    batches = [(torch.zeros(n, 1), torch.zeros(n)) for n in (3, 4)]
    assert list(images_with_bar(iter(batches), 7, "measuring")) == batches
    out, err = capsys.readouterr()
    assert out == ""
    assert "measuring:   0%" in err
    assert "| 0/7 [" in err
    assert "images/s]" in err
    assert err.endswith("\r"), "the bar is gone"


@pytest.mark.parametrize(("wish", "total"), [("0", 2), ("1", 1), (None, 2)])
def test_elsewhere_and_for_a_single_item_there_is_no_bar(wish, total, monkeypatch, capsys):
    monkeypatch.delenv("VIT_PROGRESS", raising=False)
    if wish is not None:
        monkeypatch.setenv("VIT_PROGRESS", wish)
    assert list(with_bar("ab", total, "naming", "pictures")) == ["a", "b"]
    assert capsys.readouterr() == ("", "")


def test_what_is_said_meanwhile_stands_alone_on_the_standard_output(terminal, capsys):
    for letter in with_bar("ab", 2, "naming", "letters"):
        say(letter)
    assert capsys.readouterr().out == "a\nb\n"


def test_predict_and_features_show_a_bar(terminal, tmp_path, capsys):
    model = VisionTransformer(ViTConfig(8, 4, dim=8, depth=1, heads=2, mlp_dim=8, num_classes=3))
    save_checkpoint(tmp_path / "a.safetensors", model)
    pictures = [tmp_path / "a.png", tmp_path / "b.png"]
    for picture in pictures:
        Image.new("RGB", (8, 8)).save(picture)
    assert main(["predict", *map(str, pictures), "--weights", str(tmp_path / "a.safetensors")]) == 0
    out, err = capsys.readouterr()
    assert [line.partition(": ")[0] for line in out.splitlines()] == [str(path) for path in pictures]
    assert "naming:   0%" in err
    assert "0/2 [" in err
    Frozen(TrainedModel("a", model, ("a", "b", "c"), None), "digits").features("test")
    assert "test features:   0%" in capsys.readouterr().err
