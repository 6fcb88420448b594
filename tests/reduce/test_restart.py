"""A reduction that is cut off at any step goes on as if nothing had been."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import clew
from clew import steps
from recovery.reducing import STEPS
from reduce.jobs import expected, shared_job, statements
from reduce.test_stream import found, stream, write

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

JOB = shared_job(11, executions=120, recent=6)


class CutOffError(Exception):
    """What takes the place of a power cut."""


def cut_off(step: str) -> None:
    def listener(reached: str, batch: int) -> None:
        if reached == step:
            steps.unlisten(listener)
            raise CutOffError

    steps.listen(listener)


def test_a_reduction_cut_off_at_each_step_stores_what_an_undisturbed_one_does(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path / "in", statements(JOB), files=len(STEPS) + 1)
    settings: dict[str, Any] = {"job": "job", "delay": "20 seconds", "global_batch": 1, "idle": 0}

    def run(store: str) -> None:
        lines = stream(spark, tmp_path / "in")
        clew.prov.reduce(lines, store=tmp_path / store, **settings).awaitTermination()

    run("calm")
    for step in STEPS:
        cut_off(step)
        with pytest.raises(Exception, match="CutOffError"):
            run("stormy")
    cut_off("closing begun")
    with pytest.raises(CutOffError):
        run("stormy")
    run("stormy")

    assert found(tmp_path / "stormy") == found(tmp_path / "calm") == sorted(expected(JOB))
    calm, stormy = (
        [path.stem[9:] for path in landed_batches(tmp_path / s)] for s in ("calm", "stormy")
    )
    assert calm == stormy
    left = list((tmp_path / "stormy" / "reduce" / "job" / "batches").rglob("*.parquet"))
    assert left == []


def test_a_checkpoint_restored_from_a_backup_is_refused_and_its_lines_are_not_lost(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()

    def go(number: int) -> None:
        (folder / f"{number}.jsonl").write_text(f"{statements(JOB)[number]}\n")
        place: dict[str, Any] = {"store": tmp_path / "prov", "checkpoint": tmp_path / "chk"}
        clew.prov.reduce(stream(spark, folder), job="job", **place).awaitTermination()

    go(0)
    shutil.copytree(tmp_path / "chk", tmp_path / "backup")
    go(1)
    shutil.rmtree(tmp_path / "chk")
    shutil.copytree(tmp_path / "backup", tmp_path / "chk")
    (folder / "1.jsonl").unlink()

    with pytest.raises(Exception, match="batch 1 was reduced already, with other lines"):
        go(2)


def test_a_checkpoint_that_is_ahead_of_the_reduction_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    def go(store: str) -> None:
        place: dict[str, Any] = {"store": tmp_path / store, "checkpoint": tmp_path / "chk"}
        clew.prov.reduce(stream(spark, tmp_path / "in"), job="job", **place).awaitTermination()

    write(tmp_path / "in", statements(JOB), files=2)
    go("prov")
    write(tmp_path / "in", statements(JOB)[:1])

    with pytest.raises(Exception, match="batches 0 to 1 were not reduced here"):
        go("other")


def landed_batches(store: Path) -> list[Path]:
    return sorted((store / "batches" / "job").glob("*.json"))


def renamed(text: str, before: str = "") -> str:
    """Give the things of a second job names of their own."""
    for old, new in (("d/", "x/"), ("in/", "y/"), ("e", "z")):
        if before or "/" in old:
            text = re.sub(f"{before}{old}(?=[0-9])", before + new, text)
    return text


def test_a_closing_that_was_cut_off_is_finished_before_anything_new(
    spark: SparkSession, tmp_path: Path
) -> None:
    first, second = shared_job(3), shared_job(4)
    write(tmp_path / "in", statements(first))
    settings: dict[str, Any] = {"job": "job", "store": tmp_path / "prov", "idle": 0}

    cut_off("reduced edges landed")
    with pytest.raises(CutOffError):
        clew.prov.reduce(stream(spark, tmp_path / "in"), **settings).awaitTermination()
    landed = len(landed_batches(tmp_path / "prov"))
    write(tmp_path / "in", [renamed(line, '"') for line in statements(second)])
    clew.prov.reduce(stream(spark, tmp_path / "in"), **settings).awaitTermination()

    assert landed == 1
    others = {(renamed(o), renamed(i)) for o, i in expected(second)}
    assert found(tmp_path / "prov") == sorted(expected(first) | others)
    assert len(landed_batches(tmp_path / "prov")) == 2
