//! The checks: first what the record and the facts name alike, then job by job, then everything that is held, instant by instant.

mod held;
mod jobs;
mod law;
mod node;

use std::collections::BTreeSet;

use pleach_tables::schedule::{Run, Segment};

use crate::law::Law;
use crate::{Conditions, Facts, Fault, Job, Party, Problem, Rule};

/// Most faults that are kept; the others are counted.
pub const FAULTS_MAX: usize = 1000;

/// What came of checking a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// The first faults, job by job and then by time; none: the schedule is possible.
    pub faults: Vec<Fault>,
    /// All of them.
    pub num_faults: u64,
    /// Segments that were checked.
    pub num_segments: usize,
    /// Jobs with a segment.
    pub num_jobs: usize,
}

/// Checks one run.
///
/// # Errors
/// A record that names a job or a node that is not there.
pub fn verify(facts: &Facts, conditions: &Conditions, run: &Run) -> Result<Verdict, Problem> {
    let mut checker = Checker::new(facts, conditions, run)?;
    checker.check_jobs();
    checker.check_held();
    let mut verdict = checker.verdict;
    verdict.num_segments = run.segments.len();
    let jobs: BTreeSet<u32> = run.segments.iter().map(|segment| segment.job).collect();
    verdict.num_jobs = jobs.len();
    Ok(verdict)
}

/// A run with what its names mean.
struct Checker<'a> {
    facts: &'a Facts,
    conditions: &'a Conditions,
    run: &'a Run,
    /// By index into [`Run::jobs`].
    jobs: Vec<&'a Job>,
    /// Numbers in the cluster by index into [`Run::nodes`].
    nodes: Vec<u32>,
    law: Law,
    verdict: Verdict,
}

/// Microseconds, in which times are compared.
fn us(seconds: f64) -> i64 {
    (seconds * 1e6).round() as i64
}

/// A job or a node of the record that is not there.
fn unknown(what: &str, name: &str, known: &str, fix: &str) -> Problem {
    let text = format!("{what} `{name}` of the record is not known: {known}; {fix}");
    Problem::data("record", text)
}

impl<'a> Checker<'a> {
    fn new(facts: &'a Facts, conditions: &'a Conditions, run: &'a Run) -> Result<Checker<'a>, Problem> {
        let job = |name: &'a String| {
            facts.jobs.get(name).ok_or_else(|| {
                let known = format!(
                    "the list has {} jobs, of which none is called so",
                    facts.jobs.len()
                );
                unknown(
                    "job",
                    name,
                    &known,
                    "give the list on which the record was made, with the same seed and flags",
                )
            })
        };
        let node = |name: &'a String| {
            let number = name
                .parse()
                .ok()
                .filter(|number: &u32| (*number as usize) < facts.nodes.len());
            number.ok_or_else(|| {
                let known = format!(
                    "nodes are numbers from 0 to {}",
                    facts.nodes.len().saturating_sub(1)
                );
                unknown(
                    "node",
                    name,
                    &known,
                    "give the cluster on which the record was made",
                )
            })
        };
        Ok(Checker {
            facts,
            conditions,
            run,
            jobs: run.jobs.iter().map(job).collect::<Result<_, _>>()?,
            nodes: run.nodes.iter().map(node).collect::<Result<_, _>>()?,
            law: Law::default(),
            verdict: Verdict::default(),
        })
    }

    fn job(&self, segment: &Segment) -> &'a Job {
        self.jobs[segment.job as usize]
    }

    /// The nodes of a segment by their numbers in the cluster, with what it holds of each.
    fn places(
        &self,
        segment: &'a Segment,
    ) -> impl Iterator<Item = (u32, pleach_tables::schedule::Gpus)> + use<'a, '_> {
        segment.slices.iter().flat_map(move |slice| {
            let nodes = slice.node..slice.node + slice.num_nodes;
            nodes.map(move |node| (self.nodes[node as usize], slice.gpus))
        })
    }

    fn party(&self, segment: &Segment) -> Party {
        Party {
            job: self.run.jobs[segment.job as usize].clone(),
            attempt: segment.attempt,
            from_s: segment.from_s,
            to_s: segment.to_s,
        }
    }

    /// Notes a fault of a segment.
    fn fault(
        &mut self,
        rule: Rule,
        at_s: f64,
        node: Option<u32>,
        segments: (&Segment, Option<&Segment>),
        what: String,
    ) {
        self.verdict.num_faults += 1;
        if self.verdict.faults.len() < FAULTS_MAX {
            self.verdict.faults.push(Fault {
                rule,
                at_s,
                node: node.map(|node| node.to_string()),
                job: self.party(segments.0),
                other: segments.1.map(|other| self.party(other)),
                what,
            });
        }
    }
}

#[cfg(test)]
mod tests;
