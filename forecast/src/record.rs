//! A site's list as it went: the cluster at any instant, with what was recorded until then.
//!
//! Nodes are those of the record where its names are as many as the cluster's nodes, in their order, and have room as recorded;
//! else a job runs on its tightest place.

use std::collections::{BTreeMap, BTreeSet};

use pleach_env::workload::{JobSpec, Observed, Workload};
use pleach_env::{Error, Seed, SimConfig, simulate_planner};
use pleach_policies::PolicySpec;
use pleach_scheduler::cluster::{Cluster, JobState, Placement, Slice, Submission};
use pleach_scheduler::{ClassId, Estimate, JobId, NodeId, Problem, TenantId, Time};
use pleach_site::slurm::expand;

/// What a change of the record is. At one instant jobs end, then others come, then some start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// A job ends.
    Ends,
    /// A job comes.
    Comes,
    /// A job starts.
    Starts,
}

/// A change of the record: when, of what kind, of which job of the list.
pub type Event = (Time, Change, usize);

/// The record's changes in order. A start is when it was decided: the site's delay is before it.
#[must_use]
pub fn events(workload: &Workload, sim: &SimConfig) -> Vec<Event> {
    let delay = Time::from_secs_f64(
        sim.batch_system
            .as_ref()
            .map_or(0.0, |system| system.start_delay_s),
    );
    let mut events: Vec<Event> = Vec::new();
    for (number, job) in workload.jobs.iter().enumerate() {
        let Some(observed) = job.observed.as_deref() else {
            continue;
        };
        let start = (observed.start - delay).max(job.submit);
        let end = observed
            .end
            .unwrap_or(observed.start + Time::from_secs_f64(job.run_time_s));
        events.extend([
            (job.submit, Change::Comes, number),
            (start, Change::Starts, number),
            (end.max(start + Time(1)), Change::Ends, number),
        ]);
    }
    events.sort_unstable();
    events
}

/// A list as a policy plays it, with its starts and nodes as if they had been recorded.
///
/// # Errors
/// A simulation that fails.
pub fn played(mut workload: Workload, sim: &SimConfig, policy: &PolicySpec) -> Result<Workload, Error> {
    let sim = SimConfig {
        record_segments: true,
        ..sim.clone()
    };
    let played = simulate_planner(&workload, &sim, policy.make_planner()?.as_mut())?;
    let mut nodes = vec![String::new(); workload.jobs.len()];
    for segment in &played.segments {
        let names = segment.slices.iter().map(|slice| format!("n{}", slice.node));
        nodes[segment.job as usize] = names.collect::<Vec<_>>().join(",");
    }
    for ((job, outcome), nodes) in workload.jobs.iter_mut().zip(&played.jobs).zip(nodes) {
        job.observed = Some(Box::new(Observed {
            start: Time::from_secs_f64(outcome.first_start_s),
            end: Some(Time::from_secs_f64(outcome.finish_s)),
            nodes,
            ..Observed::default()
        }));
    }
    Ok(workload)
}

/// A job that runs at an instant.
#[derive(Clone, Debug)]
pub struct Running {
    /// Which of the list.
    pub job: usize,
    /// When it started.
    pub start: Time,
    /// Work done, in seconds of the reference run.
    pub done_s: f64,
    /// Its GPUs.
    pub placement: Placement,
}

/// What runs and what waits at an instant.
#[derive(Clone, Debug, Default)]
pub struct Present {
    /// When.
    pub at: Time,
    /// Jobs that run, in the order of their starts.
    pub running: Vec<Running>,
    /// Jobs of the list that wait, in its order.
    pub waiting: Vec<usize>,
}

/// The cluster as it was.
pub struct Record<'a> {
    workload: &'a Workload,
    /// The cluster at the last change.
    pub cluster: Cluster,
    /// What is believed of each job's run time, s. `[num_jobs]`
    pub estimates: Vec<Estimate>,
    /// Numbers of nodes by name, in the order of their names; empty where they are not as many as the cluster's.
    numbers: BTreeMap<String, u32>,
    rows: Vec<Option<JobId>>,
    /// Jobs of the list by their rows in the cluster.
    pub jobs: Vec<usize>,
}

