//! The policy `kueue` on the clock of a cluster: Kueue's cycles when something has changed, and kube-scheduler below.

use std::collections::{BTreeMap, BTreeSet};

use pleach_scheduler::cluster::{Cluster, JobState};
use pleach_scheduler::{ActionKind, JobId, JobLabels, Planner, PolicyError, Problem, Time};

use super::config::KueueConfig;
use super::state::State;
use super::workload::{Outcome, Workload};
use crate::kubernetes::Kubernetes;

/// From a job to its workload in a queue. *Measured*, as all below: the median of recorded runs.
const CREATED: Time = Time(35_000);
/// From admission until the pods come.
const LET_IN: Time = Time(80_000);
/// From the end of pods until their quota is back: the Job controller counts ends once a second.
const RETURNED: Time = Time(1_040_000);
/// From quota that is back until refused workloads are tried again: `requeueBatchPeriod` of Kueue 0.17.
const FLUSHED: Time = Time(1_000_000);
/// From a preemption until the pods are gone, and from then until their quota is back.
const GONE: Time = Time(200_000);
const GIVEN_BACK: Time = Time(890_000);

/// What is to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// The quota of a job that ended is back.
    Returned(JobId),
    /// The pods of a preempted job are gone.
    Gone(JobId),
    /// So is its quota.
    GivenBack(JobId),
    /// Refused workloads of a queue and its cohort are tried again.
    Flush(usize),
    /// A workload comes.
    Created(JobId),
    /// The pods of an admitted job come, on these GPU types.
    LetIn(JobId, u64),
}

