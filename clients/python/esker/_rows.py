"""Rows of answers, as the server sends them, taken apart by functions that are made for the types
of their columns: a type says what a value most likely looks like, and any other way is read, too.
"""

from __future__ import annotations

import datetime
import functools
import re
import struct
from typing import Any, Callable, Dict, Iterable, List, Tuple

from . import _times as times
from ._codec import Codec
from ._messagepack import EPOCH, EPOCH_DAY, MICROSECOND
from ._row import maker
from ._scalars import Days, Microseconds
from ._unpack import array_head, malformed, unpack, unpack_from

# Fewer bytes are not worth a function of their own; nor are rows of more columns.
_BYTES_MIN = 2048
_COLUMNS_MAX = 100

_TEMPORAL = frozenset(["date", "time", "timestamp"])

# How a value of a type is read, from `data` at `at`; its first byte is `t`.
_INTEGER = """
        if t < 0x80:
            v = t
            at += 1
        elif t == 0xCD:
            v = data[at + 1] << 8 | data[at + 2]
            at += 3
        elif t == 0xCE:
            v, = u32(data, at + 1)
            at += 5
        elif t == 0xCC:
            v = data[at + 1]
            at += 2
        elif t >= 0xE0:
            v = t - 0x100
            at += 1
        elif t == 0xD0:
            v = data[at + 1] - 0x100
            at += 2
"""
_FLOAT = """
        if t == 0xCB:
            v, = f64(data, at + 1)
            at += 9
"""
_TEXT = """
        if 0xA0 <= t < 0xC0:
            end = at + t - 0x9F
            v = data[at + 1 : end].decode()
            at = end
        elif t == 0xD9:
            end = at + 2 + data[at + 1]
            v = data[at + 2 : end].decode()
            at = end
"""
_BOOLEAN = """
        if t == 0xC3:
            v = True
            at += 1
        elif t == 0xC2:
            v = False
            at += 1
"""
_DATE = """
        if t == 0xD6 and data[at + 1] == 1:
            n, = i32(data, at + 2)
            v = ordinal(n + EPOCH_DAY) if LEAST_DAY <= n <= MOST_DAY else Days(n)
            at += 6
"""
_TIMESTAMP = """
        if t == 0xD7 and data[at + 1] == 2:
            n, = i64(data, at + 2)
            at += 10
            v = moments.get(n)
            if v is None:
                try:
                    v = moments[n] = EPOCH + n * MICROSECOND
                except OverflowError:
                    v = Microseconds(n)
"""
_REST = """
        elif t == 0xC0:
            v = None
            at += 1
        else:
            v, at = unpack_from(data, at, 2)
"""
_ANY = """
        v, at = unpack_from(data, at, 2)
"""
_ISO = _ANY + "        v = iso(v)\n"

_BY_TYPE: Dict[str, str] = {
    **dict.fromkeys(("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"), _INTEGER),
    **dict.fromkeys(("f32", "f64"), _FLOAT),
    **dict.fromkeys(("text", "enum"), _TEXT),
    "bool": _BOOLEAN,
    "date": _DATE,
    "timestamp": _TIMESTAMP,
}

_KNOWN: Dict[str, Any] = {
    "array_head": array_head,
    "malformed": malformed,
    "unpack_from": unpack_from,
    "iso": times.text,
    "u32": struct.Struct(">I").unpack_from,
    "i32": struct.Struct(">i").unpack_from,
    "i64": struct.Struct(">q").unpack_from,
    "f64": struct.Struct(">d").unpack_from,
    "ordinal": datetime.date.fromordinal,
    "EPOCH": EPOCH,
    "EPOCH_DAY": EPOCH_DAY,
    "MICROSECOND": MICROSECOND,
    "LEAST_DAY": 1 - EPOCH_DAY,
    "MOST_DAY": datetime.date.max.toordinal() - EPOCH_DAY,
    "Days": Days,
    "Microseconds": Microseconds,
}


@functools.lru_cache(maxsize=128)
def _reader(
    kinds: Tuple[str, ...], iso_times: bool, rows: str
) -> Callable[[bytes, Callable[[Iterable[Any]], Any]], List[Any]]:
    """The function for rows with columns of some types, which gets what makes a row of a tuple."""
    count = len(kinds)
    head = f"data[at] != {0x90 | count}"
    width = 1
    if count >= 16:
        head = f"data[at : at + 3] != {bytes([0xDC, count >> 8, count & 0xFF])!r}"
        width = 3
    lines = [
        "def read(data, make):",
        "    count, at = array_head(data, 0)",
        "    rows, moments = [], {}",
        "    append = rows.append",
        "    for _ in range(count):",
        f"        if {head}:",
        "            raise malformed('a row with other columns')",
        f"        at += {width}",
    ]
    for place, kind in enumerate(kinds):
        body = _BY_TYPE.get(kind)
        if iso_times and kind in _TEMPORAL:
            body = _ISO
        elif body is None:
            body = _ANY
        else:
            body = "        t = data[at]" + body + _REST.lstrip("\n")
        lines.append(re.sub(r"\bv\b", f"v{place}", body))
    values = "".join(f"v{place}, " for place in range(count))
    lines += [
        f"        append(({values}))" if rows == "tuple" else f"        append(make(({values})))",
        "    if at != len(data):",
        "        raise malformed(f'rows of {len(data)} bytes end at {at}')",
        "    return rows",
    ]
    known: Dict[str, Any] = dict(_KNOWN)
    exec("\n".join(lines), known)  # What it is made of are numbers and the texts above.
    found: Callable[[bytes, Callable[[Iterable[Any]], Any]], List[Any]] = known["read"]
    return found


def _kind(column_type: str) -> str:
    return column_type.partition("(")[0]


def read(
    data: bytes, types: Tuple[str, ...], names: Tuple[str, ...], codec: Codec
) -> List[Any]:
    """The rows of a frame, with columns of some types and names."""
    make = maker(codec.rows, names)
    if len(data) < _BYTES_MIN or not 0 < len(types) <= _COLUMNS_MAX:
        rows = unpack(data)
        if codec.iso_times:
            rows = [list(map(times.text, row)) for row in rows]
        return list(map(make, rows))
    try:
        return _reader(tuple(map(_kind, types)), codec.iso_times, codec.rows)(data, make)
    except (IndexError, struct.error, UnicodeDecodeError) as e:
        raise malformed(f"a row ends early, or is no text: {e}") from e
