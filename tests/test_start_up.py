"""Commands answer at once: they import what takes seconds only when they run."""

import subprocess
import sys

import pytest

SLOW = ("torch", "torchvision", "sklearn", "matplotlib", "skimage")

PROGRAM = """
import os, pwd, sys

def unknown(uid):
    raise KeyError(uid)

os.environ.pop("HOME", None)  # nor does any of them need a home folder
pwd.getpwuid = unknown
for line in sys.stdin.read().splitlines():
    name, _, typed = line.partition(" ")
    if name == "vit":
        from vit_lab.cli import main
        try:
            main(typed.split())
        except SystemExit:  # after --help
            pass
    else:
        exec(line)
    print("###", *[m for m in %r if m in sys.modules])
"""

COMMANDS = """\
import vit_from_scratch
vit --help
vit train --help
vit recipes
vit train --recipe digits --show
vit train --recipe tiny-imagenet-masked-pixels --show
vit train --recipe digits --objective words
vit finetune --weights nope --data digits
vit finetune --weights tiny-imagenet --data nope
vit train --recipe digitz
vit train --nope
vit predict x --weights nope
vit predict x --out nope
vit cost Z/16
vit export --help
vit export nope
vit export nope --format safetensors-timm --out x.txt
vit study nope
vit train --data nope
vit train --data shards:nope
vit train --recipe digits --set model.dmi=3
vit train --recipe digits --set train.epochs=-1
vit
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs the module pwd")
def test_what_needs_no_model_imports_nothing_that_takes_seconds(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM % (SLOW,)],
        input=COMMANDS,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    imported = [line for line in done.stdout.splitlines() if line.startswith("###")]
    expected = [f"{command}: ###" for command in COMMANDS.splitlines()]
    assert [f"{c}: {found}" for c, found in zip(COMMANDS.splitlines(), imported, strict=True)] == expected
    assert done.stderr.count("vit: ") == 16, "one sentence for each mistake"
    assert "Traceback" not in done.stderr


def test_a_command_of_the_laboratory_does_not_load_those_of_the_classroom():
    program = (
        "import sys; from vit_lab.cli import main; main(['recipes']); print('vit_classroom' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
