//! What a list of requests is like: how they come, how long they are, what conversations hold.

use std::collections::HashMap;
use std::path::Path;

use pleach_serving::llm::Requests;
use serde::Serialize;

use crate::error::Error;
use crate::evaluate::metric::{show_plain, show_seconds};
use crate::evaluate::table::Table;
use crate::plot::axis::Axis;
use crate::plot::frame::Frame;
use crate::plot::series::averaged;
use crate::report::page::{html_table, page, preformatted, section};
use crate::workload_report::spread::{Summary, sorted};

/// Length of the intervals in which arrivals are counted, s.
const MINUTE_S: f64 = 60.0;
/// Points of the plot, at most.
const POINTS_MAX: usize = 600;

/// A description.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Description {
    /// Requests.
    pub num_requests: usize,
    /// From the first to the last arrival, s.
    pub span_s: f64,
    /// Requests a second over the span.
    pub rate_per_s: f64,
    /// Requests of each minute from the first arrival on.
    pub by_minute: Vec<u32>,
    /// Their figures.
    pub minutes: Summary,
    /// Variance over mean of the counts of whole minutes: 1 for a Poisson process, above for bursts. At least two minutes.
    pub variance_to_mean: Option<f64>,
    /// Time between arrivals, s.
    pub gap_s: Summary,
    /// Tokens of prompts.
    pub prompt_tokens: Summary,
    /// Tokens of answers.
    pub output_tokens: Summary,
    /// Conversations.
    pub num_sessions: usize,
    /// Requests of a conversation.
    pub turns: Summary,
    /// Tokens of prompts that stood in their conversations before, over all.
    pub prefix_share: f64,
    /// Tokens of prompts in blocks that came before, over all; none where the list tells no blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_share: Option<f64>,
    /// Rows of the file that were read, kept and left out, by reason.
    pub notes: Vec<String>,
}

impl Description {
    /// Of a file.
    ///
    /// # Errors
    /// A list that cannot be read.
    pub fn read(path: &Path) -> Result<Description, Error> {
        let read = super::read(path)?;
        Ok(Description {
            notes: super::lines_of(&read),
            ..Description::of(&read.requests)
        })
    }

    /// Of a list.
    #[must_use]
    pub fn of(requests: &Requests) -> Description {
        let rows = requests.rows();
        let (first_s, last_s) = (rows[0].arrival_s, rows[rows.len() - 1].arrival_s);
        let minute = |arrival_s: f64| ((arrival_s - first_s) / MINUTE_S) as usize;
        let mut by_minute = vec![0_u32; minute(last_s) + 1];
        let mut turns: HashMap<u32, u32> = HashMap::new();
        let (mut prompts, mut prefixes) = (0.0, 0.0);
        for row in rows {
            by_minute[minute(row.arrival_s)] += 1;
            *turns.entry(row.session).or_default() += 1;
            prompts += f64::from(row.prompt_tokens);
            prefixes += f64::from(row.prefix_tokens);
        }
        // The last minute is a part of one.
        let whole = &by_minute[..by_minute.len() - 1];
        let spread = Summary::of(&sorted(whole.iter().map(|count| f64::from(*count))));
        let gaps = rows.windows(2).map(|pair| pair[1].arrival_s - pair[0].arrival_s);
        Description {
            num_requests: rows.len(),
            span_s: last_s - first_s,
            rate_per_s: requests.rate_per_s(),
            minutes: Summary::of(&sorted(by_minute.iter().map(|count| f64::from(*count)))),
            variance_to_mean: spread
                .variation
                .zip(spread.mean)
                .filter(|_| whole.len() >= 2)
                .map(|(variation, mean)| variation * variation * mean),
            by_minute,
            gap_s: Summary::of(&sorted(gaps)),
            prompt_tokens: Summary::of(&sorted(rows.iter().map(|row| f64::from(row.prompt_tokens)))),
            output_tokens: Summary::of(&sorted(rows.iter().map(|row| f64::from(row.output_tokens)))),
            num_sessions: turns.len(),
            turns: Summary::of(&sorted(turns.values().map(|turns| f64::from(*turns)))),
            prefix_share: prefixes / prompts,
            block_share: requests.block_share(),
            notes: Vec::new(),
        }
    }

    /// Figures with their mean, quantiles and largest; below, what is one number.
    #[must_use]
    pub fn table(&self) -> Table {
        let milli = |s: f64| show_plain(1e3 * s);
        let rows = vec![
            cells("requests a minute", &self.minutes, show_plain),
            cells("gap (ms)", &self.gap_s, milli),
            cells("prompt (tokens)", &self.prompt_tokens, show_plain),
            cells("answer (tokens)", &self.output_tokens, show_plain),
            cells("turns of a conversation", &self.turns, show_plain),
        ];
        let bursts = self.variance_to_mean.map_or_else(String::new, |ratio| {
            let ratio = show_plain(ratio);
            format!("; minutes have variance over mean {ratio} (a Poisson process: 1)")
        });
        let variation = self.gap_s.variation.map_or_else(String::new, |variation| {
            format!(
                "; gaps vary by {} of their mean (a Poisson process: 1)",
                show_plain(variation)
            )
        });
        let blocks = self.block_share.map_or_else(String::new, |share| {
            format!("; {:.1} % stand in blocks that came before in any", 100.0 * share)
        });
        let mut notes = vec![
            format!("{}{bursts}{variation}", self.size()),
            format!(
                "{} conversations; {:.1} % of the tokens of prompts stood in them before{blocks}",
                self.num_sessions,
                100.0 * self.prefix_share
            ),
        ];
        notes.extend(self.notes.iter().cloned());
        Table {
            header: HEADER.map(str::to_string).to_vec(),
            rows,
            notes,
        }
    }

