"""Equal for Spark is equal for clew: random pipelines over every type and setting.

Each pipeline is computed by plain Spark, by a model that carries ids by hand, and under all
captures that take it. Rows and schema are those of plain Spark; the edges are the model's under
every capture. What clew refuses is counted. Many small pipelines share two sources and a session
without generated code, which would take longer to compile than to run.
"""

from __future__ import annotations

import random
import traceback
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from clew.again.choose import choose
from clew.again.reach import reach
from clew.capture.pointers import PointersCapture
from clew.capture.sets import SETS
from clew.exceptions import CaptureRefusedError, ClewError
from clew.frame.frame import TracedFrame
from clew.plan.columns import is_hidden
from clew.plan.node import Node, interpret
from clew.testing import keyed
from proof import typed_streams
from proof.captures import refused
from proof.case import Outcome, Setting, check, difference
from proof.traced_ids import (
    FAILED,
    TEXT,
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
from proof.typed import BY_NAME, KINDS, Spelling, source
from proof.typed_pipelines import (
    CHOICES,
    IDS,
    DifferError,
    Generator,
    Threefold,
    first_line,
    sourced,
)
from proof.typed_settings import conf_of, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

_WORLD = 25
_WIDTH = 10
_FIXED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.timeType.enabled": "true",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    # Spark's checks of its own rules.
    "spark.sql.lightweightPlanChangeValidation": "false",
}
_LEFT, _RIGHT = "left", "right"
_LAZY = ("pointers", "intervals", "keys")


def outcomes(setting: Setting) -> Iterator[Outcome]:
    """Check random pipelines, each under settings of its own."""
    wanted = 25 if setting.quick else 1_000
    with settings(setting.spark, _FIXED):
        proof = Proof(setting)
        yield from proof.outcomes(wanted)
        yield from typed_streams.outcomes(setting, proof.spelling, 3 if setting.quick else 60)


