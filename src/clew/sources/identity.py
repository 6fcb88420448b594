"""Where a source row's id comes from.

An id has a segment and a position in it. Both must be the same whenever the row is read again, at
any parallelism and batch size, so only what the source itself keeps is used: never
`monotonically_increasing_id`, which changes when a task is retried. `choose_identity` looks at
what a frame offers and takes the strongest; the user can name another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.errors import AnalysisException
from pyspark.sql import types as T

from clew.exceptions import IdentityError
from clew.plan.columns import id_texts, quote, segment_hash
from clew.plan.sql import quiet
from clew.sources.origins import keeps_columns_of_kafka, keeps_rows_single

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

KEPT_A = "_clew_kept_a"
KEPT_B = "_clew_kept_b"
KEPT_SEGMENT = "_clew_kept_segment"
KEPT_TIME = "_clew_kept_time"


@dataclass(frozen=True, slots=True)
class Identity(ABC):
    """How the rows of a source are told apart."""

    kind: ClassVar[str]
    segment: ClassVar[str]
    position: ClassVar[str]
    unique: ClassVar[bool] = True
    by_segment: ClassVar[bool] = False
    """The first half of the id is `segment_hash` of the segment's readable name."""
    number: ClassVar[str | None] = None
    """The row's number in its segment, as SQL, if that is the second half of the id."""

    @abstractmethod
    def columns(self, schema: StructType) -> tuple[str, str, str]:
        """Return the two halves of the id and the segment's readable name, as SQL."""

    def named_by(self) -> tuple[str, ...]:
        """List the columns whose values the segment's readable name shows."""
        return ()

    def describe(self) -> dict[str, object]:
        """Write the identity as plain data, for the store and for people."""
        return {
            "kind": self.kind,
            "segment": self.segment,
            "position": self.position,
            "unique": self.unique,
        }

    def __str__(self) -> str:
        note = "" if self.unique else " (equal rows are one row)"
        return f"{self.kind}: {self.segment}, {self.position}{note}"


@dataclass(frozen=True, slots=True)
class KafkaIdentity(Identity):
    """Topic, partition and offset of a Kafka record."""

    kind = "kafka"
    segment = "topic-partition"
    position = "offset"
    by_segment = True
    number = "`offset`"

    def columns(self, schema: StructType) -> tuple[str, str, str]:
        part = "concat_ws('-', topic, `partition`)"
        return segment_hash(part), self.number, part


@dataclass(frozen=True, slots=True)
class ParquetIdentity(Identity):
    """File and row number in it."""

    kind = "parquet"
    segment = "file"
    position = "row_index"
    by_segment = True
    number = "_metadata.row_index"

    def columns(self, schema: StructType) -> tuple[str, str, str]:
        path = file_path()
        return segment_hash(path), self.number, path


@dataclass(frozen=True, slots=True)
class FileIdentity(Identity):
    """File, block and content, for formats that do not number their rows."""

    kind = "file"
    segment = "file and block"
    position = "hash of the content"
    unique = False
    by_segment = True

    def columns(self, schema: StructType) -> tuple[str, str, str]:
        path = file_path()
        _, b = id_texts([(quote(f.name), f.dataType) for f in schema.fields], finer=True)
        return segment_hash(path), b, path


@dataclass(frozen=True, slots=True)
class DeltaIdentity(Identity):
    """The row id that Delta's row tracking keeps."""

    kind = "delta"
    segment = "table"
    position = "_metadata.row_id"

    def columns(self, schema: StructType) -> tuple[str, str, str]:
        return "0L", "_metadata.row_id", "'row'"


@dataclass(frozen=True, slots=True)
class IcebergIdentity(Identity):
    """The row id that Iceberg's row lineage keeps."""

    kind = "iceberg"
    segment = "table"
    position = "_row_id"

    def columns(self, schema: StructType) -> tuple[str, str, str]:
        return "0L", "_row_id", "'row'"


