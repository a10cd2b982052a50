"""Values of numpy and pandas, by what they can do: neither is imported."""

from __future__ import annotations

import datetime
import operator
from typing import Any, Union

from ._errors import EskerError

_WHOLE_DAYS = ("[D]", "[W]", "[M]", "[Y]")


class Days(int):
    """A date that Python has no name for: days since 1970-01-01."""


class Microseconds(int):
    """A timestamp that Python has no name for: microseconds since 1970."""


class Interval(str):
    """Months, days and microseconds as text: ``Interval("1 mon 3 days 04:05:06")``."""


def is_scalar(value: Any) -> bool:
    """True of a numpy scalar, and of an array without dimensions."""
    return hasattr(value, "dtype") and hasattr(value, "item") and getattr(value, "ndim", None) == 0


def is_array(value: Any) -> bool:
    """True of a numpy array with one dimension or more."""
    return hasattr(value, "dtype") and hasattr(value, "tolist") and getattr(value, "ndim", 0) >= 1


def is_datetime64(value: Any) -> bool:
    """True of a timestamp or a date of numpy."""
    return is_scalar(value) and bool(value.dtype.kind == "M")


def plain(value: Any) -> Any:
    """The value of Python that a value of another library is; ``None`` for what is missing."""
    kind = type(value)
    if kind.__name__ == "NAType" and kind.__module__.partition(".")[0] == "pandas":
        return None
    if isinstance(value, datetime.timedelta) or (is_scalar(value) and value.dtype.kind == "m"):
        raise TypeError("expected a value that a field can have, found a duration: send a number")
    if is_datetime64(value):
        return _of_datetime64(value)
    if is_scalar(value):
        found = value.item()
        if type(found) is not kind:
            return found
    elif hasattr(kind, "__index__"):
        return operator.index(value)
    hint = ": send its tolist()" if is_array(value) else ""
    raise TypeError(f"expected a value that a field can have, found {kind.__name__}{hint}")


def _of_datetime64(value: Any) -> Union[None, Days, Microseconds]:
    if value != value:
        return None
    if value.dtype.str.endswith(_WHOLE_DAYS):
        return Days(value.astype("M8[D]").astype("i8"))
    try:
        fitted = value.astype("M8[us]")
        is_fitting = bool(fitted.astype(value.dtype) == value)
    except OverflowError:
        is_fitting = False
    if not is_fitting:
        raise EskerError(
            "invalid_request", f"expected a timestamp in whole microseconds, found {value}"
        )
    return Microseconds(fitted.astype("i8"))


def plain_datetime(value: datetime.datetime) -> Union[None, datetime.datetime]:
    """The datetime that one of pandas is; ``None`` for its NaT."""
    if value != value:
        return None
    convert = getattr(value, "to_pydatetime", None)
    if convert is None:
        return value
    if getattr(value, "nanosecond", 0):
        raise EskerError(
            "invalid_request", f"expected a timestamp in whole microseconds, found {value}"
        )
    found: datetime.datetime = convert()
    return found
