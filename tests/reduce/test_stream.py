"""Reductions that run in Spark: every mode and partitioning, ends, restarts, dead letters."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import clew
from clew.cli import main
from clew.exceptions import ReduceConflictError, ReduceSettingError
from clew.model import RowId
from clew.prov.asked_for import Settings
from clew.prov.land import landed_edges
from clew.prov.lines import files
from clew.prov.partition import reduce_locally
from clew.prov.worker import Local
from reduce.jobs import (
    Edge,
    documents,
    expected,
    groups,
    shared_job,
    shuffled,
    single_use_job,
    statements,
)
from store.build import StoreBuilder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

JOB = shared_job(5, executions=30)
END = json.dumps({"prov": "end", "job": "job"})


def write(folder: Path, lines: Sequence[str], files: int = 1) -> None:
    """Write lines as files, one for each batch, behind those that are there."""
    folder.mkdir(exist_ok=True)
    there = len(list(folder.iterdir()))
    for number in range(files):
        path = folder / f"{there + number:03d}.jsonl"
        part = lines[number * len(lines) // files : (number + 1) * len(lines) // files]
        path.write_text("".join(f"{line}\n" for line in part))
        at = 1_700_000_000 + 60 * (there + number)
        os.utime(path, (at, at))


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder))


def found(store: Path, job: str = "job") -> list[Edge]:
    rows = landed_edges(store, job).to_pylist()
    return sorted((row["output"], row["input"]) for row in rows)


@pytest.mark.parametrize(
    ("mode", "partitioning", "more"),
    [
        ("watermark", "source", {"delay": "60 seconds", "global_batch": 20}),
        ("watermark", "random", {"delay": "60 seconds", "local_batch": 3}),
        ("grouping", "function", {}),
        ("grouping", "node", {"single_use": True, "global_batch": 5}),
        ("grouping", "lineage", {"single_use": True}),
        ("window", "source", {"window": 1000, "local_batch": 1000}),
    ],
)
def test_a_stream_is_reduced_to_what_connects_inputs_with_outputs(
    spark: SparkSession, tmp_path: Path, mode: str, partitioning: str, more: dict[str, Any]
) -> None:
    job = single_use_job(7, executions=30) if "single_use" in more else JOB
    publish = statements if mode == "watermark" else groups
    batches = 1 if mode == "window" else 2  # what a window remembers ends with its batch
    write(tmp_path / "in", [*shuffled(publish(job), 3, distance=8), END], files=batches)

    done = clew.prov.reduce(
        stream(spark, tmp_path / "in"),
        job="job",
        store=tmp_path / "prov",
        mode=mode,
        partitioning=partitioning,
        partitions=2,
        **more,
    )
    done.awaitTermination()

    assert found(tmp_path / "prov") == sorted(expected(job))
    progress = done.progress()
    assert (progress.closed, progress.ended, progress.edges_open) == (True, True, 0)
    assert progress.statements == sum(len(e.used) + len(e.generated) for e in job)
    assert progress.edges_out == len(expected(job))


@pytest.mark.parametrize(
    ("partitioning", "key"),
    [
        ("function", "coalesce(function, execution)"),
        ("node", "coalesce(node, execution)"),
        ("random", "execution"),
    ],
)
def test_the_plan_shows_what_goes_together(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], partitioning: str, key: str
) -> None:
    local = Local(Settings("job", partitioning=partitioning, partitions=3), "unused")

    reduce_locally(spark.createDataFrame([("{}",)], "value string"), local).explain()

    plan = re.sub(r"#\d+L?", "", capsys.readouterr().out)
    assert f" {key} AS _clew_key]" in plan
    assert "Exchange hashpartitioning(_clew_key, 3)" in plan


def test_a_job_without_an_end_stays_open_until_it_is_idle(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path / "in", statements(JOB))
    settings: dict[str, Any] = {"job": "job", "store": tmp_path / "prov", "delay": "1 hour"}

    waiting = clew.prov.reduce(stream(spark, tmp_path / "in"), **settings)
    waiting.awaitTermination()
    before = found(tmp_path / "prov")
    idle = clew.prov.reduce(stream(spark, tmp_path / "in"), **settings, idle=0)
    idle.awaitTermination()

    assert before == []
    assert waiting.progress().closed
    assert found(tmp_path / "prov") == sorted(expected(JOB))


def test_a_stream_that_is_followed_ends_by_itself(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", groups(JOB))
    store = tmp_path / "prov"

    done = clew.prov.reduce(tmp_path / "in", job="job", store=store, follow=True, idle=0.5)

    assert done.awaitTermination() is True
    assert not done.is_active
    assert found(store) == sorted(expected(JOB))


def test_the_watermark_lets_go_of_old_edges_while_the_stream_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path / "in", statements(JOB), files=3)
    store = tmp_path / "prov"
    settings: dict[str, Any] = {"job": "job", "delay": "6 seconds", "global_batch": 1}

    done = clew.prov.reduce(stream(spark, tmp_path / "in"), store=store, **settings)
    done.awaitTermination()
    progress = done.progress()

    assert not progress.closed
    assert 0 < progress.edges_out == len(found(store))
    assert 0 < progress.edges_open < progress.statements


def test_what_cannot_be_read_is_kept_with_the_reason_and_stops_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    odd = {
        "{": "it is no JSON at character 1",
        "[1, 2]": "it is JSON, but no object",
        "[" * 100_000: "it is nested too deeply",
        '{"prov": "eats", "entity": "x"}': "its `prov` is no relation of PROV",
        '{"entity": 5, "prov": "used", "activity": "a"}': "it names no `entity`",
        '{"prov": "used", "activity": "a"}': "it names no `entity`",
        '{"prov": "used", "activity": "a", "entity": "\\ud800"}': (
            "its `entity` has characters that no name may have"
        ),
        '{"prov": "group", "activity": "a", "used": "x"}': ("its `used` or `generated` is no list"),
        '{"prov": "wasDerivedFrom", "generatedEntity": "a", "usedEntity": "b", "time": "noon"}': (
            "its `time` is no time in ISO 8601"
        ),
        '{"used": {"_:u": 7}}': "a statement in it is no object",
        '{"used": {"_:u": {"prov:activity": "a", "prov:ent': "it is no JSON at character 40",
    }
    left_out = ['{"prov": "wasAssociatedWith", "activity": "a", "agent": "b", "job": "job"}',
                '{"prov": "entity", "entity": "in/0", "job": "job"}',
                '{"prov": "used", "activity": "a", "entity": "b", "job": "other"}']  # fmt: skip
    lines = groups(JOB)
    write(tmp_path / "in", [*lines[:9], *odd, *left_out, "", *lines[9:]])

    done = clew.prov.reduce(
        tmp_path / "in", job="job", store=tmp_path / "prov", idle=0, keep_apart=True
    )
    done.awaitTermination()

    [letters] = [pq.read_table(path).to_pylist() for path in done.dead_letters()]
    assert [(row["line"][:100], row["reason"]) for row in letters] == [
        (line[:100], reason) for line, reason in odd.items()
    ]
    [apart] = [pq.read_table(path).to_pylist() for path in done.kept_apart()]
    assert [row["line"] for row in apart] == left_out[:2]
    progress = done.progress()
    assert (progress.dead, progress.filtered, progress.foreign) == (len(odd), 2, 1)
    assert found(tmp_path / "prov") == sorted(expected(JOB))


def test_a_job_cannot_go_on_in_another_mode(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", groups(JOB[:3]))
    clew.prov.reduce(tmp_path / "in", job="job", store=tmp_path / "prov").awaitTermination()

    with pytest.raises(ReduceConflictError, match="`mode='watermark'`"):
        clew.prov.reduce(tmp_path / "in", job="job", store=tmp_path / "prov", mode="grouping")


def test_settings_that_cannot_be_are_refused_before_anything_runs(spark: SparkSession) -> None:
    for wrong in (
        {"mode": "guess"},
        {"partitioning": "alphabet"},
        {"local_batch": 0},
        {"delay": "soon"},
        {"flush": True},
        {"mode": "window", "single_use": True},
        {"job": ""},
    ):
        with pytest.raises(ReduceSettingError, match=f"`{list(wrong)[-1]}` cannot be"):
            clew.prov.reduce("in/", **{"job": "job", "store": "prov/", **wrong})  # type: ignore[arg-type]
    with pytest.raises(ReduceSettingError, match="reduce_table"):
        clew.prov.reduce(spark.range(1), job="job", store="prov/")


def test_a_table_is_reduced_at_once(spark: SparkSession) -> None:
    lines = spark.createDataFrame([(line,) for line in statements(JOB)], "value string")
    edges = spark.createDataFrame(
        [("c", "b"), ("b", "a"), ("d", "b")], "output string, input string"
    )

    assert {tuple(r) for r in clew.prov.reduce_table(lines).collect()} == expected(JOB)
    assert sorted(map(tuple, clew.prov.reduce_table(edges).collect())) == [("c", "a"), ("d", "a")]


def test_the_edges_of_a_store_are_reduced_across_its_queries(
    spark: SparkSession, tmp_path: Path
) -> None:
    built = StoreBuilder(tmp_path / "own")
    built.sink("stopped", ["reports"])
    built.sink("accidents", ["stopped"])
    built.batch("stopped", 0, edges=[("stopped", 1, -1, "reports", 7, i) for i in range(3)])
    built.batch("accidents", 0, edges=[("accidents", 5, 5, "stopped", 1, -1)])
    settings: dict[str, Any] = {"job": "road", "store": tmp_path / "prov"}

    clew.prov.reduce(tmp_path / "own", **settings).awaitTermination()
    built.batch("stopped", 1, edges=[("stopped", 2, 2, "reports", 8, 0)])
    clew.prov.reduce(tmp_path / "own", **settings, idle=0).awaitTermination()

    assert found(tmp_path / "prov", "road") == sorted(
        [
            *((str(RowId("accidents", 5, 5)), str(RowId("reports", 7, i))) for i in range(3)),
            (str(RowId("stopped", 2, 2)), str(RowId("reports", 8, 0))),
        ]
    )


def test_a_file_may_be_one_document(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number, text in enumerate([*documents(JOB), '{"used": {']):
        path = tmp_path / "in" / f"{number}.json"
        path.write_text(json.dumps(json.loads(text), indent=2) if number < len(JOB) else text)

    done = clew.prov.reduce(
        files(spark, tmp_path / "in", documents=True),
        job="job", store=tmp_path / "prov", mode="grouping", idle=0,
    )  # fmt: skip
    done.awaitTermination()

    assert found(tmp_path / "prov") == sorted(expected(JOB))
    assert done.progress().dead == 1


def test_the_command_line_reduces_and_says_what_it_did(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "in", [*statements(JOB), "{"])
    where = [str(tmp_path / "in"), "--store", str(tmp_path / "prov"), "--job", "job"]

    assert main(["reduce", *where, "--delay", "1 hour", "--json"]) == 0

    said = json.loads(capsys.readouterr().out)
    assert (said["edges_out"], said["dead"], said["closed"]) == (len(expected(JOB)), 1, True)
    [letters] = said["dead_letters"]
    assert pq.read_table(letters).num_rows == 1
    assert found(tmp_path / "prov") == sorted(expected(JOB))
