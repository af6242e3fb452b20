//! What a policy is compared with on one list, and what came of it.

use pleach_distill::search::Outcome;
use pleach_env::{SimConfig, simulate_planner_within};
use pleach_scheduler::Planner;
use pleach_scheduler::portable_math::ln;

use crate::door::{DOOR, PolicySpec};
use crate::error::Error;
use crate::evaluate::instances::Instance;

/// The planners that deal in a hand-written order.
const DEALERS: [&str; 5] = [
    "belief-deal",
    "gittins-deal",
    "las-deal",
    "rate-deal",
    "srtf-deal",
];

/// Of which policies the best on each part is the baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rivals<'a> {
    /// All heuristics.
    Heuristics,
    /// The planners that deal in a classic order.
    Dealers,
    /// Both.
    All,
    /// Those known to be the best of each part, by name.
    Known(&'a [String]),
}

impl Rivals<'_> {
    pub(super) fn open(self) -> Result<Vec<PolicySpec>, Error> {
        let names: Vec<String> = match self {
            Rivals::Heuristics => return Ok(DOOR.open_all(&[])?),
            Rivals::All => return Ok([DOOR.open_all(&[])?, Rivals::Dealers.open()?].concat()),
            Rivals::Dealers => DEALERS.map(str::to_string).to_vec(),
            Rivals::Known(names) => names.to_vec(),
        };
        let opened = names.iter().map(|name| DOOR.open(name));
        Ok(opened.collect::<Result<Vec<_>, _>>()?.concat())
    }
}

/// Figures of one run: average JCT and its 99th percentile, s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Average JCT, s.
    pub avg_jct_s: f64,
    /// 99th percentile of JCT, s.
    pub p99_jct_s: f64,
}

impl Figures {
    pub(super) fn against(self, base: Figures) -> Outcome {
        Outcome {
            ln_jct: ln(self.avg_jct_s / base.avg_jct_s),
            ln_p99: ln(self.p99_jct_s / base.p99_jct_s),
        }
    }
}

/// Plays an instance, with the seed that is its own.
pub(super) fn run(instance: &Instance, sim: &SimConfig, planner: &mut dyn Planner) -> Result<Figures, Error> {
    let found = run_within(instance, sim, planner, f64::INFINITY)?;
    found.ok_or_else(|| Error::Failed("a run without a bound was broken off".into()))
}

/// The same, broken off once its average JCT is sure to be above a bound, s.
pub(super) fn run_within(
    instance: &Instance,
    sim: &SimConfig,
    planner: &mut dyn Planner,
    avg_jct_s_max: f64,
) -> Result<Option<Figures>, Error> {
    let sim = SimConfig {
        seed: instance.seed,
        ..sim.clone()
    };
    let found = simulate_planner_within(&instance.workload, &sim, planner, avg_jct_s_max)?;
    Ok(found.map(|result| Figures {
        avg_jct_s: result.metrics.avg_jct_s,
        p99_jct_s: result.metrics.p99_jct_s,
    }))
}
