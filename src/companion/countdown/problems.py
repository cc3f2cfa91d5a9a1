"""Countdown problems and the key that says when two of them are the same."""

import operator
from dataclasses import dataclass
from typing import Final

MAX_NUMBERS: Final = 6  # six already have up to a hundred thousand solutions
MAX_DIGITS: Final = 18  # of a number or target: fits a table's 64-bit column, keeps values short


@dataclass(frozen=True)
class Problem:
    """Reach ``target`` with ``+ - * /`` and parentheses, using every number exactly once.

    Args:
        numbers: one to six positive whole numbers of at most 18 digits, in the order in which
            they are shown; a number may occur more than once.
        target: any whole number of at most 18 digits; zero and negative ones count.

    Raises:
        ValueError: for no numbers, more than six, one that is not a positive whole number, or a
            number or target of more than 18 digits.
    """

    numbers: tuple[int, ...]
    target: int

    def __post_init__(self) -> None:
        try:
            numbers = tuple(self.numbers)
        except TypeError:
            raise ValueError(
                f"numbers: a sequence of whole numbers such as (3, 5, 7); got {self.numbers!r}"
            ) from None
        if not 1 <= len(numbers) <= MAX_NUMBERS:
            raise ValueError(
                f"numbers: a problem has 1 to {MAX_NUMBERS} numbers, such as (3, 5, 7); "
                f"got {len(numbers)}"
            )
        # Plain ints, so that a problem read from a table equals the same problem typed by hand.
        object.__setattr__(self, "numbers", tuple(_whole("numbers", n) for n in numbers))
        object.__setattr__(self, "target", _whole("target", self.target))
        if min(self.numbers) < 1:
            raise ValueError(f"numbers: each is at least 1; got {min(self.numbers)}")

    @property
    def key(self) -> tuple[tuple[int, ...], int]:
        """Sorted numbers and target: equal for problems that differ only in the order shown.

        Splits are kept disjoint by this key (paper, section on the held-out set).
        """
        return tuple(sorted(self.numbers)), self.target


def _whole(parameter: str, value: object) -> int:
    """A whole number of any integer type, numpy's too, as a plain int."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ValueError(f"{parameter}: whole numbers such as 7; got {value!r}")
    whole = operator.index(value)
    if abs(whole) >= 10**MAX_DIGITS:
        raise ValueError(f"{parameter}: at most {MAX_DIGITS} digits, such as 952; got more")
    return whole
