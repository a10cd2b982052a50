"""Frames and values, without a server: the golden frames of the protocol's reference, and more."""

from __future__ import annotations

import copy
import datetime
import decimal
import ipaddress
import os
import pickle
import random
import unittest
import uuid
from typing import Any, List, Tuple

from esker import Days, EskerError, Json, Microseconds, Result, dbapi
from esker import _frame as frames
from esker import _request as requests
from esker._address import parse
from esker import _load as loads
from esker import _bucket_request as bucket_requests
from esker import _events as events
from esker._codec import PLAIN
from esker._messagepack import pack
from esker._unpack import unpack
from esker._frame import Answer, FrameReader, Request

_REFERENCE = os.path.join(os.path.dirname(__file__), "../../../docs/reference/wire.md")


def golden() -> List[Tuple[str, List[bytes], List[bytes]]]:
    """What is sent and received: a name and frames in both directions."""
    with open(_REFERENCE, encoding="utf-8") as file:
        text = file.read().split("```frames\n")[1].split("```")[0]
    steps: List[Tuple[str, List[bytes], List[bytes]]] = []
    for line in text.splitlines():
        if line.startswith("#"):
            steps.append((line[1:].strip(), [], []))
        elif line.startswith((">", "<")):
            _, sent, received = steps[-1]
            (sent if line[0] == ">" else received).append(bytes.fromhex(line[1:]))
    return steps


UTC = datetime.timezone.utc
EVERY_TYPE = (
    1,
    datetime.date(2024, 2, 29),
    datetime.datetime(2024, 2, 29, 12, 30, 1, 5, tzinfo=UTC),
    datetime.time(23, 59, 59, 999_999),
    uuid.UUID("67e55044-10b1-426f-9247-bb680e5fe0c8"),
    ipaddress.ip_address("192.0.2.1"),
    ipaddress.ip_address("2001:db8::1"),
    decimal.Decimal("-12.50"),
    [1],
    -0.5,
    b"\x00\xff",
    True,
    (1 << 64) - 1,
    -(1 << 63),
)
TABLE = (
    "CREATE TABLE v (id i64 PRIMARY KEY, day date, at timestamp, clock time, tag uuid, four ipv4, "
    "six ipv6, price decimal(9,2), doc json, rate f64, raw bytes, flag bool, most u64, least i64)"
)
STREAM = "CREATE TABLE e (t timestamp NOT NULL, n i64, what text) WITH (stream = 't')"


def at(microseconds: int) -> datetime.datetime:
    """The time of an event, so much after the first."""
    second = datetime.datetime(2026, 1, 2, 3, 4, 5, 123_456, tzinfo=UTC)
    return second + datetime.timedelta(microseconds=microseconds)


