"""A connection of the client for asyncio: requests of many tasks share it."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from typing import (
    Any,
    AsyncGenerator,
    Awaitable,
    Callable,
    Deque,
    Dict,
    List,
    Optional,
    Sequence,
    Set,
    TypeVar,
    Union,
)

from . import _frame as frames
from . import _load as loads
from . import _request as requests
from ._errors import EskerError
from ._fields import Fields
from ._frame import Answer, Frame, FrameReader, Request, last_words
from ._load import Load
from ._result import Result
from ._row import Row
from ._socket import is_readable

T = TypeVar("T")

_READ_BYTES = 256 << 10
# Frames of a stream that have not been read yet; then the connection is read no further.
_FRAMES_MAX = 16
# Turns of the event loop in which it reads what has come.
_SETTLE_TURNS = 100
# How long the other side has to say goodbye.
_GOODBYE_S = 1.0


class _Sink(ABC):
    """Takes the frames of one answer."""

    @abstractmethod
    async def put(self, received: Frame) -> None:
        """Takes a frame."""

    @abstractmethod
    def fail(self, error: EskerError) -> None:
        """Takes what ends the answer."""


class _Inbox(_Sink):
    """Frames of one answer on their way to the task that waits for it.

    ``asyncio.wait_for`` would do, but before Python 3.12 it loses a cancellation that comes
    together with a frame.
    """

    def __init__(self) -> None:
        self._frames: Deque[Union[Frame, EskerError]] = deque()
        self._arrival: Optional["asyncio.Future[None]"] = None
        self._room: Optional["asyncio.Future[None]"] = None

    def __bool__(self) -> bool:
        return bool(self._frames)

    async def put(self, received: Frame) -> None:
        """Takes a frame, once there is room for it."""
        while len(self._frames) >= _FRAMES_MAX:
            self._room = asyncio.get_running_loop().create_future()
            await self._room
        self._frames.append(received)
        _wake(self._arrival)

    def fail(self, error: EskerError) -> None:
        """Takes what ends the answer."""
        self._frames.append(error)
        _wake(self._arrival)

    def clear(self) -> None:
        """Drops what has come, and takes whatever comes."""
        self._frames.clear()
        _wake(self._room)

    async def get(self, timeout: Optional[float]) -> Frame:
        """The next frame, or its error."""
        while not self._frames:
            loop = asyncio.get_running_loop()
            self._arrival = loop.create_future()
            late = EskerError("connection", f"no answer within {timeout} s")
            alarm = None if timeout is None else loop.call_later(timeout, self.fail, late)
            try:
                await self._arrival
            finally:
                if alarm is not None:
                    alarm.cancel()
        received = self._frames.popleft()
        _wake(self._room)
        if isinstance(received, EskerError):
            raise received
        return received


class _Gathering:
    """Answers of several requests, taken as they come: the connection never waits for them."""

    def __init__(self, timeout: Optional[float], waiting: Dict[int, _Sink]) -> None:
        self._timeout = timeout
        self._waiting = waiting
        self.under_way: Set[int] = set()
        self._error: Optional[EskerError] = None
        self._progress: Optional["asyncio.Future[None]"] = None

    def expect(self, request_id: int, answer: Answer) -> None:
        """Takes the frames of one of them from now on."""
        self.under_way.add(request_id)
        self._waiting[request_id] = _Part(self, request_id, answer)

    def done(self, request_id: int) -> None:
        """One of them has come to its end."""
        self.under_way.discard(request_id)
        self._waiting.pop(request_id, None)
        _wake(self._progress)

    def fail(self, error: EskerError) -> None:
        """No more will come."""
        self._error = error
        _wake(self._progress)

    async def wait(self, most: int) -> None:
        """Waits while more than so many are under way."""
        while len(self.under_way) > most and self._error is None:
            loop = asyncio.get_running_loop()
            self._progress = loop.create_future()
            late = EskerError("connection", f"no answer within {self._timeout} s")
            alarm = None
            if self._timeout is not None:
                alarm = loop.call_later(self._timeout, self.fail, late)
            try:
                await self._progress
            finally:
                if alarm is not None:
                    alarm.cancel()
        if self._error is not None:
            raise self._error


class _Part(_Sink):
    """One answer of several."""

    def __init__(self, gathering: _Gathering, request_id: int, answer: Answer) -> None:
        self._gathering = gathering
        self._id = request_id
        self._answer = answer

    async def put(self, received: Frame) -> None:
        if self._answer.take(received):
            self._gathering.done(self._id)

    def fail(self, error: EskerError) -> None:
        self._gathering.fail(error)


def _wake(waiting: Optional["asyncio.Future[None]"]) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)


async def finished(work: Awaitable[T], timeout: Optional[float]) -> T:
    """What some work comes to, in so many seconds; then, or when it is cancelled, it is stopped."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait([task], timeout=timeout)
        if not task.done():
            raise asyncio.TimeoutError
        return task.result()
    finally:
        task.cancel()


