"""Servers that are started anew: nothing is sent into a dead connection, nothing acknowledged is
lost, and nothing is done twice."""

from __future__ import annotations

import asyncio
import random
import threading
import time
import unittest
from typing import Dict, List, Set

from esker import AsyncClient, AsyncPool, AsyncTransaction, Client, EskerError, Pool

from .served import Served

ACCOUNTS = 20
BALANCE = 1_000
TASKS = 200


class Case(unittest.TestCase):
    def setUp(self) -> None:
        self.server = Served("--trust-local", is_stored=True)
        self.addCleanup(self.server.stop)
        with Client(self.server.url) as client:
            client.sql("CREATE TABLE t (id i64 PRIMARY KEY, n i64)")

    def restart(self, is_killed: bool) -> None:
        self.server.end(is_killed)
        self.server.start()


class Restarts(Case):
    def test_the_first_write_after_a_restart_is_done(self) -> None:
        with Client(self.server.url) as client, Pool(self.server.url, size=2) as pool:
            with Client(f"unix:{self.server.unix_path}") as local:
                pool.ping()
                local.ping()
                client.ping()
                for turn, is_killed in enumerate((False, True)):
                    self.restart(is_killed)
                    client.insert("t", (10 * turn, 0))
                    local.insert("t", (10 * turn + 1, 0))
                    pool.insert("t", (10 * turn + 2, 0))
                    with client.transaction() as tx:
                        tx.insert("t", (10 * turn + 3, 0))
                    client.load("t", [(10 * turn + 4, 0)])
                    self.restart(is_killed)
                    with client.transaction() as tx:
                        tx.insert("t", (10 * turn + 5, 0))
                    self.restart(is_killed)
                    client.load("t", [(10 * turn + 6, 0)])
                    self.assertEqual(client.sql("SELECT count(*) FROM t").scalar(), 7 * turn + 7)

    def test_the_first_write_of_a_task_after_a_restart_is_done(self) -> None:
        async def run() -> None:
            url = self.server.url
            async with AsyncClient(url) as client, AsyncPool(url, size=2) as pool:
                await pool.ping()
                for turn, is_killed in enumerate((False, True)):
                    # The event loop sees nothing of it meanwhile.
                    self.restart(is_killed)
                    await client.insert("t", (10 * turn, 0))
                    await pool.insert("t", (10 * turn + 1, 0))
                    self.restart(is_killed)
                    async with client.transaction() as tx:
                        await tx.insert("t", (10 * turn + 2, 0))
                    self.restart(is_killed)
                    await client.load("t", [(10 * turn + 3, 0)])
                    found = await client.sql("SELECT count(*) FROM t")
                    self.assertEqual(found.scalar(), 4 * turn + 4)

        asyncio.run(asyncio.wait_for(run(), 60))

    def test_a_transaction_does_not_outlive_its_server(self) -> None:
        with Client(self.server.url) as client:
            with self.assertRaises(EskerError) as caught:
                with client.transaction() as tx:
                    tx.insert("t", (1, 0))
                    self.restart(False)
                    with self.assertRaises(EskerError):
                        tx.insert("t", (2, 0))
            self.assertEqual(caught.exception.code, "connection")
            client.insert("t", (3, 0))
            self.assertEqual(client.sql("SELECT id FROM t").rows, [(3,)])


