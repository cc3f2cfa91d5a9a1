from itertools import product

import numpy as np
import pytest
import torch

from companion.countdown.problems import Problem
from companion.countdown.space import space
from companion.lab.model import new_model
from companion.lab.tokenizer import EOS
from companion.lab.tokenizer import completion as lab_completion
from companion.lab.tokenizer import prompt as lab_prompt
from companion.measures import clopper_pearson, exact_pass_at_k, unbiased_pass_at_k
from companion.policies.decoding import Decoding, log_probabilities
from companion.policies.exact import Exact, Language, entrance_distribution, exact
from companion.policies.transformers import policy_of
from companion.training.pretrain import next_token_loss

# A language of twelve words, small enough to write down every text: the calculations of a trace
# one after the other, without results or answer.
END, WORDS = 1, ("", "<end>", "+", "-", "*", "/", "1", "2", "3", "4", "5", "6")
SMALL = Language(
    prompt=lambda problem: tuple(WORDS.index(str(n)) for n in (*problem.numbers, problem.target)),
    completion=lambda trace: (
        *(
            WORDS.index(str(word))
            for line in trace.lines
            for word in (line.left, line.operator, line.right)
        ),
        END,
    ),
)
TWO = (Problem((2, 3), 6), Problem((2, 2), 4), Problem((1, 1), 1), Problem((4, 2), 2))
THREE = Problem((1, 2, 4), 6)  # no result equals a number at hand, so texts tell traces apart


@pytest.fixture(scope="module")
def policy(tiny_llama):
    return policy_of(tiny_llama(len(WORDS), initializer_range=0.2))


@torch.inference_mode()
def every_text(policy, prompt, decoding, longest):
    """Every text that can be drawn, with its probability, breadth first and without any cache."""
    found, front = {}, {(): 1.0}
    for _ in range(longest):
        prefixes = list(front)
        ids = torch.tensor([[*prompt, *prefix] for prefix in prefixes])
        logits = policy.model(input_ids=ids, use_cache=False).logits[:, -1]
        rows = log_probabilities(logits, decoding).double().exp().numpy()
        following = {}
        for prefix, row in zip(prefixes, rows, strict=True):
            for token in np.flatnonzero(row):
                chance = front[prefix] * row[token]
                (found if token == END else following)[(*prefix, int(token))] = chance
        front = following
    return found | front


def reads_as(text, problem):
    """The entrance and the value of a text that is a right calculation, else None.

    By exhaustion: every way to take two of the numbers at hand, line after line.
    """
    if text[-1] != END or len(text) != 3 * len(problem.numbers) - 2:
        return None
    words = [WORDS[token] for token in text[:-1]]
    readings = {tuple(sorted(problem.numbers))}
    for left, operator, right in (words[i : i + 3] for i in range(0, len(words), 3)):
        after = set()
        for at_hand in readings:
            for i, j in product(range(len(at_hand)), repeat=2):
                if i == j or (str(at_hand[i]), str(at_hand[j])) != (left, right):
                    continue
                a, b = at_hand[i], at_hand[j]
                value = {"+": a + b, "-": a - b, "*": a * b, "/": a / b if b else None}.get(
                    operator
                )
                if value is None or value < 0 or value != int(value):
                    continue
                rest = [n for k, n in enumerate(at_hand) if k not in (i, j)]
                after.add(tuple(sorted([*rest, int(value)])))
        readings = after
    return " ".join(words[:2]) if (problem.target,) in readings else None


def check_against_every_text(policy, problem, decoding, longest):
    [found] = exact(policy, [space(problem, "whole")], SMALL, decoding)
    texts = every_text(policy, SMALL.prompt(problem), decoding, longest)
    assert sum(texts.values()) == pytest.approx(1, abs=1e-5)

    solved, began = {}, {}
    for text, chance in texts.items():
        entrance = reads_as(text, problem)
        if entrance is not None:
            solved.setdefault(entrance, {})[text] = chance
        beginning = " ".join(WORDS[token] for token in text[:2])
        began[beginning] = began.get(beginning, 0) + chance
    assert found.solve == pytest.approx(sum(sum(f.values()) for f in solved.values()), abs=1e-6)
    for trace, chance in zip(found.space.traces, found.trace, strict=True):
        assert chance == pytest.approx(texts.get(SMALL.completion(trace), 0), abs=1e-6)
    for i, entrance in enumerate(found.space.entrances):
        family = sum(solved.get(str(entrance), {}).values())
        access = began.get(str(entrance), 0)
        assert found.family[i] == pytest.approx(family, abs=1e-6)
        assert found.access[i] == pytest.approx(access, abs=1e-6)
        if access:
            assert found.execution[i] == pytest.approx(family / access, abs=1e-5)
        else:
            assert np.isnan(found.execution[i])
    assert solved.keys() <= {str(entrance) for entrance in found.space.entrances}
    return found


