"""Values on their way in and out: of Python, of numpy and of pandas, and times as ISO texts."""

from __future__ import annotations

import asyncio
import datetime
import decimal
import enum
import ipaddress
import random
import unittest
import uuid
from typing import Any, Dict, List, Tuple

from esker import AsyncClient, Client, Days, EskerError, Json, Microseconds, Pool
from esker import _load as loads
from esker import _rows as rows
from esker._batch import RowPacker
from esker._codec import PLAIN, Codec
from esker._fields import parse
from esker._messagepack import pack, pack_array, pack_array_head, packers
from esker._unpack import unpack, unpack_from

from .served import ServedCase

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]
try:
    import pandas
except ImportError:
    pandas = None

UTC = datetime.timezone.utc
NAN = float("nan")
FIELDS = {
    "id": "i64 PRIMARY KEY",
    "n": "i64",
    "small": "u8",
    "f": "f64",
    "b": "bool",
    "note": "text",
    "day": "date",
    "at": "timestamp",
    "clock": "time",
    "price": "decimal(9,2)",
    "tag": "uuid",
    "four": "ipv4",
    "six": "ipv6",
    "doc": "json",
    "raw": "bytes",
}
TABLE = f"CREATE TABLE v ({', '.join(f'{name} {kind}' for name, kind in FIELDS.items())})"


def read(data: bytes, kinds: Tuple[str, ...]) -> List[Any]:
    """Rows as tuples."""
    return rows.read(data, kinds, (), Codec(rows="tuple"))


