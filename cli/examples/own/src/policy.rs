//! A policy of one's own: the shortest job first, but a job that has waited long for its length comes before shorter ones.

use pleach_cli::scheduler::PolicyError;
use pleach_cli::scheduler::candidate::CandidateKind;
use pleach_cli::scheduler::heuristics::Info;
use pleach_cli::scheduler::policy::{DecisionPoint, Needs, Policy};

/// What it is, for `pleach policies`.
pub const INFO: Info = Info {
    name: "aged-sjf",
    family: "size-based",
    citation: "an example",
    knows: "run time estimate, time waited",
    decides: "the job with the largest share of waiting in its time that fits",
};

/// A fresh one for every run.
pub fn make() -> Box<dyn Policy> {
    Box::new(AgedSjf)
}

struct AgedSjf;

impl Policy for AgedSjf {
    fn name(&self) -> &str {
        INFO.name
    }

    /// Which candidates are offered: all that a network chooses among. The numbers of the features are not needed.
    fn needs(&self) -> Needs {
        Needs {
            observation: false,
            ..Needs::full()
        }
    }

    /// A number for each candidate; the largest wins. *Hold* has 0, so what is below 0 never happens.
    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        let now = point.cluster.now();
        for (score, candidate) in scores.iter_mut().zip(point.candidates.iter()) {
            *score = match (candidate.kind, candidate.job) {
                (CandidateKind::Hold, _) => 0.0,
                (CandidateKind::Start, Some(id)) => {
                    let job = point.cluster.job(id);
                    let waited_s = (now - job.submit).as_secs_f64();
                    // Of two that have just come the shorter first: both have waited ten minutes more.
                    ((waited_s + 600.0) / job.remaining_s_at(now)) as f32
                }
                // It neither reserves nor stops a job.
                _ => -1.0,
            };
        }
        Ok(())
    }
}
