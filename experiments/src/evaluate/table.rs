//! A table for the terminal and for Markdown: aligned columns, human units, the best of each column marked.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::evaluate::gain::cell as gain_cell;
use crate::evaluate::metric::{Better, MAIN_METRIC, Metric, Versus, show_plain, show_seconds};
use crate::evaluate::results::{GAP_KEYS, Results, Summary};
use crate::evaluate::stats::Ratio;

/// Mark of the best value of a column. Not a colour, so that it survives a pipe and a colour-blind reader.
const BEST: &str = "*";
/// Columns of a terminal.
const TERMINAL_CHARS: usize = 80;
/// Longest text of a cell, characters; longer ones are cut. Bounds the width of a table with hostile names.
const CELL_CHARS_MAX: usize = 48;

/// Text in rows and columns; the first column and columns of words are aligned left, columns of numbers right.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Headers.
    pub header: Vec<String>,
    /// Rows, each as long as the header.
    pub rows: Vec<Vec<String>>,
    /// Lines under the table.
    pub notes: Vec<String>,
}

impl Table {
    /// The comparison of `results` over the metrics named by `keys`; those that no policy has are left out.
    #[must_use]
    pub fn compare(results: &Results, keys: &[&str]) -> Table {
        let known = |key: &str| {
            results
                .policies()
                .any(|(_, summary)| summary.metrics.contains_key(key))
        };
        let metrics: Vec<&Metric> = results
            .known()
            .iter()
            .filter(|metric| keys.contains(&metric.key) && known(metric.key))
            .collect();
        let best: Vec<Option<f64>> = metrics.iter().map(|metric| best_of(results, metric)).collect();
        let reference = results.reference();
        let mut header = vec!["policy".to_string()];
        // For averages of JCT tables say JCT, as is usual.
        let label = match results.metric().key {
            MAIN_METRIC => "JCT",
            _ => results.metric().label,
        };
        let heading = |name: &str| match results.metric().versus {
            Versus::Ratio => format!("{label} vs {name}"),
            Versus::Points => format!("{label} over {name}"),
            Versus::Percent => format!("% over {name}"),
        };
        header.extend(reference.map(heading));
        header.extend(metrics.iter().map(|metric| metric.label.to_string()));
        let rows = results
            .shown()
            .map(|(name, summary)| {
                let mut row = vec![results.label(name)];
                let versus = |reference| match summary.ratio_vs_reference {
                    Some(_) if name == reference => "1 (reference)".to_string(),
                    _ => versus_cell(results.metric(), summary),
                };
                row.extend(reference.map(versus));
                for (metric, best) in metrics.iter().zip(&best) {
                    row.push(cell(&summary.metrics, metric, *best));
                }
                row
            })
            .collect();
        let mut notes = vec![format!(
            "mean over {} of {} and {}; {BEST} best",
            plural(results.num_pairs(), "run"),
            plural(results.workloads().len(), "workload"),
            plural(results.seeds().len(), "seed"),
        )];
        notes.extend(results.lower_bounds().map(|bounds| {
            let (jct, makespan) = (show_seconds(bounds.avg_jct_s), show_seconds(bounds.makespan_s));
            format!("lower bound: avg JCT {jct}, makespan {makespan}; no schedule beats it, and a gap of 0 may be out of reach")
        }));
        notes.extend(reference.map(|name| versus_note(results, (label, &heading(name)))));
        notes.extend(results.world().map(str::to_owned));
        notes.extend(results.left_out());
        Table { header, rows, notes }
    }

