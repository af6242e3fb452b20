//! A tree against a heuristic, decision by decision: the list runs under the tree, and the heuristic is asked at each decision
//! what it would do now, among its own candidates on the same cluster.
//!
//! The heuristic begins a pass of its own at each decision. What the tree has done so far in its pass stands; GPUs that the
//! tree holds back are free to the heuristic.

use std::fmt;
use std::ops::ControlFlow;

use pleach_scheduler::candidate::{Candidate, CandidateKind};
use pleach_scheduler::pass::{Pass, PassState};
use pleach_scheduler::tree::count;
use pleach_scheduler::{JobId, Policy as _};
use serde::Serialize;

use super::replay::{Seen, replay};
use super::subject::Subject;
use crate::door::DOOR;
use crate::error::Error;

/// The decisions of a list against those of another policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Differences {
    /// The other policy.
    pub against: String,
    /// Decisions of the tree.
    pub num_decisions: u64,
    /// Those in which the other would do the same.
    pub num_same: u64,
    /// The others by kind; kinds without any are left out.
    pub kinds: Vec<Difference>,
}

/// A kind of difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// What the tree does and the other does not, as a clause.
    pub what: &'static str,
    /// How often.
    pub num: u64,
    /// Number of the first such decision, for `--decision`.
    pub first: u64,
    /// How many of them have a feature in common, as `(feature, number)`.
    pub of_them: Vec<(&'static str, u64)>,
}

impl Differences {
    fn add(&mut self, number: u64, what: &'static str, traits: &[(&'static str, bool)]) {
        let place = self.kinds.iter().position(|kind| kind.what == what);
        let place = place.unwrap_or_else(|| {
            let of_them = traits.iter().map(|(name, _)| (*name, 0)).collect();
            self.kinds.push(Difference {
                what,
                num: 0,
                first: number,
                of_them,
            });
            self.kinds.len() - 1
        });
        let kind = &mut self.kinds[place];
        kind.num += 1;
        for ((_, num), (_, holds)) in kind.of_them.iter_mut().zip(traits) {
            *num += u64::from(*holds);
        }
    }
}

/// Asks a heuristic at every decision of the list.
pub(super) fn answer(subject: &Subject, name: &str) -> Result<Differences, Error> {
    let spec = DOOR.open_one(name)?;
    let mut policy = spec.policy()?;
    let (mut pass, needs) = (Pass::new(), policy.needs());
    let mut found = Differences {
        against: spec.name().to_string(),
        ..Differences::default()
    };
    replay(subject, &mut |seen| {
        let cluster = seen.point.cluster;
        let choice = match pass.open(cluster, &needs) {
            PassState::Open => pass.decide(cluster, policy.as_mut())?,
            PassState::Closed => 0,
        };
        found.num_decisions += 1;
        compare(&mut found, seen, &pass, choice);
        Ok(ControlFlow::Continue(()))
    })?;
    found.kinds.sort_by_key(|kind| std::cmp::Reverse(kind.num));
    Ok(found)
}

fn compare(found: &mut Differences, seen: &Seen<'_>, pass: &Pass, choice: usize) {
    use CandidateKind::{Hold, Reserve};
    let own = seen.chosen();
    let Some(other) = pass.candidates().get(choice) else {
        return;
    };
    let same_place = || {
        let (ours, theirs) = (seen.point.candidates, pass.candidates());
        ours.placement(own) == theirs.placement(other) && ours.victims(own) == theirs.victims(other)
    };
    let number = seen.number;
    let is_loose = |candidate: &Candidate| candidate.facts.is_some_and(|facts| facts.locality < 1.0);
    let (starts, other_starts) = (own.kind.starts(), other.kind.starts());
    match (own.kind, other.kind) {
        (Hold, Hold) => found.num_same += 1,
        (ours, theirs) if ours == theirs && own.job == other.job => {
            if same_place() {
                found.num_same += 1;
            } else {
                let traits = [("on fewer nodes", fewer_nodes(own, other))];
                found.add(number, "it puts the same job on other GPUs", &traits);
            }
        }
        _ if starts && other_starts => match (own.job, other.job) {
            (Some(a), Some(b)) if a != b => another_job(found, seen, (a, b)),
            _ => found.add(number, "only one of them stops a job to start this one", &[]),
        },
        (Hold, _) if other_starts => {
            let traits = [("on GPUs so far apart that they slow it down", is_loose(other))];
            found.add(number, "it waits where the other starts a job", &traits);
        }
        (_, Hold) if starts => {
            let traits = [("on GPUs so far apart that they slow it down", is_loose(own))];
            found.add(number, "it starts a job where the other waits", &traits);
        }
        (Reserve, Reserve) => found.add(number, "it holds GPUs back for another job", &[]),
        (Reserve, _) => found.add(number, "it holds GPUs back where the other does not", &[]),
        (_, Reserve) => found.add(number, "the other holds GPUs back where it does not", &[]),
        _ => found.add(number, "it does something else", &[]),
    }
}

fn fewer_nodes(own: &Candidate, other: &Candidate) -> bool {
    match (own.facts, other.facts) {
        (Some(own), Some(other)) => own.num_nodes < other.num_nodes,
        _ => false,
    }
}

fn another_job(found: &mut Differences, seen: &Seen<'_>, (own, other): (JobId, JobId)) {
    let cluster = seen.point.cluster;
    let (a, b) = (cluster.job(own), cluster.job(other));
    let rest_s = |job: &pleach_scheduler::cluster::Job| job.remaining_s_at(cluster.now());
    let gang = |job: &pleach_scheduler::cluster::Job| job.request.num_gpus;
    let traits = [
        ("a shorter one", rest_s(a) < rest_s(b)),
        ("a longer one", rest_s(a) > rest_s(b)),
        ("a smaller one", gang(a) < gang(b)),
        ("a larger one", gang(a) > gang(b)),
        ("one that has waited longer", a.submit < b.submit),
    ];
    found.add(seen.number, "it starts another job", &traits);
}

impl fmt::Display for Differences {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Differences {
            against,
            num_decisions,
            num_same,
            kinds,
        } = self;
        let num = num_decisions - num_same;
        let all = count(*num_decisions, "decision", "decisions");
        if num == 0 {
            return writeln!(out, "In all {all} the tree does what {against} would do.");
        }
        let share = 100.0 * num as f64 / *num_decisions as f64;
        writeln!(
            out,
            "Of {all} the tree does something else than {against} would in {num} ({share:.1} %):"
        )?;
        for kind in kinds {
            let num = count(kind.num, "time", "times");
            write!(out, "- {num} {}", kind.what)?;
            let some: Vec<String> = kind
                .of_them
                .iter()
                .filter(|(_, num)| *num > 0)
                .map(|(name, num)| format!("{num} {name}"))
                .collect();
            if !some.is_empty() {
                write!(out, " ({})", some.join(", "))?;
            }
            writeln!(out, "; first at decision {}.", kind.first)?;
        }
        Ok(())
    }
}