impl<'a> Record<'a> {
    /// The empty cluster of a list.
    ///
    /// # Errors
    /// A cluster that cannot be made.
    pub fn of(workload: &'a Workload, sim: &SimConfig) -> Result<Record<'a>, Problem> {
        let cluster = Cluster::new(&workload.cluster, &workload.classes, sim.capabilities)?;
        let mut names: BTreeSet<(String, u64, String)> = BTreeSet::new();
        for job in &workload.jobs {
            let nodes = job.observed.as_deref().map_or("", |observed| &observed.nodes);
            names.extend(expand(nodes).unwrap_or_default().into_iter().map(natural));
        }
        let is_known = names.len() == cluster.nodes().len();
        let numbers = names.into_iter().map(|(_, _, name)| name).zip(0..);
        Ok(Record {
            estimates: sim.estimates.estimates(workload, Seed(sim.seed)),
            numbers: numbers.filter(|_| is_known).collect(),
            rows: vec![None; workload.jobs.len()],
            jobs: Vec::new(),
            workload,
            cluster,
        })
    }

    /// Makes the changes of one kind at one instant.
    pub fn change(&mut self, group: &[Event]) {
        for (at, kind, job) in group {
            self.cluster.advance((*at).max(self.cluster.now()));
            self.change_one(*kind, *job);
        }
    }

    fn change_one(&mut self, kind: Change, job: usize) {
        match (kind, self.rows[job]) {
            (Change::Comes, _) => {
                let spec = &self.workload.jobs[job];
                if let Ok(id) = self.cluster.submit(submission(spec, self.estimates[job])) {
                    self.rows[job] = Some(id);
                    self.jobs.push(job);
                }
            }
            (Change::Starts, Some(id)) if self.cluster.job(id).state == JobState::Pending => {
                let spec = &self.workload.jobs[job];
                let as_recorded = self.as_recorded(spec, id);
                let mut slices = Vec::new();
                let placement =
                    as_recorded.or_else(|| pleach_dealing::starts::tightest(&self.cluster, id, &mut slices));
                match placement {
                    Some(placement) => self.cluster.start(id, placement),
                    // The tables have no room for what the site ran: it neither waits nor holds anything here.
                    None => self.cluster.withdraw(id),
                }
            }
            (Change::Ends, Some(id)) if self.cluster.job(id).state == JobState::Running => {
                self.cluster.finish(id);
            }
            _ => {}
        }
    }

    /// The nodes of a job where they are known, have room and may be its own.
    fn as_recorded(&self, job: &JobSpec, id: JobId) -> Option<Placement> {
        let observed = job.observed.as_deref()?;
        let demand = self.cluster.demand(id);
        let shape = self.cluster.shape(demand.shape);
        let nodes = expand(&observed.nodes).ok().filter(|nodes| !nodes.is_empty())?;
        let of_node = job.num_gpus / nodes.len() as u32;
        if of_node * nodes.len() as u32 != job.num_gpus || job.resources.is_fractional() {
            return None;
        }
        let speed = &self.workload.classes[usize::from(job.class)].speed;
        let mut kinds = BTreeSet::new();
        let slice = |name: &String| {
            let node = NodeId(*self.numbers.get(name)?);
            let of = &self.cluster.nodes()[node.index()];
            kinds.insert(of.gpu_type);
            let served = shape.served_by(of.cpu_milli_free, of.memory_mib_free);
            let fits = of.num_free().min(served) >= of_node && speed[of.gpu_type.index()] > 0.0;
            fits.then(|| Slice {
                node,
                gpus: of.lowest_free(of_node),
            })
        };
        let placement: Option<Placement> = nodes.iter().map(slice).collect();
        placement.filter(|_| {
            kinds.len() == 1
                && self.cluster.has_room(demand)
                && job
                    .resources
                    .tasks
                    .allow(std::iter::repeat_n(of_node, nodes.len()))
        })
    }

    /// What runs and what waits now.
    #[must_use]
    pub fn present(&self) -> Present {
        let now = self.cluster.now();
        let running = self.cluster.running().map(|id| {
            let job = self.cluster.job(id);
            Running {
                job: self.jobs[id.index()],
                start: job.run_start,
                done_s: job.executed_s_at(now),
                placement: job.placement.clone(),
            }
        });
        let mut running: Vec<Running> = running.collect();
        running.sort_by_key(|one| (one.start, one.job));
        let mut waiting: Vec<usize> = self.cluster.pending().map(|id| self.jobs[id.index()]).collect();
        waiting.sort_unstable();
        Present {
            at: now,
            running,
            waiting,
        }
    }
}

/// What a scheduler is given of a job.
pub(crate) fn submission(spec: &JobSpec, estimate_s: Estimate) -> Submission {
    Submission {
        tenant: TenantId(spec.tenant),
        class: ClassId(spec.class),
        num_gpus: spec.num_gpus,
        estimate_s,
        resources: spec.resources,
    }
}

/// A name as it is sorted: what stands before its last number, the number, the name.
fn natural(name: String) -> (String, u64, String) {
    let front = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    (front.to_owned(), name[front.len()..].parse().unwrap_or(0), name)
}
