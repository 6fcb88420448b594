"""A job's provenance in a Kafka topic, against a real broker: two partitions, and a restart."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import clew
from clew.prov.lines import topic
from reduce.jobs import expected, shared_job, shuffled, statements
from reduce.test_stream import found

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

JOB = shared_job(21, executions=80)


def publish(spark: SparkSession, servers: str, name: str, lines: Sequence[str]) -> None:
    """Send lines to a topic of two partitions, each execution to one of them."""
    rows = [(line, int(json.loads(line).get("activity", "e0")[1:]) % 2) for line in lines]
    frame = spark.createDataFrame(rows, "value string, partition int").coalesce(1)
    writer = frame.write.format("kafka").option("kafka.bootstrap.servers", servers)
    writer.option("topic", name).save()


def test_a_topic_of_two_partitions_is_reduced_over_a_restart(
    spark: SparkSession, servers: str, tmp_path: Path
) -> None:
    name = f"prov-{uuid.uuid4().hex[:8]}"
    lines = shuffled(statements(JOB), 2, distance=9)
    settings: dict[str, Any] = {
        "job": "job",
        "store": tmp_path / "prov",
        "delay": "5 minutes",
        "partitioning": "random",
        "partitions": 2,
        "global_batch": 20,
    }

    def run() -> clew.Reduction:
        source = topic(spark, servers, name, maxOffsetsPerTrigger="60")
        done = clew.prov.reduce(source, **settings)
        done.awaitTermination()
        return done

    publish(spark, servers, name, lines[: len(lines) // 2])
    first = run().progress()
    publish(spark, servers, name, [*lines[len(lines) // 2 :], '{"prov": "end", "job": "job"}'])
    last = run().progress()

    assert (first.closed, first.statements) == (False, len(lines) // 2)
    assert (last.closed, last.statements, last.dead) == (True, len(lines), 0)
    offline = spark.createDataFrame([(line,) for line in lines], "value string")
    answer = sorted(map(tuple, clew.prov.reduce_table(offline).collect()))
    assert found(tmp_path / "prov") == answer == sorted(expected(JOB))
