"""Numbers and counts as text for people."""

import json
import math

_DASH = "–"
_MINUS = "−"
_SMALLEST_P = 0.0001
_LEVELS = 5


def value(number: float | None, digits: int = 4) -> str:
    """A metric's value.

    >>> value(0.65543), value(-0.5, 2), value(None)
    ('0.6554', '−0.50', '–')
    """
    if number is None or math.isnan(number):
        return _DASH
    return f"{number:.{digits}f}".replace("-", _MINUS)


def signed(number: float | None, digits: int = 4) -> str:
    """A difference, with its sign.

    >>> signed(0.11), signed(-0.11), signed(0.0), signed(None)
    ('+0.1100', '−0.1100', '0.0000', '–')
    """
    if number is None or math.isnan(number):
        return _DASH
    written = f"{number:+.{digits}f}"
    return written.lstrip("+-") if float(written) == 0 else written.replace("-", _MINUS)


def further(number: float | None) -> str:
    """Additional calls, or an additional cost."""
    return _DASH if number is None else f"{number:+,.4g}".replace("-", _MINUS)


def interval(low: float | None, high: float | None, *, sign: bool = False) -> str:
    """The two ends of an interval; an open interval if only the lower end is known.

    >>> interval(0.1, 0.25), interval(0.1, None), interval(None, None), interval(-0.1, 0.2, sign=True)
    ('0.1000 to 0.2500', '0.1000 or more', '–', '−0.1000 to +0.2000')
    """
    write = signed if sign else value
    if low is None:
        return _DASH
    return f"{write(low)} or more" if high is None else f"{write(low)} to {write(high)}"


def probability(number: float | None) -> str:
    """A p-value.

    >>> probability(0.00001), probability(0.0312), probability(None)
    ('< 0.0001', '0.0312', '–')
    """
    if number is None:
        return _DASH
    return f"< {_SMALLEST_P}" if number < _SMALLEST_P else f"{number:.4f}"


def level(number: float, low: float, high: float) -> int:
    """The shade of a number in a table, from 0 for the lowest to 4 for the highest."""
    return min(_LEVELS - 1, int((number - low) / ((high - low) or 1.0) * _LEVELS))


def percent(share: float) -> str:
    """A share as a percentage, with all its digits.

    >>> percent(0.95), percent(0.999), percent(0.025)
    ('95%', '99.9%', '2.5%')
    """
    return f"{share * 100:.10g}%"


def series(names: list[str], most: int = 12) -> str:
    """Names in a sentence.

    >>> series(["a"]), series(["a", "b"]), series(["a", "b", "c"]), series(["a", "b", "c"], most=2)
    ('a', 'a and b', 'a, b and c', 'a, b and 1 more')
    """
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most:,} more"
    return " and ".join([*([", ".join(names[:-1])] if names[1:] else []), names[-1]])


def plain_number(number: float) -> str:
    """A parameter's value.

    >>> plain_number(100.0), plain_number(0.25)
    ('100', '0.25')
    """
    return f"{number:.6g}"


def parameter(value: object) -> str:
    """A parameter's value.

    >>> parameter(None), parameter(0.75), parameter(True), parameter(["title", "text"]), parameter({"a": 1})
    ('–', '0.75', 'true', 'title, text', '{"a": 1}')
    """
    if value is None:
        return _DASH
    if isinstance(value, int | float) and not isinstance(value, bool):
        return plain_number(value)
    if isinstance(value, list):
        return ", ".join(map(parameter, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
