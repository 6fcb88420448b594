"""How fast is provenance reduced on so many cores? A process of its own for each number.

Run: python -m benchmarks.reduce_speed CORES TURNS FOLDER
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

from benchmarks import reduce_runs

FORMS: dict[str, dict[str, Any]] = {
    "groups": {"mode": "grouping", "single_use": True},
    "statements": {"mode": "watermark", "delay": "20 seconds", "global_batch": 200_000},
    "documents": {"mode": "grouping", "single_use": True},
}


def session(cores: int, scratch: Path) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(f"local[{cores}]").appName("clew bench-reduce")
    for key, value in {
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.adaptive.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
    }.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def main(cores: int, turns: int, folder: Path) -> None:
    spark = session(cores, folder / "scratch")
    rows = []
    for form, settings in FORMS.items():
        source, store = folder / form, folder / "store"
        reduce_runs.run(spark, source, store, **settings)
        runs = [reduce_runs.run(spark, source, store, **settings) for _ in range(turns)]
        seconds = statistics.median(r.seconds for r in runs)
        megabytes = sum(p.stat().st_size for p in source.iterdir()) / 1e6
        first = runs[0].progress
        rows.append(
            {
                "method": settings["mode"],
                "form": form,
                "reducers": cores,
                "seconds": round(seconds, 2),
                "seconds_low": round(min(r.seconds for r in runs), 2),
                "seconds_high": round(max(r.seconds for r in runs), 2),
                "mb": round(megabytes, 1),
                "edges_in": first.statements,
                "edges_local": first.edges_local,
                "edges_out": first.edges_out,
                "mb_per_s_per_core": round(megabytes / seconds / cores, 1),
                "edges_per_s_per_core": round(first.statements / seconds / cores),
                "mb_per_cpu_s": round(megabytes / statistics.median(r.cpu for r in runs), 1),
            }
        )
    spark.stop()
    print(json.dumps(rows))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
