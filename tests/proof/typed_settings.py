"""The settings under which pipelines of every type run."""

from __future__ import annotations

import random
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

ZONES = (
    "Europe/Berlin",
    "America/St_Johns",
    "America/Santiago",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "Asia/Kolkata",
    "UTC",
)
"""The first five change their clocks: by an hour or half of one, north or south, in Ramadan."""


def conf_of(seed: int) -> dict[str, str]:
    """Choose the settings of a pipeline."""
    rng = random.Random(f"settings {seed}")
    return {
        "spark.sql.session.timeZone": rng.choice(ZONES),
        "spark.sql.ansi.enabled": rng.choice(("true", "false")),
        "spark.sql.caseSensitive": rng.choice(("true", "false")),
    }


@contextmanager
def settings(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    before = {key: spark.conf.get(key, None) for key in conf}
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)
