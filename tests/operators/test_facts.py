"""What an operator says of itself, and what is taken for true where it says nothing."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar

import pytest
from pyspark.sql import functions as F

import clew
from clew.again.choose import choose
from clew.again.reach import is_stateful, obstacle, reach, stream_obstacle
from clew.again.trials import can_share
from clew.exceptions import CaptureRefusedError
from clew.expiry.bound import bounds
from clew.plan.facts import (
    AtOnce,
    Facts,
    For,
    Rows,
    UntilMet,
    UntilPassed,
    WithoutEnd,
    WithoutWindow,
    WithTables,
)
from clew.plan.node import Node
from clew.testing import read_batches, write_batches
from frames import READINGS, READINGS_DDL, at

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from clew.model import Exactness
    from clew.plan.algebra import Capture
    from clew.plan.made import Made
    from clew.plan.node import Annotated


@dataclass(frozen=True, slots=True)
class Unstated:
    """A step that hands rows on and says nothing of itself."""

    facts: Facts = Facts()  # noqa: RUF009 (frozen)
    kind: ClassVar[str] = "step"
    label: ClassVar[str] = "anything"
    exactness: ClassVar[Exactness] = "exact"

    def made_of(self, node: Node, column: str) -> tuple[Made, ...]:
        return ()

    def annotate(self, inputs: Sequence[Annotated], capture: Capture) -> Annotated:
        return inputs[0]


@pytest.fixture
def readings(spark: SparkSession, tmp_path: Path) -> clew.TracedFrame:
    rows = [[{"rid": 1, "ts": at("12:00:00"), "meter": "m", "kwh": 1}]]
    write_batches(tmp_path / "in", READINGS, rows)
    stream = read_batches(spark, tmp_path / "in", READINGS_DDL)
    return clew.trace(stream, "readings", event_time="ts")


def after(frame: clew.TracedFrame, facts: Facts | None = None) -> Node:
    return Node(Unstated() if facts is None else Unstated(facts), (frame.node,))


def test_what_is_not_said_has_no_bound(readings: clew.TracedFrame) -> None:
    [bound] = bounds(after(readings.withWatermark("ts", "1 minute"))).values()

    assert bound.micros is None
    assert bound.why == ("for how long `step` keeps rows is not known",)


def test_what_is_not_said_is_not_computed_again(readings: clew.TracedFrame) -> None:
    node = after(readings)

    why = "`step` may choose other rows when the query is computed again"
    assert obstacle(node, whole=True) == why
    assert stream_obstacle(node, whole=True) == "which of its rows come first is not known"
    assert is_stateful(node)
    assert not can_share(node)
    assert reach(node, whole=True).length is None
    with pytest.raises(CaptureRefusedError, match="may choose other rows"):
        choose(node, "intervals")


def test_each_fact_has_a_careful_default() -> None:
    said = {each.name: getattr(Facts(), each.name) for each in fields(Facts)}

    assert said == {
        "rows": Rows.UNKNOWN,
        "keeps": WithoutEnd(),
        "has_state": True,
        "every": False,
        "closes": False,
        "repeats": False,
        "first_come": "which of its rows come first is not known",
        "rests_on_others": True,
        "hands_over_groups": True,
        "evaluates": True,
        "aggregates": False,
        "of_nothing": False,
        "breaks_ties": True,
        "grows": True,
        "keeps_apart": False,
        "rests_on_past": True,
        "by_condition": False,
        "watermark": None,
        "pairing": None,
    }


def test_how_long_rows_are_kept_is_read_off_the_step(
    readings: clew.TracedFrame, spark: SparkSession
) -> None:
    marked = readings.withWatermark("ts", "1 minute")
    window = F.window("ts", "2 minutes")
    table = clew.trace(spark.range(3).withColumnRenamed("id", "rid"), "table", id=["rid"])
    other = marked.select(F.col("rid").alias("r"), F.col("ts").alias("t"))
    near = F.expr("rid = r AND ts BETWEEN t AND t + INTERVAL 1 MINUTE")

    assert marked.filter("kwh > 0").node.operator.facts.keeps == AtOnce()
    assert marked.groupBy("ts").count().node.operator.facts.keeps == UntilPassed("ts", "ts")
    windowed = marked.groupBy(window).count().node.operator.facts.keeps
    assert isinstance(windowed, UntilPassed)
    assert (windowed.time is window, windowed.column) == (True, "window")
    assert marked.groupBy("meter").count().node.operator.facts.keeps == WithoutWindow()
    assert marked.join(other, near).node.operator.facts.keeps == UntilMet(("ts", "t"))
    assert marked.join(table, "rid").node.operator.facts.keeps == WithTables()
    forever = "`dropDuplicates` without a watermark remembers rows for ever"
    assert marked.dropDuplicates(["rid"]).node.operator.facts.keeps == WithoutEnd(forever)
    in_order = clew.trace(spark.sql("SELECT 'm' AS meter, now() AS ts"), "rows").inOrder(
        "meter", time="ts"
    )
    assert in_order.timeWindow("90 seconds").node.operator.facts.keeps == For(90_000_000, "ts")
    too_few = "`countWindow` keeps rows until enough others have come"
    assert in_order.countWindow(3).node.operator.facts.keeps == WithoutEnd(too_few)
