//! What a list of calls is like: how they come, how long they run, how long functions are left alone between them.

use pleach_serving::functions::Calls;
use serde::Serialize;

use crate::error::Error;
use crate::evaluate::metric::{show_plain, show_seconds};
use crate::evaluate::table::Table;
use crate::workload_report::spread::{Summary, sorted};
use crate::worlds::describe::{HEADER, cells};
use crate::worlds::world::Description;

/// Keep-alives after which a call finds no container, s.
const KEEP_S: [f64; 3] = [60.0, 600.0, 3_600.0];

/// A description.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallsDescription {
    /// The format.
    pub format: String,
    /// Calls.
    pub num_calls: usize,
    /// Functions.
    pub num_functions: usize,
    /// From the first to the last call, s.
    pub span_s: f64,
    /// Calls of each minute.
    pub by_minute: Vec<u32>,
    /// Their figures.
    pub minutes: Summary,
    /// How long calls run, s.
    pub run_s: Summary,
    /// Time since the function's call before, s.
    pub gap_s: Summary,
    /// Calls of a function.
    pub calls: Summary,
    /// Functions that run at once, mean over the span.
    pub busy: f64,
    /// Calls whose function was not called for so long (s), the first of each among them, %.
    pub after_pct: [(f64, f64); 3],
    /// What was left out, mended or assumed.
    pub notes: Vec<String>,
}

impl CallsDescription {
    /// Of a list.
    #[must_use]
    pub fn of(list: &Calls) -> CallsDescription {
        let span_s = list.calls.last().map_or(0.0, |call| 1e-6 * call.at_us as f64);
        let mut by_minute = vec![0_u32; (span_s / 60.0) as usize + 1];
        let mut last_us: Vec<Option<u64>> = vec![None; list.functions.len()];
        let mut num_calls = vec![0_u32; list.functions.len()];
        let (mut gaps, mut busy_us) = (Vec::new(), 0.0);
        for call in &list.calls {
            by_minute[(call.at_us / 60_000_000) as usize] += 1;
            num_calls[call.function as usize] += 1;
            if let Some(last_us) = last_us[call.function as usize].replace(call.at_us) {
                gaps.push(1e-6 * (call.at_us - last_us) as f64);
            }
            busy_us += f64::from(call.run_us);
        }
        let num = list.calls.len();
        let firsts = num - gaps.len();
        let after = |keep_s: f64| {
            let later = gaps.iter().filter(|gap_s| **gap_s > keep_s).count();
            (keep_s, 100.0 * (firsts + later) as f64 / num.max(1) as f64)
        };
        CallsDescription {
            format: list.format.into(),
            num_calls: num,
            num_functions: list.functions.len(),
            span_s,
            minutes: Summary::of(&sorted(by_minute.iter().map(|count| f64::from(*count)))),
            by_minute,
            run_s: Summary::of(&sorted(
                list.calls.iter().map(|call| 1e-6 * f64::from(call.run_us)),
            )),
            after_pct: KEEP_S.map(after),
            gap_s: Summary::of(&sorted(gaps.into_iter())),
            calls: Summary::of(&sorted(num_calls.iter().map(|count| f64::from(*count)))),
            busy: 1e-6 * busy_us / span_s.max(1e-6),
            notes: list.told(),
        }
    }

    /// Figures with their mean, quantiles and largest; below, what is one number.
    #[must_use]
    pub fn table(&self) -> Table {
        let after = self
            .after_pct
            .map(|(keep_s, pct)| format!("{pct:.1} % after {}", show_seconds(keep_s)));
        let mut notes = vec![
            format!(
                "{}: {} calls of {} functions in {}, {} at once on average",
                self.format,
                self.num_calls,
                self.num_functions,
                show_seconds(self.span_s),
                show_plain(self.busy)
            ),
            format!("calls whose function was left alone before: {}", after.join(", ")),
        ];
        notes.extend(self.notes.iter().cloned());
        Table {
            header: HEADER.map(str::to_string).to_vec(),
            rows: vec![
                cells("calls a minute", &self.minutes, show_plain),
                cells("run time (s)", &self.run_s, show_plain),
                cells("since the call before (s)", &self.gap_s, show_plain),
                cells("calls of a function", &self.calls, show_plain),
            ],
            notes,
        }
    }

    /// For people and programs.
    pub(super) fn shown(&self) -> Result<Description, Error> {
        Description::of(self, self.table(), ("calls", &self.by_minute, self.span_s))
    }
}
