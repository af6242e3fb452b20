//! In which order jobs are dealt GPUs: the service that they have had, what remains of them, the Gittins index, what they are
//! believed to cost, or what their GPUs do.
//!
//! A score is the logarithm of a product of powers, so that a factor of two counts the same anywhere:
//!
//! `score = priority - gpus_power ln(gang) + speed_power ln(speed on the type / best speed) + advantage_power ln(advantage of the
//! class on the type) + ln(stay_gain) if it runs there`
//!
//! For an elastic job the gang is what it would have after the step, and `marginal_power ln(what the step adds for a GPU / what
//! a GPU of the gang that it asked for does)` comes to it; a step beyond what it holds has no gain for staying.

use pleach_scheduler::cluster::{Cluster, JobState};
use pleach_scheduler::portable_math::ln;
use pleach_scheduler::settings;
use pleach_scheduler::settings::Above;
use pleach_scheduler::{GpuTypeId, JobId, PolicyError};

use super::belief::Belief;
use super::sizes::Step;
use super::trust::{Trust, Watch};
use crate::gittins::GittinsIndex;

/// What may be dealt: a job on a GPU type, and of an elastic job one step there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ask {
    /// The job.
    pub job: JobId,
    /// The type.
    pub kind: GpuTypeId,
    /// More GPUs for an elastic job; none for its whole gang of a rigid one.
    pub step: Option<Step>,
}

impl Ask {
    /// Whether no other has to come before it.
    pub(crate) fn is_first(&self) -> bool {
        self.step.is_none_or(|step| step.after == 0)
    }
}

/// What gives every job a score on every GPU type; larger scores are dealt first. A score of minus infinity deals no GPUs.
pub trait Order: Send {
    /// Looks at the cluster before a deal that may stop or move the running jobs in `movable`.
    ///
    /// # Errors
    /// A policy that cannot be asked.
    fn look(&mut self, cluster: &Cluster, movable: &[JobId]) -> Result<(), PolicyError>;

    /// The part of the score that is the same on all types.
    fn of_job(&self, _cluster: &Cluster, _id: JobId) -> f64 {
        0.0
    }

    /// The part of the score that is the type's.
    fn of_type(&self, _cluster: &Cluster, _id: JobId, _kind: GpuTypeId) -> f64 {
        0.0
    }

    /// The part of the score that is that of a step on a type; 0 for a rigid job.
    fn of_step(&self, _cluster: &Cluster, _id: JobId, _kind: GpuTypeId, _step: &Step) -> f64 {
        0.0
    }

    /// Scores of all that may be dealt: a job's next to each other, and its steps on a type in their order. The sums of the parts,
    /// unless an order scores all at once.
    ///
    /// # Errors
    /// What scores and cannot be asked.
    fn scores(&mut self, cluster: &Cluster, asks: &[Ask]) -> Result<Vec<f64>, PolicyError> {
        let (mut of_job, mut on_type) = (0.0, 0.0);
        let mut last: Option<(JobId, GpuTypeId)> = None;
        let score = |ask: &Ask| {
            if last.is_none_or(|(job, _)| job != ask.job) {
                of_job = self.of_job(cluster, ask.job);
            }
            if last != Some((ask.job, ask.kind)) {
                on_type = of_job + self.of_type(cluster, ask.job, ask.kind);
                last = Some((ask.job, ask.kind));
            }
            match &ask.step {
                Some(step) => on_type + self.of_step(cluster, ask.job, ask.kind, step),
                None => on_type,
            }
        };
        Ok(asks.iter().map(score).collect())
    }

    /// What the score of a job on a type is the sum of, in words: that of its gang as it asked for it.
    fn terms(&self, cluster: &Cluster, id: JobId, kind: GpuTypeId) -> Vec<(&'static str, f64)> {
        vec![
            ("of the job", self.of_job(cluster, id)),
            ("of the GPU type", self.of_type(cluster, id, kind)),
        ]
    }
}

/// Which jobs go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// The job that has had least service for each of its GPUs.
    LeastService,
    /// The job that is believed to need least time.
    ShortestRest,
    /// The job that is most likely to end soon for what it costs, by the jobs that have ended.
    Gittins,
    /// The job that is most likely to end soon for what it costs, by its estimate and by what estimates of ended jobs were worth.
    Believed,
    /// The job whose GPUs progress most: small gangs on their best types; equals by arrival.
    Rate,
}

settings! {
    /// Settings of the classic orders.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct OrderConfig {
        /// Service or rest below which jobs hardly differ, s, above 0 to 1e7: it is added before the logarithm.
        pub floor_s: f64 = 600.0, in Above(0.0, 1e7);
        /// How much the size of a gang counts against it: 0 = priority by time, 1 = by GPU-time. 0 to 4.
        pub gpus_power: f64 = 0.75, in 0.0..=4.0;
        /// How much the speed on a type counts, over the class's best speed. 0 to 16.
        pub speed_power: f64 = 4.0, in 0.0..=16.0;
        /// How much it counts that the type suits the class better than it suits others. 0 to 16.
        pub advantage_power: f64 = 1.0, in 0.0..=16.0;
        /// How much it counts what more GPUs add to an elastic job, over what they add to the gang that it asked for. 0 to 16.
        pub marginal_power: f64 = 1.0, in 0.0..=16.0;
        /// By what factor others must have the better claim to stop or move a running job. 1 to 1000.
        pub stay_gain: f64 = 1.5, in 1.0..=1000.0;
    }
}