    /// Several comparisons of the same policies side by side, each under its heading: average JCT and ratio to its own reference. A
    /// policy that decided as another one has the other's figures.
    #[must_use]
    pub fn beside(parts: &[(&str, &Results)]) -> Table {
        let tables = parts.iter().map(|(heading, results)| {
            let table = Table::compare(results, &[MAIN_METRIC]);
            (*heading, *results, table)
        });
        let tables: Vec<(&str, &Results, Table)> = tables.collect();
        let mut all = Table::default();
        all.header.push("policy".to_string());
        for (heading, _, table) in &tables {
            let under = |cell: &String| match *heading {
                "" => cell.clone(),
                heading => format!("{heading}: {cell}"),
            };
            all.header.extend(table.header.iter().skip(1).map(under));
        }
        let names = parts
            .first()
            .into_iter()
            .flat_map(|(_, results)| results.policies());
        for (name, _) in names {
            if parts
                .iter()
                .all(|(_, results)| results.decides_as(name).is_some())
            {
                continue;
            }
            let mut row = vec![name.to_string()];
            for (_, results, table) in &tables {
                let of = |name: &str| table.rows.iter().find(|row| row[0] == results.label(name));
                let found = of(name).or_else(|| of(results.decides_as(name)?));
                match found {
                    Some(found) => row.extend(found.iter().skip(1).cloned()),
                    None => row.extend(vec!["-".to_string(); table.header.len() - 1]),
                }
            }
            all.rows.push(row);
        }
        for (_, _, table) in tables {
            for note in table.notes {
                if !all.notes.contains(&note) {
                    all.notes.push(note);
                }
            }
        }
        all
    }

