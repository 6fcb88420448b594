"""A question that takes more than it may ends with an error, wherever it is asked."""

from __future__ import annotations

import gc
import time
import weakref
from typing import TYPE_CHECKING

import pytest

import clew
from clew.again.session import note_own, stopped_in_time
from clew.cli.main import main
from clew.exceptions import LimitError
from clew.limits import Limits, under
from explore.server import serving
from store.build import StoreBuilder, row

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

ALERT = "00000000000000010000000000000001"
READING = "00000000000000070000000000000000"
NO_TIME = Limits(seconds=1e-9)
ENDLESS = "(SELECT count(*) FROM range(1000000000000)) > 0"
LARGE = "(SELECT len(list(i)) FROM range(200000000) t(i)) > 0"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a store with a chain of three queries."""
    made = StoreBuilder(tmp_path / "prov")
    made.source("readings")
    before = "readings"
    for hop, name in enumerate(("alerts", "calls", "bills")):
        made.sink(name, [before])
        edges = [(name, 1, 1, before, *((7, 0) if hop == 0 else (1, 1)))]
        if hop == 0:
            edges.append((name, 1, 1, before, 8, 0))
        rows = {name: [row(1, 1, n=1)]}
        if hop == 0:
            rows["readings"] = [row(7, 0, note="x"), row(8, 0, note="y")]
        made.batch(name, 0, edges=edges, rows=rows)
        before = name
    return made.root


QUESTIONS: dict[str, Callable[[clew.Provenance], object]] = {
    "backward": lambda prov: prov.backward("alerts", ALERT),
    "forward": lambda prov: prov.forward("readings", READING),
    "compare": lambda prov: prov.compare("alerts", ALERT, ALERT),
    "rows": lambda prov: prov.rows("alerts"),
    "row": lambda prov: prov.row("alerts", {"n": 1}),
    "status": lambda prov: prov.status("readings", READING),
    "expiry": lambda prov: prov.expiry("readings", READING),
    "alive": lambda prov: prov.alive("readings"),
    "expired": lambda prov: prov.expired("readings"),
    "influence": lambda prov: prov.influence("alerts", ALERT, replay=False),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_ends_when_its_time_is_over(store: Path, name: str) -> None:
    with (
        clew.open(store, limits=NO_TIME) as prov,
        pytest.raises(LimitError, match="seconds") as caught,
    ):
        QUESTIONS[name](prov)

    assert caught.value.limit == "seconds"
    assert "clew.Limits(seconds=...)" in str(caught.value)


def test_what_runs_in_the_database_is_interrupted_and_the_next_question_is_answered(
    store: Path,
) -> None:
    with clew.open(store, limits=Limits(seconds=0.5)) as prov:
        began = time.monotonic()
        with pytest.raises(LimitError, match="seconds"):
            prov.rows("alerts", where=ENDLESS)

        assert time.monotonic() - began < 60
    with clew.open(store, limits=Limits(seconds=60)) as prov:
        assert len(prov.rows("alerts")) == 1


def test_a_question_has_so_much_memory_and_no_more(store: Path) -> None:
    with clew.open(store, limits=Limits(memory="64 MB")) as prov:
        with pytest.raises(LimitError, match="64 MB of memory"):
            prov.rows("alerts", where=LARGE)

        assert len(prov.rows("alerts")) == 1


def test_an_answer_has_so_many_edges_and_hops_and_no_more(store: Path) -> None:
    with clew.open(store, limits=Limits(edges=1)) as prov:
        with pytest.raises(LimitError, match="1 edges"):
            prov.backward("alerts", ALERT)
        assert len(prov.forward("readings", READING, "alerts")) == 1
    with clew.open(store, limits=Limits(depth=1)) as prov:
        with pytest.raises(LimitError, match="1 hops"):
            prov.backward("bills", ALERT)
        assert len(prov.backward("alerts", ALERT)) == 2


def test_the_command_line_has_limits(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seconds", "1e-9", "backward", str(store), "alerts", ALERT]) == 1
    assert "seconds that it may take" in capsys.readouterr().err
    assert main(["--memory", "64MB", "rows", str(store), "alerts", "--where", LARGE]) == 1
    assert "64 MB of memory" in capsys.readouterr().err
    assert main(["--memory", "1MB", "rows", str(store), "alerts"]) == 1
    assert "64 MB at least" in capsys.readouterr().err


def test_over_http_a_limit_is_an_answer(store: Path) -> None:
    with clew.open(store, limits=NO_TIME) as prov, serving(prov) as client:
        answer = client.get("/api/backward", params={"stream": "alerts", "row": ALERT})

    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "limit"


def test_jobs_of_spark_are_cancelled(spark: SparkSession) -> None:
    own = note_own(spark.newSession())
    endless = own.range(10**15).selectExpr("sum(id % 7) AS n")

    with (
        under(Limits(seconds=1)),
        pytest.raises(LimitError, match="1 seconds"),
        stopped_in_time(own),
    ):
        endless.collect()

    assert own.range(3).count() == 3


def test_a_session_that_nobody_uses_any_more_is_forgotten(spark: SparkSession) -> None:
    own = note_own(spark.newSession())
    noted = weakref.ref(own)
    del own
    spark.newSession()  # PySpark itself holds the latest one
    gc.collect()

    assert noted() is None
