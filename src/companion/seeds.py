"""Randomness from one explicit seed, spawned by hashing.

A stream belongs to a path of names and numbers, such as ``("lab", "train", 0, 17)``. Paths are
hashed, so neighbouring seeds and indices share nothing, and a stream does not depend on what was
drawn before it or in which process.
"""

from hashlib import blake2b
from operator import index

import numpy as np

Part = str | int

_BETWEEN = "\x1f"  # the unit separator: what parts a path must not stand inside a name


def seed_of(*path: Part) -> int:
    """A 128-bit seed for a path of names and numbers.

    A name and a number never count as the same (``"7"``, ``7``); whole numbers of any type do.

    Raises:
        ValueError: for a part that is neither text nor a whole number, or text that holds the
            character U+001F.

    >>> seed_of("train", 0, 1) == seed_of("train", 1, 0)
    False
    """
    text = _BETWEEN.join(map(_written, path))
    return int.from_bytes(blake2b(text.encode("utf-8"), digest_size=16).digest(), "little")


def generator(*path: Part) -> np.random.Generator:
    """A numpy generator of its own for a path of names and numbers."""
    return np.random.Generator(np.random.Philox(key=seed_of(*path)))


def _written(part: Part) -> str:
    if isinstance(part, str) and _BETWEEN not in part:
        return f"str:{part}"
    if isinstance(part, str | bool) or not hasattr(part, "__index__"):
        raise ValueError(
            f'path: names without U+001F and whole numbers, such as ("train", 0); got {part!r}'
        )
    return f"int:{index(part)}"
