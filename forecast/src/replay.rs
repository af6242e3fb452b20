//! The queue from an instant on, under a policy: what runs goes on where it is, what waits is started by the policy.

use std::borrow::Cow;
use std::collections::BTreeSet;

use pleach_env::workload::{JobSpec, Workload};
use pleach_env::world::{Advance, World};
use pleach_env::{Error, SimConfig, labels};
use pleach_policies::PolicySpec;
use pleach_scheduler::decision::Action;
use pleach_scheduler::{Estimate, JobId, Planner, Problem, Provenance, Time};

use crate::record::Present;

/// When a replay ends, s; what has not started then counts as starting then. *Ours*: 60 days.
pub const DAYS_MAX_S: f64 = 60.0 * 86_400.0;

/// A cluster, its policy and what is believed of run times.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    /// The list, of which the cluster and the jobs are.
    pub workload: &'a Workload,
    /// What the cluster can do.
    pub sim: &'a SimConfig,
    /// What decides.
    pub policy: &'a PolicySpec,
    /// What the policy believes of each job's run time, s. `[num_jobs]`
    pub estimates: &'a [Estimate],
}

/// A job that comes in a replay, with how long it runs, s of the reference run.
#[derive(Clone, Debug)]
pub struct Coming<'a> {
    /// The job.
    pub spec: Cow<'a, JobSpec>,
    /// What the policy believes.
    pub estimate: Estimate,
    /// When it comes.
    pub submit: Time,
    /// How long it runs.
    pub run_s: f64,
}

/// One course of things.
#[derive(Clone, Debug, Default)]
pub struct Drawn<'a> {
    /// Run times in all of what runs and then of what waits, s of the reference run.
    pub runs_s: Vec<f64>,
    /// What comes later, in the order of its submissions. Asked jobs come first, at the instant itself.
    pub coming: Vec<Coming<'a>>,
}

/// One row of the replayed list.
struct Row<'a> {
    coming: Coming<'a>,
    /// Number among running jobs.
    runs: Option<usize>,
    /// Number among the jobs whose starts are wanted: waiting ones, then asked ones.
    wanted: Option<usize>,
}

