//! Progress for people: one bar with an estimate of the time left, on standard error, silent where nobody looks.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use pleach_experiments::progress::{Progress, Watcher};

/// Shows each part of the work as a bar; hidden if `quiet` or if standard error is no terminal. Notes are shown anyway.
#[must_use]
pub fn bars(quiet: bool) -> Watcher {
    let shown: Mutex<Option<ProgressBar>> = Mutex::new(None);
    Watcher::new(move |progress| {
        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        match (progress, &*shown) {
            (Progress::Begun(label, num_steps), _) => *shown = Some(bar(quiet, label, num_steps)),
            (Progress::Step, Some(bar)) => bar.inc(1),
            (Progress::At(step, message), Some(bar)) => {
                bar.set_position(step);
                bar.set_message(message.to_string());
            }
            (Progress::Ended, Some(bar)) => {
                bar.finish_and_clear();
                *shown = None;
            }
            (Progress::Note(line), Some(bar)) => bar.suspend(|| eprintln!("pleach: {line}")),
            (Progress::Note(line), None) => eprintln!("pleach: {line}"),
            (Progress::Step | Progress::At(..) | Progress::Ended, None) => {}
        }
    })
}

fn bar(quiet: bool, label: &str, num_steps: u64) -> ProgressBar {
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
    bar
}
