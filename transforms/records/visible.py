"""What others wrote, made fit for a terminal."""

import re

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    r"""A text whose control characters are spelled out, so that none of them acts; tabs and newlines stay.

    They are C0, DEL and C1, the separators of lines and paragraphs, and what turns the direction of writing.

    >>> visible("\x1b[2J\x07 all\tis well\n\u202e")
    '\\x1b[2J\\x07 all\tis well\n\\u202e'
    """
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def in_one_line(text: str) -> str:
    r"""As `visible`, in one line.

    >>> in_one_line("<html>\r\n\t<p>busy\r\n")
    '<html> <p>busy '
    """
    return visible(re.sub(r"[\t\n\r]+", " ", text))
