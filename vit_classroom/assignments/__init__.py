"""Chapters as assignments: worksheets, courses for nbgrader, and grading without it.

Its modules::

    notebooks        the chapters, with marked answers, and what students hand in
    tables           tables as spreadsheets and platforms write them
    roster           the people of a course, and whose a file is
    inbox            what a learning platform gives, zips and all
    collecting       what was handed in, put where it is graded
    variations       answers that are asked for again, as another task
    worksheet        what a student's notebook checks its answers with
    wire             what two processes tell each other: tensors and plain values, never pickles
    limits           what a student's code may take
    nursery          where the processes for it come from
    student_process  where a student's code runs
    proxies          functions and classes that live in that process, as the checks see them
    grading          marks for one notebook
    alignment        where its cells are in a notebook that was handed in
    suspicion        what in a notebook a person should look at
    classes          marks for a folder of notebooks
    pages            a page of feedback for each, and a summary
    marks_table      the table of marks, in which a person types
    exports          the same for learning platforms
    course           a course folder for nbgrader
    nbgrader_plugin  the same marks inside of `nbgrader autograde`
"""

from vit_classroom.assignments.worksheet import Worksheet

__all__ = ["Worksheet"]
