"""Connections that are closed, inherited or silent: nothing is lost, and nothing waits for ever."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
import unittest
import warnings
from typing import Any, Callable, List

from esker import AsyncClient, AsyncPool, Client, EskerError, Pool

from .served import ServedCase
from .test_client import Faulty


class Connections(ServedCase):
    def setUp(self) -> None:
        self.client = Client(self.url)
        self.addCleanup(self.client.close)
        for table in self.client.tables():
            self.client.sql(f"DROP TABLE {table}")
        self.client.sql("CREATE TABLE n (id i64 PRIMARY KEY, text text)")

    def refused(self, body: Callable[[], Any]) -> str:
        with self.assertRaises(EskerError) as caught:
            body()
        return str(caught.exception)

    def stream_twice_named(self) -> None:
        with self.client.stream("SELECT id, text, id FROM n", rows="dict") as rows:
            list(rows)

    def test_a_load_behind_a_stream_that_failed_is_whole(self) -> None:
        self.client.load("n", ((i, "x" * 50) for i in range(50_000)))
        self.client.sql("CREATE TABLE m (id i64 PRIMARY KEY, text text)")
        for begin in range(0, 200_000, 40_000):
            self.assertIn("two columns are named", self.refused(self.stream_twice_named))
            rows = [(i, "y" * 20) for i in range(begin, begin + 40_000)]
            self.assertEqual(self.client.load("m", rows), 40_000)

    def test_a_stream_whose_connection_was_closed_breaks_no_other(self) -> None:
        self.client.load("n", ((i, "x" * 50) for i in range(20_000)))
        with self.client.stream("SELECT id FROM n") as rows:
            numbers = iter(rows)
            next(numbers)
            self.client.close()
            with self.client.stream("SELECT id FROM n ORDER BY id") as others:
                self.assertIn("was closed", self.refused(lambda: list(numbers)))
                self.assertEqual(len(list(others)), 20_000)
            self.client.begin().rollback()

    def test_closing_ends_what_another_thread_waits_for(self) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        client = Client("127.0.0.1:%d" % listener.getsockname()[1], timeout=60)
        errors: List[EskerError] = []

        def ask() -> None:
            try:
                client.insert("n", (1, None))
            except EskerError as e:
                errors.append(e)

        thread = threading.Thread(target=ask)
        thread.start()
        time.sleep(0.2)
        client.close()
        thread.join(5)
        self.assertFalse(thread.is_alive())
        self.assertEqual([e.code for e in errors], ["connection"])

    def test_a_pool_takes_no_connection_whose_rows_are_being_read(self) -> None:
        self.client.load("n", ((i, "x" * 50) for i in range(20_000)))
        with Pool(self.url, size=1) as pool:
            with pool.connection() as client:
                left_open = client.stream("SELECT id FROM n")
                left_open.__enter__()
            self.assertEqual(pool.sql("SELECT count(*) FROM n").scalar(), 20_000)

    def in_child(self, body: Callable[[], None]) -> None:
        """Runs something in a process that is forked, and waits for its success."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            try:
                body()
            except BaseException as e:
                os.write(2, f"in the child: {type(e).__name__}: {e}\n".encode())
                os._exit(1)
            os._exit(0)
        self.children.append(child)

    @unittest.skipUnless(hasattr(os, "fork"), "there are no forks here")
    def test_a_forked_process_has_connections_of_its_own(self) -> None:
        self.children: List[int] = []
        held = Pool(self.url, size=2, timeout=10, wait_timeout=10)
        client = Client(self.url, timeout=10)
        tx = client.begin()
        tx.insert("n", (-1, "parent"))
        with held, client, held.connection() as out:
            out.ping()
            held.ping()

            def child() -> None:
                self.assertIn("with it the transaction", self.refused(lambda: tx.get("n", -1)))
                for i in range(200):
                    for asker in (client, held, out):
                        self.assertEqual(asker.sql("SELECT ?", [i]).scalar(), i)
                with held.connection(), held.connection():
                    pass
                client.close()
                held.close()

            for _ in range(2):
                self.in_child(child)
            for i in range(200):
                self.assertEqual(tx.sql("SELECT ?", [-i]).scalar(), -i)
                self.assertEqual(held.sql("SELECT ?", [-i]).scalar(), -i)
            for child_id in self.children:
                self.assertEqual(os.waitpid(child_id, 0)[1], 0)
            tx.commit()
        self.assertEqual(self.client.get("n", -1), (-1, "parent"))

    def test_a_client_for_asyncio_goes_on_in_another_event_loop(self) -> None:
        client, pool = AsyncClient(self.url, timeout=5), AsyncPool(self.url, timeout=5)
        transactions = []

        async def ask(n: int) -> List[Any]:
            found = await client.sql("SELECT ?", [n]), await pool.sql("SELECT ?", [n])
            return [one.scalar() for one in found]

        async def begin() -> None:
            transactions.append(await client.begin())

        async def go_on() -> None:
            with self.assertRaises(EskerError):
                await transactions[0].commit()
            self.assertIsNone(await client.get("n", 1))

        async def close() -> None:
            await client.close()
            await pool.close()

        began = time.monotonic()
        for n in range(3):
            self.assertEqual(asyncio.run(ask(n)), [n, n])
        asyncio.run(begin())
        asyncio.run(go_on())
        asyncio.run(close())
        self.assertLess(time.monotonic() - began, 4)

    def test_a_task_leaves_a_server_that_says_nothing(self) -> None:
        async def run() -> None:
            silent: List[asyncio.StreamWriter] = []

            async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                if silent:
                    return await Silent(self.url).serve(reader, writer)
                silent.append(writer)
                await Silent(self.url, GREETED).serve(reader, writer)

            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            async with AsyncClient(f"127.0.0.1:{port}", timeout=0.5) as client:
                with self.assertRaises(EskerError) as caught:
                    await client.insert("n", (1, None))
                self.assertIn("no answer within 0.5 s", str(caught.exception))
                await client.insert("n", (2, None))
                self.assertTrue(await client.exists("n", 2))
            server.close()

        asyncio.run(asyncio.wait_for(run(), 30))


