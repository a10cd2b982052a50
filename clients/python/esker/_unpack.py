"""MessagePack as the server sends it, taken apart: the other half of :mod:`_messagepack`."""

from __future__ import annotations

import datetime
import decimal
import ipaddress
import json
import struct
import uuid
from typing import Any, Dict, List, Tuple

from ._errors import EskerError
from ._messagepack import EPOCH, EPOCH_DAY
from ._scalars import Days, Interval, Microseconds


def unpack(data: bytes) -> Any:
    """The only value of some bytes.

    >>> unpack(bytes.fromhex("94c0c3cd012ca2c3a4"))
    [None, True, 300, 'ä']
    """
    value, end = unpack_from(data, 0, 0)
    if end != len(data):
        raise malformed(f"{len(data) - end} bytes behind a value")
    return value


def malformed(why: str) -> EskerError:
    """The error of bytes that are no answer."""
    return EskerError("connection", f"the server sent what is no MessagePack: {why}")


_DEPTH_MAX = 64


def _need(data: bytes, at: int, size: int) -> int:
    end = at + size
    if end > len(data):
        raise malformed("a value ends early")
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
        raise malformed(str(e)) from e


def array_head(data: bytes, at: int) -> Tuple[int, int]:
    """How many values an array has, and where they begin."""
    if at >= len(data):
        raise malformed("a value is missing")
    tag = data[at]
    if 0x90 <= tag < 0xA0:
        return tag & 0x0F, at + 1
    if tag not in _ARRAYS:
        raise malformed(f"expected an array, found tag {tag:#x}")
    return _length(data, at + 1, _ARRAYS[tag])


def unpack_from(data: bytes, at: int, depth: int) -> Tuple[Any, int]:
    """The value at a place, and where the next begins."""
    if at >= len(data):
        raise malformed("a value is missing")
    if depth > _DEPTH_MAX:
        raise malformed(f"more than {_DEPTH_MAX} levels")
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
        raise malformed(f"tag {tag:#x}")
    end = _need(data, at, size + 1)
    return _extension(data[at], data[at + 1 : end]), end


def _array(data: bytes, at: int, count: int, depth: int) -> Tuple[List[Any], int]:
    values = []
    for _ in range(count):
        value, at = unpack_from(data, at, depth + 1)
        values.append(value)
    return values, at


def _map(data: bytes, at: int, count: int, depth: int) -> Tuple[Dict[Any, Any], int]:
    values = {}
    for _ in range(count):
        name, at = unpack_from(data, at, depth + 1)
        if isinstance(name, (list, dict)):
            raise malformed("a map with a name that is none")
        values[name], at = unpack_from(data, at, depth + 1)
    return values, at


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        # Python reads no integers of thousands of digits, but decimals of them.
        return json.loads(data, parse_int=_long)


def _long(digits: str) -> Any:
    try:
        return int(digits)
    except ValueError:
        return decimal.Decimal(digits)


def _extension(kind: int, data: bytes) -> Any:
    try:
        if kind == 1:
            days = struct.unpack(">i", data)[0]
            ordinal = days + EPOCH_DAY
            is_named = 1 <= ordinal <= datetime.date.max.toordinal()
            return datetime.date.fromordinal(ordinal) if is_named else Days(days)
        if kind == 2:
            since = struct.unpack(">q", data)[0]
            try:
                return EPOCH + datetime.timedelta(microseconds=since)
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
            return _json(data)
        if kind == 9:
            return Interval(data.decode())
        if kind == 10:
            # The name of the type of the items, then these.
            _, at = unpack_from(data, 0, 0)
            return unpack_from(data, at, 0)[0]
    except (struct.error, ValueError, ArithmeticError) as e:
        raise malformed(f"extension {kind}: {e}") from e
    raise malformed(f"extension {kind}")
