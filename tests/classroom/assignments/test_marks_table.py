"""What a person types into the table of marks stays, whatever spreadsheet it went through."""

import contextlib
import csv
import io
import itertools
import json

import pytest
from stopping import Death, Killed

from vit_classroom.assignments.exports import write_export
from vit_classroom.assignments.marks_table import number_of, read_table, update_table
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


@pytest.mark.parametrize(("text", "number"), [("2,5", 2.5), ("1_0", None), ("see me", None), ("inf", None)])
def test_what_counts_as_a_number(text, number):
    assert number_of(text) == number


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


def test_a_notebook_that_comes_back_gets_its_new_marks(marks):
    path, write = marks
    write(record("ada"), record("bob", 0.0))
    write(record("ada"))
    write(record("ada"), record("bob", 5.0))
    assert (rows(path)["bob"]["attention"], rows(path)["bob"]["total"]) == ("5", "5")


def test_the_table_says_who_is_alike(marks):
    path, write = marks
    write({**record("ada"), "alike": ["ex-cost is the same as that of bob"]})
    assert "that of bob" in rows(path)["ada"]["look_at"]


def test_wherever_it_is_killed_nothing_typed_is_lost_and_nothing_stale_stays(tmp_path, monkeypatch):
    death = Death(monkeypatch)
    for operations in itertools.count():
        path, beside = tmp_path / f"{operations}.csv", tmp_path / f"{operations}.json"
        update_table(path, beside, [record("ada", 1.0)])
        edit(path, lambda people: people["ada"].update({"ex-cost": "9"}))
        death.comes_after(operations)
        with contextlib.suppress(Killed):
            update_table(path, beside, [record("ada", 2.0)])
            break
        death.comes_after(-1)
        assert rows(path)["ada"]["ex-cost"] == "9"
        update_table(path, beside, [record("ada", 3.0)])
        assert [rows(path)["ada"][name] for name in ("attention", "ex-cost", "total")] == ["3", "9", "12"]
    assert operations > 5


@pytest.mark.parametrize("column", ["attention", "ex-cost", "total", "look_at"])
def test_a_total_that_was_typed_and_a_mark_that_was_taken_away_stay(column, marks):
    """What the program says of a notebook comes back, or later words of it would be missing."""
    path, write = marks
    write(record("ada"))
    edit(path, lambda people: people["ada"].update({"ex-cost": "3"}))
    write(record("ada"))
    assert rows(path)["ada"]["total"] == "8"
    edit(path, lambda people: people["ada"].update({column: "6.5" if column == "total" else ""}))
    for points in (5.0, 4.0):
        write({**record("ada", points), "suspicions": ["cell 3"]})
        found = rows(path)["ada"]
        numbers = {"attention": f"{points:g}", "ex-cost": "3"}
        numbers = ["" if column == name else mark for name, mark in numbers.items()]
        assert [found["attention"], found["ex-cost"]] == numbers
        total = sum(float(mark) for mark in numbers if mark)
        assert found["total"] == ("6.5" if column == "total" else f"{total:g}")
        assert found["look_at"] == "cell 3"


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
    odd = {"=cmd()": "'=cmd()", "-1": "'-1", "＝cmd()": "'＝cmd()", "\ufeff=1": "'\ufeff=1", "  @x": "  '@x"}
    odd |= {"\t=cmd()": "\t'=cmd()", "\r+1": "\n'+1", "x\n=1": "x\n'=1", " Ada": " Ada", "a-b": "a-b"}
    odd |= {"x;=1+1;@y": "x;'=1+1;'@y", "x, ＝1": "x, '＝1"}  # where the list's separator is another
    for _ in range(2):
        write(*map(record, odd))
        assert list(rows(path)) == list(odd.values())


@pytest.mark.parametrize("platform", ["moodle", "canvas", "nbgrader"])
def test_a_total_that_was_typed_reaches_a_platform_with_its_point(platform, marks):
    path, write = marks
    write(record("ada"))
    edit(path, lambda people: people["ada"].update({"total": "6,5"}), ";")
    write(record("ada"))
    assert "6.5" in write_export(platform, path).read_text().splitlines()[-1].split(",")


