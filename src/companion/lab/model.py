"""The laboratory's model: a Llama of about 170 thousand parameters.

Llama and not Qwen2: ``AutoTokenizer`` replaces a custom tokenizer silently where the model type is
``qwen2``. Two heads of 32, because vLLM's CPU build refuses a head of 16.
"""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from companion.lab.tokenizer import EOS, PAD, WORDS

CONTEXT = 64  # tokens: the longest prompt and trace of four numbers take 39


def configuration(hidden: int = 64) -> LlamaConfig:
    """The model's shape, by its width."""
    return LlamaConfig(
        vocab_size=len(WORDS),
        hidden_size=hidden,
        intermediate_size=hidden * 5 // 2,
        num_hidden_layers=3,
        num_attention_heads=hidden // 32,
        num_key_value_heads=hidden // 32,
        head_dim=32,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        pad_token_id=PAD,
        eos_token_id=EOS,
        bos_token_id=None,
        attention_dropout=0.0,
    )


def new_model(seed: int, hidden: int = 64) -> LlamaForCausalLM:
    """A freshly initialised model, a function of its seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would seed the GPUs too
        return LlamaForCausalLM(configuration(hidden)).float()
