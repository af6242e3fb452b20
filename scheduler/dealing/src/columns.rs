//! The columns of a deal, which formulas weigh: one line each, with what it is, what is known of it, and how it is read off.
//!
//! A row is a job on a GPU type, and for an elastic job a step there. It is read in three stages, so that what is the same on all
//! types is read once: `job`, `on_type`, `step`. Numbers are 64 bits wide and logarithms are natural; a column is its own scale, and
//! its range is what it is known to stay in, not a bound that it is clamped to.
//!
//! A line says: its stage, name, unit, range; how it moves with a longer wait and with a shorter estimate; what controls
//! it; what it reads of estimates; what it means; and how it is read. Lines above of the same stage may be read by their names.
//! **Lines are only ever added at the end**, and never changed: files hold on to names and definitions. A new line is all that a new
//! column takes, and a fact where it reads something new.

use pleach_scheduler::cluster::{Cluster, Job, JobState};
use pleach_scheduler::features::Among::{Flag, Varies};
use pleach_scheduler::features::Control::{Cluster as Held, History, Operator, Time as Passing, User};
use pleach_scheduler::features::Relation::{self, Any, Down, Equal, Up};
use pleach_scheduler::features::{Among, Feature, FeatureSchema, Group, Kinds, RowKind, Scale, View};
use pleach_scheduler::portable_math::ln;
use pleach_scheduler::{JobId, Time};

use super::sizes::Step;

/// Times below this hardly differ, s. *Assumed.*
const FLOOR_S: f64 = 60.0;
/// As [`FLOOR_S`], for the column that tells only long jobs apart, s. *Assumed.*
const LONG_S: f64 = 3600.0;

/// When a column is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Once for each job: it is the same on all types.
    Job,
    /// Once for each GPU type of a job.
    OnType,
    /// Once for each step of an elastic job on a type; 0 where there is none.
    Step,
}

/// What a column reads of estimates of run times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimates {
    /// Nothing.
    Unread,
    /// The job's own.
    Own,
    /// What those of ended jobs were worth.
    Trust,
    /// Both, as a believed cost.
    Belief,
}

/// Facts of a job in a deal.
pub(crate) struct JobFacts<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) id: JobId,
    pub(crate) job: &'a Job,
    /// `ln` of the GPUs that all jobs ask for over the cluster's.
    pub(crate) load: f64,
    pub(crate) trust: f64,
    /// None where no column reads it: it is dear.
    pub(crate) believed_cost_s: Option<f64>,
}

impl JobFacts<'_> {
    fn now(&self) -> Time {
        self.cluster.now()
    }
}

/// Facts of a job on a GPU type.
pub(crate) struct TypeFacts<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) id: JobId,
    pub(crate) job: &'a Job,
    pub(crate) load: f64,
    /// `ln` of speed over best speed.
    pub(crate) speed: f64,
    /// `ln` of the advantage of the class.
    pub(crate) advantage: f64,
    /// `ln` of the cluster's GPUs over the type's.
    pub(crate) scarce: f64,
    /// It runs on this type.
    pub(crate) stays: bool,
}

impl TypeFacts<'_> {
    fn moves(&self) -> bool {
        self.job.state == JobState::Running && !self.stays
    }

    /// Logarithms are what a deal of many jobs spends its time on, and most of them do not run here.
    #[inline]
    fn if_stays(&self, value: impl Fn(&Job) -> f64) -> f64 {
        if self.stays { value(self.job) } else { 0.0 }
    }

    fn ran_s(&self) -> f64 {
        (self.cluster.now() - self.job.run_start).as_secs_f64()
    }

    fn service_s(&self) -> f64 {
        self.job.service_s_at(self.cluster.now())
    }
}

/// Facts of a step of an elastic job.
pub(crate) struct StepFacts<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) job: &'a Job,
    pub(crate) step: &'a Step,
    pub(crate) load: f64,
}

impl StepFacts<'_> {
    fn size_ratio(&self) -> f64 {
        f64::from(self.step.num_gpus) / f64::from(self.job.request.num_gpus)
    }

    fn service_s(&self) -> f64 {
        self.job.service_s_at(self.cluster.now())
    }
}

/// A product whose other factor is not read where the first is 0.
#[inline]
fn times(first: f64, other: impl Fn() -> f64) -> f64 {
    if first == 0.0 { 0.0 } else { first * other() }
}

fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

/// Hands on what follows where the two words are the same.
macro_rules! only {
    (job, job => $($then:tt)*) => { $($then)* };
    (on_type, on_type => $($then:tt)*) => { $($then)* };
    (step, step => $($then:tt)*) => { $($then)* };
    ($one:ident, $other:ident => $($then:tt)*) => {};
}

macro_rules! stage {
    (job) => {
        Stage::Job
    };
    (on_type) => {
        Stage::OnType
    };
    (step) => {
        Stage::Step
    };
}

macro_rules! columns {
    ($($stage:ident $id:ident [$unit:literal] $min:literal .. $max:literal, $among:expr, $moves:expr, $control:ident,
        $estimates:ident, $doc:literal, by |$facts:pat_param| $value:expr;)*) => {
        const FEATURES: &[Feature] = &[$(Feature {
            name: stringify!($id), unit: $unit, min: $min, max: $max, scale: Scale::Linear(1.0), doc: $doc, group: Group::Row,
            among: $among, moves: $moves, control: $control, is_whole: $min == 0.0 && $max == 1.0,
        }),*];

        /// When each is read.
        pub(crate) const STAGES: &[Stage] = &[$(stage!($stage)),*];

        /// What each reads of estimates.
        pub(crate) const ESTIMATES: &[Estimates] = &[$(Estimates::$estimates),*];

        /// The columns of a job, in their order.
        pub(crate) fn read_job(facts: &JobFacts<'_>) -> [f64; NUM_OF_JOB] {
            let (mut values, mut at) = ([0.0; NUM_OF_JOB], 0);
            $(only! { job, $stage => let $id: f64 = { let $facts = facts; $value }; values[at] = $id; at += 1; })*
            debug_assert_eq!(at, values.len());
            values
        }

        /// The columns of a job on a type, in their order.
        pub(crate) fn read_type(facts: &TypeFacts<'_>) -> [f64; NUM_OF_TYPE] {
            let (mut values, mut at) = ([0.0; NUM_OF_TYPE], 0);
            $(only! { on_type, $stage => let $id: f64 = { let $facts = facts; $value }; values[at] = $id; at += 1; })*
            debug_assert_eq!(at, values.len());
            values
        }

        /// The columns of a step, in their order.
        pub(crate) fn read_step(facts: &StepFacts<'_>) -> [f64; NUM_OF_STEP] {
            let (mut values, mut at) = ([0.0; NUM_OF_STEP], 0);
            $(only! { step, $stage => let $id: f64 = { let $facts = facts; $value }; values[at] = $id; at += 1; })*
            debug_assert_eq!(at, values.len());
            values
        }
    };
}

const WAITS: usize = 0;
const STAYS: usize = 1;
const MOVES: usize = 2;
const EVERY: Among = Varies(Kinds::of(&[WAITS, STAYS, MOVES]));
const STAYING: Among = Varies(Kinds::of(&[STAYS]));

const STILL: [Relation; 3] = [Equal, Equal, Equal];
const WITH_TIME: [Relation; 3] = [Up, Equal, Equal];
const WITH_ESTIMATE: [Relation; 3] = [Equal, Down, Equal];
const UNKNOWN: [Relation; 3] = [Equal, Any, Equal];

