"""Publish provenance from any Python job, one function execution at a time.

An `Emitter` writes what function executions used and generated as lines of JSON, into a folder or
to a Kafka topic; a reducer turns the lines of many jobs into edges. It can be sent to other
processes, so functions that Spark runs on its executors use it like any other.
"""

from __future__ import annotations

from clew.emit.emitter import Emitter, Execution

__all__ = ["Emitter", "Execution"]
