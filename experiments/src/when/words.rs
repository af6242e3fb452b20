//! An answer in plain words: one screen.

use pleach_forecast::learn::{Method, RESOLVED_MIN};

use super::{Answer, Forecast};
use crate::evaluate::metric::show_seconds;

fn time(seconds: f64) -> String {
    if seconds == 0.0 {
        "now".into()
    } else {
        show_seconds(seconds)
    }
}

/// How often intervals held.
pub(super) fn held_words(held: f64, num_held: u64) -> String {
    match num_held {
        0 => "no earlier forecast is resolved: nothing is known of how well intervals hold here".into(),
        num => format!(
            "the 80 % interval held {:.0} % of the last {num} jobs here that were looked at",
            100.0 * held
        ),
    }
}

impl Forecast {
    /// `start in 3.2 h   80 %: 40 min to 9.0 h   at once: 4 %`.
    #[must_use]
    pub fn line(&self) -> String {
        let start = match self.median_s {
            0.0 => "starts at once".to_owned(),
            wait_s => format!("starts in {}", show_seconds(wait_s)),
        };
        let [from_s, to_s] = self.within_s;
        format!(
            "{start}   80 %: {} to {}   at once: {:.0} %",
            time(from_s),
            time(to_s),
            100.0 * self.at_once
        )
    }
}

impl Answer {
    /// All of it.
    #[must_use]
    pub fn words(&self) -> String {
        let mut lines = vec![format!("{}: {}", self.forecast.what, self.forecast.line())];
        if self.alternatives.is_empty() && !self.is_of_waiting {
            lines.push("nothing that was tried would start earlier".into());
        } else if !self.is_of_waiting {
            lines.push("instead:".into());
        }
        for other in &self.alternatives {
            lines.push(format!("  {}: {}", other.what, other.line()));
        }
        let [running, waiting, waiting_gpus] = self.queue;
        let [free, all] = self.gpus;
        lines.push(format!(
            "now {running:.0} jobs run and {waiting:.0} wait for {waiting_gpus:.0} GPUs; {free:.0} of {all:.0} GPUs are free"
        ));
        lines.push(held_words(self.held, self.num_held as u64));
        lines.push(match self.method {
            Method::Replay => format!(
                "how: the queue is replayed under {}, corrected by {} earlier forecasts",
                self.policy, self.num_resolved
            ),
            _ if self.is_forced => "how: plain history, as asked".into(),
            _ if self.is_short_of_forecasts() => format!(
                "how: plain history, for {} forecasts are resolved and {RESOLVED_MIN} are needed for replays",
                self.num_resolved
            ),
            Method::History => format!(
                "how: plain history, which did better here than replays under {}",
                self.policy
            ),
            Method::Trees => format!(
                "how: history by the state of the queue, which did better here than replays under {}",
                self.policy
            ),
        });
        lines.push(format!("not known here: {}", self.not_known.join(", ")));
        lines.join("\n")
    }
}
