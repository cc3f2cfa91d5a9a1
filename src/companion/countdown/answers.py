"""Find the answer in a completion, and hold it against its problem.

One rule finds it: **the last complete** ``<answer> … </answer>`` **after the last** ``</think>``;
where a completion never closes a think block, in all of it.

- A complete pair holds no other answer tag: of ``<answer>1 <answer>2</answer> 3</answer>`` the
  answer is ``2``.
- An opening tag without its closing one is no answer, and neither hides nor extends an earlier
  complete pair. With no complete pair the reason is ``answer_not_closed``.
- Upper and lower case are the same in tags. White space around the answer is dropped.
- There is no second rule: text without tags has no answer, even if it ends in the right
  expression.

Give these functions what the policy generated and never the prompt, whose worked example may be
tagged too.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from companion.countdown.expressions import Expression, evaluate, numbers_used
from companion.countdown.parser import Answer, Reason, Rejection, parse_answer
from companion.countdown.problems import Problem

# ASCII alone: Unicode's case folding would take "ſ" (long s) for the "s" of "answer".
_ANSWER_TAG = re.compile(r"<(/?)answer>", re.IGNORECASE | re.ASCII)
_THINK_END = re.compile(r"</think>", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an answer is worth: correct, or the first reason why not.

    Args:
        reason: None for a correct answer.
        detail: one sentence for a human reader; empty for a correct answer.
        expression: the answer as read; None if it could not be read.
        value: its exact value; None if unread or where it divides by zero.
        claimed: the value after ``=``; None if unread or not given.
    """

    reason: Reason | None
    detail: str = ""
    expression: Expression | None = None
    value: Fraction | None = None
    claimed: Fraction | None = None

    @property
    def correct(self) -> bool:
        """Whether the answer uses exactly the given numbers and is exactly the target."""
        return self.reason is None


def judge_completion(text: str, problem: Problem) -> Verdict:
    """Find the answer in a completion and judge it. Never raises, whatever the text.

    >>> judge_completion("so <answer> (3 + 4) * 2 </answer>", Problem((2, 3, 4), 14)).correct
    True
    """
    answer = extract_answer(text)
    if isinstance(answer, Rejection):
        return Verdict(answer.reason, answer.detail)
    return judge(answer, problem)


def extract_answer(text: str) -> str | Rejection:
    """The text of the answer by the rule above, without surrounding white space.

    Takes time linear in the length of the text.

    >>> extract_answer("<think> <answer>1</answer> </think> <answer> 2 + 3 </answer>")
    '2 + 3'
    """
    begin = 0
    for end_of_thought in _THINK_END.finditer(text):
        begin = end_of_thought.end()
    answer = opened = None
    for tag in _ANSWER_TAG.finditer(text, begin):
        if not tag[1]:
            opened = tag.end()
        elif opened is not None:
            answer, opened = text[opened : tag.start()], None
    if answer is not None:
        return answer.strip()
    if opened is not None:
        return Rejection(Reason.ANSWER_NOT_CLOSED, "<answer> is never closed by </answer>")
    return Rejection(Reason.NO_ANSWER, "the text has no <answer> … </answer>")


def judge(text: str, problem: Problem) -> Verdict:
    """Judge an answer, without its tags, against its problem. Never raises, whatever the text.

    The first reason counts, in this order: the text cannot be read (see the parser); it uses a
    number that is not given, a given number too often, a given number not at all; it divides by
    zero; the value claimed after ``=`` is not its value; its value is not the target. All of it
    is exact: numbers are compared with their multiplicity, values as fractions.

    >>> judge("(3 + 4) * 2 = 15", Problem((2, 3, 4), 14)).reason
    <Reason.CLAIM_DOES_NOT_HOLD: 'claim_does_not_hold'>
    """
    read = _read(text)
    if isinstance(read, Rejection):
        return Verdict(read.reason, read.detail)
    answer, value, numbers = read
    rejection = _check_numbers(numbers, problem) or _check_value(value, answer, problem)
    return Verdict(
        rejection.reason if rejection else None,
        rejection.detail if rejection else "",
        answer.expression,
        value,
        answer.claimed,
    )


@lru_cache(maxsize=16384)  # samples repeat their answers, the more so the narrower the policy
def _read(text: str) -> tuple[Answer, Fraction | None, tuple[int, ...]] | Rejection:
    """What a text says whatever the problem: the answer, its value if it has one, its numbers."""
    answer = parse_answer(text)
    if isinstance(answer, Rejection):
        return answer
    numbers = tuple(sorted(numbers_used(answer.expression)))
    try:
        return answer, evaluate(answer.expression), numbers
    except ZeroDivisionError:
        return answer, None, numbers


def _check_numbers(numbers: tuple[int, ...], problem: Problem) -> Rejection | None:
    if numbers == problem.key[0]:
        return None
    used, given = Counter(numbers), Counter(problem.numbers)
    if foreign := used.keys() - given.keys():
        return Rejection(Reason.NUMBERS_NOT_GIVEN, f"{_listed(foreign)} not among the numbers")
    if surplus := used - given:
        return Rejection(Reason.NUMBERS_USED_TOO_OFTEN, f"{_listed(surplus)} used too often")
    return Rejection(Reason.NUMBERS_NOT_USED, f"{_listed(given - used)} not used, or too seldom")


def _check_value(value: Fraction | None, answer: Answer, problem: Problem) -> Rejection | None:
    if value is None:
        return Rejection(Reason.DIVISION_BY_ZERO, "the expression divides by zero")
    if answer.claimed not in (None, value):
        return Rejection(
            Reason.CLAIM_DOES_NOT_HOLD, f"the value is {value}, not {answer.claimed} as claimed"
        )
    if value != problem.target:
        return Rejection(Reason.TARGET_MISSED, f"the value is {value}, the target {problem.target}")
    return None


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))
