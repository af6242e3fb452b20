//! What a list of requests is like: how they come, how long they are, what conversations hold.

use std::collections::HashMap;

use pleach_serving::llm::Requests;
use serde::Serialize;

use crate::error::Error;
use crate::evaluate::metric::{show_plain, show_seconds};
use crate::evaluate::table::Table;
use crate::workload_report::spread::{Summary, sorted};
use crate::worlds::describe::{HEADER, MINUTE_S, cells};
use crate::worlds::world::Description;

/// A description.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestsDescription {
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

impl RequestsDescription {
    /// Of a list.
    #[must_use]
    pub fn of(requests: &Requests) -> RequestsDescription {
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
        RequestsDescription {
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

    /// The same with the lines about its file.
    #[must_use]
    pub(super) fn noted(self, lines: &[String]) -> RequestsDescription {
        RequestsDescription {
            notes: lines.to_vec(),
            ..self
        }
    }

    /// For people and programs.
    pub(super) fn shown(&self) -> Result<Description, Error> {
        Description::of(self, self.table(), ("requests", &self.by_minute, self.span_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_serving::llm::{Blocks, Request};

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
        let found = RequestsDescription::of(&Requests::new(rows).unwrap());
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
        assert!(
            found
                .shown()
                .unwrap()
                .report
                .html()
                .contains("requests a second over time")
        );
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
        let found = RequestsDescription::of(&Requests::new(vec![one]).unwrap());
        assert_eq!((found.variance_to_mean, found.gap_s.mean), (None, None));
        assert!(!found.table().to_terminal().contains("NaN"));
        assert!(
            found
                .shown()
                .unwrap()
                .report
                .html()
                .contains("requests a second over time")
        );
    }
}
