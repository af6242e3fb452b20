"""Settings of environments: as JSON, merged, copied, compared; and numbers of calls, checked."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np


def to_json(settings: Mapping[str, Any]) -> str:
    """Settings as JSON; paths and NumPy numbers are taken as what they stand for."""

    def plain(value: Any) -> Any:
        if isinstance(value, np.generic):
            return value.item()
        if hasattr(value, "__fspath__"):
            return value.__fspath__()
        raise ValueError(f"a setting is a {type(value).__name__}: allowed are numbers, strings, lists, dicts and paths")

    try:
        return json.dumps(settings, default=plain, allow_nan=False)
    except ValueError as error:
        if "JSON compliant" in str(error):
            raise ValueError("a setting is NaN or infinite: allowed are finite numbers") from None
        raise


def nearest(name: Any, known: Iterable[str]) -> str:
    """What is meant by a name that nobody knows, as a sentence after a refusal; empty where nothing is close."""
    close = get_close_matches(str(name), list(known), 1)
    return f". Did you mean {close[0]}?" if close else ""


def checked_whole(name: str, value: Any, least: int, most: int) -> int:
    """A whole number within a range; a bool is none."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or not least <= value <= most:
        end = "2^64 - 1" if most == 2**64 - 1 else str(most)
        raise ValueError(f"{name} = {value!r}: allowed is a whole number from {least} to {end}")
    return int(value)


def checked_seed(seed: Any) -> int:
    """A seed from 0 to 2^64 - 1."""
    return checked_whole("seed", seed, 0, 2**64 - 1)


def checked_num_threads(num_threads: Any) -> int:
    """A number of threads from 0, which is all cores, to 1024."""
    return checked_whole("num_threads", num_threads, 0, 1024)


def merged(settings: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """``settings`` with ``changes`` key by key, at any depth."""
    both = dict(settings)
    for key, change in changes.items():
        old = both.get(key)
        both[key] = merged(old, change) if isinstance(old, dict) and isinstance(change, dict) else change
    return both


def kept(settings: Any) -> Any:
    """A copy of dicts and lists at any depth; everything else, tables of jobs among it, is the same object."""
    if isinstance(settings, Mapping):
        return {key: kept(value) for key, value in settings.items()}
    return [kept(value) for value in settings] if isinstance(settings, (list, tuple)) else settings


def are_same(left: Any, right: Any) -> bool:
    """Whether settings are surely equal. Tables and arrays never are: they may have changed in place."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(are_same(value, right[key]) for key, value in left.items())
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(are_same, left, right))
    if isinstance(left, (str, int, float, np.generic, os.PathLike)) or left is None:
        return type(left) is type(right) and bool(left == right)
    # A workload cannot change.
    return left is right and type(left).__name__ == "Workload"
