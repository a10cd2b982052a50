"""What clients, pools, transactions and pipelines can be asked: the same, in one table.

Each entry is made of the function of :mod:`_request` that checks the arguments and builds the
request. The descriptor gives it the answer's type by who is asked: a value, something to await, or
what a pipeline will answer.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Coroutine,
    Generic,
    Optional,
    Tuple,
    TypeVar,
    Union,
    overload,
)

from . import _bucket_request as buckets
from . import _events as events
from . import _request as requests
from ._codec import PLAIN, Codec
from ._errors import EskerError
from ._frame import Request

T = TypeVar("T")
if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec

    P = ParamSpec("P")
else:
    P = TypeVar("P")


class Pending(Generic[T]):
    """What a request of a pipeline will answer."""

    def __init__(self) -> None:
        self._outcome: Optional[Tuple[T]] = None
        self._error: Optional[EskerError] = None

    def result(self) -> T:
        """The answer, or its error, once the pipeline was run."""
        if self._error is not None:
            raise self._error
        if self._outcome is None:
            raise EskerError("invalid_request", "the pipeline has not been run yet")
        return self._outcome[0]


class _Asking:
    """Asks a server."""

    _codec: Codec = PLAIN
    """How values are converted."""


class _Blocking(_Asking, ABC):
    """Answers at once."""

    @abstractmethod
    def _run(self, request: Request[T]) -> T: ...


class _Awaited(_Asking, ABC):
    """Answers once it is awaited."""

    @abstractmethod
    async def _run(self, request: Request[T]) -> T: ...


class _Piped(_Asking, ABC):
    """Answers later."""

    @abstractmethod
    def _run(self, request: Request[T]) -> Pending[T]: ...


_Asker = Union[_Blocking, _Awaited, _Piped]


class _Described:
    """Has the name, the documentation and the parameters of a function, but for its first, which a
    method gets by itself."""

    def __init__(self, build: Callable[..., Any]) -> None:
        whole = inspect.signature(build)
        self.__signature__ = whole.replace(parameters=list(whole.parameters.values())[1:])
        self._build = build
        self.__doc__ = build.__doc__
        self.__name__ = build.__name__
        self.__wrapped__ = build

    def __call__(self, asker: Any, *values: Any, **named: Any) -> Any:
        """As of a method that is taken from its class."""
        return self.__get__(asker)(*values, **named)

    def __get__(self, asker: Any, kind: Any = None) -> Any:
        raise NotImplementedError


class Asked(_Described, Generic[P, T]):
    """A method that runs the request that a function builds, which gets the codec first."""

    if TYPE_CHECKING:

        def __init__(self, build: "Callable[Concatenate[Codec, P], Request[T]]") -> None: ...

    @overload
    def __get__(self, asker: None, kind: Any = None) -> "Asked[P, T]": ...

    @overload
    def __get__(self, asker: _Blocking, kind: Any = None) -> "Callable[P, T]": ...

    @overload
    def __get__(
        self, asker: _Awaited, kind: Any = None
    ) -> "Callable[P, Coroutine[Any, Any, T]]": ...

    @overload
    def __get__(self, asker: _Piped, kind: Any = None) -> "Callable[P, Pending[T]]": ...

    def __get__(self, asker: Optional[_Asker], kind: Any = None) -> Any:
        if asker is None:
            return self
        run, codec, build = asker._run, asker._codec, self._build

        def ask(*values: Any, **named: Any) -> Any:
            return run(build(codec, *values, **named))

        return ask


class AskedOfBucket(_Described, Generic[P, T]):
    """The same of a bucket, whose name the function gets first."""

    if TYPE_CHECKING:

        def __init__(self, build: "Callable[Concatenate[str, P], Request[T]]") -> None: ...

    @overload
    def __get__(self, asker: None, kind: Any = None) -> "AskedOfBucket[P, T]": ...

    @overload
    def __get__(self, asker: "Bucket", kind: Any = None) -> "Callable[P, T]": ...

    @overload
    def __get__(
        self, asker: "AsyncBucket", kind: Any = None
    ) -> "Callable[P, Coroutine[Any, Any, T]]": ...

    @overload
    def __get__(self, asker: "PipelineBucket", kind: Any = None) -> "Callable[P, Pending[T]]": ...

    def __get__(self, asker: Any, kind: Any = None) -> Any:
        if asker is None:
            return self
        run, name, build = asker._asker._run, asker.name, self._build

        def ask(*values: Any, **named: Any) -> Any:
            return run(build(name, *values, **named))

        return ask


class _BucketSurface:
    get = AskedOfBucket(buckets.bucket_get)
    get_many = AskedOfBucket(buckets.bucket_get_many)
    put = AskedOfBucket(buckets.bucket_put)
    put_many = AskedOfBucket(buckets.bucket_put_many)
    remove = AskedOfBucket(buckets.bucket_remove)
    remove_many = AskedOfBucket(buckets.bucket_remove_many)
    increment = AskedOfBucket(buckets.bucket_increment)
    range = AskedOfBucket(buckets.bucket_range)


class Bucket(_BucketSurface):
    """Keys and values, as bytes; texts are sent as UTF-8."""

    def __init__(self, asker: _Blocking, name: str) -> None:
        self._asker = asker
        self.name = name


class AsyncBucket(_BucketSurface):
    """Keys and values, as bytes; texts are sent as UTF-8."""

    def __init__(self, asker: _Awaited, name: str) -> None:
        self._asker = asker
        self.name = name


class PipelineBucket(_BucketSurface):
    """Keys and values of a bucket, in a pipeline."""

    def __init__(self, asker: _Piped, name: str) -> None:
        self._asker = asker
        self.name = name


class _Surface:
    ping = Asked(requests.ping)
    tables = Asked(requests.tables)
    buckets = Asked(requests.buckets)
    schema = Asked(requests.schema)
    get = Asked(requests.get)
    get_many = Asked(requests.get_many)
    exists = Asked(requests.exists)
    exists_many = Asked(requests.exists_many)
    insert = Asked(requests.insert)
    insert_many = Asked(requests.insert_many)
    update = Asked(requests.update)
    update_many = Asked(requests.update_many)
    delete = Asked(requests.delete)
    delete_many = Asked(requests.delete_many)
    append = Asked(events.append)
    append_many = Asked(events.append_many)
    append_columns = Asked(events.append_columns)
    sql = Asked(requests.sql)
    query = Asked(requests.query)
    explain = Asked(requests.explain)
    admin = Asked(requests.admin)


class Surface(_Surface, _Blocking):
    """What can be asked, and is answered at once."""

    def bucket(self, name: str) -> Bucket:
        """Keys and values, as bytes. The first put makes it."""
        return Bucket(self, name)


class AsyncSurface(_Surface, _Awaited):
    """What can be asked, and is answered once it is awaited."""

    def bucket(self, name: str) -> AsyncBucket:
        """Keys and values, as bytes. The first put makes it."""
        return AsyncBucket(self, name)


class PipelineSurface(_Surface, _Piped):
    """What can be asked, and is answered later."""

    def bucket(self, name: str) -> PipelineBucket:
        """Keys and values, as bytes. The first put makes it."""
        return PipelineBucket(self, name)
