"""Requests about buckets, as :mod:`_request` has the others."""

from __future__ import annotations

import math
from typing import Iterable, List, Mapping, Optional, Tuple, Union

from . import _check as check
from . import _frame as frames
from ._frame import Answer, Request
from ._messagepack import pack_array
from ._request import Part, Text, array, nothing, value_part

TimeToLive = Union[None, bool, float]

_LONG_MAX = (1 << 63) - 1
_MILLISECONDS_MAX = (1 << 53) - 1


def _bucket(name: str) -> Part:
    return value_part(check.text("bucket", name))


def _entry_keys(keys: Iterable[Text]) -> Part:
    found = [check.data("key", key) for key in check.items("keys", keys)]
    return lambda out: pack_array(out, found)


def bucket_get(bucket: str, key: Text) -> Request[Optional[bytes]]:
    """The value of a key."""
    payload = array(_bucket(bucket), _entry_keys([key]))
    return Request(frames.BUCKET_GET, payload, lambda a: a.value[0], is_safe=True)


def bucket_get_many(bucket: str, keys: Iterable[Text]) -> Request[List[Optional[bytes]]]:
    """The values of keys, in their order."""
    payload = array(_bucket(bucket), _entry_keys(keys))
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
    return array(_bucket(bucket), value_part(expiry), lambda out: pack_array(out, flat))


def bucket_put(
    bucket: str, key: Text, value: Text, *, ttl: TimeToLive = None
) -> Request[None]:
    """Puts a value; ``ttl`` is seconds from now, ``False`` never, ``None`` as the bucket says."""
    return Request(frames.BUCKET_PUT, _put(bucket, [(key, value)], ttl), nothing)


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
    payload = array(_bucket(bucket), _entry_keys([key]))
    return Request(frames.BUCKET_REMOVE, payload, lambda a: a.value == 1)


def bucket_remove_many(bucket: str, keys: Iterable[Text]) -> Request[int]:
    """Removes keys; how many there were."""
    payload = array(_bucket(bucket), _entry_keys(keys))
    return Request(frames.BUCKET_REMOVE, payload, lambda a: int(a.value))


def bucket_increment(bucket: str, key: Text, by: int = 1) -> Request[int]:
    """Adds to a number; what it is then."""
    added = check.integer("by", by, -_LONG_MAX - 1, _LONG_MAX)
    payload = array(_bucket(bucket), value_part(check.data("key", key)), value_part(added))
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
    payload = array(_bucket(bucket), *map(value_part, bounds), value_part(limit), value_part(flag))

    def read(answer: Answer) -> List[Tuple[bytes, bytes]]:
        flat = answer.value
        return list(zip(flat[0::2], flat[1::2]))

    return Request(frames.BUCKET_RANGE, payload, read, is_safe=True)
