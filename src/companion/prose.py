"""Sentences whose numbers come from the run, so that text and figures cannot disagree.

A chapter writes ``say("Coverage falls from {early} to {late}.", early=..., late=...)``. The
sentence is Markdown: it reads the same in JupyterLab and on the page of the book.
"""

import math
import re
import string
from collections.abc import Callable
from typing import Protocol, runtime_checkable

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
SIGNIFICANT_DIGITS = 3
SMALLEST_WITH_THREE_DECIMALS = 0.01  # 0.0432 is written 0.043, beside 0.323
SMALLEST_DECIMAL = 1e-4  # smaller numbers are written as a power of ten


@runtime_checkable
class Estimate(Protocol):
    """A value with its interval, such as :class:`companion.claims.Measured`."""

    @property
    def value(self) -> float:
        """The estimate itself."""
        ...

    @property
    def low(self) -> float:
        """Lower end of its interval."""
        ...

    @property
    def high(self) -> float:
        """Upper end of its interval."""
        ...


def number(value: float) -> str:
    """Three digits that matter, as in the paper, and a real minus sign.

    ``0.3231 -> 0.323``, ``0.0432 -> 0.043``, ``2048 -> 2,048``, ``19941.0 -> 19,941``,
    ``-0.144 -> −0.144``, ``0.0000123 -> 1.23 × 10⁻⁵``.

    Raises:
        ValueError: when the value is not finite: an undefined measure has no place in a sentence.
    """
    if not math.isfinite(value):
        raise ValueError(f"a number in the text has to be finite, such as 0.25; got {value}")
    if isinstance(value, int):
        return _minus(f"{value:,}")
    if value == 0:
        return "0"
    if abs(value) < SMALLEST_DECIMAL:
        mantissa, exponent = f"{value:.{SIGNIFICANT_DIGITS - 1}e}".split("e")
        return _minus(f"{mantissa} × 10{str(int(exponent)).translate(SUPERSCRIPTS)}")
    # Rounding first decides the magnitude: 9.996 has three digits as 10.0, not as 10.00.
    rounded = float(f"{value:.{SIGNIFICANT_DIGITS}g}")
    decimals = max(0, SIGNIFICANT_DIGITS - 1 - math.floor(math.log10(abs(rounded))))
    if abs(rounded) >= SMALLEST_WITH_THREE_DECIMALS:
        decimals = min(decimals, SIGNIFICANT_DIGITS)
    return _minus(f"{value:,.{decimals}f}")


def percent(value: float) -> str:
    """A share (0.4321) as a percentage (43%), with one decimal below 10% and above 99%.

    Raises:
        ValueError: when the value is not finite.
    """
    if not math.isfinite(value):
        raise ValueError(f"a share in the text has to be finite, such as 0.25; got {value}")
    share = 100 * value
    if 0 < abs(share) < 0.1:
        return f"{number(share)}%"
    one_decimal = 0 < abs(share) < 9.95 or 99 < abs(share) < 100
    return _minus(f"{share:.1f}%" if one_decimal else f"{share:.0f}%")


def change(value: float) -> str:
    """A number with its sign: ``+0.107``, ``−0.144``; nothing before zero."""
    return f"+{number(value)}" if value > 0 else number(value)


def plural(count: int, noun: str) -> str:
    """``1 problem``, ``2,048 samples``."""
    return f"{number(count)} {noun}" if count == 1 else f"{number(count)} {noun}s"


UNITS: dict[str, Callable[[float], str]] = {
    "": number,
    "percent": percent,
    "change": change,
    "nats": lambda value: f"{number(value)} nats",
    "times": lambda value: f"{number(value)}×",
    "seconds": lambda value: f"{number(value)} s",
}


def escape(text: str) -> str:
    """Text that Markdown and HTML show as it is: every ASCII punctuation mark as an entity.

    JupyterLab alone still sets what stands between two dollar signs as mathematics.
    """
    one_line = " ".join(text.split())
    return re.sub(r"[!-/:-@\[-`{-~]", lambda mark: f"&#{ord(mark[0])};", one_line)


def prose(template: str, **values: float | str | Estimate) -> str:
    """The Markdown of ``template`` with every ``{name}`` or ``{name:unit}`` filled in.

    A number is rounded sensibly; a value with an interval is written ``0.43 (0.40 to 0.47)``;
    a string is escaped. Units: ``percent``, ``change``, ``nats``, ``times``, ``seconds``.
    Braces of mathematics are doubled, as in :meth:`str.format`. Leave MyST roles to the Markdown
    cells: JupyterLab would show them as they are written.

    Raises:
        ValueError: for a name without a value, a value that the template does not use, an
            unknown unit, or a value that cannot be written.
    """
    parts: list[str] = []
    used: set[str] = set()
    for literal, name, unit, conversion in string.Formatter().parse(template):
        parts.append(literal)
        if name is None:
            continue
        if not name.isidentifier() or conversion:
            raise ValueError(f"template: write a plain name such as {{late}}; got {{{name}}}")
        if name not in values:
            raise ValueError(f"template: {{{name}}} has no value; give {name}=...")
        if unit not in UNITS:
            known = ", ".join(filter(None, UNITS))
            raise ValueError(f"template: {{{name}:{unit}}} has no such unit; one of {known}")
        used.add(name)
        parts.append(_written(name, values[name], UNITS[unit or ""]))
    unused = sorted(set(values) - used)
    if unused:
        raise ValueError(f"template: the text does not use {', '.join(unused)}")
    return "".join(parts)


def say(template: str, **values: float | str | Estimate) -> None:
    """Show :func:`prose` as Markdown below the cell.

    Raises:
        ValueError: as :func:`prose`.
    """
    from IPython.display import Markdown, display

    display(Markdown(prose(template, **values)))  # type: ignore[no-untyped-call]


def _written(name: str, value: float | str | Estimate, unit: Callable[[float], str]) -> str:
    if isinstance(value, str):
        return escape(value)
    try:
        if isinstance(value, Estimate):
            return f"{unit(value.value)} ({unit(value.low)} to {unit(value.high)})"
        plain = value.item() if hasattr(value, "item") else value  # numpy scalars
        if isinstance(plain, bool) or not isinstance(plain, int | float):
            raise ValueError(f"a number, text or an estimate is needed; got {value!r}")
        return unit(plain)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _minus(digits: str) -> str:
    return digits.replace("-", "−")
