"""The parameters of a chapter, checked before anything slow begins.

Papermill gives a value the type that it looks like, accepts any name, and says nothing when the
notebook has lost its ``parameters`` tag. So every chapter calls ``from_notebook(globals())`` in the
first cell after its parameters, and goes on with the object that this returns.
"""

import ast
import difflib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from companion.lab.world import HELD_OUT_OF_EACH_SIZE, LONGEST_COMPLETION, ROOM

INJECTED_COMMENT = "# Parameters"  # first line of the cell that papermill adds
PAPERMILL_NAMES = ("PAPERMILL_INPUT_PATH", "PAPERMILL_OUTPUT_PATH")  # added by --inject-paths
STEPS_BETWEEN_CHECKPOINTS = 25
LOWEST_TEMPERATURE = 0.001  # below it logits overflow; 0 is greedy

REQUIREMENTS = {  # kind of pydantic error -> what the value has to be
    "bool_type": "True or False",
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "text in quotes",
    "string_too_short": "a name",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "multiple_of": "a multiple of {multiple_of}",
}


class ParameterError(ValueError):
    """A parameter that cannot be used; the message names it and gives a valid value."""

    def _render_traceback_(self) -> list[str]:
        # IPython shows this in place of the stack: the message is the whole story.
        return [f"ParameterError: {self}"]


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(_whole)]  # 8.0 counts as 8, "8" and 8.5 do not
Name = Annotated[str, Field(min_length=1)]


