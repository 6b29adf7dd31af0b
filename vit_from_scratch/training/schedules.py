"""Learning-rate schedules: a linear warm-up, then a decay.

The paper warms up linearly over 10,000 steps. It decays linearly in pre-training on the large data sets,
and as a cosine on ImageNet and in fine-tuning (section 4.1, Tables 3 and 4).
"""

import math
from typing import Literal

from vit_from_scratch.errors import unknown_name

Decay = Literal["cosine", "linear", "constant"]


def schedule_factor(step: int, total_steps: int, warmup_steps: int = 0, decay: Decay = "cosine") -> float:
    """Return what the base learning rate is multiplied by at a step.

    The factor climbs from 1 / warmup_steps to 1 during warm-up, so that no step is wasted on a rate of
    zero; afterwards it falls from 1 to 0 at `total_steps`, and stays there, or at 1 with "constant".

    Args:
        step: steps already taken, 0 for the first one.
        total_steps: steps of the whole run.
        warmup_steps: length of the warm-up; 0 for none. A run that is shorter ends while it climbs.
        decay: "cosine", "linear" or "constant".
    """
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    progress = min(1.0, (step - warmup_steps) / max(1, total_steps - warmup_steps))
    factors = {"cosine": 0.5 * (1 + math.cos(math.pi * progress)), "linear": 1 - progress, "constant": 1.0}
    if decay not in factors:
        raise unknown_name("decay", decay, factors)
    return factors[decay]
