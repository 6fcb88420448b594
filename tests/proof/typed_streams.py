"""Pipelines over every type as streams: projections, windows of time by keys of any type, dedup.

The model is a batch over the same rows. A last row, far in the future, closes all windows; what is
made of it alone is left out.
"""

from __future__ import annotations

import os
import random
import traceback
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

import clew
from clew.again.choose import choose
from clew.again.reach import reach
from clew.capture.pointers import PointersCapture
from clew.capture.sets import SETS
from clew.exceptions import ClewError
from clew.plan.node import interpret
from clew.sources.arrivals import read_arrivals
from clew.testing import keyed
from proof.captures import refused
from proof.case import Outcome, Setting, check
from proof.traced_ids import (
    FAILED,
    Edges,
    against,
    edges_of,
    replayed,
    same,
    same_replayed,
    spans_of,
    unfolded,
    with_pointers,
    with_sets,
)
from proof.typed import BY_NAME, Spelling, source
from proof.typed_pipelines import CHOICES, IDS, Generator, Threefold, first_line
from proof.typed_settings import conf_of, settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from clew.plan.node import Node

_ROWS, _FILES = 15, 3
_CLOSING = 99
_LATER = "timestamp'2100-01-01T00:00:00Z'"
_WAIT = "1000 days"
_PER_SOURCE = 10


def outcomes(setting: Setting, spelling: Spelling, wanted: int) -> Iterator[Outcome]:
    """Check so many pipelines as streams."""
    for number in range(wanted):
        seed = setting.seed + number
        folder = setting.folder / f"stream-of-{number // _PER_SOURCE}"
        if not folder.exists():
            _write(setting.spark, random.Random(seed), folder)
        with settings(setting.spark, conf_of(seed)):
            try:
                yield from _Run(setting, spelling, folder, seed).outcomes()
            except Exception:
                yield Outcome(f"typed stream {seed}", traceback.format_exc())


def _write(spark: SparkSession, rng: random.Random, folder: Path) -> None:
    """Write the files of a stream, in the order in which it takes them."""
    rows = source(spark, rng, 0, _ROWS)
    parts = [rows.filter(F.col("rid") % _FILES == i) for i in range(_FILES)]
    last = source(spark, rng, _CLOSING, 1).withColumn(
        "at", F.expr("timestamp'2100-01-01T00:00:00Z'")
    )
    for number, part in enumerate([*parts, last]):
        draft = folder.with_name(f"{folder.name}-{number}")
        part.coalesce(1).write.parquet(str(draft))
        [file] = draft.glob("*.parquet")
        folder.mkdir(exist_ok=True)
        target = folder / f"{number}.parquet"
        file.rename(target)
        at = 1_700_000_000 + 60 * number
        os.utime(target, (at, at))


