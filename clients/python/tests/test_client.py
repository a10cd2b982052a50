"""The blocking client beside a server."""

from __future__ import annotations

import datetime
import decimal
import ipaddress
import socket
import threading
import time
import unittest
import uuid
from typing import Any, List, Tuple

from esker import Client, EskerError, Json, Pool, Transaction

from .served import ServedCase


class Faulty:
    """Stands before a server, and loses answers: with each its connection."""

    def __init__(self, url: str) -> None:
        host, _, port = url.rpartition(":")
        self._server = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = "127.0.0.1:%d" % self._listener.getsockname()[1]
        self.faults = 0
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def __enter__(self) -> "Faulty":
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._server)
            for pair in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._copy, args=pair, daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket, are_answers: bool) -> None:
        is_greeting = True
        with source, target:
            while True:
                try:
                    data = source.recv(1 << 16)
                    if not data:
                        break
                    if are_answers and not is_greeting and self.faults > 0:
                        self.faults -= 1
                        break
                    target.sendall(data)
                except OSError:
                    break
                is_greeting = False
            for end in (source, target):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass


class Tables(ServedCase):
    def setUp(self) -> None:
        self.client = Client(self.url)
        self.addCleanup(self.client.close)
        for table in self.client.tables():
            self.client.sql(f"DROP TABLE {table}")

    def code(self, body: Any, *arguments: Any, **more: Any) -> str:
        with self.assertRaises(EskerError) as caught:
            body(*arguments, **more)
        return caught.exception.code

    def test_rows(self) -> None:
        client = self.client
        made = client.sql("CREATE TABLE t (a i64, b text, n i64, PRIMARY KEY (a, b))")
        self.assertEqual((made.text, made.rows), ("created table t", []))
        self.assertEqual(client.tables(), ["t"])
        self.assertIn("primary key (a, b)", client.schema("t").lower())
        self.assertIsInstance(client.insert("t", (1, "x", 5)), int)
        self.assertEqual(client.insert_many("t", [(2, "y", None), (3, "z", 7)]), 2)
        self.assertEqual(self.code(client.insert, "t", (1, "x", 6)), "already_exists")
        client.insert("t", (1, "x", 6), replace=True)
        self.assertEqual(client.get("t", (1, "x")), (1, "x", 6))
        self.assertIsNone(client.get("t", (1, "y")))
        self.assertEqual(client.get_many("t", [(2, "y"), [9, "q"]]), [(2, "y", None), None])
        self.assertTrue(client.exists("t", (3, "z")))
        self.assertEqual(client.exists_many("t", [(3, "z"), (3, "y")]), [True, False])
        self.assertTrue(client.update("t", (2, "y"), n=8))
        self.assertTrue(client.update("t", (2, "y"), {"n": 9}))
        self.assertFalse(client.update("t", (2, "x"), n=8))
        updates = [((1, "x"), {"n": 1}), ((3, "z"), {"n": 2}), ((9, "q"), {})]
        self.assertEqual(client.update_many("t", updates), 2)
        self.assertEqual(client.get("t", (3, "z")), (3, "z", 2))
        self.assertTrue(client.delete("t", (2, "y")))
        self.assertFalse(client.delete("t", (2, "y")))
        self.assertEqual(client.delete_many("t", [(1, "x"), (2, "y"), (3, "z")]), 2)
        self.assertEqual(self.code(client.get, "nowhere", 1), "not_found")
        self.assertEqual(self.code(client.insert, "t", (1,)), "invalid_request")
        client.ping()

    def test_generated_keys(self) -> None:
        self.client.sql("CREATE TABLE log (line text)")
        first = self.client.insert("log", ("one",))
        assert first is not None
        self.assertEqual(self.client.get("log", first), ("one",))

    def test_values(self) -> None:
        client = self.client
        client.sql(
            "CREATE TABLE v (id i64 PRIMARY KEY, d date, t timestamp, u uuid, m decimal(12, 2), "
            "doc json, raw bytes, clock time, address ipv4)"
        )
        row = (
            1,
            datetime.date(2024, 2, 29),
            datetime.datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=datetime.timezone.utc),
            uuid.UUID(int=77),
            decimal.Decimal("12345.60"),
            {"a": [1, None]},
            b"\x00\xff",
            datetime.time(1, 2, 3),
            ipaddress.ip_address("10.1.2.3"),
        )
        client.insert("v", row)
        self.assertEqual(client.get("v", 1), row)
        date = datetime.date(2024, 3, 1)
        client.insert("v", (2, date, None, None, 5, Json("x"), None, None, None))
        found = client.sql("SELECT d, m, doc FROM v WHERE id = ?", [2])
        self.assertEqual(found.rows, [(date, decimal.Decimal("5.00"), "x")])
        self.assertEqual([column.name for column in found.columns], ["d", "m", "doc"])
        self.assertEqual(found.dicts()[0]["doc"], "x")
        self.assertEqual(client.sql("SELECT count(*) FROM v").scalar(), 2)

    def test_queries(self) -> None:
        client = self.client
        client.sql("CREATE TABLE n (i i64 PRIMARY KEY)")
        self.assertEqual(client.sql("INSERT INTO n VALUES (1), (2), (3)").changed, 3)
        asked = {"table": "n", "order": ["i"], "limit": 2, "cursor": None, "total": True}
        page = client.query(asked)
        self.assertEqual((page.rows, page.total), ([(1,), (2,)], 3))
        last = client.query({**asked, "cursor": page.next})
        self.assertEqual((last.rows, last.next), ([(3,)], None))
        where = {"field": "i", "op": "gt", "value": 1}
        self.assertIn("scan", client.explain({"table": "n", "where": where}))
        self.assertEqual(self.code(client.query, {"table": "n", "wher": 1}), "invalid_request")
        self.assertEqual(self.code(client.sql, "SELEC 1"), "invalid_request")

    def test_streams(self) -> None:
        client = self.client
        client.sql("CREATE TABLE n (i i64 PRIMARY KEY, text text)")
        rows = ((i, "x" * 100) for i in range(50_000))
        self.assertEqual(client.load("n", rows), 50_000)
        with client.stream("SELECT i FROM n ORDER BY i") as stream:
            self.assertEqual([column.name for column in stream.columns], ["i"])
            self.assertEqual(sum(i for (i,) in stream), 49_999 * 25_000)
        with client.stream("SELECT i, text FROM n ORDER BY i") as stream:
            self.assertEqual(next(iter(stream))[0], 0)
            self.assertEqual(self.code(client.ping), "invalid_request")
        self.assertEqual(client.sql("SELECT count(*) FROM n").scalar(), 50_000)
        with self.assertRaises(EskerError):
            with client.stream("SELECT nothing FROM n"):
                pass
        client.ping()

    def test_loads(self) -> None:
        client = self.client
        client.sql("CREATE TABLE l (i i64 PRIMARY KEY, text text)")
        lines = ["i,text\n", *(f"{i},row {i}\n" for i in range(30_000))]
        self.assertEqual(client.load_text("l", "csv", lines), 30_000)
        again = [(i, "new") for i in range(29_999, 30_002)]
        self.assertEqual(self.code(client.load, "l", again), "already_exists")
        self.assertEqual(client.load("l", again, on_duplicate="skip"), 2)
        client.load("l", again, on_duplicate="replace")
        self.assertEqual(client.get("l", 29_999), (29_999, "new"))
        self.assertEqual(self.code(client.load, "l", [(1,)]), "invalid_request")
        wrong = ((i, i) for i in range(300_000))
        self.assertEqual(self.code(client.load, "l", wrong), "invalid_request")
        self.assertEqual(self.code(client.load, "nowhere", []), "not_found")

        def broken() -> Any:
            yield (77_777, "x")
            raise KeyError("the source broke")

        with self.assertRaises(KeyError):
            client.load("l", broken())
        self.assertFalse(client.exists("l", 77_777))

    def test_transactions(self) -> None:
        client = self.client
        client.sql("CREATE TABLE c (id i64 PRIMARY KEY, n i64)")
        client.insert("c", (1, 0))
        with client.transaction() as tx:
            tx.update("c", 1, n=1)
            self.assertEqual(tx.get("c", 1), (1, 1))
        with self.assertRaises(KeyError):
            with client.transaction() as tx:
                tx.update("c", 1, n=2)
                raise KeyError("no")
        self.assertEqual(client.get("c", 1), (1, 1))
        with Client(self.url) as other:
            tx = client.begin()
            tx.get("c", 1)
            tx.update("c", 1, n=5)
            other.update("c", 1, n=6)
            self.assertEqual(self.code(tx.commit), "conflict")
            self.assertFalse(client.in_transaction)

    def test_transactions_are_not_begun_behind_the_back_of_the_client(self) -> None:
        client = self.client
        for text in [
            "BEGIN",
            " begin transaction",
            "-- x\nStart Transaction",
            "/* a */ ;BEGIN;",
            "/* a /* b */ */ BEGIN",
            "COMMIT",
            "END",
            "rollback",
        ]:
            self.assertEqual(self.code(client.sql, text), "invalid_request", text)
            self.assertEqual(self.code(client.pipeline().sql, text), "invalid_request", text)
            with self.assertRaises(EskerError) as caught:
                with client.stream(text):
                    pass
            self.assertIn("use begin()", str(caught.exception))
        client.sql("CREATE TABLE beginning (endless i64 PRIMARY KEY)")
        with client.transaction() as tx:
            tx.sql("SAVEPOINT s")
            tx.sql("INSERT INTO beginning VALUES (1)")
            tx.sql("ROLLBACK TO s")
            tx.sql("INSERT INTO beginning VALUES (2)")
        self.assertEqual(client.sql("SELECT * FROM beginning").rows, [(2,)])

    def test_transact(self) -> None:
        self.client.sql("CREATE TABLE c (id i64 PRIMARY KEY, n i64)")
        self.client.insert("c", (1, 0))

        def add(tx: Transaction) -> int:
            row = tx.get("c", 1)
            assert row is not None
            tx.update("c", 1, n=row[1] + 1)
            return int(row[1])

        with Pool(self.url, size=3) as pool:

            def work() -> None:
                for _ in range(20):
                    pool.transact(add, attempts=1_000)

            threads = [threading.Thread(target=work) for _ in range(5)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(self.client.get("c", 1), (1, 100))

    def test_buckets(self) -> None:
        bucket = self.client.bucket("cache")
        bucket.put("page", "<html>")
        bucket.put_many({"a": b"1", b"b": "2"}, ttl=False)
        self.assertEqual(bucket.get(b"page"), b"<html>")
        self.assertEqual(bucket.get_many(["a", "z"]), [b"1", None])
        self.assertEqual(bucket.increment("n"), 1)
        self.assertEqual(bucket.increment("n", 41), 42)
        self.assertEqual(bucket.range("a", "c"), [(b"a", b"1"), (b"b", b"2")])
        self.assertEqual(bucket.range(prefix="p"), [(b"page", b"<html>")])
        self.assertEqual(bucket.range("a", "c", limit=1, reverse=True), [(b"b", b"2")])
        bucket.put("soon", "x", ttl=0.0001)
        deadline = time.monotonic() + 10
        while bucket.get("soon") is not None:
            self.assertLess(time.monotonic(), deadline)
        self.assertTrue(bucket.remove("a"))
        self.assertFalse(bucket.remove("a"))
        self.assertIn("cache", self.client.buckets())

    def test_pipelines(self) -> None:
        client = self.client
        client.sql("CREATE TABLE p (id i64 PRIMARY KEY, text text)")
        with client.pipeline() as pipeline:
            added = [pipeline.insert("p", (i, "x" * 1_000)) for i in range(2_000)]
            twice = pipeline.insert("p", (7, "y"))
            count = pipeline.sql("SELECT 1 + 1")
        self.assertEqual(len({pending.result() for pending in added}), 2_000)
        self.assertEqual(self.code(twice.result), "already_exists")
        self.assertEqual(count.result().scalar(), 2)
        with client.pipeline() as pipeline:
            rows = [pipeline.get("p", i) for i in range(2_000)]
        self.assertTrue(all(pending.result() == (i, "x" * 1_000) for i, pending in enumerate(rows)))
        later = client.pipeline().get("p", 1)
        self.assertEqual(self.code(later.result), "invalid_request")

    def test_writes_are_done_once_though_an_answer_is_lost(self) -> None:
        self.client.sql("CREATE TABLE c (id i64 PRIMARY KEY, n i64)")
        self.client.insert("c", (1, 0))
        count_up = "UPDATE c SET n = n + 1 WHERE id = 1"
        with Faulty(self.url) as faulty, Client(faulty.url) as client:
            client.ping()
            faulty.faults = 1
            self.assertEqual(self.code(client.sql, count_up), "connection")
        self.assertEqual(self.client.get("c", 1), (1, 1))
        with Faulty(self.url) as faulty, Pool(faulty.url, size=1, retry_writes=True) as pool:
            with pool.connection() as client:
                client.ping()
                for n in range(2, 6):
                    faulty.faults = 1
                    self.assertEqual(client.sql(count_up).changed, 1)
                    self.assertEqual(self.client.get("c", 1), (1, n))
                faulty.faults = 1
                client.insert("c", (2, 0))
                faulty.faults = 1
                self.assertTrue(client.delete("c", 2))
                faulty.faults = 1
                self.assertEqual(client.bucket("once").increment("n"), 1)
                self.append_once(faulty, client)
                with client.transaction() as tx:
                    tx.update("c", 1, n=7)
                self.assertEqual(client.get("c", 1), (1, 7))
        self.assertEqual(self.client.bucket("once").increment("n"), 2)
        self.client.sql("DROP TABLE c")

    def append_once(self, faulty: Faulty, client: Client) -> None:
        client.sql("CREATE TABLE once_e (t timestamp NOT NULL, n i64) WITH (stream = 't')")
        faulty.faults = 1
        first = client.append("once_e", {"t": "2026-01-02T03:04:05Z", "n": 1})
        faulty.faults = 1
        told = client.append_many("once_e", [{"t": "2026-01-02T03:04:05Z"}] * 2)
        self.assertEqual((told.accepted, told.is_duplicate), (2, False))
        faulty.faults = 1
        columns = {"t": ["2026-01-02T03:04:05Z"] * 3}
        told = client.append_columns("once_e", columns, producer=("p", 1, 0))
        self.assertEqual((told.accepted, told.is_duplicate), (3, True))
        counted = client.sql("SELECT count(*), min(id(once_e)) FROM once_e").rows
        self.assertEqual(counted, [(6, first)])
        client.sql("DROP TABLE once_e")

    def test_loads_are_done_once_though_an_answer_is_lost(self) -> None:
        self.client.sql("CREATE TABLE l (n i64)")
        rows = [(n,) for n in range(1_000)]
        with Faulty(self.url) as faulty, Client(faulty.url, retry_writes=True) as client:
            client.ping()
            faulty.faults = 1
            self.assertEqual(client.load("l", rows), 1_000)
            faulty.faults = 1
            self.assertEqual(client.load_text("l", "csv", ["n\n", "1\n"]), 1)
            # What can be gone through once alone is not sent again, but by whoever has the key.
            faulty.faults = 1
            lost = self.code(lambda: client.load("l", iter(rows), key="mine"))
            self.assertEqual(lost, "connection")
            self.assertEqual(client.load("l", iter(rows), key="mine"), 1_000)
            self.assertEqual(self.code(lambda: client.load("l", [(5,)], key="mine")), "invalid_request")
            self.assertEqual(client.load("l", rows, on_duplicate="skip"), 1_000)
        self.assertEqual(self.client.sql("SELECT count(*) FROM l").scalar(), 3_001)
        self.client.sql("DROP TABLE l")

    def test_unix_sockets(self) -> None:
        assert self.server is not None
        with Client(f"unix:{self.server.unix_path}") as client:
            client.ping()

    def test_what_is_large_goes_both_ways(self) -> None:
        client = self.client
        client.sql("CREATE TABLE big (id i64 PRIMARY KEY, text text)")
        text = "ä" * 4_000_000
        client.insert("big", (1, text))
        self.assertEqual(client.get("big", 1), (1, text))


class Failures(unittest.TestCase):
    """Servers that are not there, hang up, or say nothing."""

    def test_nobody(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with self.assertRaises(EskerError) as caught:
            Client(f"127.0.0.1:{port}").ping()
        self.assertEqual(caught.exception.code, "connection")

    def served(self, answers: List[bytes]) -> Tuple[str, List[bytes]]:
        """A server that reads, gives each connection some bytes, and hangs up."""
        listener = socket.create_server(("127.0.0.1", 0))
        seen: List[bytes] = []

        def serve() -> None:
            for answer in answers:
                connection, _ = listener.accept()
                with connection:
                    seen.append(connection.recv(65_536))
                    connection.sendall(answer)
            listener.close()

        thread = threading.Thread(target=serve)
        thread.start()
        self.addCleanup(thread.join)
        return f"127.0.0.1:{listener.getsockname()[1]}", seen

    def test_reads_are_asked_again_and_writes_are_not(self) -> None:
        done = b"ESKR\x01\x00" + bytes.fromhex("07 00 00 00 02 00 00 00 80 00 c0")
        url, seen = self.served([b"", done, b""])
        client = Client(url)
        client.ping()
        self.assertEqual(len(seen), 2)
        client.close()
        with self.assertRaises(EskerError) as caught:
            client.insert("t", (1,))
        self.assertEqual(caught.exception.code, "connection")
        self.assertEqual(len(seen), 3)

    def test_nonsense_and_silence(self) -> None:
        url, _ = self.served([b"HTTP/1.1 200 OK\r\n\r\n"] * 2)
        with self.assertRaises(EskerError) as caught:
            Client(url).ping()
        self.assertIn("expected a server", str(caught.exception))
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        client = Client(f"127.0.0.1:{listener.getsockname()[1]}", timeout=0.2)
        with self.assertRaises(EskerError) as caught:
            client.insert("t", (1,))
        self.assertIn("no answer within 0.2 s", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
