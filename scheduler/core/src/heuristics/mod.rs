//! The classic scheduling heuristics: baselines, teachers, and fallbacks of a daemon.
//!
//! Each is a [`Policy`] that reads typed facts only and asks for the smallest candidate set that holds its choice.
//! Given a larger set (that of a learned policy, say, to be its teacher) it makes the same choice; only the preemptive
//! ones may not, because they look at more heads than that set has, `fifo` where quotas bind, because it looks at
//! heads tenant by tenant, and `sjf-best-type` and those that wait for a better place, which look at more jobs that fit.
//! Those that choose sizes or cores need a set that offers them.
//!
//! # What is deliberately not here
//! Nothing that must see the whole queue or plan a round: those are planners.

mod backfill;
mod best_type;
mod delay;
mod fifo;
mod greedy;
mod moldable;
mod preemptive;
mod rank;
mod ranking;
mod resizing;
mod sharing;
mod tuned;

#[cfg(test)]
pub(crate) mod tests;

pub use backfill::Backfill;
pub use best_type::SjfBestType;
pub use delay::{BestTypeDelay, DelayedBackfill, Patience};
pub use fifo::HeadOfLine;
pub use greedy::Greedy;
pub use moldable::SjfMoldable;
pub use preemptive::{Las, Srtf};
pub use ranking::Ranking;
pub use resizing::SjfResize;
pub use sharing::SjfShare;
pub use tuned::SjfTuned;

use crate::policy::Policy;
use crate::problem::Problem;
pub use pleach_problem::nearest_of;

/// What a heuristic is, for tables and help texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Name by which [`by_name`] knows it.
    pub name: &'static str,
    /// The line of scheduling that it belongs to.
    pub family: &'static str,
    /// Where it comes from.
    pub citation: &'static str,
    /// What it needs to know about jobs.
    pub knows: &'static str,
    /// What it decides.
    pub decides: &'static str,
}

/// All heuristics, in the order in which tables list them.
#[must_use]
pub fn infos() -> &'static [Info] {
    &INFOS
}

macro_rules! infos {
    ($($name:literal, $family:literal, $citation:literal, $knows:literal, $decides:literal;)*) => {
        const NAMES: &[&str] = &[$($name),*];
        const INFOS: [Info; NAMES.len()] =
            [$(Info { name: $name, family: $family, citation: $citation, knows: $knows, decides: $decides }),*];
    };
}