    fn size(&self) -> String {
        let num = self.num_requests;
        match self.span_s {
            0.0 => format!("{num} at one time"),
            span_s => format!(
                "{num} requests in {}, {:.2} a second",
                show_seconds(span_s),
                self.rate_per_s
            ),
        }
    }

    /// Table and arrivals as a page.
    #[must_use]
    pub fn html(&self, command_line: &str) -> String {
        page_of(
            ("Requests", "requests"),
            &self.table(),
            (&self.by_minute, self.span_s),
            command_line,
        )
    }
}

/// Figures of a list, each with its mean, quantiles and largest.
pub(super) const HEADER: [&str; 7] = ["", "mean", "p10", "p50", "p90", "p99", "largest"];

/// The cells of a figure under [`HEADER`].
pub(super) fn cells(name: &str, summary: &Summary, show: fn(f64) -> String) -> Vec<String> {
    let cell = |value: Option<f64>| value.map_or_else(|| "-".into(), show);
    let quantiles = [10, 50, 90, 99].map(|percent| cell(summary.at(percent)));
    let mut cells = vec![name.to_string(), cell(summary.mean)];
    cells.extend(quantiles);
    cells.push(cell(summary.max));
    cells
}

/// A page with the figures of a list and its arrivals.
pub(super) fn page_of(
    (title, noun): (&str, &str),
    table: &Table,
    (by_minute, span_s): (&[u32], f64),
    command_line: &str,
) -> String {
    let mut body = format!("<h1>{title}</h1>\n");
    section(&mut body, "Figures", Some(html_table(table)));
    section(&mut body, "Arrivals", Some(arrivals(noun, by_minute, span_s)));
    section(&mut body, "How this was made", Some(preformatted(command_line)));
    page(title, &body)
}

/// Requests or calls a second over time, from counts by minute.
fn arrivals(noun: &str, by_minute: &[u32], span_s: f64) -> String {
    let counts = by_minute.iter().enumerate();
    let rates: Vec<(f64, f64)> = counts
        .map(|(minute, count)| (MINUTE_S * minute as f64, f64::from(*count) / MINUTE_S))
        .collect();
    let shown = averaged(&rates, POINTS_MAX);
    let top = shown.iter().map(|point| point.1).fold(0.0, f64::max);
    let time = Axis::time("time since the first one", span_s);
    let what = format!("{noun} a second");
    let mut frame = Frame::new(time, Axis::linear(&what, 0.0, top), 260.0);
    frame.steps(0, &what, &shown);
    frame.render(&format!("{what} over time, by minute"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_serving::llm::{Blocks, Request};
    use pleach_tests::assert_well_formed;

    #[test]
    fn a_list_of_five_is_described_by_hand() {
        let request = |arrival_s: f64, prompt_tokens: u32, session: u32, prefix_tokens: u32| Request {
            arrival_s,
            prompt_tokens,
            output_tokens: 10,
            session,
            prefix_tokens,
            blocks: Blocks::default(),
        };
        let rows = vec![
            request(100.0, 100, 1, 0),
            request(101.0, 200, 2, 0),
            request(105.0, 300, 1, 110),
            request(170.0, 100, 3, 0),
            request(220.0, 300, 1, 290),
        ];
        let found = Description::of(&Requests::new(rows).unwrap());
        assert_eq!((found.num_requests, found.num_sessions), (5, 3));
        assert_eq!(found.by_minute, [3, 1, 1]);
        assert_eq!((found.span_s, found.prefix_share), (120.0, 0.4));
        // Two whole minutes with 3 and 1: mean 2, variance 1.
        assert_eq!(found.variance_to_mean, Some(0.5));
        assert_eq!(
            (found.turns.max, found.prompt_tokens.mean),
            (Some(3.0), Some(200.0))
        );
        let text = found.table().to_terminal();
        assert!(text.contains("5 requests in 2.0 min, 0.04 a second"), "{text}");
        assert!(text.contains("40.0 % of the tokens of prompts"), "{text}");
        assert_well_formed(&found.html("pleach serve describe"));
    }

    #[test]
    fn one_request_has_neither_gaps_nor_bursts() {
        let one = Request {
            arrival_s: 5.0,
            prompt_tokens: 7,
            output_tokens: 1,
            session: 0,
            prefix_tokens: 0,
            blocks: Blocks::default(),
        };
        let found = Description::of(&Requests::new(vec![one]).unwrap());
        assert_eq!((found.variance_to_mean, found.gap_s.mean), (None, None));
        assert!(!found.table().to_terminal().contains("NaN"));
        assert_well_formed(&found.html("pleach serve describe"));
    }
}
