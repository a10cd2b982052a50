"""Events of streams: added as rows and by column, and told as they arrive."""

from __future__ import annotations

import asyncio
import datetime
import decimal
import threading
import time
import unittest
import uuid
from typing import Any, List

from esker import AsyncClient, Client, EskerError, Pool

from .served import Served, ServedCase

UTC = datetime.timezone.utc
T = datetime.datetime(2026, 1, 2, 3, 4, 5, 123_456, tzinfo=UTC)
TABLE = (
    "CREATE TABLE {} (t timestamp NOT NULL, n u32, what text DEFAULT 'none', day date, "
    "price decimal(9,2), tag uuid, rate f64, flag bool, tags text[], raw bytes, extra json) "
    "WITH (stream = 't', rest = 'extra')"
)


class Events(ServedCase):
    def setUp(self) -> None:
        self.client = Client(self.url)
        self.addCleanup(self.client.close)
        self.name = f"e{time.monotonic_ns()}"
        self.client.sql(TABLE.format(self.name))

    def rows(self) -> List[Any]:
        return self.client.sql(f"SELECT * FROM {self.name}").rows

    def test_one_event(self) -> None:
        found = self.client.append(self.name, {"t": T, "n": 1, "gate": {"a": [1]}})
        self.assertEqual(found, "01KDYAK3830000000000000001")
        text = self.client.append(self.name, {"t": "2026-01-02T03:04:05Z"}, durability="async")
        self.assertEqual(text[-1], "2")
        with self.assertRaises(EskerError) as caught:
            self.client.append(self.name, {"t": T, "n": -1})
        self.assertEqual(caught.exception.code, "invalid_request")
        first, second = self.rows()
        self.assertEqual((first.n, first.what, first.extra), (1, "none", {"gate": {"a": [1]}}))
        self.assertEqual(second.t, T.replace(microsecond=0))

    def test_many_events(self) -> None:
        rows = [{"t": T, "n": n} for n in range(20)]
        told = self.client.append_many(self.name, [*rows, {"n": 1}])
        self.assertEqual((told.accepted, told.rejected, len(told.ids)), (20, 1, 21))
        self.assertEqual(told.ids[0], "01KDYAK3830000000000000001")
        self.assertIsNone(told.ids[20])
        self.assertEqual((told.errors[0].item, told.errors[0].is_retryable), (21, False))
        self.assertEqual(told.errors[0].error.code, "constraint_violated")
        with self.assertRaises(EskerError):
            self.client.append_many(self.name, [{"t": T}, {"n": 1}], each=False)
        told = self.client.append_many(self.name, [(7, T)], fields=["n", "t"], minimal=True)
        self.assertEqual(len(told.ids), 2)
        self.assertEqual(len(self.rows()), 21)
        with self.client.pipeline() as pipeline:
            pending = [pipeline.append(self.name, {"t": T, "n": n}) for n in range(50)]
        self.assertEqual(len({one.result() for one in pending}), 50)
        for wrong in (5, "ab", {"a": 1}):
            with self.assertRaises(TypeError):
                self.client.append_many(self.name, wrong)  # type: ignore[arg-type]

    def test_a_producer(self) -> None:
        rows = [{"t": T}, {"t": T}]
        first = self.client.append_many(self.name, rows, producer=("p", 1, 0))
        again = self.client.append_many(self.name, rows, producer=("p", 1, 0))
        self.assertTrue(again.is_duplicate)
        self.assertEqual(list(again.ids), list(first.ids))
        with self.assertRaises(EskerError) as caught:
            self.client.append_many(self.name, rows, producer=("p", 1, 9))
        self.assertEqual(caught.exception.code, "sequence_gap")
        self.assertEqual(len(self.rows()), 2)

    def test_columns(self) -> None:
        key = uuid.UUID("67e55044-10b1-426f-9247-bb680e5fe0c8")
        told = self.client.append_columns(
            self.name,
            {
                "t": [T, "2026-01-02 03:04:06", T],
                "n": [1, None, 3],
                "what": ["ä", None, ""],
                "day": [datetime.date(2024, 2, 29), "2024-03-01", None],
                "price": [decimal.Decimal("1.5"), None, decimal.Decimal("-2.25")],
                "tag": [key, None, str(key)],
                "rate": [1.5, 2, None],
                "flag": [True, False, None],
                "tags": [["a", "b"], None, []],
                "raw": [b"\x00", b"", None],
                "extra": [{"a": 1}, [1], None],
            },
        )
        self.assertEqual((told.accepted, told.rejected), (3, 0))
        first, second, third = self.rows()
        self.assertEqual(first[1:6], (1, "ä", datetime.date(2024, 2, 29), decimal.Decimal("1.50"), key))
        self.assertEqual(first[6:], (1.5, True, ["a", "b"], b"\x00", {"a": 1}))
        self.assertEqual(second[1:4], (None, None, datetime.date(2024, 3, 1)))
        self.assertEqual((second.rate, second.tags, second.extra), (2.0, None, [1]))
        self.assertEqual((third.what, third.tag, third.tags), ("", key, []))
        many = 1_000
        told = self.client.append_columns(
            self.name,
            {"t": [T] * many, "n": range(many), "what": [f"w{n % 7}" for n in range(many)]},
            minimal=True,
        )
        self.assertEqual((told.accepted, len(told.ids)), (many, 2))
        count = self.client.sql(f"SELECT count(*) FROM {self.name} WHERE what = 'w3'").scalar()
        self.assertEqual(count, 143)
        self.assertEqual(self.client.append_columns(self.name, {"t": []}).accepted, 0)

    def test_columns_that_are_none(self) -> None:
        wrong: List[Any] = [
            ({"t": [T], "n": [1, 2]}, EskerError, "equally many"),
            ({"t": [T], "n": ["x"]}, EskerError, "row 1"),
            ({"t": [T], "n": [1, "x"][:1], "m": [1]}, EskerError, "m"),
            ({"t": [T, 5]}, TypeError, "one type"),
            ({"t": [T.replace(tzinfo=None)]}, EskerError, "zone"),
            ({"t": [T], "n": [-5]}, EskerError, "row 1"),
            ([("t", [T])], TypeError, "dict"),
        ]
        for columns, kind, text in wrong:
            with self.subTest(text):
                with self.assertRaises(kind) as caught:
                    self.client.append_columns(self.name, columns)
                self.assertIn(text, str(caught.exception))
        self.assertEqual(self.rows(), [])

    def test_pools_and_tasks(self) -> None:
        with Pool(self.url, size=2) as pool:
            self.assertEqual(pool.append_many(self.name, [{"t": T}]).accepted, 1)

        async def main() -> None:
            async with AsyncClient(self.url) as client:
                asked = [client.append(self.name, {"t": T, "n": n}) for n in range(20)]
                self.assertEqual(len(set(await asyncio.gather(*asked))), 20)
                told = await client.append_columns(self.name, {"t": [T]})
                self.assertEqual(told.accepted, 1)

        asyncio.run(main())
        self.assertEqual(len(self.rows()), 22)

    def test_a_tail(self) -> None:
        self.client.append_many(self.name, [{"t": T, "n": n} for n in range(3_000)])
        with self.client.tail(self.name, after="start", where="n >= 10") as tail:
            found = [next(tail) for _ in range(2_990)]
            self.assertEqual([event.n for event in found], list(range(10, 3_000)))
            self.assertEqual(tail.position, 3_000)
            # The client goes on beside it.
            self.client.append(self.name, {"t": T, "n": 3_000})
            self.assertEqual(next(tail).n, 3_000)
        self.assertEqual(list(tail), [])
        where = {"field": "n", "op": "lt", "value": 2}
        with self.client.tail(self.name, after=1, where=where) as tail:
            event = next(tail)
            self.assertEqual((event.n, event.id), (1, "01KDYAK3830000000000000002"))
        with self.client.tail(self.name, after=event.id) as tail:
            self.assertEqual(next(tail).n, 2)
        for wrong in ("soon", 9_999):
            with self.assertRaises(EskerError):
                self.client.tail(self.name, after=wrong)

    def test_a_tail_that_is_closed_beside(self) -> None:
        tail = self.client.tail(self.name)
        closing = threading.Timer(0.2, tail.close)
        closing.start()
        self.assertEqual(list(tail), [])
        closing.join()

    def test_a_gap(self) -> None:
        self.client.append_many(self.name, [{"t": T, "n": n} for n in range(5)])
        self.client.sql(f"TRUNCATE {self.name}")
        self.client.append(self.name, {"t": T, "n": 5})
        gaps: List[Any] = []
        with self.client.tail(
            self.name, after=0, on_gap=lambda first, last: gaps.append((first, last))
        ) as tail:
            self.assertEqual(next(tail).n, 5)
        self.assertEqual(len(gaps), 1)
        with self.client.tail(self.name, after="start") as tail:
            self.assertEqual(next(tail).n, 5, "it begins with the first that is there")
        with self.client.tail(self.name, after=0) as tail:
            with self.assertRaises(EskerError) as caught:
                next(tail)
            self.assertEqual(caught.exception.code, "cursor_gone")
            self.assertEqual(next(tail).n, 5)


class Resumes(unittest.TestCase):
    def test_a_tail_goes_on_after_a_restart(self) -> None:
        server = Served("--trust-local", is_stored=True)
        self.addCleanup(server.stop)
        with Client(server.url) as client:
            client.sql(TABLE.format("events"))
            client.append_many("events", [{"t": T, "n": n} for n in range(10)])
            found: List[int] = []
            with client.tail("events", after="start") as tail:
                for event in tail:
                    found.append(event.n)
                    if event.n in (9, 19, 29):
                        server.end(is_killed=event.n == 19)
                        server.start()
                        rows = [{"t": T, "n": n} for n in range(event.n + 1, event.n + 11)]
                        client.append_many("events", rows)
                    if event.n == 39:
                        break
            self.assertEqual(found, list(range(40)))
