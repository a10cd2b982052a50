"""Requests: each function checks its arguments, and says what the answer means.

:mod:`_surface` makes the methods of clients, pools, transactions and pipelines of them.
"""

from __future__ import annotations

import datetime
import decimal
import ipaddress
import json
import math
import re
import uuid
from typing import (
    Any,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Type,
    Union,
)

from . import _check as check
from . import _frame as frames
from ._errors import EskerError
from ._frame import Answer, Request
from ._messagepack import pack, pack_array, pack_array_head, pack_map
from ._result import Result, Row

Key = Any
Text = Union[bytes, str]
Values = Union[Sequence[Any], Mapping[str, Any]]
"""A row or parameters: values by position, or by name."""
Query = Union[str, Mapping[str, Any]]
TimeToLive = Union[None, bool, float]

CHUNK_BYTES = 256 << 10
_LONG_MAX = (1 << 63) - 1
_MILLISECONDS_MAX = (1 << 53) - 1

Part = Callable[[bytearray], None]


def _array(*parts: Part) -> bytes:
    out = bytearray()
    pack_array_head(out, len(parts))
    for part in parts:
        part(out)
    return bytes(out)


def _value(value: Any) -> Part:
    return lambda out: pack(out, value)


def _table(name: str) -> Part:
    return _value(check.text("table", name))


def _bucket(name: str) -> Part:
    return _value(check.text("bucket", name))


def _key(key: Key) -> Part:
    def part(out: bytearray) -> None:
        if isinstance(key, (tuple, list)):
            pack_array(out, key)
        else:
            pack(out, key)

    check.key(key)
    return part


def _all(parts: List[Part]) -> Part:
    def part(out: bytearray) -> None:
        pack_array_head(out, len(parts))
        for each in parts:
            each(out)

    return part


def _keys(keys: Iterable[Key]) -> Part:
    return _all([_key(key) for key in check.items("keys", keys)])


def _add_values(out: bytearray, what: str, values: Values) -> None:
    checked = check.values(what, values)
    if isinstance(checked, dict):
        pack_map(out, checked)
    else:
        pack_array(out, checked)


def _rows(rows: Iterable[Values]) -> Part:
    found = check.items("rows", rows)
    if len({isinstance(row, Mapping) for row in found}) > 1:
        raise TypeError("rows: expected tuples alone or dicts alone, found both")

    def part(out: bytearray) -> None:
        pack_array_head(out, len(found))
        for row in found:
            _add_values(out, "row", row)

    return part


def _fields(fields: Optional[Mapping[str, Any]], more: Mapping[str, Any]) -> Part:
    given = {} if fields is None else check.named("fields", fields)
    return lambda out: pack_map(out, {**given, **more})


def _entry_keys(keys: Iterable[Text]) -> Part:
    found = [check.data("key", key) for key in check.items("keys", keys)]
    return lambda out: pack_array(out, found)


def _row(value: Optional[List[Any]]) -> Optional[Row]:
    return None if value is None else tuple(value)


def _nothing(_: Answer) -> None:
    return None


# The connection.


def ping() -> Request[None]:
    """Whether the server answers."""
    return Request(frames.PING, b"", _nothing, is_safe=True)


def hello(token: Optional[str], database: Optional[str]) -> Request[str]:
    """Says who asks, and for which database."""
    payload = _array(_value(token), _value(database))
    return Request(frames.HELLO, payload, lambda a: str(a.value), is_safe=True)


def cancelled(request_id: int) -> bytes:
    """The payload that cancels a request."""
    out = bytearray()
    pack(out, request_id)
    return bytes(out)


# Tables.


def tables() -> Request[List[str]]:
    """The names of tables."""
    return Request(frames.TABLES, b"", lambda a: list(a.value), is_safe=True)


def buckets() -> Request[List[str]]:
    """The names of buckets."""
    return Request(frames.BUCKETS, b"", lambda a: list(a.value), is_safe=True)


def schema(table: str) -> Request[str]:
    """The fields, key and indexes of a table."""
    return Request(frames.SCHEMA, _array(_table(table)), lambda a: str(a.value), is_safe=True)


def get(table: str, key: Key) -> Request[Optional[Row]]:
    """The row with a key, which is a value, or a tuple of those of several fields."""
    payload = _array(_table(table), _keys([key]))
    return Request(frames.GET, payload, lambda a: _row(a.value[0]), is_safe=True)