/// The UID of a job's workload: the API server draws it by lot, and no list has it. SplitMix64 (Steele et al., OOPSLA'14), a stream
/// for each seed.
fn uid(seed: u64, id: JobId) -> u64 {
    let steps = u64::from(id.0)
        .wrapping_add(1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(steps);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The planner.
#[derive(Clone, Debug)]
pub struct Kueue {
    config: KueueConfig,
    /// Namespace, LocalQueue and priority class by the rows of jobs.
    labels: Vec<[Box<str>; 3]>,
    state: Option<State>,
    pods: Kubernetes,
    /// Jobs that Kueue manages, and whether they wait for their quota.
    jobs: BTreeMap<JobId, bool>,
    due: BTreeSet<(Time, Due)>,
    num_seen: usize,
    /// Time 0 on the wall clock, s.
    zero_s: f64,
}

impl Kueue {
    /// A planner with these settings.
    ///
    /// # Errors
    /// A setting out of its range.
    pub fn new(config: KueueConfig) -> Result<Kueue, Problem> {
        config.validate()?;
        Ok(Kueue {
            pods: Kubernetes::new(config.scheduler.clone(), false)?.gated(),
            config,
            labels: Vec::new(),
            state: None,
            jobs: BTreeMap::new(),
            due: BTreeSet::new(),
            num_seen: 0,
            zero_s: 0.0,
        })
    }

    fn begin(&mut self, cluster: &Cluster) -> &mut State {
        let (config, zero_s) = (&self.config, &mut self.zero_s);
        self.state.get_or_insert_with(|| {
            *zero_s = cluster.spec().seen.time_0_unix_s.unwrap_or(0.0);
            let types = cluster.spec().gpu_types.iter().map(|of| of.name.clone());
            let preempts = cluster.capabilities().can(ActionKind::Preempt);
            State::new(config.clone(), &types.collect::<Vec<_>>(), preempts)
        })
    }

    fn whole_s(&self, at: Time) -> i64 {
        (self.zero_s + at.as_secs_f64()).floor() as i64
    }

    /// The workload of a job; none where Kueue does not manage it, or could never admit it, although the list says that it ran.
    fn workload(&mut self, cluster: &Cluster, id: JobId) -> Option<Workload> {
        let created_s = self.whole_s(cluster.job(id).submit + CREATED);
        let labels = self.labels.get(id.index()).cloned().unwrap_or_default();
        let seed = self.config.scheduler.seed;
        let state = self.begin(cluster);
        let job = cluster.job(id);
        let shape = cluster.shape(job.shape);
        let of_all = |each: u32| i64::from(each) * i64::from(job.request.num_gpus);
        let gpus = i64::from(job.request.resources.gpu_milli) * i64::from(job.request.num_gpus);
        let work = Workload {
            job: id.0,
            queue: state.queue(&labels[0], &labels[1])?,
            priority: state.priority(&labels[2]),
            created_s,
            uid: uid(seed, id),
            asks: [gpus, of_all(shape.cpu_milli), of_all(shape.memory_mib)],
            kinds: job.types,
        };
        (!job.is_lease && state.could_fit(&work)).then_some(work)
    }

    /// Follows what has happened since the last time.
    fn follow(&mut self, cluster: &Cluster) {
        let (now, now_s) = (cluster.now(), self.whole_s(cluster.now()));
        self.begin(cluster);
        let mut started = Vec::new();
        self.jobs.retain(|id, waits| {
            let state = cluster.job(*id).state;
            if state == JobState::Finished {
                self.due.insert((now + RETURNED, Due::Returned(*id)));
            } else if state == JobState::Running && std::mem::take(waits) {
                // Others have started it.
                started.push(*id);
            }
            state != JobState::Finished
        });
        let seen = std::mem::replace(&mut self.num_seen, cluster.jobs().len());
        for number in seen..cluster.jobs().len() {
            let id = JobId(number as u32);
            let state = cluster.job(id).state;
            if state == JobState::Finished {
                continue;
            }
            let waits = state != JobState::Running;
            let next = match self.workload(cluster, id) {
                Some(_) => Due::Created(id),
                None => Due::LetIn(id, u64::MAX),
            };
            if next == Due::Created(id) {
                self.jobs.insert(id, waits);
            }
            match waits {
                true => {
                    self.due.insert((now + CREATED, next));
                }
                false => started.push(id),
            }
        }
        for id in started {
            if let Some(work) = self.workload(cluster, id) {
                let state = self.begin(cluster);
                state.submit(work);
                state.admit(id.0, now_s);
            }
            self.pods.let_in(cluster, id, u64::MAX);
        }
    }

    /// Does what is due; whether Kueue has something to try, and whose pods go.
    fn act(&mut self, cluster: &Cluster, now: Time) -> (bool, Vec<JobId>) {
        let (mut is_news, mut gone) = (false, Vec::new());
        while let Some((at, due)) = self.due.first().copied().filter(|(at, _)| *at <= now) {
            self.due.remove(&(at, due));
            is_news |= !matches!(due, Due::Gone(_) | Due::LetIn(..));
            let freed = match due {
                Due::Returned(id) => self.begin(cluster).give_back(id.0, [i64::MAX; 3]),
                Due::Gone(id) => {
                    if cluster.job(id).state != JobState::Finished {
                        self.due
                            .retain(|(_, due)| !matches!(due, Due::LetIn(of, _) if *of == id));
                        gone.push(id);
                        self.due.insert((at + GIVEN_BACK, Due::GivenBack(id)));
                    }
                    None
                }
                Due::GivenBack(id) if self.jobs.contains_key(&id) => {
                    self.jobs.insert(id, true);
                    self.begin(cluster).evicted(id.0)
                }
                Due::GivenBack(_) => None,
                Due::Flush(queue) => {
                    self.begin(cluster).flush(queue);
                    None
                }
                Due::Created(id) => {
                    let waits = self.jobs.get(&id) == Some(&true);
                    if let Some(work) = self.workload(cluster, id).filter(|_| waits) {
                        self.begin(cluster).submit(work);
                    }
                    None
                }
                Due::LetIn(id, kinds) => {
                    self.pods.let_in(cluster, id, kinds);
                    None
                }
            };
            if let Some(queue) = freed {
                let is_due = self.due.iter().any(|(_, due)| *due == Due::Flush(queue));
                self.due
                    .extend((!is_due).then_some((at + FLUSHED, Due::Flush(queue))));
            }
        }
        (is_news, gone)
    }

    /// Cycles until one changes nothing.
    fn cycles(&mut self, cluster: &Cluster) {
        let (now, now_s) = (cluster.now(), self.whole_s(cluster.now()));
        loop {
            let before = self.begin(cluster).heads();
            let tried = self.begin(cluster).cycle(now_s);
            for (job, outcome) in tried {
                match outcome {
                    Outcome::Admitted(kinds) => {
                        self.jobs.insert(JobId(job), false);
                        self.due.insert((now + LET_IN, Due::LetIn(JobId(job), kinds)));
                    }
                    Outcome::Preempts(victims) => {
                        self.due
                            .extend(victims.into_iter().map(|job| (now + GONE, Due::Gone(JobId(job)))));
                    }
                    Outcome::Refused => self.begin(cluster).refuse_alike(job),
                    Outcome::Again => {}
                }
            }
            if self.begin(cluster).heads() == before {
                break;
            }
        }
    }
}

impl Planner for Kueue {
    fn name(&self) -> &str {
        "kueue"
    }

    fn read_labels(&mut self, labels: &mut dyn Iterator<Item = JobLabels<'_>>) {
        self.labels = labels
            .map(|of| [of.account, of.partition, of.qos].map(Box::from))
            .collect();
    }

    fn observe(&mut self, cluster: &Cluster) {
        self.pods.observe(cluster);
        self.follow(cluster);
        self.act(cluster, cluster.now());
    }

    fn plan_at_once(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        let mut copy = self.clone();
        copy.observe(cluster);
        let end = Time(i64::MAX / 2);
        copy.act(cluster, end);
        copy.cycles(cluster);
        // Of preemptions only the decision is made at once.
        copy.due.retain(|(_, due)| matches!(due, Due::LetIn(..)));
        copy.act(cluster, end);
        copy.pods.plan_at_once(cluster)
    }

    fn reaction(&self) -> Time {
        RETURNED + FLUSHED + LET_IN + self.pods.reaction()
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        self.follow(cluster);
        let (is_news, gone) = self.act(cluster, cluster.now());
        gone.into_iter().for_each(|id| self.pods.evict(cluster, id));
        if is_news {
            self.cycles(cluster);
        }
        self.pods.plan(cluster)
    }

    fn wake_at(&self, cluster: &Cluster) -> Option<Time> {
        let due = self.due.first().map(|(at, _)| *at);
        [due, self.pods.wake_at(cluster)].into_iter().flatten().min()
    }
}
