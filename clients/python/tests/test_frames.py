"""Frames and values, without a server: the golden frames of the protocol's reference, and more."""

from __future__ import annotations

import datetime
import decimal
import ipaddress
import os
import random
import unittest
import uuid
from typing import Any, List, Tuple

from esker import Days, EskerError, Json, Microseconds
from esker import _request as requests
from esker._address import parse
from esker._messagepack import pack, unpack
from esker._request import Answer, FrameReader, Request

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


class GoldenFrames(unittest.TestCase):
    """What this client sends is what the reference says, byte for byte."""

    asked: List[Request[Any]] = [
        requests.ping(),
        requests.sql("CREATE TABLE t (id i64 PRIMARY KEY, name text)", ()),
        requests.insert_many("t", [(1, "Ada"), (2, None)], False),
        requests.get_many("t", [1, (9,)]),
        requests.exists_many("t", [2, 3]),
        requests.update("t", 2, {"name": "Bob"}),
        requests.sql("SELECT id, name FROM t WHERE id > ?", [1]),
        requests.delete_many("t", [1]),
    ]
    answers: List[Any] = [
        None,
        "created table t",
        2,
        [(1, "Ada"), None],
        [True, False],
        True,
        [(2, "Bob")],
        1,
    ]

    def test_requests_and_answers(self) -> None:
        steps = golden()
        self.assertEqual(steps[0][1], [requests.GREETING])
        for number, (request, wanted) in enumerate(zip(self.asked, self.answers), 1):
            name, sent, received = steps[number]
            with self.subTest(name):
                if name != "Get keys 1 and 9":  # A key may be an array or its only value.
                    self.assertEqual([request.frame(number)], sent)
                answer, reader = Answer(), FrameReader()
                reader.feed(requests.GREETING)
                for data in received:
                    for at in range(len(data)):
                        reader.feed(data[at : at + 1])
                ends = []
                found = reader.next()
                while found is not None:
                    self.assertEqual(found.id, number)
                    ends.append(answer.take(found))
                    found = reader.next()
                self.assertEqual(ends, [False] * (len(ends) - 1) + [True])
                result = request.result(answer)
                if isinstance(result, requests.Result):
                    result = result.text or result.rows
                self.assertEqual(result, wanted)

    def test_errors(self) -> None:
        name, _, received = golden()[-1]
        self.assertEqual(name, "an error")
        reader, answer = FrameReader(), Answer()
        reader.feed(requests.GREETING + received[0])
        found = reader.next()
        assert found is not None
        self.assertTrue(answer.take(found))
        with self.assertRaises(EskerError) as caught:
            requests.schema("x").result(answer)
        self.assertEqual(caught.exception.code, "not_found")

    def test_buckets_and_loads(self) -> None:
        steps = {name: sent for name, sent, _ in golden()}
        put = requests.bucket_put("b", {b"k": b"v"}, None)
        get = requests.bucket_get("b", [b"k", "x"])
        self.assertEqual([put.frame(9), get.frame(10)], steps["BucketPut, BucketGet"])
        begin = requests.bulk_begin("t", "messagepack", "error").frame(11)
        chunks = list(requests.chunks_of_rows([(7, "Eve"), (8, None)]))
        frames = [begin, requests.frame(11, requests.BULK_CHUNK, chunks[0])]
        frames.append(requests.frame(11, requests.BULK_END))
        self.assertEqual(frames, steps["a bulk load of MessagePack"])


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

    def test_naive_times_are_of_utc(self) -> None:
        out, zoned = bytearray(), bytearray()
        pack(out, datetime.datetime(2024, 2, 29, 12))
        east = datetime.timezone(datetime.timedelta(hours=2))
        pack(zoned, datetime.datetime(2024, 2, 29, 14, tzinfo=east))
        self.assertEqual(out, zoned)

    def test_what_is_no_value_is_refused(self) -> None:
        for value in [object(), {1, 2}, [float("nan")], {"a": object()}, decimal.Decimal("NaN")]:
            with self.assertRaises(EskerError) as caught:
                pack(bytearray(), value)
            self.assertEqual(caught.exception.code, "invalid_request")

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

    def test_frames_of_nonsense_are_refused(self) -> None:
        for data in [b"HTTP/1.1 400", requests.GREETING + b"\x00" * 10, b"ESKR\x02\x00"]:
            reader = FrameReader()
            reader.feed(data)
            with self.assertRaises(EskerError):
                reader.next()


class Addresses(unittest.TestCase):
    def test_addresses(self) -> None:
        self.assertEqual(parse("[::1]:80")[:2], ("::1", 80))
        self.assertEqual(parse("host")[:2], ("host", 7437))
        self.assertEqual(parse("eskers://host:1?ca=c.pem"), ("host", 1, "c.pem", None))
        self.assertEqual(parse("unix:/tmp/s").unix_path, "/tmp/s")
        for text in ["", "esker://", "http://host", "eskers://host", "a b"]:
            with self.assertRaises(EskerError):
                parse(text)


if __name__ == "__main__":
    unittest.main()
