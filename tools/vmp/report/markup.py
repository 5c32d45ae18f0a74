"""The parts that a report's page is made of."""

import html
from collections.abc import Iterable, Sequence
from pathlib import Path

SHEET = Path(__file__).with_name("page.css")


def text(value: object) -> str:
    """Escape what is shown as it is."""
    return html.escape(str(value))


def breakable(value: object) -> str:
    """Escape a text that may go on in the next line behind a comma."""
    return text(value).replace(",", ",<wbr>")


def paragraph(sentence: str, kind: str = "") -> str:
    """Return a paragraph, of a class of the style sheet if one is given."""
    named = f' class="{kind}"' if kind else ""
    return f"<p{named}>{text(sentence)}</p>"


def section(heading: str, *parts: str) -> str:
    """Return a section; the parts are markup."""
    return "\n".join(("<section>", f"<h2>{text(heading)}</h2>", *filter(None, parts), "</section>"))


def facts(pairs: Iterable[tuple[str, object]]) -> str:
    """Return a list of names and what they stand for."""
    rows = (f"<dt>{text(name)}</dt><dd>{breakable(value)}</dd>" for name, value in pairs)
    return "<dl>\n" + "\n".join(rows) + "\n</dl>"


def cells(row: Sequence[str], columns: int) -> str:
    """Return a line of a table: its first cell is a heading, and all there is in a group's."""
    if len(row) == 1:
        return f'<tr><th scope="rowgroup" colspan="{columns}">{breakable(row[0])}</th></tr>'
    others = "".join(f"<td>{text(cell)}</td>" for cell in row[1:])
    return f'<tr><th scope="row">{breakable(row[0])}</th>{others}</tr>'


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in a box of its own to scroll in; a row of one cell heads a group."""
    head = "".join(f'<th scope="col">{breakable(name)}</th>' for name in columns)
    body = "\n".join(cells(row, len(columns)) for row in rows)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{text(caption)}">\n'
        f"<table>\n<caption>{text(caption)}</caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody>\n</table>\n</div>"
    )


def document(title: str, body: str) -> str:
    """Return the whole page, which needs nothing besides itself and is allowed nothing."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{text(title)}</title>
<style>
{SHEET.read_text().strip()}
</style>
</head>
<body>
{body}
</body>
</html>
"""
