"""Loads: any number of rows on their way to the server, in chunks."""

from __future__ import annotations

import itertools
import uuid
from typing import (
    Any,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Union,
)

from . import _batch as batches
from . import _check as check
from . import _frame as frames
from ._batch import RowPacker, Values
from ._codec import Codec
from ._fields import Fields
from ._frame import Request
from ._request import Text, array, table_part, value_part

CHUNK_BYTES = 256 << 10
# Of a chunk, unless one row has more.
_CHUNK_BYTES_MAX = 4 << 20
_CHUNK_ROWS_MAX = 1024

Rows = Union[Iterable[Values], AsyncIterable[Values]]
Parts = Union[Text, Iterable[Text], AsyncIterable[Text]]


class Load(NamedTuple):
    """A load: how it begins, and what comes of its rows."""

    request: Request[int]
    table: str
    chunker: "Callable[[], Chunker]"
    items: Any
    is_repeatable: bool
    """True when it may be sent again: it has a key, and its rows can be gone through again."""


def load(
    codec: Codec,
    table: str,
    rows: Rows,
    *,
    on_duplicate: str = "error",
    key: Optional[str] = None,
    nan_as_null: Optional[bool] = None,
) -> Load:
    """A load of rows, as tuples or dicts."""
    if not isinstance(rows, AsyncIterable):
        check.iterable("rows", rows)
    codec = codec.but(nan_as_null=nan_as_null)
    begin = _begin_load(table, "messagepack", on_duplicate, key)
    return _load(begin, table, rows, lambda: RowChunks(codec), key)


def load_text(
    table: str, form: str, parts: Parts, *, on_duplicate: str = "error", key: Optional[str] = None
) -> Load:
    """A load of CSV or NDJSON."""
    if isinstance(parts, (str, bytes, bytearray)):
        parts = [bytes(parts) if isinstance(parts, bytearray) else parts]
    if not isinstance(parts, AsyncIterable):
        check.iterable("parts", parts)
    begin = _begin_load(table, form, on_duplicate, key)
    return _load(begin, table, parts, TextChunks, key)


def _begin_load(table: str, form: str, on_duplicate: str, key: Optional[str]) -> Request[int]:
    parts = [table_part(table), value_part(check.text("form", form))]
    parts.append(value_part(check.text("on_duplicate", on_duplicate)))
    if key is not None:
        parts.append(value_part(check.text("key", key)))
    return Request(frames.BULK_BEGIN, array(*parts), lambda a: int(a.value))


class RowChunks:
    """Rows on their way into chunks, each of which has whole rows."""

    def __init__(self, codec: Codec) -> None:
        self._packer = RowPacker(codec)
        self._rows: List[Any] = []
        self._size = 16
        self._is_known = False

    @property
    def wanted(self) -> int:
        """How many rows make a chunk."""
        return self._size

    def add(self, rows: Iterable[Values]) -> bool:
        """Takes rows; true when it is time for a chunk."""
        self._rows += rows
        return len(self._rows) >= self._size

    def needs_fields(self) -> bool:
        """True when the fields of the table are to be known before the next chunk is taken."""
        if self._is_known:
            return False
        self._rows = list(self._packer.checked(self._rows))
        return batches.has_text(self._rows)

    def fit(self, fields: Optional[Fields]) -> None:
        """Takes the fields of the table."""
        self._is_known = True
        self._packer.fit(fields)

    def take(self) -> Iterator[bytes]:
        """The rows that have come, as chunks."""
        rows, self._rows = self._packer.checked(self._rows), []
        return self._packed(rows)

    def _packed(self, rows: List[Values]) -> Iterator[bytes]:
        if not rows:
            return
        out = bytearray()
        self._packer.pack(out, rows)
        fitting = CHUNK_BYTES * len(rows) // max(len(out), 1)
        self._size = max(1, min(fitting, 4 * len(rows), _CHUNK_ROWS_MAX))
        if len(out) > _CHUNK_BYTES_MAX and len(rows) > 1:
            half = len(rows) // 2
            yield from self._packed(rows[:half])
            yield from self._packed(rows[half:])
        else:
            yield bytes(out)


class TextChunks:
    """A text on its way into chunks, cut anywhere."""

    def __init__(self) -> None:
        self._out = bytearray()

    @property
    def wanted(self) -> int:
        """Parts may be long: each is taken by itself."""
        return 1

    def add(self, parts: Iterable[Text]) -> bool:
        """Takes parts; true when it is time for a chunk."""
        for part in parts:
            self._out += check.data("part", part)
        return len(self._out) >= CHUNK_BYTES

    def needs_fields(self) -> bool:
        """The server reads texts itself."""
        return False

    def fit(self, fields: Optional[Fields]) -> None:
        """Takes the fields of the table."""

    def take(self) -> Iterator[bytes]:
        """What has come, as chunks."""
        out, self._out = bytes(self._out), bytearray()
        for start in range(0, len(out), CHUNK_BYTES):
            yield out[start : start + CHUNK_BYTES]


Chunker = Union[RowChunks, TextChunks]


def _load(
    request: Request[int],
    table: str,
    items: Any,
    chunker: Callable[[], Chunker],
    key: Optional[str],
) -> Load:
    return Load(request, table, chunker, items, key is not None and not _is_once(items))


Learn = Callable[[str], Optional[Fields]]
AsyncLearn = Callable[[str], Awaitable[Optional[Fields]]]


def chunks(load: Load, learn: Learn) -> Iterator[bytes]:
    """The chunks of a load. The fields of its table are asked for where rows have texts."""
    chunker = load.chunker()
    for items in _taken(load.items, chunker):
        if chunker.add(items):
            if chunker.needs_fields():
                chunker.fit(learn(load.table))
            yield from chunker.take()
    if chunker.needs_fields():
        chunker.fit(learn(load.table))
    yield from chunker.take()


async def async_chunks(load: Load, learn: AsyncLearn) -> AsyncIterator[bytes]:
    """The same of rows that may come by ``async for``."""
    chunker = load.chunker()
    async for items in _async_taken(load.items, chunker):
        if chunker.add(items):
            if chunker.needs_fields():
                chunker.fit(await learn(load.table))
            for chunk in chunker.take():
                yield chunk
    if chunker.needs_fields():
        chunker.fit(await learn(load.table))
    for chunk in chunker.take():
        yield chunk


def _taken(items: Iterable[Any], chunker: Chunker) -> Iterator[List[Any]]:
    """As many items at a time as the chunker wants."""
    iterator = iter(items)
    taken = list(itertools.islice(iterator, chunker.wanted))
    while taken:
        yield taken
        taken = list(itertools.islice(iterator, chunker.wanted))


async def _async_taken(items: Any, chunker: Chunker) -> AsyncIterator[List[Any]]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield [item]
    else:
        for taken in _taken(items, chunker):
            yield taken


def _is_once(rows: Any) -> bool:
    """True of what can be gone through once alone."""
    return hasattr(rows, "__next__") or hasattr(rows, "__anext__")


def load_key(rows: Any, on_duplicate: str) -> Optional[str]:
    """A key for a load whose rows can be gone through again; ``skip`` goes without."""
    return None if _is_once(rows) or on_duplicate == "skip" else uuid.uuid4().hex
