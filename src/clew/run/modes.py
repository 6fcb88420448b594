"""What becomes of provenance while a query runs: stored, asked at once, or only received.

The thesis's provenance service has these modes, chosen when a query starts. `store` keeps
provenance for questions to come. `on-the-fly` answers one question with each result, and keeps
nothing. `receive` carries provenance to the end of the query and lets it go there: what is left is
what carrying costs. Which batches are done is noted in all three, so that no sink gets a batch
twice; without a store that note is beside the query's checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from clew.capture.properties import PROPERTIES, Properties
from clew.exceptions import WriterError
from clew.plan.node import interpret
from clew.run.sink import NoSink
from clew.run.split import BatchJob, clean_rows, held, run_through
from clew.run.subscribe import deliver, property_columns
from clew.steps import reached

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Column, DataFrame

    from clew.plan.node import Node
    from clew.run.subscribe import Receiver

Mode = Literal["store", "receive", "on-the-fly"]


def check_mode(mode: str, path: str | None, to: Receiver | None) -> None:
    """Check that the settings of a mode fit together.

    Raises:
        WriterError: They do not.
    """
    if mode not in get_args(Mode):
        known = ", ".join(f'"{each}"' for each in get_args(Mode))
        msg = f"`mode` is one of {known}; got {mode!r}."
        raise WriterError(msg)
    if mode == "store" and path is None:
        msg = 'mode "store" needs a place: `.provenance("prov/")`.'
        raise WriterError(msg)
    if mode == "on-the-fly" and to is None:
        msg = (
            'mode "on-the-fly" stores nothing, so somebody has to hear of the results.\n\n'
            "Say who: `to=` a function that is called with each result, the name of a table, or "
            "options of Spark's Kafka sink."
        )
        raise WriterError(msg)
    if mode != "on-the-fly" and to is not None:
        msg = f'`to` is for mode "on-the-fly"; the mode is "{mode}".'
        raise WriterError(msg)


@dataclass(frozen=True, slots=True)
class PassJob(BatchJob):
    """Hand clean rows to the sink, note the batch as done, and keep nothing of the rows."""

    def handle(self, root: Path, rows: DataFrame, batch: int) -> None:
        """Handle a batch that was not handled before."""
        if type(self.sink) is NoSink:
            run_through(rows)
        else:
            self.sink.write(clean_rows(rows, keep_id=self.keep_id), self.run, batch)
        reached("sink written", batch)
        self._finish(root, batch)

    def _finish(self, root: Path, batch: int) -> None:
        self._commit(root, batch, None, None, [])
        reached("batch committed", batch)
        self.sink.done(self.run, batch)
        reached("batch done", batch)


@dataclass(frozen=True, slots=True)
class DeliverJob(PassJob):
    """Hand clean rows to the sink, and results with their properties to whoever wants to hear.

    Attributes:
        to: Who does.
        where: Which results, as a condition over their columns and properties.
    """

    to: Receiver = ""
    where: str | Column | None = None

    def handle(self, root: Path, rows: DataFrame, batch: int) -> None:
        """Handle a batch that was not handled before."""
        if type(self.sink) is NoSink:
            self._deliver(rows, batch)
        else:
            with held(rows) as kept:
                self.sink.write(clean_rows(kept, keep_id=False), self.run, batch)
                reached("sink written", batch)
                self._deliver(kept, batch)
        self._finish(root, batch)

    def _deliver(self, rows: DataFrame, batch: int) -> None:
        heard = property_columns(rows)
        deliver(heard if self.where is None else heard.filter(self.where), self.to)
        reached("properties delivered", batch)


def with_property_values(node: Node) -> DataFrame:
    """Build the query with what its properties are made of in hidden columns.

    Raises:
        WriterError: No property was declared.
    """
    built = interpret(node, PROPERTIES)
    assert isinstance(built.annotation, Properties)
    if not built.annotation.kinds:
        msg = (
            'mode "on-the-fly" answers with properties, and none was declared.\n\nDeclare one '
            'where its values are known: `.property("sensors", F.col("sensor"), merge="set")`.'
        )
        raise WriterError(msg)
    return built.df.drop(*built.references)
