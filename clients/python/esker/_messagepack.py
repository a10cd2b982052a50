"""MessagePack as the wire protocol has it: the plain types, and extensions for the rest.

The table of extensions is in docs/reference/wire.md, "Values".
"""

from __future__ import annotations

import datetime
import decimal
import ipaddress
import json
import struct
import uuid
from typing import Any, Callable, Dict, List, Tuple

from ._errors import EskerError

_EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MICROSECOND = datetime.timedelta(microseconds=1)
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
        return hash(("Json", repr(self.value)))


class Days(int):
    """A date that Python has no name for: days since 1970-01-01."""


class Microseconds(int):
    """A timestamp that Python has no name for: microseconds since 1970."""


def pack(out: bytearray, value: Any) -> None:
    """Appends a value.

    >>> out = bytearray()
    >>> for value in (None, True, 300, "ä"):
    ...     pack(out, value)
    >>> out.hex()
    'c0c3cd012ca2c3a4'
    """
    packer = _PACKERS.get(type(value))
    if packer is None:
        for known, candidate in _PACKERS.items():
            if isinstance(value, known):
                packer = candidate
                break
        else:
            raise TypeError(
                f"expected a value that a field can have, found {type(value).__name__}"
            )
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
    _pack_extension(out, 7, str(value).encode())


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


def pack_array(out: bytearray, values: Any) -> None:
    """Appends an array: a list that is sent as a value by itself is JSON, see :func:`pack`."""
    pack_array_head(out, len(values))
    for value in values:
        pack(out, value)


def pack_map(out: bytearray, values: Dict[str, Any]) -> None:
    """Appends a map of names and values."""
    count = len(values)
    if count < 16:
        out.append(0x80 | count)
    else:
        is_short = count < 1 << 16
        out += struct.pack(">BH" if is_short else ">BI", 0xDE if is_short else 0xDF, count)
    for name, value in values.items():
        pack(out, name)
        pack(out, value)


_FIXED = {1: 0xD4, 2: 0xD5, 4: 0xD6, 8: 0xD7, 16: 0xD8}


def _pack_extension(out: bytearray, kind: int, data: bytes) -> None:
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
    _pack_extension(out, 1, struct.pack(">i", value.toordinal() - _EPOCH_DAY))


def _pack_number(out: bytearray, kind: int, form: str, value: int) -> None:
    try:
        _pack_extension(out, kind, struct.pack(form, value))
    except struct.error as e:
        size = 8 * struct.calcsize(form)
        found = value.bit_length()
        raise _invalid(f"expected a number of {size} bits, found one of {found}") from e


def _pack_days(out: bytearray, value: Days) -> None:
    _pack_number(out, 1, ">i", int(value))


