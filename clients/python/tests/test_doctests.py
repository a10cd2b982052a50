"""The examples in the sources."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import unittest

import esker


class Examples(unittest.TestCase):
    def test_examples(self) -> None:
        attempted = 0
        for module in pkgutil.iter_modules(esker.__path__):
            with self.subTest(module.name):
                found = doctest.testmod(importlib.import_module(f"esker.{module.name}"))
                self.assertEqual(found.failed, 0)
                attempted += found.attempted
        self.assertGreater(attempted, 15)
