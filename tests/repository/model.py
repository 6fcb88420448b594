"""What a workflow's answers must be, from its edges alone, in plain Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clew.ask.row import Row

Pairs = list[tuple[str, str]]


def edges(*pairs: tuple[str, str]) -> pa.Table:
    """Return reduced edges as `put_reduced` takes them."""
    columns = {"output": [o for o, _ in pairs], "input": [i for _, i in pairs]}
    return pa.table(columns, pa.schema([("output", pa.string()), ("input", pa.string())]))


def identifiers(rows: Iterable[Row]) -> set[str]:
    return {row["entity"] for row in rows}


def backward(jobs: dict[str, Pairs], entity: str) -> set[str]:
    """Return the inputs of the workflow that an entity depends on."""
    made = {output for pairs in jobs.values() for output, _ in pairs}
    return {each for each in _closure(jobs, entity, 0, 1) if each not in made}


def forward(jobs: dict[str, Pairs], entity: str) -> set[tuple[str, str]]:
    """Return what was derived from an entity, each with the job that generated it."""
    found = {entity} | _closure(jobs, entity, 1, 0)
    return {(job, o) for job, pairs in jobs.items() for o, i in pairs if i in found}


def _closure(jobs: dict[str, Pairs], entity: str, near: int, far: int) -> set[str]:
    found: set[str] = set()
    todo = [entity]
    while todo:
        at = todo.pop()
        for pairs in jobs.values():
            for pair in pairs:
                if pair[near] == at and pair[far] not in found:
                    found.add(pair[far])
                    todo.append(pair[far])
    return found
