"""Freed memory is kept while a model trains, and given back afterwards."""

import os
import platform
import subprocess
import sys
from types import SimpleNamespace

import pytest

from vit_lab.runs import allocator
from vit_lab.runs.allocator import keeping_freed_memory

FRESH_PAGES = """
import os, resource, torch
from vit_lab.runs.allocator import keeping_freed_memory

PIECE = 10_000_000  # numbers, 40 MB: too large for what the library keeps by itself

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        torch.ones(PIECE)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def held():
    pages = int(open("/proc/self/statm").read().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (4 * PIECE)

usual = faults()
start = held()
with keeping_freed_memory() as kept:
    faults()
    print(kept, faults() / usual)
    pieces = [torch.ones(PIECE) for _ in range(5)]
    del pieces
    print(held() - start)
print(held() - start)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's allocator has these settings")
def test_a_step_finds_its_pages_where_the_one_before_left_them():
    chosen = {
        name: value for name, value in os.environ.items() if "MALLOC" not in name and "GLIBC" not in name
    }
    done = subprocess.run(
        [sys.executable, "-c", FRESH_PAGES], env=chosen, capture_output=True, text=True, check=True
    )
    kept, faults, pieces_kept, pieces_afterwards = done.stdout.split()
    assert kept == "True"
    assert float(faults) < 0.1  # of those without it
    assert float(pieces_kept) > 4.5
    assert float(pieces_afterwards) < 0.5


@pytest.mark.parametrize("name", ["MALLOC_ARENA_MAX", "GLIBC_TUNABLES"])
def test_settings_made_from_outside_are_kept_to(monkeypatch, name):
    monkeypatch.setenv(name, "1")
    with keeping_freed_memory() as kept:
        assert not kept


def test_another_system_is_not_asked_for_its_library(monkeypatch):
    monkeypatch.setattr(allocator, "sys", SimpleNamespace(platform="win32"))
    monkeypatch.setattr(allocator.platform, "libc_ver", lambda: ("glibc", "2.36"))
    for name in [name for name in os.environ if "MALLOC" in name or "GLIBC" in name]:
        monkeypatch.delenv(name)
    with keeping_freed_memory() as kept:
        assert not kept


def test_nothing_is_kept_that_is_not_wanted():
    with keeping_freed_memory(wanted=False) as kept:
        assert not kept