/// Jobs that must have ended before the Gittins index says anything. *Assumed.*
const ENDED_MIN: usize = 10;
/// Quanta over which the best Gittins index is looked for: from a minute, each twice the last, to 23 days. *Assumed.*
const NUM_QUANTA: i32 = 16;

/// A classic order.
#[derive(Clone, Debug)]
pub struct ClassicOrder {
    priority: Priority,
    config: OrderConfig,
    /// Jobs that waited or ran when it last looked.
    seen: Vec<JobId>,
    /// Service of ended jobs for each of their GPUs, s.
    ended_s: Vec<f64>,
    index: GittinsIndex,
    watch: Watch,
    belief: Belief,
}

impl ClassicOrder {
    /// An order with its settings.
    #[must_use]
    pub fn new(priority: Priority, config: OrderConfig) -> ClassicOrder {
        ClassicOrder {
            priority,
            config,
            seen: Vec::new(),
            ended_s: Vec::new(),
            index: GittinsIndex::default(),
            watch: Watch::default(),
            belief: Belief::default(),
        }
    }

    /// The same with what is known of estimates: for one deal on tables in which no job has ended.
    #[must_use]
    pub fn trusting(mut self, trust: Trust) -> ClassicOrder {
        self.watch.trust = trust;
        self.belief.look(trust);
        self
    }

    /// The best ratio of the chance to end within a further service to the service that this is expected to cost, over all
    /// quanta; where no job is known to have been longer, and before enough have ended, as if the rest were as long as the
    /// past.
    fn gittins(&self, service_s: f64) -> f64 {
        let quanta = (0..NUM_QUANTA).map(|power| 60.0 * f64::from(1_u32 << power));
        let known = quanta.map(|quantum_s| self.index.at(service_s, quantum_s));
        let best = known.fold(0.0, f64::max);
        let unknown = 1.0 / (service_s + self.config.floor_s);
        if self.ended_s.len() < ENDED_MIN || best <= 0.0 {
            return unknown;
        }
        best
    }

    fn priority_of(&self, cluster: &Cluster, id: JobId) -> f64 {
        let floor_s = self.config.floor_s;
        match self.priority {
            Priority::LeastService => -ln(service_s(cluster, id) + floor_s),
            Priority::ShortestRest => -ln(cluster.job(id).remaining_s_at(cluster.now()) + floor_s),
            Priority::Gittins => ln(self.gittins(service_s(cluster, id))),
            Priority::Believed => {
                let job = cluster.job(id);
                let cost_s = self.belief.cost_s(job.work_s(), job.executed_s_at(cluster.now()));
                -ln(cost_s + floor_s)
            }
            Priority::Rate => 0.0,
        }
    }
}

/// Service of a job for each of its GPUs until now, s.
fn service_s(cluster: &Cluster, id: JobId) -> f64 {
    cluster.job(id).service_s_at(cluster.now())
}

impl Order for ClassicOrder {
    fn look(&mut self, cluster: &Cluster, _movable: &[JobId]) -> Result<(), PolicyError> {
        if self.priority == Priority::Believed {
            self.watch.look(cluster);
            self.belief.look(self.watch.trust);
        }
        if self.priority != Priority::Gittins {
            return Ok(());
        }
        let ended = self.seen.iter().copied();
        let ended: Vec<JobId> = ended
            .filter(|id| cluster.job(*id).state == JobState::Finished)
            .collect();
        if !ended.is_empty() {
            self.ended_s
                .extend(ended.into_iter().map(|id| service_s(cluster, id)));
            self.index = GittinsIndex::of(self.ended_s.clone());
        }
        self.seen = cluster.active();
        Ok(())
    }

    fn of_job(&self, cluster: &Cluster, id: JobId) -> f64 {
        let num_gpus = f64::from(cluster.job(id).request.num_gpus);
        self.priority_of(cluster, id) - self.config.gpus_power * ln(num_gpus)
    }

    fn of_type(&self, cluster: &Cluster, id: JobId, kind: GpuTypeId) -> f64 {
        let job = cluster.job(id);
        let class = job.request.class;
        let mut score = self.config.speed_power * ln(cluster.speed_ratio(class, kind));
        if self.config.advantage_power > 0.0 {
            score += self.config.advantage_power * ln(cluster.type_advantage(class, kind));
        }
        if job.state == JobState::Running && job.gpu_type == kind {
            score += ln(self.config.stay_gain);
        }
        score
    }

    fn of_step(&self, cluster: &Cluster, id: JobId, _kind: GpuTypeId, step: &Step) -> f64 {
        let asked = f64::from(cluster.job(id).request.num_gpus);
        let mut score = self.config.marginal_power * ln(step.marginal)
            - self.config.gpus_power * ln(f64::from(step.num_gpus) / asked);
        if step.grows {
            score -= ln(self.config.stay_gain);
        }
        score
    }

    fn terms(&self, cluster: &Cluster, id: JobId, kind: GpuTypeId) -> Vec<(&'static str, f64)> {
        let priority = match self.priority {
            Priority::LeastService => "- ln(service for each GPU + floor)",
            Priority::ShortestRest => "- ln(believed rest + floor)",
            Priority::Gittins => "ln(Gittins index)",
            Priority::Believed => "- ln(believed cost + floor)",
            Priority::Rate => "no priority",
        };
        let gang = ln(f64::from(cluster.job(id).request.num_gpus));
        vec![
            (priority, self.priority_of(cluster, id)),
            ("- power x ln(GPUs of the gang)", -self.config.gpus_power * gang),
            (
                "speed and advantage on the type, and the gain of staying",
                self.of_type(cluster, id, kind),
            ),
        ]
    }
}
