"""Compares what somebody found with what the model says."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from properties.free_choices import frozen_values
from properties.model_rows import Model, ModelRow, Path, Ref, Refs

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


def plain(value: Any) -> Any:
    """Bring a value that Spark returned into the model's form.

    Timestamps become microseconds since 1970 (those without a zone are taken as local time, as
    Spark gives them to Python), structs and arrays become tuples.
    """
    if isinstance(value, dt.datetime):
        return (value.astimezone(dt.timezone.utc) - _EPOCH) // dt.timedelta(microseconds=1)
    if isinstance(value, Mapping):
        value = tuple(value.values())
    return tuple(plain(item) for item in value) if isinstance(value, tuple | list) else value


Found: TypeAlias = tuple[Mapping[str, Any], Iterable[Ref] | None]
"""A row that somebody found, with its source rows; `None` where only the values are known."""


def agree(model: Model, actual: Iterable[Found]) -> bool:
    """Tell whether rows and their provenance are what the model says.

    Rows are compared as a multiset. Where Spark may choose, any one consistent choice of rows is
    accepted; which of several equal rows was kept is judged for each result row by itself.

    Args:
        model: What `run_batch` or `run_stream` returned.
        actual: Each row's values by column, and its source rows. `None` for the source rows
            compares the values only.

    Returns:
        Whether there is a one-to-one pairing of model rows and actual rows that fits.
    """
    return explain(model, actual) == ""


def explain(model: Model, actual: Iterable[Found]) -> str:
    """Say how rows differ from the model; empty where they agree."""
    found = [_Actual.of(values, source) for values, source in actual]
    if _Comparison(model, found).agrees():
        return ""
    expected = [
        f"  {row.values} from {sorted(row.refs)}{'' if row.prov.is_exact else ' or so'}"
        f"{'' if row.world is None else f' if {row.world}'}"
        for row in model.rows
    ]
    got = [f"  {dict(a.values)} from {a.refs and sorted(a.refs)}" for a in found]
    return "\n".join(["expected:", *sorted(expected), "found:", *sorted(got)])


@dataclass(frozen=True)
class _Actual:
    values: tuple[tuple[str, Any], ...]
    refs: Refs | None

    @classmethod
    def of(cls, values: Mapping[str, Any], source: Iterable[Ref] | None) -> _Actual:
        made = {name: plain(value) for name, value in values.items()}
        return cls(frozen_values(made), None if source is None else frozenset(source))

    def fits(self, row: ModelRow) -> bool:
        if frozen_values(row.values) != self.values:
            return False
        return self.refs is None or row.prov.admits(self.refs)


class _Comparison:
    """Looks for a choice in each slot under which model rows and actual rows can be paired."""

    def __init__(self, model: Model, actual: list[_Actual]) -> None:
        self._actual = actual
        self._certain = [row for row in model.rows if row.world is None]
        self._slots = [
            self._options(model, slot)
            for slot in dict.fromkeys(row.world.slot for row in model.rows if row.world is not None)
        ]

    def _options(self, model: Model, slot: tuple[Any, ...]) -> list[list[ModelRow]]:
        options: list[list[ModelRow]] = []
        for leaf in model.leaves[slot]:
            rows = self._rows_of(model, slot, leaf)
            if rows not in options:
                options.append(rows)
        return options

    @staticmethod
    def _rows_of(model: Model, slot: tuple[Any, ...], leaf: Path) -> list[ModelRow]:
        return [
            row
            for row in model.rows
            if row.world is not None
            and row.world.slot == slot
            and row.world.path == leaf[: len(row.world.path)]
        ]

    def agrees(self) -> bool:
        room = Counter(a.values for a in self._actual)
        room.subtract(frozen_values(row.values) for row in self._certain)
        if any(count < 0 for count in room.values()):
            return False
        return self._choose(0, room, self._certain, set())

    def _choose(
        self, number: int, room: Counter[Any], rows: list[ModelRow], failed: set[Any]
    ) -> bool:
        """Try the choices of one slot after the other, as long as their values are wanted."""
        if number == len(self._slots):
            return not any(room.values()) and self._can_pair(rows)
        known = all(a.refs is None for a in self._actual)
        state = (number, frozenset((v, c) for v, c in room.items() if c))
        if known and state in failed:
            return False
        for option in self._slots[number]:
            left = Counter(room)
            left.subtract(frozen_values(row.values) for row in option)
            wanted = all(any(a.fits(row) for a in self._actual) for row in option)
            wanted = wanted and all(count >= 0 for count in left.values())
            if wanted and self._choose(number + 1, left, rows + option, failed):
                return True
        failed.add(state)
        return False

    def _can_pair(self, rows: list[ModelRow]) -> bool:
        """Pair model rows with actual rows one to one, by augmenting paths."""
        if len(rows) != len(self._actual):
            return False
        fits = [[j for j, a in enumerate(self._actual) if a.fits(row)] for row in rows]
        partner: dict[int, int] = {}

        def place(i: int, tried: set[int]) -> bool:
            for j in fits[i]:
                if j not in tried:
                    tried.add(j)
                    if j not in partner or place(partner[j], tried):
                        partner[j] = i
                        return True
            return False

        return all(place(i, set()) for i in range(len(rows)))
