"""The Spark session in which questions are computed that a store alone does not answer."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakSet

from clew.exceptions import ClewError, ReplayError
from clew.limits import check_time, out_of_time, seconds_left

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

_own: WeakSet[SparkSession] = WeakSet()
"""Sessions that run questions and nothing else, for as long as somebody uses them."""


def need_spark() -> None:
    """Check that Spark is installed.

    Raises:
        ReplayError: It is not.
    """
    try:
        import pyspark.sql  # noqa: F401 (only whether it is there)
    except ImportError as error:
        msg = (
            "this question has to be computed, and Spark is not installed here.\n\n"
            "Install it with `pip install 'clew[spark]'`, or ask where the pipeline runs."
        )
        raise ReplayError(msg) from error


def make_session() -> SparkSession:
    """Return the running Spark session, or start one on this machine.

    Raises:
        ReplayError: Spark does not start.
    """
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession() or getattr(SparkSession, "_instantiatedSession", None)
    builder = SparkSession.builder.appName("clew").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.log.level", "ERROR")
    try:
        spark = builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
    except PySparkRuntimeError as error:
        msg = (
            f"this question has to be computed, and Spark does not start: {error}\n\n"
            "Spark needs Java 17 or later: set `JAVA_HOME` to where it is."
        )
        raise ReplayError(msg) from error
    return spark if running is not None else note_own(spark)


def note_own(spark: SparkSession) -> SparkSession:
    """Note that a session runs questions and nothing else, so that all of its jobs may be ended."""
    _own.add(spark)
    return spark


@contextmanager
def stopped_in_time(spark: SparkSession) -> Iterator[None]:
    """Cancel the Spark jobs of the question under way when its time is over.

    Spark tells jobs of one session apart by the thread that began them, so from beside it, all jobs
    of a session are ended or none. In a session of the user's own they run to their end; the
    question ends in either case.

    Raises:
        LimitError: Its time was over.
    """
    left = seconds_left()
    if left is None:
        yield
        return
    check_time()
    alarm = threading.Timer(left, spark.interruptAll)
    alarm.daemon = True
    if spark in _own:
        alarm.start()
    try:
        yield
    except Exception as error:
        if not isinstance(error, ClewError) and (seconds_left() or 0) <= 0:
            raise out_of_time() from error
        raise
    finally:
        alarm.cancel()
    check_time()
