"""What ships is a mean of weights, on the line from where a run started to where it ended."""

import torch
from ship_checkpoint import between

from vit_from_scratch import VisionTransformer, ViTConfig
from vit_from_scratch.model.stem_config import StemConfig


def test_weights_lie_on_the_line_between_start_and_end(make_model):
    pretrained, end = make_model().eval(), make_model(seed=3).eval()
    torch.nn.init.normal_(end.head.weight)
    for share, expected in ((0.0, pretrained), (1.0, end)):
        found = between(pretrained, end, share).state_dict()
        assert all(torch.equal(values, expected.state_dict()[name]) for name, values in found.items())
    quarter = between(pretrained, end, 0.25)
    for name, values in quarter.state_dict().items():
        first, last = pretrained.state_dict()[name], end.state_dict()[name]
        assert torch.allclose(values, 0.75 * first + 0.25 * last, atol=1e-6)
    assert not quarter.training


def test_a_count_of_batches_is_the_ends_and_not_on_the_line():
    config = ViTConfig(
        8, 4, dim=8, depth=1, heads=2, mlp_dim=8, num_classes=3, stem=StemConfig("conv", width=4)
    )
    start, end = VisionTransformer(config), VisionTransformer(config).train()
    end(torch.randn(2, 3, 8, 8))
    found = between(start, end, 0.5).state_dict()
    counts = [name for name, value in found.items() if not value.is_floating_point()]
    assert counts
    assert all(found[name] == 1 for name in counts)
    mean = next(name for name in found if name.endswith("running_mean"))
    assert torch.allclose(found[mean], end.state_dict()[mean] / 2)
