from .experiments.packaged import load_result
from .experiments.recipes import Recipe, load_recipe, recipe_names, recipe_rows
from .experiments.seed_runs import run_seeds
from .experiments.table_6 import TABLE_6, recomputed_cost
from .experiments.trial_runs import run_trials
from .experiments.trials import load_trials, runs_of
from .export.exports import export_model
from .runs.finished import evaluate_run
from .runs.run import run

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