# What is asked in each step, and what the answer means.
STEPS: List[Tuple[str, List[Tuple[Request[Any], Any]]]] = [
    ("Ping", [(requests.ping(PLAIN), None)]),
    (
        "Sql: CREATE TABLE t (id i64 PRIMARY KEY, name text)",
        [
            (
                requests.sql(PLAIN, "CREATE TABLE t (id i64 PRIMARY KEY, name text)", ()),
                "created table t",
            )
        ],
    ),
    ("Insert two rows", [(requests.insert_many(PLAIN, "t", [(1, "Ada"), (2, None)]), 2)]),
    ("Get keys 1 and 9", [(requests.get_many(PLAIN, "t", [1, (9,)]), [(1, "Ada"), None])]),
    ("Exists", [(requests.exists_many(PLAIN, "t", [2, 3]), [True, False])]),
    ("Update key 2", [(requests.update(PLAIN, "t", 2, {"name": "Bob"}), True)]),
    (
        "Sql with a parameter: columns, rows, end",
        [(requests.sql(PLAIN, "SELECT id, name FROM t WHERE id > ?", [1]), [(2, "Bob")])],
    ),
    ("Delete", [(requests.delete_many(PLAIN, "t", [1]), 1)]),
    (
        "BucketPut, BucketGet",
        [
            (bucket_requests.bucket_put("b", b"k", b"v"), None),
            (bucket_requests.bucket_get_many("b", [b"k", "x"]), [b"v", None]),
        ],
    ),
    ("Hello: no token, the only database", [(requests.hello(None, None), "0.1.0-dev")]),
    ("Tables", [(requests.tables(PLAIN), ["t"])]),
    (
        "Schema",
        [(requests.schema(PLAIN, "t"), "id i64 not null, name text, primary key (id)")],
    ),
    (
        "UpdateMany: key 2 is there, key 9 is not",
        [(requests.update_many(PLAIN, "t", [(2, {"name": "Eva"}), (9, {"name": "x"})]), 1)],
    ),
    (
        "Query: columns, rows, end",
        [(requests.query(PLAIN, '{"table": "t", "limit": 2}'), [(7, "Eve"), (8, None)])],
    ),
    (
        "Explain of a table that there is not: a plan has times in it",
        [(requests.explain(PLAIN, '{"table": "x"}'), EskerError)],
    ),
    ("Begin, Rollback", [(requests.begin(False, False), None), (requests.rollback(), None)]),
    (
        "Begin a serializable one, read only, and Commit",
        [(requests.begin(True, True), None), (requests.commit(), None)],
    ),
    ("Buckets", [(requests.buckets(PLAIN), ["b"])]),
    ("BucketIncrement, from nothing", [(bucket_requests.bucket_increment("b", b"n", 5), 5)]),
    (
        "BucketRange: two from the last back",
        [
            (
                bucket_requests.bucket_range("b", None, b"z", limit=2, reverse=True),
                [(b"n", b"\x80\0\0\0\0\0\0\x05"), (b"k", b"v")],
            )
        ],
    ),
    ("BucketRemove", [(bucket_requests.bucket_remove_many("b", [b"k", b"x"]), 1)]),
    (
        "BucketPut with a time to live, and one that never ends",
        [
            (bucket_requests.bucket_put_many("b", {b"s": b"1"}, ttl=60), 1),
            (bucket_requests.bucket_put_many("b", {b"e": b""}, ttl=False), 1),
        ],
    ),
    (
        "Sql: a table with the types that are extensions",
        [(requests.sql(PLAIN, TABLE, ()), "created table v")],
    ),
    ("Insert a value of every type", [(requests.insert_many(PLAIN, "v", [EVERY_TYPE]), 1)]),
    ("Get it", [(requests.get_many(PLAIN, "v", [1]), [EVERY_TYPE])]),
    ("an error", [(requests.schema(PLAIN, "x"), EskerError)]),
    (
        "Once: a BucketIncrement that is sent twice, and done once",
        [(bucket_requests.bucket_increment("b", b"n", 5).once("k1"), 10)] * 2,
    ),
    (
        "Admin: a bucket is made",
        [(requests.admin(PLAIN, '{"task": "create_bucket", "bucket": "c"}'), {"bucket": "c"})],
    ),
    ("Sql: a stream", [(requests.sql(PLAIN, STREAM, ()), "created table e")]),
    (
        "Append: values of two fields, all or none, as a producer",
        [
            (
                events.append_many(
                    PLAIN, "e", [(8, at(2))], each=False, fields=["n", "t"], producer=("p", 1, 0)
                ),
                (1, 0, ["01KDYAK3830000000000000003"], [], False, None),
            )
        ],
    ),
    (
        "AppendColumns: two events, only counted",
        [
            (
                events.append_columns(
                    PLAIN,
                    "e",
                    {"t": [at(3), at(4)], "n": [-1, None], "what": ["a", "bc"]},
                    minimal=True,
                ),
                (2, 0, [f"01KDYAK383000000000000000{n}" for n in (4, 5)], [], False, None),
            )
        ],
    ),
]
# What is sent otherwise: both sides greet, a cancelled request answers, a load has several frames.
APART = [
    "both greet",
    "Cancel of what is not under way: no answer",
    "a bulk load of MessagePack",
    "a bulk load of CSV that is sent twice, and done once",
    # Rows of one request are all dicts or all tuples here.
    "Append: an event as a map, one as an array, and one that is refused",
    "Tail from the start, for one event; a credit of one more, and its end",
]


