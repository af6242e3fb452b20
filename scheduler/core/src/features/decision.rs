//! The columns of a decision: one line each, with what it is, what is known of it, and how it is read off the cluster.
//!
//! A line says: what it is about (a `row`, that is a candidate, or the `context`, that is the cluster and its queue), name, unit,
//! range, scale; what it is among rows of each kind; how it moves where a job waits longer and where its estimate is shorter;
//! whose choice it is; what it means; and which writer fills it. **Lines are only ever added at the end**: the number of a column
//! is its line, and files, exports and views hold on to numbers and names. A line is never changed: another range or meaning is
//! another column. A new column takes one line at the end and, where no fact gives its value yet, a new fact.
//!
//! # Writers
//! `kind`: 1 in rows of its kind. `job`: once for each offered job, many jobs side by side. `rank`: share of the offered jobs with a
//! smaller number. `time`: seconds of a candidate where it has any, scaled side by side. `place`: of candidates with a placement.
//! `stop`: of candidates that stop jobs. `cost`: of what else the job could have. `action`: of every candidate about a job. `any`: of
//! every candidate. `context`: once for each decision.

use super::columns::{ColumnSet, Wanted, is_same, set_of};
use super::feature::Among::{Flag, Varies};
use super::feature::Control::{Cluster, Fixed, History, Operator, Queue, Time, User};
use super::feature::Group::{Context, Row};
use super::feature::Relation::{self, Any, Down, Equal, Up};
use super::feature::Scale::{Linear, Log};
use super::feature::{Feature, Kinds, RowKind};
use super::law::Law;
use super::schema::{FeatureSchema, View, place_of, widths};
use crate::actions::{About, CANDIDATES, CandidateKind};
use crate::candidate::OpportunityCost;
use crate::cluster::PlacementFacts;
use crate::lens::Lens;
use crate::observation::facts::{ActionFacts, ContextFacts, JobFacts, RowFacts, TimeFacts};

/// Hands on what follows where the two words are the same.
macro_rules! only {
    (kind, kind => $($then:tt)*) => { $($then)* };
    (job, job => $($then:tt)*) => { $($then)* };
    (rank, rank => $($then:tt)*) => { $($then)* };
    (time, time => $($then:tt)*) => { $($then)* };
    (place, place => $($then:tt)*) => { $($then)* };
    (stop, stop => $($then:tt)*) => { $($then)* };
    (cost, cost => $($then:tt)*) => { $($then)* };
    (action, action => $($then:tt)*) => { $($then)* };
    (flag, flag => $($then:tt)*) => { $($then)* };
    (any, any => $($then:tt)*) => { $($then)* };
    (context, context => $($then:tt)*) => { $($then)* };
    ($one:ident, $other:ident => $($then:tt)*) => {};
}

macro_rules! group {
    (row) => {
        Row
    };
    (context) => {
        Context
    };
}

macro_rules! is_whole {
    () => {
        false
    };
    (whole) => {
        true
    };
}