def get_many(table: str, keys: Iterable[Key]) -> Request[List[Optional[Row]]]:
    """The rows with some keys, in their order, all as of one commit."""
    payload = _array(_table(table), _keys(keys))
    return Request(frames.GET, payload, lambda a: [_row(row) for row in a.value], is_safe=True)


def exists(table: str, key: Key) -> Request[bool]:
    """Whether there is a row with a key."""
    payload = _array(_table(table), _keys([key]))
    return Request(frames.EXISTS, payload, lambda a: bool(a.value[0]), is_safe=True)


def exists_many(table: str, keys: Iterable[Key]) -> Request[List[bool]]:
    """The same of some keys."""
    payload = _array(_table(table), _keys(keys))
    return Request(frames.EXISTS, payload, lambda a: list(a.value), is_safe=True)


def insert(table: str, row: Values, *, replace: bool = False) -> Request[Optional[int]]:
    """Adds a row: a tuple with a value for every field, or a dict of fields, in which those that
    are left out get their defaults. The answer is the number of a row that was a tuple: the key
    of one without."""
    flag = check.flag("replace", replace)
    payload = _array(_table(table), _value(flag), _rows([row]))
    return Request(frames.INSERT, payload, lambda a: a.value[1])


def insert_many(table: str, rows: Iterable[Values], *, replace: bool = False) -> Request[int]:
    """Adds rows, all or none; how many. For very many, there is ``load``."""
    flag = check.flag("replace", replace)
    payload = _array(_table(table), _value(flag), _rows(rows))
    return Request(frames.INSERT, payload, lambda a: int(a.value[0]))


def update(
    table: str, key: Key, fields: Optional[Mapping[str, Any]] = None, **more: Any
) -> Request[bool]:
    """Changes fields of a row; false when there is none."""
    payload = _array(_table(table), _key(key), _fields(fields, more))
    return Request(frames.UPDATE, payload, lambda a: a.value == 1)


def update_many(
    table: str, updates: Iterable[Tuple[Key, Mapping[str, Any]]]
) -> Request[int]:
    """Changes fields of rows, each by its key, in one commit; how many updates found a row."""
    parts: List[Part] = []
    for update in check.items("updates", updates):
        if not isinstance(update, (tuple, list)) or len(update) != 2:
            raise TypeError(f"updates: expected pairs of a key and a dict, found {update!r}")
        parts += [_key(update[0]), _fields(update[1], {})]
    payload = _array(_table(table), _all(parts))
    return Request(frames.UPDATE_MANY, payload, lambda a: int(a.value))


def delete(table: str, key: Key) -> Request[bool]:
    """Removes a row; false when there is none."""
    payload = _array(_table(table), _keys([key]))
    return Request(frames.DELETE, payload, lambda a: a.value == 1)


def delete_many(table: str, keys: Iterable[Key]) -> Request[int]:
    """Removes rows, in one commit; how many there were."""
    payload = _array(_table(table), _keys(keys))
    return Request(frames.DELETE, payload, lambda a: int(a.value))


# Statements and queries.


def _result(answer: Answer) -> Result:
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


def sql(text: str, parameters: Values = ()) -> Request[Result]:
    """Runs a statement. Its parameters are those of ``?``, ``?1`` or ``$1`` in their order, or a
    dict of those of ``:name``."""
    _refuse_transaction(check.text("statement", text))
    payload = _array(_value(text), lambda out: _add_values(out, "parameters", parameters))
    return Request(frames.SQL, payload, _result)


def query(query: Query) -> Request[Result]:
    """Asks a query as JSON: see docs/reference/query-json.md."""
    return Request(frames.QUERY, _array(_value(_json(query))), _result, is_safe=True)


def explain(query: Query) -> Request[str]:
    """How a query is answered."""
    payload = _array(_value(_json(query)))
    return Request(frames.EXPLAIN, payload, lambda a: str(a.value), is_safe=True)


def admin(task: Query) -> Request[Dict[str, Any]]:
    """A task of administration: ``{"task": "check"}``."""

    def read(answer: Answer) -> Dict[str, Any]:
        report: Dict[str, Any] = json.loads(answer.value)
        return report

    return Request(frames.ADMIN, _array(_value(_json(task))), read)