class GoldenFrames(unittest.TestCase):
    """What this client sends is what the reference says, byte for byte; likewise what it reads."""

    def test_every_step_is_here(self) -> None:
        named = [name for name, _, _ in golden() if name not in APART]
        self.assertEqual(named, [name for name, _ in STEPS])
        self.assertEqual(golden()[0][1], [frames.GREETING])

    def test_requests_and_answers(self) -> None:
        steps = {name: (sent, received) for name, sent, received in golden()}
        for name, asked in STEPS:
            sent, received = steps[name]
            with self.subTest(name):
                reader = FrameReader()
                reader.feed(frames.GREETING)
                for data in received:
                    for at in range(len(data)):
                        reader.feed(data[at : at + 1])
                for data, (request, wanted) in zip(sent, asked):
                    number = int.from_bytes(data[4:8], "little")
                    if name != "Get keys 1 and 9":  # A key may be an array or its only value.
                        self.assertEqual(request.frame(number).hex(" "), data.hex(" "))
                    self.check(reader, number, request, wanted)
                self.assertEqual(len(sent), len(asked))
                self.assertIsNone(reader.next())

    def check(
        self, reader: FrameReader, number: int, request: Request[Any], wanted: Any
    ) -> None:
        answer, is_last = Answer(), False
        while not is_last:
            found = reader.next()
            assert found is not None
            self.assertEqual(found.id, number)
            is_last = answer.take(found)
        if wanted is EskerError:
            with self.assertRaises(EskerError) as caught:
                request.result(answer)
            self.assertEqual(caught.exception.code, "not_found")
            return
        result = request.result(answer)
        if isinstance(result, Result):
            result = result.text or result.rows
        self.assertEqual(result, wanted)

    def frames_of(self, load: loads.Load, number: int) -> List[bytes]:
        sent = [load.request.frame(number)]
        chunks = loads.chunks(load, lambda _: None)
        sent += [frames.frame(number, frames.BULK_CHUNK, chunk) for chunk in chunks]
        return [*sent, frames.frame(number, frames.BULK_END)]

    def test_loads_and_cancelling(self) -> None:
        steps = {name: sent for name, sent, _ in golden()}
        load = loads.load(PLAIN, "t", [(7, "Eve"), (8, None)])
        self.assertEqual(self.frames_of(load, 11), steps["a bulk load of MessagePack"])
        again = steps["a bulk load of CSV that is sent twice, and done once"]
        load = loads.load_text("t", "csv", ["id,name\n", b"20,Kim\n"], key="k2")
        for number, first in ((0x24, 0), (0x25, 3)):
            self.assertEqual(self.frames_of(load, number), again[first : first + 3])
        (cancel,) = steps["Cancel of what is not under way: no answer"]
        number = int.from_bytes(cancel[4:8], "little")
        self.assertEqual(frames.frame(number, frames.CANCEL, requests.cancelled(1)), cancel)


    def test_a_tail(self) -> None:
        steps = {name: sent for name, sent, _ in golden()}
        name = "Tail from the start, for one event; a credit of one more, and its end"
        where = '{"field": "n", "op": "lt", "value": 8}'
        payload = events.tail("e", "start", where, 1)
        self.assertEqual(frames.frame(0x2A, frames.TAIL, payload), steps[name][0])
        self.assertEqual(frames.frame(0x2A, frames.CREDIT, b"\x01"), steps[name][1])


