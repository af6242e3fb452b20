//! What a planner would start next, as a candidate of the present decision point: how planners teach.
//!
//! A planner deals out a whole instant and keeps a state from one instant to the next, so it plans on a copy of the cluster,
//! once for each instant; its starts are then shown one after the other, in its order, and *hold* at the end. A start is shown
//! as the candidate that starts the same job on the same GPUs, or else on as many GPUs of the same type on as many nodes,
//! with the same share of each. What no candidate does is passed over; where nothing is left of a plan that is not empty, the
//! decision is not shown at all.
//!
//! Planners that stop running jobs or mix GPU types are refused where a teacher is chosen: no candidate does that.

use std::collections::VecDeque;

use pleach_scheduler::candidate::CandidateKind;
use pleach_scheduler::cluster::{Cluster, Placement, Shape};
use pleach_scheduler::decision::Action;
use pleach_scheduler::pass::Pass;
use pleach_scheduler::{GpuTypeId, JobId, Planner, PolicyError, Time};

/// A planner that is asked one decision at a time. One for each environment; make another for each episode.
pub struct ExpertPlanner {
    planner: Box<dyn Planner>,
    starts: VecDeque<Start>,
    /// The instant of the plan, and whether the pass still goes on as planned.
    planned: Option<Time>,
}

/// One start of a plan.
#[derive(Clone, Debug)]
struct Start {
    job: JobId,
    placement: Placement,
    /// GPU type, GPUs and nodes.
    like: (GpuTypeId, u32, u32),
    granted: Shape,
}

impl ExpertPlanner {
    /// A teacher that has seen nothing yet.
    #[must_use]
    pub fn new(planner: Box<dyn Planner>) -> ExpertPlanner {
        ExpertPlanner {
            planner,
            starts: VecDeque::new(),
            planned: None,
        }
    }

    /// The candidate of an open pass that the planner would choose; none where no candidate does what it plans.
    ///
    /// # Errors
    /// What the planner reports.
    pub(crate) fn choice(&mut self, cluster: &Cluster, pass: &Pass) -> Result<Option<usize>, PolicyError> {
        if self.planned != Some(cluster.now()) {
            self.plan(cluster)?;
        }
        let had_plan = !self.starts.is_empty();
        while let Some(start) = self.starts.pop_front() {
            if let Some(index) = candidate_for(&start, cluster, pass) {
                return Ok(Some(index));
            }
        }
        // Holding ends the pass, and the next one has a plan of its own even if it comes at the same instant.
        self.planned = None;
        let hold = pass.candidates().is_admissible(0) && !had_plan;
        Ok(hold.then_some(0))
    }

    fn plan(&mut self, cluster: &Cluster) -> Result<(), PolicyError> {
        if cluster.has_tasks() && !self.planner.places_tasks() {
            return Err(PolicyError::Tasks);
        }
        let mut copy = cluster.clone();
        let mut decisions = Vec::new();
        copy.take_decisions(&mut decisions);
        decisions.clear();
        self.planner.plan(&mut copy)?;
        copy.take_decisions(&mut decisions);
        self.starts.clear();
        for decision in decisions {
            if decision.action == Action::Start {
                let (job, placement) = (decision.row, decision.placement);
                let gpu_type = copy.nodes()[placement[0].node.index()].gpu_type;
                let num_gpus = placement.iter().map(|slice| slice.num_gpus()).sum();
                self.starts.push_back(Start {
                    like: (gpu_type, num_gpus, placement.len() as u32),
                    granted: copy.shape(copy.job(job).granted),
                    job,
                    placement,
                });
            }
        }
        self.planned = Some(cluster.now());
        Ok(())
    }
}

/// The candidate that does what the plan says: the same GPUs, or else others of the same kind that are as close together.
fn candidate_for(start: &Start, cluster: &Cluster, pass: &Pass) -> Option<usize> {
    let set = pass.candidates();
    let own = cluster.shape(cluster.job(start.job).shape);
    let starts = set.iter().enumerate().filter(|(_, candidate)| {
        candidate.kind == CandidateKind::Start
            && candidate.job == Some(start.job)
            && candidate.granted.unwrap_or(own) == start.granted
    });
    let mut alike = None;
    for (index, candidate) in starts {
        let placement = set.placement(candidate);
        if placement.len() == start.placement.len()
            && placement.iter().all(|slice| start.placement.contains(slice))
        {
            return Some(index);
        }
        let is_alike = candidate
            .facts
            .is_some_and(|facts| (facts.gpu_type, facts.num_gpus, facts.num_nodes) == start.like);
        if is_alike && candidate.partner.is_none() && alike.is_none() {
            alike = Some(index);
        }
    }
    alike
}

