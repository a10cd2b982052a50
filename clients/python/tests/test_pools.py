"""Pools: connections of threads and tasks."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from typing import Any, Awaitable, Callable, List

from esker import AsyncPool, AsyncTransaction, Client, EskerError, Pool

from .served import ServedCase


class Case(ServedCase):
    def setUp(self) -> None:
        self.client = Client(self.url)
        self.addCleanup(self.client.close)
        for table in self.client.tables():
            self.client.sql(f"DROP TABLE {table}")
        self.client.sql("CREATE TABLE t (id i64 PRIMARY KEY, n i64)")

    def sum(self) -> int:
        return int(self.client.sql("SELECT sum(n) FROM t").scalar())


class Threads(Case):
    def test_a_pool_is_asked_like_a_client(self) -> None:
        with Pool(self.url, size=2) as pool:
            pool.insert("t", (1, 1))
            pool.bucket("b").put("k", "v")
            with pool.transaction() as tx:
                tx.update("t", 1, n=2)
                self.assertEqual(pool.get("t", 1), (1, 1))
            with self.assertRaises(KeyError):
                with pool.transaction() as tx:
                    tx.update("t", 1, n=3)
                    raise KeyError("no")
            with pool.connection() as client:
                self.assertEqual(client.get("t", 1), (1, 2))
            pool.transact(lambda tx: tx.update("t", 1, n=4))
            self.assertEqual(pool.bucket("b").get("k"), b"v")
        with self.assertRaises(EskerError):
            pool.ping()
        self.assertEqual(self.sum(), 4)

    def test_what_comes_back_within_a_transaction_is_rolled_back(self) -> None:
        with Pool(self.url, size=1) as pool:
            with pool.connection() as client:
                client.begin().insert("t", (1, 1))
            pool.insert("t", (2, 2))
        self.assertEqual(self.sum(), 2)

    def test_places_are_waited_for_in_turn_and_not_for_ever(self) -> None:
        with Pool(self.url, size=1, wait_timeout=0.05) as pool:
            with pool.connection():
                with self.assertRaises(EskerError) as caught:
                    pool.ping()
                self.assertEqual(caught.exception.code, "timeout")
                self.assertIn("all 1 connections of the pool", str(caught.exception))
            pool.ping()
        order: List[int] = []
        with Pool(self.url, size=1) as pool:

            def work(number: int) -> None:
                with pool.connection():
                    order.append(number)

            threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
            with pool.connection():
                for number, thread in enumerate(threads):
                    thread.start()
                    while len(pool._slots.waiting) <= number:
                        time.sleep(0.001)
            for thread in threads:
                thread.join()
        self.assertEqual(order, list(range(8)))

    def test_closing_ends_what_waits_and_what_is_out(self) -> None:
        pool = Pool(self.url, size=1)
        codes: List[str] = []
        is_out, is_closed = threading.Event(), threading.Event()

        def hold() -> None:
            try:
                with pool.transaction() as tx:
                    tx.insert("t", (1, 1))
                    is_out.set()
                    is_closed.wait(10)
                    tx.insert("t", (2, 2))
            except EskerError as e:
                codes.append(e.code)

        def wait() -> None:
            try:
                pool.ping()
            except EskerError as e:
                codes.append(e.code)

        threads = [threading.Thread(target=body) for body in (hold, wait)]
        threads[0].start()
        is_out.wait(10)
        threads[1].start()
        while not pool._slots.waiting:
            time.sleep(0.001)
        pool.close(timeout=0.05)
        threads[1].join()
        is_closed.set()
        threads[0].join()
        self.assertEqual(codes, ["invalid_request", "connection"])
        self.assertEqual(self.client.sql("SELECT count(*) FROM t").scalar(), 0)


class Tasks(Case):
    def run_with(self, body: Callable[[AsyncPool], Awaitable[Any]], **options: Any) -> Any:
        async def run() -> Any:
            async with AsyncPool(self.url, **options) as pool:
                return await asyncio.wait_for(body(pool), 60)

        return asyncio.run(run())

    def test_a_pool_is_asked_like_a_client(self) -> None:
        async def body(pool: AsyncPool) -> None:
            await pool.insert("t", (1, 1))
            await pool.bucket("b").put("k", "v")
            async with pool.transaction() as tx:
                await tx.update("t", 1, n=2)
                self.assertEqual(await pool.get("t", 1), (1, 1))
            with self.assertRaises(KeyError):
                async with pool.transaction() as tx:
                    await tx.update("t", 1, n=3)
                    raise KeyError("no")
            async with pool.connection() as client:
                self.assertEqual(await client.get("t", 1), (1, 2))

            async def add(tx: AsyncTransaction) -> None:
                row = await tx.get("t", 1)
                assert row is not None
                await tx.update("t", 1, n=row[1] + 1)

            await asyncio.gather(*(pool.transact(add, attempts=1_000) for _ in range(40)))
            self.assertEqual(await pool.get("t", 1), (1, 42))
            self.assertLessEqual(len(pool._slots.free), 3)

        self.run_with(body, size=3)

    def test_what_comes_back_within_a_transaction_is_rolled_back(self) -> None:
        async def body(pool: AsyncPool) -> None:
            async with pool.connection() as client:
                tx = await client.begin()
                await tx.insert("t", (1, 1))
            await pool.insert("t", (2, 2))
            with self.assertRaises(EskerError):
                await tx.insert("t", (3, 3))

        self.run_with(body, size=1)
        self.assertEqual(self.sum(), 2)

    def test_what_comes_back_before_an_answer_is_closed(self) -> None:
        async def body(pool: AsyncPool) -> None:
            await pool.insert_many("t", [(i, i) for i in range(10_000)])
            async with pool.connection() as client:
                slow = "SELECT count(*) FROM t a JOIN t b ON a.n + 0 = b.n + 0"
                asked = asyncio.ensure_future(client.sql(slow))
                while client._is_idle:
                    await asyncio.sleep(0)
            with self.assertRaises(EskerError):
                await asked
            await pool.ping()

        self.run_with(body, size=1)

    def test_places_are_waited_for_in_turn_and_not_for_ever(self) -> None:
        async def late(pool: AsyncPool) -> None:
            async with pool.connection():
                with self.assertRaises(EskerError) as caught:
                    await pool.ping()
                self.assertEqual(caught.exception.code, "timeout")
            await pool.ping()

        self.run_with(late, size=1, wait_timeout=0.05)
        order: List[int] = []

        async def body(pool: AsyncPool) -> None:
            async def work(number: int) -> None:
                async with pool.connection():
                    order.append(number)
                    await asyncio.sleep(0)

            async with pool.connection():
                tasks = [asyncio.ensure_future(work(i)) for i in range(20)]
                await asyncio.sleep(0)
                tasks[3].cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        self.run_with(body, size=1)
        self.assertEqual(order, [i for i in range(20) if i != 3])

    def test_a_place_that_comes_with_a_cancellation_is_for_the_next(self) -> None:
        async def body(pool: AsyncPool) -> None:
            async with pool.connection():
                asked = asyncio.ensure_future(pool.ping())
                next_one = asyncio.ensure_future(pool.ping())
                await asyncio.sleep(0)
            # It has its place now, and has not run yet.
            asked.cancel()
            await next_one
            self.assertTrue(asked.cancelled())
            self.assertTrue(pool._slots.is_empty)

        self.run_with(body, size=1, wait_timeout=5)

    def test_cancelled_tasks_leave_their_places(self) -> None:
        chance = random.Random(5)

        async def body(pool: AsyncPool) -> None:
            await pool.insert_many("t", [(i, 100) for i in range(4)])

            async def move() -> None:
                async with pool.transaction() as tx:
                    source, target = chance.sample(range(4), 2)
                    rows = await tx.get_many("t", [source, target])
                    assert rows[0] is not None and rows[1] is not None
                    await tx.update("t", source, n=rows[0][1] - 1)
                    await asyncio.sleep(0)
                    await tx.update("t", target, n=rows[1][1] + 1)

            tasks = [asyncio.ensure_future(move()) for _ in range(300)]
            for _ in range(400):
                chance.choice(tasks).cancel()
                await asyncio.sleep(0)
            for outcome in await asyncio.gather(*tasks, return_exceptions=True):
                is_known = outcome is None or isinstance(outcome, asyncio.CancelledError)
                self.assertTrue(is_known or getattr(outcome, "code", "") == "conflict", outcome)
            self.assertTrue(pool._slots.is_empty)
            self.assertFalse(pool._slots.waiting)
            await asyncio.gather(*(pool.ping() for _ in range(10)))

        self.run_with(body, size=4)
        self.assertEqual(self.sum(), 400)

    def test_closing_ends_what_waits_and_what_is_out(self) -> None:
        async def run() -> List[str]:
            pool = AsyncPool(self.url, size=1)
            is_out, is_closed = asyncio.Event(), asyncio.Event()

            async def hold() -> None:
                async with pool.transaction() as tx:
                    await tx.insert("t", (1, 1))
                    is_out.set()
                    await is_closed.wait()
                    await tx.insert("t", (2, 2))

            held = asyncio.ensure_future(hold())
            await is_out.wait()
            waiting = asyncio.ensure_future(pool.ping())
            await asyncio.sleep(0)
            await pool.close(timeout=0.05)
            is_closed.set()
            outcomes = await asyncio.gather(held, waiting, pool.ping(), return_exceptions=True)
            return [getattr(outcome, "code", "none") for outcome in outcomes]

        codes = asyncio.run(asyncio.wait_for(run(), 60))
        self.assertEqual(codes, ["connection", "invalid_request", "invalid_request"])
        self.assertEqual(self.client.sql("SELECT count(*) FROM t").scalar(), 0)

    def test_closing_waits_for_what_is_out(self) -> None:
        async def run() -> None:
            pool = AsyncPool(self.url, size=1)
            is_out, may_end = asyncio.Event(), asyncio.Event()

            async def hold() -> None:
                async with pool.transaction() as tx:
                    await tx.insert("t", (1, 1))
                    is_out.set()
                    await may_end.wait()

            held = asyncio.ensure_future(hold())
            await is_out.wait()
            closing = asyncio.ensure_future(pool.close())
            await asyncio.sleep(0)
            may_end.set()
            await asyncio.gather(held, closing)

        asyncio.run(asyncio.wait_for(run(), 60))
        self.assertEqual(self.sum(), 1)
