"""`clew replay`, as somebody would call it who has the store and the pipeline's module."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import clew
from clew.cli import main
from clew.pipelines import load_pipeline
from clew.testing import write_batches
from frames import READINGS, at

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from pyspark.sql import SparkSession

MODULE = """
import clew
from pyspark.sql import functions as F


def sums(spark):
    source = spark.read.parquet("{folder}/in")
    traced = clew.trace(source, "readings", event_time="ts")
    return traced.groupBy("meter").agg(F.sum("kwh").alias("kwh"))


CHANGES = {{"readings": lambda df: df.filter("rid <> 2")}}
NONE = 7
"""


def test_replaying_from_the_command_line(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"rid": i, "ts": at("12:00:00"), "meter": m, "kwh": i} for i, m in enumerate("aab", 1)]
    write_batches(tmp_path / "in", READINGS, [rows])
    (tmp_path / "energy.py").write_text(MODULE.format(folder=tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("clew.pipelines.make_session", lambda: spark)
    frame = load_pipeline("energy:sums", "sums")["sums"]
    frame.write.provenance("prov", name="sums", capture="keys").format("noop").mode("append").save()
    asked = ["replay", "prov", "sums", "--pipeline", "energy:sums"]

    assert main(asked) == 0
    assert capsys.readouterr().out == "sums: 2 results as before, none differs\n"
    assert main([*asked[:3], "meter=b", *asked[3:]]) == 0
    assert capsys.readouterr().out == "sums: 1 result as before, none differs\n"
    assert main([*asked, "--what-if", "energy:CHANGES", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["same"], found["unchanged"]) == (False, 1)
    [difference] = found["differences"]
    assert (difference["before"]["kwh"], difference["after"]["kwh"]) == (3, 1)
    assert main([*asked, "--what-if", "energy:NONE"]) == 1
    assert "a dict is needed" in capsys.readouterr().err
    assert main([*asked, "--what-if", "energy"]) == 1
    assert "`--what-if` is `module:name`" in capsys.readouterr().err
    assert clew.open("prov").replay("sums").same

    monkeypatch.setattr("clew.again.known._known", {})
    assert main(["replay", "prov", "sums", "meter=a"]) == 0
    assert capsys.readouterr().out == "sums: 1 result as before, none differs\n"
    assert main(["replay", "prov", "sums"]) == 0
    assert capsys.readouterr().out == "sums: 2 results as before, none differs\n"
