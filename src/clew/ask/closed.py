"""How much each value moves an aggregate, in closed form.

The influence of a row is the aggregate of all rows less the aggregate without it. For the five
aggregates here that needs no second look at the rows: a sum moves by the value, a count by one, an
average by its distance from the mean, shared among the others; a minimum or maximum only by the one
row that holds it, to the next value. Nulls move nothing, as they do in SQL. In Spark `NaN` is the
largest number of all, so it is here.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

Number = int | float | Decimal
Amount = Number | None

_CLOSE = 1e-9


def is_number(value: object) -> bool:
    """Tell whether a value is a number; truth values are none."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def is_finite(value: Amount) -> bool:
    """Tell whether a value can be counted with: neither null nor `NaN` nor infinite."""
    return value is not None and math.isfinite(value)


def influences(function: str, amounts: Sequence[Amount]) -> list[Amount]:
    """Return by how much an aggregate is larger because of each value.

    Args:
        function: `sum`, `count`, `avg`, `min` or `max`.
        amounts: The values; nulls are not aggregated. For `count`, what is counted.

    Returns:
        The influences, in the same order; None where nothing would be left without the value.

    Examples:
        >>> influences("sum", [3, None, -1])
        [3, 0, -1]
        >>> influences("avg", [1, 2, 6])
        [-1.0, -0.5, 1.5]
        >>> influences("max", [4, 9, 7])
        [0, 2, 0]
        >>> influences("min", [4, 9, 7])
        [-3, 0, 0]
    """
    if function == "count":
        return [0 if each is None else 1 for each in amounts]
    if function == "sum":
        return [0 if each is None else each for each in amounts]
    if function == "avg":
        return _of_average(amounts)
    return _of_extreme(amounts, largest=function == "max")


def _of_average(amounts: Sequence[Amount]) -> list[Amount]:
    values = [each for each in amounts if each is not None]
    others = len(values) - 1
    if others < 1:
        return [0 if each is None else None for each in amounts]
    mean = aggregate("avg", amounts)
    assert mean is not None
    if isinstance(mean, Decimal):
        return [0 if x is None else (Decimal(x) - mean) / others for x in amounts]
    return [0 if x is None else (float(x) - mean) / others for x in amounts]


def _of_extreme(amounts: Sequence[Amount], *, largest: bool) -> list[Amount]:
    places = [i for i, each in enumerate(amounts) if each is not None]
    out: list[Amount] = [0] * len(amounts)
    if not places:
        return out
    places.sort(key=lambda i: _rank(amounts[i]), reverse=largest)
    first, *rest = places
    if not rest:
        out[first] = None
        return out
    best, second = amounts[first], amounts[rest[0]]
    # Without the one the other holds: between equal values it makes no difference which is gone.
    if _rank(best) != _rank(second):
        moved = best - second  # type: ignore[operator]
        out[first] = moved if math.isfinite(moved) else None
    return out


def aggregate(function: str, amounts: Sequence[Amount]) -> Amount:
    """Aggregate values as Spark does; null if there are none, but for `count`."""
    values = [each for each in amounts if each is not None]
    if function == "count":
        return len(values)
    if not values:
        return None
    if function in ("min", "max"):
        return (max if function == "max" else min)(values, key=_rank)
    if any(isinstance(each, float) for each in values):
        total: Number = _float_sum([float(each) for each in values])
    else:
        total = sum(values)
    if function == "sum":
        return total
    return total / len(values)


def agrees(function: str, amounts: Sequence[Amount], result: Amount) -> bool:
    """Tell whether values give a result, as exactly as Spark computes it.

    Integers, decimals and what is chosen must be equal. Floating-point numbers may be added up in
    another order, and the average of decimals is rounded.
    """
    found = aggregate(function, amounts)
    if found is None or result is None:
        return found is None and result is None
    if function in ("min", "max", "count"):
        return _rank(found) == _rank(result)
    if not math.isfinite(found) or not math.isfinite(result):
        return _rank(found) == _rank(result)
    if function == "sum" and not isinstance(found, float) and not isinstance(result, float):
        return found == result
    sizes = [abs(float(each)) for each in amounts if each is not None]
    scale = sum(sizes) if function == "sum" else sum(sizes) / len(sizes)
    return abs(float(found) - float(result)) <= _CLOSE * scale + _rounding(result)


def _rounding(result: Number) -> float:
    """Return by how much a decimal may have been rounded: half of its last digit."""
    if not isinstance(result, Decimal):
        return 0.0
    exponent = result.as_tuple().exponent
    return 0.5 * 10.0**exponent if isinstance(exponent, int) else 0.0


def _float_sum(values: Sequence[float]) -> float:
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):  # infinities of both signs, or too large a sum
        return sum(values)


def _rank(value: Amount) -> tuple[bool, Number]:
    assert value is not None
    return (True, 0) if math.isnan(value) else (False, value)
