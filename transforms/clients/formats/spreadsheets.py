"""Cells of tables that people open in a spreadsheet."""

ZIP, WORKBOOK = "PK\x03\x04", "a workbook of Excel or another ZIP archive; save the sheet as CSV"
"""The beginning of a workbook, and its description in refusals."""

FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")
"""The first characters of cells that spreadsheets run as formulas, and the mark that prevents it."""


def safe(cell: str) -> str:
    """A cell that no program takes for a formula.

    >>> safe("=1+1"), safe("'tis"), safe("plain")
    ("'=1+1", "''tis", 'plain')
    """
    return f"'{cell}" if cell.startswith(FORMULA) else cell


def plain(cell: str) -> str:
    """The cell as it was before `safe`; one that a program has freed of the mark stays as it is.

    >>> plain("'=1+1"), plain("''tis"), plain("=1+1")
    ('=1+1', "'tis", '=1+1')
    """
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA) else cell
