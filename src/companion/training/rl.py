"""GRPO on the laboratory's model: sample groups, verify, weigh, take one step.

One update is made on each batch of samples, so the policy that is updated is the policy that
sampled: the importance ratio is 1, clipping never acts, and the gradient is the plain one,

    mean over samples of  advantage / length * grad log pi(completion | prompt),

with no KL term: nothing but the reward pulls (arXiv 2402.03300, without its penalty). Samples that
are equal token for token are computed once, weighted by the sum of their advantages.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from transformers import LlamaForCausalLM

from companion.countdown.problems import Problem
from companion.countdown.traces import verify_trace
from companion.lab import world
from companion.lab.tokenizer import EOS, PAD, Tokens, decode, prompt
from companion.policies import sampling
from companion.policies.decoding import Decoding
from companion.policies.protocol import Samples
from companion.policies.transformers import weights_hash
from companion.seeds import generator, seed_of
from companion.training import state
from companion.training.advantages import group_normalised
from companion.training.pretrain import Progress

SAVE_EVERY = 25  # steps; also the spacing of a lineage's checkpoints
ROWS_AT_ONCE = 128  # completions of one backward pass: few enough to stay in the cache
SILENT_STEPS = 10  # so many first steps without any reward variance stop the run

Reward = Literal["trace", "random"]


class NothingToLearnError(RuntimeError):
    """No group has had reward variance since the run began: every gradient was zero."""


@dataclass(frozen=True)
class GrpoRecipe:
    """Settings of a GRPO run; the defaults made the shipped lineage.

    ``reward``: ``"trace"`` gives 1 to a completion whose every line and answer are right, else 0;
    ``"random"`` gives 1 with probability one half whatever was written (the control).
    """

    seed: int = 0
    steps: int = 400
    problems_per_step: int = 96  # half of them with three numbers, half with four
    group_size: int = 16
    learning_rate: float = 3e-5
    max_tokens: int = 40  # the longest valid trace takes 32
    reward: Reward = "trace"


def grpo(
    recipe: GrpoRecipe, model: LlamaForCausalLM, folder: Path, progress: Progress
) -> LlamaForCausalLM:
    """Train a model in place from where it stands, or go on where a killed run was saved.

    Args:
        recipe: the settings.
        model: the base policy, in single precision.
        folder: where the resumable state, the log and ``step-NNNN`` weights live.
        progress: called after every step.

    Raises:
        ValueError: for settings that cannot work, before anything is computed.
        TrainingStateError: where the folder's state is damaged or of other settings.
        NothingToLearnError: where no group of the first steps has reward variance.
    """
    _check(recipe)
    model.train()
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=recipe.learning_rate, betas=(0.9, 0.99), weight_decay=0.0
    )
    # The base is a setting too: a state must not go on from another one.
    settings = {"kind": "grpo", "base": weights_hash(model), **asdict(recipe)}
    finished = state.load(folder, model, optimizer, settings)
    log = state.Log(folder, finished)
    varied = any(line["groups_without_variance"] < 1 for line in state.read_log(folder))
    for step in range(finished, recipe.steps):
        started = time.perf_counter()
        drawn = batch_of(recipe, step)
        samples = rollouts(recipe, model, drawn, step)
        rewards = np.stack(
            [
                rewards_of(recipe, problem, group, step, place)
                for place, (problem, group) in enumerate(zip(drawn, samples, strict=True))
            ]
        )
        advantages = group_normalised(rewards)
        optimizer.zero_grad()
        backward(model, [prompt(p) for p in drawn], samples, advantages)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        line = {
            "step": step + 1,
            **summary(samples, rewards, advantages),
            "seconds": time.perf_counter() - started,
        }
        log.append(**line)
        varied = varied or line["groups_without_variance"] < 1
        if not varied and step + 1 >= min(SILENT_STEPS, recipe.steps):
            raise NothingToLearnError(
                f"reward: no group had reward variance in the first {step + 1} steps, so nothing "
                "is learnt; check the reward, or start from a base that sometimes succeeds"
            )
        if (step + 1) % SAVE_EVERY == 0 or step + 1 == recipe.steps:
            save_weights(model, folder / f"step-{step + 1:04d}")
            state.save(folder, step + 1, model, optimizer, settings)
        progress(step + 1, recipe.steps, line)
    return model


def _check(recipe: GrpoRecipe) -> None:
    if recipe.reward not in get_args(Reward):
        raise ValueError(f"reward: {' or '.join(get_args(Reward))}; got {recipe.reward!r}")
    if recipe.steps < 1:
        raise ValueError(f"steps: 1 or more, such as 400; got {recipe.steps}")
    if recipe.group_size < 2:
        raise ValueError(f"group_size: 2 or more, such as 16; got {recipe.group_size}")
    if recipe.problems_per_step < 2 or recipe.problems_per_step % 2:
        raise ValueError(
            f"problems_per_step: an even number, such as 96; got {recipe.problems_per_step}"
        )
    # A shorter limit would cut right traces and give them reward zero without a word.
    if recipe.max_tokens < world.LONGEST_COMPLETION:
        raise ValueError(
            f"max_tokens: at least {world.LONGEST_COMPLETION}, the longest valid trace; "
            f"got {recipe.max_tokens}"
        )


def batch_of(recipe: GrpoRecipe, step: int) -> list[Problem]:
    """The training problems of a step, half of each size, none twice.

    None twice, because equal prompts of one step would draw equal samples.
    """
    each = recipe.problems_per_step // 2
    found: list[Problem] = []
    for size in world.SIZES:
        different: dict[tuple[int, ...], Problem] = {}
        index = seed_of("grpo problems", recipe.seed, size, step) % 2**48
        while len(different) < each:
            drawn = world.problem("train", size, index)
            different.setdefault(prompt(drawn), drawn)
            index += 1
        found += different.values()
    return found


def rollouts(
    recipe: GrpoRecipe, model: LlamaForCausalLM, problems: Sequence[Problem], step: int
) -> list[Samples]:
    """A group of samples for every problem, at temperature 1 and without top-p."""
    model.eval()
    samples = sampling.sample(
        model,
        [prompt(p) for p in problems],
        recipe.group_size,
        Decoding(temperature=1.0, top_p=1.0, max_tokens=recipe.max_tokens),
        seed_of("grpo samples", recipe.seed, step) % 2**63,
        end_tokens=frozenset([EOS]),
        pad_token=PAD,
    )
    model.train()
    return samples


def rewards_of(
    recipe: GrpoRecipe, problem: Problem, group: Samples, step: int, place: int
) -> NDArray[np.float64]:
    """The reward of every sample of a group, shape (n,)."""
    if recipe.reward == "random":
        rng = generator("random reward", recipe.seed, step, place)
        return rng.integers(0, 2, group.n).astype(np.float64)
    distinct = [
        float(ended and verify_trace(decode(tokens), problem, "whole").correct)
        for tokens, ended in zip(group.completions, group.finished, strict=True)
    ]
    return np.array(distinct)[group.sample_of]


def backward(
    model: LlamaForCausalLM,
    prompts: Sequence[Tokens],
    samples: Sequence[Samples],
    advantages: NDArray[np.float64],
) -> None:
    """Accumulate the gradient of the loss over all distinct completions that carry weight."""
    rows = []
    for given, group, advantage in zip(prompts, samples, advantages, strict=True):
        weights = np.bincount(group.sample_of, advantage, minlength=len(group.completions))
        for tokens, weight in zip(group.completions, weights, strict=True):
            if weight != 0:
                rows.append((len(given) + len(tokens), given, tokens, weight / len(tokens)))
    rows.sort(key=lambda row: row[0])
    for start in range(0, len(rows), ROWS_AT_ONCE):
        chunk = rows[start : start + ROWS_AT_ONCE]
        ids = torch.full((len(chunk), chunk[-1][0]), PAD)
        weight = torch.zeros(ids.shape)
        for i, (length, given, tokens, each) in enumerate(chunk):
            ids[i, :length] = torch.tensor(given + tokens)
            weight[i, len(given) : length] = each
        drawn = (weight != 0)[:, 1:]  # the tokens of the completions
        hidden = model.model(input_ids=ids).last_hidden_state[:, :-1]
        surprise = torch.nn.functional.cross_entropy(
            model.lm_head(hidden[drawn]), ids[:, 1:][drawn], reduction="none"
        )
        loss = (weight[:, 1:][drawn] * surprise).sum() / advantages.size
        loss.backward()  # type: ignore[no-untyped-call]


def summary(
    samples: Sequence[Samples], rewards: NDArray[np.float64], advantages: NDArray[np.float64]
) -> dict[str, float]:
    """What the log says of a step."""
    tokens = sum(
        int(group.counts @ np.array([len(c) for c in group.completions])) for group in samples
    )
    nats = sum(float(group.counts @ group.log_probabilities) for group in samples)
    half = len(samples) // 2
    return {
        "reward": float(np.nanmean(rewards)),
        "reward_3": float(np.nanmean(rewards[:half])),
        "reward_4": float(np.nanmean(rewards[half:])),
        "groups_without_variance": float(np.mean(~advantages.any(1))),
        "entropy": -nats / tokens,  # nats/token, over the sampled tokens
        "distinct": float(np.mean([len(group.completions) for group in samples])),
        "tokens": tokens,
    }


def save_weights(model: LlamaForCausalLM, folder: Path) -> None:
    """Save weights in single precision as ``folder``.safetensors, in one piece or not at all."""
    tensors = {n: v.detach().contiguous() for n, v in model.named_parameters()}
    path = folder.with_suffix(".safetensors")
    state.write_atomically(path, lambda temporary: save_file(tensors, temporary))
