"""No input makes clew start a process, take all memory, or raise what is not its own error."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuzz import stores
from fuzz.fenced import ProcessStartedError, fenced
from fuzz.targets import names, target

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.spark  # a store that is filled for it
@pytest.mark.parametrize("name", names())
def test_odd_input_does_no_harm(name: str) -> None:
    assert target(name)(2.0, 2026) > 0


def test_the_fence_holds() -> None:
    with pytest.raises(ProcessStartedError), fenced():
        subprocess.run(["true"], check=True)
    with pytest.raises(ProcessStartedError), fenced(), ThreadPoolExecutor(1) as pool:
        pool.submit(subprocess.run, ["true"])  # nobody asks what became of it
    with fenced(256 << 20), pytest.raises(MemoryError):
        bytearray(1 << 30)

    assert subprocess.run(["true"], check=False).returncode == 0
    assert len(bytearray(1 << 30)) == 1 << 30


def test_a_file_that_a_library_opens_outside_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "outside" / "a.parquet"
    file.parent.mkdir()
    pq.write_table(pa.table({"a": [1]}), file)

    with stores._unopened(file.parent):
        pass
    with pytest.raises(stores.OutsideError), stores._unopened(file.parent):
        duckdb.read_parquet(str(file)).fetchall()