    /// Lines for a terminal of 80 columns: what is wider goes on in another block below, its first column again.
    #[must_use]
    pub fn to_terminal(&self) -> String {
        let width = |column: usize| {
            let cells = std::iter::once(&self.header)
                .chain(&self.rows)
                .filter_map(|row| row.get(column));
            cells.map(|cell| plain(cell).chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.header.len()).map(width).collect();
        let left: Vec<bool> = (0..self.header.len())
            .map(|column| self.is_words(column))
            .collect();
        let line = |row: &Vec<String>, columns: &[usize]| {
            let cells = columns.iter().filter_map(|&column| {
                let (cell, width) = (plain(row.get(column)?), widths[column]);
                Some(if left[column] {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                })
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_string()
        };
        let mut lines = Vec::new();
        for columns in blocks(&widths) {
            if !lines.is_empty() {
                lines.push(String::new());
            }
            let rules: Vec<String> = columns.iter().map(|&column| "-".repeat(widths[column])).collect();
            lines.extend([line(&self.header, &columns), rules.join("  ")]);
            lines.extend(self.rows.iter().map(|row| line(row, &columns)));
        }
        lines.extend(self.notes.iter().flat_map(|note| folded(&plain_note(note))));
        lines.join("\n") + "\n"
    }

    /// Whether a column holds words: the first one, and those in which every cell begins with a letter.
    pub(crate) fn is_words(&self, column: usize) -> bool {
        let mut cells = self.rows.iter().filter_map(|row| row.get(column));
        let begins = |cell: &String| plain(cell).trim_start().starts_with(char::is_alphabetic);
        column == 0 || (!self.rows.is_empty() && cells.all(begins))
    }

    /// A Markdown table; the best of a column is bold.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let escape = |cell: &String| {
            let text = plain(cell)
                .replace('\\', "\\\\")
                .replace('|', "\\|")
                .replace('<', "&lt;");
            match text.strip_suffix(BEST) {
                Some(best) => format!("**{}**", best.trim_end()),
                None => text.trim_end().to_string(),
            }
        };
        let line =
            |row: &Vec<String>| format!("| {} |", row.iter().map(escape).collect::<Vec<_>>().join(" | "));
        let rule: Vec<&str> = (0..self.header.len())
            .map(|column| if self.is_words(column) { "---" } else { "---:" })
            .collect();
        let mut lines = vec![line(&self.header), format!("| {} |", rule.join(" | "))];
        lines.extend(self.rows.iter().map(line));
        for note in &self.notes {
            lines.push(String::new());
            lines.push(plain_note(note).replace(BEST, "bold:"));
        }
        lines.join("\n") + "\n"
    }
}

/// How the column against the reference is to be read.
fn versus_note(results: &Results, (label, heading): (&str, &str)) -> String {
    let metric = results.metric();
    let side = match metric.better {
        Better::Higher => "above",
        Better::Lower | Better::Neither => "below",
    };
    match metric.versus {
        Versus::Ratio if results.num_pairs() < 2 => {
            let advice = if results.is_drawn() {
                "one pair, so no interval (try --seeds 10)"
            } else {
                "nothing is drawn, so this one run is all there is (--window-days makes several of a trace)"
            };
            format!("{heading}: ratio of {}; {advice}", metric.label)
        }
        Versus::Ratio => {
            format!("{heading}: geometric mean of paired ratios, 95 % bootstrap interval; {side} 1 is better")
        }
        _ if results.num_pairs() < 2 => format!("{heading}: one list, so no interval (try --set lists=10)"),
        Versus::Points => {
            format!(
                "{heading}: mean difference in {label} of the same lists, 95 % bootstrap interval; {side} 0 is better"
            )
        }
        Versus::Percent => {
            format!(
                "{heading}: mean of paired ratios of {label} less 1, 95 % bootstrap interval; {side} 0 is better"
            )
        }
    }
}

/// Columns side by side in a terminal, the first one in every block.
fn blocks(widths: &[usize]) -> Vec<Vec<usize>> {
    let Some(first) = widths.first() else {
        return Vec::new();
    };
    let (mut blocks, mut used) = (vec![vec![0]], *first);
    for (column, width) in widths.iter().enumerate().skip(1) {
        let block = blocks
            .last_mut()
            .filter(|block| block.len() == 1 || used + 2 + width <= TERMINAL_CHARS);
        match block {
            Some(block) => block.push(column),
            None => {
                blocks.push(vec![0, column]);
                used = *first;
            }
        }
        used += 2 + width;
    }
    blocks
}

/// A line under the table in lines of a terminal, broken between words.
fn folded(note: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in note.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= TERMINAL_CHARS => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// The best value of a column; none where there is nothing to win or all are equal.
fn best_of(results: &Results, metric: &Metric) -> Option<f64> {
    let values: Vec<f64> = results
        .policies()
        .filter_map(|(_, summary)| summary.metrics.get(metric.key).copied())
        .collect();
    let low = values.iter().copied().min_by(f64::total_cmp)?;
    let high = values.iter().copied().max_by(f64::total_cmp)?;
    match metric.better {
        _ if low == high => None,
        Better::Lower => Some(low),
        Better::Higher => Some(high),
        Better::Neither => None,
    }
}

/// What stands where a policy lacks a metric of which others have values: a gap where its runs have no lower bound.
pub fn absent(metric: &Metric) -> &'static str {
    match GAP_KEYS.contains(&metric.key) {
        true => "no bound",
        false => "-",
    }
}

/// A value with the mark or a space in its place, so that numbers stay aligned.
fn cell(metrics: &BTreeMap<String, f64>, metric: &Metric, best: Option<f64>) -> String {
    match metrics.get(metric.key) {
        None => format!("{} ", absent(metric)),
        Some(&value) => format!(
            "{}{}",
            metric.show(value),
            if Some(value) == best { BEST } else { " " }
        ),
    }
}

/// How a policy stands to the reference by a metric, with its interval if it has one.
pub(crate) fn versus_cell(metric: &Metric, summary: &Summary) -> String {
    if let Some(versus) = &summary.gain_vs_reference {
        let places = if metric.versus == Versus::Percent { 1 } else { 2 };
        return gain_cell(Some(versus.gain.mean), versus.gain.interval, places);
    }
    match &summary.ratio_vs_reference {
        None => "-".to_string(),
        Some(versus) => show_interval(versus.ratio),
    }
}

/// A ratio with its interval, if it has one.
#[must_use]
pub(crate) fn show_interval(ratio: Ratio) -> String {
    match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => {
            format!(
                "{} [{}, {}]",
                show_ratio(ratio.mean),
                show_ratio(low),
                show_ratio(high)
            )
        }
        _ => show_ratio(ratio.mean),
    }
}

/// A ratio for people: three decimals where it is near 1.
#[must_use]
pub(crate) fn show_ratio(value: f64) -> String {
    if (0.1..10.0).contains(&value) {
        format!("{value:.3}")
    } else {
        show_plain(value)
    }
}

