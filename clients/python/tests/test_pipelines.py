"""Pipelines for asyncio: many requests at once, an error for each, a bounded number under way."""

from __future__ import annotations

import asyncio
from typing import Any, Awaitable, Callable, List

from esker import AsyncClient, AsyncPool, EskerError

from .served import ServedCase
from .test_client import Faulty


class Pipelines(ServedCase):
    def run_with(self, body: Callable[[AsyncClient], Awaitable[Any]], url: str = "") -> None:
        async def run() -> None:
            async with AsyncClient(url or self.url) as client:
                for table in await client.tables():
                    await client.sql(f"DROP TABLE {table}")
                await client.sql("CREATE TABLE p (id i64 PRIMARY KEY, text text)")
                await body(client)

        asyncio.run(asyncio.wait_for(run(), 60))

    def test_answers_in_order_and_errors_for_each(self) -> None:
        async def body(client: AsyncClient) -> None:
            for window in (1, 7, 5_000):
                await client.sql("DELETE FROM p")
                async with client.pipeline(window=window) as pipeline:
                    added = [pipeline.insert("p", (i, "x" * 1_000)) for i in range(2_000)]
                    twice = pipeline.insert("p", (7, "y"))
                    rows = [pipeline.get("p", i) for i in range(2_000)]
                    count = pipeline.sql("SELECT 1 + 1")
                    value = pipeline.bucket("b").put("k", "v")
                self.assertEqual(len({pending.result() for pending in added}), 2_000)
                with self.assertRaises(EskerError) as caught:
                    twice.result()
                self.assertEqual(caught.exception.code, "already_exists")
                self.assertTrue(all(p.result() == (i, "x" * 1_000) for i, p in enumerate(rows)))
                self.assertEqual((count.result().scalar(), value.result()), (2, None))
            later = client.pipeline().get("p", 1)
            with self.assertRaises(EskerError):
                later.result()
            with self.assertRaises(TypeError):
                client.pipeline().insert("p", "ab")
            with self.assertRaises(EskerError):
                client.pipeline(window=0)

        self.run_with(body)

    def test_no_more_are_under_way_than_the_window_has(self) -> None:
        async def body(client: AsyncClient) -> None:
            connection: Any = await client._connected()
            most: List[int] = []
            send = connection._send

            def counted(*arguments: Any) -> None:
                most.append(len(connection._waiting))
                send(*arguments)

            connection._send = counted
            async with client.pipeline(window=5) as pipeline:
                for i in range(300):
                    pipeline.insert("p", (i, "x"))
            self.assertEqual(max(most), 5)
            self.assertTrue(connection.is_idle)

        self.run_with(body)

    def test_large_answers_do_not_wait_for_each_other(self) -> None:
        async def body(client: AsyncClient) -> None:
            await client.load("p", ((i, "x" * 1_000) for i in range(20_000)))
            async with client.pipeline() as pipeline:
                tables = [pipeline.sql("SELECT * FROM p") for _ in range(4)]
                one = pipeline.get("p", 1)
            self.assertEqual([len(pending.result()) for pending in tables], [20_000] * 4)
            self.assertEqual(one.result(), (1, "x" * 1_000))

        self.run_with(body)

    def test_transactions_and_pools(self) -> None:
        async def body(client: AsyncClient) -> None:
            with self.assertRaises(KeyError):
                async with client.transaction() as tx:
                    async with tx.pipeline() as pipeline:
                        pipeline.insert("p", (1, "a"))
                        found = pipeline.get("p", 1)
                    self.assertEqual(found.result(), (1, "a"))
                    raise KeyError("no")
            self.assertFalse(await client.exists("p", 1))
            async with AsyncPool(self.url) as pool:
                async with pool.pipeline() as pipeline:
                    pipeline.insert("p", (2, "b"))
                    second = pipeline.get("p", 2)
                self.assertEqual(second.result(), (2, "b"))

        self.run_with(body)

    def test_what_is_given_up_harms_no_other(self) -> None:
        async def body(client: AsyncClient) -> None:
            await client.load("p", ((i, "x") for i in range(100_000)))
            pipeline = client.pipeline()
            slow = "SELECT count(*) FROM p a JOIN p b ON a.id + 0 = b.id + 0"
            for _ in range(20):
                pipeline.sql(slow)
            run = asyncio.ensure_future(pipeline.run())
            await asyncio.sleep(0.02)
            run.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await run
            self.assertEqual(await client.get("p", 5), (5, "x"))

        self.run_with(body)

    def test_a_connection_that_breaks_is_an_error(self) -> None:
        async def body(client: AsyncClient) -> None:
            pipeline = client.pipeline()
            pending = [pipeline.insert("p", (i, None)) for i in range(10)]
            faulty.faults = 1
            with self.assertRaises(EskerError) as caught:
                await pipeline.run()
            self.assertEqual(caught.exception.code, "connection")
            with self.assertRaises(EskerError):
                pending[0].result()
            await client.ping()

        with Faulty(self.url) as faulty:
            self.run_with(body, faulty.url)