@pytest.mark.parametrize("problem", TWO, ids=str)
def test_two_numbers_against_every_text_that_there_is(policy, problem):
    found = check_against_every_text(policy, problem, Decoding(1.0, 1.0, 4), 4)
    assert (found.trace > 0).all()


@pytest.mark.parametrize("top_p", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("problem", TWO, ids=str)
def test_two_numbers_under_temperature_and_nucleus(policy, problem, top_p):
    check_against_every_text(policy, problem, Decoding(0.7, top_p, 4), 4)


def test_three_numbers_against_every_text_that_can_be_drawn(tiny_llama):
    traces = space(THREE, "whole").traces
    texts = [SMALL.completion(trace) for trace in traces]
    assert len(set(texts)) == len(texts)
    trained = taught(tiny_llama(len(WORDS)), [SMALL.prompt(THREE)] * len(texts), texts, steps=30)
    found = check_against_every_text(policy_of(trained), THREE, Decoding(0.8, 0.8, 7), 7)
    assert 0.1 < found.solve < 1
    assert (found.trace > 0).sum() > 5
    assert len(found.space.leaves) < len(found.space.entrances) < len(found.space.traces)


def test_leaves_and_families_part_the_same_traces(policy):
    spaces = [space(problem, "whole") for problem in (*TWO, THREE)]
    for found in exact(policy, spaces, SMALL, Decoding(1.0, 1.0, 7)):
        names = [found.space.leaves[i] for i in found.space.leaf_of]
        for i, leaf in enumerate(found.space.leaves):
            own = [p for p, name in zip(found.trace, names, strict=True) if name == leaf]
            assert found.leaf[i] == pytest.approx(sum(own), rel=1e-12)
        assert found.leaf.sum() == pytest.approx(found.solve, rel=1e-12)
        assert found.family.sum() == pytest.approx(found.solve, rel=1e-12)
        assert found.access * found.execution == pytest.approx(found.family, rel=1e-5)
        assert (found.execution <= 1).all()


def test_a_trace_longer_than_the_limit_has_no_chance(policy):
    [cut] = exact(policy, [space(TWO[0], "whole")], SMALL, Decoding(1.0, 1.0, 3))
    assert cut.solve == 0
    assert cut.access.sum() > 0
    [whole] = exact(policy, [space(TWO[0], "whole")], SMALL, Decoding(1.0, 1.0, 4))
    assert whole.solve > 0
    assert cut.access.tolist() == whole.access.tolist()


def test_a_problem_without_solutions_has_no_chance(policy):
    [found] = exact(policy, [space(Problem((1, 1), 6), "whole")], SMALL, Decoding(1.0, 1.0, 4))
    assert (found.solve, found.leaf.shape, found.family.shape) == (0, (0,), (0,))


@pytest.mark.parametrize("decoding", [Decoding(1.0, 1.0, 4), Decoding(0.7, 0.8, 4)], ids=str)
def test_the_distribution_over_entrances_is_complete(policy, decoding):
    prompts = [SMALL.prompt(problem) for problem in TWO]
    found = entrance_distribution(policy, prompts, decoding)
    spaces = [space(problem, "whole") for problem in TWO]
    for one, prompt, distribution in zip(
        exact(policy, spaces, SMALL, decoding), prompts, found, strict=True
    ):
        assert sum(distribution.values()) == pytest.approx(1, abs=1e-5)
        for entrance, access in zip(one.space.entrances, one.access, strict=True):
            pair = WORDS.index(str(entrance.operand)), WORDS.index(entrance.operator)
            assert distribution.get(pair, 0.0) == pytest.approx(access, abs=1e-6)
        began = {}
        for text, chance in every_text(policy, prompt, decoding, 2).items():
            began[text] = began.get(text, 0) + chance
        going_on = {pair: p for pair, p in distribution.items() if pair[0] != END}
        assert going_on.keys() == {text for text in began if text[0] != END}
        for pair, chance in going_on.items():
            assert chance == pytest.approx(began[pair], abs=1e-6)


# Exact and sampled values hold each other, in the laboratory's own language.


def taught(model, prompts, completions, steps):
    """The model after some steps on given texts: it often writes them, and often slips."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        next_token_loss(model, prompts, completions).backward()
        optimizer.step()
    return model.eval()


@pytest.fixture(scope="module")
def solver():
    """Problems of the laboratory and a model that solves them now and then."""
    spaces = [space(p, "whole") for p in (Problem((2, 3, 7), 13), Problem((2, 6, 6), 24))]
    pairs = [(one.problem, trace) for one in spaces for trace in one.traces]
    model = taught(
        new_model(0, hidden=32),
        [lab_prompt(problem) for problem, _ in pairs],
        [lab_completion(trace) for _, trace in pairs],
        steps=140,
    )
    return policy_of(model), spaces


def test_rounding_makes_no_probability_larger_than_one():
    found = Exact(space(TWO[0], "whole"), np.array([0.6, 0.4000001]), np.array([0.5999999, 0.5]))
    assert (found.leaf.tolist(), found.solve) == ([1.0], 1.0)
    assert found.family.tolist() == [0.6, 0.4000001]
    assert found.execution.tolist() == [1.0, 0.8000002]


@pytest.mark.parametrize("temperature", [0.3, 0.5, 0.7])
def test_a_policy_that_has_made_up_its_mind_has_probabilities_of_at_most_one(solver, temperature):
    policy, spaces = solver
    language = Language(lab_prompt, lab_completion)
    found = exact(policy, spaces, language, Decoding(temperature, 0.9, 40))
    assert max(one.solve for one in found) == pytest.approx(1, abs=1e-5)
    for one in found:
        for values in (one.trace, one.leaf, one.family, one.access, [one.solve]):
            assert max(values) <= 1


def test_sampled_values_hold_the_exact_ones(solver):
    policy, spaces = solver
    n, decoding = 1000, Decoding(1.0, 0.9, 40)
    language = Language(lab_prompt, lab_completion)
    found = exact(policy, spaces, language, decoding)
    samples = policy.sample([lab_prompt(one.problem) for one in spaces], n, decoding, seed=0)
    intervals = sum(2 + len(one.leaves) + 2 * len(one.entrances) for one in spaces)
    level = 1 - 0.01 / intervals  # all intervals together hold with probability 0.99
    values = []
    for one, drawn in zip(found, samples, strict=True):
        index = {lab_completion(trace): i for i, trace in enumerate(one.space.traces)}
        hits = np.zeros(len(index), dtype=int)
        began = {}
        for completion, count in zip(drawn.completions, drawn.counts, strict=True):
            if completion in index:
                hits[index[completion]] += count
            began[completion[:2]] = began.get(completion[:2], 0) + int(count)
        entrances = [language.completion(t)[:2] for t in one.space.traces]
        rows = [(hits.sum(), one.solve)]
        for i in range(len(one.space.leaves)):
            rows.append((hits[one.space.leaf_of == i].sum(), one.leaf[i]))
        for i in range(len(one.space.entrances)):
            own = one.space.entrance_of == i
            first = entrances[int(np.flatnonzero(own)[0])]
            rows += [(hits[own].sum(), one.family[i]), (began.get(first, 0), one.access[i])]
        for count, chance in rows:
            interval = clopper_pearson(int(count), n, level=level)
            assert interval.low <= chance <= interval.high
        values.append(one.solve)
        interval = clopper_pearson(int(hits.sum()), n, level=level)
        for k in (1, 8, 64):
            sampled = float(unbiased_pass_at_k(n, hits.sum(), k))
            low, whole, high = exact_pass_at_k([interval.low, one.solve, interval.high], k)
            assert low <= whole <= high
            assert low <= sampled <= high
    assert min(values) > 0.02  # neither hopeless nor certain
    assert min(values) < 0.9
    assert all(drawn.finished.any() and drawn.completions[0][-1] == EOS for drawn in samples)
