"""The Spark session of tests, proofs and their child processes."""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
# PySpark logs every failed analysis with its whole stack; tests of errors would drown in it.
logging.getLogger("DataFrameQueryContextLogger").disabled = True


_SHORT = "-XX:TieredStopAtLevel=1"


def make_session(scratch: Path, cores: int = 2, *, long: bool = False) -> SparkSession:
    """Start the session.

    Args:
        scratch: Where it keeps its files.
        cores: How many tasks it runs at once.
        long: It plans thousands of queries, which pays for a better compiler.
    """
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master(f"local[{cores}]")
        .appName("clew-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.retainedJobs", "20")
        .config("spark.ui.retainedStages", "20")
        .config("spark.sql.ui.retainedExecutions", "20")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.default.parallelism", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "3g")
        # Tests are short: a simple compiler and collector start faster.
        .config(
            "spark.driver.extraJavaOptions",
            f"{'' if long else _SHORT} -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m",
        )
        # PySpark tells Spark from which line of the caller's each column comes.
        .config("spark.python.sql.dataFrameDebugging.enabled", str(not long).lower())
        .config("spark.local.dir", str(scratch / "local"))
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.sql.adaptive.enabled", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session
