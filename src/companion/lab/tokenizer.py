"""The laboratory's language: one token a word, and every number is one word.

A prompt and a completion::

    3 5 7 -> 26 <sep>   3 * 7 = 21 , 5 + 21 = 26 , <answer> 5 + ( 3 * 7 ) </answer> <eos>
"""

from functools import lru_cache

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from companion.countdown.problems import Problem
from companion.countdown.traces import Trace
from companion.lab.world import LARGEST_VALUE

SPECIAL = ("<pad>", "<eos>", "<sep>", "<answer>", "</answer>", "->", ",", "=", "(", ")")
WORDS = (*SPECIAL, "+", "-", "*", "/", *(str(n) for n in range(LARGEST_VALUE + 1)))


@lru_cache(maxsize=1)
def tokenizer() -> PreTrainedTokenizerFast:
    """The word-level tokenizer that ships beside every laboratory checkpoint.

    It adds no token of its own: text in, ids out. The decoder is explicit, and without clean-up,
    so that decoding gives the text back whatever the library's default: a clean-up writes ``7,``
    for ``7 ,``.
    """
    inner = Tokenizer(
        models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<pad>")
    )
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    inner.decoder = decoders.WordPiece(prefix="##", cleanup=False)
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token="<pad>",
        eos_token="<eos>",
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_max_length=64,
    )


_IDS = {word: i for i, word in enumerate(WORDS)}
PAD, EOS = _IDS["<pad>"], _IDS["<eos>"]

Tokens = tuple[int, ...]


def encode(text: str) -> Tokens:
    """Words to ids.

    Raises:
        ValueError: for a word outside the laboratory's vocabulary.
    """
    try:
        return tuple(_IDS[word] for word in text.split())
    except KeyError as unknown:
        raise ValueError(f"text: {unknown} is not a word of the laboratory's language") from None


def decode(tokens: Tokens) -> str:
    """Ids to words, one space apart, up to the end token."""
    ids = tokens[: tokens.index(EOS)] if EOS in tokens else tokens
    return " ".join(WORDS[i] for i in ids)


def prompt(problem: Problem) -> Tokens:
    """A problem as the model sees it."""
    return encode(f"{' '.join(map(str, problem.numbers))} -> {problem.target} <sep>")


def completion(trace: Trace) -> Tokens:
    """A trace as the model writes it, with its end token."""
    return (*encode(str(trace)), EOS)