class Connection:
    """A socket, and which task waits for which answer."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        timeout: Optional[float],
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._timeout = timeout
        self._next_id = 1
        self._waiting: Dict[int, _Sink] = {}
        self.error: Optional[EskerError] = None
        self._loop = asyncio.get_running_loop()
        # Since when the server has said nothing, though it was asked.
        self._silent_since: Optional[float] = None
        self._is_giving = False
        writer.write(frames.GREETING)
        self._task = asyncio.ensure_future(self._read())

    @property
    def is_idle(self) -> bool:
        """True when no answer is waited for."""
        return not self._waiting

    def abort(self) -> None:
        """Ends the connection at once; the server rolls a transaction back."""
        self._fail(EskerError("connection", "the connection was closed"))
        self._task.cancel()
        self._writer.transport.abort()

    def abandon(self) -> None:
        """Ends the connection, whose event loop has ended: that cannot be told to it."""
        self._waiting.clear()
        self._fail(EskerError("connection", "the event loop of the connection has ended"))
        try:
            self._writer.transport.abort()
        except RuntimeError:
            pass

    async def close(self) -> None:
        """Ends the connection."""
        self._fail(EskerError("connection", "the connection was closed"))
        self._task.cancel()
        self._writer.close()
        try:
            await finished(self._writer.wait_closed(), _GOODBYE_S)
        except (OSError, asyncio.TimeoutError):
            pass
        finally:
            self._writer.transport.abort()

    async def settle(self) -> None:
        """Reads what has come by now, so that a server that hung up is noticed before anything is
        sent to it."""
        for _ in range(_SETTLE_TURNS):
            if self.error is not None or self._waiting or not self._has_come():
                return
            await asyncio.sleep(0)

    def _has_come(self) -> bool:
        descriptor = self._writer.get_extra_info("socket").fileno()
        return descriptor < 0 or is_readable(descriptor)

    async def _read(self) -> None:
        """Gives every frame to the task that waits for it."""
        frames = FrameReader()
        try:
            while True:
                data = await self._reader.read(_READ_BYTES)
                if not data:
                    raise EskerError("connection", "the server hung up")
                frames.feed(data)
                self._silent_since = None
                received = frames.next()
                while received is not None:
                    if received.id == 0:
                        raise last_words(received)
                    inbox = self._waiting.get(received.id)
                    if inbox is not None:
                        self._is_giving = True
                        await inbox.put(received)
                        self._is_giving = False
                    received = frames.next()
                if self._waiting:
                    self._silent_since = self._loop.time()
        except asyncio.CancelledError:
            # With the event loop, perhaps, which ends: nothing would close the socket.
            self._fail(EskerError("connection", "the connection was closed"))
            self._writer.transport.abort()
            raise
        except EskerError as e:
            self._fail(e)
        except Exception as e:
            self._fail(EskerError("connection", f"the connection broke: {e}"))

    def _fail(self, error: EskerError) -> None:
        if self.error is None:
            self.error = error
        waiting, self._waiting = self._waiting, {}
        for inbox in waiting.values():
            inbox.fail(error)

    def _send(self, kind: int, payload: bytes, request_id: int) -> None:
        if self.error is None and self._writer.transport.is_closing():
            self._fail(EskerError("connection", "the connection broke"))
        if self.error is not None:
            raise self.error
        if len(self._waiting) <= 1 or (self._silent_since is None and not self._is_giving):
            self._silent_since = self._loop.time()
        self._writer.write(frames.frame(request_id, kind, payload))

    async def _drain(self) -> None:
        """Waits while much is still to be sent."""
        try:
            await self._writer.drain()
        except OSError as e:
            error = EskerError("connection", f"the connection broke: {e}")
            # The next request connects again.
            self._fail(error)
            raise error from e

    def _id(self) -> int:
        found = self._next_id
        self._next_id = found % 0xFFFF_FFFF + 1
        return found

    def _expect(self, request_id: int) -> _Inbox:
        if self.error is not None:
            raise self.error
        inbox = _Inbox()
        self._waiting[request_id] = inbox
        return inbox

    async def run(self, request: Request[T]) -> T:
        request_id = self._id()
        inbox = self._expect(request_id)
        answer = request.answer()
        is_done = False
        try:
            self._send(request.kind, request.payload, request_id)
            await self._drain()
            while not is_done:
                is_done = answer.take(await inbox.get(self._timeout))
        finally:
            self._waiting.pop(request_id, None)
            if not is_done:
                self._cancel(request_id)
        return request.result(answer)

    async def run_all(
        self, asked: Sequence[Request[Any]], window: int
    ) -> List[Union[Any, EskerError]]:
        """Sends requests one behind the other, and gathers their answers: at most so many are
        under way at a time."""
        if self.error is not None:
            raise self.error
        gathering = _Gathering(self._timeout, self._waiting)
        answers: List[Answer] = []
        try:
            for request in asked:
                await gathering.wait(window - 1)
                request_id, answer = self._id(), request.answer()
                answers.append(answer)
                gathering.expect(request_id, answer)
                self._send(request.kind, request.payload, request_id)
                await self._drain()
            await gathering.wait(0)
        finally:
            for request_id in gathering.under_way:
                self._waiting.pop(request_id, None)
                self._cancel(request_id)
        return [request.outcome(answer) for request, answer in zip(asked, answers)]

    async def load(
        self, load: Load, learn: Callable[[str], Awaitable[Optional[Fields]]]
    ) -> int:
        request = load.request
        request_id = self._id()
        inbox = self._expect(request_id)
        answer = request.answer()
        is_done = False
        try:
            self._send(request.kind, request.payload, request_id)
            async for chunk in loads.async_chunks(load, learn):
                self._send(frames.BULK_CHUNK, chunk, request_id)
                await self._drain()
                if inbox:
                    break
            self._send(frames.BULK_END, b"", request_id)
            while not is_done:
                is_done = answer.take(await inbox.get(self._timeout))
        finally:
            self._waiting.pop(request_id, None)
            if not is_done:
                self._cancel(request_id)
        return request.result(answer)

    async def stream(self, request: Request[Result]) -> AsyncGenerator[Row, None]:
        request_id = self._id()
        inbox = self._expect(request_id)
        answer = request.answer()
        is_done = False
        try:
            self._send(request.kind, request.payload, request_id)
            while not is_done:
                is_done = answer.take(await inbox.get(self._timeout))
                if answer.error is not None:
                    raise answer.error
                rows, answer.rows = answer.rows, []
                for row in rows:
                    yield row
        finally:
            self._waiting.pop(request_id, None)
            if not is_done:
                inbox.clear()
                self._cancel(request_id)

    def _is_silent(self) -> bool:
        """True when the server was waited for as long as it may take, and said nothing at all."""
        if self._timeout is None or self._silent_since is None:
            return False
        # Alarms may come early, by the resolution of the clock.
        return self._loop.time() - self._silent_since > 0.99 * self._timeout

    def _cancel(self, request_id: int) -> None:
        """Says to the server that its answer is not waited for any more. One that says nothing is
        taken for gone: the next request connects again."""
        if self.error is None and self._is_silent():
            self._fail(EskerError("connection", f"no answer within {self._timeout} s"))
            self._writer.transport.abort()
        if self.error is None and not self._writer.transport.is_closing():
            self._send(frames.CANCEL, requests.cancelled(request_id), self._id())
