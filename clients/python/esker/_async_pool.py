"""Connections for several tasks."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import (
    Any,
    AsyncIterator,
    Awaitable,
    Callable,
    List,
    Optional,
    Sequence,
    TypeVar,
    Union,
)

from . import _options as rules
from ._async_client import AsyncClient, AsyncTransaction
from ._codec import codec
from ._errors import EskerError
from ._frame import Request
from ._pipeline import WINDOW, AsyncPipeline
from ._slots import CLOSED, Slots
from ._surface import AsyncSurface

T = TypeVar("T")


class AsyncPool(AsyncSurface):
    """At most ``size`` connections, each given to one task at a time, in the order of asking:
    ``async with pool.connection() as client``. What is asked of the pool itself takes one for that.

    ``wait_timeout`` is how many seconds a task waits for a connection; the other arguments are
    those of :class:`esker.Client`. A connection that comes back within a transaction, or before
    an answer, is closed.
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
        self._slots: Slots[AsyncClient, "asyncio.Future[None]"] = Slots(size, wait_timeout)
        self._emptied: Optional["asyncio.Future[None]"] = None

    async def __aenter__(self) -> "AsyncPool":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _take(self) -> None:
        """Waits for a place."""
        slots = self._slots
        if slots.take():
            return
        loop = asyncio.get_running_loop()
        turn: "asyncio.Future[None]" = loop.create_future()
        slots.waiting.append(turn)
        alarm = None
        if slots.wait_timeout is not None:
            alarm = loop.call_later(slots.wait_timeout, _fail, turn, slots.late())
        try:
            await turn
        except BaseException:
            if turn in slots.waiting:
                slots.waiting.remove(turn)
            elif _has_place(turn):
                # Its place came with the cancellation: it is for the next.
                self._leave()
            raise
        finally:
            if alarm is not None:
                alarm.cancel()

    def _leave(self) -> None:
        turn = self._slots.leave()
        while turn is not None:
            if not turn.done():
                turn.set_result(None)
                return
            turn = self._slots.leave()
        if self._emptied is not None and self._slots.is_empty and not self._emptied.done():
            self._emptied.set_result(None)

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncClient]:
        """A connection, until the end of ``async with``; waits while all are in use."""
        await self._take()
        try:
            self._slots.expect_open()
            client = self._slots.free.pop() if self._slots.free else AsyncClient._of(self._options)
            self._slots.out.add(client)
            try:
                yield client
            finally:
                self._give_back(client)
        finally:
            self._leave()

    def _give_back(self, client: AsyncClient) -> None:
        self._slots.out.discard(client)
        if self._slots.is_closed or client._is_closed:
            client._abort()
            return
        if client.in_transaction or not client._is_idle:
            client._drop()
        self._slots.free.append(client)

    async def _run(self, request: Request[T]) -> T:
        async with self.connection() as client:
            return await client._run(request)

    def pipeline(self, *, window: int = WINDOW) -> AsyncPipeline:
        """Requests that are sent together, on one connection: see :class:`esker.AsyncPipeline`."""
        return AsyncPipeline(self._run_all, self._codec, window)

    async def _run_all(
        self, asked: Sequence[Request[Any]], window: int
    ) -> List[Union[Any, EskerError]]:
        async with self.connection() as client:
            return await client._run_all(asked, window)

    @asynccontextmanager
    async def transaction(
        self, *, serializable: bool = False, read_only: bool = False
    ) -> AsyncIterator[AsyncTransaction]:
        """A transaction on a connection of its own, as :meth:`AsyncClient.transaction`."""
        async with self.connection() as client:
            async with client.transaction(
                serializable=serializable, read_only=read_only
            ) as transaction:
                yield transaction

    async def transact(
        self,
        body: Callable[[AsyncTransaction], Awaitable[T]],
        *,
        serializable: bool = False,
        attempts: int = 10,
    ) -> T:
        """As :meth:`AsyncClient.transact`, on a connection of its own."""
        async with self.connection() as client:
            return await client.transact(body, serializable=serializable, attempts=attempts)

    async def close(self, *, timeout: float = 10.0) -> None:
        """Gives out no more connections, waits at most so many seconds for those that are out,
        and ends what is asked of the rest by an error."""
        slots = self._slots
        slots.is_closed = True
        for turn in slots.waiting:
            _fail(turn, EskerError("invalid_request", CLOSED))
        slots.waiting.clear()
        free, slots.free = slots.free, []
        for client in free:
            await client.close()
        try:
            if not slots.is_empty:
                self._emptied = asyncio.get_running_loop().create_future()
                await asyncio.wait([self._emptied], timeout=timeout)
        finally:
            for client in list(slots.out):
                client._abort()


def _fail(turn: "asyncio.Future[None]", error: EskerError) -> None:
    if not turn.done():
        turn.set_exception(error)


def _has_place(turn: "asyncio.Future[None]") -> bool:
    return turn.done() and not turn.cancelled() and turn.exception() is None
