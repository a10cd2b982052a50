"""MessagePack as the wire protocol has it: the plain types, and extensions for the rest.

The table of extensions is in docs/reference/wire.md, "Values".
"""

from __future__ import annotations

import datetime
import decimal
import functools
import ipaddress
import json
import struct
import uuid
from typing import Any, Callable, Dict, Optional

from . import _scalars as scalars
from ._codec import Codec
from ._errors import EskerError
from ._scalars import Days, Interval, Microseconds

EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
MICROSECOND = datetime.timedelta(microseconds=1)
# Of a decimal.
_DIGITS_MAX = 38


def _invalid(message: str) -> EskerError:
    return EskerError("invalid_request", message)


class Json:
    """A value that is sent as JSON, whatever it is: ``Json("x")`` is the string of a document.

    Lists and dictionaries are sent as JSON by themselves.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"Json({self.value!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Json) and self.value == other.value

    def __hash__(self) -> int:
        # Equal values may be written differently: 1 and 1.0, or names in another order.
        return hash(Json)


Packers = Dict[type, Callable[[bytearray, Any], None]]


def pack(out: bytearray, value: Any, packers: "Optional[Packers]" = None) -> None:
    """Appends a value.

    >>> out = bytearray()
    >>> for value in (None, True, 300, "ä"):
    ...     pack(out, value)
    >>> out.hex()
    'c0c3cd012ca2c3a4'
    """
    chosen = _PACKERS if packers is None else packers
    packer = chosen.get(type(value))
    if packer is None:
        for known, candidate in chosen.items():
            if isinstance(value, known):
                packer = candidate
                break
        else:
            pack(out, scalars.plain(value), packers)
            return
    packer(out, value)


def _pack_none(out: bytearray, _: None) -> None:
    out.append(0xC0)


def _pack_bool(out: bytearray, value: bool) -> None:
    out.append(0xC3 if value else 0xC2)


def _pack_int(out: bytearray, value: int) -> None:
    if 0 <= value < 0x80:
        out.append(value)
    elif -0x20 <= value < 0:
        out.append(value + 0x100)
    elif 0 <= value:
        if value < 1 << 8:
            out += struct.pack(">BB", 0xCC, value)
        elif value < 1 << 16:
            out += struct.pack(">BH", 0xCD, value)
        elif value < 1 << 32:
            out += struct.pack(">BI", 0xCE, value)
        elif value < 1 << 64:
            out += struct.pack(">BQ", 0xCF, value)
        else:
            _pack_long(out, value)
    elif value >= -(1 << 7):
        out += struct.pack(">Bb", 0xD0, value)
    elif value >= -(1 << 15):
        out += struct.pack(">Bh", 0xD1, value)
    elif value >= -(1 << 31):
        out += struct.pack(">Bi", 0xD2, value)
    elif value >= -(1 << 63):
        out += struct.pack(">Bq", 0xD3, value)
    else:
        _pack_long(out, value)


def _pack_long(out: bytearray, value: int) -> None:
    """An integer that only a decimal can hold."""
    if abs(value) >= 10**_DIGITS_MAX:
        raise _invalid(
            f"expected a number of at most {_DIGITS_MAX} digits, "
            f"found an integer of {value.bit_length()} bits"
        )
    pack_extension(out, 7, str(value).encode())


def _pack_float(out: bytearray, value: float) -> None:
    out += struct.pack(">Bd", 0xCB, value)


def _pack_str(out: bytearray, value: str) -> None:
    try:
        data = value.encode()
    except UnicodeEncodeError as e:
        raise _invalid(f"expected a text that UTF-8 has: {e}") from e
    size = len(data)
    if size < 32:
        out.append(0xA0 | size)
    elif size < 1 << 8:
        out += struct.pack(">BB", 0xD9, size)
    elif size < 1 << 16:
        out += struct.pack(">BH", 0xDA, size)
    else:
        out += struct.pack(">BI", 0xDB, size)
    out += data


def _pack_bytes(out: bytearray, value: Any) -> None:
    data = bytes(value)
    size = len(data)
    if size < 1 << 8:
        out += struct.pack(">BB", 0xC4, size)
    elif size < 1 << 16:
        out += struct.pack(">BH", 0xC5, size)
    else:
        out += struct.pack(">BI", 0xC6, size)
    out += data


def pack_array_head(out: bytearray, count: int) -> None:
    """Appends the beginning of an array of so many values."""
    if count < 16:
        out.append(0x90 | count)
    elif count < 1 << 16:
        out += struct.pack(">BH", 0xDC, count)
    else:
        out += struct.pack(">BI", 0xDD, count)


def pack_array(out: bytearray, values: Any, packers: Optional[Packers] = None) -> None:
    """Appends an array: a list that is sent as a value by itself is JSON, see :func:`pack`."""
    pack_array_head(out, len(values))
    for value in values:
        pack(out, value, packers)


def pack_map_head(out: bytearray, count: int) -> None:
    """Appends the beginning of a map of so many names and values."""
    if count < 16:
        out.append(0x80 | count)
    elif count < 1 << 16:
        out += struct.pack(">BH", 0xDE, count)
    else:
        out += struct.pack(">BI", 0xDF, count)


def pack_map(
    out: bytearray, values: Dict[str, Any], packers: Optional[Packers] = None
) -> None:
    """Appends a map of names and values."""
    pack_map_head(out, len(values))
    for name, value in values.items():
        pack(out, name)
        pack(out, value, packers)


_FIXED = {1: 0xD4, 2: 0xD5, 4: 0xD6, 8: 0xD7, 16: 0xD8}


def pack_extension(out: bytearray, kind: int, data: bytes) -> None:
    """Appends a value of an extension type."""
    size = len(data)
    fixed = _FIXED.get(size)
    if fixed is not None:
        out += struct.pack(">BB", fixed, kind)
    elif size < 1 << 8:
        out += struct.pack(">BBB", 0xC7, size, kind)
    elif size < 1 << 16:
        out += struct.pack(">BHB", 0xC8, size, kind)
    else:
        out += struct.pack(">BIB", 0xC9, size, kind)
    out += data


def _pack_date(out: bytearray, value: datetime.date) -> None:
    pack_extension(out, 1, struct.pack(">i", value.toordinal() - EPOCH_DAY))


def _pack_number(out: bytearray, kind: int, form: str, value: int) -> None:
    try:
        pack_extension(out, kind, struct.pack(form, value))
    except struct.error as e:
        size = 8 * struct.calcsize(form)
        found = value.bit_length() + 1  # One is for the sign.
        raise _invalid(f"expected a number of {size} bits, found one of {found}") from e


def _pack_days(out: bytearray, value: Days) -> None:
    _pack_number(out, 1, ">i", int(value))


def _pack_datetime(out: bytearray, value: datetime.datetime) -> None:
    plain = scalars.plain_datetime(value)
    if plain is None:
        _pack_none(out, None)
        return
    if plain.utcoffset() is None:
        raise _invalid(f"expected a datetime with a zone, such as timezone.utc, found {value}")
    pack_extension(out, 2, struct.pack(">q", (plain - EPOCH) // MICROSECOND))


def _pack_naive_datetime(out: bytearray, value: datetime.datetime) -> None:
    """One without a zone is UTC."""
    plain = scalars.plain_datetime(value)
    if plain is not None and plain.utcoffset() is None:
        plain = plain.replace(tzinfo=datetime.timezone.utc)
    if plain is None:
        _pack_none(out, None)
    else:
        _pack_datetime(out, plain)


def _pack_microseconds(out: bytearray, value: Microseconds) -> None:
    _pack_number(out, 2, ">q", int(value))


def _pack_time(out: bytearray, value: datetime.time) -> None:
    if value.tzinfo is not None:
        raise _invalid(f"expected a time without a zone, found {value}")
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    pack_extension(out, 3, struct.pack(">q", seconds * 1_000_000 + value.microsecond))


def _pack_decimal(out: bytearray, value: decimal.Decimal) -> None:
    if not value.is_finite():
        raise _invalid(f"expected a decimal, found {value}")
    # What is too long is not written out to find that.
    exponent = value.as_tuple().exponent
    if not value and not -_DIGITS_MAX < int(exponent) < _DIGITS_MAX:
        value, exponent = decimal.Decimal(0), 0
    if value.adjusted() >= _DIGITS_MAX or not -2 * _DIGITS_MAX <= int(exponent) <= _DIGITS_MAX:
        raise _invalid(f"expected a decimal of at most {_DIGITS_MAX} digits, found {value}")
    pack_extension(out, 7, format(value, "f").encode())


def _pack_json(out: bytearray, value: Any) -> None:
    value = value.value if isinstance(value, Json) else value
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=_json_default)
        data = text.encode()
    except (ValueError, RecursionError) as e:
        raise _invalid(f"expected a value that JSON has: {e}") from e
    _expect_names(value)
    pack_extension(out, 8, data)


def _json_default(value: Any) -> Any:
    written = (datetime.date, datetime.time, uuid.UUID)
    if isinstance(value, written) or scalars.is_datetime64(value):
        return str(value) if value == value else None
    try:
        return scalars.plain(value)
    except TypeError as e:
        found = type(value).__name__
        raise TypeError(f"expected a value that JSON has, found {found}") from e


def _expect_names(value: Any) -> None:
    """JSON would make texts of other names."""
    if isinstance(value, dict):
        for name, member in value.items():
            if not isinstance(name, str):
                raise TypeError(f"expected names of JSON that are str, found {type(name).__name__}")
            _expect_names(member)
    elif isinstance(value, (list, tuple)):
        for member in value:
            _expect_names(member)


def _pack_uuid(out: bytearray, value: uuid.UUID) -> None:
    pack_extension(out, 4, value.bytes)


def _pack_ipv4(out: bytearray, value: ipaddress.IPv4Address) -> None:
    pack_extension(out, 5, value.packed)


def _pack_ipv6(out: bytearray, value: ipaddress.IPv6Address) -> None:
    pack_extension(out, 6, value.packed)


def _pack_interval(out: bytearray, value: Interval) -> None:
    pack_extension(out, 9, value.encode())


# The first that a value is an instance of counts: a datetime is a date, and a bool an int.
_PACKERS: Packers = {
    type(None): _pack_none,
    bool: _pack_bool,
    Days: _pack_days,
    Microseconds: _pack_microseconds,
    int: _pack_int,
    float: _pack_float,
    Interval: _pack_interval,
    str: _pack_str,
    bytes: _pack_bytes,
    bytearray: _pack_bytes,
    memoryview: _pack_bytes,
    datetime.datetime: _pack_datetime,
    datetime.date: _pack_date,
    datetime.time: _pack_time,
    decimal.Decimal: _pack_decimal,
    uuid.UUID: _pack_uuid,
    ipaddress.IPv4Address: _pack_ipv4,
    ipaddress.IPv6Address: _pack_ipv6,
    Json: _pack_json,
    dict: _pack_json,
    list: _pack_json,
    tuple: _pack_json,
}


def _pack_known_float(out: bytearray, value: float) -> None:
    """NaN is NULL."""
    if value != value:
        _pack_none(out, None)
    else:
        _pack_float(out, value)


def _pack_known_decimal(out: bytearray, value: decimal.Decimal) -> None:
    """NaN is NULL."""
    if value.is_nan():
        _pack_none(out, None)
    else:
        _pack_decimal(out, value)


def _pack_known_json(out: bytearray, value: Any) -> None:
    """NaN within it is null."""
    _pack_json(out, _without_nan(value.value if isinstance(value, Json) else value))


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(member) for member in value]
    is_number = isinstance(value, float) or scalars.is_scalar(value)
    return None if is_number and value != value else value


@functools.lru_cache(maxsize=None)
def _packers(nan_as_null: bool, naive_as_utc: bool) -> Packers:
    found = dict(_PACKERS)
    if nan_as_null:
        found[float] = _pack_known_float
        found[decimal.Decimal] = _pack_known_decimal
        found.update(dict.fromkeys((Json, dict, list, tuple), _pack_known_json))
    if naive_as_utc:
        found[datetime.datetime] = _pack_naive_datetime
    return found


def packers(codec: Codec) -> Packers:
    """How values are packed by some options."""
    if not (codec.nan_as_null or codec.naive_as_utc):
        return _PACKERS
    return _packers(codec.nan_as_null, codec.naive_as_utc)
