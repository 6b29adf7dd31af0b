from .exports import export_model
from .packaged import load_result
from .recipes import Recipe, load_recipe, recipe_names, recipe_rows
from .run_folder import evaluate_run
from .runs import run
from .seed_runs import run_seeds
from .table_6 import TABLE_6, recomputed_cost
from .trial_runs import run_trials
from .trials import load_trials, runs_of

__all__ = [
    "TABLE_6",
    "Recipe",
    "evaluate_run",
    "export_model",
    "load_recipe",
    "load_result",
    "load_trials",
    "recipe_names",
    "recipe_rows",
    "recomputed_cost",
    "run",
    "run_seeds",
    "run_trials",
    "runs_of",
]
