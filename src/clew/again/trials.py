"""Run a query over many sets of source rows, and see what becomes of one result.

A trial is the query over its rows without some of them. Trials are numbered, and where every step
of the query can keep them apart they go through it together, as one Spark job. Where a step can
not, e.g. one that takes the first ten rows whatever they are, each trial is a job of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from clew.capture.keys import KEYS
from clew.capture.late import WithoutLate
from clew.capture.numbered import TRIAL, InTrials
from clew.operators.aggregate import Aggregate
from clew.operators.dedup import Dedup
from clew.operators.join import Join
from clew.operators.source import Source
from clew.plan.algebra import left, right
from clew.plan.columns import ID_A, ID_B, named
from clew.plan.node import interpret, rebuilt
from clew.sources.identity import KEPT_A, KEPT_B

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

    from clew.again.tables import Tables
    from clew.plan.node import Node, Operator

Member = tuple[str, int, int]
"""A source row that may be left out: its source, and the halves of its id."""

Numbered = tuple[int, "Collection[int]"]
"""The number of a trial, and the positions of the members that it keeps."""

_MOST_ROWS = 200_000
_GONE_A, _GONE_B, _GONE = "_clew_gone_a", "_clew_gone_b", "_clew_gone_trial"
_WANTED_A, _WANTED_B = "_clew_w_a", "_clew_w_b"


@dataclass(frozen=True, slots=True)
class Trials:
    """A query over tables, ready to be run without some of its rows.

    Attributes:
        tables: The query; its sources are tables whose rows keep their ids.
        members: The rows that may be left out.
        result: The id of the result.
        closed_us: The watermark that the stream closed windows with last.
        others: How many rows the sources hold beside the members.
        held: What is kept in memory until `close`.
    """

    tables: Tables
    members: Sequence[Member]
    result: tuple[int, int]
    closed_us: int | None = None
    others: int = 0
    held: tuple[DataFrame, ...] = field(default=(), repr=False)

    def together(self, size: int) -> int:
        """Say how many trials go through the query in one job, if they keep at most `size` rows."""
        if not can_share(self.tables.node):
            return 1
        return max(1, _MOST_ROWS // max(1, size + self.others))

    def run(
        self,
        kept: Sequence[Collection[int]],
        columns: Mapping[str, Column],
        where: Column | None = None,
    ) -> pa.Table:
        """Run the query once for each set of members that are kept, all in one job if they can be.

        Args:
            kept: The members to keep in each trial, by their positions.
            columns: What to return of the result, by name.
            where: A condition that the result must meet, over its columns.

        Returns:
            A row for each trial in which the result is there and meets the condition: the number of
            the trial, and the columns.
        """
        return pa.concat_tables(self._wanted(each, columns, where) for each in self.results(kept))

    def results(self, kept: Sequence[Collection[int]]) -> Iterator[DataFrame]:
        """Yield all results of all trials, numbered by `TRIAL`; each frame is a job of its own."""
        trials = list(enumerate(kept))
        if can_share(self.tables.node):
            yield self._shared(trials)
        else:
            yield from (self._alone(each) for each in trials)

    def close(self) -> None:
        """Free what is held in memory."""
        for each in self.held:
            each.unpersist()

    def _shared(self, trials: Sequence[Numbered]) -> DataFrame:
        spark = self.tables.spark
        numbers = spark.createDataFrame(pa.table({TRIAL: pa.array([n for n, _ in trials])}))
        kept = set().union(*(each for _, each in trials))
        changed: dict[int, Operator] = {}
        for each in self.tables.node.walk():
            if isinstance(each.operator, Source):
                df = self._without_all(each.operator, kept).crossJoin(F.broadcast(numbers))
                df = self._without(df, each.operator, trials, kept)
                changed[each.id] = replace(each.operator, df=df)
            else:
                changed[each.id] = _apart(each)
        node = rebuilt(self.tables.node, changed)
        return interpret(node, InTrials(self._capture), check=False).df

    def _alone(self, trial: Numbered) -> DataFrame:
        changed: dict[int, Operator] = {
            each.id: replace(each.operator, df=self._without_all(each.operator, set(trial[1])))
            for each in self.tables.node.walk()
            if isinstance(each.operator, Source)
        }
        df = interpret(rebuilt(self.tables.node, changed), self._capture, check=False).df
        return df.withColumn(TRIAL, F.lit(trial[0]).cast("bigint"))

    @property
    def _capture(self) -> WithoutLate:
        return WithoutLate(KEYS, self.tables.late, self.closed_us)

    def _own(self, source: Source) -> list[tuple[int, int, int]]:
        name = source.origin.name
        return [(i, a, b) for i, (stream, a, b) in enumerate(self.members) if stream == name]

    def _without_all(self, source: Source, kept: Collection[int]) -> DataFrame:
        """Leave out the rows that no trial keeps."""
        gone = [(a, b) for i, a, b in self._own(source) if i not in kept]
        if not gone:
            return source.df
        same = f"{KEPT_A} = {_GONE_A} AND {KEPT_B} = {_GONE_B}"
        return _left_out(
            source.df, dict(zip((_GONE_A, _GONE_B), zip(*gone, strict=True), strict=True)), same
        )

    def _without(
        self, df: DataFrame, source: Source, trials: Sequence[Numbered], among: Collection[int]
    ) -> DataFrame:
        """Leave rows out of each trial that it does not keep."""
        own = [each for each in self._own(source) if each[0] in among]
        gone = [(n, a, b) for n, kept in trials for i, a, b in own if i not in kept]
        if not gone:
            return df
        same = f"{TRIAL} = {_GONE} AND {KEPT_A} = {_GONE_A} AND {KEPT_B} = {_GONE_B}"
        columns = dict(zip((_GONE, _GONE_A, _GONE_B), zip(*gone, strict=True), strict=True))
        return _left_out(df, columns, same)

    def _wanted(
        self, rows: DataFrame, columns: Mapping[str, Column], where: Column | None
    ) -> pa.Table:
        # An inner join, for the reasons that a replay has for one.
        kind = f"{_WANTED_A} bigint, {_WANTED_B} bigint"
        wanted = F.broadcast(rows.sparkSession.createDataFrame([self.result], kind))
        found = rows.join(wanted, F.expr(f"{ID_A} = {_WANTED_A} AND {ID_B} = {_WANTED_B}"))
        found = found if where is None else found.filter(where)
        return found.select(named(TRIAL), *[c.alias(n) for n, c in columns.items()]).toArrow()


def _left_out(df: DataFrame, rows: Mapping[str, Sequence[int]], same: str) -> DataFrame:
    table = pa.table({name: pa.array(values, pa.int64()) for name, values in rows.items()})
    gone = F.broadcast(df.sparkSession.createDataFrame(table))
    return df.join(gone, F.expr(same), "left_anti")


def can_share(node: Node) -> bool:
    """Tell whether trials of a query can go through it together."""
    return all(each.operator.facts.keeps_apart for each in node.walk())


def _apart(node: Node) -> Operator:
    """Let a step that puts rows together do so within each trial only."""
    operator = node.operator
    if isinstance(operator, Aggregate):
        return _aggregate(operator, node)
    if isinstance(operator, Join):
        return _JoinInTrials(operator.on, operator.how, operator.times)
    if isinstance(operator, Dedup):
        keys = operator.keys if operator.keys is not None else tuple(node.inputs[0].columns)
        return replace(operator, keys=(*keys, TRIAL))
    return operator


def _aggregate(aggregate: Aggregate, node: Node) -> Aggregate:
    count = len(aggregate.keys)
    types = aggregate.key_types or tuple(f.dataType for f in node.schema.fields[:count])
    clock = aggregate.clock and replace(aggregate.clock, key=aggregate.clock.key + 1)
    return replace(
        aggregate,
        keys=(named(TRIAL), *aggregate.keys),
        key_names=(TRIAL, *aggregate.key_names),
        key_types=(T.LongType(), *types),
        clock=clock,
        session=None if aggregate.session is None else aggregate.session + 1,
        within=None if aggregate.within is None else aggregate.within + 1,
    )


class _JoinInTrials(Join):
    """A join whose rows meet those of their own trial only."""

    def matched(self, first: DataFrame, second: DataFrame) -> DataFrame:
        how = "inner" if self.how == "cross" else self.how
        if self.on is None or self.names is not None:
            one = first.withColumnRenamed(left(TRIAL), TRIAL)
            other = second.withColumnRenamed(right(TRIAL), TRIAL)
            return one.join(other, [*(self.names or ()), TRIAL], how)
        given = self.on if isinstance(self.on, list) else [self.on]
        conditions = [each for each in given if isinstance(each, Column)]
        same = reduce(lambda x, y: x & y, conditions, named(left(TRIAL)) == named(right(TRIAL)))
        number = F.coalesce(named(left(TRIAL)), named(right(TRIAL)))
        return first.join(second, same, how).withColumn(TRIAL, number)
