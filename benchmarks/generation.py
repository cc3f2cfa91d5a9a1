"""Sampling with transformers' own ``generate``, to be measured against."""

from collections.abc import Sequence

import torch
from transformers import GenerationConfig

from companion.policies.decoding import Decoding
from companion.policies.protocol import Tokens
from companion.policies.transformers import TransformersPolicy

PROMPTS_AT_ONCE = 3  # times 320 samples: about the batch that is fastest here


def generate(
    policy: TransformersPolicy, prompts: Sequence[Tokens], n: int, decoding: Decoding, seed: int
) -> list[list[Tokens]]:
    """``n`` samples of every prompt, one row of the batch for each sample."""
    torch.manual_seed(seed)
    settings = GenerationConfig(
        do_sample=True,
        temperature=decoding.temperature,
        top_p=decoding.top_p,
        top_k=0,
        num_return_sequences=n,
        max_new_tokens=decoding.max_tokens,
        pad_token_id=policy.pad_token,
        eos_token_id=sorted(policy.end_tokens),
    )
    found: list[list[Tokens]] = []
    for start in range(0, len(prompts), PROMPTS_AT_ONCE):
        batch = prompts[start : start + PROMPTS_AT_ONCE]
        width = max(map(len, batch))
        ids = torch.full((len(batch), width), policy.pad_token)
        for row, prompt in enumerate(batch):
            ids[row, width - len(prompt) :] = torch.tensor(prompt)
        with torch.inference_mode():
            written = policy.model.generate(
                input_ids=ids,
                attention_mask=(ids != policy.pad_token).long(),
                generation_config=settings,
            )
        rows = [_cut(row, policy.end_tokens) for row in written[:, width:].tolist()]
        found += [rows[i * n : (i + 1) * n] for i in range(len(batch))]
    return found


def _cut(tokens: list[int], end_tokens: frozenset[int]) -> Tokens:
    for place, token in enumerate(tokens):
        if token in end_tokens:
            return tuple(tokens[: place + 1])
    return tuple(tokens)
