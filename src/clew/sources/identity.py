"""Where a source row's id comes from.

An id has a segment and a position in it. Both must be the same whenever the row is read again, at
any parallelism and batch size, so only what the source itself keeps is used: never
`monotonically_increasing_id`, which changes when a task is retried. `choose_identity` looks at
what a frame offers and takes the strongest; the user can name another.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql import types as T

from clew.exceptions import IdentityError
from clew.graph.columns import identify, named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame
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

    @abstractmethod
    def columns(self, schema: StructType) -> tuple[Column, Column, Column]:
        """Return the two halves of the id and the segment's readable name."""

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

    def columns(self, schema: StructType) -> tuple[Column, Column, Column]:
        name = F.concat_ws("-", F.col("topic"), F.col("partition").cast("string"))
        return F.xxhash64(F.col("topic"), F.col("partition")), F.col("offset"), name


@dataclass(frozen=True, slots=True)
class ParquetIdentity(Identity):
    """File and row number in it."""

    kind = "parquet"
    segment = "file"
    position = "row_index"

    def columns(self, schema: StructType) -> tuple[Column, Column, Column]:
        path = file_path()
        return F.xxhash64(path), F.col("_metadata.row_index"), path


@dataclass(frozen=True, slots=True)
class FileIdentity(Identity):
    """File, block and content, for formats that do not number their rows."""

    kind = "file"
    segment = "file and block"
    position = "hash of the content"
    unique = False

    def columns(self, schema: StructType) -> tuple[Column, Column, Column]:
        path = file_path()
        _, b = identify([(named(f.name), f.dataType) for f in schema.fields])
        return F.xxhash64(path), b, path


@dataclass(frozen=True, slots=True)
class DeltaIdentity(Identity):
    """The row id that Delta's row tracking keeps."""

    kind = "delta"
    segment = "table"
    position = "_metadata.row_id"

    def columns(self, schema: StructType) -> tuple[Column, Column, Column]:
        return F.lit(0).cast("bigint"), F.col("_metadata.row_id"), F.lit("row")


@dataclass(frozen=True, slots=True)
class IcebergIdentity(Identity):
    """The row id that Iceberg's row lineage keeps."""

    kind = "iceberg"
    segment = "table"
    position = "_row_id"

    def columns(self, schema: StructType) -> tuple[Column, Column, Column]:
        return F.lit(0).cast("bigint"), F.col("_row_id"), F.lit("row")


@dataclass(frozen=True, slots=True)
class ClewIdentity(Identity):
    """The id that another traced query left in its sink, so answers go on through it."""

    kind = "clew"
    segment = "clew_id"
    position = "clew_id"

    def columns(self, schema: StructType) -> tuple[Column, Column, Column]:
        text = F.col("clew_id")
        return _half(text, 1), _half(text, 17), F.lit(None).cast("string")


@dataclass(frozen=True, slots=True)
class KeyIdentity(Identity):
    """Columns that the user says are unique."""

    keys: tuple[str, ...]
    kind = "key"
    segment = "key"
    position = "hash of the key"

    def columns(self, schema: StructType) -> tuple[Column, Column, Column]:
        fields = {f.name: f for f in schema.fields}
        a, b = identify([(named(k), fields[k].dataType) for k in self.keys])
        texts = [F.coalesce(named(k).cast("string"), F.lit("null")) for k in self.keys]
        return a, b, F.concat_ws(",", *texts)

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

    def columns(self, schema: StructType) -> tuple[Column, Column, Column]:
        a, b = identify([(named(f.name), f.dataType) for f in schema.fields])
        return a, b, F.lit(None).cast("string")


@dataclass(frozen=True, slots=True)
class KeptIdentity(Identity):
    """The id that a connection point kept with each row."""

    kind = "kept"
    segment = KEPT_SEGMENT
    position = KEPT_B

    def columns(self, schema: StructType) -> tuple[Column, Column, Column]:
        return F.col(KEPT_A), F.col(KEPT_B), F.col(KEPT_SEGMENT)


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
    if wanted is None:
        return _strongest(df)
    if isinstance(wanted, str):
        return _by_name(df, wanted)
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
        if _offers(df, kind()):
            return kind()
    return ContentIdentity()


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
    logger = logging.getLogger("DataFrameQueryContextLogger")
    was_disabled = logger.disabled
    # PySpark logs every failed analysis; here a failure is only an answer.
    logger.disabled = True
    try:
        return bool(df.select(name).columns)
    except AnalysisException:
        return False
    finally:
        logger.disabled = was_disabled


def file_path() -> Column:
    """Refer to the file of a row, spelled the same in streams and batch reads."""
    # A stream says `file:/data`, a batch read `file:///data`, of the same file.
    path = F.col("_metadata.file_path")
    short = F.concat(F.lit("file:/"), F.substring(path, 9, 1 << 20))
    return F.when(path.startswith("file:///"), short).otherwise(path)


def _half(text: Column, start: int) -> Column:
    # Sixteen hexadecimal digits are an unsigned number; the id is the signed one of the same bits.
    low = F.conv(F.substring(text, start + 8, 8), 16, 10).cast("bigint")
    high = F.conv(F.substring(text, start, 8), 16, 10).cast("bigint")
    return F.shiftleft(high, 32).bitwiseOR(low)
