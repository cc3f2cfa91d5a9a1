"""Training: pre-training and GRPO of the laboratory's model, on a CPU, resumable after a kill.

- ``lab``: ``train_lab``, the base, the lineage and its control from nothing.
- ``pretrain``: ``pretrain`` and ``PretrainRecipe``, the base.
- ``rl``: ``grpo`` and ``GrpoRecipe``, a lineage.
- ``advantages``: how rewards become weights, one function for each published variant.
- ``state``: what a killed run leaves, and how it goes on from there.

Import from the modules: importing this package alone loads neither torch nor transformers.
"""
