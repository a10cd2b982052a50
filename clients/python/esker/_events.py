"""Events of streams, on their way to the server: as rows, or by column, which is the quickest."""

from __future__ import annotations

import datetime
import decimal
import ipaddress
import itertools
import operator
import struct
import uuid
from collections.abc import Sequence as SequenceBase
from typing import (
    Any,
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
    Union,
)

from . import _batch as batches
from . import _check as check
from . import _frame as frames
from . import _scalars as scalars
from ._batch import RowPacker, Values
from ._codec import Codec
from ._errors import EskerError
from ._fields import Fields
from ._frame import Answer, Request
from ._messagepack import (
    EPOCH,
    EPOCH_DAY,
    MICROSECOND,
    Json,
    pack,
    pack_array,
    pack_array_head,
    pack_extension,
    pack_map_head,
    packers,
)

Producer = Tuple[str, int, int]
"""Who sends events: a name, an epoch, and the number of the first event."""

_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ID_BYTES = 16
# The extension that the ends of texts are.
_ENDS = 16
# The most events of one commit.
COMMIT_EVENTS_MAX = 10_000
# Columns of so many rows have codes, where there are few distinct texts.
_CODES_MIN = 64


def id_text(data: bytes) -> Optional[str]:
    """The id of an event, of 16 bytes; ``None`` for zeros.

    >>> id_text(bytes.fromhex("019b7ca98d0300000000000000000007"))
    '01KDYAK3830000000000000007'
    """
    bits = int.from_bytes(data, "big")
    if bits == 0:
        return None
    return "".join(_DIGITS[bits >> 5 * at & 31] for at in range(25, -1, -1))


def row_id(text: str) -> int:
    """The row id of an id.

    >>> row_id("01KDYAK3830000000000000007")
    7
    """
    bits = 0
    for digit in text.upper():
        bits = bits << 5 | _DIGITS.index(digit)
    return bits & (1 << 64) - 1


