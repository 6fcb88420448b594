"""No path that a store names leads out of it: not by its letters, and not through a link."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import clew
from clew.exceptions import StoreError
from clew.model import RowId
from clew.store.commit import forget_writer, make_store
from clew.store.inside import refuse_links, store_file, table_file
from clew.store.lock import alone
from clew.store.pruned import mark_batch
from clew.store.reader import Store
from clew.upkeep.erase import erase_content
from store.build import RUN, StoreBuilder, row

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EDGE = ("alerts", 1, 1, "readings", 7, 0)
OWN = f"edges/alerts/{RUN}-0000000000/part-0.parquet"


def _store(root: Path, secret: str = "ours") -> StoreBuilder:
    store = StoreBuilder(root)
    store.source("readings")
    store.sink("alerts", ["readings"])
    rows = {"alerts": [row(1, 1, n=1)], "readings": [row(7, 0, note=secret)]}
    store.batch("alerts", 0, edges=[EDGE], rows=rows)
    return store


def _outsides(tmp_path: Path) -> list[str]:
    other = f"rows/alerts/{RUN}-0000000000/readings/part-0.parquet"
    return [
        f"{tmp_path}/other/{other}",
        f"../other/{other}",
        f"rows/../../other/{other}",
        f"rows/alerts/../../../other/{other}",
        f"./{other}",
        f"rows//alerts/{RUN}-0000000000/readings/part-0.parquet",
        "clew.json",
        "streams/alerts.json",
        "rows",
        "",
        f"rows/alerts/{RUN}-0000000000/readings/\0.parquet",
        f"rows\\..\\..\\other\\{other}",
    ]


def test_a_commit_that_names_a_file_elsewhere_is_refused_and_named(tmp_path: Path) -> None:
    _store(tmp_path / "other", secret="theirs")
    for number, outside in enumerate(_outsides(tmp_path)):
        store = _store(tmp_path / f"prov{number}")
        store.batch("alerts", 1, files=[outside])

        with pytest.raises(StoreError, match=f"{RUN}-0000000001.json"):
            clew.open(store.root).backward("alerts", "00000000000000010000000000000001")
        with pytest.raises(StoreError):
            store_file(store.root, outside)
        with pytest.raises(ValueError, match=r"outside|no file"):
            table_file(outside)


def test_a_file_of_a_commit_that_is_a_link_is_refused(tmp_path: Path) -> None:
    theirs = _store(tmp_path / "other", secret="theirs")
    store = _store(tmp_path / "prov")
    file = store.root / f"rows/alerts/{RUN}-0000000000/readings/part-0.parquet"
    file.unlink()
    file.symlink_to(theirs.root / file.relative_to(store.root))

    with pytest.raises(StoreError, match="is a link"):
        clew.open(store.root).rows("readings")
    with pytest.raises(StoreError, match="is a link"):
        refuse_links(store.root)


@pytest.mark.parametrize("folder", ["batches", "batches/alerts", "rows", "rows/alerts", "streams"])
def test_a_folder_that_is_a_link_is_refused(tmp_path: Path, folder: str) -> None:
    theirs = _store(tmp_path / "other", secret="theirs")
    store = _store(tmp_path / "prov")
    shutil.rmtree(store.root / folder)
    (store.root / folder).symlink_to(theirs.root / folder)

    with pytest.raises(StoreError, match="is a link"):
        Store(store.root)
    with pytest.raises(StoreError, match="is a link"):
        make_store(store.root, "1.0")


def test_a_link_that_came_later_is_not_followed(tmp_path: Path) -> None:
    theirs = _store(tmp_path / "other", secret="theirs")
    store = _store(tmp_path / "prov")
    reader = Store(store.root)
    snapshot = reader.snapshot()
    theirs.batch("alerts", 1, rows={"alerts": [row(2, 2, n=2)]})
    shutil.rmtree(store.root / "batches" / "alerts")
    (store.root / "batches" / "alerts").symlink_to(theirs.root / "batches" / "alerts")
    before = _files(theirs.root)

    with pytest.raises(StoreError, match="is a link"):
        reader.snapshot()
    with pytest.raises(StoreError, match="is a link"):
        erase_content(snapshot, RowId("readings", 7, 0))
    with pytest.raises(StoreError, match="is a link"):
        clew.open(store.root).prune("1 day", by="commit")
    with pytest.raises(StoreError, match="is a link"):
        mark_batch(store.root, "alerts", RUN, 1, "2026-01-01")

    assert _files(theirs.root) == before


@pytest.mark.parametrize(
    "place", ["unfolded/alerts/.lock", "live/live/.lock", "live/live/elements"]
)
def test_a_question_writes_nothing_through_a_link(tmp_path: Path, place: str) -> None:
    theirs = tmp_path / "theirs"
    if place.endswith(".lock"):
        theirs.write_text("precious")
    else:
        theirs.mkdir()
    store = StoreBuilder(tmp_path / "prov")
    store.source("readings")
    store.sink("alerts", ["readings"], capture="intervals")
    store.batch("alerts", 0, rows={"alerts": [row(1, 1, n=1)]}, capture="intervals")
    (store.root / place).parent.mkdir(parents=True)
    (store.root / place).symlink_to(theirs)

    with clew.open(store.root) as prov:
        ask = prov.graph if place.startswith("live") else _backward(prov)
        with pytest.raises(StoreError, match="is a link"):
            ask()

    assert theirs.read_text() == "precious" if theirs.is_file() else not [*theirs.iterdir()]


def _backward(prov: clew.Provenance) -> Callable[[], object]:
    return lambda: prov.backward("alerts", "00000000000000010000000000000001")


def test_a_lock_that_is_a_link_is_not_taken(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("precious")
    (tmp_path / "prov").mkdir()
    (tmp_path / "prov" / ".lock").symlink_to(theirs)

    with pytest.raises(StoreError, match="is a link"), alone(tmp_path / "prov"):
        pass

    assert theirs.read_text() == "precious"


@pytest.mark.parametrize("way", ["absolute", "dots", "link"])
def test_an_erasure_changes_no_file_elsewhere(tmp_path: Path, way: str) -> None:
    mine = tmp_path / "mine.parquet"
    pq.write_table(pa.table({"name": ["Ada", "Grace"]}), mine)
    before = mine.read_bytes()
    store = _store(tmp_path / "prov")
    place = f"assertions/alerts/{RUN}-0000000000-0000000000/readings"
    named = {"absolute": str(mine), "dots": f"{place}/../../../../../mine.parquet"}
    if way == "link":
        (store.root / place).mkdir(parents=True)
        (store.root / place / "copy-0.parquet").symlink_to(mine)
    recorded = {"node": 0, "time": None, "same_as": None, "first": True}
    store.sink(
        "alerts", ["readings"], assertions={"content": "first", "streams": {"readings": recorded}}
    )
    copy = {"file": named.get(way, f"{place}/copy-0.parquet"), "a": 7, "segment": "s"}
    store.put(
        f"asserted/alerts/{RUN}-0000000000-0000000000.json",
        {
            "writer": "alerts",
            "run": RUN,
            "first": 0,
            "last": 0,
            "committed": "2026-01-01T00:00:00Z",
            "streams": {"readings": {"rows": 2, "files": [], "copies": [copy]}},
        },
    )

    with pytest.raises(StoreError, match="outside the store|is a link"):
        erase_content(Store(store.root).snapshot(), RowId("readings", 7, 0))

    assert mine.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine.parquet", "prov"]


@pytest.mark.parametrize("name", [OWN, "streams/alerts.json"])
def test_what_is_no_regular_file_is_refused_and_not_waited_for(tmp_path: Path, name: str) -> None:
    store = _store(tmp_path / "prov")
    (store.root / name).unlink()
    os.mkfifo(store.root / name)

    with (
        pytest.raises(StoreError, match=f"`.*{name}` is no regular file"),
        clew.open(store.root) as p,
    ):
        p.backward("alerts", "00000000000000010000000000000001")


def test_a_writer_is_forgotten_without_following_its_name(tmp_path: Path) -> None:
    store = _store(tmp_path / "prov")
    other = _store(tmp_path / "other")

    forget_writer(store.root, "../../other/edges")

    assert (other.root / OWN).exists()
    assert (store.root / OWN).exists()


def _files(root: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}
