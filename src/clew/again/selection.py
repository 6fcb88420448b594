"""Choosing results to find provenance for.

A condition is in Spark's SQL, so Spark evaluates it. Everything else is a matter of ids, which are
read straight from the store's files: a question about one row should not wait for a Spark job.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from clew.again.cover import span_columns
from clew.plan.columns import ID_A, ID_B, quote
from clew.store.draft import pairs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from clew.plan.node import Node

_FILE = "_clew_file"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which results to find provenance for.

    Attributes:
        where: A condition over the result's columns, in Spark's SQL.
        ids: These rows.
        first: At most so many rows, the oldest batches first.
        sample: A share of the rows, chosen by their ids, so always the same.
    """

    where: str | None = None
    ids: Sequence[tuple[int, int]] | None = None
    first: int | None = None
    sample: float | None = None


def choose_rows(
    node: Node | None,
    root: Path,
    files: Sequence[str],
    selection: Selection,
    known: set[tuple[int, int]],
) -> pa.Table:
    """Read the ids and spans of the rows that are wanted and not known yet.

    Args:
        node: The query, for a condition's session; None if there is no condition.
        root: The store.
        files: The files with the rows, oldest batch first.
        selection: Which rows.
        known: Ids of rows to leave out.
    """
    if selection.where is not None:
        assert node is not None
        met = _chosen(_meeting(node, root, files, selection.where), selection, known)
        met = met.sort_by([(c, "ascending") for c in (_FILE, "a", "b")]).drop_columns([_FILE])
        return met if selection.first is None else met.slice(0, selection.first)
    left = selection.first
    parts = []
    for file in files:
        path = root / file
        table = pq.read_table(path, columns=["a", "b", *span_columns(path)], partitioning=None)
        kept = _chosen(table, selection, known)
        if left is not None:
            kept = kept.sort_by([("a", "ascending"), ("b", "ascending")]).slice(0, left)
            left -= kept.num_rows
        parts.append(kept)
        if left == 0:
            break
    return pa.concat_tables(parts)


def values_of(root: Path, files: Sequence[str], ids: pa.Table) -> list[dict[str, Any]]:
    """Read what some rows hold."""
    wanted = pairs(ids, "a", "b")
    found: list[dict[str, Any]] = []
    for path in [root / file for file in files]:
        held = pq.read_table(path, columns=["a", "b"], partitioning=None)
        mask = _among(held["a"].to_numpy(), held["b"].to_numpy(), wanted)
        if mask.any():
            unit: Any = {"coerce_int96_timestamp_unit": "us"}
            rows = pq.read_table(path, columns=["row"], partitioning=None, **unit)
            found += rows.filter(pa.array(mask))["row"].to_pylist()
    return found


def _meeting(node: Node, root: Path, files: Sequence[str], where: str) -> pa.Table:
    """Let Spark find the rows that meet a condition."""
    spark = node.plain.df.sparkSession
    rows = spark.read.parquet(*[str(root / file) for file in files])
    spans = span_columns(root / files[0])
    # Under hidden names: the user's rows may have a column called `a`.
    own = [f"a AS {ID_A}", f"b AS {ID_B}", f"_metadata.file_path AS {_FILE}"]
    wide = rows.selectExpr("`row`.*", *own, *[quote(c) for c in spans])
    kept = [f"{ID_A} AS a", f"{ID_B} AS b", _FILE, *[quote(c) for c in spans]]
    return wide.filter(where).selectExpr(*kept).toArrow()


def _chosen(table: pa.Table, selection: Selection, known: set[tuple[int, int]]) -> pa.Table:
    a, b = table["a"].to_numpy(), table["b"].to_numpy()
    mask = np.ones(len(a), dtype=bool)
    if selection.ids is not None:
        mask &= _among(a, b, set(selection.ids))
    if selection.sample is not None:
        mask &= _mixed(a, b) < np.uint64(round(min(1.0, selection.sample) * (1 << 32)))
    if known:
        mask &= ~_among(a, b, known)
    return table.filter(pa.array(mask))


def _among(a: np.ndarray, b: np.ndarray, ids: set[tuple[int, int]]) -> np.ndarray:
    """Tell which rows have one of the ids."""
    halves = np.array(sorted({first for first, _ in ids}), dtype=np.int64)
    mask = np.isin(a, halves)
    for at in np.flatnonzero(mask):
        mask[at] = (int(a[at]), int(b[at])) in ids
    return mask


def _mixed(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Spread ids evenly over 32 bits, always the same way."""
    with np.errstate(over="ignore"):
        x = a.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) ^ b.astype(np.uint64)
        x = (x ^ (x >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed: np.ndarray = x >> np.uint64(32)
    return mixed
