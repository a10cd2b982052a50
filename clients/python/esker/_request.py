"""Requests as frames, and what their answers mean. Nothing here reads or writes a socket."""

from __future__ import annotations

import json
import re
import struct
from typing import (
    Any,
    Callable,
    Dict,
    Generic,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
    Union,
)

from ._errors import EskerError
from ._messagepack import pack, pack_array, pack_array_head, pack_map, unpack

T = TypeVar("T")
Row = Tuple[Any, ...]
Key = Any

GREETING = b"ESKR\x01\x00"
HEADER = struct.Struct("<IIBB")
FRAME_BYTES_MAX = (64 << 20) + 6
MORE = 1

PING, HELLO, CANCEL, ONCE = 0x01, 0x02, 0x03, 0x04
GET, EXISTS, INSERT, UPDATE, DELETE, TABLES, SCHEMA, UPDATE_MANY = range(0x10, 0x18)
SQL, QUERY, EXPLAIN, BEGIN, COMMIT, ROLLBACK, ADMIN = range(0x20, 0x27)
BUCKET_GET, BUCKET_PUT, BUCKET_REMOVE, BUCKET_INCREMENT, BUCKET_RANGE, BUCKETS = range(0x30, 0x36)
BULK_BEGIN, BULK_CHUNK, BULK_END = 0x40, 0x41, 0x42
DONE, COLUMNS, ROWS, FAILED = 0x80, 0x81, 0x82, 0xFF

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


class Column(NamedTuple):
    """A column of an answer."""

    name: str
    type: str