class Money(Case):
    """Tasks move money, are cancelled at random, and their server is killed."""

    def test_sums_stay_and_nothing_acknowledged_is_lost(self) -> None:
        self.acknowledged: Set[int] = set()
        self.asked: Set[int] = set()
        self.chance = random.Random(25)
        with Client(self.server.url) as client:
            client.sql("CREATE TABLE moved (id i64 PRIMARY KEY, source i64, target i64, n i64)")
            client.sql("CREATE TABLE noted (id i64 PRIMARY KEY)")
            client.insert_many("t", [(i, BALANCE) for i in range(ACCOUNTS)])
        self.notes: Set[int] = set()
        asyncio.run(asyncio.wait_for(self.run_all(), 60))
        with Client(self.server.url) as client:
            balances: Dict[int, int] = dict(iter(client.sql("SELECT id, n FROM t").rows))
            moved = client.sql("SELECT id, source, target, n FROM moved").rows
            noted = set(client.sql("SELECT id FROM noted").column("id"))
        self.assertEqual(sum(balances.values()), ACCOUNTS * BALANCE)
        expected: Dict[int, int] = {i: BALANCE for i in range(ACCOUNTS)}
        for _, source, target, amount in moved:
            expected[source] -= amount
            expected[target] += amount
        self.assertEqual(balances, expected)
        done = {row[0] for row in moved}
        self.assertLessEqual(self.acknowledged, done)
        self.assertLessEqual(done, self.asked)
        self.assertLessEqual(self.notes, noted)
        self.assertGreater(len(self.acknowledged), 20)
        self.assertGreater(len(self.notes), 20)

    async def run_all(self) -> None:
        async with AsyncPool(self.server.url, size=8, timeout=10) as pool:
            tasks = [asyncio.ensure_future(self.work(pool, i)) for i in range(TASKS)]
            loop = asyncio.get_running_loop()
            for is_killed in (True, False, True):
                for _ in range(60):
                    self.chance.choice(tasks).cancel()
                    await asyncio.sleep(0.001)
                await loop.run_in_executor(None, self.restart, is_killed)
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            for outcome in outcomes:
                if outcome is not None and not isinstance(outcome, asyncio.CancelledError):
                    raise outcome
            self.assertTrue(pool._slots.is_empty)
            await asyncio.gather(*(pool.ping() for _ in range(16)))

    async def work(self, pool: AsyncPool, number: int) -> None:
        for turn in range(5):
            move = number * 100 + turn
            try:
                await self.move(pool, move)
                await pool.insert("noted", (move,))
                self.notes.add(move)
            except EskerError as e:
                self.assertIn(e.code, ("connection", "conflict", "unavailable", "cancelled"))
                await asyncio.sleep(0.01)

    async def move(self, pool: AsyncPool, number: int) -> None:
        source, target = self.chance.sample(range(ACCOUNTS), 2)
        amount = self.chance.randrange(1, 10)

        async def body(tx: AsyncTransaction) -> None:
            rows = await tx.get_many("t", [source, target])
            assert rows[0] is not None and rows[1] is not None
            await tx.update("t", source, n=rows[0][1] - amount)
            await tx.update("t", target, n=rows[1][1] + amount)
            await tx.insert("moved", (number, source, target, amount))

        self.asked.add(number)
        await pool.transact(body, attempts=50)
        self.acknowledged.add(number)


class Threads(Case):
    def test_threads_count_once_each_while_the_server_is_killed(self) -> None:
        """With keys, a write whose answer was lost is sent again, and done once."""
        counted: List[int] = [0] * 8
        is_over = threading.Event()
        with Pool(self.server.url, size=4, retry_writes=True) as pool:

            def count(number: int) -> None:
                while not is_over.is_set():
                    try:
                        pool.insert("t", (number * 100_000 + counted[number], 0))
                        counted[number] += 1
                    except EskerError as e:
                        # Sent twice, and not known to be done: the next turn asks the same again.
                        if e.code == "already_exists":
                            counted[number] += 1
                        else:
                            assert e.code in ("connection", "unavailable", "conflict"), e

            threads = [threading.Thread(target=count, args=(i,)) for i in range(8)]
            for thread in threads:
                thread.start()
            for is_killed in (True, False):
                while sum(counted) < 100:
                    time.sleep(0.001)
                self.restart(is_killed)
            is_over.set()
            for thread in threads:
                thread.join()
        with Client(self.server.url) as client:
            found = client.sql("SELECT count(*) FROM t").scalar()
        self.assertEqual(found, sum(counted))
