"""`vit predict` and `vit inspect`, on the shipped model and made pictures."""

import os
import shutil

import pytest
import torch
from complaints import done, failed
from PIL import Image
from torchvision.transforms import v2

from vit_classroom.checks.report import randomise
from vit_from_scratch.data.normalisation import NORMALISATIONS
from vit_from_scratch.examples import photo
from vit_lab.cli import main
from vit_lab.runs.trained_models import open_model


@pytest.fixture
def cat(tmp_path):
    pixels = (255 * photo(200)[0]).round().byte().permute(1, 2, 0).numpy()
    Image.fromarray(pixels).save(tmp_path / "cat.jpg")
    return tmp_path / "cat.jpg"


def test_predict_prints_the_top_classes_with_probabilities(cat, capsys):
    line = done(capsys, "predict", str(cat), "--top", "200").strip()
    shares = [float(part.split()[-1].rstrip("%")) for part in line.split(": ")[1].split(", ")]
    assert line.startswith(f"{cat}: ")
    names = [part.rsplit(maxsplit=1)[0] for part in line.split(": ")[1].split(", ")]
    assert {"tabby", "Egyptian cat"} == set(names[:2])
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(100, abs=4)  # 200 rounded numbers, most of them to 0


def test_predict_reads_the_other_pictures_when_one_cannot_be(cat, tmp_path, capsys):
    (tmp_path / "bad.png").write_text("no picture")
    assert main(["predict", str(tmp_path / "bad.png"), str(cat)]) == 2
    out, err = capsys.readouterr()
    assert str(cat) in out
    assert "bad.png is not a picture" in err


def test_inspect_writes_every_figure(cat, tmp_path, capsys):
    assert main(["inspect", str(cat), "--out", str(tmp_path / "figures")]) == 0
    names = sorted(os.listdir(tmp_path / "figures"))
    assert names == [
        "attention_distance.png",
        "class_token_attention.png",
        "embedding_filters.png",
        "position_similarity.png",
        "rollout.png",
        "token_path.png",
        "where_patches_look.html",
    ]
    printed = capsys.readouterr().out.split()
    assert sorted(os.path.basename(line) for line in printed) == names


def test_a_model_of_grey_images_gets_grey_ones(cat, saved, tmp_path, capsys):
    grey = ["--weights", saved(patch_size=2, channels=1, dim=16, depth=2)]
    assert "class 0 33.3%" in done(capsys, "predict", str(cat), *grey), "a zero head knows nothing"
    assert main(["inspect", str(cat), *grey, "--out", str(tmp_path / "figures")]) == 0
    assert "embedding_filters.png" in os.listdir(tmp_path / "figures")


def test_a_runs_model_gets_pictures_scaled_as_in_the_run(saved, tmp_path):
    assert open_model(saved("model.safetensors")).scaling == NORMALISATIONS["half"]
    (tmp_path / "config.toml").write_text(
        '[data]\nname = "imagenette"\nnormalisation = "imagenet"\n[model]\n[train]\n[images]\nclasses = []\n'
    )
    assert open_model(str(tmp_path)).scaling == NORMALISATIONS["imagenet"]


def test_predict_scales_a_picture_colour_by_colour_as_torchvision_does(saved, save_photo, tmp_path, capsys):
    saved(change=randomise)
    shutil.move(tmp_path / "start.safetensors", tmp_path / "model.safetensors")
    (tmp_path / "config.toml").write_text(
        '[data]\nname = "imagenette"\nnormalisation = "imagenet"\n[model]\n[train]\n[images]\nclasses = []\n'
    )
    path = save_photo(tmp_path / "a.png", (8, 8), seed=2)
    image = v2.functional.to_dtype(v2.functional.pil_to_tensor(Image.open(path)), scale=True)
    model = open_model(str(tmp_path)).model
    scaled = v2.functional.normalize(image, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    shares = model(scaled[None]).softmax(dim=1)[0]
    said = done(capsys, "predict", str(path), "--weights", str(tmp_path))
    assert all(f"{share:.1%}" in said for share in shares.tolist())
    assert not all(f"{share:.1%}" in said for share in model(2 * image[None] - 1).softmax(dim=1)[0].tolist())


def test_inspect_takes_models_of_your_own(cat, saved, tmp_path, capsys):
    bare = {"class_token": False, "pool": "gap", "position": "none", "stem": "conv"}
    own = saved(image_size=16, depth=2, **bare)
    out = tmp_path / "figures"
    assert main(["inspect", str(cat), "--weights", own, "--out", str(out)]) == 0
    assert "no class token, so class_token_attention.png is left out" in capsys.readouterr().err
    assert sorted(os.listdir(out)) == [
        "attention_distance.png",
        "rollout.png",
        "token_path.png",
        "where_patches_look.html",
    ]


def test_inspect_leaves_pictures_that_are_there_alone(cat, tmp_path, capsys):
    (tmp_path / "rollout.png").write_text("mine")
    (tmp_path / "own").mkdir()
    assert "rollout.png exists: expected no such file" in failed(capsys, "inspect", cat, "--out", tmp_path)
    assert "is a file: expected a folder" in failed(capsys, "inspect", cat, "--out", cat)
    assert (tmp_path / "rollout.png").read_text() == "mine"
    assert sorted(os.listdir(tmp_path)) == ["cat.jpg", "own", "rollout.png"]


def test_a_model_of_two_classes_prints_both(cat, saved, capsys):
    two = saved(num_classes=2)
    assert done(capsys, "predict", str(cat), "--weights", two).count("class ") == 2
    assert "--top 3: expected 1 to 2" in failed(capsys, "predict", cat, "--weights", two, "--top", 3)


def test_weights_that_are_not_finite_are_refused(cat, saved, tmp_path, capsys):
    def spoil(model, value):
        with torch.no_grad():
            model.head.weight[0, 0] = value

    spoilt = saved(change=lambda model: spoil(model, torch.nan))
    message = failed(capsys, "predict", cat, "--weights", spoilt)
    assert "start.safetensors holds values that are not finite: expected a trained model" in message
    assert "not finite" in failed(capsys, "inspect", cat, "--weights", spoilt, "--out", tmp_path / "figures")
    huge = saved(change=lambda model: model.head.weight.data.fill_(3e38))
    assert "gives probabilities that are not finite" in failed(capsys, "predict", cat, "--weights", huge)


def test_a_line_of_millions_of_pixels_is_a_picture(tmp_path, capsys):
    Image.new("L", (3_000_000, 1), 200).save(tmp_path / "line.png")
    assert main(["predict", str(tmp_path / "line.png")]) == 0


def test_a_picture_that_is_nearly_black_is_a_picture(cat, tmp_path, capsys):
    Image.new("L", (64, 64), 1).save(tmp_path / "mask.png")
    assert done(capsys, "predict", str(tmp_path / "mask.png"), str(cat)).count("%") == 6
    assert main(["inspect", str(tmp_path / "mask.png"), "--out", str(tmp_path / "figures")]) == 0