class EventIds(SequenceBase):  # type: ignore[type-arg]
    """Ids of events, in their order; ``None`` of one that was refused. They are texts of 26
    characters, each made when it is asked for."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __len__(self) -> int:
        return len(self._data) // _ID_BYTES

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[place] for place in range(*at.indices(len(self)))]
        place = range(len(self))[at] * _ID_BYTES
        return id_text(self._data[place : place + _ID_BYTES])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SequenceBase) and list(self) == list(other)

    def __repr__(self) -> str:
        return f"EventIds({list(self)!r})"


class RefusedEvent(NamedTuple):
    """An event that was not stored."""

    item: int
    """Its number, from 1."""
    error: EskerError
    """Why."""
    is_retryable: bool
    """True when it may be stored later."""


class Appended(NamedTuple):
    """What became of events."""

    accepted: int
    """How many are stored."""
    rejected: int
    """How many are not."""
    ids: EventIds
    """The id of each; of ``minimal`` the first and the last one."""
    errors: List[RefusedEvent]
    """Those that were refused."""
    is_duplicate: bool
    """True when a producer had sent them before."""
    durable_within_ms: Optional[int]
    """How soon the disk has what is answered before."""


def _appended(answer: Answer) -> Appended:
    accepted, rejected, ids, errors, is_duplicate, within = answer.value
    refused = [
        RefusedEvent(item, EskerError(code, message), is_retryable)
        for item, code, message, is_retryable in errors
    ]
    return Appended(accepted, rejected, EventIds(ids or b""), refused, is_duplicate, within)


def _one(answer: Answer) -> str:
    told = _appended(answer)
    if told.errors:
        raise told.errors[0].error
    found = told.ids[0]
    return str(found)


class _How(NamedTuple):
    """How events are to be stored."""

    sent: bytes
    has_producer: bool

    def is_keyed(self, count: int) -> bool:
        """True of events that a key makes be stored once: those of one commit."""
        return not self.has_producer and count <= COMMIT_EVENTS_MAX


def _how(
    durability: Optional[str],
    each: bool,
    minimal: bool,
    producer: Optional[Producer],
    fields: Optional[Sequence[str]],
) -> _How:
    said: List[Tuple[str, Any]] = []
    if durability is not None:
        said.append(("durability", check.text("durability", durability)))
    if not check.flag("each", each):
        said.append(("each", False))
    if fields is not None:
        said.append(("fields", [check.text("fields", name) for name in check.items("fields", fields)]))
    if check.flag("minimal", minimal):
        said.append(("minimal", True))
    if producer is not None:
        if not isinstance(producer, tuple) or len(producer) != 3:
            raise TypeError("producer: expected a tuple of a name, an epoch and a number")
        name, epoch, seq = producer
        numbers = [check.integer("producer", n, 0, (1 << 64) - 1) for n in (epoch, seq)]
        said.append(("producer", [check.text("producer", name), *numbers]))
    out = bytearray()
    pack_map_head(out, len(said))
    for member, value in said:
        pack(out, member)
        if isinstance(value, list):
            pack_array(out, value)
        else:
            pack(out, value)
    return _How(bytes(out), producer is not None)


def _append(
    codec: Codec,
    stream: str,
    events: Iterable[Values],
    how: _How,
    read: Callable[[Answer], Any],
    names: Optional[Sequence[str]] = None,
) -> Request[Any]:
    packer = RowPacker(codec, "row", names)
    found = packer.checked(check.items("rows", events))

    def payload() -> bytes:
        out = bytearray()
        pack_array_head(out, 3)
        pack(out, check.text("stream", stream))
        out.extend(how.sent)
        pack_array_head(out, len(found))
        packer.pack(out, found)
        return bytes(out)

    is_write = how.is_keyed(len(found))

    def fit(fields: Fields) -> Request[Any]:
        packer.fit(fields)
        fitted = payload() if packer.is_fitting else sent
        return Request(
            frames.APPEND, fitted, read, how.has_producer, is_write=is_write, codec=codec
        )

    sent = payload()
    table = stream if batches.has_text(found) else None
    return Request(
        frames.APPEND,
        sent,
        read,
        how.has_producer,
        is_write=is_write,
        codec=codec,
        table=table,
        fit=fit,
    )


def append(
    codec: Codec,
    stream: str,
    event: Values,
    *,
    durability: Optional[str] = None,
    nan_as_null: Optional[bool] = None,
) -> Request[str]:
    """Adds an event to a stream: a dict of fields, in which those that are left out get their
    defaults, or a tuple with a value for every field. The answer is its id, once the event is as
    durable as the server's databases are; ``durability`` is ``sync`` or ``async``."""
    how = _how(durability, True, False, None, None)
    return _append(codec.but(nan_as_null=nan_as_null), stream, [event], how, _one)


def append_many(
    codec: Codec,
    stream: str,
    events: Iterable[Values],
    *,
    durability: Optional[str] = None,
    each: bool = True,
    minimal: bool = False,
    producer: Optional[Producer] = None,
    fields: Optional[Sequence[str]] = None,
    nan_as_null: Optional[bool] = None,
) -> Request[Appended]:
    """Adds events to a stream, each with an outcome of its own, or with ``each=False`` all or none.

    ``fields`` names the values of tuples, unless they have one for every field. With ``minimal``
    only the first and the last id are told. ``producer``, a name, an epoch and the number of the
    first event, makes events that are sent again be stored once.
    """
    how = _how(durability, each, minimal, producer, fields)
    return _append(codec.but(nan_as_null=nan_as_null), stream, events, how, _appended, fields)


def append_columns(
    codec: Codec,
    stream: str,
    columns: Mapping[str, Sequence[Any]],
    *,
    durability: Optional[str] = None,
    each: bool = True,
    minimal: bool = False,
    producer: Optional[Producer] = None,
    nan_as_null: Optional[bool] = None,
) -> Request[Appended]:
    """The same by column: a dict of lists, all equally long. Fields without one get their
    defaults. It is the quickest way in."""
    codec = codec.but(nan_as_null=nan_as_null)
    how = _how(durability, each, minimal, producer, None)
    lists = {name: _list(name, values) for name, values in check.named("columns", columns).items()}
    counts = {len(values) for values in lists.values()}
    if len(counts) > 1:
        lengths = ", ".join(f"{name} {len(values)}" for name, values in lists.items())
        raise check.invalid(f"columns: expected equally many values, found {lengths}")

    count = counts.pop() if counts else 0

    def request(fields: Optional[Fields]) -> Request[Appended]:
        readers = {} if fields is None else fields.named_readers
        is_open = fields is None and any(str in set(map(type, v)) for v in lists.values())
        out = bytearray()
        pack_array_head(out, 4)
        pack(out, check.text("stream", stream))
        out.extend(how.sent)
        pack(out, count)
        pack_array_head(out, len(lists))
        for name, values in lists.items():
            fitted = _read(values, readers.get(name.lower()))
            _pack_column(out, codec, name, fitted, is_open)
        table = stream if is_open else None
        return Request(
            frames.APPEND_COLUMNS,
            bytes(out),
            _appended,
            how.has_producer,
            is_write=how.is_keyed(count),
            codec=codec,
            table=table,
            fit=request,
        )

    return request(None)


