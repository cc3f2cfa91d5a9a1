"""A process that pre-trains a tiny base and trains it on; test_state.py starts and kills it.

It prints one line after every step.
"""

import sys
from pathlib import Path

import torch

from companion.training import pretrain as pretraining
from companion.training import rl

BASE = pretraining.PretrainRecipe(hidden=32, steps=6, traces_per_size=2, pool=8, warmup=2)
GRPO = rl.GrpoRecipe(
    steps=6, problems_per_step=2, group_size=3, max_tokens=32, reward="random", learning_rate=1e-3
)


def train(folder, report, save_every=2):
    """Both runs, or what a killed process has left of them; returns the trained model."""
    torch.set_num_threads(1)
    pretraining.SAVE_EVERY = rl.SAVE_EVERY = save_every
    model = pretraining.pretrain(BASE, folder / "base", lambda done, *_: report(f"base {done}"))
    return rl.grpo(GRPO, model, folder / "grpo", lambda done, *_: report(f"grpo {done}"))


if __name__ == "__main__":
    train(Path(sys.argv[1]), lambda line: print(line, flush=True))
