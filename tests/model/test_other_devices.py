"""Nothing in the model makes a tensor on the CPU while its weights and images are elsewhere."""

import pytest
import torch

from vit_from_scratch import VisionTransformer, ViTConfig

SIZES = {
    "image_size": (16, 24),
    "patch_size": 4,
    "dim": 16,
    "depth": 2,
    "heads": 2,
    "mlp_dim": 24,
    "num_classes": 5,
}
KINDS = {
    "learned positions": {},
    "row and column positions": {"position": "learned_2d"},
    "fixed positions": {"position": "sincos_2d"},
    "fixed positions, no class token": {"position": "sincos_2d", "class_token": False, "pool": "gap"},
    "no positions": {"position": "none"},
    "average pooling, norm after it": {"pool": "gap", "norm": "pooled"},
    "no norm, a hidden layer": {"norm": "none", "representation_size": 12},
    "conv stem": {"stem": {"kind": "conv", "width": 4}},
    "hybrid": {"stem": {"kind": "resnet", "width": 8, "layers": (1, 2, 1), "root_stride": 1}},
    "hybrid, large root": {"stem": {"kind": "resnet", "width": 8, "layers": (1,)}},
    "local MLP": {"mlp": "local"},
    "dropout and stochastic depth": {"dropout": 0.1, "stochastic_depth": 0.2, "gelu": "tanh"},
}


@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_whole_forward_pass_stays_on_the_models_device(elsewhere, kind, training):
    model = VisionTransformer(ViTConfig.from_dict(SIZES | KINDS[kind])).train(training)
    with elsewhere() as device:
        images = torch.randn(2, 3, 16, 24, device=device)
        logits, seen = model.to(device)(images, return_intermediates=True)
        found = [logits, model(images)]
        for value in seen.values():
            found += value if isinstance(value, list) else [value]
        assert {tensor.device for tensor in found} == {device}
        assert found[1].shape == (2, 5)


@pytest.mark.parametrize("kind", ["learned positions", "fixed positions", "local MLP"])
def test_images_of_another_size_stay_on_the_models_device(elsewhere, kind):
    model = VisionTransformer(ViTConfig.from_dict(SIZES | KINDS[kind]))
    model.resize_input((32, 48))
    with elsewhere() as device:
        assert model.to(device)(torch.randn(2, 3, 32, 48, device=device)).device == device
