//! Parts of a page as text, for pages that still put their HTML together by hand; new ones are a [`Report`](super::Report).

use maud::{PreEscaped, html};

use super::{Block, Report, html};
use crate::evaluate::table::Table;

/// A whole page around `body`, which must be HTML already and begin with its heading.
#[must_use]
pub fn page(title: &str, body: &str) -> String {
    let (_, body) = body.split_once("</h1>").unwrap_or(("", body));
    let markup = PreEscaped(body.to_string());
    let own = Block::Own {
        words: String::new(),
        markup,
    };
    Report::new(title).section("", [own]).html()
}

/// Adds a heading and its content, if there is any.
pub fn section(body: &mut String, heading: &str, content: Option<String>) {
    if let Some(content) = content {
        body.push_str(&html! { h2 { (heading) } (PreEscaped(content)) }.into_string());
    }
}

/// `table` as HTML.
#[must_use]
pub fn html_table(table: &Table) -> String {
    html::table(table).into_string()
}

/// `text` as it is, cut where it is very long.
#[must_use]
pub fn preformatted(text: &str) -> String {
    html::code(text).into_string()
}
