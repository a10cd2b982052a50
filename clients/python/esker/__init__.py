"""A client for Esker servers: blocking and for asyncio, pure Python, without dependencies.

>>> from esker import Client                                            # doctest: +SKIP
>>> with Client("127.0.0.1:7437") as client:                            # doctest: +SKIP
...     client.sql("SELECT 1 + 1").scalar()
2
"""

from ._async_client import AsyncClient, AsyncTransaction
from ._async_pool import AsyncPool
from ._client import Client, Stream, Transaction
from ._errors import EskerError
from ._events import Appended, EventIds, RefusedEvent
from ._messagepack import Json
from ._pipeline import AsyncPipeline, Pipeline
from ._pool import Pool
from ._result import Column, Result
from ._row import Row
from ._scalars import Days, Interval, Microseconds
from ._surface import AsyncBucket, Bucket, Pending, PipelineBucket
from ._tail import Tail

__version__ = "0.1.0"

__all__ = [
    "Appended",
    "AsyncBucket",
    "AsyncClient",
    "AsyncPipeline",
    "AsyncPool",
    "AsyncTransaction",
    "Bucket",
    "Client",
    "Column",
    "Days",
    "EskerError",
    "EventIds",
    "Interval",
    "Json",
    "Microseconds",
    "Pending",
    "Pipeline",
    "PipelineBucket",
    "Pool",
    "RefusedEvent",
    "Result",
    "Row",
    "Stream",
    "Tail",
    "Transaction",
]
