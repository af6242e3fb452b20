//! A report as one page of HTML.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;

use super::{Block, CODE_BYTES_MAX, Report, Section, outline};
use crate::evaluate::table::Table;
use crate::plot;

const STYLE: &str = include_str!("page.css");
/// Columns and rows from which a table with few rows is turned, so that it fits a screen and paper.
const TURNED: (usize, usize) = (9, 10);

/// Bytes from which a cell is words, whatever it begins with.
const LONG: usize = 28;

impl Report {
    /// The page.
    #[must_use]
    pub fn html(&self) -> String {
        page(self)
    }
}

fn page(report: &Report) -> String {
    let scripts = if report.script.is_some() {
        "'unsafe-inline'"
    } else {
        "'none'"
    };
    let policy = format!("default-src 'none'; style-src 'unsafe-inline'; script-src {scripts}");
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                @if let Some(seconds) = report.refresh_s { meta http-equiv="refresh" content=(seconds); }
                title { (report.title) }
                style { (PreEscaped(STYLE)) @if let Some(script) = &report.script { (PreEscaped(script.style)) } }
            }
            body {
                h1 { (report.title) }
                p.note { (report.note) }
                @for part in &report.sections { (section(part)) }
                @if let Some(script) = &report.script {
                    script type="application/json" id=(script.id) { (PreEscaped(embedded(&script.data))) }
                    script { (PreEscaped(script.code)) }
                }
            }
        }
    };
    // HTML forbids control characters, however they are written.
    let allowed = |c: char| {
        if c.is_control() && c != '\n' && c != '\t' {
            '?'
        } else {
            c
        }
    };
    page.into_string().chars().map(allowed).collect()
}

/// JSON inside an element of script: nothing in it can end the element.
fn embedded(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

/// A section; pictures that follow each other stand side by side where there is room.
fn section(section: &Section) -> Markup {
    let is_plot = |block: &Block| matches!(block, Block::Plot(_));
    html! {
        section {
            @if !section.heading.is_empty() { h2 { (section.heading) } }
            @for blocks in section.blocks.chunk_by(|a, b| is_plot(a) && is_plot(b)) {
                @if is_plot(&blocks[0]) { div.plots { @for part in blocks { (block(part)) } } }
                @else { (block(&blocks[0])) }
            }
        }
    }
}

fn block(block: &Block) -> Markup {
    html! {
        @match block {
            Block::Text(text) => p { (text) },
            Block::Verdict(text) => p { strong { (text) } },
            Block::Note(text) => p.note { (text) },
            Block::Heading(text) => h3 { (text) },
            Block::Code(text) => (code(text)),
            Block::Command(text) => pre.command { (text) },
            Block::Table(own) => (table(own)),
            Block::Plot(own) => (plot::markup(own)),
            Block::Tree(tree) => {
                (outline::folding(tree))
                details { summary { "In words" } (code(&tree.to_text())) }
            },
            Block::Own { markup, .. } => (markup),
        }
    }
}

/// `text` as it is, cut where it is very long.
pub(super) fn code(text: &str) -> Markup {
    let end = text.floor_char_boundary(CODE_BYTES_MAX);
    html! {
        pre { (text[..end]) @if end < text.len() { "\n(cut here; the whole is in the run's folder)" } }
    }
}

/// A table that scrolls where it does not fit; the mark of the best becomes bold.
pub(super) fn table(table: &Table) -> Markup {
    let (columns, rows) = (table.header.len(), table.rows.len());
    let lines: Vec<Vec<&str>> = std::iter::once(&table.header)
        .chain(&table.rows)
        .map(|row| row.iter().map(String::as_str).collect())
        .collect();
    let is_turned = columns > TURNED.0 && rows <= TURNED.1 && rows < columns;
    let cell = |line: usize, column: usize| {
        if is_turned {
            lines.get(column)?.get(line)
        } else {
            lines.get(line)?.get(column)
        }
    };
    let (num_lines, num_columns) = if is_turned {
        (columns, rows + 1)
    } else {
        (rows + 1, columns)
    };
    let is_long = |row: &Vec<String>, column: usize| row.get(column).is_some_and(|text| text.len() > LONG);
    let words = |column: usize| {
        let is_words = table.is_words(column) || table.rows.iter().any(|row| is_long(row, column));
        (is_words && !is_turned).then_some("text")
    };
    html! {
        div.wide tabindex="0" {
            table {
                thead { tr { @for column in 0..num_columns {
                    th class=[words(column)] scope="col" { (cell(0, column).map_or("", |text| text.trim())) }
                } } }
                tbody { @for line in 1..num_lines { tr { @for column in 0..num_columns {
                    @let text = cell(line, column).map_or("", |text| text.trim());
                    @let best = text.strip_suffix('*').filter(|_| column > 0);
                    td class=[best.map(|_| "best").or(words(column))] { (best.unwrap_or(text).trim_end()) }
                } } } }
            }
        }
        @for note in &table.notes { p.note { (note.replace('*', "bold:")) } }
    }
}
