"""Prefix-shared sampling: one forward pass for every distinct prefix, not for every sample.

Independent samples of one prompt share the prompt, often the first token, often the next one. At
every step the samples are grouped by what they have written so far; each group costs one row of
the forward pass, and each sample then draws its own next token from the row's distribution. The
result is exactly that of sampling one by one, for a fraction of the work: the more a policy has
narrowed, the less it costs.

Sample ``i`` draws its ``t``-th token by inverting the cumulative distribution at a uniform number
that belongs to (seed, prompt, t, i), so it comes out the same in any batch.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from companion.policies.decoding import Decoding, log_probabilities
from companion.policies.protocol import Samples, Tokens
from companion.seeds import seed_of

Array = NDArray[Any]


def uniforms(seed: int, prompt: Tokens, depth: int, first: int, count: int) -> NDArray[np.float64]:
    """The uniform numbers in [0, 1) of samples ``first … first + count - 1`` at one depth."""
    stream = np.random.Philox(key=seed_of("sample", seed, *prompt), counter=[0, 0, 0, depth])
    return np.random.Generator(stream).random(first + count)[first:]


@dataclass
class _Front:
    """The distinct unfinished prefixes of some prompts, one row each, and their samples."""

    cache: DynamicCache
    mask: Tensor | None  # (rows, width), absent where no prompt is padded
    logits: Tensor  # (rows, vocabulary), of the next token
    prompt_of: Array  # (rows,)
    written: list[Tokens]  # (rows,)
    log_probability: Array  # (rows,)
    row_of: Array  # (live samples,)
    sample: Array  # (live samples,), counted from 0 within the prompt
    depth: int

    def rows(self, chosen: Array) -> "_Front":
        """The front of some of its rows, with their samples."""
        index = torch.as_tensor(chosen, device=self.logits.device)
        new_row = np.full(len(self.prompt_of), -1)
        new_row[chosen] = np.arange(len(chosen))
        live = new_row[self.row_of] >= 0
        return _Front(
            cache=_selected(self.cache, index),
            mask=None if self.mask is None else self.mask[index],
            logits=self.logits[index],
            prompt_of=self.prompt_of[chosen],
            written=[self.written[row] for row in chosen],
            log_probability=self.log_probability[chosen],
            row_of=new_row[self.row_of[live]],
            sample=self.sample[live],
            depth=self.depth,
        )


@dataclass
class _Finished:
    """What has been written to its end, by prompt."""

    completions: list[Tokens] = field(default_factory=list)
    log_probabilities: list[float] = field(default_factory=list)
    finished: list[bool] = field(default_factory=list)
    samples: list[Array] = field(default_factory=list)

    def add(self, tokens: Tokens, log_probability: float, ended: bool, samples: Array) -> None:
        self.completions.append(tokens)
        self.log_probabilities.append(log_probability)
        self.finished.append(ended)
        self.samples.append(samples)

    def as_samples(self, n: int) -> Samples:
        """In the order of the tokens, so that the order of the work leaves no trace."""
        order = sorted(range(len(self.completions)), key=self.completions.__getitem__)
        sample_of = np.empty(n, dtype=np.int64)
        for position, index in enumerate(order):
            sample_of[self.samples[index]] = position
        return Samples(
            completions=tuple(self.completions[i] for i in order),
            sample_of=sample_of,
            log_probabilities=np.array([self.log_probabilities[i] for i in order]),
            finished=np.array([self.finished[i] for i in order], dtype=bool),
        )


def sample(
    model: PreTrainedModel,
    prompts: Sequence[Tokens],
    n: int,
    decoding: Decoding,
    seed: int,
    *,
    end_tokens: frozenset[int],
    pad_token: int,
    first_sample: int = 0,
    most_rows: int = 1024,
) -> list[Samples]:
    """Draw ``n`` samples of every prompt from a transformers model.

    Args:
        model: any causal language model with a key-value cache.
        prompts: token ids; different lengths are padded on the left.
        n: samples a prompt.
        decoding: temperature, top-p and the longest completion.
        seed: of all draws.
        end_tokens: ids that end a completion; the end token is part of it.
        pad_token: id that fills up shorter prompts.
        first_sample: the index of the first sample, to draw a long run in pieces.
        most_rows: the largest batch of a forward pass.

    Raises:
        ValueError: for no samples, an empty prompt, one that leaves no room in the context or has
            a token that the model does not know, or logits that are not finite.
    """
    _check(model, prompts, n, decoding, first_sample, most_rows)
    done = [_Finished() for _ in prompts]
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    prompts_at_once = max(1, most_rows // min(n, 32))
    for start in range(0, len(order), prompts_at_once):
        chosen = np.array(order[start : start + prompts_at_once])
        fronts = [_prefill(model, [prompts[i] for i in chosen], chosen, n, pad_token)]
        while fronts:
            front = fronts.pop()
            if len(front.written) > most_rows:
                half = len(front.written) // 2
                fronts.append(front.rows(np.arange(half, len(front.written))))
                fronts.append(front.rows(np.arange(half)))
                continue
            advanced = _advance(
                model, front, prompts, decoding, seed, first_sample, end_tokens, done
            )
            if advanced is not None:
                fronts.append(advanced)
    return [finished.as_samples(n) for finished in done]


def _check(
    model: PreTrainedModel,
    prompts: Sequence[Tokens],
    n: int,
    decoding: Decoding,
    first_sample: int,
    most_rows: int,
) -> None:
    if n < 1:
        raise ValueError(f"n: 1 or more samples, such as 320; got {n}")
    if first_sample < 0:
        raise ValueError(f"first_sample: 0 or more, such as 0; got {first_sample}")
    if most_rows < 1:
        raise ValueError(f"most_rows: 1 or more, such as 1024; got {most_rows}")
    context = model.config.max_position_embeddings
    for prompt in prompts:
        if not prompt:
            raise ValueError("prompts: an empty prompt has no next token; give at least one token")
        last = model.config.vocab_size - 1
        if not all(isinstance(token, int | np.integer) and 0 <= token <= last for token in prompt):
            raise ValueError(f"prompts: token ids from 0 to {last}; got {prompt!r}")
        if len(prompt) + decoding.max_tokens > context:
            raise ValueError(
                f"max_tokens: a prompt of {len(prompt)} tokens leaves {context - len(prompt)} of "
                f"the model's {context}; got {decoding.max_tokens}"
            )


@torch.inference_mode()
def _prefill(
    model: PreTrainedModel, prompts: Sequence[Tokens], indices: Array, n: int, pad_token: int
) -> _Front:
    width = max(map(len, prompts))
    ids = torch.full((len(prompts), width), pad_token, device=model.device)
    mask = torch.zeros((len(prompts), width), dtype=torch.long, device=model.device)
    for row, prompt in enumerate(prompts):
        ids[row, width - len(prompt) :] = torch.tensor(prompt)
        mask[row, width - len(prompt) :] = 1
    padded = bool((mask == 0).any())
    cache = DynamicCache(config=model.config)
    logits = model(
        input_ids=ids,
        attention_mask=mask if padded else None,
        position_ids=(mask.cumsum(-1) - 1).clamp(min=0),
        past_key_values=cache,
        logits_to_keep=1,
    ).logits[:, -1]
    return _Front(
        cache=cache,
        mask=mask if padded else None,
        logits=logits,
        prompt_of=indices,
        written=[()] * len(prompts),
        log_probability=np.zeros(len(prompts)),
        row_of=np.repeat(np.arange(len(prompts)), n),
        sample=np.tile(np.arange(n), len(prompts)),
        depth=0,
    )


@torch.inference_mode()
def _advance(
    model: PreTrainedModel,
    front: _Front,
    prompts: Sequence[Tokens],
    decoding: Decoding,
    seed: int,
    first_sample: int,
    end_tokens: frozenset[int],
    done: list[_Finished],
) -> _Front | None:
    """Draw one token for every sample; book what has ended, and step on with the rest."""
    scores = log_probabilities(front.logits, decoding)
    tokens = _draw(scores, front, prompts, seed, first_sample)
    vocabulary = scores.shape[-1]
    # The new distinct prefixes are the distinct (row, token) pairs.
    pairs, pair_of = np.unique(front.row_of * vocabulary + tokens, return_inverse=True)
    parents, drawn = pairs // vocabulary, pairs % vocabulary
    gained = scores[torch.as_tensor(parents), torch.as_tensor(drawn)].double().cpu().numpy()
    log_probability = front.log_probability[parents] + gained
    written = [(*front.written[p], int(t)) for p, t in zip(parents, drawn, strict=True)]
    ended = np.isin(drawn, list(end_tokens))
    stops = ended | (front.depth + 1 == decoding.max_tokens)
    for pair, members in _members(pair_of, np.flatnonzero(stops)):
        done[front.prompt_of[parents[pair]]].add(
            written[pair], log_probability[pair], bool(ended[pair]), front.sample[members]
        )
    going = np.flatnonzero(~stops)
    if len(going) == 0:
        return None
    row = np.full(len(pairs), -1)
    row[going] = np.arange(len(going))
    live = row[pair_of] >= 0
    cache, mask = front.cache, front.mask
    if not np.array_equal(parents[going], np.arange(len(front.written))):
        index = torch.as_tensor(parents[going], device=model.device)
        cache = _selected(cache, index)
        mask = None if mask is None else mask[index]
    if mask is not None:
        mask = torch.cat([mask, mask.new_ones(len(going), 1)], dim=1)
    prompt_of = front.prompt_of[parents[going]]
    positions = [len(prompts[p]) + front.depth for p in prompt_of]
    logits = model(
        input_ids=torch.as_tensor(drawn[going], device=model.device)[:, None],
        attention_mask=mask,
        position_ids=torch.tensor(positions, device=model.device)[:, None],
        past_key_values=cache,
    ).logits[:, -1]
    return _Front(
        cache=cache,
        mask=mask,
        logits=logits,
        prompt_of=prompt_of,
        written=[written[i] for i in going],
        log_probability=log_probability[going],
        row_of=row[pair_of[live]],
        sample=front.sample[live],
        depth=front.depth + 1,
    )


def _draw(
    scores: Tensor, front: _Front, prompts: Sequence[Tokens], seed: int, first_sample: int
) -> Array:
    """The next token of every live sample, by inverting its row's cumulative distribution."""
    cumulative = scores.double().exp().cumsum(-1).cpu().numpy()
    cumulative /= cumulative[:, -1:]
    u = np.empty(len(front.sample))
    prompt_of_sample = front.prompt_of[front.row_of]
    for prompt, members in _members(prompt_of_sample, np.unique(prompt_of_sample)):
        most = int(front.sample[members].max()) + 1
        stream = uniforms(seed, prompts[prompt], front.depth, first_sample, most)
        u[members] = stream[front.sample[members]]
    return _inverted(cumulative, front.row_of, u)


