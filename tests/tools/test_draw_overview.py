"""The pictures of the landing page say what the shipped model says, and name nothing that is not there."""

import re
from xml.etree import ElementTree

import draw_overview
import pytest
import torch

from vit_from_scratch import examples
from vit_from_scratch.pretrained import class_names, input_scaling, load_pretrained

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(params=draw_overview.FILES)
def picture(request):
    return ElementTree.parse(draw_overview.STATIC / request.param).getroot()


def test_a_picture_is_an_image_with_a_name(picture):
    assert picture.get("role") == "img"
    assert len(picture.get("aria-label")) > 20


def test_what_a_picture_refers_to_is_in_it_once(picture):
    identities = [node.get("id") for node in picture.iter() if node.get("id")]
    text = ElementTree.tostring(picture, encoding="unicode")
    named = set(re.findall(r'(?:url\(|href=")#([\w-]+)', text))
    assert len(identities) == len(set(identities))
    assert named == set(identities)


def test_two_pictures_of_one_page_share_no_identity():
    both = [ElementTree.parse(draw_overview.STATIC / name).getroot() for name in draw_overview.FILES[:2]]
    wide, narrow = ({node.get("id") for node in picture.iter()} - {None} for picture in both)
    assert not wide & narrow


@pytest.mark.parametrize("name", draw_overview.FILES[:2])
def test_the_answers_are_those_of_the_shipped_model(name):
    model = load_pretrained("tiny-imagenet")
    photo = examples.photo(model.config.image_shape[0])
    with torch.no_grad():
        chances = model(input_scaling("tiny-imagenet")(255 * photo)).softmax(dim=-1)[0]
    expected = [
        f"{class_names('tiny-imagenet')[index]}  {chances[index]:.0%}"
        for index in chances.topk(4).indices.tolist()
    ]
    texts = [node.text for node in ElementTree.parse(draw_overview.STATIC / name).iter(f"{SVG}text")]
    assert [text for text in texts if text.endswith("%")] == expected


def test_a_stale_picture_is_found(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["draw_overview.py", "--check"])
    assert draw_overview.main() == 0
    monkeypatch.setattr(draw_overview, "WEIGHTS", draw_overview.RESULTS)
    assert draw_overview.main() == 1
    assert "overview.svg is stale" in capsys.readouterr().err
