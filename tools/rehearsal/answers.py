"""Notebooks for students: with the book's answers filled in, and as far as their first check."""

import copy

from nbformat import NotebookNode

from vit_classroom.assignments.notebooks import read_chapter

CHECK = "sheet.check("


def with_answers(notebook: NotebookNode, chapter: str) -> NotebookNode:
    """Fill in what the chapter's checks ask for; what is answered in words stays as it is."""
    answers = {task.name: task.answer for task in read_chapter(chapter).tasks if task.check}
    filled = copy.deepcopy(notebook)
    for cell in filled.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name in answers:
            cell.source = answers[name]
    return filled


def up_to_first_check(notebook: NotebookNode) -> NotebookNode:
    """Keep the cells before the first check, and the check."""
    short = copy.deepcopy(notebook)
    place = next(number for number, cell in enumerate(short.cells) if cell.source.startswith(CHECK))
    short.cells = short.cells[: place + 1]
    return short