#[cfg(test)]
mod tests {
    use pleach_scheduler::{PolicyPlanner, heuristics};

    use super::*;
    use crate::config::EnvConfig;
    use crate::vec_env::VecEnv;
    use crate::vector::{AutoresetMode, Batch, VectorEnv as _};

    fn small(id: &str) -> EnvConfig {
        let mut config = EnvConfig::registered(id).unwrap();
        config.workload = config.workload.resized(Some(60), Some(2.0));
        config
    }

    /// Plays an episode as a teacher says; the number of decisions, how many of them were shown, and the average JCT, s.
    fn play(config: &EnvConfig, mut make: impl FnMut() -> Box<dyn Planner>) -> (usize, usize, f64) {
        let mut envs = VecEnv::new(config, 1, AutoresetMode::Disabled).unwrap();
        let mut batch = Batch::new(envs.spaces(), 1);
        envs.reset(&[5], &mut batch).unwrap();
        let mut expert = ExpertPlanner::new(make());
        let (mut num, mut num_shown) = (0, 0);
        loop {
            let choice = envs.expert_action(0, &mut expert).unwrap();
            (num, num_shown) = (num + 1, num_shown + usize::from(choice.is_some()));
            let first = batch.mask.iter().position(|admissible| *admissible).unwrap();
            envs.step(&[choice.unwrap_or(first)], &mut batch).unwrap();
            if let Some(metrics) = batch.episode[0] {
                return (num, num_shown, metrics.avg_jct_s);
            }
        }
    }

    #[test]
    fn a_policy_taught_as_a_planner_chooses_as_it_does_itself() {
        // The policy's own choices, one by one, end in the same episode as its plans shown one by one.
        for (id, name) in [("Pleach/Philly-v0", "sjf"), ("Pleach/GavelMulti-v0", "fifo-skip")] {
            let config = small(id);
            let policy = || heuristics::by_name(name).unwrap();
            let (num, num_shown, jct_s) = play(&config, || Box::new(PolicyPlanner::new(policy())));
            assert_eq!(num, num_shown, "{name}");
            let mut envs = VecEnv::new(&config, 1, AutoresetMode::Disabled).unwrap();
            let mut batch = Batch::new(envs.spaces(), 1);
            envs.reset(&[5], &mut batch).unwrap();
            while batch.episode[0].is_none() {
                let choice = envs.choice_of(0, &mut *policy()).unwrap();
                envs.step(&[choice], &mut batch).unwrap();
            }
            assert_eq!(jct_s, batch.episode[0].unwrap().avg_jct_s, "{name}");
        }
    }

    #[test]
    fn a_planner_of_gangs_is_shown_in_four_of_five_decisions_and_comes_close_to_itself() {
        let config = small("Pleach/GavelMulti-v0");
        let make = || (pleach_dealing::BACKFILLING[0].make)(&serde_json::Value::Null).unwrap();
        let (num, num_shown, jct_s) = play(&config, make);
        // The same episode: the environment gives it the first child of its seed.
        let seed = pleach_workloads::Seed(5).child("episode", 0);
        let source = crate::config::Source::open(&config).unwrap();
        let workload = source.workload(&config, seed).unwrap();
        let sim = crate::simulate::SimConfig {
            seed: seed.0,
            ..config.sim.clone()
        };
        let alone = crate::simulate::simulate_planner(&workload, &sim, &mut *make()).unwrap();
        eprintln!(
            "{num_shown} of {num} shown, {jct_s} s, alone {} s",
            alone.metrics.avg_jct_s
        );
        assert!(num_shown * 10 >= num * 8, "{num_shown} of {num}");
        assert!(
            jct_s < 1.1 * alone.metrics.avg_jct_s,
            "{jct_s} {}",
            alone.metrics.avg_jct_s
        );
    }
}
