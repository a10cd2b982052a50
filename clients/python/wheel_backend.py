"""Builds the wheel: a pure package needs no tool for that (PEP 517, PEP 427)."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import zipfile
from typing import Any, Dict, List, Optional

_ROOT = os.path.dirname(os.path.abspath(__file__))
_TAG = "py3-none-any"


def _field(name: str) -> str:
    with open(os.path.join(_ROOT, "pyproject.toml"), encoding="utf-8") as file:
        found = re.search(rf'^{name} = "([^"]*)"', file.read(), re.MULTILINE)
    if found is None:
        raise ValueError(f"pyproject.toml: expected {name}")
    return found.group(1)


def build_wheel(
    wheel_directory: str,
    config_settings: Optional[Dict[str, Any]] = None,
    metadata_directory: Optional[str] = None,
) -> str:
    """Writes the wheel, and returns its name."""
    name, version = _field("name"), _field("version")
    info = f"{name}-{version}.dist-info"
    with open(os.path.join(_ROOT, "README.md"), encoding="utf-8") as file:
        readme = file.read()
    metadata = (
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        f"Summary: {_field('description')}\nRequires-Python: {_field('requires-python')}\n"
        f"License: MIT OR Apache-2.0\nDescription-Content-Type: text/markdown\n\n{readme}"
    )
    wheel = f"Wheel-Version: 1.0\nGenerator: esker\nRoot-Is-Purelib: true\nTag: {_TAG}\n"
    files: Dict[str, bytes] = {}
    for file_name in sorted(os.listdir(os.path.join(_ROOT, name))):
        if file_name.endswith(".py") or file_name == "py.typed":
            with open(os.path.join(_ROOT, name, file_name), "rb") as source:
                files[f"{name}/{file_name}"] = source.read()
    files[f"{info}/METADATA"] = metadata.encode()
    files[f"{info}/WHEEL"] = wheel.encode()
    record: List[str] = []
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{path},sha256={digest},{len(data)}\n")
    record.append(f"{info}/RECORD,,\n")
    files[f"{info}/RECORD"] = "".join(record).encode()
    file_name = f"{name}-{version}-{_TAG}.whl"
    with zipfile.ZipFile(
        os.path.join(wheel_directory, file_name), "w", zipfile.ZIP_DEFLATED
    ) as archive:
        for path, data in files.items():
            archive.writestr(zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0)), data)
    return file_name


def build_sdist(sdist_directory: str, config_settings: Optional[Dict[str, Any]] = None) -> str:
    """Only wheels are built."""
    raise NotImplementedError("the sources are those of the repository")
