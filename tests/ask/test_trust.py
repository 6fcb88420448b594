"""A store is data: what it says is run only for who wrote it, or who says so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import clew
from clew.again import known
from clew.again.blueprint import version_of
from clew.again.rebuild import check_stored, rebuild
from clew.again.trust import KEY_FILE, key_file
from clew.exceptions import GraphError, ReplayError, StoreError
from clew.operators.keep import Keep

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def store(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(KEY_FILE, str(tmp_path / "mine" / "key"))
    rows = spark.createDataFrame([(1, 5), (2, 7)], "k int, v int")
    rows.write.parquet(str(tmp_path / "in"))
    frame = clew.trace(spark.read.parquet(str(tmp_path / "in")), "rows").filter("v > 5")
    frame.write.provenance(str(tmp_path / "prov"), name="out").parquet(str(tmp_path / "out"))
    return tmp_path / "prov"


def _edit(store: Path, sql: str) -> None:
    """Change the filter as an attacker would, digests included."""
    file = store / "streams" / "out.json"
    stream: dict[str, Any] = json.loads(file.read_text())
    stream["pipeline"]["steps"][1]["with"]["args"]["tuple"][0] = sql
    stream["version"] = version_of(stream["shape"], stream["pipeline"], stream["functions"])
    file.write_text(json.dumps(stream))


def test_a_store_of_ones_own_is_rebuilt(store: Path) -> None:
    assert rebuild(store, "out").columns == ["k", "v"]


def test_an_edited_filter_is_not_run_though_its_digest_fits(store: Path, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    _edit(store, f"v in (reduce 1 using 'touch {marker}' as y)")

    with pytest.raises(ReplayError, match="not signed with your key"):
        rebuild(store, "out")

    assert not marker.exists()


@pytest.mark.parametrize("question", ["replay", "replay of a trace", "minimize"])
def test_no_question_runs_an_edited_filter(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    monkeypatch.setattr(known, "_known", {})
    marker = tmp_path / "marker"
    _edit(store, f"v in (reduce 1 using 'touch {marker}' as y)")

    with clew.open(store) as prov:
        trace = prov.backward("out", {"k": 2})
        questions: dict[str, Callable[[], object]] = {
            "replay": lambda: prov.replay("out"),
            "replay of a trace": lambda: prov.replay(trace),
            "minimize": lambda: prov.minimize("out", {"k": 2}),
        }
        with pytest.raises(ReplayError, match="not "):
            questions[question]()

    assert not marker.exists()


def test_a_store_of_somebody_else_is_rebuilt_only_with_trust(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_FILE, str(tmp_path / "another" / "key"))

    with pytest.raises(ReplayError, match="trust=True"):
        check_stored(store, "out")
    with pytest.raises(ReplayError, match="--trust"):
        clew.open(store)._rebuilt("out")

    assert rebuild(store, "out", trust=True).columns == ["k", "v"]
    assert clew.open(store, trust=True)._rebuilt("out").columns == ["k", "v"]


def test_an_edited_source_is_refused(store: Path) -> None:
    file = store / "streams" / "out.json"
    stream = json.loads(file.read_text())
    stream["pipeline"]["sources"]["rows"]["read"]["folder"] = "/etc"
    file.write_text(json.dumps(stream))
    with pytest.raises(ReplayError, match="its text in the store is not the one that was run"):
        check_stored(store, "out")

    stream["version"] = version_of(stream["shape"], stream["pipeline"], stream["functions"])
    file.write_text(json.dumps(stream))
    with pytest.raises(ReplayError, match="not signed with your key"):
        check_stored(store, "out")


def _rewired(stream: dict[str, Any]) -> None:
    stream["graph"]["sink"] = 0


def _fed_otherwise(stream: dict[str, Any]) -> None:
    stream["graph"]["nodes"][1]["inputs"] = [0, 0]


def _labelled(stream: dict[str, Any]) -> None:
    stream["graph"]["nodes"][1]["label"] = "v > 6"


def _shaped(stream: dict[str, Any]) -> None:
    stream["shape"] = "0" * 16


def _with_functions(stream: dict[str, Any]) -> None:
    stream["functions"] = "mine"


def _renamed(stream: dict[str, Any]) -> None:
    stream["name"] = "other"


@pytest.mark.parametrize(
    "edit", [_rewired, _fed_otherwise, _labelled, _shaped, _with_functions, _renamed]
)
def test_all_that_a_pipeline_is_rebuilt_from_is_signed(
    store: Path, edit: Callable[[dict[str, Any]], None]
) -> None:
    file = store / "streams" / "out.json"
    stream = json.loads(file.read_text())
    edit(stream)
    stream["version"] = version_of(stream["shape"], stream["pipeline"], stream["functions"])
    file.write_text(json.dumps(stream))

    with pytest.raises(ReplayError, match="not signed with your key"):
        check_stored(store, "out")


def test_the_key_is_its_owners_only_and_in_no_store(store: Path) -> None:
    key = key_file()

    assert key.stat().st_mode & 0o777 == 0o600
    assert key.parent.stat().st_mode & 0o777 == 0o700
    texts = [path.read_bytes() for path in store.rglob("*") if path.is_file()]
    assert texts
    assert not any(key.read_bytes() in text for text in texts)


def test_a_key_that_is_damaged_is_named(store: Path) -> None:
    key_file().write_text("no key")

    with pytest.raises(StoreError, match=KEY_FILE):
        check_stored(store, "out")


@pytest.mark.parametrize("verb", ["__class__", "toPandas", "createOrReplaceTempView", "write"])
def test_only_verbs_that_hand_on_rows_are_called(verb: str) -> None:
    with pytest.raises(GraphError, match="hands on rows"):
        Keep(verb)
