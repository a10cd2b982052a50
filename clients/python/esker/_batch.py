"""Rows on their way to the server, many at a time: column by column, which is the quickest.

What a column of one type needs is done by functions that go through it without a step of Python;
values of all other types go one by one.
"""

from __future__ import annotations

import datetime
import operator
from itertools import chain, repeat
from struct import Struct
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
)

from . import _check as check
from . import _scalars as scalars
from ._codec import Codec
from ._fields import Fields
from ._messagepack import (
    EPOCH,
    EPOCH_DAY,
    MICROSECOND,
    Packers,
    pack,
    pack_array,
    pack_array_head,
    pack_map,
    pack_map_head,
    packers,
)

Values = Union[Sequence[Any], Mapping[str, Any]]
"""A row or parameters: values by position, or by name."""
Reader = Callable[[str], Any]

# Fewer rows go one by one.
_COLUMNAR_ROWS_MIN = 8
# So many texts are kept with their bytes.
_TEXTS_MAX = 1 << 16

_NIL = b"\xc0"
_BOOLEANS = {False: b"\xc2", True: b"\xc3"}
# The beginnings of short texts.
_SHORT = [bytes([0xA0 | size]) for size in range(32)]
_SMALL = [bytes([n]) for n in range(0x80)]
_I16, _I32, _I64 = Struct(">Bh").pack, Struct(">Bi").pack, Struct(">Bq").pack
_F64, _DATE, _TIMESTAMP = Struct(">Bd").pack, Struct(">BBi").pack, Struct(">BBq").pack


class _Texts(Dict[str, bytes]):
    """Texts as they are sent."""

    def __missing__(self, text: str) -> bytes:
        if len(self) >= _TEXTS_MAX:
            self.clear()
        size = len(text)
        if size < len(_SHORT) and text.isascii():
            found = _SHORT[size] + text.encode()
        else:
            out = bytearray()
            pack(out, text)
            found = bytes(out)
        self[text] = found
        return found


def _integers(values: List[int]) -> Iterable[bytes]:
    least, most = min(values), max(values)
    if 0 <= least and most < 0x80:
        return map(_SMALL.__getitem__, values)
    for bits, tag, packed in ((15, 0xD1, _I16), (31, 0xD2, _I32), (63, 0xD3, _I64)):
        if -(1 << bits) <= least and most < 1 << bits:
            return map(packed, repeat(tag), values)
    return _singly(values, None)


def _dates(values: List[datetime.date]) -> Iterable[bytes]:
    days = map(operator.sub, map(datetime.date.toordinal, values), repeat(EPOCH_DAY))
    return map(_DATE, repeat(0xD6), repeat(1), days)


def _timestamps(values: List[datetime.datetime]) -> Iterable[bytes]:
    since = map(operator.floordiv, map(operator.sub, values, repeat(EPOCH)), repeat(MICROSECOND))
    return map(_TIMESTAMP, repeat(0xD7), repeat(2), since)


def _singly(values: Iterable[Any], how: Optional[Packers]) -> Iterator[bytes]:
    for value in values:
        out = bytearray()
        pack(out, value, how)
        yield bytes(out)


_COLUMNS: Dict[type, Callable[[List[Any]], Iterable[bytes]]] = {
    bool: lambda values: map(_BOOLEANS.__getitem__, values),
    int: _integers,
    float: lambda values: map(_F64, repeat(0xCB), values),
    datetime.date: _dates,
    datetime.datetime: _timestamps,
}


_PLAIN_ROWS = frozenset([tuple, list])
_NO_READERS: Mapping[int, Reader] = {}
_NO_NAMED_READERS: Mapping[str, Reader] = {}


def _plain(value: Any, how: Packers) -> Any:
    kind = type(value)
    return scalars.plain(value) if kind not in how and scalars.is_scalar(value) else value