impl<'a> Site<'a> {
    /// A job of the list as it comes.
    pub(crate) fn coming(&self, job: usize, submit: Time, run_s: f64) -> Coming<'a> {
        Coming {
            spec: Cow::Borrowed(&self.workload.jobs[job]),
            estimate: self.estimates[job],
            submit,
            run_s,
        }
    }

    fn rows(&self, present: &Present, drawn: &Drawn<'a>, num_asked: usize) -> Vec<Row<'a>> {
        let (running, waiting) = drawn.runs_s.split_at(present.running.len());
        let submit = |job: usize| self.workload.jobs[job].submit;
        let mut rows: Vec<Row<'a>> = Vec::new();
        for (number, (one, run_s)) in present.running.iter().zip(running).enumerate() {
            rows.push(Row {
                coming: self.coming(one.job, submit(one.job).min(one.start), *run_s),
                runs: Some(number),
                wanted: None,
            });
        }
        for (number, (job, run_s)) in present.waiting.iter().zip(waiting).enumerate() {
            rows.push(Row {
                coming: self.coming(*job, submit(*job), *run_s),
                runs: None,
                wanted: Some(number),
            });
        }
        for (number, coming) in drawn.coming.iter().enumerate() {
            rows.push(Row {
                coming: coming.clone(),
                runs: None,
                wanted: (number < num_asked).then_some(waiting.len() + number),
            });
        }
        rows.sort_by_key(|row| row.coming.submit);
        for row in &mut rows {
            // What the site knows exactly, it knows of the drawn course.
            if row.coming.estimate.provenance == Provenance::Oracle {
                row.coming.estimate.value = row.coming.run_s;
            }
        }
        rows
    }

    /// Starts of the jobs that wait and of the first `num_asked` that come, since the instant, s, where the jobs of `targets` are
    /// all that matters: a replay ends when they have started. Infinite where one does not start within so many seconds; 0: in the
    /// first pass.
    ///
    /// # Errors
    /// A cluster that cannot be made, a policy that cannot decide.
    pub fn replay(
        &self,
        present: &Present,
        drawn: &Drawn<'a>,
        num_asked: usize,
        targets: &[usize],
        within_s: f64,
    ) -> Result<Vec<f64>, Error> {
        let rows = self.rows(present, drawn, num_asked);
        let mut starts_s = vec![f64::INFINITY; present.waiting.len() + num_asked];
        let mut list = Workload {
            name: String::new(),
            cluster: self.workload.cluster.clone(),
            classes: self.workload.classes.clone(),
            jobs: Vec::with_capacity(rows.len()),
        };
        let has_labels = self.policy.is_planner();
        for Row { coming, .. } in &rows {
            let JobSpec {
                num_gpus,
                tenant,
                class,
                resources,
                ..
            } = *coming.spec;
            list.jobs.push(JobSpec {
                tenant,
                class,
                resources,
                user: coming.spec.user.as_ref().filter(|_| has_labels).cloned(),
                observed: coming.spec.observed.as_ref().filter(|_| has_labels).cloned(),
                ..JobSpec::new("", coming.submit, num_gpus, coming.run_s)
            });
        }
        let estimates: Vec<Estimate> = rows.iter().map(|row| row.coming.estimate).collect();
        let mut world = World::new(&list, self.sim.capabilities, &estimates)?;
        let mut planner = self.policy.make_planner()?;
        planner.read_labels(&mut labels(&list));
        let mut row_of = vec![0; present.running.len()];
        for (number, row) in rows.iter().enumerate() {
            if let Some(running) = row.runs {
                row_of[running] = number;
            }
        }
        for (one, row) in present.running.iter().zip(row_of) {
            let id = JobId(row as u32);
            to(&mut world, planner.as_mut(), one.start, row)?;
            world.cluster_mut().start(id, one.placement.clone());
            world.carry_out();
            planner.observe(world.cluster());
        }
        to(&mut world, planner.as_mut(), present.at, 0)?;
        let delay_s = self
            .sim
            .batch_system
            .as_ref()
            .map_or(0.0, |system| system.start_delay_s);
        let until = present.at + Time::from_secs_f64(within_s);
        let mut wake = None;
        let mut left: BTreeSet<usize> = targets.iter().copied().collect();
        loop {
            if world.may_decide() {
                planner.plan(world.cluster_mut())?;
                let since_s = (world.cluster().now() - present.at).as_secs_f64() + delay_s;
                for decision in world.cluster().decisions() {
                    let wanted = rows[decision.row.index()].wanted;
                    if let Some(number) = wanted.filter(|_| decision.action == Action::Start) {
                        starts_s[number] = starts_s[number].min(since_s);
                        left.remove(&number);
                    }
                }
                wake = planner.wake_at(world.cluster()).filter(|_| !planner.rests());
                world.carry_out();
            }
            if left.is_empty() || world.cluster().now() >= until || world.is_over() {
                return Ok(starts_s);
            }
            world.wake_at(wake);
            if world.advance() == Advance::End {
                return Ok(starts_s);
            }
        }
    }
}

/// Goes on until an instant, and until a row has come; nothing is decided on the way.
fn to(world: &mut World, planner: &mut dyn Planner, at: Time, row: usize) -> Result<(), Problem> {
    while world.cluster().now() < at || world.cluster().jobs().len() <= row {
        world.wake_at(Some(at));
        Problem::refuse_if(
            world.advance() == Advance::End || world.cluster().now() > at,
            "at",
            at.as_secs_f64(),
            "an instant of the list",
            "this is a fault of the forecast: report it",
        )?;
        planner.observe(world.cluster());
    }
    Ok(())
}
