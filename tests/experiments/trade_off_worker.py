"""A process that runs chapter 1's experiment; test_trade_off.py starts and kills it."""

import json
import sys

import torch

from companion.experiments import rollouts, trade_off
from companion.parameters import TradeOffParameters

if __name__ == "__main__":
    torch.set_num_threads(1)
    rollouts.PROBLEMS_A_PART = 1  # so that a kill finds some problems drawn and others not
    print("ready", flush=True)
    trade_off.run(TradeOffParameters.checked(json.loads(sys.argv[1])))