class _Run:
    """One pipeline as a stream."""

    def __init__(self, setting: Setting, spelling: Spelling, folder: Path, seed: int) -> None:
        self._name = f"typed stream {seed}"
        self._spark, self._seed, self._spelling = setting.spark, seed, spelling
        self._checkpoints = setting.folder / f"checkpoints-{seed}"
        self._made = self._build(folder)

    def _build(self, folder: Path) -> Threefold:
        rng = random.Random(f"stream {self._seed}")
        table = self._spark.read.parquet(str(folder))
        reader = self._spark.readStream.schema(table.schema).option("maxFilesPerTrigger", 1)
        stream = reader.parquet(str(folder))
        begun = Threefold(
            clew.trace(stream, "left", event_time="at").withWatermark("at", _WAIT),
            stream.withWatermark("at", _WAIT),
            table.withColumn(IDS, F.array("rid")),
            {"rid": None, **BY_NAME},
        )
        sensitive = conf_of(self._seed)["spark.sql.caseSensitive"] == "true"
        generator = Generator(rng, sensitive, streaming=True)
        out = generator.pipeline(begun, begun)
        refused.update({f"a step: {why}": count for why, count in generator.refused.items()})
        return self._ended(rng, out)

    def _ended(self, rng: random.Random, out: Threefold) -> Threefold:
        """Group by windows and a key, keep distinct rows, or end here."""
        keys = [n for n, kind in out.kinds.items() if kind is not None and kind.ordered]
        # Spark's state takes only keys that are equal byte by byte.
        keys = [n for n in keys if n in BY_NAME and n != "at" and "COLLATE" not in BY_NAME[n].ddl]
        end = rng.choice(("group", "group", "distinct", ""))
        if not keys or not end or (end == "group" and "at" not in out.names):
            return out
        key = rng.choice(keys)
        if end == "distinct":
            choices = out.model.groupBy(key).agg(F.collect_list(IDS).alias(CHOICES))
            frames = [f.select(key).dropDuplicates([key]) for f in (out.traced, out.plain)]
            made = {"chosen": True, "kinds": {key: None}}
            return _with(out, frames[0], frames[1], choices, f"distinct({key})", **made)
        size = rng.choice((("1 hour",), ("1 day",), ("1 hour", "30 minutes")))
        by: list[Any] = [F.window("at", *size), key]
        count = F.count("*").alias("n")
        ids = F.flatten(F.collect_list(IDS)).alias(IDS)
        model = out.model.groupBy(*by).agg(count, ids)
        frames = [f.groupBy(*by).agg(count) for f in (out.traced, out.plain)]
        return _with(out, frames[0], frames[1], model, f"group(window {size}, {key})")

    def outcomes(self) -> Iterator[Outcome]:
        made = self._made
        row = self._spelling.row(made.plain.schema.fields, strict=not made.loose)
        ids = CHOICES if made.chosen else f"array({IDS})"
        try:
            rows = made.model.selectExpr(f"{row} AS t", f"{ids} AS ids").toArrow().to_pylist()
        except FAILED:
            return  # an error of the user's, e.g. under ANSI
        truth = [(each["t"], frozenset(map(frozenset, each["ids"]))) for each in rows]
        closed = any(_CLOSING in one for _, ids in truth for one in ids)
        # Spark filters below a watermark, which a row that is left out does not move.
        is_open = made.steps[-1].startswith("group") and not closed
        truth = [(t, ids) for t, ids in truth if not all(_CLOSING in one for one in ids)]
        node = keyed(made.traced)
        found: list[dict[str, Any]] = []
        try:
            carried = interpret(node, SETS).df
        except ClewError as error:
            refused[f"sets of a stream: {first_line(error)}"] += 1
            return
        steps = "\n  ".join((str(conf_of(self._seed)), *made.steps))

        def by_sets() -> str:
            self._run(carried, "sets", lambda df: found.extend(with_sets(df, row)))
            traced = [(r["t"], frozenset(r["ids"])) for r in found if _CLOSING not in r["ids"]]
            if is_open and not traced:
                return ""
            wrong = len(traced) != len(truth) and f"{len(truth)} rows, {len(traced)} traced"
            return wrong or against(traced, truth)

        outcome = check(f"{self._name}, sets", by_sets)
        for each in (outcome, *([] if outcome.wrong else self._lazy(node, row, found))):
            yield Outcome(each.name, each.wrong and f"{steps}\n{each.wrong}")

    def _lazy(self, node: Node, row: str, found: list[dict[str, Any]]) -> Iterator[Outcome]:
        accepted: list[str] = []
        captures: tuple[Any, ...] = ("pointers", "intervals", "keys")
        for capture in captures:
            try:
                choose(node, capture)
            except ClewError as error:
                refused[f"{capture} of a stream: {first_line(error)}"] += 1
            else:
                accepted.append(capture)
        if not accepted:
            return
        tables: list[pa.Table] = []
        edges = edges_of(found)
        carried = interpret(node, PointersCapture())

        def run() -> str:
            self._run(
                carried.df,
                "ptr",
                lambda df: tables.append(with_pointers(node, carried.with_df(df), row)),
            )
            return ""

        outcome = check(f"{self._name}, rows with pointers", run)
        if outcome.wrong or not tables:
            yield outcome
            return
        table = pa.concat_tables(tables)
        arrivals = read_arrivals(self._spark, str(self._checkpoints / "ptr"))
        if "pointers" in accepted:
            yield check(
                f"{self._name}, pointers",
                lambda: same(edges, unfolded(node, table, carried, arrivals)),
            )
        known: dict[str, Edges] = {}
        for capture, spans in (("intervals", table), ("keys", spans_of(node, table))):
            if capture in accepted:
                again = partial(replayed, node, table, arrivals=arrivals)
                args = (spans, reach(node, whole=True), edges, known, again)
                yield check(f"{self._name}, {capture}", same_replayed, *args)

    def _run(self, rows: DataFrame, name: str, take: Any) -> None:
        writer = rows.writeStream.foreachBatch(lambda df, _: take(df))
        writer = writer.option("checkpointLocation", str(self._checkpoints / name))
        writer.trigger(availableNow=True).start().awaitTermination()


def _with(
    out: Threefold, traced: Any, plain: Any, model: Any, step: str, **changes: Any
) -> Threefold:
    kinds = changes.pop("kinds", dict.fromkeys(plain.columns))
    return Threefold(traced, plain, model, kinds, loose=True, steps=(*out.steps, step), **changes)
