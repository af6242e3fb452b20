//! Progress for people: one bar with an estimate of the time left, on standard error, silent where nobody looks.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar over a known number of steps.
#[derive(Debug)]
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar with a label; hidden if `quiet` or if standard error is no terminal.
    #[must_use]
    pub fn new(quiet: bool, label: &str, num_steps: u64) -> Bar {
        let bar = if quiet {
            ProgressBar::hidden()
        } else {
            ProgressBar::new(num_steps)
        };
        let template = "{prefix:<10} [{bar:30}] {pos}/{len} {eta:>5} left  {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(label.to_string());
        bar.enable_steady_tick(Duration::from_millis(500));
        Bar(bar)
    }

    /// One step more.
    pub fn step(&self) {
        self.0.inc(1);
    }

    /// Stands at a step, with a word on how it goes.
    pub fn at(&self, step: u64, message: String) {
        self.0.set_position(step);
        self.0.set_message(message);
    }

    /// One line on standard error that stays, whether there is a bar or not.
    pub fn note(&self, line: &str) {
        self.0.suspend(|| eprintln!("pleach: {line}"));
    }

    /// Removes the bar.
    pub fn end(self) {
        self.0.finish_and_clear();
    }
}
