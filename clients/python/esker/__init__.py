"""A client for Esker servers: blocking and for asyncio, pure Python, without dependencies.

>>> from esker import Client                                            # doctest: +SKIP
>>> with Client("127.0.0.1:7437") as client:                            # doctest: +SKIP
...     client.sql("SELECT 1 + 1").scalar()
2
"""

from ._async_client import AsyncBucket, AsyncClient
from ._client import Bucket, Client, Pending, Pipeline, Stream
from ._errors import EskerError
from ._messagepack import Days, Json, Microseconds
from ._pool import Pool
from ._request import Column, Result

__version__ = "0.1.0"

__all__ = [
    "AsyncBucket",
    "AsyncClient",
    "Bucket",
    "Client",
    "Column",
    "Days",
    "EskerError",
    "Json",
    "Microseconds",
    "Pending",
    "Pipeline",
    "Pool",
    "Result",
    "Stream",
]