class Result:
    """The answer to a statement or a query."""

    def __init__(self) -> None:
        self.columns: List[Column] = []
        """The columns; none where a statement has no rows."""
        self.rows: List[Row] = []
        """The rows, each with a value for every column."""
        self.changed = 0
        """How many rows a statement changed."""
        self.text: Optional[str] = None
        """What a statement says that has neither."""
        self.next: Optional[str] = None
        """The cursor of the next page of a query, if there is one."""
        self.previous: Optional[str] = None
        """The cursor of the page before."""
        self.total: Optional[int] = None
        """How many rows all pages have, where that was asked for."""

    def dicts(self) -> List[Dict[str, Any]]:
        """The rows as dictionaries by the names of columns."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, row)) for row in self.rows]

    def scalar(self) -> Any:
        """The first value of the first row; ``None`` without rows."""
        return self.rows[0][0] if self.rows and self.rows[0] else None

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


class Answer:
    """Gathers the frames of one answer."""

    def __init__(self) -> None:
        self.columns: List[Column] = []
        self.rows: List[Row] = []
        self.value: Any = None
        self.error: Optional[EskerError] = None

    def take(self, received: Frame) -> bool:
        """Takes a frame; true for the last."""
        value: Any = unpack(received.payload) if received.payload else None
        if received.kind == FAILED:
            code, message = value or ("internal", "the server said nothing")
            self.error = EskerError(code, message)
        elif received.kind == COLUMNS:
            self.columns = [Column(name, kind) for name, kind in value or ()]
        elif received.kind == ROWS:
            self.rows.extend(tuple(row) for row in value or ())
        elif received.kind == DONE:
            self.value = value
        else:
            raise EskerError("connection", f"the server sent a frame of kind {received.kind:#x}")
        return received.kind in (DONE, FAILED)


class Request(Generic[T]):
    """What is asked, and what an answer means."""

    def __init__(
        self, kind: int, payload: bytes, read: Callable[[Answer], T], is_safe: bool = False
    ) -> None:
        self.kind = kind
        self.payload = payload
        self.read = read
        self.is_safe = is_safe
        """True when it may be asked twice."""

    def once(self, key: str) -> "Request[T]":
        """The same, done once however often it is sent with a key."""
        head = _array_of_three(key, self.kind)
        return Request(ONCE, head + self.payload, self.read, is_safe=True)

    def frame(self, request_id: int) -> bytes:
        """As it is sent."""
        return frame(request_id, self.kind, self.payload)

    def result(self, answer: Answer) -> T:
        """What the answer means, or the error that it is."""
        if answer.error is not None:
            raise answer.error
        return self.read(answer)


def _array_of_three(key: str, kind: int) -> bytes:
    """An array of three, without the last of them."""
    out = bytearray()
    pack_array_head(out, 3)
    pack(out, key)
    pack(out, kind)
    return bytes(out)


def _array(*parts: Callable[[bytearray], None]) -> bytes:
    out = bytearray()
    pack_array_head(out, len(parts))
    for part in parts:
        part(out)
    return bytes(out)


def _value(value: Any) -> Callable[[bytearray], None]:
    return lambda out: pack(out, value)


def _values(values: Sequence[Any]) -> Callable[[bytearray], None]:
    return lambda out: pack_array(out, values)


def _key(key: Key) -> Callable[[bytearray], None]:
    def part(out: bytearray) -> None:
        if isinstance(key, (tuple, list)):
            pack_array(out, key)
        else:
            pack(out, key)

    return part


def _keys(keys: Iterable[Key]) -> Callable[[bytearray], None]:
    found = list(keys)

    def part(out: bytearray) -> None:
        pack_array_head(out, len(found))
        for key in found:
            _key(key)(out)

    return part


def _rows(rows: Iterable[Sequence[Any]]) -> Callable[[bytearray], None]:
    found = list(rows)

    def part(out: bytearray) -> None:
        pack_array_head(out, len(found))
        for row in found:
            pack_array(out, row)

    return part


def _row(value: Optional[List[Any]]) -> Optional[Row]:
    return None if value is None else tuple(value)


def _bytes(data: Union[bytes, str]) -> bytes:
    return data.encode() if isinstance(data, str) else bytes(data)


def _nothing(_: Answer) -> None:
    return None


def ping() -> Request[None]:
    return Request(PING, b"", _nothing, is_safe=True)


def hello(token: Optional[str], database: Optional[str]) -> Request[str]:
    payload = _array(_value(token), _value(database))
    return Request(HELLO, payload, lambda a: str(a.value), is_safe=True)


def tables() -> Request[List[str]]:
    return Request(TABLES, b"", lambda a: list(a.value), is_safe=True)


def buckets() -> Request[List[str]]:
    return Request(BUCKETS, b"", lambda a: list(a.value), is_safe=True)


def schema(table: str) -> Request[str]:
    return Request(SCHEMA, _array(_value(table)), lambda a: str(a.value), is_safe=True)


def get(table: str, key: Key) -> Request[Optional[Row]]:
    payload = _array(_value(table), _keys([key]))
    return Request(GET, payload, lambda a: _row(a.value[0]), is_safe=True)


def get_many(table: str, keys: Iterable[Key]) -> Request[List[Optional[Row]]]:
    payload = _array(_value(table), _keys(keys))
    return Request(GET, payload, lambda a: [_row(row) for row in a.value], is_safe=True)


def exists(table: str, key: Key) -> Request[bool]:
    payload = _array(_value(table), _keys([key]))
    return Request(EXISTS, payload, lambda a: bool(a.value[0]), is_safe=True)


def exists_many(table: str, keys: Iterable[Key]) -> Request[List[bool]]:
    payload = _array(_value(table), _keys(keys))
    return Request(EXISTS, payload, lambda a: list(a.value), is_safe=True)


def insert(table: str, row: Sequence[Any], replace: bool) -> Request[Optional[int]]:
    payload = _array(_value(table), _value(replace), _rows([row]))
    return Request(INSERT, payload, lambda a: a.value[1])


def insert_many(table: str, rows: Iterable[Sequence[Any]], replace: bool) -> Request[int]:
    payload = _array(_value(table), _value(replace), _rows(rows))
    return Request(INSERT, payload, lambda a: int(a.value[0]))


def update(table: str, key: Key, fields: Mapping[str, Any]) -> Request[bool]:
    payload = _array(_value(table), _key(key), lambda out: pack_map(out, dict(fields)))
    return Request(UPDATE, payload, lambda a: a.value == 1)


def update_many(table: str, updates: Iterable[Tuple[Key, Mapping[str, Any]]]) -> Request[int]:
    items = list(updates)

    def pack_all(out: bytearray) -> None:
        pack_array_head(out, 2 * len(items))
        for key, fields in items:
            _key(key)(out)
            pack_map(out, dict(fields))

    return Request(UPDATE_MANY, _array(_value(table), pack_all), lambda a: int(a.value))


def delete(table: str, key: Key) -> Request[bool]:
    payload = _array(_value(table), _keys([key]))
    return Request(DELETE, payload, lambda a: a.value == 1)


def delete_many(table: str, keys: Iterable[Key]) -> Request[int]:
    return Request(DELETE, _array(_value(table), _keys(keys)), lambda a: int(a.value))


def result_of(answer: Answer) -> Result:
    """The answer to a statement or a query."""
    result = Result()
    result.columns, result.rows = answer.columns, answer.rows
    if isinstance(answer.value, str):
        result.text = answer.value
    elif isinstance(answer.value, list):
        result.next, result.previous, result.total = answer.value
    elif answer.value is not None:
        result.changed = answer.value
    return result


_BLANK = re.compile(r"(?:[\s;]|--[^\n]*|/\*.*?\*/|\*/)*", re.DOTALL)
_TRANSACTION = re.compile(
    r"(?:begin|start|commit|end|abort|rollback(?!\s+to\b)(?!\s+(?:work|transaction)\s+to\b))\b",
    re.IGNORECASE,
)


def _refuse_transaction(text: str) -> None:
    """A client has to know whether it is within a transaction: it must not connect again then, nor
    be given to another thread."""
    blank = _BLANK.match(text)
    found = _TRANSACTION.match(text, blank.end() if blank else 0)
    if found is not None:
        raise EskerError(
            "invalid_request",
            f"{found.group(0).upper()}: use begin(), commit(), rollback() or transaction()",
        )


def sql(text: str, parameters: Sequence[Any]) -> Request[Result]:
    _refuse_transaction(text)
    return Request(SQL, _array(_value(text), _values(parameters)), result_of)


def query(asked: Union[str, Mapping[str, Any]]) -> Request[Result]:
    return Request(QUERY, _array(_value(_json_text(asked))), result_of, is_safe=True)


def explain(asked: Union[str, Mapping[str, Any]]) -> Request[str]:
    payload = _array(_value(_json_text(asked)))
    return Request(EXPLAIN, payload, lambda a: str(a.value), is_safe=True)


def _json_text(asked: Union[str, Mapping[str, Any]]) -> str:
    return asked if isinstance(asked, str) else json.dumps(asked, default=str)


def admin(task: Union[str, Mapping[str, Any]]) -> Request[Dict[str, Any]]:
    def read(answer: Answer) -> Dict[str, Any]:
        report: Dict[str, Any] = json.loads(answer.value)
        return report

    return Request(ADMIN, _array(_value(_json_text(task))), read)


def begin(serializable: bool, read_only: bool) -> Request[None]:
    return Request(BEGIN, _array(_value(serializable), _value(read_only)), _nothing)


def commit() -> Request[None]:
    return Request(COMMIT, b"", _nothing)


def rollback() -> Request[None]:
    return Request(ROLLBACK, b"", _nothing)


def bucket_get(
    bucket: str, keys: Iterable[Union[bytes, str]]
) -> Request[List[Optional[bytes]]]:
    payload = _array(_value(bucket), _values([_bytes(key) for key in keys]))
    return Request(BUCKET_GET, payload, lambda a: list(a.value), is_safe=True)


def bucket_put(
    bucket: str,
    entries: Mapping[Union[bytes, str], Union[bytes, str]],
    ttl: Union[None, bool, float],
) -> Request[int]:
    flat = [_bytes(part) for entry in entries.items() for part in entry]
    if ttl is True:
        raise EskerError("invalid_request", "ttl: expected seconds, None or False, found True")
    expiry = ttl if ttl is None or ttl is False else max(0, round(ttl * 1000))
    payload = _array(_value(bucket), _value(expiry), _values(flat))
    return Request(BUCKET_PUT, payload, lambda a: int(a.value[0]))


def bucket_remove(bucket: str, keys: Iterable[Union[bytes, str]]) -> Request[int]:
    payload = _array(_value(bucket), _values([_bytes(key) for key in keys]))
    return Request(BUCKET_REMOVE, payload, lambda a: int(a.value))


def bucket_increment(bucket: str, key: Union[bytes, str], by: int) -> Request[int]:
    payload = _array(_value(bucket), _value(_bytes(key)), _value(by))
    return Request(BUCKET_INCREMENT, payload, lambda a: int(a.value))


def bucket_range(
    bucket: str,
    start: Optional[Union[bytes, str]],
    end: Optional[Union[bytes, str]],
    prefix: Optional[Union[bytes, str]],
    limit: Optional[int],
    reverse: bool,
) -> Request[List[Tuple[bytes, bytes]]]:
    bounds = [None if bound is None else _bytes(bound) for bound in (start, end, prefix)]
    payload = _array(_value(bucket), *map(_value, bounds), _value(limit), _value(reverse))

    def read(answer: Answer) -> List[Tuple[bytes, bytes]]:
        flat = answer.value
        return list(zip(flat[0::2], flat[1::2]))

    return Request(BUCKET_RANGE, payload, read, is_safe=True)


def cancelled(request_id: int) -> bytes:
    """The payload that cancels a request."""
    out = bytearray()
    pack(out, request_id)
    return bytes(out)


def bulk_begin(
    table: str, form: str, on_duplicate: str, key: Optional[str] = None
) -> Request[int]:
    parts = [_value(table), _value(form), _value(on_duplicate)]
    payload = _array(*parts) if key is None else _array(*parts, _value(key))
    return Request(BULK_BEGIN, payload, lambda a: int(a.value))


def chunks_of_rows(rows: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    """Rows as chunks of MessagePack."""
    out = bytearray()
    for row in rows:
        pack_array(out, row)
        if len(out) >= CHUNK_BYTES:
            yield bytes(out)
            out.clear()
    if out:
        yield bytes(out)


def chunks_of_text(parts: Iterable[Union[str, bytes]]) -> Iterator[bytes]:
    """CSV or NDJSON, cut anywhere, as chunks."""
    out = bytearray()
    for part in parts:
        out += _bytes(part)
        while len(out) >= CHUNK_BYTES:
            yield bytes(out[:CHUNK_BYTES])
            del out[:CHUNK_BYTES]
    if out:
        yield bytes(out)
