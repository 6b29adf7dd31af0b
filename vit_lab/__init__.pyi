from .experiments.packaged import load_result
from .experiments.recipes import Recipe, load_recipe, recipe_names, recipe_rows
from .experiments.records import Row, read_rows
from .experiments.study import Study, load_study, study_names
from .experiments.study_runs import Place, run_seeds, run_study
from .experiments.table_6 import TABLE_6, recomputed_cost
from .export.exports import export_model
from .runs.finished import evaluate_run
from .runs.run import run
from .runs.trained_models import open_classifier

__all__ = [
    "TABLE_6",
    "Place",
    "Recipe",
    "Row",
    "Study",
    "evaluate_run",
    "export_model",
    "load_recipe",
    "load_result",
    "load_study",
    "open_classifier",
    "read_rows",
    "recipe_names",
    "recipe_rows",
    "recomputed_cost",
    "run",
    "run_seeds",
    "run_study",
    "study_names",
]
