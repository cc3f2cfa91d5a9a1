"""Advantages: how a group's rewards become the weights of its samples.

One small function for each published variant, all of shape (groups, samples) in and out.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

EPSILON = 1e-6  # keeps a group of nearly equal rewards finite


def group_normalised(rewards: ArrayLike) -> NDArray[np.float64]:
    """GRPO's advantage: (reward - group mean) / group standard deviation (arXiv 2402.03300).

    A sample that could not be scored (reward NaN) takes no part: its advantage is 0, and the mean
    and the deviation are those of the others. A group of equal rewards has advantage 0 throughout.

    Args:
        rewards: shape (groups, samples).

    Raises:
        ValueError: for groups of one sample, which cannot be compared with anything.
    """
    values = np.asarray(rewards, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] < 2:
        raise ValueError(
            f"group_size: a group needs 2 samples or more, such as 16; got shape {values.shape}"
        )
    scored = ~np.isnan(values)
    count = np.maximum(scored.sum(1, keepdims=True), 1)
    centred = np.where(
        scored, values - np.where(scored, values, 0).sum(1, keepdims=True) / count, 0.0
    )
    deviation = np.sqrt((centred**2).sum(1, keepdims=True) / count)
    # Equal rewards such as 0.1 can leave a deviation of rounding errors.
    highest = np.where(scored, values, -np.inf).max(1, keepdims=True)
    lowest = np.where(scored, values, np.inf).min(1, keepdims=True)
    return np.where(highest > lowest, centred / (deviation + EPSILON), 0.0)
