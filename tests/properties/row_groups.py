"""Puts rows into groups and windows, and summarises each."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any, TypeAlias

from properties.model_rows import ModelRow, all_of
from properties.row_form import SECOND, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from properties.operator_tree import Agg, Aggregate, Window


def windows_of(window: Window, value: Any) -> list[tuple[int, int]]:
    """List the windows that a timestamp (or an earlier window's last instant) falls into."""
    at = value[1] - 1 if isinstance(value, tuple) else value
    if at is None:
        return []
    size = window.size_seconds * SECOND
    if window.session:
        return [(at, at + size)]
    slide = size if window.slide_seconds is None else window.slide_seconds * SECOND
    last = at // slide * slide
    starts = (last - i * slide for i in range(math.ceil(size / slide)))
    return [(start, start + size) for start in starts if at < start + size]


Group: TypeAlias = tuple[Any, ...]
"""What a group is found by: the window, where there is one, then the keys."""


def group_rows(node: Aggregate, rows: Iterable[ModelRow]) -> Iterator[tuple[Group, ModelRow]]:
    for row in rows:
        keys = tuple(row.values[key] for key in node.keys)
        if node.window is None:
            yield keys, row
        else:
            for window in windows_of(node.window, row.values[node.window.column]):
                yield (window, *keys), row


def merge_sessions(
    groups: Iterable[tuple[Group, list[ModelRow]]],
) -> list[tuple[Group, list[ModelRow]]]:
    """Merge windows of equal keys that overlap or touch."""
    by_keys: dict[Group, list[tuple[tuple[int, int], list[ModelRow]]]] = defaultdict(list)
    for group, rows in groups:
        by_keys[group[1:]].append((group[0], rows))
    merged: list[tuple[Group, list[ModelRow]]] = []
    for keys, sessions in by_keys.items():
        open_: tuple[tuple[int, int], list[ModelRow]] | None = None
        for window, rows in sorted(sessions, key=lambda session: session[0]):
            if open_ is not None and window[0] <= open_[0][1]:
                reach = (open_[0][0], max(open_[0][1], window[1]))
                open_ = (reach, open_[1] + rows)
                continue
            if open_ is not None:
                merged.append(((open_[0], *keys), open_[1]))
            open_ = (window, rows)
        if open_ is not None:
            merged.append(((open_[0], *keys), open_[1]))
    return merged


_AGGREGATES: dict[str, Callable[[list[Any]], Any]] = {
    "sum": sum,
    "min": min,
    "max": max,
    "avg": lambda found: sum(found) / len(found),
}


def summarise(agg: Agg, rows: Sequence[Row]) -> Any:
    if agg.fn == "count_all":
        return len(rows)
    found = [row[agg.column] for row in rows if row[agg.column] is not None]
    if agg.fn == "count":
        return len(found)
    if agg.fn == "rids":
        return tuple(sorted(found))
    if not found:
        return None
    return _AGGREGATES[agg.fn](found)


def summary_row(node: Aggregate, group: Group, rows: Sequence[ModelRow]) -> ModelRow:
    names = (() if node.window is None else (node.window.name,)) + node.keys
    values = dict(zip(names, group, strict=True))
    values |= {agg.name: summarise(agg, [row.values for row in rows]) for agg in node.aggs}
    return ModelRow(values, all_of(row.prov for row in rows))
