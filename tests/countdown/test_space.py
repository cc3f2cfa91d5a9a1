import numpy as np
import pytest

from companion.countdown.entrances import entrance, menu
from companion.countdown.leaves import leaf
from companion.countdown.problems import Problem
from companion.countdown.space import space
from companion.countdown.traces import valid_traces

PROBLEM = Problem((2, 3, 4), 14)


def test_space_by_hand():
    """14 = 2 * (3 + 4) = 2 + 3 * 4: two leaves, four entrances, two traces for each order."""
    listed = space(PROBLEM, "whole")
    assert listed.leaves == ("(3*4)+2", "(3+4)*2")
    assert [str(first) for first in listed.entrances] == ["3 *", "3 +", "4 *", "4 +"]
    assert len(listed.traces) == 8
    assert np.bincount(listed.leaf_of).tolist() == [4, 4]
    assert np.bincount(listed.entrance_of).tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize("equivalence", ["structural", "paper"])
@pytest.mark.parametrize("intermediates", ["whole", "rational"])
@pytest.mark.parametrize("problem", [PROBLEM, Problem((1, 2, 2, 5), 8)], ids=str)
def test_arrays_say_the_leaf_and_entrance_of_every_trace(problem, intermediates, equivalence):
    listed = space(problem, intermediates, equivalence)
    assert listed.traces == valid_traces(problem, intermediates)
    assert [listed.leaves[i] for i in listed.leaf_of] == [
        leaf(trace.expression, equivalence) for trace in listed.traces
    ]
    assert [listed.entrances[i] for i in listed.entrance_of] == [
        entrance(trace) for trace in listed.traces
    ]
    assert listed.entrances == tuple(menu(problem, intermediates))
    assert set(listed.leaf_of) == set(range(len(listed.leaves)))


def test_paper_equivalence_tells_more_leaves_apart():
    problem = Problem((3, 4, 8), 9)  # 8 - 3 + 4 in its orders and brackets
    assert space(problem, "whole", "structural").leaves == ("4+8-3",)
    assert space(problem, "whole", "paper").leaves == ("((4+8)-3)", "((4-3)+8)", "((8-3)+4)")


def test_a_problem_without_solutions_has_an_empty_space():
    listed = space(Problem((1, 1), 7))
    assert (listed.traces, listed.leaves, listed.entrances) == ((), (), ())
    assert listed.leaf_of.shape == listed.entrance_of.shape == (0,)


def test_a_shared_space_cannot_be_written_to():
    assert space(PROBLEM) is space(PROBLEM)
    with pytest.raises(ValueError, match="read-only"):
        space(PROBLEM).leaf_of[0] = 1


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match=r"problem: two numbers or more, such as \(3, 5\)"):
        space(Problem((7,), 7))
    with pytest.raises(ValueError, match="equivalence"):
        space(PROBLEM, "rational", "exact")
    with pytest.raises(ValueError, match="intermediates"):
        space(PROBLEM, "integer")
