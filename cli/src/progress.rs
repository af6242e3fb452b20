//! Progress for people, on standard error: one bar with an estimate of the time left on a terminal, and where there is none
//! (a pipe, a log of a batch system) a plain line now and then.

use std::io::{self, Write as _};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use pleach_experiments::progress::{Progress, Watcher};

/// Time between two plain lines, at least, and before the first: what is done sooner says nothing.
const PLAIN_EVERY: Duration = Duration::from_secs(15);

/// Shows each part of the work as a bar, or by plain lines; neither if `quiet`. Notes are shown anyway.
#[must_use]
pub fn bars(quiet: bool) -> Watcher {
    let shown: Mutex<Option<Bar>> = Mutex::new(None);
    Watcher::new(move |progress| {
        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        match (progress, &*shown) {
            (Progress::Begun(label, num_steps), _) => *shown = Some(Bar::new(quiet, label, num_steps)),
            (Progress::OutOf(num_steps), Some(bar)) => bar.out_of(num_steps),
            (Progress::Step, Some(bar)) => bar.step(),
            (Progress::At(step, message), Some(bar)) => bar.at(step, message),
            (Progress::Ended, Some(bar)) => {
                bar.end();
                *shown = None;
            }
            (Progress::Note(line), Some(bar)) => bar.note(line),
            (Progress::Note(line), None) => say(line),
            (Progress::OutOf(_) | Progress::Step | Progress::At(..) | Progress::Ended, None) => {}
        }
    })
}

/// A bar over a known number of steps, or the lines in its place.
#[derive(Debug)]
struct Bar {
    bar: ProgressBar,
    label: String,
    /// When the next plain line is due; none where the bar is seen or `--quiet` was given.
    plain: Option<Mutex<Pace>>,
}

impl Bar {
    /// A bar with a label, or plain lines where standard error is no terminal; neither if `quiet`.
    fn new(quiet: bool, label: &str, num_steps: u64) -> Bar {
        let bar = if quiet {
            ProgressBar::hidden()
        } else {
            ProgressBar::new(num_steps)
        };
        set_style(&bar, num_steps);
        bar.set_prefix(label.to_string());
        let is_plain = !quiet && bar.is_hidden();
        if !is_plain {
            bar.enable_steady_tick(Duration::from_millis(500));
        }
        Bar {
            bar,
            label: label.to_string(),
            plain: is_plain.then(|| Mutex::new(Pace { due: PLAIN_EVERY })),
        }
    }

    /// One step more.
    fn step(&self) {
        self.bar.inc(1);
        self.say_where(&self.bar.message());
    }

    /// Stands at a step, with a word on how it goes.
    fn at(&self, step: u64, message: &str) {
        self.bar.set_position(step);
        self.say_where(message);
        self.bar.set_message(message.to_string());
    }

    /// Steps in all, where that is known only on the way.
    fn out_of(&self, num_steps: u64) {
        self.bar.set_length(num_steps);
        set_style(&self.bar, num_steps);
    }

    /// One line on standard error that stays, whether there is a bar or not.
    fn note(&self, line: &str) {
        self.bar.suspend(|| say(line));
    }

    /// Removes the bar.
    fn end(&self) {
        self.bar.finish_and_clear();
    }

    fn say_where(&self, message: &str) {
        let Some(plain) = &self.plain else { return };
        let elapsed = self.bar.elapsed();
        let is_due = plain
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_due(elapsed);
        if is_due {
            let of = (self.bar.position(), self.bar.length().unwrap_or(0));
            say(&plain_line(&self.label, of, elapsed, message));
        }
    }
}

/// A bar; where the number of steps is not known, the steps that are done and the time.
fn set_style(bar: &ProgressBar, num_steps: u64) {
    let template = if num_steps == 0 {
        "{prefix:<10} {pos} {elapsed:>5} so far  {msg}"
    } else {
        "{prefix:<10} [{bar:30}] {pos}/{len} {eta:>5} left  {msg}"
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
}

/// A line on standard error. Where it cannot be written, the work goes on.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "pleach: {line}");
}

/// When the next plain line is due, counted from the beginning.
#[derive(Debug)]
struct Pace {
    due: Duration,
}

impl Pace {
    /// Whether a line is due; if so the next one is due later.
    fn is_due(&mut self, elapsed: Duration) -> bool {
        let is_due = elapsed >= self.due;
        if is_due {
            self.due = elapsed + PLAIN_EVERY;
        }
        is_due
    }
}

/// `train 40/200, 20 %, 00:01:00 so far, JCT 0.912 of sjf`; `train 40, 00:01:00 so far` where the number of steps is not known.
fn plain_line(label: &str, (done, of): (u64, u64), elapsed: Duration, message: &str) -> String {
    let percent = (100 * done).checked_div(of);
    let steps = percent.map_or_else(|| done.to_string(), |percent| format!("{done}/{of}, {percent} %"));
    let seconds = elapsed.as_secs();
    let (h, min, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let mut line = format!("{label} {steps}, {h:02}:{min:02}:{s:02} so far");
    if !message.is_empty() {
        line += &format!(", {message}");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_lines_come_at_most_every_fifteen_seconds_and_none_at_once() {
        let mut pace = Pace { due: PLAIN_EVERY };
        let said: Vec<u64> = (0..100)
            .filter(|s| pace.is_due(Duration::from_secs(*s)))
            .collect();
        assert_eq!(said, [15, 30, 45, 60, 75, 90]);
        // After a long step there is one line, and not one for each that was missed.
        let mut pace = Pace { due: PLAIN_EVERY };
        let said = [100, 101, 114, 115].map(|s| pace.is_due(Duration::from_secs(s)));
        assert_eq!(said, [true, false, false, true]);
    }

    #[test]
    fn a_plain_line_says_where_it_stands() {
        let minutes = Duration::from_secs(61);
        assert_eq!(
            plain_line("train", (40, 200), minutes, "JCT 0.912 of sjf"),
            "train 40/200, 20 %, 00:01:01 so far, JCT 0.912 of sjf"
        );
        assert_eq!(
            plain_line("distill", (7, 0), minutes, ""),
            "distill 7, 00:01:01 so far"
        );
    }

    /// Tests run with a standard error that is captured or piped, which no terminal sees.
    #[test]
    fn lines_stand_in_for_a_bar_that_nobody_would_see_and_quiet_is_quiet() {
        let bar = Bar::new(false, "train", 3);
        assert_eq!(bar.plain.is_some(), bar.bar.is_hidden());
        bar.step();
        assert_eq!(bar.bar.position(), 1);
        assert!(Bar::new(true, "train", 3).plain.is_none());
    }
}
