"""What becomes of rows of which Spark may keep any one."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from properties.model_rows import ModelRow, Path, World, any_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from properties.row_form import Row
    from properties.row_groups import Group


def frozen_values(values: Row) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(values.items()))


def settle(rows: Iterable[ModelRow]) -> list[ModelRow]:
    """Give rows that differ only in where they come from one row with alternatives.

    Raises:
        AssertionError: The values differ too, so what follows would have several results. The
            generator makes no such pipeline.
    """
    done = []
    choices: dict[tuple[Any, ...], dict[Path, list[ModelRow]]] = defaultdict(dict)
    for row in rows:
        if row.world is None:
            done.append(row)
        else:
            choices[row.world.slot].setdefault(row.world.path, []).append(row)
    for worlds in choices.values():
        for versions in zip(*worlds.values(), strict=True):
            assert all(row.values == versions[0].values for row in versions), versions
            done.append(ModelRow(versions[0].values, any_of(row.prov for row in versions)))
    return done


def keep_one(slot: tuple[Any, ...], rows: Sequence[ModelRow]) -> list[ModelRow]:
    """Keep any one of some rows: one row if their values agree, else a row per choice."""
    if all(row.values == rows[0].values for row in rows):
        return [ModelRow(rows[0].values, any_of(row.prov for row in rows))]
    return [replace(row, world=World(slot, (i,))) for i, row in enumerate(rows)]


def group_by(rows: Iterable[ModelRow], names: Sequence[str]) -> dict[Group, list[ModelRow]]:
    groups: dict[Group, list[ModelRow]] = defaultdict(list)
    for row in rows:
        groups[tuple(row.values[name] for name in names)].append(row)
    return groups