/// Text that cannot move the cursor or break a line, cut to the width of a cell or note.
fn plain(text: &str) -> String {
    let limit = if text.contains(' ') {
        4 * CELL_CHARS_MAX
    } else {
        CELL_CHARS_MAX
    };
    let clean = text.chars().map(|c| if c.is_control() { '?' } else { c });
    if text.chars().count() <= limit {
        clean.collect()
    } else {
        clean.take(limit - 1).chain(std::iter::once('…')).collect()
    }
}

/// A line under the table: as long as it is, with each word as [`plain`] has it.
fn plain_note(text: &str) -> String {
    text.split(' ').map(plain).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::evaluation::COLUMNS;
    use crate::evaluate::results::tests::run;

    fn results() -> Results {
        let runs = vec![
            run("fifo", "w", 0, 7200.0),
            run("fifo", "w", 1, 7200.0),
            run("tree", "w", 0, 3600.0),
            run("tree", "w", 1, 1800.0),
        ];
        Results::new("evaluate", runs, Some("fifo")).unwrap()
    }

    #[test]
    fn the_terminal_table_is_aligned_and_marks_the_best() {
        let text = Table::compare(&results(), &["avg_jct_s", "utilisation"]).to_terminal();
        // tree: ratios 1/2 and 1/4, geometric mean 0.354, extremes of two pairs.
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[3].contains("0.354 [0.250, 0.500]  45.0 min*"), "{text}");
        assert!(lines[2].contains("1 (reference)"));
        let lengths: Vec<usize> = lines[..4].iter().map(|line| line.chars().count()).collect();
        // A value that is not the best has a blank in the place of the mark, which the end of a line does not show.
        assert!(
            lengths.iter().all(|&length| length.abs_diff(lengths[1]) <= 1),
            "{text}"
        );
        assert!(!lines[2].contains('*') && !lines[3].ends_with('*'));
    }

    #[test]
    fn a_wide_table_goes_on_below_and_no_line_is_wider_than_a_terminal() {
        let header: Vec<String> = (0..9).map(|column| format!("column number {column}")).collect();
        let table = Table {
            rows: vec![header.clone()],
            header,
            notes: vec!["word ".repeat(40)],
        };
        let text = table.to_terminal();
        assert!(
            text.lines().all(|line| line.chars().count() <= TERMINAL_CHARS),
            "{text}"
        );
        // 15 characters and two between: three more beside the first in a block, so eight take three, header and row each.
        assert_eq!(
            text.lines()
                .filter(|line| line.starts_with("column number 0"))
                .count(),
            6
        );
        assert_eq!(text.matches("column number 8").count(), 2);
    }

    #[test]
    fn comparisons_stand_side_by_side_each_with_its_own_reference() {
        let known = results();
        let runs = vec![
            run("fifo", "w", 0, 7200.0),
            run("fifo", "w", 1, 7200.0),
            run("tree", "w", 0, 14_400.0),
            run("tree", "w", 1, 14_400.0),
        ];
        let guessed = Results::new("evaluate", runs, Some("tree")).unwrap();
        let table = Table::beside(&[("", &known), ("guessed", &guessed)]);
        assert_eq!(
            table.header,
            [
                "policy",
                "JCT vs fifo",
                "avg JCT",
                "guessed: JCT vs tree",
                "guessed: avg JCT"
            ]
        );
        let cells = |row: usize| table.rows[row].iter().map(|cell| cell.trim()).collect::<Vec<_>>();
        assert_eq!(
            cells(0),
            ["fifo", "1 (reference)", "2.0 h", "0.500 [0.500, 0.500]", "2.0 h*"]
        );
        assert_eq!(cells(1)[3..], ["1 (reference)", "4.0 h"]);
    }

    #[test]
    fn one_pair_asks_for_more_seeds_only_where_they_would_give_other_runs() {
        let runs = || vec![run("fifo", "w", 0, 7200.0), run("tree", "w", 0, 3600.0)];
        let note = |is_drawn: bool| {
            let results = Results::new("evaluate", runs(), Some("fifo")).unwrap();
            Table::compare(&results.drawn(is_drawn), &["avg_jct_s"]).to_terminal()
        };
        assert!(note(true).contains("--seeds 10"));
        let fixed = note(false);
        assert!(
            !fixed.contains("--seeds") && fixed.contains("--window-days"),
            "{fixed}"
        );
    }

    #[test]
    fn the_gap_to_the_lower_bound_has_a_column_and_the_bound_a_line() {
        let bounds = pleach_env::bound::LowerBounds {
            avg_jct_s: 3000.0,
            makespan_s: 7200.0,
        };
        let runs = [("fifo", 4500.0), ("tree", 3600.0)].map(|(name, avg_jct_s)| {
            let run = run(name, "w", 0, avg_jct_s).with("makespan_s", 7200.0);
            run.against(bounds).unwrap()
        });
        let results = Results::new("evaluate", runs.into(), None).unwrap();
        let text = Table::compare(&results, &["avg_jct_s", "avg_jct_gap", "makespan_gap"]).to_terminal();
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].contains("JCT gap") && lines[0].contains("makespan gap"),
            "{text}"
        );
        assert!(
            lines[2].contains("50.0 %") && lines[3].contains("20.0 %*"),
            "{text}"
        );
        assert!(lines[3].contains("0.0 %"), "{text}");
        assert!(
            text.contains("lower bound: avg JCT 50.0 min, makespan 2.0 h"),
            "{text}"
        );
    }

    #[test]
    fn markdown_marks_the_best_in_bold_and_escapes_bars() {
        let mut table = Table::compare(&results(), &["avg_jct_s"]);
        table.rows[0][0] = "a|b<i>".to_string();
        let text = table.to_markdown();
        assert!(
            text.starts_with("| policy | JCT vs fifo | avg JCT |\n| --- | ---: | ---: |\n"),
            "{text}"
        );
        assert!(text.contains("| a\\|b&lt;i> | 1 (reference) | 2.0 h |"), "{text}");
        assert!(
            text.contains("| tree | 0.354 [0.250, 0.500] | **45.0 min** |"),
            "{text}"
        );
    }

    #[test]
    fn hostile_names_neither_move_the_cursor_nor_widen_the_table_without_bound() {
        let mut table = Table::compare(&results(), &["avg_jct_s"]);
        table.rows[0][0] = format!("\u{1b}[2J{}", "x".repeat(10_000));
        let text = table.to_terminal();
        assert!(!text.contains('\u{1b}'));
        assert!(text.lines().all(|line| line.chars().count() < 300));
    }

    #[test]
    fn rows_that_decided_alike_are_one_and_a_line_names_them_all() {
        let mut runs = vec![run("first", "w", 0, 2.0), run("own", "w", 0, 1.0)];
        runs.extend((0..40).map(|number| run(&format!("policy-{number}"), "w", 0, 2.0)));
        let table = |reference| {
            let results = Results::new("evaluate", runs.clone(), Some(reference)).unwrap();
            Table::compare(&results, &["avg_jct_s"])
        };
        let text = table("first").to_terminal();
        assert_eq!(
            text.lines().filter(|line| line.contains("2.0 s")).count(),
            1,
            "{text}"
        );
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("decided alike: policy-0 as first,"), "{text}");
        assert!(words.contains("policy-39 as first"), "{text}");
        // The reference keeps its row.
        let rows = table("policy-7").rows;
        let names: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(names, ["own", "policy-7"]);
    }

    #[test]
    fn one_pair_says_that_there_is_no_interval() {
        let runs = vec![run("a", "w", 0, 1.0), run("b", "w", 0, 2.0)];
        let results = Results::new("evaluate", runs, Some("a")).unwrap();
        let text = Table::compare(&results, &COLUMNS).to_terminal();
        assert!(text.contains("no interval"), "{text}");
        assert!(
            text.contains("mean over 1 run of 1 workload and 1 seed"),
            "{text}"
        );
    }
}
