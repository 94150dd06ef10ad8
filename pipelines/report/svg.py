"""SVG elements as text that is safe to put into a page."""

from markupsafe import Markup


def element(name: str, attributes: dict[str, str | float], *children: str) -> Markup:
    """One element; attributes and children are escaped unless they are elements themselves.

    >>> str(element("text", {"x": 1.50}, "a < b"))
    '<text x="1.5">a &lt; b</text>'
    """
    written = Markup("").join(Markup(' {}="{}"').format(key, _number(value)) for key, value in attributes.items())
    return Markup("<{0}{1}>{2}</{0}>").format(name, written, Markup("").join(children))


def picture(width: float, height: float, kind: str, title: str, description: str, *children: str) -> Markup:
    """A picture that screen readers take as one, with a name and a description."""
    return element(
        "svg",
        {"viewBox": f"0 0 {width:g} {height:g}", "class": kind, "role": "img", "aria-label": title},
        element("title", {}, title),
        element("desc", {}, description),
        *children,
    )


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    """A straight line."""
    return element("line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "class": kind})


def text(x: float, y: float, words: str, kind: str, anchor: str = "middle") -> Markup:
    """A line of text."""
    return element("text", {"x": x, "y": y, "class": kind, "text-anchor": anchor}, words)


def _number(value: str | float) -> str:
    return value if isinstance(value, str) else f"{round(value, 2):g}"