@pytest.mark.parametrize("platform", ["moodle", "canvas", "nbgrader"])
def test_two_totals_of_one_student_are_one_sentence_until_one_is_taken_away(platform, marks):
    path, write = marks
    write(record("ada", 0.0, "ada/a.ipynb"), record("ada", 5.0, "ada/b.ipynb"), record("bob"))
    with pytest.raises(InputError, match=r"has two totals for ada in 03_attention: expected one"):
        write_export(platform, path)
    kept = [line for line in path.read_text().splitlines() if "ada/a.ipynb" not in line]
    path.write_text("\n".join(kept))
    assert "5" in write_export(platform, path).read_text().splitlines()[-2].split(",")


@pytest.mark.parametrize("name", ["Ada King Lovelace", "Lovelace, Ada King"])
def test_nbgrader_gets_first_and_last_name_however_they_are_written(name, marks):
    path, write = marks
    write({**record("1001"), "name": name})
    about = "1001,Lovelace,Ada King,"
    assert about in write_export("nbgrader", path).read_text()


def test_no_half_of_a_name_is_a_formula(marks):
    path, write = marks
    write({**record("1001"), "name": "Ada =cmd|X!A1"})
    assert "1001,'=cmd|X!A1,Ada," in write_export("nbgrader", path).read_text()


def test_what_a_page_saved_is_typed_in_once(marks, tmp_path, capsys):
    """A later mark in the table stays, and is said; a file of another class is refused."""
    path, write = marks
    saved = tmp_path / "saved.csv"
    saved.write_text("notebook,ex-cost,ex-cost comment\nada.ipynb,3,well\nbob.ipynb,,\n", encoding="utf-8")
    for _ in range(2):
        write(record("ada"), record("bob"), saved=[saved])
        assert [(row["ex-cost"], row["ex-cost comment"], row["total"]) for row in rows(path).values()] == [
            ("3", "well", "8"),
            ("", "", "5"),
        ]
    assert capsys.readouterr().out == ""
    edit(path, lambda people: people["ada"].update({"ex-cost": "4"}))
    for files in ([], [saved]):
        write(record("ada"), record("bob"), saved=files)
        assert rows(path)["ada"]["ex-cost"] == "4"
    said = capsys.readouterr().out
    assert "ex-cost of ada.ipynb stays 4, which was typed since, and does not become 3" in said
    assert len(said.splitlines()) == 1
    for file, message in ((tmp_path / "none.csv", "is not there"), (saved, "has marks for bob.ipynb")):
        with pytest.raises(InputError, match=message):
            write(record("ada"), saved=[file])


@pytest.mark.parametrize(
    ("typed", "was", "value", "then"),
    [
        ("", [""], "3", "3"),
        ("3,0", ["3"], "4", "4"),  # the page has shown what the table says
        ("2", ["", "2"], "3", "3"),  # saved twice, and read in between
        ("3", ["", "3"], "", ""),  # taken away in the page
        ("5", ["", "2"], "3", "5"),
        ("", ["2"], "3", ""),
        ("see me", [""], "3", "see me"),
    ],
)
def test_a_page_changes_what_it_has_shown_and_nothing_typed_since(typed, was, value, then, marks, tmp_path):
    path, write = marks
    write(record("ada"))
    edit(path, lambda people: people["ada"].update({"ex-cost": typed}))
    with open(tmp_path / "saved.csv", "w", encoding="utf-8", newline="") as file:
        lines = [("notebook", "ex-cost", "ex-cost was"), ("ada.ipynb", value, json.dumps(was))]
        csv.writer(file).writerows(lines)
    write(record("ada"), saved=[tmp_path / "saved.csv"])
    assert rows(path)["ada"]["ex-cost"] == then
    assert "ex-cost was" not in read_table(path).columns
