"""Rows of answers: by place and by name, as tuples or dicts, and answers as tables."""

from __future__ import annotations

import asyncio
import copy
import pickle
from typing import Any, List

from esker import AsyncClient, AsyncPool, Client, EskerError, Pool, Row
from esker._row import row_class
from esker._show import table

from .served import ServedCase


class Rows(ServedCase):
    def setUp(self) -> None:
        self.client = Client(self.url)
        self.addCleanup(self.client.close)
        self.client.sql("DROP TABLE IF EXISTS t")
        self.client.sql('CREATE TABLE t (id i64 PRIMARY KEY, name text, n i64, "index" text)')
        self.client.insert_many("t", [(i, f"r{i}", None, "x") for i in range(50)])

    def test_by_place_and_by_name(self) -> None:
        found = self.client.sql(
            'SELECT id, name, n, "index", count(*) FROM t GROUP BY id, name, n, "index" ORDER BY id'
        )
        row = found[1]
        self.assertIsInstance(row, Row)
        self.assertEqual(row, (1, "r1", None, "x", 1))
        self.assertEqual(hash(row), hash((1, "r1", None, "x", 1)))
        self.assertEqual((row[0], row[-1], row[1:3]), (1, 1, ("r1", None)))
        self.assertEqual((row["name"], row.name, row.index, row["count(*)"]), ("r1", "r1", "x", 1))
        self.assertEqual(
            row._asdict(), {"id": 1, "name": "r1", "n": None, "index": "x", "count(*)": 1}
        )
        self.assertEqual(row._fields[:2], ("id", "name"))
        self.assertEqual(repr(row), "Row(id=1, name='r1', n=None, index='x', count(*)=1)")
        with self.assertRaises(KeyError):
            row["nmae"]
        with self.assertRaises(AttributeError):
            row.nmae
        id_, name, *_ = row
        self.assertEqual((id_, name), (1, "r1"))
        for other in (pickle.loads(pickle.dumps(row)), copy.deepcopy(row), copy.copy(row)):
            self.assertEqual(other, row)
            self.assertEqual(other.name, "r1")

    def test_rows_by_key_have_names(self) -> None:
        client = self.client
        row = client.get("t", 3)
        assert row is not None
        self.assertEqual((row, row.name), ((3, "r3", None, "x"), "r3"))
        many = client.get_many("t", [1, 99])
        self.assertEqual((many[0].name if many[0] else None, many[1]), ("r1", None))
        with client.pipeline() as pipeline:
            later = pipeline.get("t", 4)
        self.assertEqual(later.result().name, "r4")  # type: ignore[union-attr]
        with client.transaction() as tx:
            self.assertEqual(tx.get("t", 4).name, "r4")  # type: ignore[union-attr]
        with Pool(self.url) as pool:
            self.assertEqual(pool.get("t", 5).name, "r5")  # type: ignore[union-attr]

        async def run() -> None:
            async with AsyncClient(self.url) as other:
                found = await asyncio.gather(*(other.get("t", i) for i in range(50)))
                self.assertEqual([row.name for row in found if row], [f"r{i}" for i in range(50)])
            async with AsyncPool(self.url, rows="dict") as pool:
                one: Any = await pool.get("t", 1)
                self.assertEqual(one["name"], "r1")

        asyncio.run(asyncio.wait_for(run(), 60))

    def test_other_rows_on_request(self) -> None:
        client = self.client
        text = "SELECT id, name FROM t ORDER BY id LIMIT 2"
        dicts = client.sql(text, rows="dict")
        wanted = [{"id": 0, "name": "r0"}, {"id": 1, "name": "r1"}]
        self.assertEqual(dicts.rows, wanted)
        self.assertEqual((dicts.dicts(), dicts.column("name")), (wanted, ["r0", "r1"]))
        self.assertEqual((dicts.tuples(), dicts.scalar()), ([(0, "r0"), (1, "r1")], 0))
        plain = client.sql(text, rows="tuple")
        self.assertEqual([type(row) for row in plain], [tuple, tuple])
        self.assertEqual([row.name for row in plain.named()], ["r0", "r1"])
        self.assertEqual(client.query({"table": "t", "limit": 1}, rows="dict")[0]["id"], 0)
        self.assertEqual(client.get("t", 1, rows="dict")["name"], "r1")  # type: ignore[index]
        self.assertEqual(client.get_many("t", [1], rows="tuple"), [(1, "r1", None, "x")])
        with client.stream(text, rows="dict") as stream:
            self.assertEqual(list(stream), wanted)
        with Client(self.url, rows="dict") as other:
            self.assertEqual(other.get("t", 1), {"id": 1, "name": "r1", "n": None, "index": "x"})
            alike = "SELECT a.id, b.id FROM t a JOIN t b ON a.id = b.id"
            with self.assertRaises(EskerError) as caught:
                other.sql(alike)
            self.assertIn("rename one with AS", caught.exception.message)
            self.assertEqual(len(other.sql(alike, rows="tuple")), 50)
            with self.assertRaises(EskerError):
                with other.stream(alike) as stream:
                    list(stream)
            other.ping()
            self.assertTrue(other.exists("t", 1))
        with Client(self.url, rows="tuple") as other:
            self.assertIs(type(other.get("t", 1)), tuple)
        for rows in ("list", "Row"):
            with self.assertRaises(EskerError):
                Client(self.url, rows=rows)
        twice = client.sql("SELECT a.id, b.id FROM t a JOIN t b ON a.id = b.id")[0]
        with self.assertRaises(EskerError):
            twice["id"]
        self.assertEqual((twice[0], twice[1]), (twice[1], twice[0]))

    def test_answers_as_tables(self) -> None:
        found = self.client.sql("SELECT id, name, n FROM t ORDER BY id")
        lines = repr(found).splitlines()
        self.assertEqual(
            [line.rstrip() for line in lines[:3]],
            ["id | name |    n", "---+------+-----", " 0 | r0   | NULL"],
        )
        self.assertEqual(lines[-2:], ["49 | r49  | NULL", "50 rows"])
        self.assertEqual(len(lines), 24)
        html = found._repr_html_()
        self.assertEqual((html.count("<td"), html.count("50 rows")), (21 * 3, 1))
        self.client.insert("t", (100, "<b>\n" + "y" * 500, None, None))
        html = self.client.sql("SELECT name FROM t WHERE id = 100")._repr_html_()
        self.assertIn("&lt;b&gt;\\ny", html)
        self.assertEqual(
            repr(self.client.sql("UPDATE t SET n = 1 WHERE id < 2")), "<Result: 2 rows changed>"
        )
        self.assertIn("dropped table", repr(self.client.sql("DROP TABLE t")))
        none: List[Any] = []
        self.assertEqual(table(["a"], ["i64"], none, 80), "a\n-\n0 rows")

    def test_tables_are_cut_to_a_width(self) -> None:
        names = [f"column{i}" for i in range(30)]
        rows = [tuple("v" * 60 for _ in names)] * 3
        for width in (10, 40, 80, 200):
            text = table(names, ["text"] * 30, rows, width)
            self.assertLessEqual(max(map(len, text.splitlines()[:-1])), max(width, 44))
            self.assertIn("3 rows", text)
        self.assertIn("more columns", text)

    def test_row_classes_are_kept(self) -> None:
        self.assertIs(row_class(("a", "b")), row_class(("a", "b")))
