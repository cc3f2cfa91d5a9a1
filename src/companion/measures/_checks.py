"""Input checks that the measures share."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def whole_number(name: str, value: object, at_least: int) -> int:
    """``value`` as an int; raises ValueError unless it is whole and at least ``at_least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < at_least:
        raise ValueError(f"{name}: one whole number, {at_least} or more; got {value!r}")
    return int(value)


def whole_numbers(name: str, values: ArrayLike, at_most: int) -> NDArray[np.int64]:
    """``values`` as an int64 array; raises ValueError unless each is whole, 0 to ``at_most``."""
    array = np.asarray(values)
    if array.size == 0:
        return array.astype(np.int64)  # numpy makes an empty list an array of floats
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name}: whole numbers such as [3, 0, 5]; got {array.dtype} values")
    if array.min() < 0 or array.max() > at_most:
        worst = array.min() if array.min() < 0 else array.max()
        raise ValueError(f"{name}: each is 0 to {at_most}; got {worst}")
    return array.astype(np.int64)


def confidence_level(level: float) -> None:
    """Raises ValueError unless ``level`` lies strictly between 0 and 1."""
    if not 0 < level < 1:
        raise ValueError(f"level: a probability between 0 and 1, such as 0.95; got {level!r}")
