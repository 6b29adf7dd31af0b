"""The benchmark of threads and processes: a process of several takes steps on its share of the batch."""

from dataclasses import replace

import threads_or_processes
import torch

from vit_from_scratch import ViTConfig
from vit_from_scratch.data.sharing import Share


def test_a_turn_steps_on_this_processs_share(monkeypatch):
    config = ViTConfig(8, 4, dim=8, depth=1, heads=2, mlp_dim=8, num_classes=3)
    data = threads_or_processes.batch_of(config, 5)
    whole = threads_or_processes.state_of(config, data, 5, "float32")
    steps = []
    monkeypatch.setattr(threads_or_processes, "train_step", lambda *given: steps.append(given[1:]))
    threads = torch.get_num_threads()
    for state in (whole, replace(whole, data=whole.data.shared(Share(1, 2)))):
        assert threads_or_processes.turn(state, data, threads) > 0
    (images, labels), (_, own) = steps[0], steps[-1]
    assert images.shape == (5, 3, 8, 8)
    assert torch.equal(labels, data.train_labels)
    assert torch.equal(own, Share(1, 2).of(data.train_labels))
    assert 0 < len(own) < 5
