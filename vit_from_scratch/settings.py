"""Settings between three forms: frozen dataclasses in Python, tables in TOML, `KEY=VALUE` on a command line.

Every value is checked against the type hint of its field, so a recipe, a command line and a notebook
get the same messages.
"""

import contextlib
import dataclasses
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from vit_from_scratch.errors import InputError, shown, unknown_name

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")

Range = tuple[str, Callable[[Any], bool], str]
"""Fields by name, with spaces between; whether a value is in their range; and the range in words."""

LIMITS = {int: (2**63, "a whole number below 2^63"), float: (3.4e38, "a finite number below 3.4e38")}
"""What numbers stay below, either way: they end in tensors of int64 and float32."""


def require(condition: bool, name: str, given: object, expected: str) -> None:
    """Raise an `InputError` that names the option, its value and what it may be, unless `condition` holds."""
    if not condition:
        raise InputError(f"{name} = {shown(given)}: expected {expected}.")


def check_fields(config: object, where: str, ranges: Iterable[Range] = ()) -> None:
    """Check each field of a frozen dataclass against its type hint and ranges; call it in `__post_init__`.

    An int where a float is expected becomes a float and a list becomes a tuple, as TOML needs it.

    Raises:
        InputError: a value of another type, outside its `Literal` or out of a range.
    """
    for name, hint in _hints(type(config)).items():
        value = _converted(getattr(config, name), hint, f"{where}.{name}".strip("."))
        object.__setattr__(config, name, value)
    for names, fits, expected in ranges:
        for name in names.split():
            require(fits(getattr(config, name)), f"{where}.{name}", getattr(config, name), expected)


def from_table(cls: type[T], table: Mapping[str, Any], where: str) -> T:
    """Build the dataclass `cls` from a table of TOML.

    Args:
        cls: a dataclass; nested dataclasses are nested tables.
        table: the values; what is left out takes the dataclass's default.
        where: the name of the table in messages, such as "train"; empty for a whole file.

    Raises:
        InputError: an unknown key (with the nearest known one), a missing key or a value of another type.
    """
    hints = _hints(cls)
    place = f"[{where}]" if where else "the file"
    for key in table:
        if key not in hints:
            raise unknown_name(f"option of {place}", key, hints)
    values = {key: _converted(value, hints[key], f"{where}.{key}".strip(".")) for key, value in table.items()}
    for field in dataclasses.fields(cls):
        required = field.default is field.default_factory is dataclasses.MISSING
        if required and field.name not in values:
            expected = _described(hints[field.name])
            raise InputError(f"{place} has no {field.name!r}: expected {expected}. Add it.")
    return cls(**values)


def as_table(value: Any) -> Any:
    """Turn a dataclass into a table that TOML can hold: nested tables, lists, and no key for None."""
    if dataclasses.is_dataclass(value):
        items = {field.name: as_table(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {name: item for name, item in items.items() if item is not None}
    return [as_table(item) for item in value] if isinstance(value, tuple | list) else value


def flattened(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Name each value of nested tables by its path: {"train": {"seed": 0}} gives {"train.seed": 0}."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        flat |= flattened(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {prefix + key: value}
    return flat


def merged(table: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Lay nested tables over one another: what `changes` names wins, the rest stays."""
    result = dict(table)
    for key, value in changes.items():
        nested = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if nested else value
    return result


def _hints(cls: type) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls) if field.init}


def _converted(value: Any, hint: Any, name: str) -> Any:
    """Return `value` as the type that `hint` asks for, or raise the error that names both."""
    if isinstance(value, np.generic):
        value = value.item()
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if origin is Literal:
        if value in arguments:
            return value
        raise unknown_name(name, value, arguments)
    if origin in (typing.Union, types.UnionType):
        for argument in arguments:
            with contextlib.suppress(InputError):
                return _converted(value, argument, name)
    elif origin is tuple and isinstance(value, list | tuple):
        kinds = arguments[:1] * len(value) if arguments[-1] is ... else arguments
        if len(kinds) == len(value):
            return tuple(_converted(item, kind, name) for item, kind in zip(value, kinds, strict=True))
    elif origin is dict and isinstance(value, dict):
        return {key: _converted(item, arguments[1], f"{name}.{key}") for key, item in value.items()}
    elif hint in LIMITS:
        if isinstance(value, int if hint is int else int | float) and not isinstance(value, bool):
            limit, expected = LIMITS[hint]
            require(-limit < value < limit, name, value, expected)  # written so that NaN fails, too
            return hint(value)
    elif origin is None and isinstance(value, hint):
        return value
    elif isinstance(value, str) and hasattr(hint, "named"):  # a preset in place of a table
        return hint.named(value)
    elif dataclasses.is_dataclass(hint) and isinstance(value, Mapping):
        return from_table(typing.cast(type, hint), value, name)
    raise InputError(f"{name} = {shown(value)}: expected {_described(hint)}.")


def _described(hint: Any) -> str:
    """Say a type hint in words: "a whole number", "a list of 2, each a number"."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return "one of " + ", ".join(repr(argument) for argument in arguments)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_described(argument) for argument in arguments)
    if origin is tuple:
        length = "any length" if arguments[-1] is ... else len(arguments)
        return f"a list of {length}, each {_described(arguments[0])}"
    if dataclasses.is_dataclass(hint) or origin is dict:
        return "a table"
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "a string"}
    return (words | {type(None): "nothing"}).get(hint, str(hint))
