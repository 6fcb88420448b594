"""Pipelines named on the command line: `module:function`.

The function takes a SparkSession and returns the traced frame, or a dict of them by stream. It is
the user's own code, the same that started the query.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.again.session import make_session
from clew.exceptions import QueryError
from clew.frame.frame import TracedFrame

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame


def load_pipeline(named: str, stream: str) -> dict[str, TracedFrame]:
    """Import a pipeline and build it.

    Args:
        named: `module:function`; the module is looked for in the working folder as well.
        stream: The stream that a single frame fills.

    Raises:
        QueryError: There is no such function, or it returns something else.
    """
    made = _imported(named, "--pipeline")(make_session())
    frames = dict(made) if isinstance(made, Mapping) else {stream: made}
    for name, frame in frames.items():
        if not isinstance(frame, TracedFrame):
            msg = (
                f"the pipeline `{named}` returned {type(frame).__name__} for `{name}`; a traced "
                "frame is needed.\n\nReturn what was written with `.provenance(...)`."
            )
            raise QueryError(msg)
    return frames


def load_changes(named: str) -> dict[str, Callable[[DataFrame], DataFrame]]:
    """Import what `--what-if` names: for each source to change, a function of its rows.

    Raises:
        QueryError: There is no such dict.
    """
    found = _imported(named, "--what-if")
    if not isinstance(found, Mapping) or not all(callable(each) for each in found.values()):
        msg = (
            f"`--what-if {named}` is {type(found).__name__}; a dict is needed, of functions of a "
            'DataFrame by source, e.g. `CHANGES = {"readings": lambda df: df.filter("kwh >= 0")}`.'
        )
        raise QueryError(msg)
    return dict(found)


def _imported(named: str, option: str) -> Any:
    module, _, name = named.partition(":")
    if not name:
        msg = f"`{option}` is `module:name`; got {named!r}."
        raise QueryError(msg)
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        msg = (
            f"cannot load `{named}`: {error}.\n\nName something in a module of this folder or on "
            f"`PYTHONPATH`, e.g. `{option} traffic:stopped_cars`."
        )
        raise QueryError(msg) from error
