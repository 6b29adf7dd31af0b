"""`vit cost`: parameters and operations of a model by its name."""

import argparse
from typing import Any

from vit_from_scratch.model.config import variant_config


def add_parser(commands: Any) -> None:
    """Add `cost` to the commands."""
    parser = commands.add_parser(
        "cost",
        help="count parameters and operations of a variant",
        description="Count the parameters of a variant and the operations of one image's forward pass.",
    )
    parser.add_argument("variant", help="size and patch size, such as B/16 (Ti, S, B, L, H), or R50+B/16")
    parser.add_argument("--image-size", type=int, default=224, metavar="PIXELS", help="default: 224")
    parser.add_argument("--classes", type=int, default=1000, metavar="K", help="default: 1000")
    parser.set_defaults(run=cost_command)


def cost_command(options: argparse.Namespace) -> None:
    """Carry out `vit cost`."""
    config = variant_config(options.variant, image_size=options.image_size, num_classes=options.classes)
    from vit_from_scratch.model.cost import forward_flops, parameters_of  # imported here: it takes seconds

    print(f"{options.variant} at {options.image_size} x {options.image_size}, {options.classes:,} classes")
    print(f"  tokens               {config.num_tokens:>15,}")
    print(f"  parameters           {parameters_of(config):>15,}")
    print(f"  forward pass, FLOPs  {forward_flops(config):>15,}  (2 for a multiply-add)")
