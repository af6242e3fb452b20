"""Packages that only some calls need: asked for when they are called, by name and with the line that installs them."""

from __future__ import annotations

import importlib
from typing import Any


def needed(what: str, extra: str, *names: str) -> list[Any]:
    """Modules by name, or an ``ImportError`` that says which is missing for ``what`` and how it is installed."""
    found = []
    for name in names:
        try:
            found.append(importlib.import_module(name))
        except ImportError as error:
            if error.name is not None and error.name.split(".")[0] != name:
                raise
            raise ImportError(f"{what} needs {name}: pip install {name}, or all that it needs by pip install './python[{extra}]'", name=name) from None
    return found