class InMemory(unittest.TestCase):
    """Without a server: batches are what single values are."""

    def columns(self, chance: random.Random) -> Dict[str, List[Any]]:
        moments = [
            datetime.datetime(1, 1, 1, tzinfo=UTC),
            datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC),
        ]
        moments += [
            datetime.datetime(1970, 1, 1, tzinfo=UTC)
            + datetime.timedelta(microseconds=chance.randrange(-(10**16), 10**16))
            for _ in range(50)
        ]
        return {
            "i64": [
                0,
                127,
                128,
                -1,
                -32,
                -33,
                -128,
                -129,
                255,
                65_535,
                1 << 31,
                -(1 << 63),
                (1 << 63) - 1,
            ],
            "i32": [chance.randrange(-(1 << 31), 1 << 31) for _ in range(50)],
            "i16": [chance.randrange(-(1 << 15), 1 << 15) for _ in range(50)],
            "u64": [0, (1 << 64) - 1],
            "u8": [chance.randrange(128) for _ in range(50)],
            "f64": [0.0, -0.5, float("inf"), 5e-324, 0.1],
            "text": ["", "x" * 31, "x" * 32, "ä" * 16, "y" * 300, "z" * 70_000],
            "bytes": [b"", b"\x00\xff", b"q" * 300],
            "bool": [True, False],
            "date": [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), Days(-800_000)],
            "timestamp": [*moments, Microseconds(-(1 << 62)), Microseconds((1 << 62))],
            "time": [datetime.time(0), datetime.time(23, 59, 59, 999_999)],
            "decimal(9,2)": [decimal.Decimal("-12.50"), decimal.Decimal("1")],
            "uuid": [uuid.UUID(int=5)],
            "ipv4": [ipaddress.IPv4Address("10.0.0.1")],
            "json": [{"a": [1]}, [1, "x"]],
        }

    def test_batches_come_back_as_they_were(self) -> None:
        chance = random.Random(7)
        columns = self.columns(chance)
        for size, null in ((8, 0.0), (40, 0.3), (300, 0.1), (20, 1.0)):
            values = [
                tuple(
                    None if chance.random() < null else chance.choice(column)
                    for column in columns.values()
                )
                for _ in range(size)
            ]
            out = bytearray()
            pack_array_head(out, size)
            RowPacker(PLAIN).pack(out, list(values))
            found = read(bytes(out), tuple(columns))
            self.assertEqual(found, values)
            self.assertEqual(
                [list(map(type, r)) for r in found], [list(map(type, r)) for r in values]
            )
            self.assertEqual([tuple(row) for row in unpack(bytes(out))], values)
            short = read(bytes(out), ())
            self.assertEqual(short, values)

    def test_each_column_is_read_whatever_its_type_says(self) -> None:
        columns = self.columns(random.Random(8))
        for column in columns.values():
            values = [(value,) for value in [*column, None] * 400]
            out = bytearray()
            pack_array_head(out, len(values))
            for row in values:
                pack_array(out, row)
            for kind in columns:
                self.assertEqual(read(bytes(out), (kind,)), values)

    def test_answers_that_are_cut_are_refused(self) -> None:
        values = [
            (i, f"text {i}", float(i), datetime.datetime(2024, 1, 1, tzinfo=UTC))
            for i in range(200)
        ]
        out = bytearray()
        pack_array_head(out, len(values))
        RowPacker(PLAIN).pack(out, list(values))
        kinds = ("i64", "text", "f64", "timestamp")
        for end in [*range(2_048, len(out), 7), len(out) - 1]:
            with self.assertRaises(EskerError):
                read(bytes(out[:end]), kinds)
        with self.assertRaises(EskerError):
            read(bytes(out) + b"\x00", kinds)
        with self.assertRaises(EskerError):
            read(bytes(out), ("i64", "text"))

    def test_batches_of_dicts(self) -> None:
        values: List[Any] = [{"id": i, "name": f"r{i}", "at": None} for i in range(20)]
        for given in (values, [*values, {"id": 20}]):
            out, slow = bytearray(), bytearray()
            RowPacker(PLAIN).pack(out, list(given))
            for row in given:
                RowPacker(PLAIN).pack(slow, [row])
            head = bytearray()
            pack_array_head(head, len(given))
            self.assertEqual(unpack(bytes(head + out)), given)
            self.assertEqual(unpack(bytes(head + slow)), given)

    def test_chunks_have_whole_rows_and_are_not_large(self) -> None:
        small: List[Any] = [(i, None) for i in range(5_000)]
        large: List[Any] = [(i, b"x" * 1_000_000) for i in range(30)]
        mixed: List[Any] = [{"id": 1}, (2, None)] * 50
        for values in (small, large, [*small, *large, *small], mixed, []):
            load = loads.load(PLAIN, "t", iter(values))
            found: List[Any] = []
            for chunk in loads.chunks(load, lambda _: None):
                self.assertLess(len(chunk), 5 << 20)
                at = 0
                while at < len(chunk):
                    row, at = unpack_from(chunk, at, 0)
                    found.append(row if isinstance(row, dict) else tuple(row))
            self.assertEqual(found, values)
        text: List[Any] = ["a" * 3_000_000, b"b" * 10, "c"]
        cut = list(loads.chunks(loads.load_text("t", "csv", text), lambda _: None))
        self.assertEqual(b"".join(cut), b"a" * 3_000_000 + b"b" * 10 + b"c")
        self.assertLessEqual(max(map(len, cut)), loads.CHUNK_BYTES)

    def test_nan_is_null_on_request(self) -> None:
        for given in (NAN, decimal.Decimal("NaN"), decimal.Decimal("sNaN")):
            out = bytearray()
            pack(out, given, packers(Codec(nan_as_null=True)))
            self.assertEqual(out, b"\xc0")
        for count in (2, 20):
            out = bytearray()
            pack_array_head(out, count)
            RowPacker(Codec(nan_as_null=True)).pack(out, [(NAN, 1.5)] * count)
            self.assertEqual(unpack(bytes(out)), [[None, 1.5]] * count)

    def test_wrong_values_in_a_batch_are_refused(self) -> None:
        for value in (datetime.datetime(2024, 1, 1), 10**38, "\udc80", decimal.Decimal("NaN")):
            with self.assertRaises(EskerError):
                RowPacker(PLAIN).pack(bytearray(), [(value,)] * 20)
        for wrong in ({1, 2}, 1j, datetime.timedelta(1)):
            with self.assertRaises(TypeError):
                RowPacker(PLAIN).pack(bytearray(), [(wrong,)] * 20)

    def test_schemas(self) -> None:
        found = parse(
            'index decimal(9,2), unique enum(a, \'b, c\'), "x, y" i64 not null, "a""b" f64, '
            'primary text(5) not null, primary key ("x, y", primary), index i (index), '
            "unique index decimal (a), trigram index parts (note)"
        )
        self.assertEqual(found.names, ("index", "unique", "x, y", 'a"b', "primary"))
        self.assertEqual(found.types, ("decimal", "enum", "i64", "f64", "text"))
        self.assertEqual(found.key, ("x, y", "primary"))


