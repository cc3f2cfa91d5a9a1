import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, LlamaForCausalLM

from companion.lab.model import CONTEXT, configuration, new_model
from companion.lab.tokenizer import EOS, PAD, WORDS


def same_weights(one, other):
    pairs = zip(one.state_dict().items(), other.state_dict().items(), strict=True)
    return all(name == also and torch.equal(a, b) for (name, a), (also, b) in pairs)


def test_the_model_is_as_small_and_shaped_as_the_book_says():
    model = new_model(0)
    assert isinstance(model, LlamaForCausalLM)  # not Qwen2, whose tokenizer is silently replaced
    assert 165_000 <= model.num_parameters() <= 185_000
    assert (model.config.hidden_size, model.config.num_hidden_layers) == (64, 3)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


@pytest.mark.parametrize("hidden", [32, 64, 128])
def test_heads_are_of_32_at_every_width(hidden):
    """vLLM's CPU build refuses a head of 16."""
    shape = configuration(hidden)
    assert shape.head_dim == 32
    assert shape.num_attention_heads * shape.head_dim == hidden
    assert shape.num_key_value_heads == shape.num_attention_heads


def test_vocabulary_and_special_tokens_are_the_tokenizers():
    model = new_model(0)
    assert model.get_input_embeddings().weight.shape == (len(WORDS), 64)
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
    assert (model.config.pad_token_id, model.config.eos_token_id) == (PAD, EOS)
    assert model.generation_config.eos_token_id == EOS
    assert model.config.bos_token_id is None


def test_a_model_is_a_function_of_its_seed_alone():
    torch.manual_seed(1)
    one = new_model(7)
    torch.manual_seed(2)
    assert same_weights(one, new_model(7))
    assert not same_weights(one, new_model(8))


def test_making_a_model_leaves_the_global_random_stream_alone():
    torch.manual_seed(3)
    expected = torch.rand(5)
    torch.manual_seed(3)
    new_model(7)
    assert torch.equal(torch.rand(5), expected)


def test_a_saved_model_is_read_back_by_its_auto_class(tmp_path):
    model = new_model(7).eval()
    model.save_pretrained(tmp_path)
    assert AutoConfig.from_pretrained(tmp_path).model_type == "llama"
    again = AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    tokens = torch.tensor([[17, 19, 21, 5, 40, 2]])
    assert torch.equal(again(tokens).logits, model(tokens).logits)


def test_the_whole_context_can_be_read():
    logits = new_model(7)(torch.full((1, CONTEXT), 15)).logits
    assert logits.shape == (1, CONTEXT, len(WORDS))
    assert torch.isfinite(logits).all()
