"""The laboratory's language, as ids and through a saved checkpoint's tokenizer."""

import re

import pytest
from transformers import AutoTokenizer

from companion.countdown.problems import Problem
from companion.countdown.traces import valid_traces, verify_trace
from companion.lab import tokenizer as language
from companion.lab import world
from companion.lab.model import CONTEXT, configuration
from companion.lab.tokenizer import EOS, PAD, WORDS, completion, decode, encode, prompt

PROBLEM = Problem((3, 5, 7), 26)
TRACE = valid_traces(PROBLEM, "whole")[0]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The tokenizer as a user gets it: from a folder with a checkpoint's config.json."""
    folder = tmp_path_factory.mktemp("checkpoint")
    language.tokenizer().save_pretrained(folder)
    configuration().save_pretrained(folder)
    return AutoTokenizer.from_pretrained(folder)


def texts():
    """Prompts and traces of every split and size, and every word of the language."""
    for split in ("train", "calibration", "held-out"):
        for size in world.SIZES:
            for index in range(5):
                problem = world.problem(split, size, index)
                yield decode(prompt(problem))
                yield from map(str, valid_traces(problem, "whole")[:10])
    yield " ".join(word for word in WORDS if word != "<eos>")


def test_words_are_pinned():
    """Ids stand in every shipped checkpoint; a change would disown them all."""
    assert WORDS[:14] == (
        *("<pad>", "<eos>", "<sep>", "<answer>", "</answer>", "->", ",", "=", "(", ")"),
        *("+", "-", "*", "/"),
    )
    assert WORDS[14:] == tuple(str(number) for number in range(513))
    assert prompt(Problem((4, 5, 8, 2), 60)) == (18, 19, 22, 16, 5, 74, 2)


def test_prompt_and_completion_by_hand():
    assert [WORDS[i] for i in prompt(PROBLEM)] == ["3", "5", "7", "->", "26", "<sep>"]
    assert str(TRACE) == "3 * 7 = 21 , 5 + 21 = 26 , <answer> 5 + ( 3 * 7 ) </answer>"
    assert [WORDS[i] for i in completion(TRACE)] == [*str(TRACE).split(), "<eos>"]


def test_numbers_are_shown_in_the_order_of_the_problem():
    assert decode(prompt(Problem((7, 3, 5), 26))) == "7 3 5 -> 26 <sep>"


def test_a_completion_read_back_is_its_trace():
    for size in world.SIZES:
        for index in range(20):
            problem = world.problem("train", size, index)
            for trace in valid_traces(problem, "whole"):
                assert verify_trace(decode(completion(trace)), problem, "whole").trace == trace


def test_decode_stops_at_the_end_token():
    assert decode((*encode("3 + 4"), EOS, *encode("9 9"))) == "3 + 4"
    assert decode((EOS,)) == decode(()) == ""


@pytest.mark.parametrize("word", ["513", "-1", "07", "x", "<unk>", "7/2", "3+4", "×"])
def test_a_word_outside_the_language_is_refused(word):
    with pytest.raises(ValueError, match=f"text: '{re.escape(word)}' is not a word of the labor"):
        encode(f"3 + {word}")


def test_the_saved_tokenizer_has_the_same_ids_and_adds_none(saved):
    for text in texts():
        assert saved(text)["input_ids"] == list(encode(text))
        assert language.tokenizer()(text)["input_ids"] == list(encode(text))


def test_the_saved_tokenizer_decodes_with_spaces(saved):
    for text in texts():
        assert saved.decode(list(encode(text))) == text
        assert language.tokenizer().decode(list(encode(text))) == text
    assert saved.decode(completion(TRACE), skip_special_tokens=True) == str(TRACE)


def test_the_saved_tokenizer_knows_its_special_tokens_and_length(saved):
    assert (saved.pad_token_id, saved.eos_token_id) == (PAD, EOS) == (0, 1)
    assert saved.bos_token is None
    assert len(saved) == len(WORDS)
    assert saved.model_max_length == CONTEXT


def test_the_saved_tokenizer_pads_on_the_left(saved):
    batch = saved(["3 5 -> 8 <sep>", "3 <sep>"], padding=True)
    assert batch["input_ids"][1] == [PAD, PAD, PAD, *encode("3 <sep>")]
    assert batch["attention_mask"][1] == [0, 0, 0, 1, 1]


def test_prompt_and_completion_fit_the_context():
    longest = max(len(prompt(world.problem("train", size, 0))) for size in world.SIZES)
    assert world.LONGEST_COMPLETION <= world.ROOM == CONTEXT - longest
