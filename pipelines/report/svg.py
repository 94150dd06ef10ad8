"""SVG elements as text that is safe in a page, and scales that map values to positions in a picture and on an axis."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

_LOGARITHMIC_FROM = 8.0  # an axis is logarithmic from this ratio of the largest value to the smallest

_NOISE = 1e-4  # values with a smaller relative difference are drawn as equal: labels have six digits


def element(name: str, attributes: dict[str, str | float], *children: str) -> Markup:
    """One element; attributes and children are escaped unless they are elements themselves.

    >>> str(element("text", {"x": 1.50}, "a < b"))
    '<text x="1.5">a &lt; b</text>'
    """
    written = Markup("").join(Markup(' {}="{}"').format(key, _number(value)) for key, value in attributes.items())
    return Markup("<{0}{1}>{2}</{0}>").format(name, written, Markup("").join(children))


def picture(width: float, height: float, kind: str, title: str, description: str, *children: str) -> Markup:
    """A picture that screen readers treat as one, with a name and a description."""
    return element(
        "svg",
        {"viewBox": f"0 0 {width:g} {height:g}", "class": kind, "role": "img", "aria-label": title},
        element("title", {}, title),
        element("desc", {}, description),
        *children,
    )


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return element("line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "class": kind})


def text(x: float, y: float, words: str, kind: str, anchor: str = "middle") -> Markup:
    return element("text", {"x": x, "y": y, "class": kind, "text-anchor": anchor}, words)


def _number(value: str | float) -> str:
    return value if isinstance(value, str) else f"{round(value, 2):g}"


@dataclass(frozen=True)
class PlotScale:
    """A mapping from values to positions."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """The position of a value.

        >>> PlotScale(0.0, 2.0, 100.0, 200.0)(0.5)
        125.0
        """
        low, high, value = map(math.log, (self.low, self.high, value)) if self.logarithmic else (
            self.low, self.high, value
        )  # fmt: skip
        return self.start + (value - low) / ((high - low) or 1.0) * (self.end - self.start)


def values_scale(values: Sequence[float], start: float, end: float) -> PlotScale:
    """A scale around all values that ends at two round numbers, even if all values are equal.

    >>> values_scale([0.05, 0.05], 0.0, 1.0)
    PlotScale(low=0.04, high=0.05, start=0.0, end=1.0, logarithmic=False)
    """
    low, high = min(values), max(values)
    largest = max(abs(low), abs(high))
    step = _step(high - low if high - low > largest * _NOISE else largest)
    first, last = math.floor(low / step + _NOISE), math.ceil(high / step - _NOISE)
    if first == last:
        first, last = (first - 1, last) if first > 0 else (first, last + 1)
    return PlotScale(first * step, last * step, start, end)


def ticks(scale: PlotScale) -> list[float]:
    """Round values along a scale.

    >>> ticks(PlotScale(0.4, 0.8, 0.0, 1.0))
    [0.4, 0.5, 0.6, 0.7, 0.8]
    """
    step = _step(scale.high - scale.low)
    first = math.ceil(scale.low / step - 1e-9)
    return [round(place * step, 10) for place in range(first, math.floor(scale.high / step + 1e-9) + 1)]


def parameter_scale(values: Sequence[float], start: float, end: float) -> PlotScale:
    """A scale for a parameter's values: logarithmic if they grow by ratios."""
    low, high = min(values), max(values)
    return PlotScale(low, high, start, end, logarithmic=low > 0 and high / low >= _LOGARITHMIC_FROM)


def _step(span: float) -> float:
    """A round step that divides a span into about five parts."""
    rough = span / 5 or 0.2
    power = 10.0 ** math.floor(math.log10(rough))
    return next((factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * (1 - 1e-9)), rough)
