"""What a table held when a batch read it, and the same table again.

A table that is joined to a stream may grow while the query runs or between two runs of it, and a
batch source may be another when somebody asks later. So each commit notes what the tables of its
query held: of files which ones and their states, of rows in memory a digest. Who reads a table
again gets the rows that were noted, without files that came later; or a refusal that says what is
different now.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from clew.exceptions import SourceChangedError
from clew.operators.source import Source
from clew.plan.columns import JSON, quote
from clew.plan.sql import quiet
from clew.sources.identity import file_path, offers_file
from clew.sources.origins import is_fixed, is_row_by_row, origins_of
from clew.sources.reread import Again
from clew.sources.state import (
    FileState,
    is_local,
    normal_path,
    refuse_changed,
    state_from,
    state_now,
    states_elsewhere,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pyspark.sql import DataFrame

    from clew.plan.node import Node

Noted = dict[str, Any]
"""`files`: the state of each, at first of those `elsewhere` only; or `many`: how many, and a digest
of that; or `rows`: a digest."""

_NOT_LOOKED_AT = "not looked at"
"""Of rows in memory that nothing was to be computed from again: their owner vouches for them."""

_MANY = 500
"""From how many files on a commit has a digest of their states only."""

_digests: WeakKeyDictionary[DataFrame, str] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Held:
    """What the tables of a query held when its batches read them.

    Attributes:
        noted: What the commit of each batch says.
        asked: The batches whose rows are computed again.
    """

    noted: Mapping[int, Mapping[str, Noted]]
    asked: Collection[int]

    @property
    def last(self) -> int:
        """The last of the batches that are asked about."""
        return max(self.asked, default=0)

    def narrowed(
        self, df: DataFrame, name: str, read_by: Collection[int]
    ) -> tuple[DataFrame, dict[str, FileState]]:
        """Return a table with the rows that it had, and the states of its files.

        Args:
            df: The table at hand.
            name: The source.
            read_by: The batches that brought the rows of streams which are read beside it.

        Raises:
            SourceChangedError: It has changed since, or between those batches.
        """
        batches = sorted({*self.asked, *read_by} & self.noted.keys())
        said = {json.dumps(self.noted[each].get(name), sort_keys=True): each for each in batches}
        if len(said) > 1:
            one, other, *_ = sorted(said.values())
            what = (
                f"`{name}` was another table in batch {one} than in batch {other}, and both are "
                "behind the rows asked for"
            )
            raise SourceChangedError(what)
        noted = self.noted[batches[-1]].get(name) if batches else None
        narrowed = as_it_was(df, name, noted, batches[-1] if batches else self.last)
        return narrowed, states_in(noted or {})


def tables_of(node: Node, *, again: bool) -> dict[str, Noted]:
    """Say what the tables of a query are made of: which files, or which rows.

    Args:
        node: The query.
        again: They will be computed from again: rows in memory are looked at, too.
    """
    found: dict[str, Noted] = {}
    for each in node.walk():
        source = each.operator
        if isinstance(source, Source) and source.origin.name not in found:
            table = _table(source)
            said = None if table is None else _made_of(table, again=again)
            if said is not None:
                found[source.origin.name] = said
    return found


def note(tables: Mapping[str, Noted]) -> dict[str, Noted]:
    """Look at the files of tables now, and say what a commit shall hold of them."""
    return {name: _noted(said) for name, said in tables.items()}


def states_in(noted: Noted) -> dict[str, FileState]:
    """Return the states of the files that a commit names."""
    try:
        return {path: state_from(said) for path, said in dict(noted.get("files") or {}).items()}
    except (TypeError, ValueError) as error:
        what = "the commit does not say in a readable way which files it had"
        raise SourceChangedError(what) from error


def as_it_was(df: DataFrame, name: str, noted: Noted | None, batch: int) -> DataFrame:
    """Return a table with the rows that it had when a batch read it.

    Args:
        df: The table at hand.
        name: The source.
        noted: What the batch's commit says of it.
        batch: The batch.

    Raises:
        SourceChangedError: It has other rows now, or it is not known which it had.
    """
    if noted is None:
        what = f"what `{name}` held when batch {batch} read it was not noted"
        raise SourceChangedError(what)
    if noted.get("rows") == _NOT_LOOKED_AT:
        return df
    if "rows" in noted:
        if noted["rows"] is None or rows_digest(df) != noted["rows"]:
            what = f"`{name}` holds other rows than when batch {batch} read it, or may do so"
            raise SourceChangedError(what)
        return df
    here = _files(df)
    if "many" in noted:
        if _summary(_look(here, states_elsewhere(df.sparkSession, here))) != noted["many"]:
            what = f"files of `{name}` were added, removed or rewritten after batch {batch}"
            raise SourceChangedError(what)
        return df
    before = states_in(noted)
    refuse_changed(df.sparkSession, before, dict.fromkeys(before, batch))
    gone, more = sorted(before.keys() - set(here)), sorted(set(here) - before.keys())
    if gone:
        what = f"{gone[0].rsplit('/', 1)[-1]}, which batch {batch} read, is not in `{name}` at hand"
        raise SourceChangedError(what)
    if not more:
        return df
    if not (offers_file(df) and is_row_by_row(df)):
        what = f"{more[0].rsplit('/', 1)[-1]} came to `{name}` after batch {batch} had read it"
        raise SourceChangedError(what)
    return df.filter(F.expr(file_path()).isin(sorted(before)))


def rows_digest(df: DataFrame) -> str | None:
    """Digest the rows of a table, in any order; None if Spark cannot.

    A frame is digested once if its rows stand in its plan, where they stay as they are.
    """
    if df in _digests:
        return _digests[df]
    with quiet():
        try:
            found = _digest(df)
        except PySparkException:
            return None
    if is_fixed(df):
        _digests[df] = found
    return found


def _digest(df: DataFrame) -> str:
    # As text, since Spark does not hash every type.
    row = F.to_json(F.struct(*[F.col(quote(c)) for c in df.columns]), JSON)
    # Two hashes and sums, not an exclusive or: rows that are there twice must count.
    hashes = df.select(F.xxhash64(row).alias("one"), F.xxhash64(F.lit(1), row).alias("other"))
    sums = [F.sum(F.col(name).cast("decimal(38,0)")) for name in hashes.columns]
    [found] = hashes.agg(F.count("*"), *sums).collect()
    return hashlib.sha256(repr(tuple(found)).encode()).hexdigest()[:32]


def _table(source: Source) -> DataFrame | None:
    """Return the table of a source that is read whole, and not batch by batch."""
    again = source.again
    if not isinstance(again, Again):
        return None if source.df.isStreaming else source.df
    return None if again.is_stream else again.table


def _made_of(df: DataFrame, *, again: bool) -> Noted | None:
    kind = origins_of(df)
    if kind == "files":
        files = _files(df)
        if files:
            # Once: to ask other machines at each batch would take longer than many a batch.
            elsewhere = states_elsewhere(df.sparkSession, files) if again else {}
            return {"files": files, "elsewhere": elsewhere}
        # A frame that Spark holds in memory does not say its files.
    if kind == "unknown" or (kind == "mixed" and not again):
        return None  # only rows that all lie in memory does their owner vouch for
    return {"rows": rows_digest(df)} if again else {"rows": _NOT_LOOKED_AT}


def _noted(said: Noted) -> Noted:
    if "files" not in said:
        return said
    states = _look(said["files"], said["elsewhere"])
    return {"many": _summary(states)} if len(states) > _MANY else {"files": states}


def _files(df: DataFrame) -> list[str]:
    return sorted({normal_path(path) for path in df.inputFiles()})


def _look(files: Iterable[str], elsewhere: Mapping[str, FileState]) -> dict[str, list[int | None]]:
    found = {}
    for path in files:
        now = state_now(path) if is_local(path) else elsewhere.get(path)
        # A file that is not there has a length that no file has.
        found[path] = list(astuple(now or FileState(-1 if is_local(path) else None, None)))
    return found


def _summary(states: Mapping[str, list[int | None]]) -> list[Any]:
    text = json.dumps(states, sort_keys=True)
    return [len(states), hashlib.sha256(text.encode()).hexdigest()]
