"""Randomness from one explicit seed, spawned by hashing.

A stream belongs to a path of names and numbers, such as ``("lab", "train", 0, 17)``. Paths are
hashed, so neighbouring seeds and indices share nothing, and a stream does not depend on what was
drawn before it or in which process.
"""

from hashlib import blake2b

import numpy as np

Part = str | int


def seed_of(*path: Part) -> int:
    """A 128-bit seed for a path of names and numbers.

    >>> seed_of("train", 0, 1) == seed_of("train", 1, 0)
    False
    """
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in path)
    return int.from_bytes(blake2b(text.encode("utf-8"), digest_size=16).digest(), "little")


def generator(*path: Part) -> np.random.Generator:
    """A numpy generator of its own for a path of names and numbers."""
    return np.random.Generator(np.random.Philox(key=seed_of(*path)))
