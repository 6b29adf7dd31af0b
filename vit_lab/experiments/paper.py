"""The paper's own training settings (Tables 3 and 4) as recipes, `table3-...` and `table4-...`.

Each ViT of the tables has its entry here, so that the page and the code can be laid side by side; the ResNets
and hybrids of Table 3 and the VTAB tasks of Table 4 (19 of them) are left out. They want the paper's
machines: a batch of 4096 goes through in pieces with `accumulation`.
"""

from typing import Any

from vit_from_scratch.model.config import variant_config

TABLE_3: dict[str, dict[str, Any]] = {
    "jft300m": {"b16": (7, 8e-4), "b32": (7, 8e-4), "l32": (7, 6e-4), "l16": (14, 4e-4), "h14": (14, 3e-4)},
    "imagenet21k": dict.fromkeys(("b16", "b32", "l16", "l32"), (90, 1e-3)),
    "imagenet": dict.fromkeys(("b16", "b32", "l16", "l32"), (300, 3e-3)),
}
"""Pre-training: for each data set and model, epochs and base rate (L/16 also ran 7 epochs on JFT-300M,
and L/16 and L/32 also 30 on ImageNet-21k)."""

REGULARISATION = {
    "jft300m": {"schedule": "linear", "weight_decay": 0.1, "clip_norm": 0.0},
    "imagenet21k": {"schedule": "linear", "weight_decay": 0.03, "clip_norm": 0.0},
    "imagenet": {"schedule": "cosine", "weight_decay": 0.3, "clip_norm": 1.0},
}
"""The columns of Table 3 that depend on the data set alone, but for dropout; clipping is in its caption."""

DROPOUT = {"jft300m": 0.0, "imagenet21k": 0.1, "imagenet": 0.1}

TABLE_4: dict[str, tuple[str, int, tuple[float, ...]]] = {
    "imagenet": ("folder:imagenet", 20_000, (0.003, 0.01, 0.03, 0.06)),
    "cifar10": ("cifar10", 10_000, (0.001, 0.003, 0.01, 0.03)),
    "cifar100": ("cifar100", 10_000, (0.001, 0.003, 0.01, 0.03)),
    "pets": ("pets", 500, (0.001, 0.003, 0.01, 0.03)),
    "flowers": ("flowers", 500, (0.001, 0.003, 0.01, 0.03)),
}
"""Fine-tuning: the data, steps and the base rates that were tried."""


def paper_names() -> list[str]:
    """Return the names of the recipes, Table 3's first."""
    pretraining = [f"table3-{model}-{data}" for data, rows in TABLE_3.items() for model in rows]
    return pretraining + [f"table4-{data}" for data in TABLE_4]


def paper_table(name: str) -> dict[str, Any]:
    """Return a recipe, one of `paper_names()`, as the table that its TOML file would hold."""
    command = f"vit train --recipe {name} --device cuda"
    if name.startswith("table4-"):
        data, steps, rates = TABLE_4[name.removeprefix("table4-")]
        tried = ", ".join(f"{rate:g}" for rate in rates)
        return {
            "claim": f"Table 4: fine-tuning on {data}. Base rates tried: {tried}; held-out images choose.",
            "command": f"{command} --weights PRETRAINED.safetensors",
            "weights": "PRETRAINED.safetensors",
            "data": {"name": data, "image_size": 384},
            "train": {
                "steps": steps,
                "batch_size": 512,
                "optimiser": "sgd",
                "momentum": 0.9,
                "learning_rate": rates[1],
                "weight_decay": 0.0,
                "schedule": "cosine",
                "warmup_steps": 0,
                "clip_norm": 1.0,
                "accumulation": 8,
                "augmentation": {"flip": True},
            },
        }
    _, model, data = name.split("-")
    epochs, rate = TABLE_3[data][model]
    variant = variant_config(f"{model[0].upper()}/{model[1:]}")
    shape = {key: getattr(variant, key) for key in ("patch_size", "dim", "depth", "heads", "mlp_dim")}
    return {
        "claim": f"Table 3: pre-training of ViT-{model[0].upper()}/{model[1:]} on {data}.",
        "command": command,
        "data": {"name": f"folder:{data}", "validation_size": 0, "image_size": 224},
        "model": shape | {"dropout": DROPOUT[data], "representation_size": variant.dim},
        "train": {
            "epochs": epochs,
            "batch_size": 4096,
            "optimiser": "adamw",
            "learning_rate": rate,
            "betas": [0.9, 0.999],
            "warmup_steps": 10_000,
            "accumulation": 16,
            "augmentation": {"flip": True, "crop": [0.05, 1.0]},
            "precision": "bfloat16",
            **REGULARISATION[data],
        },
    }
