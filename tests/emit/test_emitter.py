"""What an emitter publishes, from one process or many."""

from __future__ import annotations

import contextlib
import json
import pickle
import re
import threading
from typing import TYPE_CHECKING, Any

import pytest

from clew.exceptions import EmitError
from clew.prov import Emitter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pandas as pd
    from pyspark.sql import SparkSession


def events(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_an_execution_is_one_line_with_all_it_used_and_generated(tmp_path: Path) -> None:
    with (
        Emitter(tmp_path, job="hashtags", node="worker-1") as emit,
        emit.execution("count", key="17", partition=3) as run,
    ):
        run.used("in/42", "in/43", "in/42")
        run.generated("out/1")

    [event] = events(tmp_path)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", event.pop("time"))
    assert event == {
        "prov": "group",
        "activity": "hashtags:count/17",
        "used": ["in/42", "in/43"],
        "generated": ["out/1"],
        "job": "hashtags",
        "function": "count",
        "node": "worker-1",
        "partition": 3,
        "group": "hashtags:count/17",
        "seq": 0,
    }


def test_an_execution_can_be_a_line_for_each_statement(tmp_path: Path) -> None:
    emit = Emitter(tmp_path, job="hashtags", node="worker-1", grouped=False)
    with emit.execution("count", key="17") as run:
        run.used("in/42")
        run.generated("out/1")

    used, made = events(tmp_path)
    assert (used.pop("prov"), used.pop("entity"), used.pop("seq")) == ("used", "in/42", 0)
    assert (made.pop("prov"), made.pop("entity"), made.pop("seq")) == ("wasGeneratedBy", "out/1", 1)
    assert used == made
    assert used["group"] == used["activity"] == "hashtags:count/17"


def test_other_statements_and_the_end(tmp_path: Path) -> None:
    with Emitter(tmp_path, job="j", node="n") as emit:
        emit.derived("out", "in")
        emit.member("all", "out")
        emit.end()

    said = [{k: v for k, v in e.items() if k != "time"} for e in events(tmp_path)]
    common = {"job": "j", "node": "n", "partition": 0}
    assert said == [
        {
            "prov": "wasDerivedFrom",
            "generatedEntity": "out",
            "usedEntity": "in",
            **common,
            "seq": 0,
        },
        {"prov": "hadMember", "collection": "all", "entity": "out", **common, "seq": 1},
        {"prov": "end", **common, "seq": 2},
    ]


def test_an_execution_that_fails_publishes_nothing(tmp_path: Path) -> None:
    with Emitter(tmp_path, job="j") as emit:
        with contextlib.suppress(ZeroDivisionError), emit.execution("f") as run:
            run.used("in/1")
            _ = 1 / 0
        with emit.execution("f") as run:
            run.used("in/2")
            run.generated("out/2")
        with emit.execution("idle"):
            pass

    assert [e["used"] for e in events(tmp_path)] == [["in/2"]]


def test_nothing_is_visible_before_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    emit = Emitter(tmp_path, job="j")
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(EmitError, match="No space left on device"):
        emit.end()

    assert [p for p in tmp_path.iterdir() if not p.name.startswith(".")] == []


def test_a_long_job_publishes_as_it_goes(tmp_path: Path) -> None:
    with Emitter(tmp_path, job="j", buffer=10) as emit:
        seen = []
        for number in range(25):
            with emit.execution("f") as run:
                run.used(f"in/{number}")
                run.generated(f"out/{number}")
            seen.append(len(events(tmp_path)))

    assert seen == [0] * 9 + [10] * 10 + [20] * 6
    assert [e["seq"] for e in events(tmp_path)] == list(range(25))
    assert len({e["activity"] for e in events(tmp_path)}) == 25


def test_threads_may_share_an_emitter(tmp_path: Path) -> None:
    def work(number: int) -> None:
        for i in range(50):
            with emit.execution("f") as run:
                run.used(f"in/{number}/{i}")
                run.generated(f"out/{number}/{i}")

    with Emitter(tmp_path, job="j", buffer=7) as emit:
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    found = events(tmp_path)
    assert sorted(e["seq"] for e in found) == list(range(200))
    assert {e["used"][0] for e in found} == {f"in/{n}/{i}" for n in range(4) for i in range(50)}


def test_a_copy_publishes_for_itself(tmp_path: Path) -> None:
    with Emitter(tmp_path, job="j", node="n") as emit:
        with emit.execution("f") as run:
            run.used("held")
        copy = pickle.loads(pickle.dumps(emit))
        with copy.execution("f") as run:
            run.used("sent")
        assert [e["used"] for e in events(tmp_path)] == [["sent"]]

    found = events(tmp_path)
    assert sorted(e["used"][0] for e in found) == ["held", "sent"]
    assert len({e["activity"] for e in found}) == 2


def test_functions_on_sparks_executors_publish(spark: SparkSession, tmp_path: Path) -> None:
    emit = Emitter(tmp_path / "events", job="double")

    def double(parts: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        with emit:
            for part in parts:
                for n in part["id"]:
                    with emit.execution("double", key=str(n)) as run:
                        run.used(f"in/{n}")
                        run.generated(f"out/{n}")
                yield part * 2

    total = spark.range(40, numPartitions=4).mapInPandas(double, "id long").agg({"id": "sum"})

    assert total.collect()[0][0] == 2 * sum(range(40))
    found = events(tmp_path / "events")
    assert {(e["used"][0], e["generated"][0]) for e in found} == {
        (f"in/{n}", f"out/{n}") for n in range(40)
    }
    assert {e["partition"] for e in found} == {0, 1, 2, 3}
    assert len(list((tmp_path / "events").glob("*.jsonl"))) == 4


def test_an_unknown_place_is_refused_with_what_to_write(tmp_path: Path) -> None:
    with pytest.raises(EmitError, match="kafka://host:9092/topic"):
        Emitter("s3://bucket/events", job="j").end()
    (tmp_path / "file").write_text("")
    with pytest.raises(EmitError, match="every process of the job may write"):
        Emitter(tmp_path / "file", job="j").end()
