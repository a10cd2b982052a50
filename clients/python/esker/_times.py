"""Dates and times as ISO texts, in the forms that docs/reference/types.md has."""

from __future__ import annotations

import datetime
import re
from typing import Any, Optional

_DATE = "([0-9]{4})-([0-9]{2})-([0-9]{2})"
_TIME = "([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.]([0-9]{1,6})0*)?)?"
_OFFSET = "(?:Z|z|([+-])([0-9]{2}):?([0-9]{2})?)"
_DATE_TEXT = re.compile(_DATE)
_TIME_TEXT = re.compile(_TIME)
_TIMESTAMP_TEXT = re.compile(f"{_DATE}(?:[T ]{_TIME} ?{_OFFSET}?)?")


def _microsecond(digits: Optional[str]) -> int:
    return int((digits or "0").ljust(6, "0"))


def date(text: str) -> Optional[datetime.date]:
    """The date that a text is.

    >>> date("2024-02-29"), date("2024-02-30")
    (datetime.date(2024, 2, 29), None)
    """
    found = _DATE_TEXT.fullmatch(text)
    if found is None:
        return None
    try:
        return datetime.date(*map(int, found.groups()))
    except ValueError:
        return None


def time(text: str) -> Optional[datetime.time]:
    """The time of a day that a text is.

    >>> time("05:17"), time("05:17:00.25"), time("24:00")
    (datetime.time(5, 17), datetime.time(5, 17, 0, 250000), None)
    """
    found = _TIME_TEXT.fullmatch(text)
    if found is None:
        return None
    hour, minute, second, digits = found.groups()
    try:
        return datetime.time(int(hour), int(minute), int(second or 0), _microsecond(digits))
    except ValueError:
        return None


def timestamp(text: str) -> Optional[datetime.datetime]:
    """The timestamp that a text is. Without an offset it is UTC, without a time midnight.

    >>> str(timestamp("2024-02-29T12:30:00.5+02:00")), str(timestamp("2024-02-29"))
    ('2024-02-29 10:30:00.500000+00:00', '2024-02-29 00:00:00+00:00')
    """
    found = _TIMESTAMP_TEXT.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second, digits, sign, hours, minutes = found.groups()
    try:
        if int(hours or 0) > 23 or int(minutes or 0) > 59:
            return None
        offset = datetime.timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
        local = datetime.datetime(
            int(year),
            int(month),
            int(day),
            int(hour or 0),
            int(minute or 0),
            int(second or 0),
            _microsecond(digits),
            datetime.timezone.utc,
        )
        return local + offset if sign == "-" else local - offset
    except (ValueError, OverflowError):
        return None


def text(value: Any) -> Any:
    """A date, time or timestamp as an ISO text; anything else as it is.

    >>> text(datetime.date(2024, 2, 29)), text(5)
    ('2024-02-29', 5)
    """
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return value
