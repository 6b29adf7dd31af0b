"""Converting makes no tensor on the CPU while a model's weights are elsewhere."""

import pytest
import timm
import torch
import torchvision
from torch._subclasses.fake_tensor import DataDependentOutputException

from vit_from_scratch.pretrained import conversion, from_timm, from_torchvision


def timm_model():
    sizes = {"img_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 3, "num_classes": 7}
    return timm.models.vision_transformer.VisionTransformer(**sizes, no_embed_class=True)


def torchvision_model():
    return torchvision.models.VisionTransformer(32, 8, 2, 3, 24, 48, representation_size=12)


@pytest.mark.parametrize(
    ("convert", "build"),
    [
        (from_timm, timm_model),
        (from_torchvision, torchvision_model),
    ],
)
def test_a_model_is_converted_on_its_device(elsewhere, monkeypatch, convert, build):
    """Until the logits of the two models are compared, both of them computed: numbers there are none."""
    proved = conversion.proved

    def looking_on(ours, theirs, library):
        assert {tensor.device for tensor in ours.state_dict().values()} == {torch.device("meta")}
        return proved(ours, theirs, library)

    monkeypatch.setattr(conversion, "proved", looking_on)
    theirs = build()
    with elsewhere() as device, pytest.raises(DataDependentOutputException, match="_local_scalar_dense"):
        convert(theirs.to(device))