class ChapterParameters(BaseModel):
    """What every chapter takes. Build one with :meth:`checked`, which explains what is wrong."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)
    lineage_fields: ClassVar[tuple[str, ...]] = ("lineage",)
    costly_fields: ClassVar[tuple[str, ...]] = ("samples", "problems")

    profile: Name = Field("lab", description="label shown on the page")
    lineage: Name = Field("lab-grpo", description="checkpoints under study")
    early: Whole = Field(0, ge=0, description="training step of the early checkpoint")
    late: Whole = Field(400, ge=1, description="training step of the late checkpoint")
    problems: Whole = Field(
        0, ge=0, le=HELD_OUT_OF_EACH_SIZE, description="held-out problems of each size, 0 for all"
    )
    samples: Whole = Field(320, ge=1, le=1_000_000, description="samples a problem")
    temperature: float = Field(0.7, ge=0, le=10, description="0 is greedy")
    top_p: float = Field(0.9, gt=0, le=1, description="nucleus, 1 keeps every token")
    max_tokens: Whole = Field(
        40, ge=LONGEST_COMPLETION, le=ROOM, description="longest completion, in tokens"
    )
    draws: Whole = Field(10_000, ge=100, le=1_000_000, description="bootstrap draws")
    seed: Whole = Field(1, ge=0, description="every random stream is derived from it")
    use_gpu: bool = Field(False, description="run the model on a GPU")

    @property
    def steps(self) -> tuple[int, ...]:
        """Training steps of the checkpoints that the chapter loads, in order."""
        return (self.early, self.late)

    def steps_of(self, field: str) -> tuple[int, ...]:
        """The steps that the lineage named by ``field`` must have."""
        return self.steps if field == "lineage" else (self.early, self.late)

    @classmethod
    def checked(cls, values: Mapping[str, object]) -> Self:
        """The parameters that ``values`` gives, with the defaults for the rest.

        Raises:
            ParameterError: naming every unknown, mistyped or impossible parameter.
        """
        refuse_unknown(values, cls.model_fields)
        try:
            parameters = cls.model_validate(dict(values))
        except ValidationError as error:
            sentences = [
                _sentence(fault["loc"][0], fault, cls.model_fields) for fault in error.errors()
            ]
            raise ParameterError("; ".join(sentences)) from None
        if 0 < parameters.temperature < LOWEST_TEMPERATURE:
            raise ParameterError(
                f"temperature must be 0 or at least {LOWEST_TEMPERATURE}, for example 0.7; "
                f"got {parameters.temperature}"
            )
        if parameters.early >= parameters.late:
            raise ParameterError(
                f"early must come before late ({parameters.late}), for example 0; "
                f"got {parameters.early}"
            )
        return parameters

    @classmethod
    def from_notebook(
        cls, namespace: Mapping[str, Any], lineages: Mapping[str, Collection[int]] | None = None
    ) -> Self:
        """Read and check the parameters of the notebook that is running.

        Args:
            namespace: the notebook's ``globals()``.
            lineages: checkpoints that can be loaded, name -> training steps; by default those
                that :mod:`companion.lineages` knows.

        Raises:
            ParameterError: as :meth:`checked`; also for a parameter that was never defined, a
                checkpoint that does not exist, and parameters that papermill wrote above the
                defaults, where they have no effect.
        """
        cells = _parameter_cells(namespace.get("In", ()), cls.model_fields)
        _refuse_lost_tag(cells)
        for cell in cells:
            refuse_unknown(cell.names, (*cls.model_fields, *PAPERMILL_NAMES))
        missing = [name for name in cls.model_fields if name not in namespace]
        if missing:
            raise ParameterError(
                f"{missing[0]} is not defined: run the cell tagged 'parameters' first, "
                f"with a line such as {parameter_line(missing[0], cls.model_fields[missing[0]])}"
            )
        parameters = cls.checked({name: namespace[name] for name in cls.model_fields})
        refuse_absent(parameters, known_lineages() if lineages is None else lineages)
        return parameters


class TradeOffParameters(ChapterParameters):
    """Chapter 1: what training gains at one sample and loses over many."""

    lineage_fields: ClassVar[tuple[str, ...]] = ("lineage", "control")
    costly_fields: ClassVar[tuple[str, ...]] = ("samples", "resamples", "problems")

    control: Name = Field("lab-random-reward", description="the same training on a random reward")
    every: Whole = Field(
        50,
        ge=STEPS_BETWEEN_CHECKPOINTS,
        multiple_of=STEPS_BETWEEN_CHECKPOINTS,
        description="training steps between the checkpoints shown",
    )
    resamples: Whole = Field(
        2048, ge=1, le=1_000_000, description="samples for each problem that seems lost"
    )

    @property
    def steps(self) -> tuple[int, ...]:
        """The early step, one every ``every`` steps, and the late one."""
        return (*range(self.early, self.late, self.every), self.late)


def refuse_unknown(names: Iterable[object], known: Iterable[str]) -> None:
    """Raise :class:`ParameterError` for the first name that is not known.

    The value is left out of the message on purpose: it may be a secret.
    """
    known = tuple(known)
    for name in names:
        if name not in known:
            raise ParameterError(
                f"unknown parameter {name!r}{did_you_mean(str(name), known)} "
                f"(parameters: {', '.join(known)})"
            )


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``", did you mean 'samples'?"`` or, where nothing is near, an empty text."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f", did you mean {near[0]!r}?" if near else ""


def typed(parameters: type[ChapterParameters], name: str, text: str) -> object:
    """A value typed on the command line, read as the type of the parameter ``name``.

    Text that does not fit the type is returned as it is; :meth:`ChapterParameters.checked`
    refuses it with the parameter's name.
    """
    refuse_unknown([name], parameters.model_fields)
    kind = TypeAdapter[object](type(parameters.model_fields[name].default))
    try:
        return kind.validate_strings(text.strip())
    except ValidationError:
        return text


def parameter_line(name: str, field: FieldInfo) -> str:
    """One line of the parameters cell, such as ``samples: int = 320  # samples a problem``."""
    default = json.dumps(field.default) if isinstance(field.default, str) else repr(field.default)
    return f"{name}: {type(field.default).__name__} = {default}  # {field.description}"


