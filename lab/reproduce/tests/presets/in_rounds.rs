//! Runs the presets of simulators that work in rounds: our clock of rounds, their decisions.

use pleach_env::workload::Workload;
use pleach_env::world::{Advance, LeaseTerms, RoundClock, World};
use pleach_env::{Error, JobOutcome};
use pleach_scheduler::cluster::{Capabilities, Cluster, Sharing};
use pleach_scheduler::{ActionKind, Estimate, JobId, Planner, Provenance};

/// A planner that decides at the ends of rounds as another simulator does.
pub trait RoundPreset: Planner {
    /// Terms of the lease that a job has in the round just planned.
    fn terms(&self, job: JobId) -> LeaseTerms;
}

/// What a run in rounds gave.
#[derive(Clone, Debug)]
pub struct RoundRun {
    /// One outcome for each job that left, in the order of the workload.
    pub jobs: Vec<JobOutcome>,
    /// Rounds in which anything ran.
    pub num_rounds: u64,
    /// Leases in all: jobs that ran, summed over the rounds.
    pub num_leases: u64,
}

/// Runs a workload to its end. Run times are known to the preset, as they are there; preemption is free. `watch` is
/// shown the cluster at the beginning of every round in which anything runs.
///
/// # Errors
/// An invalid workload, or a preset that cannot decide.
///
/// # Panics
/// If jobs are left and nothing will ever happen.
pub fn run(
    workload: &Workload,
    clock: RoundClock,
    preset: &mut dyn RoundPreset,
    watch: &mut dyn FnMut(&Cluster),
) -> Result<RoundRun, Error> {
    workload.validate()?;
    let oracle = |run_time_s| Estimate {
        value: run_time_s,
        provenance: Provenance::Oracle,
    };
    let estimates: Vec<Estimate> = workload.jobs.iter().map(|job| oracle(job.run_time_s)).collect();
    let capabilities = Capabilities {
        restart_cost_s: 0.0,
        sharing: Sharing::Mps,
        ..Capabilities::DEFAULT.with(ActionKind::Preempt)
    };
    let mut world = World::new(workload, capabilities, &estimates)?;
    world.set_rounds(clock);
    let (mut num_rounds, mut num_leases) = (0, 0);
    while !world.is_over() {
        assert_eq!(
            world.advance(),
            Advance::Event,
            "jobs are left but nothing will ever happen"
        );
        if world.round_is_over() && !world.is_over() {
            preset.plan(world.cluster_mut())?;
            world.carry_out();
            world.begin_round(|job| preset.terms(job));
            if world.cluster().num_running() > 0 {
                num_leases += world.cluster().num_running() as u64;
                num_rounds += 1;
                watch(world.cluster());
            }
        }
    }
    Ok(RoundRun {
        jobs: world.outcomes().copied().collect(),
        num_rounds,
        num_leases,
    })
}
