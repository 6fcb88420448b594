"""Kafka's identity is taken where the plan reads topics, and nowhere else."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import functions as F

import clew
from clew.exceptions import SourceChangedError
from clew.sources.identity import choose_identity
from clew.testing import run_stream
from frames import at
from topics.test_topics import readings, records, send, sums

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_only_a_read_of_topics_is_kafka(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    topic = f"t{uuid.uuid4().hex[:8]}"
    send(spark, servers, topic, [{"meter": "a", "kwh": 1}, {"meter": "b", "kwh": 2}])
    stream = records(spark, servers, topic)
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", servers)
    table = reader.option("subscribe", topic).load()
    table.write.parquet(str(tmp_path / "landed"))

    kinds = {
        "stream": choose_identity(stream, None).kind,
        "table": choose_identity(table, None).kind,
        "renamed": choose_identity(stream.withColumn("value", F.lit("x")), None).kind,
        "other offset": choose_identity(
            stream.withColumn("offset", F.lit(1).cast("long")), None
        ).kind,
        "twice": choose_identity(stream.withColumn("n", F.explode(F.array(F.lit(1)))), None).kind,
        "landed": choose_identity(spark.read.parquet(str(tmp_path / "landed")), None).kind,
    }

    assert kinds == {
        "stream": "kafka",
        "table": "kafka",
        "renamed": "kafka",
        "other offset": "content",
        "twice": "content",
        "landed": "parquet",
    }


@pytest.mark.parametrize("capture", ["pointers", "intervals"])
def test_a_topic_that_was_made_again_is_not_taken_for_the_old_one(
    spark: SparkSession, servers: str, tmp_path: Path, capture: str
) -> None:
    topic = f"t{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": servers})

    def make(first: int) -> None:
        admin.create_topics([NewTopic(topic, 2, 1)])[topic].result()
        send(spark, servers, topic, [*readings(first, 30), late])

    late = {"rid": 99, "ts": at("23:00:00"), "meter": "a", "kwh": 1}
    make(1)
    stream = records(spark, servers, topic)
    frame = sums(clew.trace(stream, "readings", again={"kafka.bootstrap.servers": servers}))
    later: dict[str, Any] = {"unfold": "later"} if capture == "pointers" else {}
    run_stream(
        frame, tmp_path / "prov", "sums", checkpoint=tmp_path / "chk", capture=capture, **later
    )
    admin.delete_topics([topic])[topic].result()
    while topic in admin.list_topics().topics:
        pass
    make(2)
    prov = clew.open(tmp_path / "prov")
    row = prov.rows("sums")[0]

    if capture == "intervals":
        with pytest.raises(SourceChangedError, match="deleted and made again"):
            prov.backward("sums", row.id)
        return
    why = prov.backward("sums", row.id)
    assert (len(why.rows), why.complete) == (0, False)
    assert "was deleted and made again after batch" in why.gaps[0].reason
