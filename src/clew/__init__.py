"""clew: row-level provenance for Apache Spark.

Wrap a source with `trace`, write the DataFrame verbs you know, name a place for provenance, and
ask which source rows made a result row (`backward`) or which results a source row went into
(`forward`). Jobs of any kind publish what they do with `prov`, which keeps it reduced.
Asking needs no Spark, and printing help needs nothing, so all else is imported when it is first
used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from clew.exceptions import ClewError
from clew.version import __version__

if TYPE_CHECKING:
    from clew import prov
    from clew.ask.provenance import Provenance
    from clew.ask.provenance import open_store as open
    from clew.ask.trace import Trace
    from clew.frame.door import trace
    from clew.frame.frame import TracedFrame
    from clew.model import Edge, RowId

__all__ = [
    "ClewError",
    "Edge",
    "Limits",
    "Provenance",
    "RowId",
    "Trace",
    "TracedFrame",
    "__version__",
    "open",
    "prov",
    "trace",
]


_FROM = {
    "Edge": ("clew.model", "Edge"),
    "Limits": ("clew.limits", "Limits"),
    "Provenance": ("clew.ask.provenance", "Provenance"),
    "RowId": ("clew.model", "RowId"),
    "Trace": ("clew.ask.trace", "Trace"),
    "TracedFrame": ("clew.frame.frame", "TracedFrame"),
    "open": ("clew.ask.provenance", "open_store"),
    "trace": ("clew.frame.door", "trace"),
}
_MODULES = {
    "doctor": "clew.doctor",
    "export": "clew.show.export",
    "prov": "clew.prov",
    "testing": "clew.testing",
}


def __getattr__(name: str) -> Any:
    if name in _FROM:
        module, there = _FROM[name]
        return getattr(import_module(module), there)
    if name in _MODULES:
        return import_module(_MODULES[name])
    msg = f"module `clew` has no name `{name}`"
    raise AttributeError(msg)
