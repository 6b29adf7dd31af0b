"""What a person types into the table of marks stays, whatever spreadsheet it went through."""

import csv
import io

import pytest

from vit_classroom.assignments import marks_table
from vit_classroom.assignments.marks_table import read_table, update_table
from vit_from_scratch import InputError


def record(student, points=5.0, notebook=""):
    marks = [
        {"name": "attention", "points": points, "state": "right" if points else "not right"},
        {"name": "ex-cost", "points": 0, "state": "to read"},
    ]
    about = {"student": student, "notebook": notebook or f"{student}.ipynb", "chapter": "03_attention"}
    return {**about, "points": points, "of": 5, "to_read": 10, "suspicions": [], "marks": marks}


@pytest.fixture
def marks(tmp_path):
    """The table's path, and a function that writes it anew."""
    path = tmp_path / "marks.csv"
    return path, lambda *records, saved=(): update_table(path, tmp_path / "table.json", records, saved)


def rows(path):
    return {row["student"]: row for row in read_table(path).rows}


def edit(path, change, delimiter=",", encoding="utf-8"):
    """As a spreadsheet does: read, change the rows, write."""
    table = read_table(path)
    change({row["student"]: row for row in table.rows})
    text = io.StringIO()
    columns = list(dict.fromkeys(column for row in table.rows for column in row))
    writer = csv.DictWriter(text, columns[::-1], delimiter=delimiter)
    writer.writeheader()
    writer.writerows(table.rows)
    path.write_bytes(text.getvalue().encode(encoding))


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_what_was_typed_stays_and_counts(delimiter, encoding, marks):
    """In any column: marks for words, another mark than the check's, a corrected name, a column added."""
    path, write = marks
    write(record("Zoë; ada"), record("bob", 0.0), record("eve"))

    def typed(people):
        people["Zoë; ada"] |= {"ex-cost": "7,5", "late": "excused, ill", "attention": "5.0"}
        people["bob"] |= {"attention": "3", "ex-cost": "see me"}
        people["eve"]["student"] = "Eve Jones"

    edit(path, typed, delimiter, encoding)
    write(record("Zoë; ada", 0.0), record("bob", 0.0), record("eve", 4.0), record("new"))
    found = rows(path)
    assert list(found) == ["Zoë; ada", "bob", "Eve Jones", "new"]
    ada, bob, eve = list(found.values())[:3]
    typed = [ada[name] for name in ("ex-cost", "late", "attention", "total")]
    assert typed == ["7,5", "excused, ill", "0", "7.5"]
    assert (bob["attention"], bob["ex-cost"], bob["total"]) == ("3", "see me", "3")
    assert (eve["attention"], eve["total"]) == ("4", "4")
    assert read_table(path).delimiter == delimiter
    if encoding != "cp1252":
        assert path.read_bytes().decode(encoding).count("Zoë") == 2


def test_rows_of_ones_own_and_of_notebooks_that_are_gone_stay(marks):
    path, write = marks
    write(record("ada"), record("bob"))
    edit(path, lambda people: people["bob"].update({"ex-cost": "4"}))
    with open(path, "a", encoding="utf-8") as file:
        file.write("mean,,,\n")
    before = path.read_text()
    write(record("ada", 0.0))
    found = read_table(path).rows
    assert [row["student"] for row in found][:2] == ["ada", "bob"]
    assert found[1]["ex-cost"] == "4"
    assert "mean" in found[2].values()
    assert before.count("\n") == path.read_text().count("\n")


@pytest.mark.parametrize("stopped_at", [1, 2, 3])
def test_wherever_it_is_stopped_nothing_typed_is_lost_and_nothing_stale_stays(stopped_at, marks, monkeypatch):
    """Each of the three files that are written, in turn, is the last before the end."""
    path, write = marks
    write(record("ada", 1.0))
    edit(path, lambda people: people["ada"].update({"ex-cost": "9"}))
    left = iter(range(stopped_at))

    def counted(function):
        def work(*arguments):
            function(*arguments)
            if next(left) == stopped_at - 1:
                raise KeyboardInterrupt

        return work

    with monkeypatch.context() as patched:
        for name in ("write_json", "write_atomically"):
            patched.setattr(marks_table, name, counted(getattr(marks_table, name)))
        with pytest.raises(KeyboardInterrupt):
            write(record("ada", 2.0))
    assert rows(path)["ada"]["ex-cost"] == "9"
    write(record("ada", 3.0))
    assert (rows(path)["ada"]["attention"], rows(path)["ada"]["ex-cost"]) == ("3", "9")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("student,points\nada,5\n", "has no column called notebook"),
        ("", "has no column called notebook"),
        ("\0", "has no column called notebook"),
        ("notebook,late,late\n", "has two columns late"),
        ("notebook,student\na.ipynb,ada\na.ipynb,bob\n", r"has two rows for a\.ipynb"),
    ],
)
def test_another_table_is_one_sentence_and_stays_as_it_is(text, message, marks):
    path, write = marks
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        write(record("ada"))
    assert path.read_text() == text


def test_no_value_is_a_formula(marks):
    path, write = marks
    odd = ["=cmd()", "-1", "\t=cmd()", "\r+1", "  @x", "＝cmd()", "\ufeff=1", " Ada"]
    for _ in range(2):
        write(*map(record, odd))
        assert list(rows(path)) == [*(f"'{name}".replace("\r", "\n") for name in odd[:-1]), " Ada"]


def test_what_a_page_saved_is_typed_in_once(marks, tmp_path):
    """A later mark in the table stays, and a file of another class is refused."""
    path, write = marks
    saved = tmp_path / "saved.csv"
    saved.write_text("notebook,ex-cost,ex-cost comment\nada.ipynb,3,well\nbob.ipynb,,\n", encoding="utf-8")
    write(record("ada"), record("bob"), saved=[saved])
    assert [(row["ex-cost"], row["ex-cost comment"], row["total"]) for row in rows(path).values()] == [
        ("3", "well", "8"),
        ("", "", "5"),
    ]
    edit(path, lambda people: people["ada"].update({"ex-cost": "4"}))
    write(record("ada"), record("bob"))
    assert rows(path)["ada"]["ex-cost"] == "4"
    for file, message in ((tmp_path / "none.csv", "is not there"), (saved, "has marks for bob.ipynb")):
        with pytest.raises(InputError, match=message):
            write(record("ada"), saved=[file])
