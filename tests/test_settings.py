"""Settings: what a table of TOML may hold, and how messages name what it may not."""

import dataclasses
import tomllib
from typing import Any

import numpy as np
import pytest

from vit_from_scratch.errors import InputError, reason, shown, unknown_name
from vit_from_scratch.settings import from_table
from vit_lab.experiments.packaged import parse_toml, read_toml


@dataclasses.dataclass(frozen=True)
class Inner:
    """A table in a table."""

    rate: float = 1.0
    rates: tuple[float, ...] = ()


@dataclasses.dataclass(frozen=True)
class Outer:
    """Every kind of setting that there is."""

    count: int = 0
    size: int | None = None
    flag: bool = False
    inner: Inner = dataclasses.field(default_factory=Inner)
    table: dict[str, Any] = dataclasses.field(default_factory=dict)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"count": 2**63}, "count = 9223372036854775808: expected a whole number below 2^63."),
        ({"count": -(2**63)}, "count = -9223372036854775808: expected a whole number below 2^63."),
        ({"count": 10**5000}, "count = (int, too long to print): expected a whole number below 2^63."),
        ({"count": 1.0}, "count = 1.0: expected a whole number."),
        ({"count": True}, "count = True: expected a whole number."),
        (
            {"size": "x" * 999},
            f"size = '{'x' * 49}... (1,001 characters): expected a whole number or nothing.",
        ),
        ({"flag": 1}, "flag = 1: expected true or false."),
        ({"inner": 3}, "inner = 3: expected a table."),
        ({"table": 3}, "table = 3: expected a table."),
        ({"inner": {"rate": 1e39}}, "inner.rate = 1e+39: expected a finite number below 3.4e38."),
        ({"inner": {"rate": -float("inf")}}, "inner.rate = -inf: expected a finite number below 3.4e38."),
        ({"inner": {"rate": float("nan")}}, "inner.rate = nan: expected a finite number below 3.4e38."),
        ({"inner": {"rate": 10**400}}, "expected a finite number below 3.4e38."),
        ({"inner": {"rates": 1}}, "inner.rates = 1: expected a list of any length, each a number."),
    ],
)
def test_a_value_that_no_setting_has_is_named_in_words(table, message):
    with pytest.raises(InputError) as caught:
        from_table(Outer, table, "")
    assert str(caught.value).endswith(message)
    assert len(str(caught.value)) < 200


def test_values_within_the_limits_are_taken_as_they_are():
    settings = from_table(Outer, {"count": 2**63 - 1, "inner": {"rate": 3, "rates": [1e-300, -3.3e38]}}, "")
    assert settings == Outer(count=2**63 - 1, inner=Inner(3.0, (1e-300, -3.3e38)))
    assert isinstance(settings.inner.rate, float)


def test_numbers_of_numpy_are_numbers():
    given = {"count": np.int64(3), "inner": {"rate": np.float32(0.5), "rates": [np.int8(1)]}}
    settings = from_table(Outer, given, "")
    assert settings == Outer(count=3, inner=Inner(0.5, (1.0,)))
    assert type(settings.count) is int
    for wrong in (np.float64(3.5), np.bool_(True), np.array([3])):
        with pytest.raises(InputError, match=r"count = .*expected a whole number"):
            from_table(Outer, {"count": wrong}, "")


def test_toml_that_python_cannot_read_is_one_sentence():
    assert parse_toml("a = [[1]]", "it") == {"a": [[1]]}
    with pytest.raises(tomllib.TOMLDecodeError):
        parse_toml("a = ", "it")
    with pytest.raises(InputError, match="it is nested too deeply"):
        parse_toml(f"a = {'[' * 5000}", "it")
    with pytest.raises(InputError, match="it holds a number of thousands of digits"):
        parse_toml(f"a = {'9' * 5000}", "it")


def test_a_file_of_toml_is_read_with_and_without_a_byte_order_mark(tmp_path):
    for name, start in (("a", b""), ("b", b"\xef\xbb\xbf")):
        (tmp_path / name).write_bytes(start + "a = 'é'".encode())
        assert read_toml(tmp_path / name, "it") == {"a": "é"}
    (tmp_path / "c").write_bytes(b"a = '\xe9'")
    for path, message in (
        (tmp_path / "c", "it is not TOML: 'utf-8' codec"),
        (tmp_path / "d", "no it: expected a TOML file"),
        (tmp_path, "no it: expected a TOML file"),
    ):
        with pytest.raises(InputError, match=message):
            read_toml(path, "it")


def test_what_a_message_shows_is_short():
    assert shown([1, 2]) == "[1, 2]"
    assert shown("x" * 99) == f"'{'x' * 49}... (101 characters)"
    endless: list = []
    for _ in range(10_000):
        endless = [endless]
    assert shown(endless) == "(list, too long to print)"
    assert len(str(unknown_name("size", "x" * 10**6, ["a"]))) < 150


def test_a_reason_is_the_first_sentence():
    assert reason(RuntimeError("No kernel for 1.5 here. This could be\nfor")) == "No kernel for 1.5 here."
    assert reason(RuntimeError("a\nb")) == "a"
    assert reason(RuntimeError("x" * 999)) == "x" * 200 + "..."
    assert reason(OSError(28, "No space left on device", "/a")) == "No space left on device"
    assert reason(KeyError()) == "KeyError"
