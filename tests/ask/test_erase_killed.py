"""An erasure that dies between two steps leaves a file with its own checksum, or with none."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clew.ask.provenance import open_store
from clew.upkeep.erase import _replace
from store.build import RUN, StoreBuilder, row

_BEFORE, _AFTER = pa.table({"n": [1, 2]}), pa.table({"n": pa.array([None, 2], pa.int64())})


class _KilledError(BaseException):
    """Stands for the end of the process."""


def _die(*_: object, **__: object) -> None:
    raise _KilledError


@pytest.mark.parametrize("step", ["unlink", "replace"])
def test_a_file_that_an_erasure_left_never_lies_beside_the_checksum_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path, checksum = tmp_path / "part-0.parquet", tmp_path / ".part-0.parquet.crc"
    pq.write_table(_BEFORE, path)
    original = path.read_bytes()
    checksum.write_bytes(b"of the original")
    with monkeypatch.context() as patch:
        patch.setattr(Path, step, _die)
        with pytest.raises(_KilledError):
            _replace(path, _AFTER)
    assert not checksum.exists() or path.read_bytes() == original
    _replace(path, _AFTER)
    assert pq.read_table(path).equals(_AFTER)
    assert not checksum.exists()


def test_a_second_erasure_takes_away_the_checksum_that_the_first_had_to_leave(
    tmp_path: Path,
) -> None:
    store = StoreBuilder(tmp_path / "prov")
    store.source("r")
    store.sink("s", ["r"], runs=[{"run": RUN, "checkpoint": None}])
    rows = {"s": [row(1, 1, n=1)], "r": [row(0, 0, n=1)]}
    store.batch("s", 0, rows=rows, edges=[("s", 1, 1, "r", 0, 0)])
    with open_store(tmp_path / "prov") as prov:
        [found] = prov.rows("r")
        prov.erase("r", found.id)
        [file] = (tmp_path / "prov" / "rows" / "s").rglob("r/*.parquet")
        checksum = file.with_name(f".{file.name}.crc")
        checksum.write_bytes(b"of the original")
        os.utime(checksum, (0, 0))

        assert prov.erase("r", found.id).copies == 0

    assert not checksum.exists()
