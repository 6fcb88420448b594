"""A store of reduced provenance: what is put, committed, repeated and refused."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import clew
from clew import steps
from clew.exceptions import RowNotFoundError, StoreConflictError, StoreError
from clew.prov import end_job, put, put_reduced
from clew.prov.jobs import run_name
from clew.store.entity import entity_id, entity_ids, id_sql
from repository.model import edges, identifiers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_spark_and_numpy_agree_on_the_id_of_an_entity(spark: SparkSession) -> None:
    texts = ["", "a", "tweet/1", "é" * 16, "x" * 31, "y" * 32, "z" * 33, "in/" + "0" * 61, "日本語"]
    texts += [f"{'q' * n}-{n}" for n in range(80)]
    frame = spark.createDataFrame([(each,) for each in texts], "x string")
    a, b = id_sql("x")

    found = [tuple(row) for row in frame.selectExpr(f"{a} AS a", f"{b} AS b").collect()]

    assert found == list(zip(*(half.tolist() for half in entity_ids(pa.array(texts))), strict=True))


def test_ids_of_a_slice_are_those_of_its_own_texts() -> None:
    texts = pa.array(["one", "two", "three", "four"])

    assert [h.tolist() for h in entity_ids(texts[1:3])] == [
        h.tolist() for h in entity_ids(pa.array(["two", "three"]))
    ]


def test_spark_and_arrow_write_the_same_store(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = [("o/1", "i/1"), ("o/1", "i/2"), ("o/2", "i/2"), ("o/1", "i/1"), ("o/3", None)]
    frame = spark.createDataFrame(pairs, "output string, input string")
    put_reduced(tmp_path / "few", "job", "r", 0, frame)
    monkeypatch.setattr(put, "MAX_IN_MEMORY", 0)
    put_reduced(tmp_path / "many", "job", "r", 0, frame)
    put_reduced(tmp_path / "arrow", "job", "r", 0, frame.toArrow())

    stores = [_content(tmp_path / name) for name in ("few", "many", "arrow")]

    assert stores[0] == stores[1] == stores[2]
    assert len(stores[0]["edges"]) == 3
    assert stores[0]["rows/job"] == ["o/1", "o/2"]
    assert stores[0]["rows/entities"] == ["i/1", "i/2"]


def _content(root: Path) -> dict[str, Any]:
    files = {p: pq.read_table(p, partitioning=None) for p in root.rglob("*.parquet")}
    found: dict[str, Any] = {"edges": []}
    for path, table in files.items():
        kind, stream = path.relative_to(root).parts[0], path.parent.name
        if kind == "edges":
            found["edges"] += [tuple(row.values()) for row in table.to_pylist()]
        else:
            rows = table.to_pylist()
            names = found.setdefault(f"rows/{stream}", [])
            found[f"rows/{stream}"] = sorted([*names, *(row["row"]["entity"] for row in rows)])
            ids = [entity_id(stream, row["row"]["entity"]) for row in rows]
            assert [(row["a"], row["b"]) for row in rows] == [(i.a, i.b) for i in ids]
    found["edges"].sort()
    return found


def test_a_committed_batch_stays_and_a_retry_changes_nothing(tmp_path: Path) -> None:
    put_reduced(tmp_path, "job", "r", 0, edges(("o", "i")))
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*") if p.is_file()}

    put_reduced(tmp_path, "job", "r", 0, edges(("o", "i")))

    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize("step", ["reduced edges written", "reduced written", "reduced committed"])
def test_a_batch_that_was_interrupted_is_there_once_after_the_retry(
    tmp_path: Path, step: str
) -> None:
    class StopError(Exception):
        pass

    def stop(name: str, _: int) -> None:
        if name == step:
            raise StopError

    put_reduced(tmp_path, "job", "r", 0, edges(("o", "i/0")))
    steps.listen(stop)
    try:
        with pytest.raises(StopError):
            put_reduced(tmp_path, "job", "r", 1, edges(("o", "i/1"), ("p", "i/2")))
    finally:
        steps.unlisten(stop)
    seen = identifiers(clew.open(tmp_path).backward("job", "o").rows)

    put_reduced(tmp_path, "job", "r", 1, edges(("o", "i/1"), ("p", "i/2")))

    assert seen == ({"i/0"} if step != "reduced committed" else {"i/0", "i/1"})
    prov = clew.open(tmp_path)
    assert identifiers(prov.backward("job", "o").rows) == {"i/0", "i/1"}
    assert {s.name: (s.batches, s.edges) for s in prov.streams()}["job"] == (2, 3)


def test_a_batch_without_edges_is_no_gap_and_a_missing_one_is(tmp_path: Path) -> None:
    put_reduced(tmp_path, "job", "r", 0, edges(("o", "i")))
    put_reduced(tmp_path, "job", "r", 1, edges())
    put_reduced(tmp_path, "job", "r", 2, edges(("p", "i")))
    assert clew.open(tmp_path).forward("entities", "i").complete

    put_reduced(tmp_path, "job", "r", 5, edges(("q", "i")))

    [gap] = clew.open(tmp_path).forward("entities", "i").gaps
    assert (gap.first, gap.last) == (3, 4)


def test_two_runs_of_a_job_are_kept_apart_and_answered_together(tmp_path: Path) -> None:
    put_reduced(tmp_path, "job", "monday", 0, edges(("o", "i/1")))
    put_reduced(tmp_path, "job", "tuesday", 0, edges(("o", "i/2")))

    names = sorted(p.stem for p in (tmp_path / "batches" / "job").iterdir())
    assert names == sorted(f"{run_name(run)}-0000000000" for run in ("monday", "tuesday"))
    assert identifiers(clew.open(tmp_path).backward("job", "o").rows) == {"i/1", "i/2"}


def test_jobs_of_one_process_may_begin_a_store_at_the_same_time(tmp_path: Path) -> None:
    failed: list[BaseException] = []

    def one(job: int) -> None:
        try:
            for batch in range(3):
                put_reduced(tmp_path, f"job{job}", "r", batch, edges((f"o/{job}/{batch}", "i")))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=one, args=(job,)) for job in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not failed
    assert len(clew.open(tmp_path).forward("entities", "i").rows) == 18


def test_jobs_of_several_processes_may_begin_a_store_at_the_same_time(tmp_path: Path) -> None:
    code = (
        "import sys, pyarrow as pa\nfrom clew.prov import put_reduced\n"
        "t = pa.table({'output': [f'o/{sys.argv[2]}'], 'input': ['i']})\n"
        "put_reduced(sys.argv[1], 'job' + sys.argv[2], 'r', 0, t)"
    )
    source = str(Path(clew.__file__).parents[1])
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "p"), str(n)], env={"PYTHONPATH": source}
        )
        for n in range(3)
    ]

    assert [each.wait() for each in running] == [0, 0, 0]
    assert identifiers(clew.open(tmp_path / "p").forward("entities", "i").rows) == {
        "o/0",
        "o/1",
        "o/2",
    }


def test_a_job_may_not_have_the_name_of_something_else(tmp_path: Path) -> None:
    with pytest.raises(StoreConflictError, match="a job cannot be called `entities`"):
        put_reduced(tmp_path, "entities", "r", 0, edges(("o", "i")))
    put_reduced(tmp_path, "job", "r", 0, edges(("o", "i")))
    clew_stream = tmp_path / "streams" / "stopped.json"
    clew_stream.write_text('{"name": "stopped", "kind": "sink", "writer": "s", "identity": null}')
    with pytest.raises(StoreConflictError, match="that is a sink"):
        put_reduced(tmp_path, "stopped", "r", 0, edges(("o", "i")))


def test_wrong_columns_and_numbers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="got `generated`, `used`"):
        put_reduced(tmp_path, "job", "r", 0, pa.table({"generated": ["o"], "used": ["i"]}))
    with pytest.raises(StoreError, match="numbered from 0"):
        put_reduced(tmp_path, "job", "r", -1, edges(("o", "i")))
    assert not list(tmp_path.iterdir())


def test_an_entity_is_alive_until_every_job_has_ended(tmp_path: Path) -> None:
    put_reduced(tmp_path, "one", "r", 0, edges(("m", "i")))
    put_reduced(tmp_path, "two", "r", 0, edges(("o", "m")))
    statuses = []
    for job in ("one", "two"):
        prov = clew.open(tmp_path)
        statuses.append((prov.status("entities", "i"), prov.status("one", "m")))
        end_job(tmp_path, job, "r")

    assert statuses == [("alive", "alive")] * 2
    prov = clew.open(tmp_path)
    assert (prov.status("entities", "i"), prov.status("one", "m")) == ("expired", "expired")


def test_erasing_an_entity_takes_out_every_copy_of_its_identifier(tmp_path: Path) -> None:
    put_reduced(tmp_path, "one", "r", 0, edges(("secret", "i")))
    put_reduced(tmp_path, "two", "r", 0, edges(("o", "secret")))
    for job in ("one", "two"):
        end_job(tmp_path, job, "r")

    with clew.open(tmp_path) as prov:
        erased = prov.erase("one", "secret")

    assert (erased.copies, identifiers(erased.results.rows)) == (2, {"o"})
    assert not any(b"secret" in p.read_bytes() for p in tmp_path.rglob("*.parquet"))
    with clew.open(tmp_path) as prov:
        assert identifiers(prov.backward("two", "o").rows) == {"i"}
        with pytest.raises(RowNotFoundError):
            prov.backward("one", "secret")
