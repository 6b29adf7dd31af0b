"""What a student deserves comes out of both graders, from what a platform gives to the table of marks."""

import pytest
from hand_ins import HAND_INS, id_of, put_into, scores_in

from vit_classroom.assignments.classes import grade_class
from vit_classroom.assignments.collecting import collect
from vit_classroom.assignments.limits import Limits

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def by_command(tmp_path_factory, stub):
    """Points and what is said to the instructor, by student; graded a second time, from the beginning."""
    folder = tmp_path_factory.mktemp("class")
    roster = put_into(folder / "inbox", stub)
    collect(folder / "inbox", folder / "submitted", roster)

    def graded(table):
        rows = {}
        for one in grade_class(folder / "submitted", folder / table, limits=Limits(seconds=10), jobs=2):
            rows[one["name"]] = (None if one.get("absent") else one["points"], one.get("suspicions", []))
        return rows

    first = graded("marks.csv")
    assert graded("again.csv") == first
    return first


@pytest.fixture(scope="session")
def by_nbgrader(course):
    scores = scores_in(course)
    looks = {path.parts[-3]: path.read_text().splitlines() for path in course.rglob("look_at.txt")}
    return {
        name: (scores[id_of(name)][0] if id_of(name) in scores else None, looks.get(id_of(name), []))
        for name in HAND_INS
    }


@pytest.mark.parametrize("name", HAND_INS)
@pytest.mark.parametrize("grader", ["by_command", "by_nbgrader"])
def test_everybody_gets_what_they_deserve(grader, name, request):
    points, looks = request.getfixturevalue(grader)[name]
    assert points == HAND_INS[name].deserved
    assert any(HAND_INS[name].look in line for line in looks) if HAND_INS[name].look else looks == []
