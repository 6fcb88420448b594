"""Run two jobs that publish provenance, reduce it, and ask over both."""

from __future__ import annotations

import argparse
from pathlib import Path

from pyspark.sql import SparkSession

import clew
import hashtags


def publish(spark: SparkSession, folder: Path, lines: list[str]) -> dict[str, int]:
    """Run both jobs; each publishes to a folder of its own."""
    with clew.prov.Emitter(folder / "events" / hashtags.COUNT, hashtags.COUNT) as emit:
        counts = hashtags.count_hashtags(lines, emit)
        emit.end()
    emit = clew.prov.Emitter(folder / "events" / hashtags.SUM, hashtags.SUM)
    frame = spark.createDataFrame(list(counts.items()), "hashtag string, `count` long")
    sums = hashtags.sum_by_category_on_spark(frame, emit).collect()
    emit.end()
    return {row["category"]: row["count"] for row in sums}


def main(arguments: list[str] | None = None) -> None:
    """Run the workflow and show one answer."""
    parser = argparse.ArgumentParser(description="Run two jobs and ask over both.")
    parser.add_argument("folder", type=Path, help="a new folder for events and provenance")
    parser.add_argument("--lines", type=int, default=500, help="how many lines of text")
    said = parser.parse_args(arguments)
    spark = SparkSession.builder.getOrCreate()
    sums = publish(spark, said.folder, hashtags.tweets(said.lines))
    store = said.folder / "prov"
    for job in (hashtags.COUNT, hashtags.SUM):
        events = spark.readStream.text(str((said.folder / "events" / job).resolve()))
        clew.prov.reduce(events, job=job, store=store, mode="grouping").awaitTermination()
    print(f"sums: {dict(sorted(sums.items()))}")
    with clew.open(store) as prov:
        print(prov.backward(hashtags.SUM, "category/flow"))


if __name__ == "__main__":
    main()
