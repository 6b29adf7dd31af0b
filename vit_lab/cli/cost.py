"""`vit cost`: parameters, operations and memory of a model by its name, and the paper's Table 6."""

import argparse
from typing import Any

from vit_from_scratch.errors import InputError
from vit_from_scratch.model.config import variant_config
from vit_from_scratch.settings import require
from vit_lab.cli.options import add_command

DEFAULTS = {
    "image_size": 224,
    "classes": 1000,
    "batch": 1,
    "precision": "float32",
    "attention": "fused",
    "optimiser": "adamw",
    "checkpointing": False,
}


def add_parser(commands: Any) -> None:
    """Add `cost` to the commands."""
    parser = add_command(
        commands,
        "cost",
        run,
        help="count parameters, operations and memory of a variant",
        description="Count the parameters of a variant, the operations of one image's forward pass, and the "
        "operations and the memory of a training step. Or recompute Table 6 of the paper.",
    )
    add = parser.add_argument
    about = "size and patch size, such as B/16 (Ti, S, B, L, H), or R50+B/16"
    add("variant", nargs="?", help=about)
    add("--image-size", type=int, metavar="PIXELS", help="default: 224")
    add("--classes", type=int, metavar="K", help="default: 1000")
    add("--table6", action="store_true", help="the 18 pre-trainings of the paper's Table 6, recomputed")
    add = parser.add_argument_group("a training step").add_argument
    add("--batch", type=int, metavar="B", help="images that go through at once (default: 1)")
    add("--precision", choices=("float32", "bfloat16"), help="default: float32")
    add("--attention", choices=("fused", "explicit"), help="default: fused")
    add("--optimiser", choices=("adamw", "adam", "sgd", "muon"), help="default: adamw")
    about = "keep only each block's input; compute the rest again in the backward pass"
    add("--checkpointing", action="store_true", help=about)
    parser.set_defaults(**DEFAULTS)


def run(options: argparse.Namespace) -> None:
    """Carry out `vit cost`."""
    if options.table6 == (options.variant is not None):
        raise InputError("expected either a variant, for instance `vit cost B/16`, or --table6.")
    if options.table6:
        if given := [name for name, default in DEFAULTS.items() if getattr(options, name) != default]:
            raise InputError(f"--table6 with --{given[0].replace('_', '-')}: expected --table6 alone.")
        return print_table_6()
    config = variant_config(options.variant, image_size=options.image_size, num_classes=options.classes)
    from vit_from_scratch.model.cost import forward_flops, parameters_of, training_flops
    from vit_from_scratch.model.memory import training_memory

    batch, again = options.batch, options.checkpointing
    require(batch >= 1, "--batch", batch, "at least 1 image")
    memory = None
    if config.stem.kind == "patch":
        memory = training_memory(
            config, batch, options.precision, options.attention, again, options.optimiser
        )
    flops = forward_flops(config)
    also = f"{options.optimiser}{', checkpointed blocks' if again else ''}"
    passes = f"3 forward passes{', and the blocks once more' if again else ''}"
    print(f"""\
{options.variant} at {options.image_size} x {options.image_size}, {options.classes:,} classes
  tokens               {config.num_tokens:>15,}
  parameters           {parameters_of(config):>15,}
  forward pass, FLOPs  {flops:>15,}  (2 for a multiply-add)

A training step, {batch:,} at once: {options.precision}, {options.attention} attention, {also}
  forward pass         {batch * flops / 1e9:>15,.1f} GFLOPs
  training             {batch * training_flops(config, again) / 1e9:>15,.1f} GFLOPs  ({passes})""")
    if memory is None:
        return print("  memory               not modelled for a ResNet stem")
    rows = {"weights": memory.weights, "gradients": memory.gradients, "optimiser": memory.optimiser}
    rows |= {"weights in bfloat16": memory.copies} if memory.copies else {}
    for name, count in (rows | {"activations": memory.activations, "total": memory.total}).items():
        unit, said = (2**30, "GiB") if count >= 2**30 else (2**20, "MiB")
        print(f"  {name:<20} {count / unit:>15,.2f} {said}")


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
