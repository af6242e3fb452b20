//! How often something can be done in a second.

use std::time::Duration;

use pleach_experiments::error::Error;
use pleach_experiments::evaluate::stats::quantile;
use rustix::time::{ClockId, clock_gettime};

use super::BenchArgs;
use pleach_experiments::command::Context;

/// Repetitions of each measurement; the median is reported.
pub(super) const NUM_REPEATS: usize = 5;

/// The median over repetitions of `count / seconds`, each repetition lasting a share of the time. Seconds of the wall, for work on
/// several threads or devices.
pub(super) fn rate(
    args: &BenchArgs,
    context: &Context<'_>,
    work: impl FnMut() -> Result<u64, Error>,
) -> Result<f64, Error> {
    rate_by(args, context.clock, work)
}

/// The same in seconds of this program's processors: what else runs on the machine takes no part of them.
pub(super) fn cpu_rate(args: &BenchArgs, work: impl FnMut() -> Result<u64, Error>) -> Result<f64, Error> {
    rate_by(args, &cpu_s, work)
}

fn rate_by(
    args: &BenchArgs,
    clock: &dyn Fn() -> f64,
    mut work: impl FnMut() -> Result<u64, Error>,
) -> Result<f64, Error> {
    let share_s = args.seconds / NUM_REPEATS as f64;
    let mut rates = Vec::new();
    for _ in 0..NUM_REPEATS {
        let start_s = clock();
        let mut count = 0;
        while clock() - start_s < share_s || count == 0 {
            count += work()?;
        }
        rates.push(count as f64 / (clock() - start_s).max(1e-9));
    }
    rates.sort_unstable_by(f64::total_cmp);
    Ok(quantile(&rates, 0.5).unwrap_or(f64::NAN))
}

/// Time that all threads of this program have had a processor, s.
fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default().as_secs_f64()
}
