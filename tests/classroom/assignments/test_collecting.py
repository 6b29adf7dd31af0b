"""What a learning platform gives is put where it is graded; nothing is dropped, nothing written over."""

import csv
import io
import itertools
import json
import os
import time
import tracemalloc
import zipfile
import zlib

import pytest
from stopping import Death, Killed

from vit_classroom.assignments.collecting import LIST, collect, read_list
from vit_classroom.assignments.roster import Roster, read_roster, whose
from vit_classroom.assignments.tables import Table, as_csv, harmless, read_csv
from vit_from_scratch import InputError
from vit_lab.cli import main

ROSTER = """id,name,email
1001,Ada Lovelace,ada@uni.edu
1002,Zoë Müller,zoe.m@uni.edu
1003,"de la Cruz, Maria",maria@uni.edu
1004,Jan Kowalski,jan1@uni.edu
1005,Jan Kowalski,jan2@uni.edu
"""
NOON = 1_700_000_000


def worksheet(text="", chapter="03_attention"):
    source = f'from vit_classroom import assignments\n\nsheet = assignments.Worksheet("{chapter}", globals())'
    cells = [{"cell_type": "code", "metadata": {}, "source": source, "outputs": []}]
    cells += [{"cell_type": "markdown", "metadata": {}, "source": text}]
    return json.dumps(
        {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}, ensure_ascii=False
    )


def zipped(members, way=zipfile.ZIP_DEFLATED):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in members.items():
            archive.writestr(zipfile.ZipInfo(name, (2024, 5, 1, 12, 0, 0)), text, way)
    return content.getvalue()


def understated(content, size):
    """A zip of one file that says that this is smaller than it is."""
    name = content.index(b"PK\x01\x02")  # of the entry in its list
    return content[: name + 24] + size.to_bytes(4, "little") + content[name + 28 :]


@pytest.fixture
def inbox(tmp_path):
    """A function that writes files, each some seconds after the one before, and returns their folder."""

    def put(files, name="inbox"):
        for number, (file, content) in enumerate(files.items()):
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                path.mkdir(parents=True, exist_ok=True)
            else:
                path.write_bytes(content if isinstance(content, bytes) else content.encode())
                os.utime(path, (NOON + 10 * number,) * 2)
        return tmp_path / name

    return put


@pytest.fixture
def roster(tmp_path):
    path = tmp_path / "roster.csv"
    path.write_text(ROSTER, encoding="utf-8")
    return path


@pytest.fixture
def out(tmp_path):
    return tmp_path / "submitted"


def text_of(out, student, chapter="03_attention"):
    """What a collected worksheet says, read as nbgrader reads it."""
    path = out / student / chapter / f"{chapter}.ipynb"
    return json.loads(path.read_text(encoding="utf-8"))["cells"][1]["source"]


def everything(folder):
    return {
        path.relative_to(folder).as_posix(): (
            path.read_bytes(),
            path.suffix == ".ipynb" and path.stat().st_mtime,
        )
        for path in folder.rglob("*")
        if path.is_file()
    }


PATHS = {
    "Moodle": "Ada Lovelace_12345_assignsubmission_file_/03_attention.ipynb",
    "Moodle, another version": "Ada Lovelace_12345_assignsubmission_file/Copy of 03_attention.ipynb",
    "Moodle, not in folders": "Ada Lovelace_12345_assignsubmission_file_my work.ipynb",
    "Canvas": "lovelaceada_123_456_03_attention-1.ipynb",
    "Canvas, late": "lovelaceada_LATE_123_456_Copy_of_03_attention.ipynb",
    "Google Classroom": "Ada Lovelace - Copy of 03_attention.ipynb",
    "by e-mail": "ada@uni.edu/homework.ipynb",
    "by login": "ada_03_attention.ipynb",
    "by id": "1001.ipynb",
    "by id in a folder of the chapter": "03_attention/1001/x/y.ipynb",
    "last name first": "LOVELACE, Ada/untitled.ipynb",
    "twice from the browser": "Ada Lovelace (1).ipynb",
    "in a folder of a folder": "week 3/Ada Lovelace/03_attention.ipynb",
    "numbered as Canvas does": "Ada Lovelace/hw_1_03_attention.ipynb",
    "last name and number": "lovelace_1001_03_attention.ipynb",
}


