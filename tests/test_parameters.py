"""Parameters are refused with their name and a valid value, before anything slow begins."""

import atexit
import math
import sys
from collections.abc import Callable, Iterator

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from companion.parameters import (
    ChapterParameters,
    ParameterError,
    TradeOffParameters,
    parameters_cell,
    refuse_absent,
    typed,
)

LINEAGES = {
    "lab-grpo": range(0, 401, 25),
    "lab-random-reward": (0, 200, 400),
    "short": (0, 50, 100),
}
DEFAULTS = parameters_cell(TradeOffParameters)
CHECK = "parameters = TradeOffParameters.from_notebook(globals(), LINEAGES)"

Session = Callable[..., TradeOffParameters]


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """Run cells in a real IPython session, as a kernel does; returns the last ``parameters``."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # IPython takes its place
    settings = Config()
    settings.HistoryManager.enabled = False
    shell = InteractiveShell(config=settings)
    shell.user_ns.update(TradeOffParameters=TradeOffParameters, LINEAGES=LINEAGES)

    def run(*cells: str) -> TradeOffParameters:
        for cell in cells:
            result = shell.run_cell(cell, store_history=True, silent=False)
            if result.error_in_exec is not None:
                raise result.error_in_exec
        found = shell.user_ns["parameters"]
        assert isinstance(found, TradeOffParameters)
        return found

    yield run
    shell.atexit_operations()
    atexit.unregister(shell.atexit_operations)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("use_gpu", "false", "use_gpu must be True or False, for example False; got the text"),
        ("use_gpu", 0, "use_gpu must be True or False"),
        ("samples", "eight", "samples must be a whole number, for example 320; got the text"),
        ("samples", "8", "write it without quotes"),
        ("samples", 8.5, "samples must be a whole number, for example 320; got 8.5"),
        ("samples", True, "samples must be a whole number"),
        ("samples", None, "samples must be a whole number"),
        ("samples", [8], "samples must be a whole number"),
        ("samples", math.nan, "samples must be a whole number, for example 320; got nan"),
        ("samples", math.inf, "samples must be a whole number"),
        ("samples", -1, "samples must be at least 1, for example 320; got -1"),
        ("samples", 0, "samples must be at least 1"),
        ("samples", 10**9, "samples must be at most 1000000"),
        ("resamples", 0, "resamples must be at least 1"),
        ("problems", -3, "problems must be at least 0"),
        ("draws", 5, "draws must be at least 100"),
        ("temperature", math.nan, "temperature must be a finite number, for example 0.7; got nan"),
        ("temperature", -0.1, "temperature must be at least 0"),
        ("temperature", "1e-4", "in YAML 1.0e-4 instead of 1e-4"),
        ("top_p", 0, "top_p must be more than 0"),
        ("top_p", 1.5, "top_p must be at most 1"),
        ("top_p", "high", "top_p must be a number, for example 0.9"),
        ("max_tokens", 31, "max_tokens must be at least 32, for example 40; got 31"),
        ("max_tokens", 58, "max_tokens must be at most 57, for example 40; got 58"),
        ("problems", 51, "problems must be at most 50, for example 0; got 51"),
        ("temperature", 0.0009, "temperature must be 0 or at least 0.001, for example 0.7; got 0"),
        ("every", 30, "every must be a multiple of 25, for example 50; got 30"),
        ("early", -25, "early must be at least 0"),
        ("early", 400, "early must come before late (400)"),
        ("lineage", 7, "lineage must be text in quotes, for example 'lab-grpo'; got 7"),
        ("lineage", "", "lineage must be a name"),
    ],
)
def test_a_wrong_value_is_refused_with_its_name_and_a_valid_one(
    name: str, value: object, message: str
) -> None:
    with pytest.raises(ParameterError) as caught:
        TradeOffParameters.checked({name: value})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "pydantic" not in str(caught.value)


@pytest.mark.parametrize("value", [8, 8.0])
def test_a_whole_number_may_come_as_a_float(value: float) -> None:
    parameters = TradeOffParameters.checked({"samples": value})
    assert parameters.samples == 8
    assert isinstance(parameters.samples, int)


def test_a_whole_number_serves_where_a_float_is_asked_for() -> None:
    assert TradeOffParameters.checked({"temperature": 1}).temperature == 1


def test_every_fault_is_named_at_once() -> None:
    with pytest.raises(ParameterError, match=r"samples must.*; top_p must"):
        TradeOffParameters.checked({"samples": -1, "top_p": 0})


def test_a_misspelt_name_is_refused_with_the_nearest_and_without_its_value() -> None:
    with pytest.raises(ParameterError, match="did you mean 'samples'") as caught:
        TradeOffParameters.checked({"sampels": "a-secret"})
    assert "a-secret" not in str(caught.value)


def test_parameters_cannot_be_changed_after_the_check() -> None:
    with pytest.raises(ValueError, match="frozen"):
        TradeOffParameters.checked({}).samples = -1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"lineage": "lab-gpro"}, "lineage: there is no lineage 'lab-gpro', did you mean 'lab-gr"),
        ({"control": "none"}, "control: there is no lineage 'none'"),
        ({"late": 410, "every": 400}, "late: lineage 'lab-grpo' has no checkpoint at step 410"),
        ({"early": 10, "every": 400}, "early: lineage 'lab-grpo' has no checkpoint at step 10"),
        (
            {"lineage": "short", "late": 100, "every": 25},
            "every: lineage 'short' has no checkpoint "
            "at step 25, the nearest is 0 (steps: 0, 50, 100)",
        ),
        ({"control": "short"}, "late: control 'short' has no checkpoint at step 400, the nearest"),
    ],
)
def test_a_missing_checkpoint_is_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        refuse_absent(TradeOffParameters.checked(values), LINEAGES)
    assert message in str(caught.value)
    assert "lab-grpo" in str(caught.value) or "0, 50, 100" in str(caught.value)


def test_checkpoints_that_are_there_pass() -> None:
    refuse_absent(
        TradeOffParameters.checked({"control": "short", "late": 100, "every": 50}), LINEAGES
    )


def test_the_control_needs_only_the_two_checkpoints_that_are_compared() -> None:
    parameters = TradeOffParameters.checked({"early": 0, "late": 400, "every": 25})
    assert parameters.steps_of("lineage") == tuple(range(0, 401, 25))
    assert parameters.steps_of("control") == (0, 400)
    refuse_absent(parameters, LINEAGES)


@pytest.mark.parametrize("temperature", [0, 0.001, 10])
def test_greedy_and_every_temperature_that_can_be_computed_are_taken(temperature: float) -> None:
    assert TradeOffParameters.checked({"temperature": temperature}).temperature == temperature


@pytest.mark.parametrize(
    ("early", "late", "every", "steps"),
    [
        (0, 300, 100, (0, 100, 200, 300)),
        (0, 275, 100, (0, 100, 200, 275)),
        (25, 50, 300, (25, 50)),
    ],
)
def test_the_late_step_is_always_shown(
    early: int, late: int, every: int, steps: tuple[int, ...]
) -> None:
    values = {"early": early, "late": late, "every": every}
    assert TradeOffParameters.checked(values).steps == steps


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("use_gpu", "false", False),
        ("use_gpu", "True", True),
        ("samples", "8.0", 8),
        ("samples", " 8 ", 8),
        ("samples", "eight", "eight"),
        ("temperature", "1e-4", 1e-4),
        ("seed", "007", 7),
        ("profile", "7", "7"),
    ],
)
def test_text_of_the_command_line_gets_the_type_of_its_parameter(
    name: str, text: str, value: object
) -> None:
    found = typed(TradeOffParameters, name, text)
    assert found == value
    assert type(found) is type(value)


def test_the_notebook_reads_its_defaults(session: Session) -> None:
    assert session(DEFAULTS, CHECK) == TradeOffParameters()


def test_the_notebook_reads_what_papermill_injected(session: Session) -> None:
    found = session(DEFAULTS, "# Parameters\nsamples = 8\ntop_p = 1.0", CHECK)
    assert (found.samples, found.top_p, found.draws) == (8, 1.0, 10_000)


@pytest.mark.parametrize("names", ["sampels = 8", "samples = 8\nnumber_of_problems = 3"])
def test_the_notebook_refuses_an_unknown_injected_name(session: Session, names: str) -> None:
    with pytest.raises(ParameterError, match="unknown parameter"):
        session(DEFAULTS, f"# Parameters\n{names}", CHECK)


def test_the_notebook_refuses_a_misspelt_name_among_its_defaults(session: Session) -> None:
    misspelt = DEFAULTS.replace("samples: int = 320", "sampels: int = 640", 1)
    with pytest.raises(ParameterError, match="did you mean 'samples'"):
        session(misspelt, "samples = 1", CHECK)


def test_the_notebook_refuses_a_value_derived_among_its_defaults(session: Session) -> None:
    # It would keep the default's result whatever papermill injects afterwards.
    with pytest.raises(ParameterError, match="unknown parameter 'doubled'"):
        session(f"{DEFAULTS}\ndoubled = samples * 2", CHECK)


def test_paths_that_papermill_injects_on_request_are_allowed(session: Session) -> None:
    injected = "# Parameters\nPAPERMILL_INPUT_PATH = 'a'\nPAPERMILL_OUTPUT_PATH = 'b'\nsamples = 8"
    assert session(DEFAULTS, injected, CHECK).samples == 8


def test_a_lost_tag_is_refused(session: Session) -> None:
    # Without the tag papermill writes its cell on top, and the defaults then override it.
    with pytest.raises(ParameterError, match=r"samples: set above the defaults.*tag 'parameters'"):
        session("# Parameters\nsamples = 8", "import math", DEFAULTS, CHECK)


def test_a_long_session_is_no_error(session: Session) -> None:
    exploring = ("sampels = 3\nresult = [1, 2]", "this is no Python", "samples = 64")
    assert session(DEFAULTS, CHECK, *exploring, CHECK).samples == 64


def test_running_the_defaults_again_after_an_injection_is_no_error(session: Session) -> None:
    injected = "# Parameters\nsamples = 8"
    assert session(DEFAULTS, injected, CHECK, DEFAULTS, CHECK).samples == 320


def test_a_parameter_that_was_never_defined_is_named(session: Session) -> None:
    with pytest.raises(ParameterError, match="profile is not defined: run the cell tagged"):
        session(CHECK)


def test_a_refusal_in_a_notebook_shows_one_line_and_no_stack() -> None:
    error = ParameterError("samples must be at least 1")
    assert error._render_traceback_() == ["ParameterError: samples must be at least 1"]


def test_the_parameters_cell_holds_one_literal_a_line() -> None:
    lines = parameters_cell(ChapterParameters).splitlines()
    assert "samples: int = 320  # samples a problem" in lines
    assert 'lineage: str = "lab-grpo"  # checkpoints under study' in lines
    assert len(lines) == len(ChapterParameters.model_fields)
