"""Profiles: named sets of parameters, as the flat YAML files that papermill takes with ``-f``.

``lab`` is the default and says again what the notebooks say; ``smoke`` makes the same pages from
less, for continuous integration. Any other file of the same form can be given by its path.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from companion.parameters import ChapterParameters, ParameterError, did_you_mean, refuse_unknown

FOLDER = Path(__file__).parent
DEFAULT = "lab"


def names() -> tuple[str, ...]:
    """The profiles that come with the package."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


def load(profile: str, chapters: Iterable[type[ChapterParameters]]) -> dict[str, object]:
    """The parameters that a profile sets.

    Args:
        profile: the name of a profile of the package, or the path of a YAML file.
        chapters: the parameter classes in use; a profile may set what any of them knows.

    Raises:
        ParameterError: for a profile that does not exist, that is no flat mapping of parameter
            names to values, or that names a parameter twice or one that no chapter has.
    """
    values = read(_path(profile))
    known = dict.fromkeys(name for chapter in chapters for name in chapter.model_fields)
    try:
        refuse_unknown(values, known)
    except ParameterError as error:
        raise ParameterError(f"profile {profile}: {error}") from None
    return values


def read(path: Path) -> dict[str, object]:
    """The flat mapping in a YAML file, whatever its names.

    Raises:
        ParameterError: for a file that cannot be read, is not YAML, or is no flat mapping.
    """
    try:
        values = yaml.load(path.read_text(encoding="utf-8"), Loader=_OnceOnlyLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"profile {path}: cannot be read as text ({error})") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: month 13 and such
        raise ParameterError(f"profile {path}: {_where(error)}") from None
    flat = isinstance(values, dict) and not any(
        isinstance(value, (dict, list)) for value in values.values()
    )
    if not flat:
        raise ParameterError(
            f"profile {path}: a profile has one 'name: value' on each line, such as 'samples: 320'"
        )
    return dict(values)


class _OnceOnlyLoader(yaml.SafeLoader):
    """Plain YAML, except that a name given twice is an error and not a silent choice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        given: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in given:
                raise yaml.MarkedYAMLError(
                    problem=f"{key.value} is given twice", problem_mark=key.start_mark
                )
            given.add(key.value)
        return super().construct_mapping(node, deep)


def _path(profile: str) -> Path:
    if profile in names():
        return FOLDER / f"{profile}.yaml"
    if profile.endswith((".yaml", ".yml")):
        return Path(profile)
    raise ParameterError(
        f"profile: there is none called {profile!r}{did_you_mean(profile, names())} "
        f"(profiles: {', '.join(names())}, or the path of a YAML file)"
    )


def _where(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"line {error.problem_mark.line + 1}: {error.problem}"
    return f"it is not YAML ({type(error).__name__})"
