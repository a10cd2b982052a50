"""Tokens: who has none is not let in."""

from __future__ import annotations

import os
import re
import subprocess
import time
from typing import ClassVar

from esker import Client, EskerError

from .served import ServedCase


class Tokens(ServedCase):
    arguments: ClassVar[tuple] = ()  # type: ignore[type-arg]
    is_stored = True

    def test_tokens(self) -> None:
        with self.assertRaises(EskerError) as caught:
            with Client(self.url) as client:
                client.tables()
        self.assertEqual(caught.exception.code, "unauthenticated")
        with self.assertRaises(EskerError) as caught:
            Client(self.url, token="esk_wrong")
        self.assertEqual(caught.exception.code, "unauthenticated")
        assert self.server is not None
        directory = os.path.join(self.server.directory.name, "db")
        made = subprocess.run(
            [os.environ["ESKER"], "token", "create", directory, "--name", "me", "--scope", "read"],
            capture_output=True,
            text=True,
        )
        found = re.search(r"esk_\w+", made.stdout)
        assert found is not None, f"no token: {made.stdout}{made.stderr}"
        time.sleep(1.1)  # A server that runs knows it within a second.
        with Client(self.url, token=found.group(0)) as client:
            self.assertEqual(client.tables(), [])
            with self.assertRaises(EskerError) as caught:
                client.sql("CREATE TABLE t (id i64 PRIMARY KEY)")
            self.assertEqual(caught.exception.code, "forbidden")
