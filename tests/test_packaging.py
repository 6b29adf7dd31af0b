"""What is installed: the same for conda and pip, locked to versions that fit, and with its data."""

import argparse
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

from vit_classroom import command

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REQUIREMENTS = [
    Requirement(line)
    for group in (
        [PROJECT["dependencies"]]
        + [PROJECT["optional-dependencies"][name] for name in ("book", "export", "dev")]
    )
    for line in group
]
PACKAGES = ("vit_from_scratch", "vit_lab", "vit_classroom")
DATA_SUFFIXES = {
    *(".toml", ".json", ".safetensors", ".typed", ".js", ".css", ".html"),
    *(".txt", ".ttf", ".ipynb"),  # classes and licences, fonts, assignments
}


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def locked():
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def files_of_the_packages():
    """Every file of the three packages."""
    return [
        path
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    ]


def data_files():
    return [path for path in files_of_the_packages() if path.suffix in DATA_SUFFIXES]


def test_the_conda_environment_is_python_and_the_package():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    python, pip, packages = environment["dependencies"]
    assert python == f"python{PROJECT['requires-python']},<3.15"
    assert pip == "pip"
    assert packages == {"pip": ["-e .[book]"]}
    assert environment["name"] == PROJECT["name"]


@pytest.mark.parametrize("wanted", REQUIREMENTS, ids=str)
def test_the_lock_satisfies_every_range_and_the_project_freezes_none(wanted):
    assert "==" not in str(wanted.specifier)
    pins = [pin for pin in locked() if normal(pin.name) == normal(wanted.name)]
    assert pins, f"{wanted.name} is not in requirements.lock: run `make lock`"
    for pin in pins:
        (version,) = pin.specifier
        assert wanted.specifier.contains(Version(version.version), prereleases=True)


def test_the_lock_leaves_out_what_only_a_graphics_card_needs():
    assert not [pin.name for pin in locked() if pin.name.startswith(("nvidia", "cuda", "triton"))]


def test_the_version_is_the_installed_one():
    assert importlib.metadata.version(PROJECT["name"]) == PROJECT["version"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Build the wheel without a network and unpack it into a folder of its own, as pip would."""
    folder = tmp_path_factory.mktemp("installed")
    wheels, target = folder / "wheels", folder / "site"
    source = folder / "source"
    copy_source(source)
    run("-m", "build", "--wheel", "--no-isolation", "--outdir", str(wheels), str(source))
    (wheel,) = wheels.glob("*.whl")
    run("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(target), str(wheel))
    return target


def copy_source(target):
    """Copy what the wheel is made of, so that building leaves nothing behind in the project."""
    target.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "THIRD_PARTY.md"):
        (target / name).write_bytes((ROOT / name).read_bytes())
    for path in files_of_the_packages():
        copy = target / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())


def run(*arguments, **options):
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_holds_every_data_file(installed):
    missing = [path for path in data_files() if not (installed / path.relative_to(ROOT)).exists()]
    assert missing == []


PROGRAM = """
import json, sys, tomllib
from importlib.metadata import entry_points
from importlib.resources import files
import vit_classroom, vit_from_scratch, vit_lab
from safetensors.numpy import load
print(vit_from_scratch.__file__, vit_lab.__file__, vit_classroom.__file__)
kinds = [("vit_lab", "toml", lambda entry: tomllib.loads(entry.read_text(encoding="utf-8")))]
kinds += [("vit_lab", "json", lambda entry: json.loads(entry.read_text(encoding="utf-8")))]
kinds += [("vit_from_scratch", "safetensors", lambda entry: load(entry.read_bytes()))]
for package, suffix, opened in kinds:
    for folder in files(package).iterdir():
        for entry in folder.iterdir() if folder.is_dir() else []:
            if entry.name.endswith("." + suffix):
                opened(entry)
                print(f"{package}/{folder.name}/{entry.name}")
print(*[entry.value for entry in entry_points(group="vit.commands", name="assignment")])
"""


def test_an_installed_copy_loads_its_recipes_results_and_weights_and_brings_its_commands(installed, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    places, *found, command = run("-c", PROGRAM, cwd=tmp_path, env=environment).splitlines()
    assert all(place.startswith(str(installed)) for place in places.split())
    shipped = [
        path.relative_to(ROOT).as_posix()
        for package, suffixes in (("vit_lab", (".toml", ".json")), ("vit_from_scratch", (".safetensors",)))
        for path in sorted((ROOT / package).glob("*/*"))
        if path.suffix in suffixes
    ]
    assert sorted(found) == sorted(shipped)
    assert "vit_lab/recipes/digits.toml" in found
    assert "vit_classroom.command" in command.split()


@pytest.mark.slow
def test_the_package_of_a_release_is_what_pypi_takes(tmp_path):
    source, dist = tmp_path / "source", tmp_path / "dist"
    copy_source(source)
    run("-m", "build", "--no-isolation", "--outdir", str(dist), str(source))
    built = sorted(path.name for path in dist.iterdir())
    name = f"vit_from_scratch-{PROJECT['version']}"
    assert built == [f"{name}-py3-none-any.whl", f"{name}.tar.gz"]
    said = run("-m", "twine", "check", "--strict", *(str(dist / each) for each in built))
    assert said.count("PASSED") == 2


@pytest.mark.slow
def test_a_tag_can_be_installed_and_brings_its_command(tmp_path):
    clone, tag = tmp_path / "clone", f"v{PROJECT['version']}-rehearsed"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    subprocess.run(["git", "tag", tag], cwd=clone, check=True)
    fresh = tmp_path / "fresh"
    run("-m", "venv", "--without-pip", str(fresh))
    packages = fresh / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    (packages / "present.pth").write_text(f"{Path(pytest.__file__).parents[1]}\n", encoding="utf-8")
    python, environment = str(fresh / "bin" / "python"), {**os.environ}
    environment.pop("PYTHONPATH", None)
    pip = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--ignore-installed"]
    for arguments in (
        [*pip, f"git+file://{clone}@{tag}"],
        ["-c", "import vit_from_scratch as v; print(v.__file__)"],
    ):
        done = subprocess.run(
            [python, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(fresh)
    said = subprocess.run(
        [fresh / "bin" / "vit", "recipes"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert said.returncode == 0, said.stderr
    assert "digits" in said.stdout


def test_the_container_for_grading_is_called_as_its_page_says():
    """No daemon here: its parts are there, all that the packages need, and the command is one that exists."""
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    copied = [name for line in lines if line.startswith("COPY ") for name in line.split()[1:-1]]
    assert {*PACKAGES, "pyproject.toml", PROJECT["readme"], *PROJECT["license-files"][:2]} <= {*copied}
    assert all((ROOT / name).exists() for name in copied)
    (start,) = [json.loads(line.removeprefix("ENTRYPOINT ")) for line in lines if "ENTRYPOINT" in line]
    page = (ROOT / "book" / "for_instructors.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```sh\n(docker .*?)^```", page, re.DOTALL | re.MULTILINE)
    build, run = block.replace("\\\n", " ").splitlines()
    (image,) = re.findall(r"--tag (\S+) \.$", build)
    options, arguments = run.split(f" {image} ")
    assert f":{next(line.split()[1] for line in reversed(lines) if 'WORKDIR' in line)}" in options
    assert start[0] in PROJECT["scripts"]
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    assert parser.parse_args([*start[1:], *arguments.split()]).part == "grade"
