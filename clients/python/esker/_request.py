"""Requests: each function checks its arguments, and says what the answer means.

:mod:`_surface` makes the methods of clients, pools, transactions and pipelines of them.
"""

from __future__ import annotations

import datetime
import decimal
import ipaddress
import json
import re
import uuid
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
)

from . import _batch as batches
from . import _check as check
from . import _frame as frames
from . import _scalars as scalars
from . import _times as times
from ._batch import RowPacker, Values
from ._codec import Codec
from ._errors import EskerError
from ._fields import Fields
from ._frame import Answer, Request
from ._messagepack import pack, pack_array, pack_array_head, pack_map, packers
from ._result import Result
from ._row import Row, maker

Key = Any
Text = Union[bytes, str]
Query = Union[str, Mapping[str, Any]]

Part = Callable[[bytearray], None]


def array(*parts: Part) -> bytes:
    """An array of parts."""
    out = bytearray()
    pack_array_head(out, len(parts))
    for part in parts:
        part(out)
    return bytes(out)


def value_part(value: Any) -> Part:
    """A value."""
    return lambda out: pack(out, value)


def table_part(name: str) -> Part:
    """The name of a table."""
    return value_part(check.text("table", name))


def _texts_of(key: Key) -> bool:
    """True when a key has a text in it, which may be meant for something else."""
    if isinstance(key, (tuple, list)):
        return any(isinstance(value, str) for value in key)
    return isinstance(key, str)


def _key(codec: Codec, key: Key, fields: Optional[Fields]) -> Part:
    how = packers(codec)
    values = key if isinstance(key, (tuple, list)) else [key]
    if fields is not None and _texts_of(key) and len(values) == len(fields.key):
        readers = fields.key_readers
        values = [
            batches.read_text(reader, value) if isinstance(value, str) else value
            for reader, value in zip(readers, values)
        ]

    def part(out: bytearray) -> None:
        if isinstance(key, (tuple, list)):
            pack_array(out, values, how)
        else:
            pack(out, values[0], how)

    check.key(key)
    return part


def _all(parts: List[Part]) -> Part:
    def part(out: bytearray) -> None:
        pack_array_head(out, len(parts))
        for each in parts:
            each(out)

    return part


def _keys(codec: Codec, keys: Sequence[Key], fields: Optional[Fields]) -> Part:
    return _all([_key(codec, key, fields) for key in keys])


def _rows(codec: Codec, rows: Iterable[Values]) -> "Tuple[List[Values], RowPacker]":
    packer = RowPacker(codec)
    found = packer.checked(check.items("rows", rows))
    if len(found) > 1 and len({isinstance(row, Mapping) for row in found}) > 1:
        raise TypeError("rows: expected tuples alone or dicts alone, found both")
    return found, packer


def _fields_part(codec: Codec, values: Mapping[str, Any], fields: Optional[Fields]) -> Part:
    packer = RowPacker(codec)
    packer.fit(fields)
    return lambda out: packer.pack(out, [values])


def _given_fields(fields: Optional[Mapping[str, Any]], more: Mapping[str, Any]) -> Dict[str, Any]:
    given = {} if fields is None else check.named("fields", fields)
    return {**given, **more}


def _reader(codec: Codec, fields: Optional[Fields]) -> Callable[[Optional[List[Any]]], Any]:
    """What makes a row of an answer without names, or nothing."""
    make = maker(codec.rows, None if fields is None else fields.names)

    def read(values: Optional[List[Any]]) -> Any:
        if values is None:
            return None
        if fields is not None and len(values) != len(fields.names):
            # They were changed meanwhile.
            return tuple(values)
        return make(list(map(times.text, values)) if codec.iso_times else values)

    return read


def nothing(_: Answer) -> None:
    """What the answer means that says nothing."""
    return None


# The connection.


def ping(codec: Codec) -> Request[None]:
    """Whether the server answers."""
    return Request(frames.PING, b"", nothing, is_safe=True)


def hello(token: Optional[str], database: Optional[str]) -> Request[str]:
    """Says who asks, and for which database."""
    payload = array(value_part(token), value_part(database))
    return Request(frames.HELLO, payload, lambda a: str(a.value), is_safe=True)


def cancelled(request_id: int) -> bytes:
    """The payload that cancels a request."""
    out = bytearray()
    pack(out, request_id)
    return bytes(out)


# Tables.


def tables(codec: Codec) -> Request[List[str]]:
    """The names of tables."""
    return Request(frames.TABLES, b"", lambda a: list(a.value), is_safe=True)


def buckets(codec: Codec) -> Request[List[str]]:
    """The names of buckets."""
    return Request(frames.BUCKETS, b"", lambda a: list(a.value), is_safe=True)


def schema(codec: Codec, table: str) -> Request[str]:
    """The fields, key and indexes of a table."""
    return Request(frames.SCHEMA, array(table_part(table)), lambda a: str(a.value), is_safe=True)


