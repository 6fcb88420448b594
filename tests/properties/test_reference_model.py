"""The plain-Python model returns what Spark returns, and its provenance makes sense by itself.

Random pipelines run on plain Spark, as tables and as finite streams, and every micro-batch must
hold the rows and the watermark that the model says. The facts about Structured Streaming that shape
the model have a test each. Whoever compares traces with the model relies on `agree`, so what it
accepts and refuses is tested too.

More seeds: `CLEW_BATCH_SEEDS=300 CLEW_STREAM_SEEDS=150 pytest tests/properties`.
"""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, assume, given, settings

from properties.agreement import agree, explain
from properties.batch_model import run_batch
from properties.building import build
from properties.expressions import Expr, col, compare
from properties.model_rows import Model, ModelRow, Prov, World
from properties.operator_tree import (
    Agg,
    Aggregate,
    Distinct,
    Drop,
    DropDuplicates,
    Filter,
    Join,
    Narrow,
    Node,
    OrderLimit,
    Read,
    Rename,
    Select,
    SetOperation,
    Spec,
    Union,
    Watermark,
    Window,
    WithColumn,
    columns,
    walk,
)
from properties.random_rows import random_data
from properties.random_specs import random_spec, specs, specs_with_data
from properties.row_files import read_frames, write_data
from properties.row_form import BASE, SECOND, Batches, How, Row, Tables
from properties.spec_json import from_json, to_json
from properties.stream_model import run_stream

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

BATCH_SEEDS = int(os.environ.get("CLEW_BATCH_SEEDS", "20"))
STREAM_SEEDS = int(os.environ.get("CLEW_STREAM_SEEDS", "12"))
SIDE_BY_SIDE = 4
QUICK = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


# ---------------------------------------------------------------------------- running Spark


def session(spark: SparkSession, partitions: int) -> SparkSession:
    """Make a session with its own settings: small plans, so interpreting beats compiling."""
    made = spark.newSession()
    made.conf.set("spark.sql.shuffle.partitions", str(partitions))
    made.conf.set("spark.sql.session.timeZone", "UTC")
    made.conf.set("spark.sql.codegen.wholeStage", "false")
    return made


@dataclass
class Running:
    """A finite stream under way, and what its micro-batches have returned so far."""

    spec: Spec
    data: Batches
    batches: list[list[Row]] = field(default_factory=list)
    query: StreamingQuery | None = None

    def start(self, spark: SparkSession, folder: Path) -> Running:
        paths = write_data(folder / "in", self.spec, self.data)
        frame = build(self.spec, read_frames(spark, self.spec, paths))
        writer = frame.writeStream.foreachBatch(self._keep).trigger(availableNow=True)
        self.query = writer.option("checkpointLocation", str(folder / "chk")).start()
        return self

    def _keep(self, frame: DataFrame, number: int) -> None:
        assert number == len(self.batches)
        self.batches.append([row.asDict() for row in frame.collect()])

    def wrong(self) -> str:
        """Say where Spark and the model differ; empty if nowhere."""
        assert self.query is not None
        self.query.awaitTermination()
        model = run_stream(self.spec, self.data)
        wrong = [explain(model, [(row, None) for rows in self.batches for row in rows])]
        if all(row.world is None for row in model.rows):
            for one, rows in zip(model.batches, self.batches, strict=False):
                wrong.append(explain(Model(one.rows, {}), [(row, None) for row in rows]))
        if any(isinstance(node, Watermark) for node in walk(self.spec.root)):
            expected = [batch.watermark_ms for batch in model.batches]
            found = [_watermark_ms(p.eventTime["watermark"]) for p in self.query.recentProgress]
            wrong.append("" if expected == found else f"watermarks {found}, not {expected}")
        return "\n".join(filter(None, wrong))


def _watermark_ms(text: str) -> int:
    at = dt.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return round(at.timestamp() * 1000)


def run_on_spark(spark: SparkSession, folder: Path, root: Node, data: Batches) -> list[Row]:
    """Run a stream on Spark, check it against the model, and return its rows."""
    running = Running(Spec(root, streaming=True), data).start(session(spark, 2), folder)
    wrong = running.wrong()
    assert wrong == ""
    return [row for rows in running.batches for row in rows]


def stream(*batches: list[tuple[Any, ...]]) -> list[list[Row]]:
    """Number rows of (seconds, k, v) through micro-batches."""
    count = 0
    made: list[list[Row]] = []
    for batch in batches:
        made.append([])
        for seconds, k, *rest in batch:
            ts = None if seconds is None else BASE + round(seconds * SECOND)
            v = rest[0] if rest else 0
            made[-1].append({"rid": count, "ts": ts, "k": k, "g": 0, "v": v, "tags": (1,)})
            count += 1
    return made


