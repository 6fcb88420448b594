"""The example runs, small, and its answer is what the text alone says."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING

import clew
import hashtags as H

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession

SCRIPT = Path(__file__).parents[2] / "examples" / "hashtags" / "workflow.py"


def test_the_workflow_answers_over_both_jobs(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runpy.run_path(str(SCRIPT))["main"]([str(tmp_path), "--lines", "60"])

    lines = H.tweets(60)
    found = H.expected_edges(lines)
    tags = {tag for category, tag in found[H.SUM] if category == "category/flow"}
    expected = {tweet for tag, tweet in found[H.COUNT] if tag in tags}
    with clew.open(tmp_path / "prov") as prov:
        why = prov.backward(H.SUM, "category/flow")
        assert {row["entity"] for row in why.rows} == expected
        for job, edges in found.items():
            assert {s.name: s.edges for s in prov.streams()}[job] == len(edges)
        assert prov.status("entities", "tweet/0") == "expired"
    assert f"was made from {len(expected)} rows of `entities`" in capsys.readouterr().out