def _list(name: str, values: Any) -> List[Any]:
    if scalars.is_array(values) and values.dtype.kind in "biuf":
        found: List[Any] = values.tolist()
        return found
    return check.items(f"column {name}", values)


def _read(values: List[Any], reader: Optional[Callable[[str], Any]]) -> List[Any]:
    """Texts as what their field takes them for."""
    if reader is None:
        return values
    return [batches.read_text(reader, v) if isinstance(v, str) else v for v in values]


def _pack_column(
    out: bytearray, codec: Codec, name: str, values: List[Any], is_open: bool
) -> None:
    """Packs a column; of one whose field is not known yet, texts may be meant for something
    else."""
    kinds = set(map(type, values))
    if not kinds <= _KINDS:
        known = packers(codec)
        values = [v if type(v) in known else scalars.plain(v) for v in values]
        kinds = set(map(type, values))
    if codec.nan_as_null and float in kinds:
        values = [None if v != v else v for v in values]
        kinds = set(map(type, values))
    nulls = [value is None for value in values] if type(None) in kinds else None
    kinds.discard(type(None))
    if kinds == {int, float}:
        kinds = {float}
    if kinds and kinds <= _OF_JSON:
        kinds = {Json}
    if len(kinds) > 1 and not (is_open and str in kinds):
        found = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise TypeError(f"column {name}: expected values of one type, found {found}")
    packed = _pack_mixed if len(kinds) > 1 else _BY_KIND.get(next(iter(kinds), str), _pack_any)
    pack_array_head(out, 4)
    pack(out, name)
    there = values if nulls is None else [value for value in values if value is not None]
    head, body = packed(codec, there)
    if nulls is not None and body is not None:
        body = _spread(body, nulls)
    pack(out, head)
    if nulls is None:
        pack(out, None)
    else:
        pack(out, _bits(nulls))
    if body is None:
        how = packers(codec)
        pack_array_head(out, len(values))
        for value in values:
            pack(out, value, how)
    else:
        body.pack(out)


