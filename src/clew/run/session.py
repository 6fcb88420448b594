"""The Spark session in which questions are computed that a store alone does not answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.exceptions import ReplayError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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

    builder = SparkSession.builder.appName("clew").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.log.level", "ERROR")
    try:
        return builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
    except PySparkRuntimeError as error:
        msg = (
            f"this question has to be computed, and Spark does not start: {error}\n\n"
            "Spark needs Java 17 or later: set `JAVA_HOME` to where it is."
        )
        raise ReplayError(msg) from error
