"""A server for tests: the program that the environment variable ESKER names, in memory."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import unittest
from typing import ClassVar, Optional


class Served:
    """A server that is stopped at the end."""

    def __init__(self, *arguments: str, is_stored: bool = False) -> None:
        program = os.environ.get("ESKER")
        if program is None:
            raise unittest.SkipTest("ESKER names no program to serve with")
        self.directory = tempfile.TemporaryDirectory()
        self.unix_path = os.path.join(self.directory.name, "esker.sock")
        self._command = [program, "serve", os.path.join(self.directory.name, "db")]
        self._command += [] if is_stored else ["--memory"]
        self._command += ["--unix", self.unix_path, "--http-listen", "127.0.0.1:0", *arguments]
        self.url = "127.0.0.1:0"
        self.start()

    def start(self) -> None:
        """Starts the server; again, at the same address."""
        self.process = subprocess.Popen(
            [*self._command, "--listen", self.url],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            found = re.match(r"listening on (127\.0\.0\.1:\d+)", line)
            if found:
                self.url = found.group(1)
                return
        self.end()
        raise RuntimeError("the server did not start")

    def end(self, is_killed: bool = False) -> None:
        """Stops the server, or kills it."""
        if is_killed:
            self.process.kill()
        else:
            self.process.terminate()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        if os.path.exists(self.unix_path):
            # A killed server leaves its socket.
            os.remove(self.unix_path)

    def stop(self) -> None:
        self.end()
        self.directory.cleanup()


class ServedCase(unittest.TestCase):
    """Tests that share a server."""

    arguments: ClassVar[tuple] = ("--trust-local",)  # type: ignore[type-arg]
    is_stored: ClassVar[bool] = False
    server: ClassVar[Optional[Served]] = None

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Served(*cls.arguments, is_stored=cls.is_stored)

    @classmethod
    def tearDownClass(cls) -> None:
        if cls.server is not None:
            cls.server.stop()

    @property
    def url(self) -> str:
        assert self.server is not None
        return self.server.url
