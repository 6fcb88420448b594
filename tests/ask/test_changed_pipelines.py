"""A stored pipeline that somebody changed is an error of the store, whatever it says."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from clew.again.rebuild import check_stored
from clew.ask.followed import aggregated
from clew.exceptions import ReplayError, StoreError
from store.build import StoreBuilder

if TYPE_CHECKING:
    from pathlib import Path

_STEP = {"aggregates": {"tuple": [{"sql": "sum(v) AS n"}]}, "key_names": {"tuple": ["k"]}}
PIPELINE: dict[str, Any] = {
    "version": 1,
    "steps": [{"source": "r"}, {"operator": "Aggregate", "with": _STEP}],
    "settings": {},
    "sources": {},
    "unstored": [],
}
GRAPH: dict[str, Any] = {
    "nodes": [
        {"kind": "source", "label": "r", "inputs": [], "columns": ["k", "v"]},
        {"kind": "aggregate", "label": "sum", "inputs": [0], "columns": ["k", "n"]},
    ],
    "sink": 1,
    "sources": ["r"],
    "named": {},
}


@pytest.mark.parametrize("value", [True, None, 7, [], {}])
def test_keys_of_an_aggregate_that_are_none_are_an_error_of_the_store(value: Any) -> None:
    pipeline = copy.deepcopy(PIPELINE)
    said = {"name": "out", "pipeline": pipeline, "graph": GRAPH}
    assert aggregated(said)["n"].function == "sum"
    pipeline["steps"][1]["with"]["key_names"] = {"tuple": value} if value is True else value

    with pytest.raises(StoreError, match="pipeline of `out`"):
        aggregated(said)


@pytest.mark.parametrize("part", ["steps", "settings", "sources", "unstored"])
def test_a_pipeline_without_a_part_is_refused(tmp_path: Path, part: str) -> None:
    pipeline = {name: value for name, value in PIPELINE.items() if name != part}
    StoreBuilder(tmp_path).sink("out", ["r"], pipeline=pipeline, graph=GRAPH)

    with pytest.raises(ReplayError, match="cannot be rebuilt"):
        check_stored(tmp_path, "out", trust=True)


def test_a_step_that_is_not_there_is_an_error_of_the_store(tmp_path: Path) -> None:
    unstored = [{"step": 99, "why": "a function"}]
    StoreBuilder(tmp_path).sink(
        "out", ["r"], pipeline={**PIPELINE, "unstored": unstored}, graph=GRAPH
    )

    with pytest.raises(ReplayError, match="cannot be rebuilt"):
        check_stored(tmp_path, "out", trust=True)
