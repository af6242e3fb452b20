//! A page of plots, their tables, and what made them.

use pleach_experiments::report::page::{page, preformatted, section};

/// The page; `note` is HTML, `plots` are names with SVG, `made` are the command line and settings.
pub fn plots_page(
    title: &str,
    note: &str,
    plots: Vec<(String, String)>,
    tables: &str,
    made: &[&str],
) -> String {
    let mut body = format!(
        "<h1>{title}</h1>\n<p class=\"note\">{note} Pleach {}</p>\n",
        env!("CARGO_PKG_VERSION")
    );
    for (name, svg) in plots {
        section(
            &mut body,
            &name,
            Some(format!("<div class=\"wide least\">{svg}</div>\n")),
        );
    }
    let table = preformatted(tables).replacen("<pre>", "<pre class=\"table\">", 1);
    section(&mut body, "Table", Some(table));
    let made = made.iter().map(|text| preformatted(text)).collect();
    section(&mut body, "How this was made", Some(made));
    page(title, &body)
}
