"""Decoding: from a model's logits to the distribution that tokens are drawn from.

Sampling, teacher forcing and exact mode all go through :func:`log_probabilities`, so that what is
scored is what is sampled.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

SMALLEST_TEMPERATURE = 1e-6  # below it, logits divided by the temperature overflow
ROUNDING = 1e-6  # of single-precision sums: a set that is so close to top-p has reached it
HEAD = 8  # most nuclei are far smaller than the vocabulary: look at this many tokens first


@dataclass(frozen=True)
class Decoding:
    """How tokens are drawn. There are no other settings: no top-k, no penalties.

    Args:
        temperature: divides the logits; 0 takes the likeliest token (of equals, the lowest id).
        top_p: keep the smallest set of likeliest tokens whose probability reaches this.
        max_tokens: the longest continuation, its end token included.

    Raises:
        ValueError: for an impossible value, naming it and a valid one.
    """

    temperature: float
    top_p: float
    max_tokens: int

    def __post_init__(self) -> None:
        warm = math.isfinite(self.temperature) and self.temperature >= SMALLEST_TEMPERATURE
        if not (self.temperature == 0 or warm):
            raise ValueError(
                f"temperature: 0, or {SMALLEST_TEMPERATURE} and more, such as 0.7; "
                f"got {self.temperature}"
            )
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p: above 0 and at most 1, such as 0.9; got {self.top_p}")
        if not (self.max_tokens >= 1 and self.max_tokens % 1 == 0):
            raise ValueError(
                f"max_tokens: a whole number, 1 or more, such as 40; got {self.max_tokens}"
            )


def log_probabilities(logits: Tensor, decoding: Decoding) -> Tensor:
    """The log-probability of every next token under a decoding distribution.

    Args:
        logits: shape (..., vocabulary), as the model gives them.
        decoding: temperature and top-p are applied in this order.

    Returns:
        Shape (..., vocabulary), in nats; minus infinity for tokens that are never drawn.

    Raises:
        ValueError: for logits that give no distribution: NaN or infinite.
    """
    if not logits.amax(-1).isfinite().all():
        raise ValueError("logits: not finite; the weights are damaged, or training has diverged")
    if decoding.temperature == 0:
        greedy = torch.full_like(logits, -math.inf)
        return greedy.scatter_(-1, logits.argmax(-1, keepdim=True), 0.0)
    scores = torch.log_softmax(logits.float() / decoding.temperature, dim=-1)
    if decoding.top_p == 1:
        return scores
    flat = scores.reshape(-1, scores.shape[-1])
    wanted = max(decoding.top_p - ROUNDING, ROUNDING)
    return _nucleus(flat, wanted).reshape(scores.shape)


def _nucleus(scores: Tensor, top_p: float) -> Tensor:
    """The smallest set of likeliest tokens that reaches ``top_p``, renormalised, row by row.

    Sorting only the head of each row is enough where the set ends inside it, and the next token
    is less likely than the last one kept; the other rows are sorted as a whole.
    """
    if scores.shape[-1] <= HEAD:
        return _nucleus_by_sorting(scores, top_p)
    top = scores.topk(HEAD, dim=-1).values
    mass = top.double().exp()
    # The likeliest token is always kept: nothing comes before it.
    size = (mass.cumsum(-1) - mass < top_p).sum(-1, keepdim=True)
    last = top.gather(-1, size - 1)
    after = top.gather(-1, size.clamp(max=HEAD - 1))
    total = mass.cumsum(-1).gather(-1, size - 1).log().to(scores.dtype)
    kept = torch.where(scores >= last, scores - total, -math.inf)
    undecided = (after >= last).squeeze(-1)
    if undecided.any():
        kept[undecided] = _nucleus_by_sorting(scores[undecided], top_p)
    return kept


def _nucleus_by_sorting(scores: Tensor, top_p: float) -> Tensor:
    """The same, from whole rows; of equally likely tokens the lowest ids come first."""
    ordered, order = scores.sort(dim=-1, descending=True, stable=True)
    mass = ordered.double().exp()
    kept = mass.cumsum(-1) - mass < top_p
    total = mass.masked_fill(~kept, 0.0).sum(-1, keepdim=True).log().to(scores.dtype)
    values = torch.where(kept, ordered - total, -math.inf)
    return torch.full_like(scores, -math.inf).scatter_(-1, order, values)
