//! Round after round, until a signal ends it: what `run` does with a driver, whatever the batch system.

use std::time::{Duration, Instant};

use crate::drive::Drive;
use crate::driver::Driver;
use crate::error::Error;
use crate::log::one_line;
use crate::system::BatchSystem;

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// To end.
    End,
    /// To read the policy again.
    Reload,
}

/// The program around a driver: its clock and its signals.
pub trait Host {
    /// The time, Unix, s.
    fn now_s(&self) -> i64;

    /// Waits for so long, or until a signal wishes something.
    fn pause(&mut self, most: Duration) -> impl Future<Output = Option<Wish>>;
}

/// Runs a driver with a time of `tick` between rounds, `most` rounds if that is given.
///
/// # Errors
/// A policy that fails on the first look. All else is reported, and tried again in the next round.
pub async fn run<S: BatchSystem>(
    driver: &mut Driver<S>,
    host: &mut impl Host,
    tick: Duration,
    most: Option<u64>,
) -> Result<(), Error> {
    driver.look_ahead(host.now_s()).await?;
    introduce(driver, tick);
    let pulse = driver.pulse();
    let mut last = Vec::new();
    let mut wish = host.pause(Duration::ZERO).await;
    while wish != Some(Wish::End) {
        if wish == Some(Wish::Reload) {
            reload(driver);
        }
        let began = Instant::now();
        let notes = driver.round(host.now_s()).await;
        // What goes on from round to round is said once.
        for text in notes.iter().filter(|text| !last.contains(*text)) {
            tracing::warn!("{}", one_line(text));
        }
        last = notes;
        let is_last = most.is_some_and(|most| driver.status().num_rounds >= most);
        pulse.rest(tick);
        wish = match is_last {
            true => Some(Wish::End),
            false => host.pause(tick.saturating_sub(began.elapsed())).await,
        };
    }
    let (num, program) = (driver.status().num_waiting, S::WORDS.program);
    match driver.drive().is_order() {
        _ if driver.is_shadow() || num == 0 => {}
        true => tracing::info!(
            "ends; {num} jobs wait in the last order, and start: `{program} hand-back` takes it away"
        ),
        false => tracing::warn!("ends; {num} jobs stay held: start it again, or run `{program} hand-back`"),
    }
    Ok(())
}

fn reload<S: BatchSystem>(driver: &mut Driver<S>) {
    match driver.reload() {
        Ok(()) => tracing::info!(
            "the policy was read again: {}; the configuration is that of the start",
            driver.status().policy
        ),
        Err(error) => tracing::error!("the policy stays: {}", one_line(&error.to_string())),
    }
}

/// Says what is driven by what, after what an operator should know of it.
fn introduce<S: BatchSystem>(driver: &Driver<S>, tick: Duration) {
    let status = driver.status();
    for warning in &status.warnings {
        tracing::warn!("{}", one_line(warning));
    }
    let mode = match (driver.is_shadow(), driver.drive()) {
        (true, _) => "decides and touches nothing on",
        (false, Drive::Hold) => "drives",
        (false, Drive::Order) => "orders the jobs of",
    };
    tracing::info!(
        "{} {mode} {}{} ({} rounds a minute)",
        status.policy,
        S::WORDS.place,
        status.partition,
        60.0 / tick.as_secs_f64()
    );
}