def _json(asked: Query) -> str:
    if isinstance(asked, str):
        return asked
    if not isinstance(asked, Mapping):
        raise TypeError(f"expected a dict or JSON as a str, found {type(asked).__name__}")
    try:
        return json.dumps(dict(asked), allow_nan=False, default=_json_value)
    except ValueError as e:
        raise check.invalid(f"expected values that JSON has: {e}") from e


_WRITTEN = (
    datetime.date,
    datetime.time,
    decimal.Decimal,
    uuid.UUID,
    ipaddress.IPv4Address,
    ipaddress.IPv6Address,
)


def _json_value(value: Any) -> str:
    """A value that a query compares with, as text."""
    if isinstance(value, _WRITTEN):
        return str(value)
    raise TypeError(f"expected a value that a field can have, found {type(value).__name__}")


# Transactions.


def begin(serializable: bool, read_only: bool) -> Request[None]:
    """Begins a transaction."""
    flags = check.flag("serializable", serializable), check.flag("read_only", read_only)
    return Request(frames.BEGIN, _array(*map(_value, flags)), _nothing)


def commit() -> Request[None]:
    """Ends a transaction."""
    return Request(frames.COMMIT, b"", _nothing)


def rollback() -> Request[None]:
    """Ends a transaction, and nothing of it is done."""
    return Request(frames.ROLLBACK, b"", _nothing)


# Buckets.


def bucket_get(bucket: str, key: Text) -> Request[Optional[bytes]]:
    """The value of a key."""
    payload = _array(_bucket(bucket), _entry_keys([key]))
    return Request(frames.BUCKET_GET, payload, lambda a: a.value[0], is_safe=True)


def bucket_get_many(bucket: str, keys: Iterable[Text]) -> Request[List[Optional[bytes]]]:
    """The values of keys, in their order."""
    payload = _array(_bucket(bucket), _entry_keys(keys))
    return Request(frames.BUCKET_GET, payload, lambda a: list(a.value), is_safe=True)


def _put(bucket: str, entries: List[Tuple[Text, Text]], ttl: TimeToLive) -> bytes:
    expiry: Union[None, bool, int] = None
    if ttl is False:
        expiry = False
    elif ttl is not None:
        milliseconds = check.seconds("ttl", ttl) * 1000
        expiry = round(milliseconds) or math.ceil(milliseconds)
        check.integer("ttl in milliseconds", expiry, 1, _MILLISECONDS_MAX)
    flat: List[bytes] = []
    for key, value in entries:
        flat += (check.data("key", key), check.data("value", value))
    return _array(_bucket(bucket), _value(expiry), lambda out: pack_array(out, flat))


def bucket_put(
    bucket: str, key: Text, value: Text, *, ttl: TimeToLive = None
) -> Request[None]:
    """Puts a value; ``ttl`` is seconds from now, ``False`` never, ``None`` as the bucket says."""
    return Request(frames.BUCKET_PUT, _put(bucket, [(key, value)], ttl), _nothing)


def bucket_put_many(
    bucket: str, entries: Mapping[Text, Text], *, ttl: TimeToLive = None
) -> Request[int]:
    """Puts values, all or none; how many."""
    if not isinstance(entries, Mapping):
        raise TypeError(f"entries: expected a dict, found {type(entries).__name__}")
    payload = _put(bucket, list(entries.items()), ttl)
    return Request(frames.BUCKET_PUT, payload, lambda a: int(a.value[0]))


def bucket_remove(bucket: str, key: Text) -> Request[bool]:
    """Removes a key; false when there is none."""
    payload = _array(_bucket(bucket), _entry_keys([key]))
    return Request(frames.BUCKET_REMOVE, payload, lambda a: a.value == 1)


def bucket_remove_many(bucket: str, keys: Iterable[Text]) -> Request[int]:
    """Removes keys; how many there were."""
    payload = _array(_bucket(bucket), _entry_keys(keys))
    return Request(frames.BUCKET_REMOVE, payload, lambda a: int(a.value))


def bucket_increment(bucket: str, key: Text, by: int = 1) -> Request[int]:
    """Adds to a number; what it is then."""
    added = check.integer("by", by, -_LONG_MAX - 1, _LONG_MAX)
    payload = _array(_bucket(bucket), _value(check.data("key", key)), _value(added))
    return Request(frames.BUCKET_INCREMENT, payload, lambda a: int(a.value))


