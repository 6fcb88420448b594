"""Kill a traced stream again and again, and look for what is lost or doubled."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from clew.store.layout import HEADER, read_json
from clew.testing import committed_files, read_edges, write_batches
from frames import READINGS, at

if TYPE_CHECKING:
    from collections.abc import Sequence

STEPS = (
    "batch begun",
    "batch computed",
    "sink staged",
    "sink listed",
    "sink file published",
    "sink written",
    "edges written",
    "rows written",
    "provenance written",
    "batch committed",
    "batch done",
)
POINTS = tuple((step, nth) for step in STEPS for nth in (1, 2))
"""Each step of a batch, in the first batch that reaches it and in a later one."""


UNFOLDING_STEPS = (
    "unfolding begun",
    "unfolded edges computed",
    "unfolded edges laid out",
    "unfolded rows written",
    "unfolded edges packed",
    "unfolding written",
    "unfolding committed",
)
UNFOLDING_POINTS = tuple((step, nth) for nth in (1, 2, 1) for step in UNFOLDING_STEPS)[:20]
"""Each step of an unfolding, in the first group of batches, in the second, and once more."""


def write_input(folder: Path, batches: int = 8) -> None:
    """Write the input; each kill may let one batch through, so many kills need many batches."""
    rows = [
        [
            {
                "rid": 10 * batch + i,
                "ts": at(f"12:{batch:02d}:{5 + 15 * i:02d}"),
                "meter": f"m{i % 2}",
                "kwh": i,
            }
            for i in range(3)
        ]
        for batch in range(batches)
    ]
    write_batches(folder / "in", READINGS, rows)


def make_twin(calm: Path, stormy: Path) -> None:
    """Make the folder of a run that is to leave the same as one that ended, ids and all."""
    (stormy / "prov").mkdir(parents=True)
    # The same source rows have the same ids only at the same path and in stores of one secret.
    (stormy / "in").symlink_to(calm / "in")
    shutil.copy(calm / "prov" / HEADER, stormy / "prov" / HEADER)


def run(folder: Path, *kill: str, program: str = "pipeline.py") -> str:
    program = str(Path(__file__).with_name(program))
    done = subprocess.run(
        [sys.executable, program, str(folder), *kill],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    last = done.stdout.strip().splitlines()[-1:] or [done.stderr[-2000:]]
    return last[0]


@dataclass(frozen=True)
class Holdings:
    """Everything that a finished run left behind, as multisets."""

    sink: Counter[Any]
    edges: Counter[Any]
    rows: Counter[Any]
    batches: Counter[Any]


def holdings(folder: Path) -> Holdings:
    files = committed_files(folder / "prov", "counts")
    con = duckdb.connect()

    def rows(query: str, paths: Sequence[str]) -> Counter[Any]:
        return Counter(map(repr, con.execute(query, [list(paths)]).fetchall()))

    sink = [str(p) for p in (folder / "out").glob("*.parquet")]
    edges = Counter(
        repr((e["sink"], e["sink_a"], e["sink_b"], e["source"], e["source_b"]))
        for f in files
        if Path(f).parents[2].name == "edges"
        for e in read_edges(Path(f)).to_pylist()
    )
    commits = (folder / "prov" / "batches" / "counts").glob("*.json")
    return Holdings(
        rows("SELECT * FROM read_parquet(?)", sink) if sink else Counter(),
        edges,
        rows(
            'SELECT parse_path(filename)[-2], b, "row" FROM read_parquet(?, filename = true, '
            "union_by_name = true)",
            [f for f in files if Path(f).parents[3].name == "rows"],
        ),
        Counter(read_json(path)["batch"] for path in commits),
    )
