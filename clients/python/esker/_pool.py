"""Connections for several threads."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from typing import Any, Callable, Iterator, List, Optional, Sequence, TypeVar, Union

from . import _options as rules
from ._client import Client, Transaction
from ._codec import codec
from ._errors import EskerError
from ._frame import Request
from ._pipeline import Pipeline
from ._slots import Slots
from ._surface import Surface

T = TypeVar("T")


class _Turn:
    """A thread in the queue for a place."""

    def __init__(self) -> None:
        self.has_place = False


class Pool(Surface):
    """At most ``size`` connections, each given to one thread at a time, in the order of asking:
    ``with pool.connection() as client``. What is asked of the pool itself takes one for that.

    ``wait_timeout`` is how many seconds a thread waits for a connection; the other arguments are
    those of :class:`esker.Client`. A connection that comes back within a transaction, or before
    the rows of a stream are read, is closed. A process that is forked has connections of its own.
    """

    def __init__(
        self,
        url: str = "127.0.0.1:7437",
        *,
        size: int = 8,
        wait_timeout: Optional[float] = 30.0,
        token: Optional[str] = None,
        database: Optional[str] = None,
        timeout: Optional[float] = 60.0,
        retry_writes: bool = False,
        rows: str = "row",
        nan_as_null: bool = False,
        naive_as_utc: bool = False,
        iso_times: bool = False,
    ) -> None:
        chosen = codec(rows, nan_as_null, naive_as_utc, iso_times)
        self._options = rules.options(url, token, database, timeout, retry_writes, chosen)
        self._codec = chosen
        self._begin(size, wait_timeout)

    def _begin(self, size: int, wait_timeout: Optional[float]) -> None:
        self._slots: Slots[Client, _Turn] = Slots(size, wait_timeout)
        self._changed = threading.Condition()
        self._process = os.getpid()

    def _expect_process(self) -> None:
        """Begins anew in a process that was forked: connections, and threads that hold them, are
        those of its parent."""
        if self._process != os.getpid():
            last = self._slots
            self._begin(last.size, last.wait_timeout)
            self._slots.is_closed = last.is_closed
            for client in last.free:
                client.close()

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self) -> Slots[Client, _Turn]:
        """Waits for a place; among which it is."""
        self._expect_process()
        slots, turn = self._slots, _Turn()
        with self._changed:
            if slots.take():
                return slots
            slots.waiting.append(turn)
            try:
                limit = slots.wait_timeout
                self._changed.wait_for(
                    lambda: turn.has_place or slots.is_closed,
                    None if limit is None else min(limit, threading.TIMEOUT_MAX),
                )
                if not turn.has_place:
                    slots.expect_open()
                    raise slots.late()
                return slots
            except BaseException:
                if turn.has_place:
                    self._leave(slots)
                else:
                    slots.waiting.remove(turn)
                raise

    def _leave(self, slots: Slots[Client, _Turn]) -> None:
        self._expect_process()
        with self._changed:
            if slots is not self._slots:
                # The place was taken before the process was forked.
                return
            turn = self._slots.leave()
            if turn is not None:
                turn.has_place = True
            self._changed.notify_all()

    @contextmanager
    def connection(self) -> Iterator[Client]:
        """A connection, until the end of ``with``; waits while all are in use."""
        slots = self._take()
        try:
            with self._changed:
                slots.expect_open()
                client = slots.free.pop() if slots.free else Client._of(self._options)
                slots.out.add(client)
            try:
                yield client
            finally:
                self._give_back(slots, client)
        finally:
            self._leave(slots)

    def _give_back(self, slots: Slots[Client, _Turn], client: Client) -> None:
        self._expect_process()
        with self._changed:
            slots.out.discard(client)
            is_wanted = slots is self._slots and not slots.is_closed
            if is_wanted:
                slots.free.append(client)
            if client._is_busy or not is_wanted:
                client.close()

    def _run(self, request: Request[T]) -> T:
        with self.connection() as client:
            return client._run(request)

    def pipeline(self) -> Pipeline:
        """Requests that are sent together, on one connection: see :class:`esker.Pipeline`."""
        return Pipeline(self._run_all, self._codec)

    def _run_all(self, asked: Sequence[Request[Any]]) -> List[Union[Any, EskerError]]:
        with self.connection() as client:
            return client._run_all(asked)

    @contextmanager
    def transaction(
        self, *, serializable: bool = False, read_only: bool = False
    ) -> Iterator[Transaction]:
        """A transaction on a connection of its own, as :meth:`Client.transaction`."""
        with self.connection() as client:
            with client.transaction(
                serializable=serializable, read_only=read_only
            ) as transaction:
                yield transaction

    def transact(
        self,
        body: Callable[[Transaction], T],
        *,
        serializable: bool = False,
        attempts: int = 10,
    ) -> T:
        """As :meth:`Client.transact`, on a connection of its own."""
        with self.connection() as client:
            return client.transact(body, serializable=serializable, attempts=attempts)

    def close(self, *, timeout: float = 10.0) -> None:
        """Gives out no more connections, waits at most so many seconds for those that are out,
        and ends what is asked of the rest by an error."""
        deadline = time.monotonic() + timeout
        self._expect_process()
        with self._changed:
            self._slots.is_closed = True
            free, self._slots.free = self._slots.free, []
            self._changed.notify_all()
            while not self._slots.is_empty:
                left = min(max(0.0, deadline - time.monotonic()), threading.TIMEOUT_MAX)
                if not self._changed.wait(left):
                    break
            for client in self._slots.out:
                client._abort()
        for client in free:
            client.close()
