"""One form for all values that Spark takes for equal.

Spark's hash is no guide to its equality: it sees the bytes of a string and not its collation, and
it refuses maps. So a key is hashed through a form that is equal exactly where `groupBy` finds the
keys equal. Numbers and times are their own form. Whatever has no fixed length (texts, and arrays
and maps of anything) is a text: somebody who chooses two of 16 bytes can give them the same fast
hash, whatever that begins with, so one half of an id takes texts through SHA-256. `parts_of` is
where to start.

A value is SQL or a `Column`, and its form is what the value was: SQL is one message to Spark
however long it is, and a key that was given as a `Column` cannot be written as SQL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from clew.exceptions import ColumnError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Value = Column | str

_NUMBERS = (
    T.IntegralType,
    T.FractionalType,
    T.BooleanType,
    T.DateType,
    T.TimestampType,
    T.TimestampNTZType,
    T.AnsiIntervalType,
    T.CalendarIntervalType,
)
_LONG_DIGITS = 18
_BINARY = "UTF8_BINARY"
_LCASE = "UTF8_LCASE"
_TRIMMED = "_RTRIM"
_NULL = "'n;'"
# Lower case of one capital letter, at the end of a word and elsewhere.
_FINAL_SIGMA, _SIGMA = "'\u03c2'", "'\u03c3'"
_VARIABLE = re.compile(r"_clew_x(\d+)")


@dataclass(frozen=True, slots=True)
class Part:
    """What is hashed for a value, or for a part of one.

    Attributes:
        value: A number, a flag, or bytes.
        whole: Of bytes, a text that tells them from null and has an end; None for a number.
    """

    value: Value
    whole: Value | None = None


def parts_of(value: Value, kind: T.DataType, *, finer: bool = False) -> list[Part]:
    """Write a value as what is hashed for it.

    Args:
        value: The value.
        kind: Its type.
        finer: Equal values may differ; two texts are then equal only if their bytes are.

    Raises:
        ColumnError: Spark alone can tell which values of the type are equal.
    """
    if isinstance(kind, T.StructType):
        # Leaf by leaf: a window's struct is on the hot path, and text would be slow there.
        leaves = [
            part
            for field in kind.fields
            for part in parts_of(_field(value, field.name), field.dataType, finer=finer)
        ]
        return [Part(_call("isnull", value)), *leaves]
    null = Part(_call("isnull", value))
    if _is_number(kind):
        return [Part(value), null]
    if isinstance(kind, T.NullType):
        return [null]
    return [Part(_bytes(value, kind, finer=finer), _whole(value, kind, finer=finer)), null]


def fast_hash(parts: Sequence[Part], before: int, behind: int) -> Value:
    """Hash parts quickly, with a secret on either side; texts can be chosen to collide."""
    return _call("xxhash64", _word(before), *[part.value for part in parts], _word(behind))


def strong_hash(parts: Sequence[Part], before: int, behind: int) -> Value:
    """Hash parts from the last to the first, with a secret on either side, texts by SHA-256.

    All texts go through it together: starting it is what takes the time.
    """
    texts = [part for part in parts if part.whole is not None]
    numbers = [part.value for part in reversed(parts) if part.whole is None]
    if not texts:
        return _call("xxhash64", _word(before), *numbers, _word(behind))
    data = texts[0].value
    if len(texts) > 1:
        wholes = [part.whole for part in texts if part.whole is not None]
        data = _cast(_call("concat", *wholes), "binary")
    return _call("xxhash64", _word(before), digest_of(data), *numbers, _word(behind))


def _word(number: int) -> str:
    """Write a part of a secret as the bytes of a number, which hash as the number does.

    Spark writes numbers into the code that it generates, and would compile it anew for each store;
    bytes are handed to the code from outside.
    """
    return f"X'{number.to_bytes(8, 'little', signed=True).hex()}'"


def text_of(values: Sequence[tuple[Value, T.DataType]]) -> Value:
    """Write values as one text, the same exactly where Spark takes them for equal.

    Args:
        values: The values, and their types.

    Raises:
        ColumnError: Spark alone can tell which values of a type are equal.
    """
    return _call("concat", *[_whole(value, kind, finer=False) for value, kind in values])


def digest_of(data: Value) -> Value:
    """Return the SHA-256 of bytes."""
    return _call("sha2", data, "256")


def _is_number(kind: T.DataType) -> bool:
    if isinstance(kind, T.DecimalType):
        return kind.precision <= _LONG_DIGITS  # a longer one is hashed as bytes, like a text
    return isinstance(kind, _NUMBERS) or kind.typeName() == "time"


def _bytes(value: Value, kind: T.DataType, *, finer: bool) -> Value:
    if isinstance(kind, T.BinaryType):
        return value
    if isinstance(kind, T.StringType):
        return _cast(_one_spelling(value, kind, finer=finer), "binary")
    return _cast(_text(value, kind, finer=finer), "binary")


def _text(value: Value, kind: T.DataType, *, finer: bool) -> Value:
    """Write a value as text from which it could be read again; null stays null."""
    if isinstance(kind, T.StringType):
        plain = _one_spelling(value, kind, finer=finer)
        return _call("concat", _cast(_call("octet_length", plain), "string"), "':'", plain)
    if isinstance(kind, T.ArrayType):
        return _listed(_transform(value, lambda x: _whole(x, kind.elementType, finer=finer)))
    if isinstance(kind, T.MapType):
        entries = _transform(_call("map_entries", value), _entry(kind, finer=finer))
        return _listed(_call("array_sort", entries))
    if isinstance(kind, T.StructType):
        fields = [_whole(_field(value, f.name), f.dataType, finer=finer) for f in kind.fields]
        return _call("if", _call("isnull", value), "NULL", _call("concat", "'('", *fields))
    if isinstance(kind, T.VariantType):
        return _call("concat", _call("schema_of_variant", value), _call("to_json", value))
    return _cast(_scalar(value, kind), "string")


def _scalar(value: Value, kind: T.DataType) -> Value:
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        # -0.0 and 0.0 are equal, and added to 0.0 both are 0.0.
        wide = _cast(value, "double")
        return f"({wide} + 0.0D)" if isinstance(wide, str) else wide + F.lit(0.0)
    if isinstance(kind, T.TimestampType):
        return _call("unix_micros", value)  # its text would be in the session's time zone
    if isinstance(kind, T.BinaryType):
        return _call("hex", value)
    return value


def _whole(value: Value, kind: T.DataType, *, finer: bool) -> Value:
    """Write a value, which may be null, so that what follows it cannot be taken for a part."""
    if isinstance(kind, T.NullType):
        return _NULL if isinstance(value, str) else F.lit("n;")
    return _call("coalesce", _call("concat", _text(value, kind, finer=finer), "';'"), _NULL)


def _entry(kind: T.MapType, *, finer: bool) -> Callable[[Value], Value]:
    def text(entry: Value) -> Value:
        key = _whole(_field(entry, "key"), kind.keyType, finer=finer)
        return _call("concat", key, _whole(_field(entry, "value"), kind.valueType, finer=finer))

    return text


def _listed(texts: Value) -> Value:
    count = _cast(_call("cardinality", texts), "string")
    return _call("concat", count, "'['", _call("array_join", texts, "''"), "']'")


def _one_spelling(value: Value, kind: T.StringType, *, finer: bool) -> Value:
    """Choose one of the spellings that a collation takes for equal."""
    collation = getattr(kind, "collation", _BINARY)
    if collation == _BINARY:
        return value
    plain = _call("collate", value, f"'{_BINARY}'")
    if finer:
        return plain
    if collation.endswith(_TRIMMED):
        plain, collation = _call("rtrim", plain), collation.removesuffix(_TRIMMED)
    if collation == _BINARY:
        return plain
    if collation == _LCASE:
        return _call("translate", _call("lower", plain), _FINAL_SIGMA, _SIGMA)
    msg = (
        f"a key has the collation `{kind.collation}`, and only Spark's own operators know which "
        "texts it takes for equal, so rows cannot be found again by such a key.\n\nUse a "
        f'collation whose rule is known: `F.collate("key", "{_LCASE}")` to ignore case, or '
        f'`F.collate("key", "{_BINARY}")` for texts that are equal byte by byte.'
    )
    raise ColumnError(msg)


def _call(function: str, *arguments: Value) -> Value:
    texts = [each for each in arguments if isinstance(each, str)]
    if len(texts) == len(arguments):
        return f"{function}({', '.join(texts)})"
    columns = [F.expr(each) if isinstance(each, str) else each for each in arguments]
    return F.call_function(function, *columns)


def _cast(value: Value, kind: str) -> Value:
    return f"CAST({value} AS {kind})" if isinstance(value, str) else value.cast(kind)


def _field(value: Value, name: str) -> Value:
    if isinstance(value, str):
        return f"({value})." + "`" + name.replace("`", "``") + "`"
    return value.getField(name)


def _transform(array: Value, change: Callable[[Value], Value]) -> Value:
    if not isinstance(array, str):
        return F.transform(array, lambda x: F.concat(change(x)))
    # A list inside another's element is named by the element: the next number is free there.
    outer = [int(number) for number in _VARIABLE.findall(array)]
    name = f"_clew_x{max(outer, default=-1) + 1}"
    return f"transform({array}, {name} -> {change(name)})"
