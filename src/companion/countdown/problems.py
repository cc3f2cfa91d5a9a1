"""Countdown problems and the key that says when two of them are the same."""

from dataclasses import dataclass

MAX_NUMBERS = 6  # the complete space of six numbers already takes minutes to enumerate


@dataclass(frozen=True)
class Problem:
    """Reach ``target`` with ``+ - * /`` and parentheses, using every number exactly once.

    Args:
        numbers: one to six positive whole numbers, in the order in which they are shown;
            a number may occur more than once.
        target: any whole number.

    Raises:
        ValueError: for no numbers, more than six, or one that is not a positive whole number.
    """

    numbers: tuple[int, ...]
    target: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "numbers", tuple(self.numbers))
        if not 1 <= len(self.numbers) <= MAX_NUMBERS:
            raise ValueError(
                f"numbers: a problem has 1 to {MAX_NUMBERS} numbers, such as (3, 5, 7); "
                f"got {len(self.numbers)}"
            )
        for number in (*self.numbers, self.target):
            if isinstance(number, bool) or not isinstance(number, int):
                raise ValueError(f"numbers and target are whole numbers such as 7; got {number!r}")
        if min(self.numbers) < 1:
            raise ValueError(f"numbers: each is at least 1; got {min(self.numbers)}")

    @property
    def key(self) -> tuple[tuple[int, ...], int]:
        """Sorted numbers and target: equal for problems that differ only in the order shown.

        Splits are kept disjoint by this key (paper, section on the held-out set).
        """
        return tuple(sorted(self.numbers)), self.target
