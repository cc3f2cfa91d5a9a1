"""Policies: what can be sampled and scored, as token ids in and token ids out.

- ``protocol``: ``Policy``, which everything above sees, and ``Samples``, what it draws.
- ``decoding``: ``Decoding``, from logits to the distribution that tokens are drawn from.
- ``transformers``: ``load_policy`` and ``policy_of``, a transformers model in this process.
- ``sampling``: ``sample``, one forward pass for every distinct prefix.
- ``exact``: ``exact``, the probability of every solution, without sampling.

Import from the modules: importing this package alone loads neither torch nor transformers.
"""
