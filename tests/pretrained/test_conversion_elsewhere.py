"""Converting makes no tensor on the CPU while a model's weights are elsewhere."""

import pytest
import timm
import torch
import torchvision
import transformers
from torch._subclasses.fake_tensor import DataDependentOutputException, unset_fake_temporarily

import vit_from_scratch.pretrained.timm as of_timm
import vit_from_scratch.pretrained.torchvision as of_torchvision
import vit_from_scratch.pretrained.transformers as of_transformers
from vit_from_scratch import VisionTransformer


@pytest.fixture(autouse=True)
def _drawn_for_real(monkeypatch):
    """A new model is drawn as ever: its drawing looks at numbers, which tensors elsewhere have not."""

    def build(config):
        with unset_fake_temporarily():
            return VisionTransformer(config)

    monkeypatch.setattr("vit_from_scratch.pretrained.conversion.VisionTransformer", build)


def timm_model():
    sizes = {"img_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 3, "num_classes": 7}
    return timm.models.vision_transformer.VisionTransformer(**sizes, no_embed_class=True)


def torchvision_model():
    return torchvision.models.VisionTransformer(32, 8, 2, 3, 24, 48, representation_size=12)


def transformers_model():
    sizes = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 48}
    config = transformers.ViTConfig(**sizes, image_size=32, patch_size=8, hidden_act="gelu")
    return transformers.ViTForImageClassification(config)


@pytest.mark.parametrize(
    ("module", "convert", "build"),
    [
        (of_timm, "from_timm", timm_model),
        (of_torchvision, "from_torchvision", torchvision_model),
        (of_transformers, "from_transformers", transformers_model),
    ],
)
def test_a_model_is_converted_on_its_device(elsewhere, monkeypatch, module, convert, build):
    """Until the logits of the two models are compared, both of them computed: numbers there are none."""
    proved = module.proved

    def looking_on(ours, theirs, library):
        assert {tensor.device for tensor in ours.state_dict().values()} == {torch.device("meta")}
        return proved(ours, theirs, library)

    monkeypatch.setattr(module, "proved", looking_on)
    theirs = build()
    with elsewhere() as device, pytest.raises(DataDependentOutputException, match="_local_scalar_dense"):
        getattr(module, convert)(theirs.to(device))
