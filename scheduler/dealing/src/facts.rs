//! What the columns of a deal are read off: looked up once for all jobs of a deal, and shared by formulas and by whatever scores rows.

use pleach_scheduler::cluster::{Cluster, JobState};
use pleach_scheduler::portable_math::ln;
use pleach_scheduler::{ClassId, GpuTypeId, JobId, PolicyError, Rows};

use super::belief::Belief;
use super::columns::{self, Estimates, JobFacts, Stage, StepFacts, TypeFacts, deal_schema, numbers_of};
use super::order::{Ask, Order};
use super::sizes::Step;
use super::trust::{Trust, Watch};

/// What many jobs share.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// `ln` of the GPUs that all jobs ask for over the cluster's.
    load: f64,
    /// `ln` of speed over best speed and of the advantage. `[class][type]`
    of_classes: Vec<[f64; 2]>,
    /// `ln` of the cluster's GPUs over the type's. `[type]`
    scarce: Vec<f64>,
    watch: Watch,
    belief: Belief,
    /// Whether a column with trust is read.
    reads_trust: bool,
    /// Whether a column with the belief is read.
    reads_belief: bool,
}

impl Facts {
    /// For columns that read these things of estimates.
    pub(crate) fn reading(reads: impl Fn(&[Estimates]) -> bool) -> Facts {
        Facts {
            load: 0.0,
            of_classes: Vec::new(),
            scarce: Vec::new(),
            watch: Watch::default(),
            belief: Belief::default(),
            reads_trust: reads(&[Estimates::Trust, Estimates::Belief]),
            reads_belief: reads(&[Estimates::Belief]),
        }
    }

    /// The same with what is known of estimates: for one deal on tables in which no job has ended.
    pub(crate) fn trusting(mut self, trust: Trust) -> Facts {
        self.watch.trust = trust;
        self.belief.look(trust);
        self
    }

    /// Looks at the cluster before a deal.
    pub(crate) fn look(&mut self, cluster: &Cluster) {
        let held = cluster.running().map(|id| u64::from(cluster.job(id).num_held));
        let asked = cluster.num_pending_gpus() + held.sum::<u64>();
        let num_gpus = f64::from(cluster.num_gpus());
        self.load = ln((asked.max(1) as f64) / num_gpus);
        self.look_at_classes(cluster, num_gpus);
        if self.reads_trust {
            self.watch.look(cluster);
        }
        if self.reads_belief {
            self.belief.look(self.watch.trust);
        }
    }

    fn look_at_classes(&mut self, cluster: &Cluster, num_gpus: f64) {
        let kinds = || (0..cluster.num_types()).map(|kind| GpuTypeId(kind as u8));
        self.of_classes.clear();
        for number in 0..cluster.classes().len() {
            let class = ClassId(number as u16);
            let of_types = kinds().map(|kind| {
                [
                    ln(cluster.speed_ratio(class, kind)),
                    ln(cluster.type_advantage(class, kind).max(1e-9)),
                ]
            });
            self.of_classes.extend(of_types);
        }
        self.scarce = kinds()
            .map(|kind| ln(num_gpus / f64::from(cluster.num_gpus_of(kind).max(1))))
            .collect();
    }

    pub(crate) fn of_job<'a>(&self, cluster: &'a Cluster, id: JobId) -> JobFacts<'a> {
        let job = cluster.job(id);
        let cost_s = || {
            let executed_s = job.executed_s_at(cluster.now());
            self.belief.cost_s(job.work_s(), executed_s)
        };
        JobFacts {
            cluster,
            id,
            job,
            load: self.load,
            trust: self.watch.trust.value(),
            believed_cost_s: self.reads_belief.then(cost_s),
        }
    }

    pub(crate) fn of_type<'a>(&self, cluster: &'a Cluster, id: JobId, kind: GpuTypeId) -> TypeFacts<'a> {
        let job = cluster.job(id);
        let [speed, advantage] =
            self.of_classes[job.request.class.index() * cluster.num_types() + kind.index()];
        TypeFacts {
            cluster,
            id,
            job,
            load: self.load,
            speed,
            advantage,
            scarce: self.scarce[kind.index()],
            stays: job.state == JobState::Running && job.gpu_type == kind,
        }
    }

    pub(crate) fn of_step<'a>(&self, cluster: &'a Cluster, id: JobId, step: &'a Step) -> StepFacts<'a> {
        StepFacts {
            cluster,
            job: cluster.job(id),
            step,
            load: self.load,
        }
    }
}

/// The rows of a deal, as networks and trees read them: 32 bits wide and within the ranges of the columns. As an order it has no scores
/// of its own: they are given to [`Dealer::close`](crate::Dealer::close).
#[derive(Clone, Debug)]
pub struct DealRows {
    facts: Facts,
    /// Numbers of the columns of each stage.
    of_job: Vec<usize>,
    of_type: Vec<usize>,
    of_step: Vec<usize>,
    rows: Vec<f32>,
    mask: Vec<bool>,
}

impl Default for DealRows {
    fn default() -> DealRows {
        DealRows {
            facts: Facts::reading(|_| true),
            of_job: numbers_of(Stage::Job).collect(),
            of_type: numbers_of(Stage::OnType).collect(),
            of_step: numbers_of(Stage::Step).collect(),
            rows: Vec::new(),
            mask: Vec::new(),
        }
    }
}

impl DealRows {
    /// As [`Facts::trusting`].
    pub(crate) fn trusting(mut self, trust: Trust) -> DealRows {
        self.facts = self.facts.trusting(trust);
        self
    }

    /// A row for each of what may be dealt, in the same places, of the cluster that was last looked at. `[asks, F]`
    pub fn of(&mut self, cluster: &Cluster, asks: &[Ask]) -> Rows<'_> {
        let width = deal_schema().features.len();
        self.rows.clear();
        self.rows.resize(asks.len() * width, 0.0);
        self.mask.clear();
        self.mask.resize(asks.len(), true);
        let mut of_job = Vec::new();
        for (place, (ask, row)) in asks.iter().zip(self.rows.chunks_exact_mut(width)).enumerate() {
            if place == 0 || asks[place - 1].job != ask.job {
                of_job = columns::read_job(&self.facts.of_job(cluster, ask.job)).to_vec();
            }
            put(row, &self.of_job, &of_job);
            let facts = self.facts.of_type(cluster, ask.job, ask.kind);
            put(row, &self.of_type, &columns::read_type(&facts));
            if let Some(step) = &ask.step {
                let facts = self.facts.of_step(cluster, ask.job, step);
                put(row, &self.of_step, &columns::read_step(&facts));
            }
        }
        Rows {
            schema: deal_schema(),
            rows: &self.rows,
            width,
            context: &[],
            mask: &self.mask,
        }
    }
}

impl Order for DealRows {
    fn look(&mut self, cluster: &Cluster, _movable: &[JobId]) -> Result<(), PolicyError> {
        self.facts.look(cluster);
        Ok(())
    }
}

fn put(row: &mut [f32], numbers: &[usize], values: &[f64]) {
    for (number, value) in numbers.iter().zip(values) {
        row[*number] = deal_schema().features[*number].encode(*value as f32);
    }
}
