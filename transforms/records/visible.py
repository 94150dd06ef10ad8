"""Make text from files and servers safe to print on a terminal."""

import re

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    r"""A text with its control characters escaped, so that the terminal does not obey them; tabs and newlines stay.

    Escaped are C0, DEL and C1, the separators of lines and paragraphs, and characters that change the direction of
    writing.

    >>> visible("\x1b[2J\x07 all\tis well\n\u202e")
    '\\x1b[2J\\x07 all\tis well\n\\u202e'
    """
    return _CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def in_one_line(text: str) -> str:
    r"""Like `visible`, with tabs and newlines replaced by blanks.

    >>> in_one_line("<html>\r\n\t<p>busy\r\n")
    '<html> <p>busy '
    """
    return visible(re.sub(r"[\t\n\r]+", " ", text))
