"""The settings of `.provenance(...)`: where provenance goes, and what becomes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from clew.again.recorded_streams import Content
from clew.capture.kinds import KEYS, asked_for
from clew.exceptions import WriterError
from clew.operators.source import Source
from clew.plan.mask import NOTHING, Mask, read_mask
from clew.plan.node import interpret
from clew.plan.off import OFF
from clew.plan.settings import differing, settings_of, to_set
from clew.run.modes import check_mode
from clew.store.layout import store_root

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import Column

    from clew.capture.kinds import CaptureName
    from clew.plan.node import Node
    from clew.run.modes import Mode
    from clew.run.split import OnError
    from clew.run.subscribe import Receiver


@dataclass(frozen=True, slots=True)
class Place:
    """Where provenance goes, and what happens when it cannot.

    `root` is None for the modes that store nothing.
    """

    root: Path | None
    keep_id: bool
    on_error: OnError
    restart: str
    event_time: str | None
    capture: CaptureName = "auto"
    unfold: str = "here"
    mode: Mode = "store"
    assertions: str | tuple[str, ...] = ()
    content: Content = "first"
    to: Receiver | None = None
    where: Column | str | None = None
    mask: Mask = NOTHING

    @property
    def is_off(self) -> bool:
        """Whether rows carry nothing, so that the query is the user's own."""
        kind = asked_for(self.capture)
        return kind is not None and not kind.carries_ids


def place(
    path: str | None,
    *,
    keep_id: bool = False,
    on_error: OnError = "fail",
    restart: str = "refuse",
    event_time: str | None = None,
    capture: CaptureName = "auto",
    unfold: str = "here",
    mode: Mode = "store",
    assertions: str | Sequence[str] | None = None,
    content: Content = "first",
    to: Receiver | None = None,
    where: Column | str | None = None,
    mask: Iterable[str] | Mapping[str, str] | None = None,
    mask_literals: bool = False,
) -> Place:
    """Check the settings of `.provenance(...)`.

    Raises:
        WriterError: A setting has a value that it cannot have.
    """
    if on_error not in ("fail", "gap"):
        msg = f'`on_error` is "fail" or "gap"; got {on_error!r}.'
        raise WriterError(msg)
    if restart not in ("refuse", "append", "overwrite"):
        msg = f'`restart` is "refuse", "append" or "overwrite"; got {restart!r}.'
        raise WriterError(msg)
    if unfold not in ("here", "later"):
        msg = f'`unfold` is "here" or "later"; got {unfold!r}.'
        raise WriterError(msg)
    if content not in get_args(Content):
        msg = f'`content` is "first" or "all"; got {content!r}.'
        raise WriterError(msg)
    check_mode(mode, path, to)
    root = None if path is None or mode != "store" else store_root(path)
    which = assertions if isinstance(assertions, str) else tuple(assertions or ())
    if which and mode != "store":
        msg = f'`assertions` are recorded in mode "store"; the mode is "{mode}".'
        raise WriterError(msg)
    masked = read_mask(mask, literals=mask_literals)
    if masked and mode != "store":
        msg = f'`mask` is about what the store keeps, and mode "{mode}" keeps nothing.'
        raise WriterError(msg)
    kind = asked_for(capture)
    if which and kind is None:
        kind, capture = KEYS, "keys"
    if which and content == "first" and kind is not None and kind.needs_stored_rows:
        msg = (
            f'with `content="first"` the store keeps no results, so they cannot carry `{capture}`.'
            '\n\nLeave `capture` out, or write `content="all"`.'
        )
        raise WriterError(msg)
    return Place(
        root,
        keep_id,
        on_error,
        restart,
        event_time,
        capture,
        unfold,
        mode,
        which,
        content,
        to,
        where,
        masked,
    )


def check_id_column(node: Node, settings: Place) -> None:
    """Refuse to add `clew_id` to a result that has such a column.

    Raises:
        WriterError: It has.
    """
    if settings.keep_id and "clew_id" in node.columns:
        msg = (
            "`keep_id=True` adds a column `clew_id`, and the result has one already.\n\n"
            'Drop or rename it: `.withColumnRenamed("clew_id", "upstream_id")`.'
        )
        raise WriterError(msg)


def check_settings(node: Node) -> None:
    """Refuse to write under settings by which a pipeline means something else than before.

    Spark settles what an expression means when it is written down; clew builds the query again.

    Raises:
        WriterError: The result would be another than plain Spark's.
    """
    now = settings_of(node.plain.df.sparkSession)
    sources = [each.operator for each in node.walk() if isinstance(each.operator, Source)]
    before = next((s.settings for s in sources if s.settings not in (None, now)), None)
    if before is None or interpret(node, OFF, check=False).df.sameSemantics(node.plain.df):
        return
    names = differing(before, now)
    msg = (
        f"the session was given other settings ({', '.join(names)}) after the pipeline was built, "
        "and under these its expressions mean something else.\n\nWrite "
        f"`{to_set(before, names)}` first, or set them before `clew.trace`."
    )
    raise WriterError(msg)
