//! How often something can be done in a second.

use pleach_experiments::error::Error;
use pleach_experiments::evaluate::stats::quantile;

use super::BenchArgs;
use pleach_experiments::command::Context;

/// Repetitions of each measurement; the median is reported.
pub(super) const NUM_REPEATS: usize = 5;

/// The median over repetitions of `count / seconds`, each repetition lasting a share of the time.
pub(super) fn rate(
    args: &BenchArgs,
    context: &Context<'_>,
    mut work: impl FnMut() -> Result<u64, Error>,
) -> Result<f64, Error> {
    let share_s = args.seconds / NUM_REPEATS as f64;
    let mut rates = Vec::new();
    for _ in 0..NUM_REPEATS {
        let start_s = (context.clock)();
        let mut count = 0;
        while (context.clock)() - start_s < share_s || count == 0 {
            count += work()?;
        }
        rates.push(count as f64 / ((context.clock)() - start_s).max(1e-9));
    }
    rates.sort_unstable_by(f64::total_cmp);
    Ok(quantile(&rates, 0.5).unwrap_or(f64::NAN))
}
