"""Countdown: a world small enough that every solution of a problem can be listed.

>>> problem = Problem((2, 3, 4), 14)
>>> judge_completion("so it is <answer> (3 + 4) × 2 </answer>", problem).correct
True
>>> [render(solution) for solution in solve(problem)]
['2 + ( 3 * 4 )', '2 * ( 3 + 4 )']
>>> [f"{first}: {len(traces)} traces" for first, traces in menu(problem).items()]
['3 *: 2 traces', '3 +: 2 traces', '4 *: 2 traces', '4 +: 2 traces']
>>> print(valid_traces(problem)[0])
3 * 4 = 12 , 2 + 12 = 14 , <answer> 2 + ( 3 * 4 ) </answer>

Each name has its own module: answers are read and judged in ``parser`` and ``answers``, solutions
listed in ``solver``, told apart in ``leaves``, written out line by line in ``traces``, and filed by
their first operand and operator in ``entrances``. The same as arrays, for the measures, is
:func:`companion.countdown.space.space`; it is not imported here because it needs numpy.
"""

from companion.countdown.answers import Verdict, extract_answer, judge, judge_completion
from companion.countdown.entrances import Entrance, entrance, menu, paper_entrance, paper_menu
from companion.countdown.expressions import Expression, evaluate, numbers_used, render
from companion.countdown.leaves import Equivalence, leaf
from companion.countdown.parser import Reason, Rejection, parse, parse_answer
from companion.countdown.problems import Problem
from companion.countdown.solver import Intermediates, solve
from companion.countdown.traces import Flaw, Trace, TraceVerdict, valid_traces, verify_trace

__all__ = [
    "Entrance",
    "Equivalence",
    "Expression",
    "Flaw",
    "Intermediates",
    "Problem",
    "Reason",
    "Rejection",
    "Trace",
    "TraceVerdict",
    "Verdict",
    "entrance",
    "evaluate",
    "extract_answer",
    "judge",
    "judge_completion",
    "leaf",
    "menu",
    "numbers_used",
    "paper_entrance",
    "paper_menu",
    "parse",
    "parse_answer",
    "render",
    "solve",
    "valid_traces",
    "verify_trace",
]