def _of_keys(
    kind: int,
    codec: Codec,
    table: str,
    keys: List[Key],
    read: Callable[[Answer, Optional[Fields]], Any],
    *,
    is_read: bool,
) -> Request[Any]:
    """A request about keys. Where the rows of its answer have names, or a key may be a date, it
    needs the fields of the table."""

    def fit(fields: Optional[Fields]) -> Request[Any]:
        payload = array(table_part(table), _keys(codec, keys, fields))
        has_names = kind == frames.GET and codec.rows != "tuple"
        is_open = fields is None and (has_names or any(map(_texts_of, keys)))
        return Request(
            kind,
            payload,
            lambda a: read(a, fields),
            is_read,
            codec=codec,
            table=table if is_open else None,
            fit=fit,
        )

    return fit(None)


def get(
    codec: Codec,
    table: str,
    key: Key,
    *,
    rows: Optional[str] = None,
    iso_times: Optional[bool] = None,
) -> Request[Optional[Row]]:
    """The row with a key, which is a value, or a tuple of those of several fields."""
    codec = codec.but(rows, iso_times=iso_times)

    def read(answer: Answer, fields: Optional[Fields]) -> Optional[Row]:
        found: Optional[Row] = _reader(codec, fields)(answer.value[0])
        return found

    return _of_keys(frames.GET, codec, table, [key], read, is_read=True)


def get_many(
    codec: Codec,
    table: str,
    keys: Iterable[Key],
    *,
    rows: Optional[str] = None,
    iso_times: Optional[bool] = None,
) -> Request[List[Optional[Row]]]:
    """The rows with some keys, in their order, all as of one commit."""
    codec = codec.but(rows, iso_times=iso_times)

    def read(answer: Answer, fields: Optional[Fields]) -> List[Optional[Row]]:
        return list(map(_reader(codec, fields), answer.value))

    found = check.items("keys", keys)
    return _of_keys(frames.GET, codec, table, found, read, is_read=True)


def exists(codec: Codec, table: str, key: Key) -> Request[bool]:
    """Whether there is a row with a key."""
    return _of_keys(
        frames.EXISTS, codec, table, [key], lambda a, _: bool(a.value[0]), is_read=True
    )


def exists_many(codec: Codec, table: str, keys: Iterable[Key]) -> Request[List[bool]]:
    """The same of some keys."""
    found = check.items("keys", keys)
    return _of_keys(frames.EXISTS, codec, table, found, lambda a, _: list(a.value), is_read=True)


def _insert(
    codec: Codec,
    table: str,
    rows: Iterable[Values],
    replace: bool,
    read: Callable[[Answer], Any],
) -> Request[Any]:
    flag = check.flag("replace", replace)
    found, packer = _rows(codec, rows)

    def payload() -> bytes:
        out = bytearray()
        pack_array_head(out, 3)
        pack(out, check.text("table", table))
        pack(out, flag)
        pack_array_head(out, len(found))
        packer.pack(out, found)
        return bytes(out)

    def fit(fields: Fields) -> Request[Any]:
        packer.fit(fields)
        return Request(frames.INSERT, payload() if packer.is_fitting else sent, read, codec=codec)

    sent = payload()
    is_open = batches.has_text(found)
    return Request(
        frames.INSERT, sent, read, codec=codec, table=table if is_open else None, fit=fit
    )


def insert(
    codec: Codec,
    table: str,
    row: Values,
    *,
    replace: bool = False,
    nan_as_null: Optional[bool] = None,
) -> Request[Optional[int]]:
    """Adds a row: a tuple with a value for every field, or a dict of fields, in which those that
    are left out get their defaults. The answer is the number of a row that was a tuple: the key
    of one without."""
    codec = codec.but(nan_as_null=nan_as_null)
    return _insert(codec, table, [row], replace, lambda a: a.value[1])


def insert_many(
    codec: Codec,
    table: str,
    rows: Iterable[Values],
    *,
    replace: bool = False,
    nan_as_null: Optional[bool] = None,
) -> Request[int]:
    """Adds rows, all or none; how many. For very many, there is ``load``."""
    codec = codec.but(nan_as_null=nan_as_null)
    return _insert(codec, table, rows, replace, lambda a: int(a.value[0]))


Change = Tuple[Key, Dict[str, Any]]


def _update(
    codec: Codec,
    table: str,
    changes: List[Change],
    kind: int,
    read: Callable[[Answer], Any],
) -> Request[Any]:
    """One change, or several by one request."""

    def fit(fields: Optional[Fields]) -> Request[Any]:
        parts: List[Part] = []
        for key, values in changes:
            parts += [_key(codec, key, fields), _fields_part(codec, values, fields)]
        body = parts if kind == frames.UPDATE else [_all(parts)]
        is_open = fields is None and any(
            _texts_of(key) or batches.has_text([values]) for key, values in changes
        )
        return Request(
            kind,
            array(table_part(table), *body),
            read,
            codec=codec,
            table=table if is_open else None,
            fit=fit,
        )

    return fit(None)


