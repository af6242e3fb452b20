"""Tables as notebooks show them."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

#: Rows that are shown.
NUM_ROWS = 10


def html_table(caption: str, columns: Mapping[str, Any]) -> str:
    """The first rows of columns under a caption, as HTML."""
    names = list(columns)
    num_rows = len(columns[names[0]]) if names else 0
    lines = [f"<table><caption>{escape(caption)}</caption>", _row("th", names)]
    lines += [_row("td", [_text(columns[name][place]) for name in names]) for place in range(min(num_rows, NUM_ROWS))]
    if num_rows > NUM_ROWS:
        lines.append(f'<tr><td colspan="{len(names)}">and {num_rows - NUM_ROWS} more</td></tr>')
    return "\n".join([*lines, "</table>"])


def _row(cell: str, words: list[str]) -> str:
    return "<tr>" + "".join(f"<{cell}>{escape(word)}</{cell}>" for word in words) + "</tr>"


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