def parameters_cell(parameters: type[ChapterParameters]) -> str:
    """The whole source of the cell tagged ``parameters``: one literal a line, nothing derived."""
    return "\n".join(parameter_line(*item) for item in parameters.model_fields.items())


def refuse_absent(parameters: ChapterParameters, lineages: Mapping[str, Collection[int]]) -> None:
    """Raise :class:`ParameterError` for a lineage, training step or GPU that is not here.

    Args:
        parameters: of any chapter.
        lineages: name -> training steps of its checkpoints.
    """
    for field in parameters.lineage_fields:
        name = getattr(parameters, field)
        if name not in lineages:
            raise ParameterError(
                f"{field}: there is no lineage {name!r}{did_you_mean(name, lineages)} "
                f"(lineages: {', '.join(sorted(lineages))})"
            )
        present = sorted(lineages[name])
        for step in parameters.steps_of(field):
            if step not in present:
                nearest = min(present, key=lambda known: abs(known - step))
                culprit = {parameters.early: "early", parameters.late: "late"}.get(step, "every")
                raise ParameterError(
                    f"{culprit}: {field} {name!r} has no checkpoint at step {step}, the nearest "
                    f"is {nearest} (steps: {', '.join(map(str, present))})"
                )
    if parameters.use_gpu:
        import torch

        if not torch.cuda.is_available():
            raise ParameterError("use_gpu must be False here: torch finds no GPU on this machine")


def known_lineages() -> Mapping[str, Collection[int]]:
    """Training steps of the checkpoints that can be loaded, by lineage."""
    from companion.lineages import steps  # reads the manifest, so only when it is asked for

    return steps()


@dataclass(frozen=True)
class _ParameterCell:
    names: tuple[str, ...]
    injected: bool


def _parameter_cells(sources: Sequence[str], known: Collection[str]) -> list[_ParameterCell]:
    """The cells executed so far that give parameters, in the order of execution.

    These are the defaults (known names with their types) and what papermill injected; any other
    variable of a long session in JupyterLab is not our business.
    """
    cells = []
    for source in sources:
        try:
            statements = ast.parse(source).body
        except SyntaxError:
            continue
        annotated = {_name(line.target) for line in statements if isinstance(line, ast.AnnAssign)}
        defaults = not annotated.isdisjoint(known)
        injected = not defaults and source.startswith(INJECTED_COMMENT)
        if defaults or injected:
            plain = (line.targets for line in statements if isinstance(line, ast.Assign))
            assigned = {_name(target) for targets in plain for target in targets}
            cells.append(_ParameterCell(tuple(sorted((annotated | assigned) - {""})), injected))
    return cells


def _name(target: ast.expr) -> str:
    return target.id if isinstance(target, ast.Name) else ""


def _refuse_lost_tag(cells: Sequence[_ParameterCell]) -> None:
    if cells and cells[0].injected and not all(cell.injected for cell in cells):
        raise ParameterError(
            f"{', '.join(cells[0].names)}: set above the defaults and therefore without effect, "
            "because no cell has the tag 'parameters'; give the cell of the defaults that tag"
        )


def _sentence(name: object, fault: Any, fields: Mapping[str, FieldInfo]) -> str:
    field, value = fields[str(name)], fault["input"]
    requirement = REQUIREMENTS.get(fault["type"], fault["msg"]).format(**fault.get("ctx", {}))
    got = f"the text {value!r}" if isinstance(value, str) else repr(value)
    return (
        f"{name} must be {requirement}, for example {field.default!r}; "
        f"got {got[:60]}{_hint(value, field)}"
    )


def _hint(value: object, field: FieldInfo) -> str:
    if not isinstance(value, str) or isinstance(field.default, str):
        return ""
    if isinstance(field.default, bool):
        return " (papermill reads only True and False as truth values)"
    try:
        float(value)
    except ValueError:
        return ""
    return " (write it without quotes, and in YAML 1.0e-4 instead of 1e-4)"
