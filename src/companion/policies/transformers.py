"""A policy that runs a transformers model in this process, on the CPU or a GPU."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.utils.logging import disable_progress_bar

from companion.policies import sampling
from companion.policies.decoding import Decoding, log_probabilities
from companion.policies.protocol import Samples, Tokens

WEIGHTS = "model.safetensors"
TOKENS_AT_ONCE = 16384  # of a teacher-forced batch, padding included


class CheckpointError(ValueError):
    """A checkpoint folder that cannot be used, and why."""


@dataclass(frozen=True)
class TransformersPolicy:
    """A local causal language model as a :class:`~companion.policies.protocol.Policy`.

    Args:
        model: in evaluation mode, on the device where it shall run.
        end_tokens: ids that end a completion.
        pad_token: id that fills up shorter prompts.
        identity: a hash of the weights.
        most_rows: the largest batch of a sampling step; results do not depend on it.
    """

    model: PreTrainedModel
    end_tokens: frozenset[int]
    pad_token: int
    identity: str
    most_rows: int = 1024

    def sample(
        self,
        prompts: Sequence[Tokens],
        n: int,
        decoding: Decoding,
        seed: int,
        first_sample: int = 0,
    ) -> list[Samples]:
        """Prefix-shared sampling; see :func:`companion.policies.sampling.sample`."""
        return sampling.sample(
            self.model,
            prompts,
            n,
            decoding,
            seed,
            end_tokens=self.end_tokens,
            pad_token=self.pad_token,
            first_sample=first_sample,
            most_rows=self.most_rows,
        )

    @torch.inference_mode()
    def score(
        self,
        prompts: Sequence[Tokens],
        continuations: Sequence[Sequence[Tokens]],
        decoding: Decoding,
    ) -> list[list[NDArray[np.float64]]]:
        """Teacher forcing in batches of similar length; see the protocol."""
        if len(prompts) != len(continuations):
            raise ValueError(
                f"continuations: a group for each of the {len(prompts)} prompts; "
                f"got {len(continuations)}"
            )
        scores = [[np.empty(0)] * len(group) for group in continuations]
        rows = [
            (len(prompts[i]) + len(continuation), i, j)
            for i, group in enumerate(continuations)
            for j, continuation in enumerate(group)
            if continuation
        ]
        rows.sort()
        self._check(prompts, rows[-1][0] if rows else 0)
        start = 0
        while start < len(rows):
            end = start + 1
            while end < len(rows) and rows[end][0] * (end + 1 - start) <= TOKENS_AT_ONCE:
                end += 1
            batch = [(prompts[i], continuations[i][j]) for _, i, j in rows[start:end]]
            for (_, i, j), values in zip(
                rows[start:end], self._score_batch(batch, decoding), strict=True
            ):
                scores[i][j] = values
            start = end
        return scores

    def _score_batch(
        self, batch: Sequence[tuple[Tokens, Tokens]], decoding: Decoding
    ) -> list[NDArray[np.float64]]:
        # Padded on the right: no real token attends to what comes after it.
        width = max(len(prompt) + len(continuation) for prompt, continuation in batch)
        ids = torch.full((len(batch), width), self.pad_token)
        for row, (prompt, continuation) in enumerate(batch):
            ids[row, : len(prompt) + len(continuation)] = torch.tensor(prompt + continuation)
        places = [
            (row, len(prompt) - 1 + t)
            for row, (prompt, continuation) in enumerate(batch)
            for t in range(len(continuation))
        ]
        row_index, position = torch.tensor(places).T.to(self.model.device)
        hidden = self.model.base_model(input_ids=ids.to(self.model.device)).last_hidden_state
        logits = self.model.lm_head(hidden[row_index, position])
        targets = torch.tensor([t for _, continuation in batch for t in continuation])
        scores = log_probabilities(logits, decoding)
        chosen = scores.gather(1, targets.to(scores.device)[:, None]).squeeze(1)
        lengths = [len(continuation) for _, continuation in batch]
        return np.split(chosen.double().cpu().numpy(), np.cumsum(lengths)[:-1])

    @torch.inference_mode()
    def next_token_distribution(
        self, prefixes: Sequence[Tokens], decoding: Decoding
    ) -> NDArray[np.float64]:
        """Log-probabilities (nats) of the token after each prefix, shape (prefixes, vocabulary)."""
        self._check(prefixes, max(map(len, prefixes), default=0))
        found = []
        width = max(map(len, prefixes), default=1)
        at_once = max(1, TOKENS_AT_ONCE // width)
        for start in range(0, len(prefixes), at_once):
            batch = prefixes[start : start + at_once]
            ids = torch.full((len(batch), width), self.pad_token)
            for row, prefix in enumerate(batch):
                ids[row, : len(prefix)] = torch.tensor(prefix)
            hidden = self.model.base_model(input_ids=ids.to(self.model.device)).last_hidden_state
            last = torch.tensor([len(prefix) - 1 for prefix in batch], device=hidden.device)
            logits = self.model.lm_head(hidden[torch.arange(len(batch)), last])
            found.append(log_probabilities(logits, decoding).double().cpu().numpy())
        return np.concatenate(found) if found else np.empty((0, self.model.config.vocab_size))

    def with_weights(self, weights: Mapping[str, Tensor]) -> "TransformersPolicy":
        """The same architecture with other weights, such as an interpolation of two checkpoints.

        Raises:
            ValueError: where names or shapes are not the model's.
        """
        model = deepcopy(self.model)
        own = model.state_dict()
        for name, value in weights.items():
            if name not in own or own[name].shape != value.shape:
                raise ValueError(f"weights: the model has no tensor {name} of {tuple(value.shape)}")
        model.load_state_dict(dict(weights), strict=False)
        return TransformersPolicy(
            model, self.end_tokens, self.pad_token, weights_hash(model), self.most_rows
        )

    def _check(self, prompts: Sequence[Tokens], longest: int) -> None:
        if not all(prompts):
            raise ValueError("prompts: an empty prompt has no next token; give at least one token")
        context = self.model.config.max_position_embeddings
        if longest > context:
            raise ValueError(
                f"continuations: {longest} tokens with their prompt; the model reads {context}"
            )


def load_policy(folder: Path, *, use_gpu: bool = False) -> TransformersPolicy:
    """Load a checkpoint folder (``config.json`` and ``model.safetensors``) in single precision.

    Nothing in the folder is executed, and neither its generation_config.json nor any other file
    changes how tokens are drawn.

    Raises:
        CheckpointError: where the folder is missing, incomplete or damaged.
        ValueError: where a GPU is asked for and there is none.
    """
    if use_gpu and not torch.cuda.is_available():
        raise ValueError("use_gpu: no GPU is available here; a valid value is False")
    for name in ("config.json", WEIGHTS):
        if not (folder / name).is_file():
            raise CheckpointError(f"checkpoint {folder.name}: the folder has no {name}")
    disable_progress_bar()  # it would end up in the pages of the book
    try:
        model, report = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=torch.float32,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
        )
    except Exception as damage:  # a damaged configuration lets transformers stumble anywhere
        first_sentence = " ".join(str(damage).split()).split(". ")[0].rstrip(".")
        what = f"{type(damage).__name__}: {first_sentence}"
        raise CheckpointError(
            f"checkpoint {folder.name} is damaged, or its files do not belong together ({what})"
        ) from None
    # transformers would make up the first and leave out the second.
    differing = sorted({*report["missing_keys"], *report["unexpected_keys"]})
    if differing:
        raise CheckpointError(
            f"checkpoint {folder.name}: {WEIGHTS} and config.json do not belong together "
            f"({len(differing)} tensors are in one of them only, such as {differing[0]})"
        )
    if not all(value.isfinite().all() for value in model.parameters()):
        raise CheckpointError(f"checkpoint {folder.name} is damaged: weights are not finite")
    model.to("cuda" if use_gpu else "cpu").eval()
    return policy_of(model)


def policy_of(model: PreTrainedModel) -> TransformersPolicy:
    """A policy around a model at hand, its end and pad tokens as its configuration says.

    Raises:
        CheckpointError: where the configuration names no end token.
    """
    ends = model.config.eos_token_id
    if ends is None or ends == []:
        raise CheckpointError("config.json: eos_token_id names no end token; give one, such as 1")
    end_tokens = frozenset(ends if isinstance(ends, list) else [ends])
    pad = model.config.pad_token_id
    # Padding is masked, so any id does where a model has none of its own.
    return TransformersPolicy(
        model, end_tokens, pad if pad is not None else min(end_tokens), weights_hash(model)
    )


def weights_hash(model: PreTrainedModel) -> str:
    """A hash over the names, shapes and values of all parameters."""
    digest = sha256()
    for name, value in sorted(model.named_parameters()):
        digest.update(f"{name}{tuple(value.shape)}{value.dtype}".encode())
        digest.update(value.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:32]
