"""The address of the project stands in one place, and everything else follows it."""

import json

import pytest
import set_repository
from project_facts import read_repository

NEW = "https://github.com/some-school/vit-course"


@pytest.fixture
def project(copied_project):
    home = read_repository(copied_project).url
    colab = "https://colab.research.google.com/github/vit-from-scratch/vit_from_scratch/blob/main/notebooks/x.ipynb"
    google = "https://github.com/google-research/vision_transformer"
    readme = f"# A\n\n{home}\n\n[Colab]({colab})\n\n    git clone {home}\n\n[Google]({google})\n"
    (copied_project / "README.md").write_text(readme, encoding="utf-8")
    assert set_repository.export_notebooks.main([], copied_project) == 0
    return copied_project


def test_every_file_follows_the_new_address(project):
    assert set_repository.main(["--check"], project) == 0
    assert set_repository.main([NEW + ".git"], project) == 0
    assert read_repository(project).url == NEW
    assert set_repository.main(["--check"], project) == 0
    readme = (project / "README.md").read_text(encoding="utf-8")
    assert "github/some-school/vit-course/blob" in readme
    assert "vit-from-scratch/vit_from_scratch" not in readme
    assert "google-research/vision_transformer" in readme
    notebook = json.loads((project / "notebooks" / "98_neighbour.ipynb").read_text(encoding="utf-8"))
    assert "some-school/vit-course" in "".join(notebook["cells"][0]["source"])
    assert f'"{NEW}"' in "".join(notebook["cells"][1]["source"])


def test_setting_the_same_address_again_changes_nothing(project):
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    assert set_repository.main([read_repository(project).url], project) == 0
    assert before == {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "name", ["README.md", "CITATION.cff", "pyproject.toml", "notebooks/98_neighbour.ipynb"]
)
def test_check_names_the_file_that_disagrees(project, name, capsys):
    path = project / name
    path.write_text(
        path.read_text(encoding="utf-8").replace("vit-from-scratch/vit_from_scratch", "a/b"), encoding="utf-8"
    )
    assert set_repository.main(["--check"], project) == 1
    captured = capsys.readouterr()
    assert name in captured.err + captured.out


def test_something_else_than_an_address_is_refused(project, capsys):
    with pytest.raises(SystemExit):
        set_repository.main(["not an address"], project)
    assert "https://HOST/OWNER/NAME" in capsys.readouterr().err
