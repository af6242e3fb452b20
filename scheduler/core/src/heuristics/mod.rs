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
mod heuristic;
mod moldable;
mod preemptive;
mod rank;
mod ranking;
mod resizing;
mod sharing;
mod tuned;

#[cfg(test)]
pub(crate) mod tests;

pub use delay::{Patience, best_type_delay, delayed_backfill};
pub use fifo::head_of_line;
pub use greedy::greedy;
pub use heuristic::Heuristic;
pub use ranking::Ranking;

use self::backfill::backfill;
use crate::lens::Lens;
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
    ($($name:literal, $family:literal, $citation:literal, $knows:literal, $decides:literal, $make:expr;)*) => {
        const NAMES: &[&str] = &[$($name),*];
        const INFOS: [Info; NAMES.len()] =
            [$(Info { name: $name, family: $family, citation: $citation, knows: $knows, decides: $decides }),*];
        /// Makes the heuristic of a name, in the same order.
        const MAKERS: [fn(&'static str) -> Heuristic; NAMES.len()] = [$($make),*];
    };
}

infos! {
    "fifo", "queueing", "textbook; YARN capacity scheduler", "arrival", "the oldest job, or none",
        |name| head_of_line(name, Lens::Arrival);
    "fifo-skip", "queueing", "first fit in arrival order", "arrival", "the oldest job that fits",
        |name| greedy(name, Lens::Arrival);
    "sjf", "size-based", "shortest job first", "run time estimate", "the shortest job that fits",
        |name| greedy(name, Lens::Shortest);
    "srtf", "size-based, preemptive", "Tiresias NSDI'19 and Synergy OSDI'22 (baseline)", "run time estimate", "the shortest job, stopping longer ones",
        preemptive::srtf;
    "gpu-time", "size-based", "shortest remaining service first; Tiresias NSDI'19 (baseline)", "run time estimate, gang size", "the job with least GPU-time that fits",
        |name| greedy(name, Lens::SmallestGpuTime);
    "las", "service-based, preemptive", "Tiresias NSDI'19, 2D-LAS", "attained service", "the oldest job of the least served class, stopping higher classes",
        preemptive::las;
    "easy", "backfill", "Lifka, JSSPP'95", "arrival, run time estimate", "the oldest job or its reservation, then what does not delay it by arrival",
        |name| backfill(name, Lens::Arrival, Lens::Arrival);
    "fair-share", "fairness", "weighted max-min over quotas", "GPUs held by each tenant", "the oldest job that fits of the tenant that holds least of its quota",
        |name| greedy(name, Lens::TenantDeficit);
    "packing", "packing", "best-fit decreasing", "gang size", "the largest gang that fits, on the fullest node",
        |name| greedy(name, Lens::LargestGang);
    "easy-sjf", "backfill", "Tsafrir et al., TPDS'07", "arrival, run time estimate", "as easy, backfilling the shortest first",
        |name| backfill(name, Lens::Arrival, Lens::Shortest);
    "sjf-reserve", "backfill", "sjf with EASY's reservation", "run time estimate", "the shortest job or its reservation, then what does not delay it",
        |name| backfill(name, Lens::Shortest, Lens::Shortest);
    "gpu-time-reserve", "backfill", "gpu-time with EASY's reservation", "run time estimate, gang size", "the job with least GPU-time or its reservation, then what does not delay it",
        |name| backfill(name, Lens::SmallestGpuTime, Lens::SmallestGpuTime);
    "sjf-share", "sharing", "pair test of SJF-BSBF, IWQoS'24", "run time estimate, interference", "the shortest job that fits, else one beside a running job where that beats waiting",
        sharing::sjf_share;
    "sjf-moldable", "elastic", "moldable jobs, Cirne and Berman, JPDC'02", "run time estimate, scaling", "the shortest job that fits, and half, all or twice its GPUs",
        moldable::sjf_moldable;
    "sjf-tuned", "resource-sensitive", "profile and GREEDY of Synergy OSDI'22, as a queue order", "run time estimate, sensitivity", "the shortest job that fits, with the CPU and memory that it can use",
        tuned::sjf_tuned;
    "sjf-best-type", "heterogeneity-aware", "min-min of Maheswaran et al., HCW'99", "run time estimate, speed on each type", "the job that ends first on a free type, unless waiting for another type ends it sooner",
        best_type::sjf_best_type;
    "sjf-delay", "backfill, delay scheduling", "delay scheduling, EuroSys'10, over sjf-reserve", "run time estimate, gang size", "as sjf-reserve, but a long job waits for a tight place for half its run time",
        |name| delayed_backfill(name, Lens::Shortest, Patience::TUNED);
    "gpu-time-delay", "backfill, delay scheduling", "delay scheduling, EuroSys'10, over gpu-time-reserve", "run time estimate, gang size", "as gpu-time-reserve, but a long job waits for a tight place for half its run time",
        |name| delayed_backfill(name, Lens::SmallestGpuTime, Patience::TUNED);
    "best-type-delay", "heterogeneity-aware, delay scheduling", "delay scheduling, EuroSys'10, over min-min", "run time estimate, speed on each type", "as sjf-best-type, with a margin between types and patience for a tight place",
        |name| best_type_delay(name, Patience::TUNED);
    "sjf-resize", "elastic", "marginal gains of Optimus, EuroSys'18, as two rules", "run time estimate, scaling", "the shortest job that fits, at the size at which GPUs do most; running ones grow while no job waits and shrink while one does",
        resizing::sjf_resize;
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
    Ok(Box::new(heuristic_of(name)?))
}

fn heuristic_of(name: &str) -> Result<Heuristic, Problem> {
    let place = NAMES.iter().position(|known| *known == name).ok_or_else(|| {
        Problem::new(
            "policy",
            name,
            format!("one of {}", NAMES.join(", ")),
            format!("did you mean {}?", nearest_of(NAMES, name).unwrap_or_default()),
        )
    })?;
    Ok(MAKERS[place](NAMES[place]))
}
