"""A store is its owner's: its folder is closed, whatever the umask is, and so is what it spills."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

import clew
from clew.store import engine as module
from clew.store.commit import Commit, commit, make_store
from clew.store.engine import Engine
from clew.store.lock import alone
from clew.store.private import make_folder
from clew.store.spill import database, spill_folder
from store.build import RUN, StoreBuilder, row

if TYPE_CHECKING:
    from collections.abc import Iterator


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o277])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def _filled(root: Path) -> Path:
    make_store(root, "0")
    commit(root, Commit("out", RUN, 0))
    with alone(root / "unfolded" / "out"):
        pass
    return root


def test_a_new_store_is_open_to_nobody_else(tmp_path: Path, umask: int) -> None:
    (tmp_path / "above").mkdir(mode=0o755)
    (tmp_path / "above").chmod(0o755)
    root = _filled(tmp_path / "above" / "prov")

    assert _mode(root) == 0o700
    assert {_mode(path) for path in root.rglob("*") if path.is_dir()} == {0o700}
    assert {_mode(path) for path in root.rglob("*.json")} == {0o600}
    assert _mode(tmp_path / "above") == 0o755


def test_an_empty_folder_becomes_a_store_that_is_closed(tmp_path: Path) -> None:
    (tmp_path / "prov").mkdir()
    (tmp_path / "prov").chmod(0o777)

    assert _mode(_filled(tmp_path / "prov")) == 0o700


def test_a_store_that_was_opened_to_a_group_stays_open(tmp_path: Path) -> None:
    root = _filled(tmp_path / "prov")
    for path in (root, *(each for each in root.rglob("*") if each.is_dir())):
        path.chmod(0o750)
    make_store(root, "0")
    commit(root, Commit("out", RUN, 1))
    make_folder(root / "rows" / "out")

    assert _mode(root) == 0o750
    assert _mode(root / "rows" / "out") == 0o750
    assert _mode(root / "batches" / "out" / f"{RUN}-0000000001.json") == 0o640


def test_what_does_not_fit_into_memory_goes_to_a_folder_of_the_process(tmp_path: Path) -> None:
    StoreBuilder(tmp_path / "prov")
    folder = spill_folder()
    with Engine(tmp_path / "prov").session() as session:
        found = session.table("SELECT current_setting('temp_directory') AS name")

    assert found.column("name").to_pylist() == [str(folder)]
    assert _mode(folder) == 0o700
    assert folder.name != f"clew-{os.getpid()}"
    assert folder.parent == Path(tempfile.gettempdir())


def test_every_database_spills_to_the_folder_of_the_process() -> None:
    with database() as db:
        found = db.sql("SELECT current_setting('temp_directory')").fetchall()

    assert found == [(str(spill_folder()),)]
    package = Path(clew.__file__).parent
    openers = {path.name for path in package.rglob("*.py") if "duckdb.connect(" in path.read_text()}
    assert openers == {"spill.py"}


def test_the_folder_goes_with_the_process() -> None:
    code = "from clew.store.spill import spill_folder; print(spill_folder())"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)

    assert not Path(done.stdout.strip()).exists()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "INSTALL httpfs",
        "LOAD httpfs",
        "ATTACH '/tmp/other.db' AS other",
        "COPY (SELECT 1) TO '/tmp/clew-copied.csv'",
        "SET enable_external_access = true",
        "SET autoload_known_extensions = true",
        "CREATE PERSISTENT SECRET s (TYPE http)",
        "SELECT * FROM read_parquet('https://127.0.0.1/x.parquet')",
    ],
)
def test_the_database_reaches_nothing_else(tmp_path: Path, sql: str) -> None:
    StoreBuilder(tmp_path / "prov")
    connection = Engine(tmp_path / "prov")._connection

    with pytest.raises(duckdb.Error):
        connection.execute(sql)


def test_types_of_files_are_forgotten_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_TYPES", 2)
    builder = StoreBuilder(tmp_path / "prov")
    builder.sink("out", [])
    files = [
        f"{builder.root}/{file}"
        for number in range(4)
        for file in builder.batch("out", number, rows={"out": [row(number, 0, n=1)]})
    ]
    engine = Engine(builder.root)

    assert list(engine.row_types(files)) == files
    assert list(engine._types) == files[2:]
    assert list(engine.row_types(files[:1])) == files[:1]