def _inverted(cumulative: Array, row_of: Array, u: Array) -> Array:
    """For every u, the first token whose cumulative probability in its row exceeds u."""
    # Row r's distribution is shifted to [r, r + 1), so one search serves all rows.
    rows, vocabulary = cumulative.shape
    shifted = (cumulative + np.arange(rows)[:, None]).ravel()
    # A u close to 1 must not be rounded up into the next row.
    wanted = np.minimum(u + row_of, np.nextafter(row_of + 1.0, 0))
    tokens: Array = np.searchsorted(shifted, wanted, side="right") - row_of * vocabulary
    return tokens


def _members(group_of: Array, groups: Array) -> list[tuple[int, Array]]:
    """For each wanted group, the positions that belong to it."""
    order = np.argsort(group_of, kind="stable")
    starts = np.searchsorted(group_of[order], groups, side="left")
    ends = np.searchsorted(group_of[order], groups, side="right")
    return [(int(g), order[a:b]) for g, a, b in zip(groups, starts, ends, strict=True)]


def _selected(cache: DynamicCache, rows: Tensor) -> DynamicCache:
    """A new cache with the given rows of an old one, repeats allowed; the old one stays."""
    selected = copy.copy(cache)
    selected.layers = [copy.copy(layer) for layer in cache.layers]
    selected.batch_select_indices(rows)
    return selected