# The greeting, and the answer to a ping.
GREETED = 6 + 11


class Silent:
    """Stands before a server, and passes on so many bytes of its answers."""

    def __init__(self, url: str, size: int = 1 << 30) -> None:
        self._host, _, self._port = url.rpartition(":")
        self._left = size

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection(self._host, int(self._port))
        try:
            await self._pass_on(reader, writer, from_server, to_server)
        finally:
            for end in (writer, to_server):
                end.close()

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        from_server: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
    ) -> None:
        async def ask() -> None:
            while True:
                data = await reader.read(1 << 16)
                if not data:
                    break
                to_server.write(data)

        asking = asyncio.ensure_future(ask())
        while not asking.done():
            answer = asyncio.ensure_future(from_server.read(1 << 16))
            await asyncio.wait([answer, asking], return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                answer.cancel()
                break
            data = answer.result()[: self._left]
            if not answer.result():
                break
            self._left -= len(data)
            writer.write(data)


class Limits(unittest.TestCase):
    def test_names_that_no_host_can_have_are_connection_errors(self) -> None:
        async def ask(url: str) -> None:
            await AsyncClient.connect(url)

        for url in ("a..b", "a" * 300, ".x:80", "eskers://.x"):
            for body in (lambda: Client(url), lambda: asyncio.run(ask(url))):
                with self.assertRaises(EskerError) as caught:
                    body()
                self.assertEqual(caught.exception.code, "connection", url)

    def test_a_task_that_connects_too_long_says_so(self) -> None:
        async def ask(url: str) -> None:
            await AsyncClient.connect(url, timeout=1e-9)

        with socket.create_server(("127.0.0.1", 0)) as listener:
            with self.assertRaises(EskerError) as caught:
                asyncio.run(ask("127.0.0.1:%d" % listener.getsockname()[1]))
        self.assertIn("no answer within 1e-09 s", str(caught.exception))


class Patience(ServedCase):
    def test_time_limits_of_years_are_waited_for(self) -> None:
        for limit in (1e7, 3e9, 1e10, 2.0**52):
            with Client(self.url, timeout=limit) as client:
                client.ping()
            with Pool(self.url, size=1, wait_timeout=limit, timeout=limit) as pool:
                answers: List[Any] = []
                with pool.connection():
                    thread = threading.Thread(target=lambda: answers.append(pool.ping()))
                    thread.start()
                    time.sleep(0.1)
                thread.join()
                self.assertEqual(answers, [None])

    def test_a_pipeline_that_lost_its_connection_says_so_in_each_result(self) -> None:
        with Faulty(self.url) as faulty, Client(faulty.url) as client:
            client.ping()
            pipeline = client.pipeline()
            pending = pipeline.tables()
            faulty.faults = 1
            for body in (pipeline.run, pending.result):
                with self.assertRaises(EskerError) as caught:
                    body()
                self.assertEqual(caught.exception.code, "connection")


if __name__ == "__main__":
    unittest.main()
