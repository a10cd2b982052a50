"""What is asked: rows and parameters by name, and what is refused before anything is sent."""

from __future__ import annotations

import asyncio
import datetime
import decimal
import fractions
import inspect
from typing import Any, Dict, List, Tuple

from esker import AsyncClient, AsyncPool, Client, EskerError, Pool, Result
from esker._bucket_request import bucket_put

from .served import ServedCase

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]

TABLE = (
    "CREATE TABLE t (id i64 PRIMARY KEY, name text NOT NULL DEFAULT 'none', n i64 DEFAULT 7, "
    "note text)"
)


class Arguments(ServedCase):
    def setUp(self) -> None:
        self.client = Client(self.url)
        self.addCleanup(self.client.close)
        for table in self.client.tables():
            self.client.sql(f"DROP TABLE {table}")
        self.client.sql(TABLE)

    def rows(self) -> List[Any]:
        return self.client.sql("SELECT id, name, n, note FROM t ORDER BY id").rows

    def error(self, body: Any, *arguments: Any, **more: Any) -> EskerError:
        with self.assertRaises(EskerError) as caught:
            body(*arguments, **more)
        return caught.exception

    def test_rows_by_name_get_defaults(self) -> None:
        client = self.client
        client.insert("t", {"id": 1})
        client.insert("t", {"note": "x", "id": 2, "n": None})
        client.insert("t", {"id": 2, "name": "b"}, replace=True)
        self.assertEqual(client.insert_many("t", [{"id": 3, "n": 1}, {"name": "d", "id": 4}]), 2)
        with client.pipeline() as pipeline:
            pending = pipeline.insert("t", {"id": 5, "note": "p"})
        pending.result()
        with client.transaction() as tx:
            tx.insert("t", {"id": 6})
        with Client(self.url, retry_writes=True) as retrying:
            retrying.insert("t", {"id": 7})
        self.assertEqual(
            self.rows(),
            [
                (1, "none", 7, None),
                (2, "b", 7, None),
                (3, "none", 1, None),
                (4, "d", 7, None),
                (5, "none", 7, "p"),
                (6, "none", 7, None),
                (7, "none", 7, None),
            ],
        )

    def test_rows_by_name_that_do_not_fit_are_refused_whole(self) -> None:
        client = self.client
        unknown = self.error(client.insert_many, "t", [{"id": 1}, {"id": 2, "nmae": "x"}])
        self.assertEqual(unknown.code, "invalid_request")
        self.assertIn('row 2: unknown field "nmae"; did you mean "name"?', unknown.message)
        wrong = self.error(client.insert, "t", {"id": 1, "n": "x"})
        self.assertIn('field "n"', wrong.message)
        null = self.error(client.insert, "t", {"id": 1, "name": None})
        self.assertIn("must not be null", null.message)
        twice = self.error(client.insert, "t", {"id": 1, "ID": 2})
        self.assertEqual(twice.code, "invalid_request")
        self.assertEqual(self.rows(), [])
        with self.assertRaises(TypeError):
            client.insert_many("t", [{"id": 1}, (2, "b", 1, None)])

    def test_loads_by_name_get_defaults(self) -> None:
        client = self.client
        self.assertEqual(client.load("t", [{"id": 1}, (2, "b", 1, None), {"n": 3, "id": 3}]), 3)
        self.assertEqual(client.load("t", [{"id": 4}, {"id": 5, "n": None}], key="once"), 2)
        self.assertEqual(client.load_text("t", "ndjson", '{"id": 6}\n', key="text"), 1)
        self.assertEqual(
            self.rows(),
            [
                (1, "none", 7, None),
                (2, "b", 1, None),
                (3, "none", 3, None),
                (4, "none", 7, None),
                (5, "none", None, None),
                (6, "none", 7, None),
            ],
        )
        unknown = self.error(client.load, "t", [{"id": 8}, {"id": 9, "nmae": "x"}])
        self.assertIn('row 2: unknown field "nmae"', unknown.message)
        self.assertEqual(len(self.rows()), 6)

    def test_parameters_by_name(self) -> None:
        client = self.client
        client.insert_many("t", [{"id": i, "name": f"r{i}"} for i in range(5)])
        text = "SELECT id, ':no' FROM t WHERE id >= :least AND id < :most AND :least > 0 -- :no"
        found = client.sql(text, {"most": 4, "least": 2})
        self.assertEqual(found.rows, [(2, ":no"), (3, ":no")])
        with client.stream("SELECT id FROM t WHERE name = :name", {"name": "r3"}) as rows:
            self.assertEqual(list(rows), [(3,)])
        client.sql("UPDATE t SET note = :note WHERE id = :id", {"id": 1, "note": "x'y"})
        self.assertEqual(client.get("t", 1), (1, "r1", 7, "x'y"))
        for parameters, message in [
            ({"least": 1}, "parameter :most has no value"),
            ({"least": 1, "most": 2, "mots": 3}, "unknown parameter :mots"),
        ]:
            self.assertIn(message, self.error(client.sql, text, parameters).message)
        by_place: Dict[str, Any] = {"x": 1}
        self.assertEqual(self.error(client.sql, "SELECT ?", by_place).code, "invalid_request")

    def test_wrong_types_are_refused_before_anything_is_sent(self) -> None:
        client: Any = self.client
        client.insert("t", {"id": 1})
        bucket = client.bucket("b")
        cases: List[Tuple[Any, ...]] = [
            *[(client.insert, "t", row) for row in _NO_ROWS],
            *[(client.insert_many, "t", [row]) for row in _NO_ROWS],
            *[(client.insert_many, "t", rows) for rows in ("ab", b"ab", {"id": 1}, {(1, 2)}, 5)],
            *[(client.load, "t", rows) for rows in ("ab", b"ab", {"id": 1}, {(1, 2)}, 5)],
            *[(client.sql, "SELECT ?", values) for values in (*_NO_ROWS, None)],
            *[(client.get, "t", key) for key in ({1}, {"id": 1}, iter([1]), frozenset([1]))],
            *[(client.get_many, "t", keys) for keys in ("ab", b"ab", {1, 2}, {"id": 1}, 1)],
            *[(client.delete_many, "t", keys) for keys in ("ab", {1, 2}, {"id": 1}, 1)],
            *[(client.exists_many, "t", [key]) for key in ({1}, {"id": 1})],
            *[(client.update, "t", 1, fields) for fields in ("ab", [("n", 1)], {1: 2})],
            *[(client.update_many, "t", updates) for updates in _NO_UPDATES],
            (client.insert, "t", {1: 2}),
            (client.insert, "t", (1, "a", 1, {1, 2})),
            (client.insert, "t", (1, "a", 1, (i for i in [1]))),
            (client.get, 5, 1),
            (client.sql, b"SELECT 1"),
            (client.sql, "SELECT ?", [{1: 2}]),
            (client.query, ["t"]),
            (client.query, {"table": "t", "where": {"value": {1, 2}}}),
            (bucket.put, "k", 5),
            (bucket.put, 5, "v"),
            (bucket.put_many, [("k", "v")]),
            (bucket.get_many, "ab"),
            (bucket.increment, "k", True),
            (bucket.increment, "k", 1.0),
        ]
        for body, *arguments in cases:
            with self.assertRaises(TypeError, msg=f"{body} {arguments}"):
                body(*arguments)
        named: List[Tuple[Any, Dict[str, Any]]] = [
            (client.insert, {"table": "t", "row": (1,), "replace": 1}),
            (bucket.put, {"key": "k", "value": "v", "ttl": True}),
            (bucket.put, {"key": "k", "value": "v", "ttl": "1"}),
            (bucket.range, {"limit": True}),
            (Client, {"url": self.url, "timeout": True}),
            (Client, {"url": self.url, "retry_writes": 1}),
        ]
        for body, more in named:
            with self.assertRaises(TypeError, msg=f"{body} {more}"):
                body(**more)
        self.assertEqual(len(self.rows()), 1)
        self.assertEqual(client.buckets(), [])

    def test_seconds_are_real_numbers_of_any_type(self) -> None:
        kinds: List[Any] = [int, float, fractions.Fraction]
        if numpy is not None:
            kinds += [numpy.int64, numpy.uint8, numpy.float32, numpy.float64]
        for kind in kinds:
            with Client(self.url, timeout=kind(5)) as client:
                client.ping()
            sent = [bucket_put("b", "k", "v", ttl=ttl).payload for ttl in (kind(60), 60)]
            self.assertEqual(*sent)
            with Pool(self.url, size=1, timeout=kind(5), wait_timeout=kind(0)) as pool:
                with pool.connection() as held:
                    held.ping()
                    self.assertEqual(self.error(pool.ping).code, "timeout")

    def test_wrong_values_are_refused_before_anything_is_sent(self) -> None:
        client: Any = self.client
        bucket = client.bucket("b")
        cases: List[Tuple[Any, ...]] = [
            (client.insert, "t", (1, "a", 10**38, None)),
            (client.insert, "t", (1, "a", decimal.Decimal("Infinity"), None)),
            (client.insert, "t", (1, "\udc80", 1, None)),
            (client.sql, "SELECT ?", [datetime.datetime(2024, 2, 29)]),
            (client.query, {"table": "t", "limit": float("nan")}),
            (bucket.increment, "k", 1 << 63),
            (lambda: bucket.put("k", "v", ttl=float("nan")),),
            (lambda: bucket.put("k", "v", ttl=-1),),
            (lambda: bucket.put("k", "v", ttl=0),),
            (lambda: bucket.put("k", "v", ttl=10**30),),
            (lambda: bucket.range(limit=-1),),
            (lambda: client.transact(print, attempts=0),),
        ]
        for body, *arguments in cases:
            self.assertEqual(self.error(body, *arguments).code, "invalid_request")
        self.assertEqual((self.rows(), client.buckets()), ([], []))

    def test_the_client_for_asyncio_asks_the_same(self) -> None:
        async def run() -> None:
            async with AsyncClient(self.url) as client:
                await client.insert("t", {"id": 1})
                await client.insert_many("t", [{"id": 2, "n": 1}])
                await client.load("t", [{"id": 3}])
                found = await client.sql("SELECT n FROM t WHERE id = :id", {"id": 2})
                self.assertEqual(found[0], (1,))
                loose: Any = client
                for row in _NO_ROWS:
                    with self.assertRaises(TypeError):
                        await loose.insert("t", row)

        asyncio.run(asyncio.wait_for(run(), 60))
        self.assertEqual(self.rows()[2], (3, "none", 7, None))

    def test_answers(self) -> None:
        client = self.client
        client.insert_many("t", [{"id": i, "name": f"r{i}"} for i in range(3)])
        found = client.sql("SELECT id, name FROM t ORDER BY id")
        self.assertEqual((found[0], found[-1], found.first()), ((0, "r0"), (2, "r2"), (0, "r0")))
        self.assertEqual(found[1:], [(1, "r1"), (2, "r2")])
        self.assertEqual(found.column("name"), ["r0", "r1", "r2"])
        self.assertEqual([row.name for row in found.named()], ["r0", "r1", "r2"])
        self.assertEqual(found.dicts()[1], {"id": 1, "name": "r1"})
        with self.assertRaises(KeyError):
            found.column("nmae")
        none = client.sql("SELECT id FROM t WHERE id > 5")
        self.assertEqual((none.first(), none.scalar(), list(none)), (None, None, []))
        with self.assertRaises(IndexError):
            none[0]
        alike = client.sql("SELECT a.id, b.id FROM t a JOIN t b ON a.id = b.id")
        for body in (Result.dicts, Result.named, lambda result: result.column("id")):
            self.assertIn("rename one with AS", self.error(body, alike).message)


    def test_every_way_of_asking_takes_dicts_and_refuses_texts(self) -> None:
        done: List[str] = []

        def use(asker: Any, number: int) -> None:
            """What a blocking client, and a pipeline, is asked."""
            asker.insert("t", {"id": number, "name": "x"})
            asker.insert_many("t", [{"id": number + 1, "note": "y"}])
            asker.sql("UPDATE t SET note = :note WHERE id = :id", {"id": number, "note": "z"})
            self.refuse(asker)
            done.append(type(asker).__name__)

        async def use_async(asker: Any, number: int) -> None:
            await asker.insert("t", {"id": number, "name": "x"})
            await asker.insert_many("t", [{"id": number + 1, "note": "y"}])
            await asker.sql(
                "UPDATE t SET note = :note WHERE id = :id", {"id": number, "note": "z"}
            )
            for body, arguments, message in _WRONG:
                with self.assertRaises(TypeError) as caught:
                    await getattr(asker, body)(*arguments)
                self.assertIn(message, str(caught.exception))
            done.append(type(asker).__name__)

        async def run() -> None:
            async with AsyncClient(self.url) as client, AsyncPool(self.url) as pool:
                await use_async(client, 50)
                await use_async(pool, 60)
                async with client.transaction() as tx:
                    await use_async(tx, 70)
                async with client.pipeline() as pipeline:
                    use(pipeline, 80)

        use(self.client, 10)
        with self.client.transaction() as tx:
            use(tx, 20)
        with self.client.pipeline() as pipeline:
            use(pipeline, 30)
        with Pool(self.url) as pool:
            use(pool, 40)
        asyncio.run(asyncio.wait_for(run(), 60))
        self.assertEqual(len(done), 8)
        first = [(number, "x", 7, "z") for number in range(10, 90, 10)]
        second = [(number, "none", 7, "y") for number in range(11, 90, 10)]
        self.assertEqual(self.rows(), sorted(first + second))

    def test_methods_show_their_parameters(self) -> None:
        shown = str(inspect.signature(Client.update_many))
        self.assertTrue(shown.startswith("(table: 'str', updates:"), shown)
        self.assertIn("nan_as_null", shown)

    def refuse(self, asker: Any) -> None:
        for body, arguments, message in _WRONG:
            with self.assertRaises(TypeError, msg=f"{body} {arguments}") as caught:
                getattr(asker, body)(*arguments)
            self.assertIn(message, str(caught.exception))


