//! The page itself: puts table, plots, tree and configuration together.

use std::fmt::Write as _;
use std::path::Path;

use pleach_scheduler::tree::Tree;

use super::learning::LearningCurve;
use super::{cdf, learning, ratio, tree_picture, utilisation};
use crate::error::Error;
use crate::evaluate::metric::METRICS;
use crate::evaluate::results::Results;
use crate::evaluate::table::Table;
use crate::plot::text::escape;
use crate::run_folder::atomic_file;

pub(crate) const STYLE: &str = include_str!("page.css");
/// Length of a preformatted part, at most, bytes; longer ones are cut with a note.
const TEXT_BYTES_MAX: usize = 256 << 10;

/// What goes into a report. Only `results` must be there.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// Heading.
    pub title: &'a str,
    /// The command line that made it, without paths of the machine.
    pub command_line: &'a str,
    /// The whole configuration as text.
    pub config: &'a str,
    /// What was found.
    pub results: &'a Results,
    /// How the policy learnt.
    pub learning: Option<&'a LearningCurve>,
    /// More tables of the same command, each with its heading.
    pub tables: &'a [(&'a str, &'a Table)],
    /// The tree in words.
    pub tree: Option<&'a str>,
    /// The tree as a picture.
    pub picture: Option<&'a Tree>,
    /// What to do with the tree.
    pub next: Option<&'a str>,
}

impl Report<'_> {
    /// The HTML text.
    #[must_use]
    pub fn render(&self) -> String {
        let mut body = format!("<h1>{}</h1>\n", escape(self.title));
        let results = self.results;
        let _ = writeln!(
            body,
            "<p class=\"note\">Pleach {} · {} · {} · seeds {}</p>",
            env!("CARGO_PKG_VERSION"),
            escape(results.command()),
            escape(&results.workloads().join(", ")),
            escape(&seeds(results.seeds()))
        );
        section(&mut body, "Summary", Some(summary(results)));
        section(&mut body, "Against the reference", ratio::render(results));
        for (heading, table) in self.tables {
            section(&mut body, heading, Some(html_table(table)));
        }
        section(&mut body, "Job completion times", cdf::render(results));
        section(&mut body, "Utilisation over time", utilisation::render(results));
        section(&mut body, "Learning", self.learning.and_then(learning::render));
        let picture = self.picture.and_then(tree_picture::draw).unwrap_or_default();
        section(
            &mut body,
            "The tree",
            self.tree.map(|tree| picture + &preformatted(tree)),
        );
        section(&mut body, "What to do with the tree", self.next.map(preformatted));
        section(
            &mut body,
            "How this was made",
            Some(preformatted(self.command_line) + &preformatted(self.config)),
        );
        page(self.title, &body)
    }

    /// Writes the page.
    ///
    /// # Errors
    /// [`Error::Problem`].
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        atomic_file::write(path, self.render().as_bytes())
    }
}

/// A whole page around `body`, which must be HTML already.
#[must_use]
pub fn page(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n",
        escape(title)
    )
}

/// Adds a heading and its content, if there is any.
pub fn section(body: &mut String, heading: &str, content: Option<String>) {
    if let Some(content) = content {
        let _ = writeln!(body, "<h2>{}</h2>\n{content}", escape(heading));
    }
}

