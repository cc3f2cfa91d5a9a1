"""Decoding: from a model's logits to the distribution that tokens are drawn from.

Sampling, teacher forcing and exact mode all go through :func:`log_probabilities`, so that what is
scored is what is sampled.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

HEAD = 48  # most nuclei are far smaller than the vocabulary: look at this many tokens first


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
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise ValueError(f"temperature: 0 or more, such as 0.7; got {self.temperature}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p: above 0 and at most 1, such as 0.9; got {self.top_p}")
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens: 1 or more, such as 40; got {self.max_tokens}")


def log_probabilities(logits: Tensor, decoding: Decoding) -> Tensor:
    """The log-probability of every next token under a decoding distribution.

    Args:
        logits: shape (..., vocabulary), as the model gives them.
        decoding: temperature and top-p are applied in this order.

    Returns:
        Shape (..., vocabulary), in nats; minus infinity for tokens that are never drawn.
    """
    if decoding.temperature == 0:
        greedy = torch.full_like(logits, -math.inf)
        return greedy.scatter_(-1, logits.argmax(-1, keepdim=True), 0.0)
    scores = torch.log_softmax(logits.float() / decoding.temperature, dim=-1)
    if decoding.top_p == 1:
        return scores
    flat = scores.reshape(-1, scores.shape[-1])
    smallest = _smallest_kept(flat, decoding.top_p, min(HEAD, flat.shape[-1]))
    kept = torch.where(flat >= smallest, flat, -math.inf)
    _drop_ties(flat, kept, smallest, decoding.top_p)
    return (kept - torch.logsumexp(kept, -1, keepdim=True)).reshape(scores.shape)


def _smallest_kept(scores: Tensor, top_p: float, head: int) -> Tensor:
    """For each row, the score of the least likely token inside the nucleus, shape (rows, 1)."""
    top = scores.topk(head, dim=-1).values
    before = top.exp().double().cumsum(-1) - top.exp()
    # The nucleus may be larger than the head; the last token looked at then still lies inside it.
    larger = (before[:, -1] + top[:, -1].exp() < top_p).nonzero().squeeze(-1)
    smallest = top.masked_fill(before >= top_p, math.inf).min(-1, keepdim=True).values
    if len(larger) and head < scores.shape[-1]:
        smallest[larger] = _smallest_kept(scores[larger], top_p, scores.shape[-1])
    return smallest


def _drop_ties(scores: Tensor, kept: Tensor, smallest: Tensor, top_p: float) -> None:
    """Of several tokens with exactly the smallest kept score, keep the lowest ids that suffice."""
    tied = scores == smallest
    rows = (tied.sum(-1) > 1).nonzero().squeeze(-1)
    if len(rows) == 0:
        return
    above = torch.where(scores[rows] > smallest[rows], scores[rows].exp().double(), 0.0).sum(-1)
    each = smallest[rows].exp().double()
    before = above[:, None] + (tied[rows].cumsum(-1) - 1) * each
    kept[rows] = kept[rows].masked_fill(tied[rows] & (before >= top_p), -math.inf)