class RowPacker:
    """Packs rows of a table, each an array or a map."""

    def __init__(
        self, codec: Codec, what: str = "row", names: Optional[Sequence[str]] = None
    ) -> None:
        """``names`` are those of the values of rows that are arrays, where they are not all."""
        self._what = what
        self._names = names
        self._codec = codec
        self._how = packers(codec)
        self._texts: Optional[_Texts] = None
        self._readers: Mapping[int, Reader] = _NO_READERS
        self._named_readers: Mapping[str, Reader] = _NO_NAMED_READERS

    def fit(self, fields: Optional[Fields]) -> None:
        """Takes texts for dates and the like from now on, where the fields are such."""
        if fields is not None:
            self._readers, self._named_readers = fields.readers, fields.named_readers
        if fields is not None and self._names is not None:
            named = [fields.named_readers.get(name.lower()) for name in self._names]
            self._readers = {at: reader for at, reader in enumerate(named) if reader is not None}

    @property
    def is_fitting(self) -> bool:
        """True when texts are taken for something else somewhere."""
        return bool(self._readers) or bool(self._named_readers)

    def checked(self, rows: List[Any]) -> List[Values]:
        """The rows, each a tuple, a list or a dict."""
        if _PLAIN_ROWS.issuperset(map(type, rows)):
            return rows
        return [check.values(self._what, row) for row in rows]

    def pack(self, out: bytearray, rows: List[Values]) -> None:
        """Appends rows that were checked, one behind the other."""
        if len(rows) < _COLUMNAR_ROWS_MIN or not self._pack_columns(out, rows):
            for row in rows:
                self._pack_one(out, row)

    def _pack_one(self, out: bytearray, row: Values) -> None:
        if isinstance(row, Mapping):
            if not self._named_readers:
                pack_map(out, dict(row), self._how)
                return
            named = dict(row)
            for name, value in row.items():
                if isinstance(value, str):
                    named[name] = read_text(self._named_readers.get(name.lower()), value)
            pack_map(out, named, self._how)
            return
        if not self._readers:
            pack_array(out, row, self._how)
            return
        values = list(row)
        for at, reader in self._readers.items():
            if at < len(values) and isinstance(values[at], str):
                values[at] = read_text(reader, values[at])
        pack_array(out, values, self._how)

    def _pack_columns(self, out: bytearray, rows: List[Any]) -> bool:
        """Packs rows that are alike; false when they are not."""
        head = bytearray()
        names: Optional[Tuple[str, ...]] = None
        kinds = set(map(type, rows))
        if kinds == {dict}:
            names = tuple(rows[0])
            if set(map(tuple, rows)) != {names}:
                return False
            columns = list(zip(*map(dict.values, rows)))
            pack_map_head(head, len(names))
        else:
            if dict in kinds or len(set(map(len, rows))) > 1:
                return False
            columns = list(zip(*rows))
            pack_array_head(head, len(columns))
        parts: List[Iterable[bytes]] = [repeat(bytes(head), len(rows))]
        for at, column in enumerate(columns):
            reader = self._readers.get(at)
            if names is not None:
                name = bytearray()
                pack(name, names[at])
                parts.append(repeat(bytes(name)))
                reader = self._named_readers.get(names[at].lower())
            parts.append(self._column(column, reader))
        out += b"".join(chain.from_iterable(zip(*parts)))
        return True

    def _column(self, column: Sequence[Any], reader: Optional[Reader]) -> Iterable[bytes]:
        kinds = set(map(type, column))
        if not kinds <= self._how.keys():
            column = [_plain(value, self._how) for value in column]
            kinds = set(map(type, column))
        if reader is not None and any(issubclass(kind, str) for kind in kinds):
            column = [read_text(reader, v) if isinstance(v, str) else v for v in column]
            kinds = set(map(type, column))
        if self._codec.nan_as_null and kinds <= {float, type(None)}:
            column = [None if value != value else value for value in column]
            kinds = set(map(type, column))
        has_null = type(None) in kinds
        kinds.discard(type(None))
        if not kinds:
            return repeat(_NIL, len(column))
        if len(kinds) > 1:
            return _singly(column, self._how)
        (kind,) = kinds
        if kind is str:
            if self._texts is None:
                self._texts = _Texts()
            known: Callable[[Any], bytes] = self._texts.__getitem__
            if has_null:
                return [_NIL if value is None else known(value) for value in column]
            return map(known, column)
        return self._of_one_kind(kind, column, has_null)

    def _of_one_kind(self, kind: type, column: Sequence[Any], has_null: bool) -> Iterable[bytes]:
        packed = _COLUMNS.get(kind)
        if packed is None:
            return _singly(column, self._how)
        values = [value for value in column if value is not None] if has_null else list(column)
        try:
            found = list(packed(values))
        except TypeError:
            # Datetimes without a zone.
            return _singly(column, self._how)
        if not has_null:
            return found
        there = iter(found)
        return [_NIL if value is None else next(there) for value in column]


def read_text(reader: Optional[Reader], text: str) -> Any:
    """What a text is taken for; itself, where it is no such thing."""
    found = None if reader is None else reader(text)
    return text if found is None else found


def has_text(rows: Iterable[Values]) -> bool:
    """True when a value is a text, which may be meant for something else."""
    values = (row.values() if isinstance(row, Mapping) else row for row in rows)
    kinds = set(map(type, chain.from_iterable(values)))
    return str in kinds or any(issubclass(kind, str) for kind in kinds)