def update(
    codec: Codec,
    /,
    table: str,
    key: Key,
    fields: Optional[Mapping[str, Any]] = None,
    *,
    nan_as_null: Optional[bool] = None,
    **more: Any,
) -> Request[bool]:
    """Changes fields of a row; false when there is none. Fields whose names are taken by the other
    arguments go into the dict."""
    codec = codec.but(nan_as_null=nan_as_null)
    changes = [(key, _given_fields(fields, more))]
    return _update(codec, table, changes, frames.UPDATE, lambda a: bool(a.value == 1))


def update_many(
    codec: Codec,
    table: str,
    updates: Iterable[Tuple[Key, Mapping[str, Any]]],
    *,
    nan_as_null: Optional[bool] = None,
) -> Request[int]:
    """Changes fields of rows, each by its key, in one commit; how many updates found a row."""
    changes: List[Change] = []
    for update in check.items("updates", updates):
        if not isinstance(update, (tuple, list)) or len(update) != 2:
            raise TypeError(f"updates: expected pairs of a key and a dict, found {update!r}")
        changes.append((update[0], check.named("fields", update[1])))
    codec = codec.but(nan_as_null=nan_as_null)
    return _update(codec, table, changes, frames.UPDATE_MANY, lambda a: int(a.value))


def delete(codec: Codec, table: str, key: Key) -> Request[bool]:
    """Removes a row; false when there is none."""
    return _of_keys(
        frames.DELETE, codec, table, [key], lambda a, _: bool(a.value == 1), is_read=False
    )


def delete_many(codec: Codec, table: str, keys: Iterable[Key]) -> Request[int]:
    """Removes rows, in one commit; how many there were."""
    found = check.items("keys", keys)
    return _of_keys(frames.DELETE, codec, table, found, lambda a, _: int(a.value), is_read=False)


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


def refuse_transaction(text: str) -> None:
    """A client has to know whether it is within a transaction: it must not connect again then, nor
    be given to another thread."""
    blank = _BLANK.match(check.text("statement", text))
    found = _TRANSACTION.match(text, blank.end() if blank else 0)
    if found is not None:
        raise EskerError(
            "invalid_request",
            f"{found.group(0).upper()}: use begin(), commit(), rollback() or transaction()",
        )


def sql(
    codec: Codec,
    text: str,
    parameters: Values = (),
    *,
    rows: Optional[str] = None,
    nan_as_null: Optional[bool] = None,
    iso_times: Optional[bool] = None,
) -> Request[Result]:
    """Runs a statement. Its parameters are those of ``?``, ``?1`` or ``$1`` in their order, or a
    dict of those of ``:name``. The other arguments are for this answer what those of
    :class:`esker.Client` are for all."""
    refuse_transaction(text)
    codec = codec.but(rows, nan_as_null, iso_times)
    checked, how = check.values("parameters", parameters), packers(codec)

    def part(out: bytearray) -> None:
        if isinstance(checked, dict):
            pack_map(out, checked, how)
        else:
            pack_array(out, checked, how)

    return Request(frames.SQL, array(value_part(text), part), _result, codec=codec)


def query(
    codec: Codec, query: Query, *, rows: Optional[str] = None, iso_times: Optional[bool] = None
) -> Request[Result]:
    """Asks a query as JSON: see docs/reference/query-json.md."""
    codec = codec.but(rows, iso_times=iso_times)
    payload = array(value_part(_json(query)))
    return Request(frames.QUERY, payload, _result, is_safe=True, codec=codec)


def explain(codec: Codec, query: Query) -> Request[str]:
    """How a query is answered."""
    payload = array(value_part(_json(query)))
    return Request(frames.EXPLAIN, payload, lambda a: str(a.value), is_safe=True)


def admin(codec: Codec, task: Query) -> Request[Dict[str, Any]]:
    """A task of administration: ``{"task": "check"}``."""

    def read(answer: Answer) -> Dict[str, Any]:
        report: Dict[str, Any] = json.loads(answer.value)
        return report

    return Request(frames.ADMIN, array(value_part(_json(task))), read)


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


def _json_value(value: Any) -> Any:
    """A value that a query compares with, as text, or one that JSON has."""
    if isinstance(value, _WRITTEN) or scalars.is_datetime64(value):
        return str(value) if value == value else None
    return scalars.plain(value)


# Transactions.


def begin(serializable: bool, read_only: bool) -> Request[None]:
    """Begins a transaction."""
    flags = check.flag("serializable", serializable), check.flag("read_only", read_only)
    return Request(frames.BEGIN, array(*map(value_part, flags)), nothing)


def commit() -> Request[None]:
    """Ends a transaction."""
    return Request(frames.COMMIT, b"", nothing)


def rollback() -> Request[None]:
    """Ends a transaction, and nothing of it is done."""
    return Request(frames.ROLLBACK, b"", nothing)
