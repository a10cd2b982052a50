"""Frames, and what those of an answer are gathered to. Nothing here reads or writes a socket."""

from __future__ import annotations

import struct
from typing import Any, Callable, Generic, List, NamedTuple, Optional, Tuple, TypeVar, Union

from . import _rows as rows
from ._codec import PLAIN, Codec
from ._errors import EskerError
from ._fields import Fields
from ._messagepack import pack, pack_array_head
from ._result import Column
from ._row import Row, twice
from ._unpack import unpack

T = TypeVar("T")

GREETING = b"ESKR\x01\x00"
HEADER = struct.Struct("<IIBB")
FRAME_BYTES_MAX = (64 << 20) + 6
MORE = 1

PING, HELLO, CANCEL, ONCE = 0x01, 0x02, 0x03, 0x04
GET, EXISTS, INSERT, UPDATE, DELETE, TABLES, SCHEMA, UPDATE_MANY = range(0x10, 0x18)
SQL, QUERY, EXPLAIN, BEGIN, COMMIT, ROLLBACK, ADMIN = range(0x20, 0x27)
BUCKET_GET, BUCKET_PUT, BUCKET_REMOVE, BUCKET_INCREMENT, BUCKET_RANGE, BUCKETS = range(0x30, 0x36)
BULK_BEGIN, BULK_CHUNK, BULK_END = 0x40, 0x41, 0x42
APPEND, APPEND_COLUMNS, TAIL, CREDIT = range(0x50, 0x54)
DONE, COLUMNS, ROWS, POSITION, FAILED = 0x80, 0x81, 0x82, 0x83, 0xFF

# What may change something by itself.
WRITES = (INSERT, UPDATE, UPDATE_MANY, DELETE, SQL, BUCKET_PUT, BUCKET_REMOVE, BUCKET_INCREMENT)

CHUNK_BYTES = 256 << 10


class Frame(NamedTuple):
    """What is sent and received."""

    id: int
    kind: int
    flags: int
    payload: bytes


def frame(request_id: int, kind: int, payload: bytes = b"") -> bytes:
    """A frame as it is sent."""
    size = len(payload) + 6
    if size > FRAME_BYTES_MAX:
        raise EskerError(
            "invalid_request", f"a request has at most {FRAME_BYTES_MAX} bytes, found {size}"
        )
    return HEADER.pack(size, request_id, kind, 0) + payload


class FrameReader:
    """Takes bytes apart as they come."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._is_greeted = False

    def feed(self, data: bytes) -> None:
        """Takes what has come."""
        self._bytes += data

    def next(self) -> Optional[Frame]:
        """The next frame, if it has come whole."""
        if not self._is_greeted:
            if len(self._bytes) < len(GREETING):
                return None
            if self._bytes[:5] != GREETING[:5]:
                found = bytes(self._bytes[:64])
                raise EskerError("connection", f"expected a server of version 1, found {found!r}")
            del self._bytes[: len(GREETING)]
            self._is_greeted = True
        if len(self._bytes) < HEADER.size:
            return None
        size, request_id, kind, flags = HEADER.unpack_from(self._bytes)
        if not 6 <= size <= FRAME_BYTES_MAX:
            raise EskerError("connection", f"the server sent a frame of {size} bytes")
        end = size + 4
        if len(self._bytes) < end:
            return None
        payload = bytes(self._bytes[HEADER.size : end])
        del self._bytes[:end]
        return Frame(request_id, kind, flags, payload)


class Answer:
    """Gathers the frames of one answer."""

    def __init__(self, codec: Codec = PLAIN) -> None:
        self._codec = codec
        self.columns: List[Column] = []
        self.rows: List[Row] = []
        self.value: Any = None
        self.error: Optional[EskerError] = None

    def take(self, received: Frame) -> bool:
        """Takes a frame; true for the last."""
        if received.kind == ROWS:
            self._take_rows(received.payload)
            return False
        value: Any = unpack(received.payload) if received.payload else None
        if received.kind == FAILED:
            code, message = _pair(value or ("internal", "the server said nothing"))
            self.error = EskerError(code, message)
        elif received.kind == COLUMNS:
            columns = value if isinstance(value, list) else [value]
            self.columns = [Column(*_pair(column)) for column in columns]
        elif received.kind == DONE:
            self.value = value
        else:
            raise EskerError("connection", f"the server sent a frame of kind {received.kind:#x}")
        return received.kind in (DONE, FAILED)

    def _take_rows(self, payload: bytes) -> None:
        if not payload:
            return
        types = tuple(column.type for column in self.columns)
        names = tuple(column.name for column in self.columns)
        if self._codec.rows == "dict" and len(set(names)) < len(names):
            self.error = twice(names)
        else:
            self.rows += rows.read(payload, types, names, self._codec)


def _pair(value: Any) -> Tuple[str, str]:
    """Two texts that were sent."""
    if isinstance(value, (list, tuple)) and len(value) == 2 and all(type(v) is str for v in value):
        return value[0], value[1]
    raise EskerError("connection", f"expected two texts of the server, found {value!r}")


class Request(Generic[T]):
    """What is asked, and what an answer means."""

    def __init__(
        self,
        kind: int,
        payload: bytes,
        read: Callable[[Answer], T],
        is_safe: bool = False,
        *,
        is_write: Optional[bool] = None,
        codec: Codec = PLAIN,
        table: Optional[str] = None,
        fit: "Optional[Callable[[Fields], Request[T]]]" = None,
    ) -> None:
        self.kind = kind
        self.payload = payload
        self.read = read
        self.is_safe = is_safe
        """True when it may be asked twice."""
        self.is_write = kind in WRITES if is_write is None else is_write
        """True when it may change something by itself, which a key makes be done once."""
        self.codec = codec
        self.table = table
        """The table whose fields are to be known before it is sent, if there is one."""
        self._fit = fit

    def fitted(self, fields: Optional[Fields]) -> "Request[T]":
        """The same for a table with such fields."""
        return self if self._fit is None or fields is None else self._fit(fields)

    def answer(self) -> Answer:
        """What gathers its answer."""
        return Answer(self.codec)

    def once(self, key: str) -> "Request[T]":
        """The same, done once however often it is sent with a key."""
        head = _array_of_three(key, self.kind)
        return Request(ONCE, head + self.payload, self.read, is_safe=True, codec=self.codec)

    def frame(self, request_id: int) -> bytes:
        """As it is sent."""
        return frame(request_id, self.kind, self.payload)

    def outcome(self, answer: Answer) -> Union[T, EskerError]:
        """What the answer means, or the error that it is."""
        if answer.error is not None:
            return answer.error
        try:
            return self.read(answer)
        except EskerError as e:
            return e
        except (TypeError, ValueError, LookupError) as e:
            return EskerError("connection", f"the server sent an answer to something else: {e}")

    def result(self, answer: Answer) -> T:
        """What the answer means; raises the error that it is."""
        return expect(self.outcome(answer))


def expect(outcome: Union[T, EskerError]) -> T:
    """What came of a request; raises its error."""
    if isinstance(outcome, EskerError):
        raise outcome
    return outcome


def last_words(received: Frame) -> EskerError:
    """What the server says before it hangs up: the frame has no id."""
    said = Answer()
    said.take(received)
    return said.error or EskerError("connection", "the server sent nonsense")


def _array_of_three(key: str, kind: int) -> bytes:
    """An array of three, without the last of them."""
    out = bytearray()
    pack_array_head(out, 3)
    pack(out, key)
    pack(out, kind)
    return bytes(out)
