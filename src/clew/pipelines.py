"""Pipelines named on the command line: `module:function`.

The function takes a SparkSession and returns the traced frame, or a dict of them by stream. It is
the user's own code, the same that started the query; only with it can rows be computed again.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from clew.exceptions import QueryError
from clew.frame.frame import TracedFrame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def load_pipeline(named: str, stream: str) -> dict[str, TracedFrame]:
    """Import a pipeline and build it.

    Args:
        named: `module:function`; the module is looked for in the working folder as well.
        stream: The stream that a single frame fills.

    Raises:
        QueryError: There is no such function, or it returns something else.
    """
    module, _, function = named.partition(":")
    if not function:
        msg = f"`--pipeline` is `module:function`; got {named!r}."
        raise QueryError(msg)
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        build = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        msg = (
            f"cannot load the pipeline `{named}`: {error}.\n\nName a function of a module in this "
            "folder or on `PYTHONPATH`, e.g. `--pipeline traffic:stopped_cars`."
        )
        raise QueryError(msg) from error
    made = build(make_session())
    frames = dict(made) if isinstance(made, Mapping) else {stream: made}
    for name, frame in frames.items():
        if not isinstance(frame, TracedFrame):
            msg = (
                f"the pipeline `{named}` returned {type(frame).__name__} for `{name}`; a traced "
                "frame is needed.\n\nReturn what was written with `.provenance(...)`."
            )
            raise QueryError(msg)
    return frames


def make_session() -> SparkSession:
    """Return the running Spark session, or start one on this machine."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("clew").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.log.level", "ERROR")
    return builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
