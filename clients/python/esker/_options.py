"""How a client connects, and the rules that both halves go by."""

from __future__ import annotations

import random
import uuid
from typing import NamedTuple, Optional, TypeVar

from . import _check as check
from ._address import parse
from ._codec import Codec
from ._errors import EskerError
from ._frame import Request

T = TypeVar("T")

OPEN_TRANSACTION = (
    "a transaction is open on this client, and only its own object asks within it: "
    "`with client.transaction() as tx: tx.insert(…)`; "
    "for anything beside it, take another client or a pool"
)
BROKEN_TRANSACTION = "the connection broke, and with it the transaction"
ENDED_TRANSACTION = "the transaction has ended"
CLOSED = "the client is closed"


class Options(NamedTuple):
    """What a client is made with."""

    url: str
    token: Optional[str]
    database: Optional[str]
    timeout: Optional[float]
    retry_writes: bool
    codec: Codec


def options(
    url: str,
    token: Optional[str],
    database: Optional[str],
    timeout: Optional[float],
    retry_writes: bool,
    codec: Codec,
) -> Options:
    """The same, checked."""
    parse(check.text("url", url))
    for name, value in (("token", token), ("database", database)):
        if value is not None:
            check.text(name, value)
    if timeout is not None:
        timeout = check.seconds("timeout", timeout)
    flag = check.flag("retry_writes", retry_writes)
    return Options(url, token, database, timeout, flag, codec)


def with_key(request: Request[T], has_retries: bool) -> Request[T]:
    """A request as a client sends it: a write that may be sent twice has a key, by which the
    server does it once."""
    return request.once(uuid.uuid4().hex) if has_retries and request.is_write else request


def conflict_pause(error: EskerError, attempt: int, attempts: int) -> float:
    """How many seconds a transaction waits before it is tried again; raises its error when it
    is not."""
    if error.code != "conflict" or attempt >= attempts:
        raise error
    return random.uniform(0, min(0.001 * 2**attempt, 0.1))


def ends_transaction(error: EskerError) -> bool:
    """True when the server may have rolled a transaction back: what is asked next would be done
    outside of it."""
    return error.code not in _WITHIN


# What is wrong with a request alone.
_WITHIN = frozenset(
    (
        "invalid_request",
        "not_found",
        "already_exists",
        "constraint_violated",
        "conflict",
        "sequence_gap",
        "fenced",
        "precondition_failed",
        "forbidden",
        "limit_exceeded",
        "cursor_gone",
        "read_only",
        "timeout",
        "cancelled",
    )
)
