"""Windows over rows in order, against the definition: captures, batch sizes, a stop in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from proof.case import Outcome, check, difference
from windows.cases import CASES, end, expected_of, readings, run_case

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from proof.case import Setting
    from windows.cases import Case

_CAPTURES = ("sets", "pointers", "intervals", "keys")
_BATCHES = ((3, 16), (6, 8), (12, 4))


def outcomes(setting: Setting) -> Iterator[Outcome]:
    """Run each window in batches of three sizes, each under another capture, stopped once."""
    for number, case in enumerate(CASES[:1] if setting.quick else CASES):
        for turn, (batches, rows) in enumerate(_BATCHES[:1] if setting.quick else _BATCHES):
            capture = _CAPTURES[(number + turn) % len(_CAPTURES)]
            made = readings(setting.seed + 10 * number + turn, batches, rows)
            folder = setting.folder / f"{number}-{batches}"
            yield check(
                f"{case.name}, {batches} batches, {capture}",
                _wrong,
                setting.spark,
                folder,
                case,
                made,
                capture,
            )


def _wrong(
    spark: SparkSession, folder: Path, case: Case, made: list[list[dict[str, Any]]], capture: str
) -> str:
    half = len(made) // 2
    runs = [made[:half], [*made[half:], [end()]]]
    return difference(expected_of(case, runs), run_case(spark, folder, case, runs, capture))