infos! {
    "fifo", "queueing", "textbook; YARN capacity scheduler", "arrival", "the oldest job, or nobody";
    "fifo-skip", "queueing", "first fit in arrival order", "arrival", "the oldest job that fits";
    "sjf", "size-based", "shortest job first", "run time estimate", "the shortest job that fits";
    "srtf", "size-based, preemptive", "Tiresias NSDI'19 and Synergy OSDI'22 (baseline)", "run time estimate", "the shortest job, stopping longer ones";
    "gpu-time", "size-based", "shortest remaining service first; Tiresias NSDI'19 (baseline)", "run time estimate, gang size", "the job with least GPU-time that fits";
    "las", "service-based, preemptive", "Tiresias NSDI'19, 2D-LAS", "attained service", "the oldest job of the least served class, stopping higher classes";
    "easy", "backfill", "Lifka, JSSPP'95", "arrival, run time estimate", "the oldest job or its reservation, then what does not delay it by arrival";
    "fair-share", "fairness", "weighted max-min over quotas", "GPUs held by each tenant", "the oldest job that fits of the tenant that holds least of its quota";
    "packing", "packing", "best-fit decreasing", "gang size", "the largest gang that fits, on the fullest node";
    "easy-sjf", "backfill", "Tsafrir et al., TPDS'07", "arrival, run time estimate", "as easy, backfilling the shortest first";
    "sjf-reserve", "backfill", "sjf with EASY's reservation", "run time estimate", "the shortest job or its reservation, then what does not delay it";
    "gpu-time-reserve", "backfill", "gpu-time with EASY's reservation", "run time estimate, gang size", "the job with least GPU-time or its reservation, then what does not delay it";
    "sjf-share", "sharing", "pair test of SJF-BSBF, IWQoS'24", "run time estimate, interference", "the shortest job that fits, else one beside a running job where that beats waiting";
    "sjf-moldable", "elastic", "moldable jobs, Cirne and Berman, JPDC'02", "run time estimate, scaling", "the shortest job that fits, and half, all or twice its GPUs";
    "sjf-tuned", "resource-sensitive", "profile and GREEDY of Synergy OSDI'22, as a queue order", "run time estimate, sensitivity", "the shortest job that fits, with the CPU and memory that it can use";
    "sjf-best-type", "heterogeneity-aware", "min-min of Maheswaran et al., HCW'99", "run time estimate, speed on each type", "the job that ends first on a free type, unless waiting for another type ends it sooner";
    "sjf-delay", "backfill, delay scheduling", "delay scheduling, EuroSys'10, over sjf-reserve", "run time estimate, gang size", "as sjf-reserve, but a long job waits for a tight place for half its run time";
    "gpu-time-delay", "backfill, delay scheduling", "delay scheduling, EuroSys'10, over gpu-time-reserve", "run time estimate, gang size", "as gpu-time-reserve, but a long job waits for a tight place for half its run time";
    "best-type-delay", "heterogeneity-aware, delay scheduling", "delay scheduling, EuroSys'10, over min-min", "run time estimate, speed on each type", "as sjf-best-type, with a margin between types and patience for a tight place";
    "sjf-resize", "elastic", "marginal gains of Optimus, EuroSys'18, as two rules", "run time estimate, scaling", "the shortest job that fits, at the size at which GPUs do most; running ones grow while nobody waits and shrink while somebody does";
}

/// The names that [`by_name`] knows.
#[must_use]
pub fn names() -> &'static [&'static str] {
    NAMES
}

/// Makes a heuristic.
///
/// # Errors
/// An unknown name; the error lists all names and the nearest one.
pub fn by_name(name: &str) -> Result<Box<dyn Policy>, Problem> {
    Ok(match name {
        "fifo" => Box::new(HeadOfLine::fifo()),
        "fifo-skip" => Box::new(Greedy::fifo_skip()),
        "sjf" => Box::new(Greedy::sjf()),
        "srtf" => Box::new(Srtf),
        "gpu-time" => Box::new(Greedy::gpu_time()),
        "las" => Box::new(Las),
        "easy" => Box::new(Backfill::easy()),
        "fair-share" => Box::new(Greedy::fair_share()),
        "packing" => Box::new(Greedy::packing()),
        "easy-sjf" => Box::new(Backfill::easy_sjf()),
        "sjf-reserve" => Box::new(Backfill::sjf_reserve()),
        "gpu-time-reserve" => Box::new(Backfill::gpu_time_reserve()),
        "sjf-share" => Box::new(SjfShare),
        "sjf-moldable" => Box::new(SjfMoldable),
        "sjf-tuned" => Box::new(SjfTuned),
        "sjf-best-type" => Box::new(SjfBestType),
        "sjf-delay" => Box::new(DelayedBackfill::sjf(Patience::TUNED)),
        "gpu-time-delay" => Box::new(DelayedBackfill::gpu_time(Patience::TUNED)),
        "best-type-delay" => Box::new(BestTypeDelay::TUNED),
        "sjf-resize" => Box::new(SjfResize),
        _ => {
            return Err(Problem::new(
                "policy",
                name,
                format!("one of {}", NAMES.join(", ")),
                format!("did you mean {}?", nearest(name)),
            ));
        }
    })
}

fn nearest(name: &str) -> &'static str {
    nearest_of(NAMES, name).unwrap_or_default()
}
