"""Pre-training: a base model that can calculate, tries every entrance, and rarely hits.

The paper's base models arrive with these habits. Here they are taught: traces whose arithmetic is
always right, a small share of which reaches the target, spread evenly over the entrances.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor
from transformers import LlamaForCausalLM

from companion.lab import world
from companion.lab.model import new_model
from companion.lab.tokenizer import PAD, Tokens, completion, prompt
from companion.seeds import generator, seed_of
from companion.training import state

SAVE_EVERY = 100  # steps between resumable states

Progress = Callable[[int, int, dict[str, float]], None]
"""Called after every step with (finished steps, steps in all, the step's log line)."""


@dataclass(frozen=True)
class PretrainRecipe:
    """Settings of a pre-training run; the defaults made the shipped base model."""

    seed: int = 0
    hidden: int = 64
    steps: int = 2500
    traces_per_size: int = 64  # so a step reads 128 traces
    on_target_3: float = 0.1  # share of the traces that reach the target
    on_target_4: float = 0.2  # rarer by chance alone, so shown more often
    pool: int = 4000  # draws of training problems of each size
    learning_rate: float = 2e-3
    warmup: int = 100
    weight_decay: float = 0.01


def pretrain(recipe: PretrainRecipe, folder: Path, progress: Progress) -> LlamaForCausalLM:
    """Train a base model, or finish training it: a killed run goes on where it was saved.

    Args:
        recipe: the settings.
        folder: where the resumable state and the log live.
        progress: called after every step.

    Returns:
        The trained model, in single precision.

    Raises:
        ValueError: for settings that cannot work, before anything is computed.
        TrainingStateError: where the folder's state is damaged or of other settings.
    """
    _check(recipe)
    model = new_model(seed_of("model", recipe.seed) % 2**31, recipe.hidden)
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=recipe.learning_rate,
        betas=(0.9, 0.95),
        weight_decay=recipe.weight_decay,
    )
    settings = {"kind": "pretrain", **asdict(recipe)}
    finished = state.load(folder, model, optimizer, settings)
    log = state.Log(folder, finished)
    pools = {
        size: [world.problem("train", size, index) for index in range(recipe.pool)]
        for size in world.SIZES
    }
    for step in range(finished, recipe.steps):
        started = time.perf_counter()
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(recipe, step)
        rng = generator("pretrain", recipe.seed, step)
        loss = torch.zeros(())
        for size, on_target in ((3, recipe.on_target_3), (4, recipe.on_target_4)):
            pool = pools[size]
            drawn = [pool[i] for i in rng.integers(len(pool), size=recipe.traces_per_size)]
            traces = [completion(world.demonstration(p, on_target, rng)) for p in drawn]
            loss = loss + next_token_loss(model, [prompt(p) for p in drawn], traces) / 2
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        line = {
            "step": step + 1,
            "loss": float(loss.detach()),
            "seconds": time.perf_counter() - started,
        }
        log.append(**line)
        if (step + 1) % SAVE_EVERY == 0 or step + 1 == recipe.steps:
            state.save(folder, step + 1, model, optimizer, settings)
        progress(step + 1, recipe.steps, line)
    return model


def _check(recipe: PretrainRecipe) -> None:
    for name in ("steps", "traces_per_size", "pool"):
        if getattr(recipe, name) < 1:
            raise ValueError(f"{name}: 1 or more; got {getattr(recipe, name)}")
    if recipe.hidden < 32 or recipe.hidden % 32:
        raise ValueError(f"hidden: a multiple of 32, such as 64; got {recipe.hidden}")
    for name in ("on_target_3", "on_target_4"):
        if not 0 <= getattr(recipe, name) <= 1:
            raise ValueError(f"{name}: a share from 0 to 1; got {getattr(recipe, name)}")


def learning_rate(recipe: PretrainRecipe, step: int) -> float:
    """Linear warm-up, then a cosine down to zero."""
    if step < recipe.warmup:
        return recipe.learning_rate * (step + 1) / recipe.warmup
    done = (step - recipe.warmup) / max(1, recipe.steps - recipe.warmup)
    return recipe.learning_rate * 0.5 * (1 + math.cos(math.pi * done))


def next_token_loss(
    model: LlamaForCausalLM, prompts: Sequence[Tokens], completions: Sequence[Tokens]
) -> Tensor:
    """Mean negative log-likelihood of the completions' tokens (nats/token), prompts masked.

    The mask goes by position and not by token id, so an end token always counts.
    """
    rows = [p + c for p, c in zip(prompts, completions, strict=True)]
    width = max(map(len, rows))
    ids = torch.full((len(rows), width), PAD)
    labels = torch.full((len(rows), width), -100)
    for i, (given, row) in enumerate(zip(prompts, rows, strict=True)):
        ids[i, : len(row)] = torch.tensor(row)
        labels[i, len(given) : len(row)] = torch.tensor(row[len(given) :])
    logits = model(input_ids=ids).logits
    return torch.nn.functional.cross_entropy(
        logits[:, :-1].reshape(-1, logits.shape[-1]), labels[:, 1:].reshape(-1), ignore_index=-100
    )