_IS_ID = "clew_id RLIKE '^[0-9a-f]{32}$'"
_NO_IDS = (
    "the column `clew_id` holds something else than ids of clew, so rows cannot be told apart by "
    "it. Rename it before `clew.trace`, or say what tells rows apart: "
    '`clew.trace(df, "name", id=["column"])`, or `id="content"`.'
)


@dataclass(frozen=True, slots=True)
class ClewIdentity(Identity):
    """The id that another traced query left in its sink, so answers go on through it."""

    kind = "clew"
    segment = "clew_id"
    position = "clew_id"

    def columns(self, schema: StructType) -> tuple[str, str, str]:
        # Whether all of a column are ids is known when its rows are read, not before.
        checked = f"CASE WHEN {_IS_ID} THEN clew_id ELSE raise_error('{_NO_IDS}') END"
        return _half(checked, 1), _half(checked, 17), "CAST(NULL AS STRING)"


@dataclass(frozen=True, slots=True)
class KeyIdentity(Identity):
    """Columns that the user says are unique."""

    keys: tuple[str, ...]
    kind = "key"
    segment = "key"
    position = "hash of the key"

    def columns(self, schema: StructType) -> tuple[str, str, str]:
        fields = {f.name: f for f in schema.fields}
        a, b = id_texts([(quote(k), fields[k].dataType) for k in self.keys], finer=True)
        texts = [f"coalesce(CAST({quote(k)} AS STRING), 'null')" for k in self.keys]
        return a, b, f"concat_ws(',', {', '.join(texts)})"

    def named_by(self) -> tuple[str, ...]:
        return self.keys

    def describe(self) -> dict[str, object]:
        return {**super(KeyIdentity, self).describe(), "keys": list(self.keys)}

    def __str__(self) -> str:
        return f"key: {', '.join(self.keys)}"


@dataclass(frozen=True, slots=True)
class ContentIdentity(Identity):
    """A hash of all columns: the last resort, by which equal rows are one row."""

    kind = "content"
    segment = "content"
    position = "hash of the content"
    unique = False

    def columns(self, schema: StructType) -> tuple[str, str, str]:
        a, b = id_texts([(quote(f.name), f.dataType) for f in schema.fields], finer=True)
        return a, b, "CAST(NULL AS STRING)"


@dataclass(frozen=True, slots=True)
class KeptIdentity(Identity):
    """The id that a connection point kept with each row."""

    kind = "kept"
    segment = KEPT_SEGMENT
    position = KEPT_B

    def columns(self, schema: StructType) -> tuple[str, str, str]:
        return KEPT_A, KEPT_B, KEPT_SEGMENT


_BY_NAME: dict[str, type[Identity]] = {
    each.kind: each
    for each in (
        KafkaIdentity,
        ParquetIdentity,
        FileIdentity,
        DeltaIdentity,
        IcebergIdentity,
        ClewIdentity,
        ContentIdentity,
    )
}


def identity_from(said: Mapping[str, Any]) -> Identity:
    """Read an identity that was written by `describe`."""
    kind = said["kind"]
    return KeyIdentity(tuple(said["keys"])) if kind == KeyIdentity.kind else _BY_NAME[kind]()


_KAFKA = {"topic": T.StringType, "partition": T.IntegerType, "offset": T.LongType}


def choose_identity(df: DataFrame, wanted: str | Sequence[str] | None) -> Identity:
    """Pick how the rows of a source are told apart.

    Args:
        df: The source.
        wanted: The name of a kind (`"kafka"`, `"parquet"`, `"file"`, `"delta"`, `"iceberg"`,
            `"clew"`, `"content"`), a list of key columns, or None for the strongest on offer.

    Raises:
        IdentityError: The source does not offer what was asked for.
    """
    if wanted is None or isinstance(wanted, str):
        found = _strongest(df) if wanted is None else _by_name(df, wanted)
        if isinstance(found, ClewIdentity) and not df.isStreaming:
            first = df.selectExpr(f"coalesce({_IS_ID}, false)").head()
            if first is not None and not first[0]:
                raise IdentityError(_NO_IDS)
        return found
    keys = tuple(wanted)
    missing = [key for key in keys if key not in df.columns]
    if missing or not keys:
        what = f"has no column `{missing[0]}`" if missing else "was given no key column"
        msg = (
            f"the source {what}; its columns are {', '.join(f'`{c}`' for c in df.columns)}.\n\n"
            'Name the columns that identify a row: `clew.trace(df, "name", id=["column"])`.'
        )
        raise IdentityError(msg)
    return KeyIdentity(keys)


