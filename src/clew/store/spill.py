"""Where DuckDB writes what does not fit into memory: a folder of this process, for its user only.

Rows of the store stand in such files. Under a name that others can guess, somebody could have made
the folder before, to read them or to lead them elsewhere. DuckDB of itself takes `.tmp` in the
working folder, so no part of clew opens a database but by `database`.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
from pathlib import Path

import duckdb

_lock = threading.Lock()
_made: dict[int, Path] = {}


def spill_folder() -> Path:
    """Return the folder of this process; it is made on first use and removed at exit."""
    process = os.getpid()
    with _lock:
        found = _made.get(process)
        if found is None or not found.is_dir():
            # `mkdtemp` makes a folder that only its owner may enter, under a name of its own.
            found = _made[process] = Path(tempfile.mkdtemp(prefix="clew-"))
            atexit.register(_remove, process, found)
        return found


def database() -> duckdb.DuckDBPyConnection:
    """Open an empty database in memory, which spills to the folder of this process."""
    return duckdb.connect(config={"temp_directory": str(spill_folder())})


def _remove(process: int, folder: Path) -> None:
    if os.getpid() == process:  # a fork leaves its parent's folder alone
        shutil.rmtree(folder, ignore_errors=True)
