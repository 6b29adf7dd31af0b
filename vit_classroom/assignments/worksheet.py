"""What a student's notebook calls `sheet`: it checks answers, and fills in for those that are to come."""

import sys
from typing import Any

from vit_classroom.assignments.notebooks import earlier_answers, read_chapter
from vit_classroom.assignments.variations import assigned, check_of
from vit_from_scratch.errors import unknown_name

LENT = "_lent_by_the_book"
"""The notebook's name for the answers that are the book's, which outlives a `sheet` that is made again."""
UNWRITTEN = "NotImplementedError: your turn"
"""What a check says of an answer that is still a stub."""


class Worksheet:
    """The answers of one notebook, and how far they are.

    Args:
        chapter: such as "03_attention".
        namespace: the notebook's names, `globals()`.

    Raises:
        InputError: there is no such chapter.
    """

    def __init__(self, chapter: str, namespace: dict[str, Any]) -> None:
        self.chapter = read_chapter(chapter)
        self.namespace = namespace
        self.pieces = {task.name: task for task in self.chapter.tasks if task.check}
        self.questions = [task for task in self.chapter.tasks if not task.check]
        self.states: dict[str, str] = {}

    def check(self, name: str, seeds: tuple[int | None, ...] = (None,), variant: int | None = None) -> None:
        """Check an answer. Where it does not pass, the notebook goes on with the book's.

        The verdict is printed, a mistake to the error stream, so that the cells below can run all the same.
        The book's own is not checked in its place.

        Args:
            name: of the function or class.
            seeds: of the inputs that are drawn, a check for each.
            variant: the seed of a variation.

        Raises:
            InputError: nothing of this name is asked for.
        """
        from vit_classroom import checks

        if variant is not None:
            tasks = assigned(self.chapter.name, variant).tasks
            self.pieces |= {task.name: task for task in tasks if task.variant is not None}
        if name not in self.pieces:
            raise unknown_name("answer", name, self.pieces)
        task, theirs = self.pieces[name], self.namespace.get(name)
        lent = self.namespace.get(LENT, {})
        if name in lent and theirs is lent[name]:
            again = "Run the cell with yours, then this one again."
            print(f"{name}: the book's stands here in place of yours. {again}", file=sys.stderr)
            return
        try:
            if theirs is None:
                hint = "Run the cell that defines it, and look at its spelling."
                raise checks.CheckFailed(f"{name}: nothing has this name yet. {hint}")
            for seed in seeds:
                check_of(task)(theirs, seed=seed, name=name)
        except checks.CheckFailed as failure:
            waiting = UNWRITTEN in str(failure)
            self.states[name] = "to do" if waiting else "not yet right"
            message = f"{name}: yours is still to be written." if waiting else str(failure)
            print(message, file=sys.stderr)
            if task.variant is None:
                print(f"The cells below use the package's {name}.")
                exec(compile(task.answer, f"<the book's {name}>", "exec"), self.namespace)
                self.namespace.setdefault(LENT, {})[name] = self.namespace[name]
        else:
            self.states[name] = "right"

    def bring(self, *names: str) -> None:
        """Put the book's answers of earlier chapters into the notebook.

        Args:
            names: of functions and classes.

        Raises:
            InputError: no chapter asks for one of them.
        """
        exec(compile(earlier_answers(names), "<the book's answers>", "exec"), self.namespace)
        print(f"Here are the book's {', '.join(names)}.")

    def progress(self) -> None:
        """Print which checks have passed, and what is asked beside them."""
        right = sum(state == "right" for state in self.states.values())
        width = max(map(len, self.pieces), default=0)
        for name, task in self.pieces.items():
            state = self.states.get(name, "not checked yet")
            print(f"{'✓' if state == 'right' else '·'} {name:{width}}  {task.points:g} points  {state}")
        print(f"{right} of {len(self.pieces)} checks have passed. A person reads:")
        for task in self.questions:
            print(f"  {task.title}, {task.points:g} points")
