"""Keys of a topic's records are recorded with their content, over a restart."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import clew
from clew.testing import run_stream
from topics.test_topics import readings, records, send, sums

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_records_of_a_topic_are_recorded_once(
    spark: SparkSession, servers: str, tmp_path: Path
) -> None:
    topic, rows = f"recorded-{uuid.uuid4().hex[:8]}", readings(5, 30)
    again = {"kafka.bootstrap.servers": servers}
    traced = clew.trace(records(spark, servers, topic), "readings", again=again)
    said: dict[str, Any] = {"checkpoint": tmp_path / "chk", "assertions": ["readings", "sums"]}

    for part in (rows[:15], rows[15:]):
        send(spark, servers, topic, part)
        run_stream(sums(traced), tmp_path / "prov", "sums", **said)

    prov = clew.open(tmp_path / "prov", pipelines={"sums": sums(traced)})
    kept = [json.loads(bytes((r.row or {})["value"])) for r in prov.assertions("readings")]
    assert sorted(each["rid"] for each in kept) == [row["rid"] for row in rows]
    results = list(prov.assertions("sums"))
    behind = [prov.backward("sums", each.id).rows for each in results]
    assert sum(len(each) for each in behind) == len({row.id for each in behind for row in each})
    assert len(results) > 3
