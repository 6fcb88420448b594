"""Property subscriptions that go to a topic, against a real broker: what arrives is what is due."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

import clew
from clew.cli import main
from clew.pipelines import load_pipeline
from frames import at

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from pyspark.sql import SparkSession

MODULE = """
import clew
from pyspark.sql import functions as F

KIND = "rid int, ts timestamp, meter string, trust double"


def averages(spark):
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "{servers}")
    records = reader.option("subscribe", "{topic}").option("startingOffsets", "earliest").load()
    traced = clew.trace(records, "readings")
    value = F.from_json(F.col("value").cast("string"), KIND).alias("r")
    parsed = traced.select(value).select("r.*")
    said = parsed.property("trust", F.col("trust"), merge="min")
    said = said.property("rids", F.col("rid"), merge="set").drop("trust")
    windows = said.withWatermark("ts", "0 seconds").groupBy(F.window("ts", "1 minute"), "meter")
    return windows.agg(F.count("*").alias("n"))
"""
READINGS = [
    (1, "12:00:01", "a", 0.9),
    (2, "12:00:02", "a", 0.3),
    (3, "12:00:03", "b", 0.8),
    (4, "12:01:01", "b", 0.4),
    (5, "12:01:59", "b", 0.7),
    (6, "13:00:00", "a", 1.0),
]
DUE = {
    ("2026-01-01 12:00:00.000000Z", "a", 2, 0.3, (1, 2)),
    ("2026-01-01 12:01:00.000000Z", "b", 2, 0.4, (4, 5)),
}
"""Of the windows that are closed, those with a reading of trust below one half."""


def send(spark: SparkSession, servers: str, topic: str) -> None:
    texts = [
        (json.dumps({"rid": rid, "ts": at(t).isoformat(), "meter": meter, "trust": trust}),)
        for rid, t, meter, trust in READINGS
    ]
    frame = spark.createDataFrame(texts, "value string").coalesce(1)
    writer = frame.write.format("kafka").option("kafka.bootstrap.servers", servers)
    writer.option("topic", topic).save()


def arrived(spark: SparkSession, servers: str, topic: str) -> list[tuple[Any, ...]]:
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", servers)
    values = reader.option("subscribe", topic).load().select(F.col("value").cast("string"))
    rows = [json.loads(row.value) for row in values.collect()]
    return [(r["window"]["start"], r["meter"], r["n"], r["trust"], tuple(r["rids"])) for r in rows]


def test_a_subscription_is_delivered_to_a_topic(
    spark: SparkSession,
    servers: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic, first, second = (f"{name}-{uuid.uuid4().hex[:8]}" for name in ("readings", "a", "b"))
    send(spark, servers, topic)
    name = f"trusted_{uuid.uuid4().hex[:8]}"
    (tmp_path / f"{name}.py").write_text(MODULE.format(servers=servers, topic=topic))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("clew.pipelines.make_session", lambda: spark)
    frame = load_pipeline(f"{name}:averages", "averages")["averages"]
    assert isinstance(frame, clew.TracedFrame)

    query = frame.subscribe(
        "trust",
        {"kafka.bootstrap.servers": servers, "topic": first},
        where="trust < 0.5",
        checkpoint=str(tmp_path / "chk-1"),
        trigger={"availableNow": True},
    )
    assert query is not None
    query.awaitTermination()
    delivered = arrived(spark, servers, first)
    assert (len(delivered), set(delivered)) == (2, DUE)

    asked = ["subscribe", "--pipeline", f"{name}:averages", "--property", "trust", "--once"]
    asked += ["--where", "trust < 0.5", "--to-kafka", servers, "--topic", second]
    asked += ["--checkpoint", str(tmp_path / "chk-2")]
    assert main(asked) == 0
    assert capsys.readouterr().out == ""
    delivered = arrived(spark, servers, second)
    assert (len(delivered), set(delivered)) == (2, DUE)
    assert main(asked) == 0, "the checkpoint says that all is delivered"
    assert len(arrived(spark, servers, second)) == 2
