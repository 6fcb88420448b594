"""A plain-Python model of what Spark returns for a pipeline over tables."""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from properties.evaluation import narrow_rows
from properties.free_choices import group_by, keep_one, settle
from properties.model_rows import Model, ModelRow, Path, Prov, all_of, any_of
from properties.operator_tree import (
    Aggregate,
    Distinct,
    DropDuplicates,
    Join,
    Narrow,
    Node,
    OrderLimit,
    Pivot,
    Read,
    SetOperation,
    Spec,
    Union,
    Watermark,
    children,
    columns,
)
from properties.row_groups import Group, group_rows, merge_sessions, summarise, summary_row
from properties.row_pairs import join_tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from properties.row_form import Row, Tables


class TableEvaluation:
    """Evaluates a pipeline over tables."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.choices: dict[tuple[Any, ...], tuple[Path, ...]] = {}

    def rows(self, node: Node) -> list[ModelRow]:
        if isinstance(node, Read):
            return source_rows(node.source, self._tables[node.source])
        inputs = [self.rows(child) for child in children(node)]
        if isinstance(node, Narrow | Watermark):
            return narrow_rows(node, inputs[0])
        return self._wide(node, *(settle(rows) for rows in inputs))

    def _wide(
        self, node: Node, rows: list[ModelRow], other: Sequence[ModelRow] = ()
    ) -> list[ModelRow]:
        match node:
            case Union():
                return _filled(columns(node), [*rows, *other])
            case Distinct() | DropDuplicates():
                return self._dedup(node, rows)
            case Aggregate():
                return _aggregate_table(node, rows)
            case Pivot():
                return _pivot_table(node, rows)
            case SetOperation():
                return _compare_tables(node, rows, other)
            case Join():
                return join_tables(node, rows, other)
            case OrderLimit(_, by, n):
                return _sorted(rows, by)[:n]
            case _:
                msg = f"no such operator: {type(node).__name__}"
                raise TypeError(msg)

    def _dedup(self, node: Distinct | DropDuplicates, rows: list[ModelRow]) -> list[ModelRow]:
        names = node.subset if isinstance(node, DropDuplicates) else tuple(columns(node))
        found = []
        for key, group in group_by(rows, names).items():
            slot = ("dedup", len(self.choices), key)
            kept = keep_one(slot, group)
            if kept[0].world is not None:
                self.choices[slot] = tuple((i,) for i in range(len(group)))
            found += kept
        return found


def source_rows(source: str, rows: Iterable[Row]) -> list[ModelRow]:
    return [ModelRow(row, Prov(frozenset([(source, row["rid"])]))) for row in rows]


def _filled(names: Iterable[str], rows: Iterable[ModelRow]) -> list[ModelRow]:
    """Give rows all columns of a union; a side that lacks one has nulls."""
    return [replace(row, values={name: row.values.get(name) for name in names}) for row in rows]


def _compare_tables(
    node: SetOperation, rows: Iterable[ModelRow], other: Iterable[ModelRow]
) -> list[ModelRow]:
    """Keep the distinct rows that the other side has, or has not; nulls are equal."""
    left = group_by(rows, tuple(columns(node.left)))
    right = group_by(other, tuple(columns(node.right)))
    found = []
    for key, group in left.items():
        sides = [group, right[key]] if key in right else [group]
        if (key in right) == (node.verb == "intersect"):
            prov = all_of(any_of(row.prov for row in side) for side in sides)
            found.append(ModelRow(group[0].values, prov))
    return found


def _pivot_table(node: Pivot, rows: list[ModelRow]) -> list[ModelRow]:
    """Summarise each group once for each value: null for a value that the group has not."""
    found = []
    for key, group in group_by(rows, node.keys).items():
        values = dict(zip(node.keys, key, strict=True))
        for value in node.values:
            having = [row.values for row in group if row.values[node.column] == value]
            values[value] = summarise(node.agg, having) if having else None
        found.append(ModelRow(values, all_of(row.prov for row in group)))
    return found


def _grouping_sets(node: Aggregate) -> list[tuple[str, ...]]:
    match node.grouping:
        case "rollup":
            return [node.keys[:n] for n in range(len(node.keys), -1, -1)]
        case "cube":
            sizes = range(len(node.keys), -1, -1)
            return [keys for n in sizes for keys in itertools.combinations(node.keys, n)]
        case _:
            return [node.keys]


def _aggregate_sets(node: Aggregate, rows: list[ModelRow]) -> list[ModelRow]:
    """Group rows by each of several sets of keys; the keys that are left out become null."""
    found = []
    for keys in _grouping_sets(node):
        for key, group in group_by(rows, keys).items():
            named = dict(zip(keys, key, strict=True))
            found.append(summary_row(node, tuple(named.get(name) for name in node.keys), group))
    return found


def _aggregate_table(node: Aggregate, rows: list[ModelRow]) -> list[ModelRow]:
    groups: dict[Group, list[ModelRow]] = defaultdict(list)
    for group, row in group_rows(node, rows):
        groups[group].append(row)
    if node.grouping != "groupBy":
        return _aggregate_sets(node, rows)
    if node.window is None and not node.keys:
        return [summary_row(node, (), rows)]  # a global aggregate answers even for no rows
    found = list(groups.items())
    if node.window is not None and node.window.session:
        found = merge_sessions(found)
    return [summary_row(node, group, members) for group, members in found]


def _sorted(rows: list[ModelRow], by: Sequence[tuple[str, bool]]) -> list[ModelRow]:
    """Sort as Spark does: nulls first when rising, last when falling."""
    for name, up in reversed(by):
        values = [row.values[name] for row in rows]
        order = sorted(
            range(len(rows)),
            key=[(value is not None, value) for value in values].__getitem__,
            reverse=not up,
        )
        rows = [rows[i] for i in order]
    return rows


def run_batch(spec: Spec, tables: Tables) -> Model:
    """Evaluate a pipeline over tables.

    Args:
        spec: The pipeline. Watermarks in it have no meaning here, as in Spark.
        tables: The rows of each source.

    Returns:
        The rows that Spark returns, each with its provenance.
    """
    evaluation = TableEvaluation(tables)
    rows = evaluation.rows(spec.root)
    return Model(tuple(rows), evaluation.choices)
