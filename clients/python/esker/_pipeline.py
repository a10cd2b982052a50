"""Requests that are sent together, and answered together."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Awaitable, Callable, List, Optional, Sequence, Tuple, Type, TypeVar, Union

from . import _check as check
from ._codec import Codec
from ._errors import EskerError
from ._frame import Request
from ._surface import Pending, PipelineSurface

T = TypeVar("T")


# Requests of a pipeline for asyncio that are under way at a time.
WINDOW = 1024

Outcome = Union[Any, EskerError]


class _Queue(PipelineSurface):
    """Requests that wait for their turn, and what they will answer."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._asked: List[Tuple[Request[Any], Pending[Any]]] = []

    def _run(self, request: Request[T]) -> Pending[T]:
        pending: Pending[T] = Pending()
        self._asked.append((request, pending))
        return pending

    def _take(self) -> "Tuple[List[Request[Any]], List[Pending[Any]]]":
        asked, self._asked = self._asked, []
        return [request for request, _ in asked], [pending for _, pending in asked]


def _fail(waiting: Sequence[Pending[Any]], error: BaseException) -> None:
    """Why there are no answers: what was sent is not asked again."""
    if not isinstance(error, EskerError):
        error = EskerError("cancelled", "the pipeline was given up before its answers came")
    for pending in waiting:
        pending._error = error


def _answer(waiting: Sequence[Pending[Any]], outcomes: Sequence[Outcome]) -> None:
    for pending, outcome in zip(waiting, outcomes):
        if isinstance(outcome, EskerError):
            pending._error = outcome
        else:
            pending._outcome = (outcome,)


class Pipeline(_Queue):
    """Requests that are sent together and answered together.

    At the end of ``with`` they are run; each has its own result or error then. They are done in
    their order, as far as they ask for keys.
    """

    def __init__(
        self, run_all: Callable[[Sequence[Request[Any]]], List[Outcome]], codec: Codec
    ) -> None:
        super().__init__(codec)
        self._run_all = run_all

    def __enter__(self) -> "Pipeline":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if kind is None:
            self.run()

    def run(self) -> None:
        """Sends what was asked since, and reads all answers."""
        asked, waiting = self._take()
        try:
            outcomes = self._run_all(asked)
        except BaseException as e:
            _fail(waiting, e)
            raise
        _answer(waiting, outcomes)


class AsyncPipeline(_Queue):
    """The same for asyncio: ``async with client.pipeline() as pipeline``.

    At most ``window`` requests are under way at a time: the next is sent once one is answered, and
    while the connection takes more bytes.
    """

    def __init__(
        self,
        run_all: Callable[[Sequence[Request[Any]], int], Awaitable[List[Outcome]]],
        codec: Codec,
        window: int,
    ) -> None:
        super().__init__(codec)
        self._run_all = run_all
        self._window = check.integer("window", window, 1, 1 << 20)

    async def __aenter__(self) -> "AsyncPipeline":
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if kind is None:
            await self.run()

    async def run(self) -> None:
        """Sends what was asked since, and reads all answers."""
        asked, waiting = self._take()
        try:
            outcomes = await self._run_all(asked, self._window)
        except BaseException as e:
            _fail(waiting, e)
            raise
        _answer(waiting, outcomes)