columns! {
    job service ["ln s"] 4.0..25.0, EVERY, STILL, History, Unread,
        "ln(service for each GPU + 60 s)", by |of| ln(of.job.service_s_at(of.now()) + FLOOR_S);
    job long_service ["ln s"] 8.0..25.0, EVERY, STILL, History, Unread,
        "ln(service for each GPU + 1 h)", by |of| ln(of.job.service_s_at(of.now()) + LONG_S);
    job gang ["ln GPUs"] 0.0..15.0, EVERY, STILL, User, Unread,
        "ln(GPUs of the gang)", by |of| ln(f64::from(of.job.request.num_gpus));
    job age ["ln s"] 4.0..25.0, EVERY, WITH_TIME, Passing, Unread,
        "ln(time since it came + 60 s)", by |of| ln(of.job.age_s_at(of.now()) + FLOOR_S);
    job wait ["ln s"] 4.0..25.0, EVERY, WITH_TIME, Passing, Unread,
        "ln(time without GPUs + 60 s)", by |of| ln(of.job.without_gpus_s_at(of.now()) + FLOOR_S);
    job gang_load [""] -500.0..500.0, EVERY, STILL, User, Unread,
        "ln(GPUs asked for / GPUs) x ln(GPUs of the gang)", by |of| of.load * gang;
    job service_load [""] -500.0..500.0, EVERY, STILL, History, Unread,
        "ln(GPUs asked for / GPUs) x ln(service for each GPU + 60 s)", by |of| of.load * service;
    job restart ["ln s"] 0.0..15.0, EVERY, STILL, Operator, Unread,
        "ln(1 + cost of a restart / 1 s)", by |of| ln(1.0 + of.cluster.restart_cost_s(of.id));
    job rest ["ln s"] 4.0..25.0, EVERY, WITH_ESTIMATE, User, Own,
        "ln(believed rest + 60 s)", by |of| ln(of.job.remaining_s_at(of.now()) + FLOOR_S);
    job rest_trust [""] 0.0..25.0, EVERY, WITH_ESTIMATE, User, Trust,
        "trust x ln(believed rest + 60 s)", by |of| of.trust * rest;
    job service_trust [""] 0.0..25.0, EVERY, STILL, History, Trust,
        "trust x ln(service for each GPU + 60 s)", by |of| of.trust * service;
    job gang_trust [""] 0.0..15.0, EVERY, STILL, User, Trust,
        "trust x ln(GPUs of the gang)", by |of| of.trust * gang;
    job belief ["ln s"] 0.0..60.0, EVERY, UNKNOWN, User, Belief,
        "ln(believed cost + 60 s)", by |of| of.believed_cost_s.map_or(0.0, |cost_s| ln(cost_s + FLOOR_S));
    job belief_load [""] -500.0..500.0, EVERY, UNKNOWN, User, Belief,
        "ln(GPUs asked for / GPUs) x ln(believed cost + 60 s)", by |of| of.load * belief;

    on_type speed [""] -25.0..0.0, EVERY, STILL, Held, Unread,
        "ln(speed on the type / best speed)", by |on| on.speed;
    on_type advantage [""] -25.0..25.0, EVERY, STILL, Held, Unread,
        "ln(advantage of the class on the type)", by |on| on.advantage;
    on_type scarce [""] 0.0..15.0, EVERY, STILL, Operator, Unread,
        "ln(GPUs / GPUs of the type)", by |on| on.scarce;
    on_type stays [""] 0.0..1.0, Flag(STAYS), STILL, Held, Unread,
        "1 if it runs on the type", by |on| flag(on.stays);
    on_type stays_run ["ln s"] 0.0..25.0, STAYING, STILL, Passing, Unread,
        "ln(time since its start + 60 s) if it runs on the type", by |on| on.if_stays(|_| ln(on.ran_s() + FLOOR_S));
    on_type stays_restart ["ln s"] 0.0..15.0, STAYING, STILL, Operator, Unread,
        "ln(1 + cost of a restart / 1 s) if it runs on the type",
        by |on| on.if_stays(|_| ln(1.0 + on.cluster.restart_cost_s(on.id)));
    on_type moves [""] 0.0..1.0, Flag(MOVES), STILL, Held, Unread,
        "1 if it runs on another type", by |on| flag(on.moves());
    on_type speed_service [""] -500.0..500.0, EVERY, STILL, History, Unread,
        "ln(speed on the type / best speed) x ln(service for each GPU + 60 s)",
        by |on| times(speed, || ln(on.service_s() + FLOOR_S));
    on_type speed_load [""] -500.0..500.0, EVERY, STILL, Held, Unread,
        "ln(speed on the type / best speed) x ln(GPUs asked for / GPUs)", by |on| times(speed, || on.load);
    on_type speed_gang [""] -500.0..500.0, EVERY, STILL, User, Unread,
        "ln(speed on the type / best speed) x ln(GPUs of the gang)",
        by |on| times(speed, || ln(f64::from(on.job.request.num_gpus)));
    on_type beside [""] 0.0..1.0, STAYING, STILL, Held, Unread,
        "1 if it shares its GPUs on the type", by |on| on.if_stays(|job| flag(job.is_sharing));

    step size [""] -15.0..15.0, EVERY, STILL, User, Unread,
        "ln(GPUs of the step / GPUs that it asked for)", by |at| ln(at.size_ratio());
    step marginal [""] -50.0..50.0, EVERY, STILL, Held, Unread,
        "ln(what the step adds for a GPU / what a GPU of the gang asked for does)", by |at| ln(at.step.marginal);
    step grows [""] 0.0..1.0, EVERY, STILL, Held, Unread,
        "1 if the step is beyond what it holds", by |at| flag(at.step.grows);
    step size_load [""] -500.0..500.0, EVERY, STILL, User, Unread,
        "ln(GPUs asked for / GPUs) x ln(GPUs of the step / GPUs that it asked for)", by |at| at.load * size;
    step size_service [""] -500.0..500.0, EVERY, STILL, User, Unread,
        "ln(GPUs of the step / GPUs that it asked for) x ln(service for each GPU + 60 s)",
        by |at| size * ln(at.service_s() + FLOOR_S);
    step marginal_load [""] -500.0..500.0, EVERY, STILL, Held, Unread,
        "ln(GPUs asked for / GPUs) x ln(what the step adds for a GPU / what a GPU of the gang asked for does)",
        by |at| at.load * marginal;
}