def bucket_range(
    bucket: str,
    start: Optional[Text] = None,
    end: Optional[Text] = None,
    *,
    prefix: Optional[Text] = None,
    limit: Optional[int] = None,
    reverse: bool = False,
) -> Request[List[Tuple[bytes, bytes]]]:
    """Keys from ``start`` up to ``end``, which is not among them, with their values."""
    given = (("start", start), ("end", end), ("prefix", prefix))
    bounds = [None if bound is None else check.data(name, bound) for name, bound in given]
    if limit is not None:
        check.integer("limit", limit, 0, _LONG_MAX)
    flag = check.flag("reverse", reverse)
    payload = _array(_bucket(bucket), *map(_value, bounds), _value(limit), _value(flag))

    def read(answer: Answer) -> List[Tuple[bytes, bytes]]:
        flat = answer.value
        return list(zip(flat[0::2], flat[1::2]))

    return Request(frames.BUCKET_RANGE, payload, read, is_safe=True)


# Loads.

Rows = Union[Iterable[Values], AsyncIterable[Values]]
Parts = Union[Text, Iterable[Text], AsyncIterable[Text]]


class Load(NamedTuple):
    """A load: how it begins, and its chunks."""

    request: Request[int]
    chunks: Callable[[], Iterator[bytes]]
    async_chunks: Callable[[], AsyncIterator[bytes]]
    is_repeatable: bool
    """True when it may be sent again: it has a key, and its rows can be gone through again."""


def load(
    table: str, rows: Rows, *, on_duplicate: str = "error", key: Optional[str] = None
) -> Load:
    """A load of rows, as tuples or dicts."""
    if not isinstance(rows, AsyncIterable):
        check.iterable("rows", rows)
    return _load(_begin_load(table, "messagepack", on_duplicate, key), rows, _RowChunks, key)


def load_text(
    table: str, form: str, parts: Parts, *, on_duplicate: str = "error", key: Optional[str] = None
) -> Load:
    """A load of CSV or NDJSON."""
    if isinstance(parts, (str, bytes, bytearray)):
        parts = [bytes(parts) if isinstance(parts, bytearray) else parts]
    if not isinstance(parts, AsyncIterable):
        check.iterable("parts", parts)
    return _load(_begin_load(table, form, on_duplicate, key), parts, _TextChunks, key)


def _begin_load(table: str, form: str, on_duplicate: str, key: Optional[str]) -> Request[int]:
    parts = [_table(table), _value(check.text("form", form))]
    parts.append(_value(check.text("on_duplicate", on_duplicate)))
    if key is not None:
        parts.append(_value(check.text("key", key)))
    return Request(frames.BULK_BEGIN, _array(*parts), lambda a: int(a.value))


class _RowChunks(bytearray):
    """Rows on their way into chunks, each of which has whole rows."""

    def add(self, row: Values) -> None:
        _add_values(self, "row", row)

    def full(self) -> Iterator[bytes]:
        if len(self) >= CHUNK_BYTES:
            yield bytes(self)
            self.clear()


class _TextChunks(bytearray):
    """A text on its way into chunks, cut anywhere."""

    def add(self, part: Text) -> None:
        self.extend(check.data("part", part))

    def full(self) -> Iterator[bytes]:
        while len(self) >= CHUNK_BYTES:
            yield bytes(self[:CHUNK_BYTES])
            del self[:CHUNK_BYTES]


def _load(
    request: Request[int],
    rows: Any,
    kind: Type[Union[_RowChunks, _TextChunks]],
    key: Optional[str],
) -> Load:
    def chunks() -> Iterator[bytes]:
        out = kind()
        for row in rows:
            out.add(row)
            yield from out.full()
        if out:
            yield bytes(out)

    async def async_chunks() -> AsyncIterator[bytes]:
        if not isinstance(rows, AsyncIterable):
            for chunk in chunks():
                yield chunk
            return
        out = kind()
        async for row in rows:
            out.add(row)
            for chunk in out.full():
                yield chunk
        if out:
            yield bytes(out)

    return Load(request, chunks, async_chunks, key is not None and not _is_once(rows))


def _is_once(rows: Any) -> bool:
    """True of what can be gone through once alone."""
    return hasattr(rows, "__next__") or hasattr(rows, "__anext__")


def load_key(rows: Any, on_duplicate: str) -> Optional[str]:
    """A key for a load whose rows can be gone through again; ``skip`` goes without."""
    return None if _is_once(rows) or on_duplicate == "skip" else uuid.uuid4().hex
