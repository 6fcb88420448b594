"""What values of a store's JSON may be: small checks that are put together.

A store may be damaged, or made to do harm, so nothing is taken for what it should be. A shape looks
at a value and raises `MisfitError`, which says where and why; `clew.store.said` puts them together,
one for each kind of file. Fields that a shape does not know are left alone.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from clew.store.inside import table_file

Shape: TypeAlias = Callable[[Any, str], None]

_MOST = 1 << 63
_SHOWN = 60


class MisfitError(ValueError):
    """A value is not what it should be; the text says which and why."""


def misfit(at: str, value: Any, wanted: str) -> MisfitError:
    """Say that a value is not what it should be."""
    shown = repr(value)
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
    return MisfitError(f"`{at}` is {shown} and should be {wanted}")


def text(value: Any, at: str) -> None:
    """Take a text."""
    if not isinstance(value, str):
        raise misfit(at, value, "a text")


def moment(value: Any, at: str) -> None:
    """Take a text that is a point in time, with its zone."""
    try:
        found = dt.datetime.fromisoformat(value.replace("Z", "+00:00"))
        if found.tzinfo is None:
            raise ValueError  # noqa: TRY301 (said below, as for any other text)
        found.astimezone(dt.timezone.utc)
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise misfit(at, value, "a point in time") from error


def name(value: Any, at: str) -> None:
    """Take a text that can name something."""
    if not isinstance(value, str) or not value:
        raise misfit(at, value, "a name")


def whole(value: Any, at: str) -> None:
    """Take a whole number of 64 bits."""
    if not isinstance(value, int) or isinstance(value, bool) or not -_MOST <= value < _MOST:
        raise misfit(at, value, "a whole number")


def count(value: Any, at: str) -> None:
    """Take a whole number that is not negative."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MOST:
        raise misfit(at, value, "a whole number that is not negative")


def real(value: Any, at: str) -> None:
    """Take a number, whole or not."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise misfit(at, value, "a number")


def flag(value: Any, at: str) -> None:
    """Take true or false."""
    if not isinstance(value, bool):
        raise misfit(at, value, "true or false")


def file(value: Any, at: str) -> None:
    """Take the name of a file in one of the store's tables."""
    try:
        table_file(value)
    except ValueError as error:
        msg = f"`{at}`: {error}"
        raise MisfitError(msg) from error


def maybe(shape: Shape) -> Shape:
    """Take what a shape takes, or null."""

    def check(value: Any, at: str) -> None:
        if value is not None:
            shape(value, at)

    return check


def listed(shape: Shape) -> Shape:
    """Take a list of what a shape takes."""

    def check(value: Any, at: str) -> None:
        if not isinstance(value, list):
            raise misfit(at, value, "a list")
        for number, each in enumerate(value):
            shape(each, f"{at}[{number}]")

    return check


def row(*shapes: Shape) -> Shape:
    """Take a list of so many values, each of a shape of its own."""

    def check(value: Any, at: str) -> None:
        if not isinstance(value, list) or len(value) != len(shapes):
            raise misfit(at, value, f"a list of {len(shapes)} values")
        for place, (shape, part) in enumerate(zip(shapes, value, strict=True)):
            shape(part, f"{at}[{place}]")

    return check


def mapped(shape: Shape) -> Shape:
    """Take an object whose values a shape takes, whatever its keys are."""

    def check(value: Any, at: str) -> None:
        if not isinstance(value, dict):
            raise misfit(at, value, "an object")
        for key, each in value.items():
            shape(each, f"{at}.{key}" if at else key)

    return check


def record(needed: Mapping[str, Shape], known: Mapping[str, Shape] | None = None) -> Shape:
    """Take an object with some fields.

    Args:
        needed: Fields that must be there, and their shapes.
        known: Fields that may be there.
    """
    others = known or {}

    def check(value: Any, at: str) -> None:
        if not isinstance(value, dict):
            raise misfit(at or "it", value, "an object")
        missing = next((key for key in needed if key not in value), None)
        if missing is not None:
            where = f" in `{at}`" if at else ""
            msg = f"it has no '{missing}'{where}"
            raise MisfitError(msg)
        for key, shape in needed.items():
            shape(value[key], f"{at}.{key}" if at else key)
        for key, shape in others.items():
            if key in value:
                shape(value[key], f"{at}.{key}" if at else key)

    return check


def both(*shapes: Shape) -> Shape:
    """Take what all of several shapes take."""

    def check(value: Any, at: str) -> None:
        for shape in shapes:
            shape(value, at)

    return check