def counted(child: Node, window: Window | None = None, key: str = "k") -> Aggregate:
    aggs = (Agg("count_all", "*", "n"), Agg("rids", "rid", "rids"))
    return Aggregate(child, window or Window("ts", 10), (key,), aggs)


def rids(rows: Iterable[Row]) -> list[Any]:
    return sorted(row["rids"] for row in rows)


# ---------------------------------------------------------------------------- random pipelines


@pytest.mark.parametrize("first", range(0, BATCH_SEEDS, 10))
def test_random_batch_pipelines_return_what_the_model_says(
    spark: SparkSession, tmp_path: Path, first: int
) -> None:
    small = session(spark, 1 + first // 10 % 2)
    for seed in range(first, min(first + 10, BATCH_SEEDS)):
        spec = random_spec(seed, streaming=False)
        print(f"seed {seed}: {spec}")
        data: Any = random_data(seed, spec)
        frames = read_frames(small, spec, write_data(tmp_path / str(seed), spec, data))

        found = [row.asDict() for row in build(spec, frames).collect()]

        assert explain(run_batch(spec, data), [(row, None) for row in found]) == ""


@pytest.mark.parametrize("first", range(0, STREAM_SEEDS, SIDE_BY_SIDE))
def test_random_streams_return_what_the_model_says(
    spark: SparkSession, tmp_path: Path, first: int
) -> None:
    small = session(spark, 1 + first // SIDE_BY_SIDE % 2)
    running = []
    for seed in range(first, min(first + SIDE_BY_SIDE, STREAM_SEEDS)):
        spec = random_spec(seed, streaming=True)
        print(f"seed {seed}: {spec}")
        data: Any = random_data(seed, spec)
        running.append(Running(spec, data).start(small, tmp_path / str(seed)))

    wrong = {repr(one.spec): one.wrong() for one in running}

    assert wrong == dict.fromkeys(wrong, "")


# ---------------------------------------------------------------------------- facts about streams


def test_a_filter_after_the_watermark_keeps_its_rows_from_moving_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    root = counted(Filter(Watermark(Read("a"), 5), compare("<>", "k", "z")))
    data = {"a": stream([(1, "a")], [(30, "a"), (None, "a")], [(100, "z")])}

    found = run_on_spark(spark, tmp_path, root, data)

    assert rids(found) == [[0]]  # without the filter, the row at 30 s would come too


def test_late_rows_are_measured_by_the_watermark_of_the_batch_before(
    spark: SparkSession, tmp_path: Path
) -> None:
    # Batch 2 evicts at 25 s but drops at 7 s: row 4 of window 0-10 s still counts, row 6 does not.
    root = counted(Watermark(Read("a"), 5))
    data = {
        "a": stream(
            [(1, "a"), (12, "a")], [(30, "a"), (5, "a")], [(2, "a")], [(100, "a")], [(3, "a")]
        )
    }

    found = run_on_spark(spark, tmp_path, root, data)

    assert rids(found) == [[0, 3, 4], [1], [2]]


def test_a_shared_watermark_follows_the_faster_branch(spark: SparkSession, tmp_path: Path) -> None:
    mark = Watermark(Read("a"), 5)
    branches = [Filter(mark, compare(op, "k", "a")) for op in ("=", "<>")]
    data = {"a": stream([(1, "a"), (2, "b")], [(100, "b")])}

    found = run_on_spark(spark, tmp_path, counted(Union(branches[0], branches[1])), data)

    assert rids(found) == [[0], [1]]


def test_two_watermarks_follow_the_slower_source(spark: SparkSession, tmp_path: Path) -> None:
    root = counted(Union(Watermark(Read("a"), 0), Watermark(Read("b"), 0)))
    data = {"a": stream([(1, "a"), (31, "a")], [(100, "a")]), "b": stream([(2, "b"), (15, "b")])}

    found = run_on_spark(spark, tmp_path, root, data)

    assert rids(found) == [[0], [0]]


def test_sessions_that_touch_are_one(spark: SparkSession, tmp_path: Path) -> None:
    root = counted(Watermark(Read("a"), 5), Window("ts", 10, session=True))
    data = {"a": stream([(0, "a"), (10, "a"), (21, "a")], [(11, "b")], [(100, "z")])}

    found = run_on_spark(spark, tmp_path, root, data)

    assert rids(found) == [[0, 1], [2], [3]]


def test_windows_of_windows_close_together(spark: SparkSession, tmp_path: Path) -> None:
    first = counted(Watermark(Read("a"), 5))
    root = Aggregate(first, Window("window", 20), (), (Agg("sum", "n", "total"),))
    data = {"a": stream([(1, "a"), (12, "b")], [(13, "a"), (41, "a")], [(14, "c")])}

    found = run_on_spark(spark, tmp_path, root, data)

    assert [row["total"] for row in found] == [4]


def test_null_keys_meet_in_a_full_join_of_streams_only(spark: SparkSession, tmp_path: Path) -> None:
    left, right = Watermark(Read("a"), 0), Watermark(Read("b"), 0)
    data = {"a": stream([(1, None), (2, "a")], [(100, "z")])}
    data["b"] = stream([(1, None), (2, "a")], [(100, "y")])
    expected: dict[How, list[tuple[int, int | None]]] = {
        "full": [(0, 0), (1, 1)],
        "left": [(0, None), (1, 1)],
    }

    for how, pairs in expected.items():
        root = Join(left, right, how, ("k",), -5, 5)
        found = run_on_spark(spark, tmp_path / how, root, data)
        assert sorted((r["rid"], r["r_rid"]) for r in found) == pairs


def test_a_filter_on_a_join_key_holds_back_the_other_sides_watermark(
    spark: SparkSession, tmp_path: Path
) -> None:
    left = Filter(Watermark(Read("a"), 0), compare("<>", "k", "z"))
    root = Join(left, Watermark(Read("b"), 0), "left", ("k",), -5, 5)
    data = {"a": stream([(1, "a")], [(100, "b")]), "b": stream([(50, "q")], [(100, "z")])}

    found = run_on_spark(spark, tmp_path, root, data)

    # The row at 100 s is not seen on the right, so the right side stands at 50 s.
    assert [(r["rid"], r["r_rid"]) for r in found] == [(0, None)]


def test_deduplication_forgets_lateness_when_nobody_reads_the_event_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    kept = DropDuplicates(Watermark(Read("a"), 5), ("k",))
    data = {"a": stream([(10, "a")], [(30, "b")], [(5, "c"), (31, "a")])}

    whole = run_on_spark(spark, tmp_path / "whole", kept, data)
    pruned = run_on_spark(spark, tmp_path / "pruned", Drop(kept, ("ts",)), data)

    assert [row["rid"] for row in whole] == [0, 1]
    assert [row["rid"] for row in pruned] == [0, 1, 2]


def test_deduplication_within_the_watermark_forgets_a_key(
    spark: SparkSession, tmp_path: Path
) -> None:
    root = DropDuplicates(Watermark(Read("a"), 5), ("k",), within_watermark=True)
    data = {"a": stream([(1, "a")], [(2, "a"), (11, "b")], [(12, "b"), (40, "c")], [(41, "a")])}

    found = run_on_spark(spark, tmp_path, root, data)

    assert [row["rid"] for row in found] == [0, 2, 4, 5]


def test_a_semi_join_with_an_empty_table_moves_no_watermark(
    spark: SparkSession, tmp_path: Path
) -> None:
    joined = Join(Watermark(Read("a"), 0), Read("s", static=True), "leftsemi", ("k",))
    data: Any = {"a": stream([(1, "a")], [(100, "a")]), "s": []}

    assert run_on_spark(spark, tmp_path, counted(joined), data) == []


# ---------------------------------------------------------------------------- the model by itself


def own_rows(model: Model) -> list[tuple[Row, Any]]:
    """Answer as the model would: the first way at every choice."""
    first = {slot: leaves[0] for slot, leaves in model.leaves.items()}
    return [
        (row.values, row.refs)
        for row in model.rows
        if row.world is None or row.world.path == first[row.world.slot][: len(row.world.path)]
    ]


@pytest.mark.parametrize("streaming", [False, True])
def test_a_seed_gives_the_same_pipeline_and_rows_again(streaming: bool) -> None:
    for seed in range(40):
        spec = random_spec(seed, streaming=streaming)

        assert random_spec(seed, streaming=streaming) == spec
        assert random_data(seed, spec) == random_data(seed, spec)


@QUICK
@given(specs(streaming=True))
def test_a_pipeline_survives_json(spec: Spec) -> None:
    assert from_json(to_json(spec)) == spec
    assert repr(from_json(to_json(spec))) == repr(spec)


@QUICK
@given(specs_with_data(streaming=False))
def test_the_model_agrees_with_itself_and_with_nothing_less(
    case: tuple[Spec, Any],
) -> None:
    spec, data = case
    model = run_batch(spec, data)
    rows = own_rows(model)
    assert agree(model, rows)
    assume(rows and rows[0][1])

    values, refs = rows[0]
    assert not agree(model, rows[1:])
    assert not agree(model, [*rows, rows[0]])
    assert not agree(model, [({**values, "more": 1}, refs), *rows[1:]])
    assert not agree(model, [(values, refs | {("a", 99)}), *rows[1:]])


@QUICK
@given(specs_with_data(streaming=True))
def test_a_stream_that_keeps_no_state_returns_what_a_table_would(case: tuple[Spec, Any]) -> None:
    spec, batches = case
    stateful = (Aggregate, Distinct, DropDuplicates)
    assume(not any(isinstance(node, stateful) for node in walk(spec.root)))
    assume(spec.statics or not any(isinstance(node, Join) for node in walk(spec.root)))

    found = run_stream(spec, batches)

    assert agree(run_batch(spec, tables_of(spec, batches)), own_rows(found))


def tables_of(spec: Spec, batches: Batches) -> Tables:
    """Put the micro-batches of each source into one table."""
    made: dict[str, Any] = dict(batches)
    made |= {n: [row for batch in batches[n] for row in batch] for n in spec.sources}
    return made


def is_monotone(root: Node) -> bool:
    """Tell whether more rows can only mean more results, but for one aggregate."""
    joins = [node.how for node in walk(root) if isinstance(node, Join)]
    plain = Narrow | Read | Watermark | Union | Aggregate | Join
    known = all(isinstance(node, plain) for node in walk(root))
    aggregates = sum(isinstance(node, Aggregate) for node in walk(root))
    return known and aggregates <= 1 and set(joins) <= {"inner", "leftsemi"}


@pytest.mark.parametrize("streaming", [False, True])
def test_the_traced_rows_alone_make_the_row_again(streaming: bool) -> None:
    checked = 0
    for seed in range(400):
        spec = random_spec(seed, streaming=streaming)
        if not is_monotone(spec.root):
            continue
        data: Any = random_data(seed, spec)
        model = run_stream(spec, data) if streaming else run_batch(spec, data)
        tables = tables_of(spec, data) if streaming else data
        for row in model.rows:
            kept = {
                name: [r for r in rows if (name, r["rid"]) in row.refs]
                for name, rows in tables.items()
            }
            again = [one.values for one in run_batch(spec, kept).rows]
            assert row.values in again, f"seed {seed}: {spec}"
            checked += 1
    assert checked > 400


def test_random_pipelines_have_every_operator_and_every_freedom() -> None:
    found = set()
    for streaming in (False, True):
        for seed in range(300):
            spec = random_spec(seed, streaming=streaming)
            found |= {(streaming, type(node).__name__) for node in walk(spec.root)}
            found |= {(streaming, n.how) for n in walk(spec.root) if isinstance(n, Join)}
            found |= {(streaming, n.grouping) for n in walk(spec.root) if isinstance(n, Aggregate)}
            found |= {(streaming, n.verb) for n in walk(spec.root) if isinstance(n, SetOperation)}
            found |= {(streaming, "fills") for n in walk(spec.root) if getattr(n, "fills", False)}
            data: Any = random_data(seed, spec)
            model = run_stream(spec, data) if streaming else run_batch(spec, data)
            for row in model.rows:
                freedom = {"world": row.world, "one": row.prov.one_of, "some": row.prov.some_of}
                found |= {(streaming, name) for name, value in freedom.items() if value}
    everywhere = {"Filter", "WithColumn", "Select", "Rename", "Drop", "Explode", "Union", "Join"}
    everywhere |= {"Distinct", "DropDuplicates", "Aggregate", "inner", "left", "right", "full"}
    everywhere |= {"leftsemi", "leftanti", "world", "one", "WindowColumn", "Unpivot", "Named"}
    expected = {(streaming, name) for streaming in (False, True) for name in everywhere}
    in_batch = {"OrderLimit", "Pivot", "rollup", "cube", "intersect", "subtract", "fills"}
    expected |= {(False, name) for name in in_batch} | {(True, "Watermark"), (True, "some")}
    assert expected <= found
    assert (True, "OrderLimit") not in found


# ---------------------------------------------------------------------------- what `agree` accepts

ONE, TWO, THREE = (frozenset({("a", number)}) for number in (1, 2, 3))


def test_kept_rows_may_be_any_one_of_the_equal_ones() -> None:
    kept = Prov(one_of=frozenset({(Prov(ONE), Prov(TWO))}))
    model = Model((ModelRow({"k": "x"}, kept),), {})

    assert agree(model, [({"k": "x"}, ONE)])
    assert agree(model, [({"k": "x"}, TWO)])
    assert not agree(model, [({"k": "x"}, ONE | TWO)])
    assert not agree(model, [({"k": "x"}, frozenset())])
    assert not agree(model, [({"k": "x"}, THREE)])


def test_a_semi_join_of_streams_may_name_any_partners_but_not_none() -> None:
    some = Prov(ONE, some_of=frozenset({(TWO, THREE)}))
    model = Model((ModelRow({"k": "x"}, some),), {})

    assert agree(model, [({"k": "x"}, ONE | TWO)])
    assert agree(model, [({"k": "x"}, ONE | TWO | THREE)])
    assert not agree(model, [({"k": "x"}, ONE)])
    assert not agree(model, [({"k": "x"}, TWO)])


def test_a_free_choice_of_values_is_made_once() -> None:
    slot = ("dedup", 0)
    rows = tuple(
        ModelRow({"v": v}, Prov(refs), World(slot, (i,)))
        for i, (v, refs) in enumerate([(1, ONE), (2, TWO)])
    )
    model = Model(rows, {slot: ((0,), (1,), (2,))})

    assert agree(model, [({"v": 1}, ONE)])
    assert agree(model, [({"v": 2}, TWO)])
    assert agree(model, [])  # the third choice leads to a row that a filter drops
    assert not agree(model, [({"v": 1}, TWO)])
    assert not agree(model, [({"v": 1}, ONE), ({"v": 2}, TWO)])


def test_equal_rows_are_paired_one_to_one() -> None:
    either = Prov(one_of=frozenset({(Prov(ONE), Prov(TWO))}))
    model = Model((ModelRow({"k": "x"}, either), ModelRow({"k": "x"}, Prov(ONE))), {})

    assert agree(model, [({"k": "x"}, ONE), ({"k": "x"}, TWO)])
    assert agree(model, [({"k": "x"}, TWO), ({"k": "x"}, ONE)])
    assert not agree(model, [({"k": "x"}, TWO), ({"k": "x"}, TWO)])


def test_values_may_come_as_spark_gives_them() -> None:
    at = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)
    model = Model((ModelRow({"w": (BASE, BASE + SECOND), "t": (1, 2)}, Prov(ONE)),), {})

    assert agree(model, [({"w": (at, at + dt.timedelta(seconds=1)), "t": [1, 2]}, None)])
    assert agree(
        model, [({"w": {"start": at, "end": at + dt.timedelta(seconds=1)}, "t": [1, 2]}, ONE)]
    )


def test_an_explanation_shows_both_sides() -> None:
    model = Model((ModelRow({"k": "x"}, Prov(ONE)),), {})

    text = explain(model, [({"k": "y"}, TWO)])

    assert text == "expected:\n  {'k': 'x'} from [('a', 1)]\nfound:\n  {'k': 'y'} from [('a', 2)]"


def test_a_limit_takes_nulls_first_when_rising_and_last_when_falling() -> None:
    rows = stream([(1, None), (2, "b"), (3, "a")])[0]

    up = run_batch(Spec(OrderLimit(Read("a"), (("k", True),), 2), streaming=False), {"a": rows})
    down = run_batch(Spec(OrderLimit(Read("a"), (("k", False),), 2), streaming=False), {"a": rows})

    assert [row.values["k"] for row in up.rows] == [None, "a"]
    assert [row.values["k"] for row in down.rows] == ["b", "a"]


def test_a_join_in_batch_never_pairs_null_keys_unless_asked() -> None:
    rows = stream([(1, None)])[0]
    found = {}
    for null_safe in (False, True):
        root = Join(Read("a"), Read("b"), "full", ("k",), null_safe=null_safe)
        model = run_batch(Spec(root, streaming=False), {"a": rows, "b": rows})
        found[null_safe] = sorted(sorted(row.refs) for row in model.rows)

    assert found == {False: [[("a", 0)], [("b", 0)]], True: [[("a", 0), ("b", 0)]]}


def test_columns_follow_renames_and_aggregates() -> None:
    node = Rename(Select(counted(Read("a")), (("k", col("k")), ("n", col("n")))), "n", "m")

    assert columns(node) == {"k": "string", "m": "long"}
    assert repr(WithColumn(node, "x", Expr("+", (col("m"), col("m"))))).endswith(
        ".select(k, n).withColumnRenamed(n, m).withColumn(x, m + m)"
    )
