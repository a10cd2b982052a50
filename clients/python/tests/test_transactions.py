"""Transactions: nothing of another task or thread falls into one."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, AsyncIterator, Awaitable, Callable, Iterator, List, Tuple

from esker import AsyncClient, AsyncTransaction, Client, EskerError

from .served import ServedCase
from .test_client import Faulty


class Case(ServedCase):
    def setUp(self) -> None:
        self.client = Client(self.url)
        self.addCleanup(self.client.close)
        for table in self.client.tables():
            self.client.sql(f"DROP TABLE {table}")
        self.client.sql("CREATE TABLE t (id i64 PRIMARY KEY, n i64)")

    def ids(self) -> List[int]:
        return self.client.sql("SELECT id FROM t ORDER BY id").column("id")

    def refused(self, body: Callable[[], Any]) -> str:
        with self.assertRaises(EskerError) as caught:
            body()
        self.assertEqual(caught.exception.code, "invalid_request")
        return caught.exception.message


class Threads(Case):
    def test_the_client_is_refused_within_a_transaction_of_it(self) -> None:
        with Client(self.url) as client:
            client.bucket("b").put("k", "first")
            with client.transaction() as tx:
                tx.insert("t", (1, 0))
                for body in (
                    lambda: client.insert("t", (2, 0)),
                    lambda: client.get("t", 1),
                    lambda: client.load("t", [(3, 0)]),
                    lambda: client.bucket("b").put("k", "v"),
                    lambda: client.pipeline().run(),
                    lambda: client.stream("SELECT 1").__enter__(),
                    client.begin,
                    lambda: client.transaction().__enter__(),
                ):
                    self.assertIn("a transaction is open on this client", self.refused(body))
                with tx.pipeline() as pipeline:
                    pending = pipeline.insert("t", (4, 0))
                self.assertIsNotNone(pending.result())
                with tx.stream("SELECT id FROM t ORDER BY id") as rows:
                    self.assertEqual(list(rows), [(1,), (4,)])
                tx.bucket("b").put("k", "v")
                self.assertEqual(self.ids(), [])
            client.insert("t", (5, 0))
        self.assertEqual(self.ids(), [1, 4, 5])
        self.assertEqual(self.client.bucket("b").get("k"), b"v")

    def test_another_thread_stays_out_of_a_transaction(self) -> None:
        with Client(self.url) as client:
            outcomes: List[str] = []
            is_open, is_asked = threading.Event(), threading.Event()

            def ask() -> None:
                is_open.wait(10)
                try:
                    client.insert("t", (2, 0))
                    outcomes.append("stored")
                except EskerError as e:
                    outcomes.append(e.code)
                is_asked.set()

            thread = threading.Thread(target=ask)
            thread.start()
            with self.assertRaises(KeyError):
                with client.transaction() as tx:
                    tx.insert("t", (1, 0))
                    is_open.set()
                    is_asked.wait(10)
                    raise KeyError("no")
            thread.join()
        self.assertEqual((outcomes, self.ids()), (["invalid_request"], []))

    def test_threads_take_turns(self) -> None:
        with Client(self.url) as client:

            def work(first: int) -> None:
                for i in range(first, first + 50):
                    client.insert("t", (i, i))
                    assert client.get("t", i) == (i, i)

            threads = [threading.Thread(target=work, args=(100 * i,)) for i in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(len(self.ids()), 400)

    def test_rows_of_a_load_cannot_ask_the_client_that_loads_them(self) -> None:
        def rows() -> Iterator[Tuple[int, int]]:
            yield (1, 1)
            self.client.get("t", 1)

        self.assertIn("in the midst", self.refused(lambda: self.client.load("t", rows())))
        self.assertEqual(self.ids(), [])

    def test_what_has_ended_is_refused(self) -> None:
        client = self.client
        with client.transaction() as tx:
            tx.insert("t", (1, 0))
        for body in (lambda: tx.get("t", 1), tx.commit, tx.rollback):
            self.assertIn("has ended", self.refused(body))
        with client.transaction() as tx:
            tx.insert("t", (2, 0))
            tx.rollback()
        with client.transaction() as tx:
            tx.insert("t", (3, 0))
            tx.commit()
        tx = client.begin()
        tx.insert("t", (4, 0))
        client.close()
        self.assertIn("has ended", self.refused(tx.commit))
        self.assertEqual(self.ids(), [1, 3])

    def test_a_transaction_that_lost_its_connection_is_no_success(self) -> None:
        with Faulty(self.url) as faulty, Client(faulty.url, retry_writes=True) as client:
            with self.assertRaises(EskerError) as caught:
                with client.transaction() as tx:
                    tx.insert("t", (1, 0))
                    faulty.faults = 1
                    for _ in range(2):
                        try:
                            tx.insert("t", (2, 0))
                        except EskerError as e:
                            self.assertEqual(e.code, "connection")
            self.assertIn("and with it the transaction", str(caught.exception))
            client.insert("t", (3, 0))
        self.assertEqual(self.ids(), [3])


class Tasks(Case):
    def run_with(self, body: Callable[[AsyncClient], Awaitable[Any]]) -> Any:
        async def run() -> Any:
            async with AsyncClient(self.url) as client:
                return await asyncio.wait_for(body(client), 60)

        return asyncio.run(run())

    async def code(self, asked: Awaitable[Any]) -> str:
        with self.assertRaises(EskerError) as caught:
            await asked
        return caught.exception.code

    def test_another_task_stays_out_of_a_transaction(self) -> None:
        async def body(client: AsyncClient) -> None:
            with self.assertRaises(KeyError):
                async with client.transaction() as tx:
                    await tx.insert("t", (1, 0))
                    other = asyncio.ensure_future(client.insert("t", (2, 0)))
                    self.assertEqual(await self.code(other), "invalid_request")
                    raise KeyError("no")
            self.assertEqual(await client.exists_many("t", [1, 2]), [False, False])

        self.run_with(body)

    def test_what_is_acknowledged_beside_transactions_stays(self) -> None:
        """Tasks insert at any moment of the transactions of others, which are rolled back."""

        async def body(client: AsyncClient) -> None:
            stored: List[int] = []
            is_over = asyncio.Event()

            async def insert(first: int) -> None:
                at = first
                while not is_over.is_set():
                    try:
                        await client.insert("t", (at, 0))
                        stored.append(at)
                        at += 1
                    except EskerError as e:
                        self.assertEqual(e.code, "invalid_request")
                        await asyncio.sleep(0)

            tasks = [asyncio.ensure_future(insert(1_000 * i)) for i in range(5)]
            for i in range(50):
                with self.assertRaises(KeyError):
                    async with client.transaction() as tx:
                        await asyncio.gather(*(tx.insert("t", (-n, i)) for n in range(1, 4)))
                        raise KeyError("no")
                await asyncio.sleep(0)
            is_over.set()
            await asyncio.gather(*tasks)
            self.assertGreater(len(stored), 50)
            self.assertEqual(self.ids(), sorted(stored))

        self.run_with(body)

    def test_what_began_before_a_transaction_is_outside_of_it(self) -> None:
        async def body(client: AsyncClient) -> None:
            is_open, is_over = asyncio.Event(), asyncio.Event()

            async def rows() -> AsyncIterator[Tuple[int, int]]:
                yield (1, 1)
                is_open.set()
                await is_over.wait()
                yield (2, 2)

            load = asyncio.ensure_future(client.load("t", rows()))
            await is_open.wait()
            with self.assertRaises(KeyError):
                async with client.transaction() as tx:
                    await tx.insert("t", (3, 3))
                    raise KeyError("no")
            is_over.set()
            self.assertEqual(await load, 2)
            self.assertEqual(self.ids(), [1, 2])

        self.run_with(body)

    def test_a_cancelled_request_ends_its_transaction(self) -> None:
        async def body(client: AsyncClient) -> None:
            await client.load("t", ((i, i) for i in range(50_000)))
            slow = "SELECT count(*) FROM t a JOIN t b ON a.n + 0 = b.n + 0"
            with self.assertRaises(EskerError) as caught:
                async with client.transaction() as tx:
                    await tx.update("t", 1, n=-1)
                    asked = asyncio.ensure_future(tx.sql(slow))
                    for _ in range(5):
                        await asyncio.sleep(0)
                    asked.cancel()
                    with self.assertRaises(asyncio.CancelledError):
                        await asked
                    self.assertEqual(await self.code(tx.get("t", 1)), "invalid_request")
            self.assertEqual(caught.exception.code, "cancelled")
            self.assertEqual(await client.get("t", 1), (1, 1))

            async def update(tx: AsyncTransaction) -> None:
                await tx.update("t", 1, n=-1)
                await tx.sql(slow)

            for turns in range(0, 40, 3):
                whole = asyncio.ensure_future(client.transact(update))
                for _ in range(turns):
                    await asyncio.sleep(0)
                whole.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await whole
                self.assertFalse(client.in_transaction)
                self.assertEqual(await client.get("t", 1), (1, 1))

        self.run_with(body)

    def test_a_transaction_that_has_ended_is_refused(self) -> None:
        async def body(client: AsyncClient) -> None:
            async with client.transaction() as tx:
                await tx.insert("t", (1, 0))
                async for row in tx.stream("SELECT id FROM t"):
                    self.assertEqual(row, (1,))
            for asked in (tx.get("t", 1), tx.commit(), tx.rollback()):
                self.assertEqual(await self.code(asked), "invalid_request")
            tx = await client.begin()
            self.assertEqual(await self.code(client.begin()), "invalid_request")
            await tx.insert("t", (2, 0))
            async with AsyncClient(self.url) as other:
                await tx.update("t", 1, n=1)
                await other.update("t", 1, n=2)
            self.assertEqual(await self.code(tx.commit()), "conflict")
            self.assertEqual(await client.get("t", 1), (1, 2))

        self.run_with(body)


