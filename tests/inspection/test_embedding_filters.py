import pytest
import torch
from sklearn.decomposition import PCA

from vit_from_scratch import InputError
from vit_from_scratch.inspection import embedding_filter_components

WEIGHT = torch.randn(40, 3, 4, 4, generator=torch.Generator().manual_seed(0))


def test_components_are_orthonormal_and_rebuild_the_filters():
    found = embedding_filter_components(WEIGHT)
    flat = found.components.flatten(1)
    assert torch.allclose(flat @ flat.T, torch.eye(40, dtype=torch.float64), atol=1e-12)
    assert torch.allclose(found.rebuilt(), WEIGHT.double(), atol=1e-12)
    assert found.variance_share.sum().item() == pytest.approx(1.0)


def test_components_are_those_of_scikit_learn_but_for_the_sign():
    found = embedding_filter_components(WEIGHT, 5)
    peer = PCA(5, svd_solver="full").fit(WEIGHT.flatten(1).double().numpy())
    similarity = (found.components.flatten(1).numpy() * peer.components_).sum(axis=1)
    assert abs(similarity) == pytest.approx([1.0] * 5)
    assert found.variance_share.numpy() == pytest.approx(peer.explained_variance_ratio_)


def test_signs_are_fixed():
    for sign in (1, -1):
        components = embedding_filter_components(sign * WEIGHT, 5).components.flatten(1)
        assert (components.gather(1, components.abs().argmax(1, keepdim=True)) > 0).all()
    one, other = (embedding_filter_components(s * WEIGHT, 5).components for s in (1, -1))
    assert torch.allclose(one, other)


def test_filters_of_one_pattern_have_one_component():
    pattern = torch.randn(1, 3, 4, 4)
    found = embedding_filter_components(torch.randn(20, 1, 1, 1) * pattern)
    assert found.variance_share[0] > 0.999999


@pytest.mark.parametrize(
    ("weight", "k", "message"),
    [
        (WEIGHT, 0, "k = 0: expected 1 to 40"),
        (WEIGHT, 41, "expected 1 to 40"),
        (WEIGHT[0], 2, r"\(D, C, P, P\)"),
        (WEIGHT.numpy(), 2, r"filters of type ndarray: expected a tensor \(D, C, P, P\)"),
        (WEIGHT / 0, 2, "filters with values that are not finite"),
        (WEIGHT.where(WEIGHT < 2, torch.nan), None, "filters with values that are not finite"),
    ],
)
def test_wrong_input_is_refused(weight, k, message):
    with pytest.raises(InputError, match=message):
        embedding_filter_components(weight, k)