_WRONG: Tuple[Tuple[str, Tuple[Any, ...], str], ...] = (
    ("insert", ("t", "ab"), "row: expected a tuple or a list with a value for every field, or a"),
    ("insert_many", ("t", "ab"), "rows: expected a list, or an iterable like one, found str"),
    ("insert_many", ("t", {"id": 1}), "found dict: for one of them, a list with it, [row]"),
    ("insert_many", ("t", ["ab"]), "row: expected a tuple"),
    ("sql", ("SELECT ?", "ab"), "parameters: expected a list for ?, or a dict for :name, found str"),
    ("get_many", ("t", "ab"), "keys: expected a list, or an iterable like one, found str"),
    ("get", ("t", {"id": 1}), "key: expected a value or a tuple of values, found dict"),
    ("update", ("t", 1, "ab"), "fields: expected a dict, found str"),
    ("update_many", ("t", {1: {"n": 2}}), "updates: expected a list"),
    ("update_many", ("t", ["ab"]), "updates: expected pairs of a key and a dict"),
)
_NO_ROWS: Tuple[Any, ...] = ("ab", b"ab", bytearray(b"ab"), {1, 2}, frozenset([1]), iter([1]), 5)
_NO_UPDATES: Tuple[Any, ...] = ({1: {}}, ["ab"], [(1, "ab")])