@pytest.mark.parametrize("name", PATHS)
def test_whoever_it_is_of_and_whatever_it_is_called(name, inbox, roster, out):
    rows = collect(inbox({PATHS[name]: worksheet("ada's")}), out, roster)
    assert text_of(out, "1001") == "ada's"
    assert [row["student"] for row in rows] == ["1001", "1002", "1003", "1004", "1005"]
    assert (rows[0]["file"], rows[0]["email"]) == (PATHS[name], "ada@uni.edu")
    assert ("late" in rows[0]["note"]) == ("late" in name)
    assert {row["note"] for row in rows[1:]} == {"handed in nothing"}


def test_names_are_matched_without_accents_in_either_order_and_only_if_one_person_has_them(roster):
    people = read_roster(roster)
    for name, student in (
        ("Zoe Muller_7_assignsubmission_file_", "1002"),
        ("delacruzmaria_7_8_03_attention.ipynb", "1003"),
        ("Maria de la Cruz_7_assignsubmission_file_", "1003"),
        ("Jan Kowalski_7_assignsubmission_file_", "Jan_Kowalski_7"),
    ):
        person, notes = whose((name, "x.ipynb"), people)
        assert person.id == student
        assert notes == ([] if student.isdecimal() else ["not on the roster"])


def test_an_alias_tells_two_people_of_one_name_apart(roster):
    aliases = ["alias", "", "", "", "Jan_Kowalski_7", ""]
    lines = [f"{line},{alias}" for line, alias in zip(ROSTER.splitlines(), aliases, strict=True)]
    roster.write_text("\n".join(lines), encoding="utf-8")
    person, notes = whose(("Jan Kowalski_7_assignsubmission_file_", "x.ipynb"), read_roster(roster))
    assert (person.id, notes) == ("1004", [])