/// `table` as HTML; the mark of the best becomes bold.
#[must_use]
pub fn html_table(table: &Table) -> String {
    let mut html = String::from("<div class=\"wide\"><table>\n<thead><tr>");
    for cell in &table.header {
        let _ = write!(html, "<th>{}</th>", escape(cell.trim()));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        html.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let _ = match cell.strip_suffix('*').filter(|_| column > 0) {
                Some(best) => write!(html, "<td class=\"best\">{}</td>", escape(best.trim())),
                None => write!(html, "<td>{}</td>", escape(cell.trim())),
            };
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table></div>\n");
    for note in &table.notes {
        let _ = writeln!(
            html,
            "<p class=\"note\">{}</p>",
            escape(&note.replace('*', "bold:"))
        );
    }
    html
}

/// `text` as it is, cut where it is very long.
#[must_use]
pub fn preformatted(text: &str) -> String {
    let end = text.floor_char_boundary(TEXT_BYTES_MAX);
    let cut = if end < text.len() {
        "\n(cut here; the whole is in the run's folder)"
    } else {
        ""
    };
    format!("<pre>{}{cut}</pre>\n", escape(&text[..end]))
}

fn summary(results: &Results) -> String {
    let keys: Vec<&str> = METRICS.iter().map(|metric| metric.key).collect();
    html_table(&Table::compare(results, &keys))
}

fn seeds(seeds: &[u64]) -> String {
    match seeds {
        [first, .., last] if seeds.len() > 6 => format!("{first} … {last} ({} of them)", seeds.len()),
        _ => seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::results::PolicyRun;
    use crate::evaluate::results::tests::run;
    use pleach_tests::{assert_well_formed, browser_faults};

    fn results(num_policies: usize) -> Results {
        let mut runs: Vec<PolicyRun> = Vec::new();
        for policy in 0..num_policies {
            for seed in 0..3 {
                let jct_s = 1000.0 * (policy + 1) as f64 + seed as f64;
                runs.push(run(&format!("policy-{policy}<&>"), "w\"1\"", seed, jct_s));
            }
        }
        Results::new("evaluate", runs, Some("policy-0<&>")).unwrap()
    }

    fn report(results: &Results) -> String {
        let curve = LearningCurve {
            metric: "average JCT (h)".into(),
            series: vec![("ppo".into(), vec![(0.0, 3.0), (1e6, 1.0)])],
            baselines: vec![("srtf".into(), 1.5)],
        };
        Report {
            title: "Report <1>",
            command_line: "pleach evaluate --policy \"a\" && true",
            config: "load = 0.8\n[x]\n",
            results,
            learning: Some(&curve),
            tables: &[],
            picture: None,
            next: None,
            tree: Some("if wait < 3:\n  start </pre><script>alert(1)</script>"),
        }
        .render()
    }

    #[test]
    fn the_page_is_well_formed_and_escapes_everything_from_outside() {
        let html = report(&results(3));
        assert_well_formed(&html);
        assert!(!html.contains("<script") && html.contains("&lt;script&gt;"));
        for heading in [
            "Summary",
            "Against the reference",
            "Job completion times",
            "Utilisation",
            "Learning",
            "tree",
        ] {
            assert!(html.contains(heading), "{heading}");
        }
    }

    /// Names as long as they come, curves that meet, and several tables, on a phone and on a screen.
    #[test]
    fn in_a_browser_nothing_is_cut_or_covered_on_a_phone_or_a_screen() {
        let mut runs: Vec<PolicyRun> = Vec::new();
        let names = [
            "best-type-delay",
            "network",
            "tree",
            "srtf",
            "gpu-time-reserve",
            "mine-and-yours-and-everybodys",
        ];
        for (place, name) in names.iter().enumerate() {
            for seed in 0..3 {
                let mut one = run(
                    name,
                    "philly-like",
                    seed,
                    9e4 + 1e4 * place as f64 + 1e3 * seed as f64,
                );
                one.jct_s = (1..200).map(|job| 60.0 * f64::from(job * job)).collect();
                one.utilisation = (0..100)
                    .map(|hour| (3600.0 * f64::from(hour), f64::from(hour % 7) / 7.0))
                    .collect();
                runs.push(one);
            }
        }
        let other = [("srtf".to_string(), "as sjf: no preemption".to_string())].into();
        let results = Results::new("evaluate", runs, Some("best-type-delay"))
            .unwrap()
            .with_stand_ins(other);
        let curve = LearningCurve {
            metric: "average JCT over that of best-type-delay, validation workloads, learned network alone"
                .into(),
            series: vec![("network".into(), vec![(0.0, 1.3), (2.5e6, 0.95)])],
            baselines: vec![
                ("best-type-delay".into(), 1.0),
                ("sjf-best-type".into(), 1.01),
                ("sjf".into(), 1.02),
            ],
        };
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../checkpoints/reference/PhillyGang-v1-tree.json"
        );
        let tree = Tree::from_json(&std::fs::read_to_string(path).unwrap()).unwrap();
        let summary = Table::compare(&results, &["avg_jct_s"]);
        let html = Report {
            title: "Policies compared",
            command_line: &format!("pleach evaluate --policy {}", names.join(",")),
            config: "load = 0.8\n",
            results: &results,
            learning: Some(&curve),
            tables: &[("The same again", &summary)],
            tree: Some("if wait < 3:\n  start"),
            picture: Some(&tree),
            next: Some("pleach explain tree.json"),
        }
        .render();
        assert_well_formed(&html);
        assert!(html.contains("srtf (as sjf: no preemption)"));
        let folder = tempfile::tempdir().unwrap();
        if let Some(faults) = browser_faults(folder.path(), &[("report", &html)]) {
            assert_eq!(faults, [] as [String; 0]);
        }
    }

    #[test]
    fn the_page_refers_to_nothing_outside_itself() {
        let html = report(&results(2));
        for outside in [
            "http:", "https:", "src=", "href=", "url(", "@import", "<link", "<iframe", "<script", "<img",
        ] {
            assert!(!html.contains(outside), "{outside}");
        }
    }

    #[test]
    fn the_page_stays_small_however_long_the_runs_are() {
        let mut runs = Vec::new();
        for policy in 0..20 {
            let mut long = run(&format!("p{policy}"), "w", 0, 100.0 + f64::from(policy));
            long.jct_s = (1..20_000).map(f64::from).collect();
            long.utilisation = (0..20_000)
                .map(|i| (f64::from(i), f64::from(i % 7) / 7.0))
                .collect();
            runs.push(long);
        }
        let html = report(&Results::new("evaluate", runs, None).unwrap());
        assert_well_formed(&html);
        assert!(html.len() < 500_000, "{}", html.len());
    }

    #[test]
    fn the_same_results_give_the_same_page() {
        assert_eq!(report(&results(3)), report(&results(3)));
    }
}
