"""An emitter and a real topic."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from clew.exceptions import EmitError
from clew.prov import Emitter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("confluent_kafka")


def test_events_are_in_the_topic_when_the_emitter_is_closed(
    spark: SparkSession, servers: str
) -> None:
    with Emitter(f"kafka://{servers}/emitted", job="hashtags", node="worker-1") as emit:
        for number in range(100):
            with emit.execution("count", key=str(number)) as run:
                run.used(f"in/{number}")
                run.generated(f"out/{number}")

    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", servers)
    rows = reader.option("subscribe", "emitted").load().selectExpr("key", "value").collect()
    found = [json.loads(bytes(row.value)) for row in rows]
    assert {bytes(row.key) for row in rows} == {b"worker-1"}
    assert [e["seq"] for e in sorted(found, key=lambda e: e["seq"])] == list(range(100))
    assert {(e["used"][0], e["generated"][0]) for e in found} == {
        (f"in/{n}", f"out/{n}") for n in range(100)
    }


def test_a_topic_that_cannot_be_reached_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.prov.channel._SECONDS", 2.0)

    with pytest.raises(EmitError, match="are not acknowledged"):
        Emitter("kafka://127.0.0.1:1/emitted", job="j").end()
