"""Tracing works unchanged under Spark Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from clew.testing import write_batches
from frames import READINGS, at


@pytest.mark.spark
def test_trace_run_and_backward_under_spark_connect(tmp_path: Path) -> None:
    rows = [
        {"rid": rid, "ts": at(clock), "meter": meter, "kwh": 1}
        for rid, clock, meter in [
            (1, "12:00:01", "m1"),
            (2, "12:00:02", "m1"),
            (3, "12:00:03", "m2"),
            (4, "12:00:09", "m1"),
            (5, "13:00:00", "closing"),
        ]
    ]
    write_batches(tmp_path / "in", READINGS, [rows[:2], rows[2:4], rows[4:]])

    source = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("pipeline.py")), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        # The server runs the batch function in a Python of its own.
        env={**os.environ, "PYTHONPATH": source, "PYSPARK_PYTHON": sys.executable},
    )

    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.strip().splitlines()[-1]) == {
        "remote": True,
        "identity": "parquet: file, row_index",
        "refused": ["a window function (`over`)", "an aggregate outside `agg`"],
        "answers": [{"meter": "m1", "rids": [1, 2, 4]}],
        "stored": "`>`(n, 1)",
        "again": [1, 0],
        "sink": [["m1", 3]],
    }