def _pack_datetime(out: bytearray, value: datetime.datetime) -> None:
    if value.utcoffset() is None:
        raise _invalid(f"expected a datetime with a zone, such as timezone.utc, found {value}")
    _pack_extension(out, 2, struct.pack(">q", (value - _EPOCH) // _MICROSECOND))


def _pack_microseconds(out: bytearray, value: Microseconds) -> None:
    _pack_number(out, 2, ">q", int(value))


def _pack_time(out: bytearray, value: datetime.time) -> None:
    if value.tzinfo is not None:
        raise _invalid(f"expected a time without a zone, found {value}")
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    _pack_extension(out, 3, struct.pack(">q", seconds * 1_000_000 + value.microsecond))


def _pack_decimal(out: bytearray, value: decimal.Decimal) -> None:
    if not value.is_finite():
        raise _invalid(f"expected a decimal, found {value}")
    # What is too long is not written out to find that.
    exponent = value.as_tuple().exponent
    if value.adjusted() >= _DIGITS_MAX or not -2 * _DIGITS_MAX <= int(exponent) <= _DIGITS_MAX:
        raise _invalid(f"expected a decimal of at most {_DIGITS_MAX} digits, found {value}")
    _pack_extension(out, 7, format(value, "f").encode())


def _pack_json(out: bytearray, value: Any) -> None:
    value = value.value if isinstance(value, Json) else value
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=_json_default)
        data = text.encode()
    except (ValueError, RecursionError) as e:
        raise _invalid(f"expected a value that JSON has: {e}") from e
    _expect_names(value)
    _pack_extension(out, 8, data)


def _json_default(value: Any) -> Any:
    if isinstance(value, (datetime.date, datetime.time, uuid.UUID)):
        return str(value)
    raise TypeError(f"expected a value that JSON has, found {type(value).__name__}")


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
    _pack_extension(out, 4, value.bytes)


def _pack_ipv4(out: bytearray, value: ipaddress.IPv4Address) -> None:
    _pack_extension(out, 5, value.packed)


def _pack_ipv6(out: bytearray, value: ipaddress.IPv6Address) -> None:
    _pack_extension(out, 6, value.packed)


# The first that a value is an instance of counts: a datetime is a date, and a bool an int.
_PACKERS: Dict[type, Callable[[bytearray, Any], None]] = {
    type(None): _pack_none,
    bool: _pack_bool,
    Days: _pack_days,
    Microseconds: _pack_microseconds,
    int: _pack_int,
    float: _pack_float,
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


def unpack(data: bytes) -> Any:
    """The only value of some bytes.

    >>> unpack(bytes.fromhex("94c0c3cd012ca2c3a4"))
    [None, True, 300, 'ä']
    """
    value, end = _unpack(data, 0, 0)
    if end != len(data):
        raise _malformed(f"{len(data) - end} bytes behind a value")
    return value


def _malformed(why: str) -> EskerError:
    return EskerError("connection", f"the server sent what is no MessagePack: {why}")


_DEPTH_MAX = 64


def _need(data: bytes, at: int, size: int) -> int:
    end = at + size
    if end > len(data):
        raise _malformed("a value ends early")
    return end


_NUMBERS: Dict[int, Tuple[str, int]] = {
    0xCA: (">f", 4),
    0xCB: (">d", 8),
    0xCC: (">B", 1),
    0xCD: (">H", 2),
    0xCE: (">I", 4),
    0xCF: (">Q", 8),
    0xD0: (">b", 1),
    0xD1: (">h", 2),
    0xD2: (">i", 4),
    0xD3: (">q", 8),
}
# The width of a length, of bytes, texts, arrays, maps and extensions.
_WIDTHS: Dict[int, Tuple[str, int]] = {1: (">B", 1), 2: (">H", 2), 4: (">I", 4)}
_TEXTS = {0xD9: 1, 0xDA: 2, 0xDB: 4}
_BINARIES = {0xC4: 1, 0xC5: 2, 0xC6: 4}
_ARRAYS = {0xDC: 2, 0xDD: 4}
_MAPS = {0xDE: 2, 0xDF: 4}
_EXTENSIONS = {0xC7: 1, 0xC8: 2, 0xC9: 4}
_FIXED_EXTENSIONS = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}


def _length(data: bytes, at: int, width: int) -> Tuple[int, int]:
    form, size = _WIDTHS[width]
    end = _need(data, at, size)
    return struct.unpack_from(form, data, at)[0], end


def _text(data: bytes, at: int, size: int) -> Tuple[str, int]:
    end = _need(data, at, size)
    try:
        return data[at:end].decode(), end
    except UnicodeDecodeError as e:
        raise _malformed(str(e)) from e


def _unpack(data: bytes, at: int, depth: int) -> Tuple[Any, int]:
    if at >= len(data):
        raise _malformed("a value is missing")
    if depth > _DEPTH_MAX:
        raise _malformed(f"more than {_DEPTH_MAX} levels")
    tag = data[at]
    at += 1
    if tag < 0x80:
        return tag, at
    if tag >= 0xE0:
        return tag - 0x100, at
    if 0xA0 <= tag < 0xC0:
        return _text(data, at, tag & 0x1F)
    if 0x90 <= tag < 0xA0:
        return _array(data, at, tag & 0x0F, depth)
    if tag < 0x90:
        return _map(data, at, tag & 0x0F, depth)
    if tag in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[tag], at
    if tag in _NUMBERS:
        form, size = _NUMBERS[tag]
        end = _need(data, at, size)
        return struct.unpack_from(form, data, at)[0], end
    if tag in _TEXTS:
        size, at = _length(data, at, _TEXTS[tag])
        return _text(data, at, size)
    if tag in _BINARIES:
        size, at = _length(data, at, _BINARIES[tag])
        end = _need(data, at, size)
        return data[at:end], end
    if tag in _ARRAYS:
        size, at = _length(data, at, _ARRAYS[tag])
        return _array(data, at, size, depth)
    if tag in _MAPS:
        size, at = _length(data, at, _MAPS[tag])
        return _map(data, at, size, depth)
    if tag in _EXTENSIONS:
        size, at = _length(data, at, _EXTENSIONS[tag])
    elif tag in _FIXED_EXTENSIONS:
        size = _FIXED_EXTENSIONS[tag]
    else:
        raise _malformed(f"tag {tag:#x}")
    end = _need(data, at, size + 1)
    return _extension(data[at], data[at + 1 : end]), end


def _array(data: bytes, at: int, count: int, depth: int) -> Tuple[List[Any], int]:
    values = []
    for _ in range(count):
        value, at = _unpack(data, at, depth + 1)
        values.append(value)
    return values, at


def _map(data: bytes, at: int, count: int, depth: int) -> Tuple[Dict[Any, Any], int]:
    values = {}
    for _ in range(count):
        name, at = _unpack(data, at, depth + 1)
        if isinstance(name, (list, dict)):
            raise _malformed("a map with a name that is none")
        values[name], at = _unpack(data, at, depth + 1)
    return values, at


def _extension(kind: int, data: bytes) -> Any:
    try:
        if kind == 1:
            days = struct.unpack(">i", data)[0]
            ordinal = days + _EPOCH_DAY
            is_named = 1 <= ordinal <= datetime.date.max.toordinal()
            return datetime.date.fromordinal(ordinal) if is_named else Days(days)
        if kind == 2:
            since = struct.unpack(">q", data)[0]
            try:
                return _EPOCH + datetime.timedelta(microseconds=since)
            except OverflowError:
                return Microseconds(since)
        if kind == 3:
            seconds, microsecond = divmod(struct.unpack(">q", data)[0], 1_000_000)
            minutes, second = divmod(seconds, 60)
            return datetime.time(minutes // 60, minutes % 60, second, microsecond)
        if kind == 4:
            return uuid.UUID(bytes=data)
        if kind == 5:
            return ipaddress.IPv4Address(data)
        if kind == 6:
            return ipaddress.IPv6Address(data)
        if kind == 7:
            return decimal.Decimal(data.decode())
        if kind == 8:
            return json.loads(data)
    except (struct.error, ValueError, ArithmeticError) as e:
        raise _malformed(f"extension {kind}: {e}") from e
    raise _malformed(f"extension {kind}")
