"""An erasure that dies between two steps leaves a file with its own checksum, or with none."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clew.query.erase import _replace

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