macro_rules! columns {
    ($($(#[$when:meta])* $group:ident $id:ident $name:literal [$unit:literal] $min:literal .. $max:literal $scale:expr,
        $among:expr, $moves:expr, $control:ident, $doc:literal, by $writer:ident $(|$facts:pat_param| $value:expr)? $(, $whole:ident)?;)*) => {
        /// A column by its number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub(crate) enum Id { $($(#[$when])* $id),* }

        /// All columns, by their numbers.
        pub(crate) const FEATURES: &[Feature] = &[$($(#[$when])* Feature {
            name: $name, unit: $unit, min: $min, max: $max, scale: $scale, doc: $doc, group: group!($group), among: $among,
            moves: [$moves[0], $moves[1], Relation::Equal], control: $control, is_whole: is_whole!($($whole)?),
        }),*];

        pub(super) const WRITERS: &[&str] = &[$($(#[$when])* stringify!($writer)),*];

        /// Columns of jobs that are scaled side by side.
        pub(crate) const JOB_COLUMNS: [Id; count_of("job")] = columns_of("job");
        /// Columns of ranks.
        pub(crate) const RANK_COLUMNS: [Id; count_of("rank")] = columns_of("rank");
        /// Times of a candidate.
        pub(crate) const TIMES: ColumnSet = set_of(WRITERS, "time");
        /// What is said of what else a job could have.
        pub(crate) const COSTS: ColumnSet = set_of(WRITERS, "cost").with(Id::BestTypeWaitS as usize);
        const ALL: &[Id] = &[$($(#[$when])* Id::$id),*];

        /// Reads what is scaled of one job, in the order of [`JOB_COLUMNS`], and what is ranked, in that of [`RANK_COLUMNS`].
        #[inline(always)]
        pub(crate) fn read_job(job: &JobFacts, mut scaled: impl FnMut(usize, f32), mut ranked: impl FnMut(usize, f32)) {
            $($(#[$when])* { $(
                only!(job, $writer => { let $facts = job; scaled(const { slot(Id::$id) }, $value); });
                only!(rank, $writer => { let $facts = job; ranked(const { slot(Id::$id) }, $value); });
            )? })*
        }

        /// Reads the times of a candidate, in seconds, in the order of columns; returns which it has, a bit for each.
        #[inline(always)]
        pub(crate) fn read_times(facts: &TimeFacts<'_>, mut put: impl FnMut(f32)) -> u8 {
            let mut has = 0;
            $($(#[$when])* { $(only!(time, $writer => {
                let $facts = facts;
                if let Some(seconds) = $value {
                    put(seconds);
                    has |= const { 1 << slot(Id::$id) };
                }
            });)? })*
            has
        }

        /// Writes the scaled times of a candidate, of which it has these.
        #[inline(always)]
        pub(crate) fn write_times<const W: usize>(has: u8, times: &[f32], row: &mut [f32; W]) {
            let mut times = times.iter();
            $($(#[$when])* { only!(time, $writer => {
                if has & const { 1 << slot(Id::$id) } != 0 {
                    write(row, Id::$id, times.next().copied().unwrap_or(0.0));
                }
            }); })*
        }

        #[inline(always)]
        pub(crate) fn write_place<const W: usize>(place: &(PlacementFacts, f64), wanted: impl Wanted, row: &mut [f32; W]) {
            $($(#[$when])* { $(only!(place, $writer => { if wanted.wants(Id::$id as usize) { let $facts = place; put(row, Id::$id, $value); } });)? })*
        }

        #[inline(always)]
        pub(crate) fn write_stop<const W: usize>(facts: &ActionFacts<'_>, wanted: impl Wanted, row: &mut [f32; W]) {
            $($(#[$when])* { $(only!(stop, $writer => { if wanted.wants(Id::$id as usize) { let $facts = facts; put(row, Id::$id, $value); } });)? })*
        }

        #[inline(always)]
        pub(crate) fn write_cost<const W: usize>(cost: &OpportunityCost, wanted: impl Wanted, row: &mut [f32; W]) {
            $($(#[$when])* { $(only!(cost, $writer => { if wanted.wants(Id::$id as usize) { let $facts = cost; put(row, Id::$id, $value); } });)? })*
        }

        #[inline(always)]
        pub(crate) fn write_action<const W: usize>(facts: &ActionFacts<'_>, wanted: impl Wanted, row: &mut [f32; W]) {
            $($(#[$when])* { $(
                only!(action, $writer => { if wanted.wants(Id::$id as usize) { let $facts = facts; put(row, Id::$id, $value); } });
                only!(flag, $writer => { let $facts = facts; write(row, Id::$id, f32::from($value)); });
            )? })*
        }

        #[inline(always)]
        pub(crate) fn write_any<const W: usize>(facts: &RowFacts, wanted: impl Wanted, row: &mut [f32; W]) {
            $($(#[$when])* { $(only!(any, $writer => { if wanted.wants(Id::$id as usize) { let $facts = facts; put(row, Id::$id, $value); } });)? })*
        }

        /// Writes the context, as far as the buffer goes.
        pub(crate) fn write_context(facts: &ContextFacts<'_>, wanted: impl Wanted, context: &mut [f32]) {
            $($(#[$when])* { $(only!(context, $writer => {
                let $facts = facts;
                if wanted.wants(Id::$id as usize)
                    && let Some(place) = context.get_mut(const { place(Id::$id) })
                {
                    *place = FEATURES[Id::$id as usize].encode($value);
                }
            });)? })*
        }
    };
}

const HOLD: usize = CandidateKind::Hold as usize;
const START: usize = CandidateKind::Start as usize;
const RESERVE: usize = CandidateKind::Reserve as usize;
const PREEMPT: usize = CandidateKind::Preempt as usize;
const RESIZE: usize = CandidateKind::Resize as usize;
/// Rows of every kind.
const EVERY: Kinds = Kinds::of(&[HOLD, START, RESERVE, PREEMPT, RESIZE]);
/// Rows about a job.
const JOB: Kinds = Kinds::of(&[START, RESERVE, PREEMPT, RESIZE]);
/// Rows with a placement.
const PLACED: Kinds = Kinds::of(&[START, PREEMPT, RESIZE]);
const START_ONLY: Kinds = Kinds::of(&[START]);
const RESERVE_ONLY: Kinds = Kinds::of(&[RESERVE]);
const STOPPING: Kinds = Kinds::of(&[PREEMPT]);
const RESIZE_ONLY: Kinds = Kinds::of(&[RESIZE]);

const STILL: [Relation; 2] = [Equal, Equal];

columns! {
    row IsHold "is_hold" [""] 0.0..1.0 Linear(1.0), Flag(HOLD), STILL, Fixed,
        "1 if the candidate ends the pass.", by kind, whole;
    row IsStart "is_start" [""] 0.0..1.0 Linear(1.0), Flag(START), STILL, Fixed,
        "1 if it starts a job on free GPUs.", by kind, whole;
    row IsReserve "is_reserve" [""] 0.0..1.0 Linear(1.0), Flag(RESERVE), STILL, Fixed,
        "1 if it holds GPUs back for a job that does not fit yet.", by kind, whole;
    row IsPreempt "is_preempt" [""] 0.0..1.0 Linear(1.0), Flag(PREEMPT), STILL, Fixed,
        "1 if it stops running jobs to start one.", by kind, whole;
    row NumGpus "num_gpus" [""] 0.0..1e4 Log(2.0), Varies(JOB), STILL, User,
        "Size of the gang.", by job |job| job.num_gpus;
    row GpuFraction "gpu_fraction" [""] 0.0..1.0 Linear(1.0), Varies(JOB), STILL, User,
        "Size of the gang over all GPUs of the cluster.", by job |job| job.num_gpus / job.cluster_gpus;
    row RemainingS "remaining_s" ["s"] 0.0..1e8 Log(6.0), Varies(JOB), [Equal, Down], User,
        "Believed rest of the job on the reference type.", by job |job| job.remaining_s;
    row DurationS "duration_s" ["s"] 0.0..1e8 Log(6.0), Varies(JOB), [Equal, Down], User,
        "Believed time that it would hold these GPUs, restart included.", by time |time| Some(time.duration_s);
    row GpuTime "gpu_time_gpu_s" ["GPU s"] 0.0..1e10 Log(8.0), Varies(JOB), [Equal, Down], User,
        "Believed rest times the size of the gang.", by job |job| job.remaining_s * job.num_gpus;
    row WaitS "wait_s" ["s"] 0.0..1e8 Log(6.0), Varies(JOB), [Up, Equal], Time,
        "Time since submission.", by job |job| job.wait_s;
    row WaitRatio "wait_ratio" [""] 1.0..1e6 Log(3.0), Varies(JOB), [Up, Up], Time,
        "(time since submission + believed rest) / believed rest.",
        by job |job| (job.wait_s + job.remaining_s) / job.remaining_s;
    row Attained "attained_gpu_s" ["GPU s"] 0.0..1e10 Log(8.0), Varies(JOB), STILL, History,
        "GPU time received so far.", by job |job| job.attained_gpu_s;
    row NumPreemptions "num_preemptions" [""] 0.0..16.0 Linear(4.0), Varies(JOB), STILL, History,
        "How often the job was preempted.", by job |job| job.num_preemptions, whole;
    row TenantUse "tenant_use_ratio" [""] 0.0..8.0 Linear(2.0), Varies(JOB), STILL, Operator,
        "GPUs that the tenant holds over its quota.", by job |job| job.tenant_use_ratio;
    row Speed "speed_ratio" [""] 0.0..1.0 Linear(1.0), Varies(PLACED), STILL, Cluster,
        "Rate at this placement over the best rate that the job could have.",
        by place |(place, best_rate)| (place.rate / best_rate) as f32;
    row Locality "locality" [""] 0.0..1.0 Linear(1.0), Varies(PLACED), STILL, Cluster,
        "Locality factor of the placement; 1 is the tightest.", by place |(place, _)| place.locality as f32;
    row NodesRatio "num_nodes_ratio" [""] 0.0..16.0 Linear(4.0), Varies(PLACED), STILL, Cluster,
        "Nodes touched over the fewest that could hold the gang.",
        by place |(place, _)| place.num_nodes as f32 / place.num_nodes_min as f32;
    row NumLeft "num_left" [""] 0.0..64.0 Linear(8.0), Varies(PLACED), STILL, Cluster,
        "GPUs that stay free in the touched nodes.", by place |(place, _)| place.num_left as f32, whole;
    row Leftover "leftover_fraction" [""] 0.0..1.0 Linear(1.0), Varies(EVERY), STILL, Cluster,
        "Free GPUs of the cluster after it, over all GPUs.", by any |row| row.num_left / row.cluster_gpus;
    row OldestSlack "oldest_slack" [""] -1.0..1.0 Linear(1.0), Varies(EVERY), STILL, Cluster,
        "Free GPUs after it less the gang of the oldest other pending job, over all GPUs.",
        by any |row| (row.num_left - row.oldest_other_gpus) / row.cluster_gpus;
    row WaitToFitS "wait_to_fit_s" ["s"] 0.0..1e8 Log(6.0), Varies(RESERVE_ONLY), STILL, Cluster,
        "Believed time until a reserved gang is free.", by time |time| time.wait_to_fit_s();
    row NumVictims "num_victims" [""] 0.0..1e3 Log(2.0), Varies(STOPPING), STILL, Cluster,
        "Running jobs that it stops.", by stop |action| action.candidate.victims.len() as f32, whole;
    row VictimsRemainingS "victims_remaining_s" ["s"] 0.0..1e8 Log(6.0), Varies(STOPPING), STILL, Cluster,
        "Shortest believed rest among the jobs that it stops.", by time |time| time.victims_remaining_s();
    row RankRemaining "rank_remaining" [""] 0.0..1.0 Linear(1.0), Varies(JOB), [Equal, Down], Queue,
        "Share of the offered jobs with a shorter believed rest.", by rank |job| job.remaining_s;
    row RankGpuTime "rank_gpu_time" [""] 0.0..1.0 Linear(1.0), Varies(JOB), [Equal, Down], Queue,
        "Share of the offered jobs with less believed GPU time.", by rank |job| job.remaining_s * job.num_gpus;
    row RankArrival "rank_arrival" [""] 0.0..1.0 Linear(1.0), Varies(JOB), STILL, Queue,
        "Share of the offered jobs that came earlier.", by rank |job| job.arrival;
    row RankAttained "rank_attained" [""] 0.0..1.0 Linear(1.0), Varies(JOB), STILL, Queue,
        "Share of the offered jobs that received less.", by rank |job| job.attained_gpu_s;
    row RankNumGpus "rank_num_gpus" [""] 0.0..1.0 Linear(1.0), Varies(JOB), STILL, Queue,
        "Share of the offered jobs with smaller gangs.", by rank |job| job.num_gpus;
    row HeadArrival "is_oldest" [""] 0.0..1.0 Linear(1.0), Varies(JOB), STILL, Queue,
        "1 if the job is the first of the whole queue by arrival.",
        by flag |action| action.candidate.heads.contains(Lens::Arrival), whole;
    row HeadShortest "is_shortest" [""] 0.0..1.0 Linear(1.0), Varies(JOB), [Equal, Up], Queue,
        "1 if it is the first of the whole queue by believed rest.",
        by flag |action| action.candidate.heads.contains(Lens::Shortest), whole;
    row HeadGpuTime "is_smallest" [""] 0.0..1.0 Linear(1.0), Varies(JOB), [Equal, Up], Queue,
        "1 if it is the first of the whole queue by believed GPU time.",
        by flag |action| action.candidate.heads.contains(Lens::SmallestGpuTime), whole;
    row Deficit "tenant_deficit_rank" [""] 0.0..1.0 Linear(1.0), Varies(JOB), STILL, Queue,
        "Share of the offered jobs whose tenants hold less of their quota.", by rank |job| job.tenant_use_ratio;
    row IsBeside "is_beside" [""] 0.0..1.0 Linear(1.0), Varies(START_ONLY), STILL, Cluster,
        "1 if it puts the job beside a running one, on its GPUs.",
        by flag |action| action.candidate.partner.is_some(), whole;
    row PartnerRate "partner_rate_ratio" [""] 0.0..1.0 Linear(1.0), Varies(JOB), STILL, Cluster,
        "Rate of the running job beside which it is put, after over before; 1 without one.",
        by action |action| action.candidate.partner_rate_ratio as f32;
    row PartnerRemainingS "partner_remaining_s" ["s"] 0.0..1e8 Log(6.0), Varies(START_ONLY), STILL, Cluster,
        "Believed rest of that running job; 0 without one.", by time |time| time.partner_remaining_s();
    row BestTypeWaitS "best_type_wait_s" ["s"] 0.0..1e8 Log(6.0), Varies(JOB), STILL, Cluster,
        "Believed time until the gang fits on the GPU type where the job is fastest; 0 if this is on it.",
        by time |time| time.cost.map(|cost| cost.best_type_wait_s as f32);
    row EndGain "end_gain" [""] -1.0..1.0 Linear(1.0), Varies(JOB), [Equal, Any], Cluster,
        "How much sooner the job is believed to end if it waits for the best of the other GPU types, over duration_s; negative if later.",
        by cost |cost| cost.end_gain as f32;
    row TypeAdvantage "type_advantage" [""] 0.0..4.0 Linear(2.0), Varies(JOB), STILL, Cluster,
        "Speed of the job's class on this GPU type over its mean on all types, over the same of the average class; 1 with one type.",
        by cost |cost| cost.type_advantage as f32;
    row SizeRatio "size_ratio" [""] 0.0..16.0 Linear(4.0), Varies(JOB), STILL, User,
        "GPUs of this start over what the job asked for; 1 unless it is elastic.", by cost |cost| cost.size_ratio as f32;
    row GpuEfficiency "gpu_efficiency" [""] 0.0..1.0 Linear(1.0), Varies(JOB), STILL, Cluster,
        "Progress per GPU here over that at the job's most efficient size; 1 unless it is elastic.",
        by cost |cost| cost.gpu_efficiency as f32;
    row CoresRatio "cores_ratio" [""] 0.0..8.0 Linear(2.0), Varies(JOB), STILL, Operator,
        "CPU cores that come with it over the share of the node that is proportional to its GPUs; 1 where CPU is not modelled.",
        by cost |cost| cost.cores_ratio as f32;
    row DemandRate "demand_rate_ratio" [""] 0.0..1.0 Linear(1.0), Varies(JOB), STILL, Operator,
        "Rate with these cores and this memory over the rate with all that the class can use.",
        by cost |cost| cost.demand_rate_ratio as f32;

    context Free "free_fraction" [""] 0.0..1.0 Linear(1.0), Varies(EVERY), STILL, Fixed,
        "Free GPUs over all GPUs.", by context |facts| facts.share(facts.cluster.num_free());
    context LargestFree "largest_free_fraction" [""] 0.0..1.0 Linear(1.0), Varies(EVERY), STILL, Fixed,
        "Most free GPUs in one node over the largest node.", by context |facts| facts.largest_free_fraction();
    context EmptyNodes "empty_node_fraction" [""] 0.0..1.0 Linear(1.0), Varies(EVERY), STILL, Fixed,
        "Nodes without any job over all nodes.", by context |facts| facts.empty_node_fraction();
    context NumPending "num_pending" [""] 0.0..1e6 Log(4.0), Varies(EVERY), STILL, Fixed,
        "Jobs that wait.", by context |facts| facts.cluster.num_pending() as f32;
    context PendingGpus "pending_gpus_ratio" [""] 0.0..1e4 Log(2.0), Varies(EVERY), STILL, Fixed,
        "GPUs that waiting jobs ask for over all GPUs.",
        by context |facts| facts.cluster.num_pending_gpus() as f32 / facts.cluster.num_gpus() as f32;
    context NumRunning "num_running" [""] 0.0..1e6 Log(3.0), Varies(EVERY), STILL, Fixed,
        "Jobs that run.", by context |facts| facts.cluster.num_running() as f32;
    context NextFinishS "next_finish_s" ["s"] 0.0..1e8 Log(6.0), Varies(EVERY), STILL, Fixed,
        "Believed time until the next running job ends.", by context |facts| facts.next_finish_s();
    context IsReserved "is_reserved" [""] 0.0..1.0 Linear(1.0), Varies(EVERY), STILL, Fixed,
        "1 if GPUs are held back for a job in this pass.", by context |facts| f32::from(facts.reservation.is_some()), whole;
    context ReservationS "reservation_s" ["s"] 0.0..1e8 Log(6.0), Varies(EVERY), STILL, Fixed,
        "Believed time until the reserved job starts.",
        by context |facts| facts.reservation.map_or(0.0, |held| facts.seconds_to(held.shadow));
    context ReservationExtra "reservation_extra_fraction" [""] 0.0..1.0 Linear(1.0), Varies(EVERY), STILL, Fixed,
        "GPUs that others may take beside the reservation, over all GPUs.",
        by context |facts| facts.reservation.map_or(0.0, |held| facts.share(held.extra));
    context SmallestGpuTime "smallest_gpu_time_gpu_s" ["GPU s"] 0.0..1e10 Log(8.0), Varies(EVERY), [Equal, Down], Fixed,
        "Least believed GPU time of a waiting job.", by context |facts| facts.cluster.smallest_pending_gpu_s() as f32;
    context OldestWaitS "oldest_wait_s" ["s"] 0.0..1e8 Log(6.0), Varies(EVERY), [Up, Equal], Fixed,
        "Waiting time of the oldest waiting job.", by context |facts| facts.oldest_wait_s();
    context FreeFastest "free_fastest_fraction" [""] 0.0..1.0 Linear(1.0), Varies(EVERY), STILL, Fixed,
        "Free GPUs of the type on which the average class is fastest, over all of that type.",
        by context |facts| facts.free_fastest_fraction();
    context BelievedDrainS "believed_drain_s" ["s"] 0.0..1e8 Log(6.0), Varies(EVERY), [Equal, Down], Fixed,
        "Believed GPU time of all waiting jobs over the number of GPUs.",
        by context |facts| (facts.cluster.pending_gpu_s() / f64::from(facts.cluster.num_gpus())) as f32;

    // The first view ends here: files and environments of all versions read the 56 columns above.

    row IsResize "is_resize" [""] 0.0..1.0 Linear(1.0), Flag(RESIZE), STILL, Fixed,
        "1 if it gives a running elastic job other GPUs in number.", by kind, whole;
    row ResizeRatio "resize_ratio" [""] 0.0..2.0 Linear(2.0), Varies(RESIZE_ONLY), STILL, Cluster,
        "GPUs after it over those that the running job holds; 0 for others.", by action |action| match action.candidate.facts {
            Some(facts) if action.candidate.kind == CandidateKind::Resize => {
                facts.num_gpus as f32 / action.candidate.stopped.num_gpus as f32
            }
            _ => 0.0,
        };

    // In builds with debug assertions, and so in all tests, two more columns, which no policy reads: every golden, every file and
    // the spaces of Python have to stay as they are without them. New columns of one's own come before them.

    #[cfg(debug_assertions)]
    row TestRow "test_row" [""] 0.0..1e4 Log(2.0), Varies(JOB), STILL, User,
        "A column that tests add, to see that nobody notices.", by job |job| 1.0 + job.num_gpus;
    #[cfg(debug_assertions)]
    context TestContext "test_context" [""] 0.0..1e4 Log(2.0), Varies(EVERY), STILL, Fixed,
        "Another one.", by context |facts| 1.0 + facts.cluster.num_gpus() as f32;
}

/// Number of columns of a writer.
const fn count_of(writer: &str) -> usize {
    let (mut at, mut num) = (0, 0);
    while at < WRITERS.len() {
        num += is_same(WRITERS[at], writer) as usize;
        at += 1;
    }
    num
}

/// The columns of a writer, in their order.
const fn columns_of<const N: usize>(writer: &str) -> [Id; N] {
    let (mut found, mut at, mut num) = ([Id::IsHold; N], 0, 0);
    while at < WRITERS.len() {
        if is_same(WRITERS[at], writer) {
            found[num] = ALL[at];
            num += 1;
        }
        at += 1;
    }
    found
}

/// Which of the columns of its writer a column is.
const fn slot(id: Id) -> usize {
    let (mut at, mut num) = (0, 0);
    while at < id as usize {
        num += is_same(WRITERS[at], WRITERS[id as usize]) as usize;
        at += 1;
    }
    num
}

/// Place of each column in its row or context.
pub(crate) const PLACES: [usize; FEATURES.len()] = {
    let (mut places, mut at) = ([0; FEATURES.len()], 0);
    while at < FEATURES.len() {
        places[at] = place_of(FEATURES, at);
        at += 1;
    }
    places
};

/// Place of a column in its row or context.
pub(crate) const fn place(id: Id) -> usize {
    PLACES[id as usize]
}

/// Clamps, scales and writes a number; nothing where the row is of a view without that column, which is known where this is
/// compiled.
#[inline(always)]
fn put<const W: usize>(row: &mut [f32; W], id: Id, raw: f32) {
    write(row, id, FEATURES[id as usize].encode(raw));
}

/// The same for a number that is scaled already.
#[inline(always)]
pub(crate) fn write<const W: usize>(row: &mut [f32; W], id: Id, scaled: f32) {
    let place = PLACES[id as usize];
    if place < W {
        row[place] = scaled;
    }
}

/// The flag of each kind, by [`CandidateKind`].
pub(crate) const FLAGS: [Id; CANDIDATES.len()] = [
    Id::IsHold,
    Id::IsStart,
    Id::IsReserve,
    Id::IsPreempt,
    Id::IsResize,
];

const KINDS: [RowKind; CANDIDATES.len()] = {
    let (mut kinds, mut at) = ([RowKind::NONE; CANDIDATES.len()], 0);
    while at < CANDIDATES.len() {
        let row = &CANDIDATES[at];
        kinds[at] = RowKind {
            name: row.name,
            does: row.does,
            action: row.action,
            is_about_a_job: !matches!(row.about, About::Nobody),
            waits: matches!(row.about, About::Waiting),
        };
        at += 1;
    }
    kinds
};

const LAWS: [Law; 4] = [
    Law::Product {
        out: Id::GpuTime as usize,
        factors: [Id::RemainingS as usize, Id::NumGpus as usize],
    },
    Law::OnePlusRatio {
        out: Id::WaitRatio as usize,
        over: Id::WaitS as usize,
        under: Id::RemainingS as usize,
    },
    // No job has waited longer than the oldest that waits.
    Law::AtMost {
        least: Id::WaitS as usize,
        most: Id::OldestWaitS as usize,
        among: Kinds::of(&[START, RESERVE]),
    },
    // The duration has no more than the rest to follow.
    Law::Follows {
        out: Id::DurationS as usize,
        from: Id::RemainingS as usize,
    },
];

/// What all files and environments before views read.
pub const DECISION_1: View = View::of("decision-1", FEATURES, 56);
/// With what tells resizes from other actions.
pub(crate) const DECISION_2: View = View::of("decision-2", FEATURES, 58);

/// A view of all columns, those of tests too, for tests of what a newer view changes.
#[cfg(debug_assertions)]
const ALL_COLUMNS: View = View::of("test-all", FEATURES, FEATURES.len());

/// Frozen beginnings, the oldest first.
const VIEWS: &[View] = &[
    DECISION_1,
    DECISION_2,
    #[cfg(debug_assertions)]
    ALL_COLUMNS,
];

/// Numbers of a candidate with all its columns.
pub const ROW_WIDTH: usize = widths(FEATURES, FEATURES.len()).0;
/// Numbers of the cluster and its queue with all their columns.
pub const CONTEXT_WIDTH: usize = widths(FEATURES, FEATURES.len()).1;

/// The columns by which candidates of a pass are scored.
static DECISION: FeatureSchema = FeatureSchema::new("decision", &KINDS, FEATURES, &LAWS, VIEWS);

impl FeatureSchema {
    /// The schema of the decisions of a pass.
    #[must_use]
    #[inline]
    pub fn current() -> &'static FeatureSchema {
        &DECISION
    }
}
