"""The doctor finds what was broken on purpose, says what to do, and is content with the rest."""

from __future__ import annotations

import fcntl
import json
import sys
from typing import TYPE_CHECKING

import pytest

from clew import doctor
from clew.cli import main
from clew.doctor import machine
from store.build import RUN, StoreBuilder, row
from store.road import build_road

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from clew.doctor import Finding, Health


def of(health: Health, name: str) -> Finding:
    [found] = [each for each in health.findings if each.name == name]
    return found


def test_the_machine_that_runs_these_tests_is_well(spark: SparkSession) -> None:
    health = doctor.check(spark=True)

    assert health.problems == ()
    assert of(health, "python").found.startswith(f"{sys.version_info[0]}.{sys.version_info[1]}.")
    assert of(health, "pyspark").state == "ok"
    assert of(health, "spark job").found.startswith("1,000 rows through Python in ")


def program(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("echo 'openjdk version \"11.0.2\" 2019' >&2", "11.0.2 ({java}), but Spark 4 needs 17"),
        ("echo nothing", "{java} does not say its version"),
    ],
)
def test_a_java_that_spark_cannot_use_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, found: str
) -> None:
    java = program(tmp_path, "bin/java", said)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    finding = of(doctor.check(), "java")

    assert (finding.state, finding.found) == ("problem", found.format(java=java))
    assert "set JAVA_HOME" in finding.todo


def test_no_java_at_all_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert of(doctor.check(), "java").state == "problem"


def test_workers_with_another_python_are_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", program(tmp_path, "python", "echo 3.8"))

    finding = of(doctor.check(), "worker python")

    assert finding.state == "problem"
    assert finding.todo == f"export PYSPARK_PYTHON={sys.executable}"


@pytest.mark.spark
def test_a_package_that_is_too_old_or_missing_is_a_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    versions = {"duckdb": "0.9.1", "numpy": None, "pandas": "3.0.0"}
    real = machine._version
    monkeypatch.setattr(machine, "_version", lambda name: versions.get(name, real(name)))
    monkeypatch.setitem(versions, "numpy", None)

    health = doctor.check()

    assert of(health, "duckdb").found == "0.9.1, but clew needs >=1.4"
    assert of(health, "duckdb").todo == "pip install 'duckdb>=1.4'"
    assert of(health, "numpy").found == "not installed"
    assert of(health, "extra spark").state == "warning"
    assert {each.name for each in health.problems} == {"duckdb", "numpy"}


def test_a_sound_store_has_no_problems(tmp_path: Path) -> None:
    build_road(tmp_path)

    health = doctor.check(tmp_path)

    assert of(health, "files").found == "11 committed files, all readable"
    assert of(health, "store").found == f"format 2, 4 streams, 3 batches in {tmp_path}"
    assert of(health, "query stopped").found.startswith(f"batch 1 of run {RUN} committed ")


def test_damaged_and_lost_files_are_problems(tmp_path: Path) -> None:
    builder = build_road(tmp_path)
    files = sorted(tmp_path.glob("edges/stopped/*/*.parquet"))
    files[0].write_bytes(files[0].read_bytes()[:-20])
    files[1].unlink()
    builder.batch("stopped", 2, rows={"stopped": [row(1, 1, car=1, n=1)]}, sink_rows=5)

    finding = of(doctor.check(tmp_path), "files")

    names = [each.relative_to(tmp_path).as_posix() for each in files]
    assert finding.state == "problem"
    assert f"{names[0]} (" in finding.found
    assert "is no whole Parquet file" in finding.found
    assert f"{names[1]} is gone" in finding.found
    assert f"batch {RUN}-0000000002 of stopped has 1 and not 5 rows" in finding.found


def test_gaps_leftovers_checkpoints_and_locks_are_named(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.source("r")
    gone = str(tmp_path / "no-checkpoint")
    builder.sink("s", ["r"], runs=[{"run": RUN, "checkpoint": gone}])
    builder.batch("s", 0, edges=[("s", 1, 1, "r", 0, 0)])
    builder.batch("s", 1, gap="disk full")
    [file] = builder.batch("s", 3, edges=[("s", 2, 1, "r", 0, 1)])
    (tmp_path / f"batches/s/{RUN}-0000000003.json").unlink()
    pruned = {"at": "2026-02-01T00:00:00Z", "files": 1}
    builder.batch("s", 4, gap="pruned on 2026-02-01", pruned=pruned)
    builder.batch("s", 5)
    builder.batch("s", 6, rows={"s": [row(3, 1, n=1)]}, capture="pointers")
    builder.batch("s", 7, rows={"s": [row(4, 1, n=1)]}, capture="keys")
    (tmp_path / "unfolded/s").mkdir(parents=True)

    with (tmp_path / "unfolded/s/.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        health = doctor.check(tmp_path)

    size = (tmp_path / file).stat().st_size
    shown = f"{size / 1000:.1f} kB"
    assert of(health, "leftovers").found == f"1 file ({shown}) of s that no commit names"
    gaps = {each.found: each.state for each in health.findings if each.name == "gap"}
    assert gaps == {
        f"batch 1 of `s` (run {RUN}): disk full": "warning",
        f"batches 2 to 3 of `s` (run {RUN}): the batch was not committed": "warning",
        f"batch 4 of `s` (run {RUN}): pruned on 2026-02-01": "ok",
        f"batch 6 of `s` (run {RUN}): its pointers are not unfolded yet": "warning",
        f"batch 7 of `s` (run {RUN}): its rows carry keys, and edges are computed when asked for": (
            "ok"
        ),
    }
    todo = {each.found[6:7]: each.todo for each in health.findings if each.name == "gap"}
    assert todo["4"] == ""
    assert todo["6"] == todo["7"] == f"clew unfold {tmp_path} s"
    assert todo["1"].startswith("Mend the cause")
    assert todo["s"].startswith("A file in `batches/` was lost")
    assert of(health, "query s").found.endswith("no-checkpoint is gone")
    assert of(health, "processes").found == "at work now: unfolded/s"
    assert all(each.name not in ("store", "files") for each in health.problems)


@pytest.mark.spark
def test_the_command_says_the_same_and_its_code_tells_of_problems(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build_road(tmp_path / "prov")

    well = main(["doctor", str(tmp_path / "prov"), "--json"])
    said = json.loads(capsys.readouterr().out)
    ill = main(["doctor", str(tmp_path / "nothing")])
    text = capsys.readouterr().out

    ours = doctor.check(tmp_path / "prov")
    assert [each["name"] for each in said["findings"]] == [each.name for each in ours.findings]
    assert (well, said["ok"], said["problems"]) == (0, True, 0)
    assert ill == 1
    assert "there is no such folder" in text
