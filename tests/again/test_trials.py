"""Many runs of a query in one plan give what each run alone gives."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException

import clew
from clew.again.rerun import changed_by
from clew.again.tables import as_tables
from clew.again.trials import Trials, can_share
from clew.capture.numbered import TRIAL
from clew.exceptions import GraphError
from clew.operators.source import Source
from clew.plan.columns import is_hidden
from clew.sources.identity import KEPT_A, KEPT_B
from clew.testing import keyed
from properties.agreement import explain
from properties.batch_model import run_batch
from properties.building import build
from properties.random_rows import random_data
from properties.random_specs import random_spec
from properties.row_files import read_frames, write_data
from properties.test_reference_model import session

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

FIRST_SEED = int(os.environ.get("CLEW_TRIAL_SEED", "100"))
SEEDS = int(os.environ.get("CLEW_TRIAL_SEEDS", "3"))
SETS = 4


def with_ids(frame: clew.TracedFrame) -> Any:
    """Read the sources of a batch pipeline as tables whose rows keep their ids."""
    node = keyed(frame)
    names = {n.operator.origin.name for n in node.walk() if isinstance(n.operator, Source)}
    return changed_by(as_tables(node, {}), dict.fromkeys(names, lambda df: df))


def members_of(tables: Any) -> dict[tuple[str, int], tuple[str, int, int]]:
    """Find the id of each source row, by source and number."""
    found: dict[tuple[str, int], tuple[str, int, int]] = {}
    for each in tables.node.walk():
        if isinstance(each.operator, Source):
            name = each.operator.origin.name
            for row in each.operator.df.toArrow().to_pylist():
                found[name, row["rid"]] = (name, row[KEPT_A], row[KEPT_B])
    return found


def test_random_pipelines_over_random_parts_of_their_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The plain-Python model runs over each part by itself."""
    small = session(spark, 2)
    done, seed = 0, FIRST_SEED
    while done < SEEDS:
        seed += 1
        spec = random_spec(seed, streaming=False)
        data: Any = random_data(seed, spec)
        frames = read_frames(small, spec, write_data(tmp_path / str(seed), spec, data))
        try:
            frame = build(spec, {name: clew.trace(df, name) for name, df in frames.items()})
        except (AnalysisException, GraphError):
            continue  # not a pipeline that Spark or clew takes
        if not can_share(frame.node):
            continue
        done += 1
        print(f"seed {seed}: {spec}")
        tables = with_ids(frame)
        places = members_of(tables)
        members = list(places.values())
        chosen = random.Random(seed)
        sets = [{k for k in places if chosen.random() < 0.7} for _ in range(SETS)]
        kept = [{members.index(places[k]) for k in each} for each in sets]

        [results] = Trials(tables, members, (0, 0)).results(kept)
        rows = [row.asDict() for row in results.collect()]

        for number, each in enumerate(sets):
            part = {
                name: [row for row in listed if (name, row["rid"]) in each]
                for name, listed in data.items()
            }
            found = [
                {name: value for name, value in row.items() if not is_hidden(name)}
                for row in rows
                if row[TRIAL] == number
            ]
            wrong = explain(run_batch(spec, part), [(row, None) for row in found])
            assert wrong == "", f"seed {seed}, part {number}: {wrong}"