class Asked(ServedCase):
    def setUp(self) -> None:
        self.client = Client(self.url)
        self.addCleanup(self.client.close)
        self.client.sql("DROP TABLE IF EXISTS v")
        self.client.sql(TABLE)

    def stored(self, **values: Any) -> Any:
        """What a value is once it was inserted, and replaced by a load."""
        client = self.client
        client.insert("v", {"id": 1, **values}, replace=True)
        (name,) = values
        one = client.get("v", 1)
        assert one is not None
        client.load("v", [{"id": i, **values} for i in range(20)], on_duplicate="replace")
        self.assertEqual(client.get("v", 1), one)
        return one[name]

    def test_iso_texts_are_dates_and_times(self) -> None:
        noon = datetime.datetime(2024, 2, 29, 12, tzinfo=UTC)
        for values, wanted in [
            ({"day": "2024-02-29"}, datetime.date(2024, 2, 29)),
            ({"at": "2024-02-29T12:00:00"}, noon),
            ({"at": "2024-02-29 12:00"}, noon),
            ({"at": "2024-02-29T12:00:00Z"}, noon),
            ({"at": "2024-02-29T14:00:00.000000+02:00"}, noon),
            ({"at": "2024-02-29"}, noon.replace(hour=0)),
            ({"clock": "05:17"}, datetime.time(5, 17)),
            ({"clock": "05:17:00.25"}, datetime.time(5, 17, 0, 250_000)),
            ({"tag": str(uuid.UUID(int=7))}, uuid.UUID(int=7)),
            ({"four": "10.0.0.1"}, ipaddress.IPv4Address("10.0.0.1")),
            ({"six": "::1"}, ipaddress.IPv6Address("::1")),
            ({"price": "12.5"}, decimal.Decimal("12.50")),
            ({"note": "2024-02-29"}, "2024-02-29"),
        ]:
            self.assertEqual(self.stored(**values), wanted, values)
        for wrong in ({"day": "2024-02-30"}, {"at": "noon"}, {"clock": "24:00"}, {"n": "1"}):
            with self.assertRaises(EskerError) as caught:
                self.client.insert("v", {"id": 9, **wrong})
            self.assertIn(f'field "{next(iter(wrong))}"', caught.exception.message)

    def test_texts_of_other_classes_are_dates_in_batches_too(self) -> None:
        class Text(str):
            pass

        class Day(str, enum.Enum):
            LEAP = "2024-02-29"

        wanted = datetime.date(2024, 2, 29)
        for at, text in enumerate((Text("2024-02-29"), Day.LEAP)):
            self.client.insert("v", {"id": at, "day": text})
            ids = range(100 * (at + 1), 100 * (at + 1) + 20)
            self.client.insert_many("v", [{"id": i, "day": text} for i in ids])
            self.client.load("v", [{"id": 1000 + i, "day": text} for i in ids])
        self.assertEqual(self.client.sql("SELECT day FROM v").column("day"), [wanted] * 82)

    def test_json_with_very_long_integers_is_read(self) -> None:
        text = '{"n": [%s, 5]}' % ("7" * 5_000)
        for _ in range(2):
            found = self.client.sql(f"SELECT CAST('{text}' AS json) AS j").scalar()
            self.assertEqual(found, {"n": [decimal.Decimal("7" * 5_000), 5]})
        self.client.sql(f"SELECT CAST('{text}' AS json) AS j").first()

    def test_nan_in_json_is_null_on_request(self) -> None:
        value = {"a": [NAN, 1.5], "b": (NAN,)}
        with self.assertRaises(EskerError):
            self.client.sql("SELECT ? AS j", [value])
        for sent in (value, Json(value)):
            found = self.client.sql("SELECT ? AS j", [sent], nan_as_null=True).scalar()
            self.assertEqual(found, {"a": [None, 1.5], "b": [None]})

    def test_iso_texts_by_every_way_of_writing(self) -> None:
        client = self.client
        client.sql("DROP TABLE IF EXISTS k")
        client.sql("CREATE TABLE k (day date, item text, at timestamp, PRIMARY KEY (day, item))")
        at = datetime.datetime(2024, 1, 1, 10, tzinfo=UTC)
        client.insert("k", ("2024-01-01", "a", "2024-01-01T10:00"))
        client.insert_many(
            "k", [("2024-01-02", "a", None), ("2024-01-03", "a", "2024-01-01T10:00Z")]
        )
        client.load("k", [(f"2024-02-{day:02}", "a", None) for day in range(1, 30)])
        client.load("k", iter([("2024-03-01", "a", None)]))
        self.assertEqual(client.get("k", ("2024-01-01", "a")), (datetime.date(2024, 1, 1), "a", at))
        self.assertTrue(client.exists("k", ("2024-02-29", "a")))
        self.assertEqual(len(client.get_many("k", [("2024-01-02", "a"), ("2024-01-09", "a")])), 2)
        self.assertTrue(client.update("k", ("2024-01-02", "a"), at="2024-01-01T10:00:00"))
        self.assertEqual(client.update_many("k", [(("2024-01-03", "a"), {"at": "2024-01-05"})]), 1)
        self.assertEqual(client.delete_many("k", [("2024-01-03", "a")]), 1)
        with client.transaction() as tx:
            tx.insert("k", {"day": "2024-04-01", "item": "x"})
            tx.sql("CREATE TABLE later (day date PRIMARY KEY)")
            tx.insert("later", ("2024-04-01",))
            self.assertEqual(tx.get("later", "2024-04-01"), (datetime.date(2024, 4, 1),))
        with client.pipeline() as pipeline:
            pipeline.insert("k", ("2024-04-02", "x", None))
            found = pipeline.get("k", ("2024-04-02", "x"))
        self.assertEqual(found.result(), (datetime.date(2024, 4, 2), "x", None))
        with Pool(self.url, size=2) as pool:
            pool.insert("k", ("2024-04-03", "x", None))
            with pool.pipeline() as pooled:
                row = pooled.get("k", ("2024-04-03", "x"))
            self.assertIsNotNone(row.result())
        wanted = [(datetime.date(2024, 1, 2), at)]
        text = "SELECT day, at FROM k WHERE day = ? AND at >= ?"
        self.assertEqual(client.sql(text, ["2024-01-02", "2024-01-01T09:00:00"]).rows, wanted)

        async def run() -> None:
            async with AsyncClient(self.url) as other:
                await other.insert("k", ("2024-05-01", "x", None))
                await other.load("k", [("2024-05-02", "x", None)])
                async with other.transaction() as tx:
                    await asyncio.gather(
                        tx.insert("k", ("2024-05-03", "x", None)),
                        tx.update("k", ("2024-05-03", "x"), at="2024-01-01T10:00"),
                    )
                row = await other.get("k", ("2024-05-03", "x"))
                assert row is not None
                self.assertEqual(row.at, at)

        asyncio.run(asyncio.wait_for(run(), 60))
        client.sql("DROP TABLE later")

    def test_fields_that_were_changed_are_asked_again(self) -> None:
        client = self.client
        with Client(self.url) as other:
            client.insert("v", {"id": 1, "note": "x"})
            self.assertEqual(client.get("v", 1).id, 1)  # type: ignore[union-attr]
            client.sql("ALTER TABLE v RENAME COLUMN note TO remark")
            self.assertEqual(client.get("v", 1).remark, "x")  # type: ignore[union-attr]
            other.sql("ALTER TABLE v ADD COLUMN more text")
            row = client.get("v", 1)
            self.assertEqual(len(row or ()), len(FIELDS) + 1)

    def test_naive_datetimes_are_utc_on_request(self) -> None:
        naive = datetime.datetime(2024, 2, 29, 12)
        with self.assertRaises(EskerError):
            self.client.insert("v", {"id": 1, "at": naive})
        with Client(self.url, naive_as_utc=True) as client:
            client.insert("v", {"id": 1, "at": naive})
            client.load("v", [{"id": i, "at": naive} for i in range(2, 30)])
            wanted = [naive.replace(tzinfo=UTC)] * 29
            self.assertEqual(client.sql("SELECT at FROM v").column("at"), wanted)
            self.assertEqual(
                client.sql("SELECT count(*) FROM v WHERE at = ?", [naive]).scalar(), 29
            )

    def test_nan_is_null_on_request(self) -> None:
        client = self.client
        client.insert("v", {"id": 1, "f": NAN})
        client.insert("v", {"id": 2, "f": NAN}, nan_as_null=True)
        client.insert_many("v", [{"id": 3, "f": NAN}], nan_as_null=True)
        client.load("v", [{"id": i, "f": NAN} for i in range(4, 20)], nan_as_null=True)
        client.insert("v", {"id": 20, "f": 1.0})
        client.update("v", 20, {"f": NAN}, nan_as_null=True)
        client.insert("v", {"id": 21, "f": 1.0})
        client.update_many("v", [(21, {"f": NAN})], nan_as_null=True)
        client.sql("INSERT INTO v (id, f) VALUES (?, ?)", [22, NAN], nan_as_null=True)
        with Client(self.url, nan_as_null=True) as other:
            other.insert("v", {"id": 23, "f": NAN})
            other.insert("v", {"id": 24, "f": NAN}, nan_as_null=False)
        found = client.sql("SELECT id FROM v WHERE f IS NOT NULL ORDER BY id").column("id")
        self.assertEqual(found, [1, 24])

    def test_times_as_iso_texts(self) -> None:
        self.client.insert(
            "v", {"id": 1, "day": "2024-02-29", "at": "2024-02-29T12:00", "clock": "05:17"}
        )
        wanted = ("2024-02-29", "2024-02-29T12:00:00+00:00", "05:17:00")
        text = "SELECT day, at, clock FROM v"
        self.assertEqual(self.client.sql(text, iso_times=True).rows, [wanted])
        row = self.client.get("v", 1, iso_times=True)
        assert row is not None
        self.assertEqual(row["day"], "2024-02-29")
        with self.client.stream(text, iso_times=True) as stream:
            self.assertEqual(list(stream), [wanted])
        self.client.load("v", [{"id": i, "day": "2024-02-29"} for i in range(2, 500)])
        with Client(self.url, iso_times=True) as client:
            row = client.get("v", 1)
            assert row is not None
            self.assertEqual((row.day, row.at, row.clock), wanted)
            found = client.sql("SELECT day FROM v")
            self.assertEqual(found.column("day"), ["2024-02-29"] * 499)
            # They go back as they came.
            client.insert("v", {**row._asdict(), "id": 1_000})

    def test_every_kind_of_value(self) -> None:
        zone = datetime.timezone(datetime.timedelta(hours=2))
        for values, wanted in [
            (
                {"at": datetime.datetime(2024, 2, 29, 14, tzinfo=zone)},
                datetime.datetime(2024, 2, 29, 12, tzinfo=UTC),
            ),
            ({"price": decimal.Decimal("1.50")}, decimal.Decimal("1.50")),
            ({"doc": Json("x")}, "x"),
            ({"doc": {"at": datetime.date(2024, 2, 29)}}, {"at": "2024-02-29"}),
            ({"raw": memoryview(b"ab")}, b"ab"),
        ]:
            self.assertEqual(self.stored(**values), wanted)  # type: ignore[arg-type]
        with self.assertRaises(TypeError) as caught:
            self.client.insert("v", {"id": 1, "n": datetime.timedelta(seconds=1)})
        self.assertIn("duration", str(caught.exception))

    @unittest.skipIf(numpy is None, "numpy is not installed")
    def test_scalars_of_numpy(self) -> None:
        np: Any = numpy
        cases: List[Tuple[Dict[str, Any], Any]] = [
            ({"n": np.int64(-5)}, -5),
            ({"n": np.uint8(200)}, 200),
            ({"small": np.array(7)}, 7),
            ({"f": np.float32(0.5)}, 0.5),
            ({"f": np.float64(0.1)}, 0.1),
            ({"b": np.bool_(True)}, True),
            ({"note": np.str_("tea")}, "tea"),
            ({"raw": np.bytes_(b"\x00x")}, b"\x00x"),
            ({"day": np.datetime64("2024-02-29")}, datetime.date(2024, 2, 29)),
            (
                {"at": np.datetime64("2024-02-29T12:00")},
                datetime.datetime(2024, 2, 29, 12, tzinfo=UTC),
            ),
            (
                {"at": np.datetime64("2024-02-29T12:00", "ns")},
                datetime.datetime(2024, 2, 29, 12, tzinfo=UTC),
            ),
            ({"at": np.datetime64("NaT")}, None),
            ({"at": np.datetime64("NaT", "ns")}, None),
            (
                {"doc": {"n": np.int64(1), "at": np.datetime64("2024-02-29")}},
                {"n": 1, "at": "2024-02-29"},
            ),
        ]
        for values, wanted in cases:
            found = self.stored(**values)
            self.assertEqual(found, wanted)
            self.assertIs(type(found), type(wanted))
        client = self.client
        self.assertEqual(client.get("v", np.int64(1)), client.get("v", 1))
        self.assertEqual(client.sql("SELECT ? + ?", np.array([1, 2])).scalar(), 3)
        self.assertEqual(client.query({"table": "v", "limit": np.int64(1)}).rows[0].id, 0)
        self.assertEqual(client.bucket("b").increment("n", np.int64(2)), 2)
        rows = np.arange(20, 60).reshape(20, 2)
        client.sql("CREATE TABLE pairs (a i64 PRIMARY KEY, b i64)")
        self.assertEqual(client.load("pairs", rows), 20)
        self.assertEqual(
            client.sql("SELECT * FROM pairs ORDER BY a").rows, [tuple(row) for row in rows.tolist()]
        )
        client.sql("DROP TABLE pairs")
        for wrong in (np.timedelta64(1, "s"), np.complex64(1), np.array([1, 2])):
            with self.assertRaises(TypeError):
                client.insert("v", {"id": 1, "n": wrong})
        for finer in (np.datetime64("2024-01-01T00:00:00.000000001"), np.datetime64(1 << 60, "s")):
            with self.assertRaises(EskerError):
                client.insert("v", {"id": 1, "at": finer})
        self.assertIsNone(self.stored_with_nan(np.float32("nan")))

    def stored_with_nan(self, value: Any) -> Any:
        with Client(self.url, nan_as_null=True) as client:
            client.insert("v", {"id": 900, "f": value})
            client.load("v", [{"id": 901 + i, "f": value} for i in range(20)])
            found = set(client.sql("SELECT f FROM v WHERE id >= 900").column("f"))
        self.assertEqual(len(found), 1)
        return found.pop()

    @unittest.skipIf(pandas is None, "pandas is not installed")
    def test_values_of_pandas(self) -> None:
        pd: Any = pandas
        for missing in (pd.NaT, pd.NA):
            self.assertIsNone(self.stored(at=missing))
            self.assertIsNone(self.stored(n=missing))
        noon = datetime.datetime(2024, 2, 29, 12, tzinfo=UTC)
        self.assertEqual(self.stored(at=pd.Timestamp("2024-02-29T12:00Z")), noon)
        with self.assertRaises(EskerError):
            self.client.insert("v", {"id": 1, "at": pd.Timestamp("2024-02-29T12:00:00.000000001Z")})
        with self.assertRaises(EskerError):
            self.client.insert("v", {"id": 1, "at": pd.Timestamp("2024-02-29T12:00")})
        frame = pd.DataFrame(
            {"id": [1, 2], "f": [0.5, NAN], "at": [pd.Timestamp("2024-02-29T12:00"), pd.NaT]}
        )
        with Client(self.url, nan_as_null=True, naive_as_utc=True) as client:
            client.load("v", frame.to_dict("records"), on_duplicate="replace")
            found = client.sql("SELECT id, f, at FROM v WHERE id IN (1, 2) ORDER BY id")
            self.assertEqual(found.rows, [(1, 0.5, noon), (2, None, None)])


if __name__ == "__main__":
    unittest.main()
