"""DuckDB reads the store's files, exactly those, and nothing else on the machine."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clew.ask.provenance import open_store
from clew.exceptions import QueryError, StoreError
from clew.model import RowId
from clew.store.engine import Engine
from clew.store.relations import rows_of
from store.build import StoreBuilder, row

if TYPE_CHECKING:
    from pathlib import Path


def put(path: Path, value: int) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"x": [value]}), path)
    return str(path)


def test_a_store_in_a_folder_that_looks_like_a_pattern_is_read_literally(tmp_path: Path) -> None:
    root = tmp_path / "da[ta]*?"
    put(tmp_path / "dat*x" / "p.parquet", 2)
    builder = StoreBuilder(root)
    builder.sink("s", ["r"])
    builder.batch("s", 0, edges=[("s", 1, 1, "r", 2, 2)], rows={"s": [row(1, 1, n=7)]})
    provenance = open_store(root)

    for _ in range(3):
        assert provenance.backward("s", {"n": 7}).rows.ids() == [RowId("r", 2, 2)]


def test_a_folder_named_like_a_partition_adds_no_column(tmp_path: Path) -> None:
    root = tmp_path / "day=7" / "prov"
    files = StoreBuilder(root).batch("s", 0, rows={"s": [row(1, 1, n=3)]})
    engine = Engine(root)
    rows = rows_of(engine.row_types([f"{root}/{files[0]}"]))

    with engine.session() as session:
        found = session.table(f"SELECT * FROM {rows.sql}", rows.params)

    assert list(rows.columns) == ["n"]
    assert found.column_names[-1] == "n"


def test_files_outside_the_store_cannot_be_read(tmp_path: Path) -> None:
    outside = put(tmp_path / "secret.parquet", 1)
    (tmp_path / "prov").mkdir()

    with Engine(tmp_path / "prov").session() as session:
        with pytest.raises(StoreError, match="Permission Error"):
            session.table("SELECT * FROM read_parquet($f)", {"f": [outside]})
        with pytest.raises(QueryError, match="DuckDB does not accept the condition: Permission"):
            session.user_table(
                "SELECT * FROM read_text('/etc/hostname')", {}, asked="the condition", columns=()
            )


def test_settings_cannot_be_changed_back(tmp_path: Path) -> None:
    with (
        Engine(tmp_path).session() as session,
        pytest.raises(StoreError, match="configuration has been locked"),
    ):
        session.table("SET enable_external_access = true")


def test_an_expression_cannot_smuggle_in_a_second_statement(tmp_path: Path) -> None:
    sql = "SELECT 1 WHERE (true); COPY (SELECT 1) TO 'x.csv'"

    with (
        Engine(tmp_path).session() as session,
        pytest.raises(QueryError, match="the condition is more than one expression"),
    ):
        session.user_table(sql, {}, asked="the condition", columns=["n"])


def test_times_are_utc_in_every_session(tmp_path: Path) -> None:
    with Engine(tmp_path).session() as session:
        found = session.table("SELECT TIMESTAMP '2026-01-01 08:00' :: TIMESTAMPTZ AS t")

    assert found.schema.field("t").type == pa.timestamp("us", "UTC")
    assert found.column("t")[0].as_py().isoformat() == "2026-01-01T08:00:00+00:00"


def test_several_threads_ask_at_once_and_each_gets_its_own_answer(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    wrong: list[int] = []

    def ask(number: int) -> None:
        for _ in range(20):
            with engine.session() as session:
                session.register("mine", pa.table({"n": [number]}))
                if session.table("SELECT n FROM mine").to_pylist() != [{"n": number}]:
                    wrong.append(number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert wrong == []


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "edges/s/x/part-0.parquet")
    engine = Engine(tmp_path)

    with engine.session() as session, pytest.raises(StoreError, match=f"gone: `{missing}`"):
        session.table("SELECT * FROM read_parquet($f)", {"f": [missing]})
    with pytest.raises(StoreError, match=f"gone: `{missing}`"):
        engine.row_types([missing])


def test_a_file_that_is_no_parquet_is_named(tmp_path: Path) -> None:
    damaged = tmp_path / "part-0.parquet"
    damaged.write_text("not parquet at all")
    engine = Engine(tmp_path)

    with engine.session() as session, pytest.raises(StoreError, match=r"part-0\.parquet"):
        session.table("SELECT * FROM read_parquet($f)", {"f": [str(damaged)]})
    with pytest.raises(StoreError, match="a file of the store cannot be read"):
        engine.row_types([str(damaged)])
