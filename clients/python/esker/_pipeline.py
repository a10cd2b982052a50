"""Requests that are sent together, and answered together."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Callable, List, Optional, Sequence, Tuple, Type, TypeVar, Union

from ._errors import EskerError
from ._frame import Request
from ._surface import Pending, PipelineSurface

T = TypeVar("T")


class Pipeline(PipelineSurface):
    """Requests that are sent together and answered together.

    At the end of ``with`` they are run; each has its own result or error then. They are done in
    their order, as far as they ask for keys.
    """

    def __init__(
        self, run_all: Callable[[Sequence[Request[Any]]], List[Union[Any, EskerError]]]
    ) -> None:
        self._run_all = run_all
        self._asked: List[Tuple[Request[Any], Pending[Any]]] = []

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
        asked, self._asked = self._asked, []
        outcomes = self._run_all([request for request, _ in asked])
        for (_, pending), outcome in zip(asked, outcomes):
            if isinstance(outcome, EskerError):
                pending._error = outcome
            else:
                pending._outcome = (outcome,)

    def _run(self, request: Request[T]) -> Pending[T]:
        pending: Pending[T] = Pending()
        self._asked.append((request, pending))
        return pending
