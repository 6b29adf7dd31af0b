"""What a student deserves comes out of both graders, from what a platform gives to the table of marks."""

import shutil
import subprocess
import sys

import pytest
from hand_ins import HAND_INS, id_of, put_into, scores_in

from vit_classroom.assignments.classes import grade_class, look_through
from vit_classroom.assignments.collecting import collect
from vit_classroom.assignments.likeness import BOOK
from vit_classroom.assignments.limits import Limits

pytestmark = pytest.mark.slow


def graded(submitted, table):
    """Points and what is said to the instructor, by student."""
    rows = {}
    for one in grade_class(submitted, table, limits=Limits(seconds=10), jobs=2):
        looks = [*one.get("suspicions", []), *one["alike"]]
        rows[one.get("name", one["student"])] = (None if one.get("absent") else one["points"], looks)
    return rows


@pytest.fixture(scope="session")
def submitted(tmp_path_factory, stub):
    folder = tmp_path_factory.mktemp("class")
    collect(folder / "inbox", folder / "submitted", put_into(folder / "inbox", stub))
    return folder / "submitted"


@pytest.fixture(scope="session")
def by_command(submitted):
    return graded(submitted, submitted.with_name("marks.csv"))


@pytest.fixture(scope="session")
def by_nbgrader(course):
    scores = scores_in(course)
    looks = {path.parts[-3]: path.read_text().splitlines() for path in course.rglob("look_at.txt")}
    for line in look_through(course / "submitted"):
        if line.endswith("all the same") and BOOK not in line:
            for student in line.split(": ")[1].split(", ")[:-1]:
                looks.setdefault(student, []).append(line)
    return {
        name: (scores[id_of(name)][0] if id_of(name) in scores else None, looks.get(id_of(name), []))
        for name in HAND_INS
    }


def test_a_busy_machine_gives_the_same_marks(by_command, submitted, tmp_path):
    """Beside a loop on each of two cores, also to who is near a limit."""
    names = ["full", "3 GB", "an own experiment", "heavy products", "wrong"]
    for name in names:
        shutil.copytree(submitted / id_of(name), tmp_path / "few" / name)
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        found = graded(tmp_path / "few", tmp_path / "marks.csv")
    finally:
        for one in busy:
            one.kill()
            one.wait()
    assert found == {name: by_command[name] for name in names}


@pytest.mark.parametrize("name", HAND_INS)
@pytest.mark.parametrize("grader", ["by_command", "by_nbgrader"])
def test_everybody_gets_what_they_deserve(grader, name, request):
    points, looks = request.getfixturevalue(grader)[name]
    assert points == HAND_INS[name].deserved
    assert any(HAND_INS[name].look in line for line in looks) if HAND_INS[name].look else looks == []
