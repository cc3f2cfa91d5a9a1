"""Which code made the tables on disk."""

import hashlib
from functools import cache
from pathlib import Path

import companion


@cache
def sampler_hash() -> str:
    """A hash of the code that samples and scores: an edited sampler never reads old samples."""
    root = Path(companion.__file__).parent
    digest = hashlib.sha256()
    sources = [root / "seeds.py", root / "experiments/rollouts.py", root / "experiments/exactly.py"]
    for folder in ("countdown", "lab", "policies"):
        sources += sorted((root / folder).glob("*.py"))
    for source in sources:
        digest.update(source.name.encode("utf-8"))
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]