class Proof:
    """The sources that pipelines share, and what is asked of each pipeline."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self.spelling = Spelling.ask(setting.spark)
        self._sources: dict[bool, list[Threefold]] = {}
        self._whole = 0

    def outcomes(self, wanted: int) -> Iterator[Outcome]:
        """Check pipelines until so many have had edges, the same ones under every capture."""
        number = 0
        while self._whole < wanted and number < 3 * wanted + 20:
            seed = self._setting.seed + number
            if number % _WORLD == 0:
                self._sources = self._made(seed)
            number += 1
            with settings(self._setting.spark, conf_of(seed)):
                yield from list(self.pipeline(seed))
        short = f"{self._whole} of {number} pipelines had any, and {wanted} were to have some"
        yield Outcome("edges under all captures", short if self._whole < wanted else "")

    def _made(self, seed: int) -> dict[bool, list[Threefold]]:
        """Make two sources, with some of the types each, traced without and with a time."""
        rng, spark = random.Random(seed), self._setting.spark
        kinds = [KINDS[i] for i in sorted(rng.sample(range(len(KINDS)), _WIDTH))]
        kinds += [] if BY_NAME["at"] in kinds else [BY_NAME["at"]]
        frames = {}
        for name, first, rows in ((_LEFT, 0, 14), (_RIGHT, 100, 8)):
            path = str(self._setting.folder / f"{name}-{seed}")
            source(spark, rng, first, rows, kinds).coalesce(1).write.parquet(path)
            frames[name] = spark.read.parquet(path)
        return {
            timed: [sourced(name, frame, timed=timed) for name, frame in frames.items()]
            for timed in (False, True)
        }

    def pipeline(self, seed: int) -> Iterator[Outcome]:
        """Check one pipeline; none if Spark fails to compute it."""
        rng, conf = random.Random(seed), conf_of(seed)
        generator = Generator(rng, sensitive=conf["spark.sql.caseSensitive"] == "true")
        name = f"typed pipeline {seed}"
        timed = rng.random() < 0.5
        try:
            left, right = map(_begun, self._sources[timed])
            made = generator.pipeline(left, right)
        except DifferError as error:
            yield Outcome(name, f"{conf}\n{error}")
            return
        refused.update({f"a step: {why}": count for why, count in generator.refused.items()})
        try:
            plain, truth = self._truth(made)
        except FAILED:
            return  # an error of the user's, e.g. under ANSI
        text = f"{' '.join(conf.values())}\n" + "\n  ".join(made.steps)
        try:
            for outcome in self._captured(name, made, plain, truth):
                yield Outcome(outcome.name, outcome.wrong and f"{text}\n{outcome.wrong}")
        except Exception:
            yield Outcome(name, f"{text}\n{traceback.format_exc()}")

    def _row(self, made: Threefold) -> str:
        return self.spelling.row(made.plain.schema.fields, strict=not made.loose)

    def _truth(self, made: Threefold) -> tuple[Counter[str], list[tuple[str, Any]]]:
        """Compute the rows of plain Spark, and those of the model with their ids."""
        row = self._row(made)
        ids = CHOICES if made.chosen else f"array({IDS})"
        none = "CAST(NULL AS ARRAY<ARRAY<BIGINT>>)"
        both = made.plain.selectExpr(f"{row} AS t", f"{none} AS ids", "true AS plain")
        both = both.union(made.model.selectExpr(row, ids, "false"))
        rows = both.toArrow().to_pylist()
        plain = Counter(each["t"] for each in rows if each["plain"])
        truth = [
            (each["t"], frozenset(frozenset(ids) for ids in each["ids"]))
            for each in rows
            if not each["plain"]
        ]
        return plain, truth

    def _captured(
        self, name: str, made: Threefold, plain: Counter[str], truth: list[tuple[str, Any]]
    ) -> Iterator[Outcome]:
        row, node = self._row(made), keyed(made.traced)
        try:
            carried = interpret(node, SETS)
        except ClewError as error:
            why = first_line(error)
            if "traced columns" in why:  # no refusal, but a check of clew's own that failed
                yield Outcome(f"{name}, sets", str(error))
            refused[f"sets: {why}"] += 1
            return
        edges: Edges = {}

        def by_sets() -> str:
            rows = with_sets(carried.df, row)
            edges.update(edges_of(rows))
            traced = [(each["t"], frozenset(each["ids"])) for each in rows]
            return difference(plain.elements(), (t for t, _ in traced)) or against(traced, truth)

        yield check(f"{name}, schema", _schema, made, made.traced, made.traced.plain, carried.df)
        outcome = check(f"{name}, sets", by_sets)
        yield outcome
        # Without a row there is nothing that another capture could find otherwise.
        if not outcome.wrong and edges:
            yield from self._lazy(name, made, plain, edges)

    def _lazy(
        self, name: str, made: Threefold, plain: Counter[str], edges: Edges
    ) -> Iterator[Outcome]:
        row, node = self._row(made), keyed(made.traced)
        accepted = [c for c in _LAZY if self._takes(node, c)]
        if not accepted:
            return
        rows: list[pa.Table] = []
        carried = interpret(node, PointersCapture())

        def run() -> str:
            rows.append(with_pointers(node, carried, row))
            wrong = difference(plain.elements(), rows[0][TEXT].to_pylist())
            return wrong or _schema(made, carried.df)

        outcome = check(f"{name}, rows with pointers", run)
        if outcome.wrong:
            yield outcome
            return
        [table] = rows
        if "pointers" in accepted:
            yield check(f"{name}, pointers", lambda: same(edges, unfolded(node, table, carried)))
        known: dict[str, Edges] = {}
        again = partial(replayed, node, table)
        for capture, spans in (("intervals", table), ("keys", spans_of(node, table))):
            if capture in accepted:
                args = (spans, reach(node, whole=True), edges, known, again)
                yield check(f"{name}, {capture}", same_replayed, *args)
        self._whole += len(accepted) == len(_LAZY) and any(edges.values())

    @staticmethod
    def _takes(node: Node, capture: Any) -> bool:
        try:
            choose(node, capture)
        except CaptureRefusedError as error:
            refused[f"{capture}: {error.why}"] += 1
            return False
        return True


def _begun(at: Threefold) -> Threefold:
    """Begin at a source that other pipelines begin at, too, without what they refer to."""
    return replace(at, traced=TracedFrame(Node(at.traced.node.operator)))


def _schema(made: Threefold, *frames: Any) -> str:
    """Compare names, types and nullability with plain Spark's."""
    want = [(f.name, f.dataType, f.nullable) for f in made.plain.schema.fields]
    for frame in frames:
        fields = [f for f in frame.schema.fields if not is_hidden(f.name)]
        got = [(f.name, f.dataType, f.nullable) for f in fields]
        if got != want:
            return f"{got}\nplain Spark: {want}"
    return ""