class Values(unittest.TestCase):
    """Values come back as they were."""

    def test_values(self) -> None:
        utc = datetime.timezone.utc
        for value in [
            None,
            True,
            False,
            *[sign * (1 << bits) + more for bits in range(63) for sign in (1, -1) for more in (-1, 0)],
            (1 << 64) - 1,
            -(1 << 63),
            0.0,
            -2.5,
            float("inf"),
            "",
            "ä" * 20,
            "x" * 70_000,
            b"",
            b"\x00" * 300,
            b"y" * 70_000,
            datetime.date(1, 1, 1),
            datetime.date(9999, 12, 31),
            Days(-800_000),
            datetime.datetime(2024, 2, 29, 12, 30, 1, 5, tzinfo=utc),
            Microseconds(-(1 << 62)),
            datetime.time(23, 59, 59, 999_999),
            uuid.UUID(int=5),
            ipaddress.ip_address("10.0.0.1"),
            ipaddress.ip_address("::1"),
            decimal.Decimal("-1234567890123456789012345678.0100"),
            decimal.Decimal("1E+3"),
        ]:
            out = bytearray()
            pack(out, value)
            found = unpack(bytes(out))
            self.assertEqual(found, value)
            self.assertEqual(type(found), type(value))

    def test_json(self) -> None:
        for value, wanted in [
            ({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}),
            ([1, "x"], [1, "x"]),
            (Json("x"), "x"),
            (Json(None), None),
            ({"at": datetime.date(2024, 2, 29)}, {"at": "2024-02-29"}),
        ]:
            out = bytearray()
            pack(out, value)
            self.assertEqual(unpack(bytes(out)), wanted)

    def test_zones_are_told_apart(self) -> None:
        utc, east = bytearray(), bytearray()
        pack(utc, datetime.datetime(2024, 2, 29, 12, tzinfo=UTC))
        zone = datetime.timezone(datetime.timedelta(hours=2))
        pack(east, datetime.datetime(2024, 2, 29, 14, tzinfo=zone))
        self.assertEqual(utc, east)

    def test_what_no_field_can_have_is_refused(self) -> None:
        for value in [
            datetime.datetime(2024, 2, 29, 12),
            datetime.time(12, tzinfo=UTC),
            decimal.Decimal("NaN"),
            decimal.Decimal("1E+1000000000"),
            decimal.Decimal("1E-1000000000"),
            10**38,
            -(10**5000),
            Days(1 << 31),
            Microseconds(1 << 63),
            "\ud800",
            ["\ud800"],
            [float("nan")],
            Json(float("inf")),
        ]:
            with self.assertRaises(EskerError) as caught:
                pack(bytearray(), value)
            self.assertEqual(caught.exception.code, "invalid_request")
        for value in [object(), {1, 2}, iter([1]), {"a": object()}, {1: 2}, [{"a": {None: 1}}], 1j]:
            with self.assertRaises(TypeError):
                pack(bytearray(), value)

    def test_what_is_no_messagepack_is_refused(self) -> None:
        chance = random.Random(7)
        for _ in range(20_000):
            data = bytes(chance.randrange(256) for _ in range(chance.randrange(12)))
            try:
                unpack(data)
            except EskerError as e:
                self.assertEqual(e.code, "connection")
        for text in ["", "c1", "d9ff61", "a2c328", "91" * 200, "d60100", "0101", "c70463"]:
            with self.assertRaises(EskerError):
                unpack(bytes.fromhex(text))

    def test_zero_is_sent_whatever_its_exponent(self) -> None:
        for text in ("0E+50", "0E-100", "-0E+38"):
            out = bytearray()
            pack(out, decimal.Decimal(text))
            self.assertEqual(unpack(bytes(out)), 0)
        for text in ("1E+38", "1E-100"):
            with self.assertRaises(EskerError):
                pack(bytearray(), decimal.Decimal(text))

    def test_the_bits_of_a_number_have_its_sign(self) -> None:
        with self.assertRaises(EskerError) as caught:
            pack(bytearray(), Days(1 << 31))
        self.assertIn("of 32 bits, found one of 33", str(caught.exception))

    def test_answers_of_nonsense_are_connection_errors(self) -> None:
        for kind in (frames.FAILED, frames.COLUMNS):
            for text in ("05", "9105", "91a161", "920102", "91920102"):
                payload = bytes.fromhex(text)
                with self.assertRaises(EskerError) as caught:
                    Answer().take(frames.Frame(1, kind, 0, payload))
                self.assertEqual(caught.exception.code, "connection")
        values: List[Any] = [None, 5, [], {}]
        for value in values:
            answer = Answer()
            answer.value = value
            outcome = requests.get(PLAIN, "t", 1).outcome(answer)
            self.assertIsInstance(outcome, EskerError, value)

    def test_errors_are_copied_and_pickled(self) -> None:
        for error in (EskerError("conflict", "why"), dbapi.IntegrityError("already_exists", "k")):
            for same in (copy.copy(error), pickle.loads(pickle.dumps(error))):
                self.assertIs(type(same), type(error))
                self.assertEqual((same.code, same.message), (error.code, error.message))
                self.assertEqual(str(same), str(error))

    def test_equal_json_has_one_hash(self) -> None:
        for one, other in [(1, 1.0), ({"a": 1, "b": 2}, {"b": 2, "a": 1}), ([0], [False])]:
            self.assertEqual(len({Json(one), Json(other)}), 1)
        self.assertEqual(len({Json(1), Json(2)}), 2)

    def test_frames_of_nonsense_are_refused(self) -> None:
        for data in [b"HTTP/1.1 400", frames.GREETING + b"\x00" * 10, b"ESKR\x02\x00"]:
            reader = FrameReader()
            reader.feed(data)
            with self.assertRaises(EskerError):
                reader.next()


class Addresses(unittest.TestCase):
    def test_addresses(self) -> None:
        self.assertEqual(parse("[::1]:80")[:2], ("::1", 80))
        self.assertEqual(parse("host")[:2], ("host", 7437))
        self.assertEqual(parse("eskers://host:1?ca=c.pem"), ("host", 1, "c.pem", None))
        self.assertEqual(parse("eskers://host:1"), ("host", 1, "", None))
        self.assertEqual(parse("unix:/tmp/s").unix_path, "/tmp/s")
        for text in ["", "esker://", "http://host", "eskers://host?c.pem", "eskers://host?ca=", "a b"]:
            with self.assertRaises(EskerError):
                parse(text)

    def test_ports_that_there_are_not_are_refused(self) -> None:
        for port in ["", "99999", "x", "-1", "65536", "\u0663", "9" * 5000]:
            for host in ("h", "127.0.0.1", "[::1]"):
                with self.assertRaises(EskerError):
                    parse(f"{host}:{port}")


if __name__ == "__main__":
    unittest.main()
