"""Recipes and studies, carried out and summed up, and the results that ship with the package."""