def _by_name(df: DataFrame, wanted: str) -> Identity:
    if wanted not in _BY_NAME:
        msg = (
            f"`id={wanted!r}` is not a kind of row identity; the kinds are "
            f"{', '.join(repr(k) for k in _BY_NAME)}.\n\n"
            f'To use a column as key write a list: `id=["{wanted}"]`.'
        )
        raise IdentityError(msg)
    identity = _BY_NAME[wanted]()
    if not _offers(df, identity):
        msg = (
            f"the source has no {identity.segment} and {identity.position}, which "
            f"`id={wanted!r}` needs. They are lost when columns are selected or rows are "
            "transformed before `clew.trace`.\n\n"
            "Trace the source as it is read, and transform the traced frame; or name key columns: "
            '`clew.trace(df, "name", id=["column"])`.'
        )
        raise IdentityError(msg)
    return identity


def _strongest(df: DataFrame) -> Identity:
    order = (ClewIdentity, KafkaIdentity, DeltaIdentity, IcebergIdentity, ParquetIdentity)
    for kind in (*order, FileIdentity):
        if _offers(df, kind()) and (kind is ClewIdentity or not may_repeat(kind(), df)):
            return kind()
    return ContentIdentity()


def may_repeat(identity: Identity, df: DataFrame) -> bool:
    """Tell whether different rows may have one id: only somebody's word says that they do not."""
    if not identity.unique or isinstance(identity, KeptIdentity):
        return False
    if isinstance(identity, KafkaIdentity):
        # Records that were landed elsewhere have the columns, too, and may be there twice.
        return not keeps_columns_of_kafka(df)
    return isinstance(identity, KeyIdentity | ClewIdentity) or not keeps_rows_single(df)


def _offers(df: DataFrame, identity: Identity) -> bool:
    types = {f.name: f.dataType for f in df.schema.fields}
    if isinstance(identity, ClewIdentity):
        return isinstance(types.get("clew_id"), T.StringType)
    if isinstance(identity, KafkaIdentity):
        return all(isinstance(types.get(name), kind) for name, kind in _KAFKA.items())
    if isinstance(identity, DeltaIdentity):
        return _resolves(df, "_metadata.row_id")
    if isinstance(identity, IcebergIdentity):
        return _resolves(df, "_row_id") and "_row_id" not in types
    if isinstance(identity, ParquetIdentity):
        return _resolves(df, "_metadata.row_index")
    if isinstance(identity, FileIdentity):
        return _resolves(df, "_metadata.file_path")
    return True


def offers_file(df: DataFrame) -> bool:
    """Tell whether the rows of a frame know the file they come from."""
    return _resolves(df, "_metadata.file_path")


def _resolves(df: DataFrame, name: str) -> bool:
    if name.split(".", maxsplit=1)[0] in df.columns:
        return False
    with quiet():
        try:
            return bool(df.select(name).columns)
        except AnalysisException:
            return False


def file_path() -> str:
    """Refer to the file of a row, spelled the same in streams and batch reads, as SQL."""
    # A stream says `file:/data`, a batch read `file:///data`, of the same file.
    path = "_metadata.file_path"
    short = f"concat('file:/', substring({path}, 9))"
    return f"CASE WHEN startswith({path}, 'file:///') THEN {short} ELSE {path} END"


def _half(text: str, start: int) -> str:
    # Sixteen hexadecimal digits are an unsigned number; the id is the signed one of the same bits.
    low = f"CAST(conv(substring({text}, {start + 8}, 8), 16, 10) AS BIGINT)"
    high = f"CAST(conv(substring({text}, {start}, 8), 16, 10) AS BIGINT)"
    return f"(shiftleft({high}, 32) | {low})"
