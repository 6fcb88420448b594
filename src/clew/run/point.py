"""Connection points: a light side query that keeps what unfolding needs of a source, for a while.

For a source that cannot be read a second time. The side query reads it beside the main query and
writes id, event time and the chosen columns into the store, a folder for each of its batches. A
folder is dropped once nothing in it can contribute any more, so a point's size follows the windows
of the query and not its age.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.again.points import LAST, pointed_sources
from clew.plan.columns import quote
from clew.plan.spans import span_column
from clew.sources.identity import (
    KEPT_A,
    KEPT_B,
    KEPT_SEGMENT,
    KEPT_TIME,
    KafkaIdentity,
    file_path,
)
from clew.sources.reread import Again
from clew.steps import reached
from clew.store.commit import put_json
from clew.store.layout import point_folder
from clew.store.private import make_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from clew.operators.source import Source
    from clew.plan.node import Node


@dataclass(frozen=True, slots=True)
class PointJob:
    """Keeps each batch of a source in its own folder; a batch that is run again replaces it."""

    folder: str

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Keep one batch."""
        target = Path(self.folder) / f"{batch:010d}"
        draft = Path(self.folder) / f".{batch:010d}"
        shutil.rmtree(draft, ignore_errors=True)
        rows.write.mode("overwrite").parquet(str(draft))
        reached("point written", batch)
        shutil.rmtree(target, ignore_errors=True)
        draft.rename(target)
        put_json(Path(self.folder) / LAST, {"batch": batch})


def _place(source: Source, segment: str) -> str:
    """Say where a row came from in a way that tells in which batch the main query read it."""
    return segment if isinstance(source.origin.identity, KafkaIdentity) else file_path()


def start_points(
    node: Node, root: Path, writer: str, checkpoint: Path, trigger: dict[str, Any]
) -> list[StreamingQuery]:
    """Start the side queries of a pipeline's connection points."""
    started = []
    for source in pointed_sources(node):
        assert isinstance(source.again, Again)
        name = source.origin.name
        folder = point_folder(root, writer, name)
        make_folder(folder)
        a, b, segment = source.origin.columns()
        kept = source.df.selectExpr(
            *[quote(c) for c in source.again.point or ()],
            f"{a} AS {KEPT_A}",
            f"{b} AS {KEPT_B}",
            f"{_place(source, segment)} AS {KEPT_SEGMENT}",
            f"unix_micros({quote(str(span_column(source.origin)))}) AS {KEPT_TIME}",
        )
        stream: Any = kept.writeStream.queryName(f"{writer}, point of {name}")
        stream = stream.option("checkpointLocation", str(checkpoint / "points" / name))
        stream = stream.trigger(**trigger) if trigger else stream
        started.append(stream.foreachBatch(PointJob(str(folder)).__call__).start())
    return started