const fn num_of(stage: Stage) -> usize {
    let (mut at, mut num) = (0, 0);
    while at < STAGES.len() {
        num += (STAGES[at] as u8 == stage as u8) as usize;
        at += 1;
    }
    num
}

const NUM_OF_JOB: usize = num_of(Stage::Job);
const NUM_OF_TYPE: usize = num_of(Stage::OnType);
const NUM_OF_STEP: usize = num_of(Stage::Step);

const fn kind(name: &'static str, does: &'static str, waits: bool) -> RowKind {
    RowKind {
        name,
        does,
        action: None,
        is_about_a_job: true,
        waits,
    }
}

const KINDS: [RowKind; 3] = [
    kind("waits", "deal GPUs of the type to a job that does not run", true),
    kind("stays", "deal GPUs to a job of the type that it runs on", false),
    kind("moves", "deal GPUs to a job that runs on another type", false),
];

/// The columns of a deal. What a formula weighs is among them.
static DEAL: FeatureSchema =
    FeatureSchema::new("deal", &KINDS, FEATURES, &[], &[View::of("deal-1", FEATURES, 31)]);

/// The columns that a formula weighs.
#[must_use]
pub const fn deal_schema() -> &'static FeatureSchema {
    &DEAL
}

/// Numbers of the columns of a stage.
pub(crate) fn numbers_of(stage: Stage) -> impl Iterator<Item = usize> {
    (0..STAGES.len()).filter(move |number| STAGES[*number] == stage)
}

/// The columns as the second part of `features.md` of the site.
#[must_use]
pub fn deal_markdown() -> String {
    let mut text = format!(
        "\n# Columns of a deal\n\nWhat a formula of the planner `index` weighs. A row is a job on a GPU type, and for an elastic job a step \
         there.\nNumbers are 64 bits wide and are not clamped: a range is what a column is known to stay in. *Trust* is exp(-mean \
         error)\nof the estimates of the jobs that have ended, *service* the GPU time of a job over the GPUs that it asks for.\n\n\
         View `{}`, all {} columns. Schema hash: `{}`\n",
        DEAL.views[0].name,
        FEATURES.len(),
        DEAL.hash()
    );
    for (title, stage) in [
        ("Of a job", Stage::Job),
        ("Of a job on a GPU type", Stage::OnType),
        ("Of a step of an elastic job", Stage::Step),
    ] {
        text.push_str(&DEAL.table(title, |number| STAGES[number] == stage));
    }
    let reading = |what: Estimates| {
        let read = (0..FEATURES.len()).filter(|number| ESTIMATES[*number] == what);
        let names: Vec<String> = read
            .map(|number| format!("`{}`", FEATURES[number].name))
            .collect();
        names.join(", ")
    };
    text.push_str(&format!(
        "\nWhat is read of estimates of run times:\nthe job's own by {};\nwhat those of ended jobs were worth by {};\nboth by {}.\n",
        reading(Estimates::Own),
        reading(Estimates::Trust),
        reading(Estimates::Belief)
    ));
    text
}
