"""How several values of a property become one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from clew.exceptions import PropertyError

if TYPE_CHECKING:
    from collections.abc import Callable

VALUE = "_clew_v_"


@dataclass(frozen=True, slots=True)
class Merge:
    """How several values of a property become one.

    Attributes:
        name: What the user calls it.
        together: Aggregates the values of a group's rows.
        both: Merges two values, neither of which is null.
        begin: Turns a row's own value into what is carried.
        gathered: Turns what the aggregate made into what is carried.
    """

    name: str
    together: Callable[[Column], Column]
    both: Callable[[Column, Column], Column] | None
    begin: Callable[[Column], Column] = lambda value: value
    gathered: Callable[[Column], Column] = lambda value: value

    def pair(self, prop: str, one: Column, other: Column) -> Column:
        """Merge the values of two rows, either of which may be missing."""
        if self.both is None:
            msg = (
                f"property `{prop}` is merged by an aggregate of your own, and here two rows "
                "become one, by a join or in a window of rows in order, which an aggregate cannot "
                "do.\n\nSay how two values become one: "
                "`merge=(F.bit_or, lambda a, b: a.bitwiseOR(b))`."
            )
            raise PropertyError(msg)
        return F.coalesce(self.both(one, other), one, other)


def _listed(value: Column) -> Column:
    return F.when(value.isNotNull(), F.array(value)).otherwise(F.slice(F.array(value), 1, 0))


def _in_order(values: Column) -> Column:
    return F.array_sort(F.array_distinct(values))


MERGES = {
    "sum": Merge("sum", F.sum, lambda a, b: a + b),
    "min": Merge("min", F.min, F.least),
    "max": Merge("max", F.max, F.greatest),
    "set": Merge(
        "set",
        F.collect_set,
        lambda a, b: _in_order(F.concat(a, b)),
        begin=_listed,
        gathered=lambda v: _in_order(F.flatten(v)),
    ),
    "list": Merge(
        "list",
        F.collect_list,
        F.concat,
        begin=_listed,
        # Spark gathers in any order, so the lists that were gathered are put in one.
        gathered=lambda v: F.flatten(F.array_sort(v)),
    ),
}
"""The merges that have a name."""


def merge_of(given: Any) -> Merge:
    """Read what the user gave as a merge.

    Raises:
        PropertyError: There is no such merge.
    """
    if isinstance(given, str) and given in MERGES:
        return MERGES[given]
    if callable(given):
        return Merge("own", given, None)
    if isinstance(given, tuple) and len(given) == 2 and all(callable(each) for each in given):
        return Merge("own", given[0], given[1])
    names = ", ".join(f'"{each}"' for each in MERGES)
    msg = (
        f"`merge` is {names} or an aggregate of your own; got {given!r}.\n\nAn aggregate is a "
        "function of a column, such as `F.bit_or`; where rows are joined, add how two values "
        "become one: `(F.bit_or, lambda a, b: a.bitwiseOR(b))`."
    )
    raise PropertyError(msg)


def value_column(prop: str) -> str:
    """Name the hidden column that holds a property."""
    return VALUE + prop
