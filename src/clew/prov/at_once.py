"""Reduce what is there, in one go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from clew.prov.parse import Parser
from clew.prov.reducer import Rule, reduced, spread
from clew.prov.words import EDGES, FINAL, NO_TIME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

_FINAL = "output string, input string"


def reduce_table(statements: DataFrame, *, job: str | None = None) -> DataFrame:
    """Reduce provenance that is all there to what connects inputs with outputs.

    Args:
        statements: Lines of PROV in a column `value`; or edges in `output` and `input`, where the
            first was derived from the second.
        job: Only statements of this job; None takes all.

    Returns:
        Edges in `output` and `input`, each once: every output beside every input that it was
        derived from, over any number of steps.
    """
    if {"output", "input"} <= set(statements.columns):
        edges = statements.select("output", "input").mapInArrow(_plain_edges, _FINAL)
    else:
        value = "value" if "value" in statements.columns else statements.columns[0]
        edges = statements.select(value).mapInArrow(_Read(job), _FINAL)
    return edges.repartition(1).mapInArrow(_close, _FINAL)


class _Read:
    """Reads lines into edges, without those that are there twice."""

    def __init__(self, job: str | None) -> None:
        self._parser = Parser(job)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            edges = spread(self._parser.parse(batch.column(0)).elements)
            _, once = reduced(edges, Rule())
            yield from once.select(FINAL.names).to_batches()


def _plain_edges(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from _once(pa.Table.from_batches([batch]), Rule()).to_batches()


def _once(table: pa.Table, rule: Rule) -> pa.Table:
    table = table.drop_null()
    times = pa.repeat(pa.scalar(NO_TIME, pa.int64()), table.num_rows)
    rest = [times, times, times, pa.repeat(pa.scalar(0, pa.int8()), table.num_rows),
            pa.repeat(pa.scalar(False), table.num_rows)]  # fmt: skip
    columns = [table["output"].cast(pa.string()), table["input"].cast(pa.string())]
    edges = pa.Table.from_arrays([*columns, *rest], schema=EDGES)
    final, still_open = reduced(edges, rule)
    return final if rule.end else still_open.select(FINAL.names)


def _close(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    held = list(batches)
    if held:
        yield from _once(pa.Table.from_batches(held), Rule(end=True)).to_batches()
