"""The client for asyncio beside a server."""

from __future__ import annotations

import asyncio
from typing import Any, AsyncIterator, Awaitable, Callable, Tuple

from esker import AsyncClient, AsyncTransaction, Client, EskerError

from .served import ServedCase
from .test_client import Faulty


class Asked(ServedCase):
    def setUp(self) -> None:
        with Client(self.url) as client:
            for table in client.tables():
                client.sql(f"DROP TABLE {table}")
            client.sql("CREATE TABLE t (id i64 PRIMARY KEY, n i64)")

    def run_with(self, body: Callable[[AsyncClient], Awaitable[Any]]) -> Any:
        async def run() -> Any:
            async with await AsyncClient.connect(self.url) as client:
                return await asyncio.wait_for(body(client), 60)

        return asyncio.run(run())

    def test_many_at_once(self) -> None:
        async def body(client: AsyncClient) -> None:
            await asyncio.gather(*(client.insert("t", (i, i * i)) for i in range(1_000)))
            rows = await asyncio.gather(*(client.get("t", i) for i in range(1_000)))
            self.assertEqual(rows, [(i, i * i) for i in range(1_000)])
            self.assertEqual(await client.insert_many("t", [(-1, 0), (-2, 0)]), 2)
            self.assertTrue(await client.update("t", -1, n=3))
            self.assertEqual(await client.update_many("t", [(-1, {"n": 4}), (-9, {})]), 1)
            self.assertTrue(await client.exists("t", -1))
            self.assertEqual(await client.exists_many("t", [-1, -3]), [True, False])
            self.assertTrue(await client.delete("t", -1))
            self.assertEqual(await client.delete_many("t", [-1, -2]), 1)
            self.assertEqual(await client.tables(), ["t"])
            self.assertIn("n i64", await client.schema("t"))
            with self.assertRaises(EskerError) as caught:
                await client.insert("t", (1, 1))
            self.assertEqual(caught.exception.code, "already_exists")

        self.run_with(body)

    def test_loads_and_streams(self) -> None:
        async def rows() -> AsyncIterator[Tuple[int, int]]:
            for i in range(100_000):
                yield (i, 1)

        async def body(client: AsyncClient) -> None:
            self.assertEqual(await client.load("t", rows()), 100_000)
            self.assertEqual(await client.load("t", [(-1, 1)]), 1)
            with self.assertRaises(EskerError):
                await client.load("t", ((i, "wrong") for i in range(500_000)))
            total = 0
            async for (i,) in client.stream("SELECT id FROM t WHERE id >= 0"):
                total += i
            self.assertEqual(total, 99_999 * 50_000)
            stream = client.stream("SELECT id, n FROM t")
            async for _ in stream:
                break
            await stream.aclose()
            self.assertEqual((await client.sql("SELECT count(*) FROM t")).scalar(), 100_001)
            found = await client.query({"table": "t", "limit": 1, "order": ["id"]})
            self.assertEqual(found.rows, [(-1, 1)])
            self.assertIn("scan", await client.explain({"table": "t"}))

        self.run_with(body)

    def test_transactions(self) -> None:
        async def add(tx: AsyncTransaction) -> None:
            row = await tx.get("t", 1)
            assert row is not None
            await tx.update("t", 1, n=row[1] + 1)

        async def worker() -> None:
            async with await AsyncClient.connect(self.url) as client:
                for _ in range(10):
                    await client.transact(add, attempts=1_000)

        async def body(client: AsyncClient) -> None:
            await client.insert("t", (1, 0))
            await asyncio.gather(*(worker() for _ in range(4)))
            self.assertEqual(await client.get("t", 1), (1, 40))
            with self.assertRaises(KeyError):
                async with client.transaction() as tx:
                    await add(tx)
                    raise KeyError("no")
            self.assertEqual(await client.get("t", 1), (1, 40))

        self.run_with(body)

    def test_buckets(self) -> None:
        async def body(client: AsyncClient) -> None:
            bucket = client.bucket("async")
            await bucket.put("k", "v", ttl=60)
            self.assertEqual(await bucket.get("k"), b"v")
            self.assertEqual(await bucket.increment("n", 2), 2)
            self.assertEqual(await bucket.range("k", "l"), [(b"k", b"v")])
            self.assertTrue(await bucket.remove("k"))
            self.assertIn("async", await client.buckets())

        self.run_with(body)

    def test_what_is_given_up_harms_nobody(self) -> None:
        async def body(client: AsyncClient) -> None:
            await client.load("t", ((i, i) for i in range(200_000)))
            slow = asyncio.ensure_future(
                client.sql("SELECT count(*) FROM t a JOIN t b ON a.n + 0 = b.n + 0")
            )
            # It asks, and has no time to be answered.
            for _ in range(5):
                await asyncio.sleep(0)
            slow.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await slow
            self.assertEqual(await client.get("t", 5), (5, 5))

        self.run_with(body)

    def test_writes_are_done_once_though_an_answer_is_lost(self) -> None:
        async def run(url: str) -> None:
            async with await AsyncClient.connect(url) as client:
                await client.insert("t", (1, 0))
                count_up = "UPDATE t SET n = n + 1 WHERE id = 1"
                faulty.faults = 1
                with self.assertRaises(EskerError) as caught:
                    await client.sql(count_up)
                self.assertEqual(caught.exception.code, "connection")
                # What comes next connects again; what reads is asked again.
                faulty.faults = 1
                self.assertEqual(await client.get("t", 1), (1, 1))
            async with await AsyncClient.connect(url, retry_writes=True) as client:
                for n in range(2, 6):
                    faulty.faults = 1
                    self.assertEqual((await client.sql(count_up)).changed, 1)
                    self.assertEqual(await client.get("t", 1), (1, n))
                faulty.faults = 1
                self.assertEqual(await client.bucket("once").increment("a"), 1)
                # Many tasks whose answers are lost together.
                faulty.faults = 1
                counts = [client.bucket("once").increment("many") for _ in range(50)]
                self.assertEqual(sorted(await asyncio.gather(*counts)), list(range(1, 51)))
                faulty.faults = 1
                rows = [(n, n) for n in range(10, 1_010)]
                self.assertEqual(await client.load("t", rows), 1_000)
                faulty.faults = 1
                with self.assertRaises(EskerError):
                    await client.load("t", ((n, n) for n in range(2_000, 2_010)))
                async with client.transaction() as tx:
                    await tx.update("t", 1, n=7)
                # A transaction is lost with its connection, and nothing of it is sent again.
                with self.assertRaises(EskerError):
                    async with client.transaction() as tx:
                        faulty.faults = 1
                        await tx.update("t", 1, n=8)
                self.assertFalse(client.in_transaction)
                self.assertEqual(await client.get("t", 1), (1, 7))

        with Faulty(self.url) as faulty:
            asyncio.run(asyncio.wait_for(run(faulty.url), 60))

    def test_a_server_that_goes(self) -> None:
        async def run() -> str:
            async def serve(reader: Any, writer: asyncio.StreamWriter) -> None:
                await reader.read(64)
                writer.close()

            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            try:
                await AsyncClient.connect(f"127.0.0.1:{port}")
            except EskerError as e:
                return e.code
            finally:
                server.close()
            return "connected"

        self.assertEqual(asyncio.run(run()), "connection")
