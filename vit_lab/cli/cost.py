"""`vit cost`: parameters, operations and memory of a model by its name, and the paper's Table 6."""

import argparse
from typing import Any

from vit_from_scratch.errors import InputError
from vit_from_scratch.model.config import ViTConfig, variant_config

DEFAULTS = {
    "image_size": 224,
    "classes": 1000,
    "batch": 1,
    "precision": "float32",
    "attention": "fused",
    "optimiser": "adamw",
    "checkpointing": False,
}
TRAINING = ("train", "batch", "precision", "attention", "optimiser", "checkpointing")


def add_parser(commands: Any) -> None:
    """Add `cost` to the commands."""
    parser = commands.add_parser(
        "cost",
        help="count parameters, operations and memory of a variant",
        description="Count the parameters of a variant and the operations of one image's forward pass; with "
        "--train or one of its options, also the operations and the memory of a training step. Or recompute "
        "Table 6 of the paper.",
    )
    parser.add_argument(
        "variant", nargs="?", help="size and patch size, such as B/16 (Ti, S, B, L, H), or R50+B/16"
    )
    parser.add_argument("--image-size", type=int, metavar="PIXELS", help="default: 224")
    parser.add_argument("--classes", type=int, metavar="K", help="default: 1000")
    step = parser.add_argument_group("a training step")
    step.add_argument("--train", action="store_true", default=None, help="its operations and memory")
    step.add_argument("--batch", type=int, metavar="B", help="images that go through at once (default: 1)")
    step.add_argument("--precision", choices=("float32", "bfloat16"), help="default: float32")
    step.add_argument("--attention", choices=("fused", "explicit"), help="default: fused")
    step.add_argument("--optimiser", choices=("adamw", "adam", "sgd"), help="default: adamw")
    step.add_argument(
        "--checkpointing",
        action="store_true",
        default=None,
        help="blocks keep their input alone, and are computed again in the backward pass",
    )
    parser.add_argument(
        "--table6", action="store_true", help="the 18 pre-trainings of the paper's Table 6, recomputed"
    )
    parser.set_defaults(run=cost_command)


def cost_command(options: argparse.Namespace) -> None:
    """Carry out `vit cost`."""
    given = [name for name in ("variant", *DEFAULTS, "train") if getattr(options, name) is not None]
    if options.table6:
        if given:
            name = "a variant" if given[0] == "variant" else f"--{given[0].replace('_', '-')}"
            raise InputError(f"--table6 with {name}: expected --table6 alone, as its rows are the paper's.")
        return print_table_6()
    if options.variant is None:
        raise InputError("neither a variant nor --table6: expected one, for instance `vit cost B/16`.")
    for name, value in DEFAULTS.items():
        if name not in given:
            setattr(options, name, value)
    config = variant_config(options.variant, image_size=options.image_size, num_classes=options.classes)
    from vit_from_scratch.model.cost import forward_flops, parameters_of  # imported here: it takes seconds

    lines = [
        f"{options.variant} at {options.image_size} x {options.image_size}, {options.classes:,} classes",
        f"  tokens               {config.num_tokens:>15,}",
        f"  parameters           {parameters_of(config):>15,}",
        f"  forward pass, FLOPs  {forward_flops(config):>15,}  (2 for a multiply-add)",
    ]
    if set(given) & set(TRAINING):
        lines += ["", *training_step(config, options)]
    print("\n".join(lines))


def training_step(config: ViTConfig, options: argparse.Namespace) -> list[str]:
    """Describe the operations of a training step and the memory that it takes, line by line."""
    from vit_from_scratch.model.cost import forward_flops, training_flops
    from vit_from_scratch.model.memory import training_memory

    batch, again = options.batch, options.checkpointing
    memory = training_memory(
        config, batch, options.precision, options.attention, options.checkpointing, options.optimiser
    )
    forward = batch * forward_flops(config) / 1e9
    training = batch * training_flops(config, again) / 1e9
    passes = "3 forward passes" + (", and the blocks' once more" if again else "")
    rows = {"weights": memory.weights, "gradients": memory.gradients, "optimiser": memory.optimiser}
    if memory.copies:
        rows["weights in bfloat16"] = memory.copies
    rows |= {"activations": memory.activations, "together": memory.total}
    return [
        f"A training step on {batch:,} image{'s' if batch > 1 else ''}: {options.precision}, "
        f"{options.attention} attention, {options.optimiser}{', checkpointed blocks' if again else ''}",
        f"  forward pass         {forward:>15,.1f} GFLOPs",
        f"  training             {training:>15,.1f} GFLOPs  ({passes})",
        *(f"  {name:<20} {in_units(count)}" for name, count in rows.items()),
    ]


def in_units(count: int) -> str:
    """Write a number of bytes in GiB, or in MiB below one GiB."""
    unit, name = (2**30, "GiB") if count >= 2**30 else (2**20, "MiB")
    return f"{count / unit:>15,.2f} {name}"


def print_table_6() -> None:
    """Print what the 18 pre-trainings of Table 6 cost: recomputed, reported, and the difference."""
    from vit_lab.experiments.table_6 import TABLE_6, recomputed_cost

    print("Pre-training on JFT-300M in exaFLOPs: Table 6 of the paper, reported and recomputed\n")
    names = ("model", "epochs", "reported", "recomputed", "difference", "without padding", "difference")
    print("{:<16}{:>7}{:>10}{:>12}{:>12}{:>17}{:>12}".format(*names))
    for row in TABLE_6:
        cost = recomputed_cost(row.name, row.epochs)
        cells = "".join(
            f"{value:>{width}.1f}{value / row.exaflops - 1:>+12.2%}"
            for value, width in ((cost.exaflops, 12), (cost.without_padding, 17))
        )
        print(f"{row.name:<16}{row.epochs:>7}{row.exaflops:>10}{cells}")
    print(
        "\nwithout padding: less the multiplications of the zeros around a feature map, which a compiler\n"
        "can leave out. ViTs have none. More on the differences: help(vit_lab.experiments.table_6)."
    )