def _bits(nulls: List[bool]) -> bytes:
    """A bit a row, the lowest of a byte first."""
    number = int("".join("1" if null else "0" for null in reversed(nulls)) or "0", 2)
    return number.to_bytes((len(nulls) + 7) // 8, "little")


class _Fixed:
    """Values of so many bytes each."""

    def __init__(self, form: str, values: Sequence[Any]) -> None:
        self.form, self.values, self.blank = form, values, 0

    def pack(self, out: bytearray) -> None:
        """Appends them."""
        pack(out, struct.pack(f"<{len(self.values)}{self.form}", *self.values))


class _Sixteen(_Fixed):
    """Values of 16 bytes each."""

    def __init__(self, values: Sequence[bytes]) -> None:
        super().__init__("", values)
        self.blank = bytes(16)  # type: ignore[assignment]

    def pack(self, out: bytearray) -> None:
        """Appends them."""
        pack(out, b"".join(self.values))


class _Texts(_Fixed):
    """Bytes with an end each, or by codes where few are distinct."""

    def __init__(self, values: Sequence[bytes]) -> None:
        super().__init__("", values)
        self.blank = b""  # type: ignore[assignment]

    def pack(self, out: bytearray) -> None:
        """Appends them."""
        values, codes = self.values, None
        if len(values) >= _CODES_MIN:
            places = {value: at for at, value in enumerate(dict.fromkeys(values))}
            if len(places) <= len(values) // 4:
                form = "B" if len(places) <= 1 << 8 else "H" if len(places) <= 1 << 16 else "I"
                found = map(places.__getitem__, values)
                codes = struct.pack(f"<{len(values)}{form}", *found)
                values = list(places)
        pack_array_head(out, 2 if codes is None else 3)
        ends = list(itertools.accumulate(map(len, values)))
        pack_extension(out, _ENDS, struct.pack(f"<{len(ends)}I", *ends))
        pack(out, b"".join(values))
        if codes is not None:
            pack(out, codes)


def _spread(body: _Fixed, nulls: List[bool]) -> _Fixed:
    """With a blank for each that is NULL."""
    there: Iterator[Any] = iter(body.values)
    body.values = [body.blank if null else next(there) for null in nulls]
    return body


Packed = Tuple[str, Optional[_Fixed]]


def _pack_ints(_: Codec, values: List[int]) -> Packed:
    least, most = min(values), max(values)
    if -(1 << 63) <= least and most < 1 << 63:
        return "i64", _Fixed("q", values)
    if least >= 0 and most < 1 << 64:
        return "u64", _Fixed("Q", values)
    return "decimal(38,0)", None


def _pack_datetimes(codec: Codec, values: List[datetime.datetime]) -> Packed:
    utc = datetime.timezone.utc
    if codec.naive_as_utc:
        values = [v.replace(tzinfo=utc) if v.tzinfo is None else v for v in values]
    naive = [value for value in values if value.utcoffset() is None]
    if naive:
        raise check.invalid(
            f"expected a datetime with a zone, such as timezone.utc, found {naive[0]}"
        )
    since = map(operator.sub, values, itertools.repeat(EPOCH))
    numbers = list(map(operator.floordiv, since, itertools.repeat(MICROSECOND)))
    return "timestamp", _Fixed("q", numbers)


def _pack_texts(_: Codec, values: List[str]) -> Packed:
    try:
        return "text", _Texts([value.encode() for value in values])
    except UnicodeEncodeError as e:
        raise check.invalid(f"expected a text that UTF-8 has: {e}") from e


def _pack_decimals(_: Codec, values: List[decimal.Decimal]) -> Packed:
    scale = max(max(0, -int(value.as_tuple().exponent)) if value.is_finite() else 0 for value in values)
    return f"decimal(38,{min(scale, 38)})", None


def _pack_mixed(_: Codec, values: List[Any]) -> Packed:
    return "text", None


def _pack_times(_: Codec, values: List[datetime.time]) -> Packed:
    return "time", None


def _pack_any(_: Codec, values: List[Any]) -> Packed:
    """Values that are sent as JSON, or as whatever they are."""
    if isinstance(values[0], scalars.Interval):
        return "interval", None
    return "json", None


_BY_KIND: Dict[type, Callable[[Codec, List[Any]], Packed]] = {
    bool: lambda _, values: ("bool", _Fixed("B", list(map(int, values)))),
    int: _pack_ints,
    float: lambda _, values: ("f64", _Fixed("d", values)),
    str: _pack_texts,
    bytes: lambda _, values: ("bytes", _Texts(values)),
    datetime.date: lambda _, values: (
        "date",
        _Fixed("i", [value.toordinal() - EPOCH_DAY for value in values]),
    ),
    datetime.datetime: _pack_datetimes,
    datetime.time: _pack_times,
    decimal.Decimal: _pack_decimals,
    uuid.UUID: lambda _, values: ("uuid", _Sixteen([value.bytes for value in values])),
    ipaddress.IPv4Address: lambda _, values: ("ipv4", _Fixed("I", list(map(int, values)))),
    ipaddress.IPv6Address: lambda _, values: ("ipv6", _Sixteen([v.packed for v in values])),
    scalars.Microseconds: lambda _, values: ("timestamp", _Fixed("q", list(map(int, values)))),
    scalars.Days: lambda _, values: ("date", _Fixed("i", list(map(int, values)))),
}
_KINDS = frozenset([*_BY_KIND, type(None), Json, dict, list, tuple, scalars.Interval])

_OF_JSON = frozenset([Json, dict, list, tuple])

After = Union[str, int]


def tail(stream: str, after: After, where: Optional[str], credit: int) -> bytes:
    """The payload that asks for events as they arrive."""
    out = bytearray()
    pack_array_head(out, 4)
    for value in (stream, after, where, credit):
        pack(out, value)
    return bytes(out)