def test_a_number_of_the_platform_is_not_taken_for_an_id(roster):
    person, notes = whose(("Somebody Else_1001_assignsubmission_file_", "x.ipynb"), read_roster(roster))
    assert (person.id, notes) == ("Somebody_Else_1001", ["not on the roster"])


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize(
    "head",
    [
        ["Student ID", "Full name", "E-Mail"],
        ["ID number", "Nachname", "Vorname", "Email address"],
        ["username", "First name", "Last name", "Mail"],
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"],
    ],
)
def test_a_roster_comes_from_any_platform_and_spreadsheet(head, encoding, delimiter, tmp_path):
    values = {"studentid": "1002", "idnumber": "1002", "username": "1002", "id": "1002", "sisuserid": "s9"}
    values |= {"fullname": "Zoë Müller", "student": "Müller, Zoë", "vorname": "Zoë", "firstname": "Zoë"}
    values |= {"nachname": "Müller", "lastname": "Müller", "sisloginid": "zoe9", "section": "A"}
    mail = dict.fromkeys(("email", "mail", "emailaddress"), "zoe.m@uni.edu")
    line = [(values | mail)[name.lower().replace(" ", "").replace("-", "")] for name in head]
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows([head, line])
    path = tmp_path / "roster.csv"
    path.write_bytes(text.getvalue().encode(encoding))
    people = read_roster(path)
    assert [person.id for person in people.people] == ["1002"]
    assert people.find(["zoe muller"]) == people.find(["1002"]) == people.people[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1001,Ada\n", "has no column for an id"),
        ("", "has no column for an id"),
        ("alias,week\nx,y\n", "has no column for an id"),
        ("id,name\n1,Ada\n1,Bob\n", "has two people with the id 1"),
        ("id,name\nbob,B\nada,Ada\nADA,Ada\n", "has two people with the id ada (capitals do not count)"),
        (None, "is not there"),
    ],
)
def test_another_roster_is_one_sentence(text, message, tmp_path, inbox, capsys):
    if text is not None:
        (tmp_path / "roster.csv").write_text(text)
    place = inbox({"ada.ipynb": worksheet()})
    command = ["assignment", "collect", str(place), "--out", str(tmp_path / "out"), "--roster"]
    assert main([*command, str(tmp_path / "roster.csv")]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_without_a_roster_people_go_by_what_the_files_say(inbox, out):
    files = {
        "Ada Lovelace_12345_assignsubmission_file_/a.ipynb": "Ada_Lovelace_12345",
        "Jan Kowalski_7_assignsubmission_file_/a.ipynb": "Jan_Kowalski_7",
        "Jan Kowalski_8_assignsubmission_file_/a.ipynb": "Jan_Kowalski_8",
        "Copy of 03_attention.ipynb": "Copy_of_03_attention",
        "Copy of 03_attention (1).ipynb": "Copy_of_03_attention_1",
        "eve.ipynb": "eve",
        "eve (1).ipynb": "eve_1",
        "student-1.ipynb": "student-1",
        "student-2.ipynb": "student-2",
    }
    collect(inbox({path: worksheet(path) for path in files}), out)
    assert {path: text_of(out, student) for path, student in files.items()} == {path: path for path in files}


SEVERAL = {
    "a zip": (
        {"download.zip": zipped({"Ada.ipynb": worksheet("a"), "Bob.ipynb": worksheet("b")})},
        "Ada Bob",
    ),
    "a folder in a zip": (
        {"x.zip": zipped({"Homework 3/Ada.ipynb": worksheet("a"), "Homework 3/Bob.ipynb": worksheet("b")})},
        "Ada Bob",
    ),
    "sections": (
        {"A/Ada.ipynb": worksheet("a"), "A/Bob.ipynb": worksheet("b"), "B/Eve.ipynb": worksheet("e")},
        "Ada Bob B",
    ),
    "one name in two sections": (
        {f"section {x}/{name}.ipynb": worksheet(x + name) for x in "AB" for name in ("Ada", "Bob")},
        "section_A_Ada section_A_Bob section_B_Ada section_B_Bob",
    ),
    "folders in a folder": (
        {f"week 3/{name}/Copy of 03_attention.ipynb": worksheet(name) for name in ("Ada Lovelace", "Bob")},
        "Ada_Lovelace Bob",
    ),
    "a name beside a worksheet's": (
        {"week 3/03_attention.ipynb": worksheet("?"), "week 3/Ada.ipynb": worksheet("a")},
        "week_3 Ada",
    ),
    "several chapters": (
        {f"ada/{x}.ipynb": worksheet(x, x) for x in ("02_tokens", "03_attention")},
        "ada",
    ),
    "copies of one": (
        {f"ada/{x}.ipynb": worksheet("a") for x in ("draft", "final")},
        "ada",
    ),
    "several of one student": (
        {f"ada/{x}03_attention.ipynb": worksheet(x) for x in ("", "Copy of ")},
        "ada",
    ),
    "several of one student in Moodle": (
        {f"Ada_7_assignsubmission_file_/{x}.ipynb": worksheet(x) for x in ("draft", "final")},
        "Ada_7",
    ),
}


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("known", [False, True])
def test_a_folder_of_several_peoples_notebooks_makes_them_no_one_person(name, known, inbox, roster, out):
    files, people = SEVERAL[name]
    place = inbox(files)
    (place / "Maria de la Cruz.ipynb").write_text(worksheet("m"))
    roster.write_text("id,name\n1003,Maria de la Cruz\n")
    maria = "1003" if known else "Maria_de_la_Cruz"
    for _ in range(2):
        rows = collect(place, out, roster if known else None)
        assert {row["student"] for row in rows} == {*people.split(), maria}
        said = [row["student"] for row in rows if "so each goes by its own name" in row["note"]]
        assert bool(said) == (len(people.split()) > 1), "it is told where a folder was taken apart"
        assert text_of(out, maria) == "m"
    assert not (out / ".earlier").exists()


def test_what_is_on_no_roster_is_said_and_kept_until_an_alias_says_whose_it_is(inbox, roster, out):
    place = inbox({"Copy of 03_attention.ipynb": worksheet("whose?")})
    rows = {row["student"]: row for row in collect(place, out, roster)}
    assert rows["Copy_of_03_attention"]["note"] == "not on the roster"
    assert text_of(out, "Copy_of_03_attention") == "whose?"
    lines = ROSTER.splitlines()
    lines = [f"{lines[0]},alias", f"{lines[1]},Copy of 03_attention", *(f"{line}," for line in lines[2:])]
    roster.write_text("\n".join(lines), encoding="utf-8")
    rows = {row["student"]: row for row in collect(place, out, roster)}
    assert "Copy_of_03_attention" not in rows
    assert text_of(out, "1001") == "whose?"
    assert not list(out.glob("Copy*/*/*.ipynb"))
    assert len(list(out.glob(".earlier/Copy*/*/*.ipynb"))) == 1


def test_the_newest_of_several_counts_and_the_others_are_named(inbox, roster, out):
    place = inbox({"Ada Lovelace/b.ipynb": worksheet("old"), "Ada Lovelace/a.ipynb": worksheet("new")})
    rows = collect(place, out, roster)
    assert text_of(out, "1001") == "new"
    assert rows[0]["note"] == "newer than Ada Lovelace/b.ipynb"


def test_nbgrader_is_told_when_a_notebook_was_written(inbox, out):
    """Its penalty for being late goes by this file."""
    collect(inbox({"ada/x.ipynb": worksheet()}), out)
    assert (out / "ada" / "03_attention" / "timestamp.txt").read_text() == "2023-11-14 22:13:20 UTC\n"


def test_times_inside_a_zip_count(tmp_path, roster, out):
    path = tmp_path / "inbox.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, day in (("a", 2), ("b", 1)):
            archive.writestr(
                zipfile.ZipInfo(f"Ada Lovelace/{name}.ipynb", (2024, 5, day, 12, 0, 0)), worksheet(name)
            )
    collect(path, out, roster)
    assert text_of(out, "1001") == "a"
    written = (out / "1001" / "03_attention" / "03_attention.ipynb").stat().st_mtime
    assert written == time.mktime((2024, 5, 2, 12, 0, 0, 0, 0, -1))


def test_what_lies_too_deep_or_is_too_large_is_said(inbox, roster, out, monkeypatch):
    deep = zipped({"x.ipynb": worksheet()})
    for number in range(4):
        deep = zipped({f"{number}.zip": deep})
    (first, *_) = collect(inbox({"Ada Lovelace/a.zip": deep}), out, roster)
    assert "in more than 3 others" in first["note"]
    monkeypatch.setattr("vit_classroom.assignments.inbox.LARGEST", 10)
    place = inbox({"Ada Lovelace/x.ipynb": worksheet()}, "more")
    (first, *_) = collect(place, out.with_name("other"), roster)
    assert "expected a notebook" in first["note"]


def test_a_zip_unpacks_to_no_more_than_it_says_with_those_in_it(tmp_path, roster, out, monkeypatch):
    path = tmp_path / "inbox.zip"
    path.write_bytes(understated(zipped({"x.ipynb": b"0" * 60_000_000}), 100))
    tracemalloc.start()
    with pytest.raises(InputError, match="cannot be read"):
        collect(path, out)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()
    sheet = worksheet("a" * 9000)
    monkeypatch.setattr("vit_classroom.assignments.inbox.UNPACKED", 3 * len(sheet) - 1)
    inner = {f"{number}.zip": zipped({"x.ipynb": sheet}) for number in range(3)}
    path.write_bytes(zipped({"1001.zip": zipped(inner), "1002.zip": zipped({"x.ipynb": sheet})}))
    rows = collect(path, out, roster)
    assert "2.zip is a zip that would unpack to" in rows[0]["note"]
    assert text_of(out, "1001") == text_of(out, "1002") == "a" * 9000


def test_canvas_goes_by_its_own_numbers(roster):
    lines = ["Student,ID,SIS User ID,SIS Login ID,Section", "    Points Possible,,,,"]
    lines += ['"Kowalski, Jan",55,s1,j1,A', '"Kowalski, Jan",56,s2,j2,A']
    roster.write_text("\n".join(lines), encoding="utf-8")
    people = read_roster(roster)
    assert len(people.people) == 2
    second = whose(("kowalskijan_56_9_03_attention.ipynb",), people)[0]
    assert second == people.people[1]


@pytest.mark.parametrize("copy", ["03_attention (2)", "03_attention-2"])
def test_of_two_of_one_time_the_second_copy_counts(copy, inbox, out):
    place = inbox({f"ada/{copy}.ipynb": worksheet("2"), "ada/03_attention.ipynb": worksheet("0")})
    for path in place.rglob("*.ipynb"):
        os.utime(path, (NOON, NOON))
    collect(place, out)
    assert text_of(out, "ada") == "2"


def test_a_worksheet_without_its_first_lines_goes_by_the_names_of_its_cells(inbox, out, stub):
    cells = [cell for cell in stub["cells"] if "Worksheet(" not in str(cell["source"])]
    collect(inbox({"ada.ipynb": json.dumps(stub | {"cells": cells})}), out)
    assert (out / "ada" / "03_attention" / "03_attention.ipynb").exists()


def test_each_worksheet_goes_by_its_own_line_and_not_by_its_name(inbox, out):
    place = inbox(
        {"ada/03_attention.ipynb": worksheet("tokens", "02_tokens"), "ada/x.ipynb": worksheet("attention")}
    )
    collect(place, out)
    assert (text_of(out, "ada", "02_tokens"), text_of(out, "ada")) == ("tokens", "attention")


DEFLATED = zlib.compress(b"x" * 99)[2:-4]
DAMAGED = zipped({"x.ipynb": "x" * 99}).replace(DEFLATED, b"\xff" * len(DEFLATED))
INSTEAD = {
    "a script": (
        {"Ada Lovelace/answers.py": "print(1)"},
        "no worksheet: Ada Lovelace/answers.py",
    ),
    "an empty folder": ({"Ada Lovelace_1_assignsubmission_file_": None}, "is empty"),
    "an empty file": ({"Ada Lovelace/x.ipynb": ""}, "Ada Lovelace/x.ipynb is empty"),
    "another notebook": ({"Ada Lovelace/x.ipynb": '{"cells": []}'}, "is a notebook and not one of the"),
    "no notebook": ({"Ada Lovelace/x.ipynb": "{"}, "is not a Jupyter notebook"),
    "a damaged zip": ({"Ada Lovelace/x.zip": "PK"}, "is a zip that cannot be read"),
    "a zip that climbs": (
        {"Ada Lovelace.zip": zipped({"../x.ipynb": worksheet()})},
        "a zip with the path ../x.ipynb",
    ),
    "an absolute path": (
        {"Ada Lovelace.zip": zipped({"/etc/x.ipynb": worksheet()})},
        "with the path /etc/x.ipynb",
    ),
    "a path of Windows": ({"Ada Lovelace.zip": zipped({"..\\x.ipynb": worksheet()})}, "with the path"),
    "a path on a drive": ({"Ada Lovelace.zip": zipped({"C:\\x.ipynb": worksheet()})}, "with the path"),
    "a bomb": (
        {"Ada Lovelace/x.zip": zipped({f"{n}.txt": b"0" * 60_000_000 for n in range(2)})},
        "unpack to 120 MB",
    ),
    "a rare way of packing": (
        {"Ada Lovelace/x.zip": zipped({"x.ipynb": worksheet()}, zipfile.ZIP_LZMA)},
        "packed in a rare way: expected Deflate",
    ),
    "a zip of damaged bytes": ({"Ada Lovelace/x.zip": DAMAGED}, "is a zip that cannot be read"),
}


@pytest.mark.parametrize("name", INSTEAD)
def test_what_is_no_worksheet_has_a_row_that_says_so(name, inbox, roster, out, capsys):
    files, said = INSTEAD[name]
    place = inbox({**files, "Zoë Müller.ipynb": worksheet("zoe's")})
    assert main(["assignment", "collect", str(place), "--out", str(out), "--roster", str(roster)]) == 0
    rows = read_list(out).rows
    assert (rows[0]["student"], rows[0]["chapter"]) == ("1001", "")
    assert said in rows[0]["note"]
    assert f"1001: {rows[0]['note']}" in capsys.readouterr().out
    assert text_of(out, "1002") == "zoe's"
    assert sorted(path.name for path in out.iterdir()) == ["1002", LIST]


@pytest.mark.parametrize("name", ["a zip that climbs", "a bomb", "a damaged zip"])
def test_an_inbox_that_is_such_a_zip_is_refused_in_one_sentence(name, tmp_path, out, capsys):
    (content,) = INSTEAD[name][0].values()
    path = tmp_path / "inbox.zip"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert main(["assignment", "collect", str(path), "--out", str(out)]) == 2
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert str(path) in err
    assert not out.exists()


def test_a_colon_in_a_name_refuses_nobodys_zip(tmp_path, out, roster):
    path = tmp_path / "inbox.zip"
    path.write_bytes(zipped({"Q: mine.ipynb": worksheet("q"), "1002.ipynb": worksheet("z")}))
    collect(path, out, roster)
    assert text_of(out, "1002") == "z"


def test_zips_in_zips_are_opened(tmp_path, out, roster):
    deep = zipped({"work/Kopie von 03_attention.ipynb": worksheet("deep"), "__MACOSX/._x.ipynb": "x"})
    loose = {
        "Ada Lovelace_1_assignsubmission_file_/all.zip": deep,
        "1002.zip": zipped({"x.ipynb": worksheet("z")}),
    }
    path = tmp_path / "inbox.zip"
    path.write_bytes(zipped(loose))
    rows = collect(path, out, roster)
    assert (text_of(out, "1001"), text_of(out, "1002")) == ("deep", "z")
    assert [row["note"] for row in rows[:2]] == ["", ""]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
def test_every_encoding_becomes_the_one_that_nbgrader_reads(encoding, inbox, out):
    collect(inbox({"zoe.ipynb": worksheet("Zoë").encode(encoding)}), out)
    assert text_of(out, "zoe") == "Zoë"


def test_a_second_call_changes_nothing(inbox, roster, out):
    files = {"Ada Lovelace/b.ipynb": worksheet("b"), "Ada Lovelace/a.ipynb": worksheet("a"), "Bob/x.py": ""}
    place = inbox({**files, "Zoë Müller/03_attention.ipynb": worksheet("ë").encode("utf-16")})
    first = collect(place, out, roster)
    before = everything(out)
    assert collect(place, out, roster) == first
    assert everything(out) == before


def test_a_list_of_an_older_version_keeps_what_was_typed_into_it(inbox, roster, out):
    place = inbox({"Ada Lovelace/b.ipynb": worksheet("b")})
    collect(place, out, roster)
    table = read_csv(out / LIST, lambda head: True, "")
    old = [
        {name: value for name, value in row.items() if name != "handed_in"} | {"excused": "yes"}
        for row in table.rows
    ]
    (out / LIST).write_bytes(as_csv(Table([*old[0]], old)))
    row = collect(place, out, roster)[0]
    assert (row["excused"], row["file"]) == ("yes", "Ada Lovelace/b.ipynb")
    assert row["handed_in"].endswith(" UTC")


def test_a_later_notebook_takes_the_place_of_an_earlier_one_which_is_kept(inbox, roster, out):
    first = inbox({"Ada Lovelace.ipynb": worksheet("first"), "Zoë Müller.ipynb": worksheet("zoe's")}, "first")
    second = inbox({"x/y.txt": "", "Ada Lovelace.ipynb": worksheet("second")}, "second")
    collect(first, out, roster)
    rows = {row["student"]: row for row in collect(second, out, roster)}
    assert (text_of(out, "1001"), text_of(out, "1002")) == ("second", "zoe's")
    assert "what was collected before is in .earlier/1001/03_attention" in rows["1001"]["note"]
    (kept,) = (out / ".earlier").rglob("*.ipynb")
    assert "first" in kept.read_text()
    rows = {row["student"]: row for row in collect(first, out, roster)}
    assert text_of(out, "1001") == "second", "an older download takes nothing back"
    assert "Ada Lovelace.ipynb differs, is older, and was left out" in rows["1001"]["note"]
    before = everything(out)
    collect(first, out, roster)
    assert everything(out) == before


def test_what_a_list_says_is_no_formula_and_the_name_of_its_folder(inbox, out):
    first = inbox({"@bob/=1.ipynb": worksheet("first")}, "first")
    second = inbox({"@bob/0.py": "", "@bob/=1.ipynb": worksheet("second")}, "second")
    for place in (first, second, first, first):
        (row,) = collect(place, out)
    assert text_of(out, row["student"]) == "second"
    assert row["note"].count("differs, is older") == 1
    assert all(value == harmless(value) for value in row.values())


def test_wherever_it_is_killed_the_next_call_gives_the_same(inbox, roster, tmp_path, monkeypatch):
    places = [
        inbox({"Ada Lovelace.ipynb": worksheet("first"), "Zoë Müller.ipynb": worksheet("zoe's")}, "first"),
        inbox({"x/y.txt": "", "Ada Lovelace.ipynb": worksheet("second")}, "second"),
    ]
    whole, death = tmp_path / "whole", Death(monkeypatch)
    for place in places:
        collect(place, whole, roster)
    for operations in itertools.count():
        out, died = tmp_path / f"killed{operations}", False
        for place in places:
            death.comes_after(operations)
            try:
                collect(place, out, roster)
            except Killed:
                died = True
            death.comes_after(-1)
            for notebook in out.rglob("*.ipynb"):
                json.loads(notebook.read_text(encoding="utf-8"))
            collect(place, out, roster)
        assert everything(out) == everything(whole)
        if not died:
            break
    assert operations > 15


@pytest.mark.parametrize("delimiter", [",", ";"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252"])
def test_columns_that_a_person_added_to_the_list_stay(delimiter, encoding, inbox, roster, out):
    """Also of somebody who had handed in nothing, or has become known."""
    place = inbox({"Ada Lovelace.ipynb": worksheet("a"), "Untitled.ipynb": worksheet("u")})
    collect(place, out, roster)
    with open(out / LIST, encoding="utf-8", newline="") as file:
        lines = [["excused", *line][::-1] for line in csv.reader(file)]
    for line in lines[1:]:
        line[-1] = f"ü {line[-2]}"
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows(lines)
    (out / LIST).write_bytes(text.getvalue().encode(encoding))
    roster.write_text(
        ROSTER.replace("email\n", "email,alias\n").replace("zoe.m@uni.edu", "z@u,Untitled"), "utf-8"
    )
    inbox({"1004.ipynb": worksheet("j")})
    for _ in range(2):
        rows = {row["student"]: row for row in collect(place, out, roster)}
        typed = [(student, row["chapter"], row["excused"]) for student, row in rows.items()]
        assert typed == [
            ("1001", "03_attention", "ü 1001"),
            ("1002", "03_attention", "ü 1002"),
            ("1003", "", "ü 1003"),
            ("1004", "03_attention", "ü 1004"),
            ("1005", "", "ü 1005"),
        ]
        head = (out / LIST).read_bytes().removeprefix(b"\xef\xbb\xbf").decode().splitlines()[0]
        assert head.split(delimiter) == lines[0]


@pytest.mark.parametrize(
    ("where", "message"), [("nowhere", "neither a folder nor a zip"), ("inbox", "is in")]
)
def test_wrong_places_are_one_sentence(where, message, inbox, tmp_path):
    place = inbox({"ada.ipynb": worksheet()})
    with pytest.raises(InputError, match=message):
        collect(tmp_path / where, place / "out" if where == "inbox" else tmp_path / "out")


def test_nobody_is_known_without_a_roster():
    assert Roster().find(["ada"]) is None
