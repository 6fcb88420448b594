"""Provenance of other systems: published by jobs of any kind, reduced, kept as a repository.

An `Emitter` writes what function executions used and generated as lines of JSON, into a folder or
to a Kafka topic; `reduce` reads such lines while they arrive, and `reduce_table` all of them at
once, and both keep what connects the inputs of a job with its outputs. Where somebody else has
reduced them, `put_reduced` puts the result into a store, in which an output of one job that is an
input of another is one entity, and `end_job` says that a run is over. `clew.open` then answers over
the whole workflow.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clew.prov.at_once import reduce_table
    from clew.prov.emitter import Emitter, Execution
    from clew.prov.jobs import end_job
    from clew.prov.put import put_reduced
    from clew.prov.reducing import Reduction, reduce

__all__ = [
    "Emitter",
    "Execution",
    "Reduction",
    "end_job",
    "put_reduced",
    "reduce",
    "reduce_table",
]

_FROM = {
    "Emitter": "emitter",
    "Execution": "emitter",
    "Reduction": "reducing",
    "end_job": "jobs",
    "put_reduced": "put",
    "reduce": "reducing",
    "reduce_table": "at_once",
}


def __getattr__(name: str) -> Any:
    # An emitter travels to executors that have neither DuckDB nor Arrow: each part by itself.
    if name not in _FROM:
        msg = f"module `clew.prov` has no name `{name}`"
        raise AttributeError(msg)
    return getattr(import_module(f"clew.prov.{_FROM[name]}"), name)
