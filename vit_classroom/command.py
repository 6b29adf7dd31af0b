"""`vit assignment`: chapters as assignments, built for nbgrader or graded without it."""

import argparse
import os
import sys
from typing import Any

from vit_classroom.assignments.classes import beside, grade_class, look_through
from vit_classroom.assignments.collecting import LIST, collect
from vit_classroom.assignments.course import build_course, rubrics
from vit_classroom.assignments.limits import NOT_APART, Limits, can_be_set_apart
from vit_classroom.assignments.notebooks import chapter_names, read_chapter
from vit_from_scratch.errors import InputError
from vit_from_scratch.paths import own_path


def add_parser(commands: Any) -> None:
    """Add `assignment` to the commands."""
    parser = commands.add_parser(
        "assignment",
        help="hand out chapters as assignments, and grade them",
        description="Chapters as assignments, whose answers are judged by the checks of the book.",
    )
    parts = parser.add_subparsers(dest="part", required=True, metavar="COMMAND")
    listing = parts.add_parser("list", help="list the chapters that can be assigned, with their points")
    listing.set_defaults(run=list_command)

    reading = parts.add_parser(
        "rubric",
        help="print what a person gives points for, with model answers",
        description="Print, for each question of a chapter that a person reads, its name, a model answer and "
        "what there are points for, as Markdown.",
    )
    reading.add_argument("chapter", metavar="CHAPTER", help="a chapter by name or number")
    reading.set_defaults(run=rubric_command)

    building = parts.add_parser(
        "build",
        help="write a course folder for nbgrader",
        description="Write a course folder in which nbgrader's generate_assignment, autograde and "
        "generate_feedback work. A chapter is added to a course that is there already.",
    )
    building.add_argument("chapters", nargs="+", metavar="CHAPTER", help="a chapter by name or number")
    building.add_argument("--out", type=own_path, required=True, metavar="COURSE", help="the course folder")
    building.add_argument("--seed", type=int, metavar="N", help="of the hidden tests (default: a secret one)")
    building.add_argument("--variant", type=int, metavar="N", help="add a private task to each: N says which")
    building.set_defaults(run=build_command)

    collecting = parts.add_parser(
        "collect",
        help="put what was handed in where it is graded",
        description="Read what Moodle, Canvas, Google Classroom or a shared folder gives, find out which "
        "worksheet each notebook is and whose, and write OUT/STUDENT/CHAPTER/CHAPTER.ipynb, where nbgrader "
        "and `vit assignment grade` look. OUT/collected.csv lists what there is of everybody. Call it again "
        "for what comes later.",
    )
    collecting.add_argument("inbox", type=own_path, metavar="INBOX", help="a folder or a zip")
    collecting.add_argument("--out", type=own_path, required=True, help="the folder to write")
    collecting.add_argument("--roster", type=own_path, metavar="FILE", help="participants: id, name, e-mail")
    collecting.set_defaults(run=collect_command)

    comparing = parts.add_parser(
        "alike",
        help="list what is alike or taken over, without grading",
        description="List answers that are alike or like the book's, and code that a person should look at: "
        "what `grade` lists, if you grade with nbgrader. Nothing of the notebooks runs.",
    )
    comparing.add_argument("folder", type=own_path, metavar="FOLDER", help="such as submitted/")
    comparing.set_defaults(run=alike_command)

    grading = parts.add_parser(
        "grade",
        help="grade a folder of notebooks",
        description="Grade notebooks, STUDENT.ipynb or STUDENT/.../NAME.ipynb, each in a process of its own "
        "with limits on time and memory. Beside the table come a folder with a page of feedback for each "
        "notebook, and one for you with a summary and a page for each question in words. Called again, it "
        "grades only what is new or changed.",
    )
    grading.add_argument("folder", type=own_path, metavar="FOLDER", help="what was handed in")
    grading.add_argument("--csv", type=own_path, required=True, metavar="FILE", help="the table of marks")
    about = "the chapter assigned (default: each file's own)"
    grading.add_argument("--chapter", default="", metavar="NAME", help=about)
    platforms = ("moodle", "canvas", "nbgrader")
    grading.add_argument("--format", choices=platforms, help="also write marks in its format")
    saved = {"nargs": "+", "default": [], "metavar": "SAVED", "help": "files saved from question pages"}
    grading.add_argument("--marks", type=own_path, **saved)
    grading.add_argument("--variant", type=int, metavar="N", help="the number given to build")
    for name, default, letter, purpose in (
        ("seed", 0, "N", "of the inputs that are drawn (default: 0)"),
        ("memory", 4000, "MB", "for a student's code (default: 4000)"),
        ("seconds", 30.0, "S", "for a student's cell (default: 30)"),
        ("jobs", os.cpu_count() or 1, "N", "at the same time (default: one a processor)"),
    ):
        grading.add_argument(f"--{name}", type=type(default), default=default, metavar=letter, help=purpose)
    grading.set_defaults(run=grade_command)


def alike_command(options: argparse.Namespace) -> None:
    """Carry out `vit assignment alike`."""
    print("\n".join(look_through(options.folder)) or "There is nothing to look at.")


def list_command(_options: argparse.Namespace) -> None:
    """Carry out `vit assignment list`."""
    chapters = [read_chapter(name) for name in chapter_names()]
    width = max(len(chapter.name) for chapter in chapters)
    for chapter in chapters:
        checked = [task.points for task in chapter.tasks if task.check]
        read = [task.points for task in chapter.tasks if not task.check]
        print(
            f"{chapter.name:{width}}  {len(checked):2} answers that are checked, {sum(checked):3g} points; "
            f"{len(read)} that are read, {sum(read):2g} points"
        )


def rubric_command(options: argparse.Namespace) -> None:
    """Carry out `vit assignment rubric`."""
    print(rubrics(read_chapter(options.chapter)))


def build_command(options: argparse.Namespace) -> None:
    """Carry out `vit assignment build`."""
    seed, built = build_course(options.chapters, options.out, options.seed, options.variant)
    for name in [read_chapter(name).name for name in options.chapters]:
        if name not in built:
            print(f"{name} is there already, and stays as it is.")
    print(f"The course is in {options.out}; the hidden tests of {', '.join(built)} have the seed {seed}.")
    if options.variant is not None:
        print("Without nbgrader: hand out what is in worksheets/.")
    print("With nbgrader, in that folder:")
    for name in built:
        print(f"  nbgrader generate_assignment {name}")
    print("Then hand out what is in release/, and collect into submitted/STUDENT/CHAPTER/.")


def collect_command(options: argparse.Namespace) -> None:
    """Carry out `vit assignment collect`."""
    rows = collect(options.inbox, options.out, options.roster)
    there = [row for row in rows if row["chapter"]]
    print(f"Worksheets in {options.out}: {len(there)}. {options.out / LIST} lists them.")
    for row in rows:
        if row["note"]:
            print(f"{row['student']}: {row['note']}")


def grade_command(options: argparse.Namespace) -> None:
    """Carry out `vit assignment grade`."""
    for name in ("memory", "seconds", "jobs"):
        if getattr(options, name) <= 0:
            raise InputError(f"--{name} {getattr(options, name)}: expected more than 0.")
    limits = Limits(options.memory, options.seconds)
    if not can_be_set_apart():
        print(NOT_APART, file=sys.stderr)
    how = (options.chapter, options.seed, limits, options.jobs, options.marks, options.variant)
    records = grade_class(options.folder, options.csv, *how)
    absent = [record for record in records if record.get("absent")]
    notebooks = [record for record in records if not record.get("absent")]
    problems = [record for record in notebooks if "problem" in record]
    looks = sum(bool(record.get("suspicions") or record["alike"]) for record in records)
    print(f"{len(notebooks) - len(problems)} of {len(notebooks)} notebooks were graded: {options.csv}")
    if unread := sum(record["unread"] for record in notebooks):
        print(f"answers in words that no total counts before a person has given points: {unread}")
    for record in problems:
        print(f"not graded: {record['student']}: {record['problem']}")
    for name in sorted({record["chapter"] for record in absent}):
        missing = [record["student"] for record in absent if record["chapter"] == name]
        print(f"no worksheet of {name} from {', '.join(missing)}")
    if looks:
        print(f"{looks} of them should be looked at: the summary says where.")
    print(f"for students: {beside(options.csv, 'feedback')}; for you: {beside(options.csv, 'report')}")
    if options.format:
        from vit_classroom.assignments.exports import write_export

        print(f"for {options.format}: {write_export(options.format, options.csv)}")
