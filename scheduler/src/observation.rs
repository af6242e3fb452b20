//! The observation: the facts of a decision point as numbers, row by row in the order of the candidates.
//!
//! One writer serves everyone who looks: the environment writes into its caller's buffers, [`Observation`] into its own.

use crate::candidate::{Candidate, CandidateKind, CandidateSet, MAX_CANDIDATES};
use crate::cluster::Cluster;
use crate::features::column::{self, Candidate as C, Global as G};
use crate::features::{Feature, FeatureSchema};
use crate::ids::{JobId, Time};
use crate::lens::{Lens, first_jobs};
use crate::pass::{Reservation, least_remaining_s};

/// F, the number of features of a candidate.
pub const NUM_CANDIDATE_FEATURES: usize = column::CANDIDATE.len();
/// G, the number of global features.
pub const NUM_GLOBAL_FEATURES: usize = column::GLOBAL.len();

/// A filled observation. All values are finite and scaled as the schema says.
#[derive(Clone, Copy, Debug)]
pub struct ObservationRef<'a> {
    /// `[G]`
    pub global: &'a [f32],
    /// `[n, F]`, row-major; row 0 is hold.
    pub candidates: &'a [f32],
    /// `[n]`, true where the candidate is admissible.
    pub mask: &'a [bool],
}

impl ObservationRef<'_> {
    /// Features of one candidate. `[F]`
    #[must_use]
    pub fn row(&self, index: usize) -> &[f32] {
        &self.candidates[index * NUM_CANDIDATE_FEATURES..(index + 1) * NUM_CANDIDATE_FEATURES]
    }

    /// Whether the features were filled: a policy that reads them must have asked for them.
    #[must_use]
    pub fn is_filled(&self) -> bool {
        !self.candidates.is_empty()
    }
}

/// Buffers of one observation.
#[derive(Clone, Debug)]
pub struct Observation {
    global: Vec<f32>,
    candidates: Vec<f32>,
    mask: Vec<bool>,
    len: usize,
    filled: bool,
    scratch: WriterScratch,
}

impl Default for Observation {
    fn default() -> Observation {
        Observation::new(FeatureSchema::current())
    }
}

impl Observation {
    /// Empty buffers for the most candidates that there can be.
    #[must_use]
    pub fn new(schema: &FeatureSchema) -> Observation {
        Observation {
            global: vec![0.0; schema.num_global()],
            candidates: vec![0.0; MAX_CANDIDATES * schema.num_candidate()],
            mask: vec![true; MAX_CANDIDATES],
            len: 0,
            filled: false,
            scratch: WriterScratch::default(),
        }
    }

    /// Writes the facts of a decision point.
    pub fn fill(&mut self, cluster: &Cluster, set: &CandidateSet, reservation: Option<&Reservation>) {
        self.clear(set);
        self.filled = true;
        self.scratch
            .write(cluster, set, reservation, &mut self.global, &mut self.candidates);
    }

    /// Notes the number of candidates without features, for policies that read only typed facts.
    pub fn clear(&mut self, set: &CandidateSet) {
        self.len = set.len();
        self.filled = false;
        self.mask[0] = set.is_admissible(0);
    }

    /// The present content.
    #[must_use]
    pub fn as_ref(&self) -> ObservationRef<'_> {
        let rows = if self.filled { self.len } else { 0 };
        ObservationRef {
            global: &self.global,
            candidates: &self.candidates[..rows * NUM_CANDIDATE_FEATURES],
            mask: self.mask(),
        }
    }

    /// `[n]`, true where the candidate is admissible; see [`CandidateSet::is_admissible`].
    #[must_use]
    pub fn mask(&self) -> &[bool] {
        &self.mask[..self.len]
    }
}

/// Facts of one offered job, gathered once for all its candidates.
#[derive(Clone, Copy, Debug)]
struct JobFacts {
    job: JobId,
    remaining_s: f32,
    gpu_time_gpu_s: f32,
    attained_gpu_s: f32,
    num_gpus: f32,
    wait_s: f32,
    tenant_use: f32,
    best_speed: f64,
    ranks: [f32; 6],
}

/// Working memory of the writer; allocates nothing once warm.
#[derive(Clone, Debug, Default)]
pub struct WriterScratch {
    jobs: Vec<JobFacts>,
    oldest: Vec<(i64, JobId)>,
}

impl WriterScratch {
    /// Writes one observation: `global` is `[G]`, the first n rows of `candidates` are written, the rest is left alone.
    pub fn write(
        &mut self,
        cluster: &Cluster,
        set: &CandidateSet,
        reservation: Option<&Reservation>,
        global: &mut [f32],
        candidates: &mut [f32],
    ) {
        first_jobs(cluster, Lens::Arrival, 2, |_| true, |_| true, &mut self.oldest);
        self.gather(cluster, set);
        write_global(
            cluster,
            reservation,
            self.oldest.first().map(|(_, job)| *job),
            global,
        );
        let free = cluster.num_free();
        // Candidates of one job stand together and share what is said of the job.
        let mut shared = [0.0; NUM_CANDIDATE_FEATURES];
        let mut facts_of = self.jobs.iter();
        let mut facts: Option<&JobFacts> = None;
        for (candidate, row) in set
            .iter()
            .zip(candidates.chunks_exact_mut(NUM_CANDIDATE_FEATURES))
        {
            let Some(job) = candidate.job else {
                row.fill(0.0);
                put(row, column::CANDIDATE, C::IsHold as usize, 1.0);
                put(row, column::CANDIDATE, C::Leftover as usize, ratio(free, cluster));
                put(
                    row,
                    column::CANDIDATE,
                    C::OldestSlack as usize,
                    self.oldest_slack(cluster, None, free),
                );
                continue;
            };
            if facts.is_none_or(|facts| facts.job != job) {
                facts = facts_of.next();
                if let Some(facts) = facts {
                    write_job(cluster, facts, &mut shared);
                }
            }
            if let Some(facts) = facts {
                debug_assert_eq!(
                    facts.job, job,
                    "facts are gathered in the order of the candidates"
                );
                row.copy_from_slice(&shared);
                write_action(cluster, set, candidate, facts, row);
                let left = free_after(cluster, set, candidate, free);
                put(row, column::CANDIDATE, C::Leftover as usize, ratio(left, cluster));
                let slack = self.oldest_slack(cluster, Some(job), left);
                put(row, column::CANDIDATE, C::OldestSlack as usize, slack);
            }
        }
    }

    /// Free GPUs less the gang of the oldest pending job other than `taken`, over all GPUs.
    fn oldest_slack(&self, cluster: &Cluster, taken: Option<JobId>, free: u32) -> f32 {
        let other = self
            .oldest
            .iter()
            .map(|(_, job)| *job)
            .find(|job| Some(*job) != taken);
        let gang = other.map_or(0, |job| cluster.job(job).request.num_gpus);
        (free as f32 - gang as f32) / cluster.num_gpus() as f32
    }

    fn gather(&mut self, cluster: &Cluster, set: &CandidateSet) {
        self.jobs.clear();
        let now = cluster.now();
        for candidate in set.iter() {
            let Some(job) = candidate.job else { continue };
            if self.jobs.last().is_some_and(|last| last.job == job) {
                continue;
            }
            let row = cluster.job(job);
            let remaining_s = row.remaining_s_at(now) as f32;
            let num_gpus = row.request.num_gpus as f32;
            let speed = &cluster.class(row.request.class).speed;
            self.jobs.push(JobFacts {
                job,
                remaining_s,
                gpu_time_gpu_s: remaining_s * num_gpus,
                attained_gpu_s: row.attained_gpu_s_at(now) as f32,
                num_gpus,
                wait_s: (now - row.submit).as_secs_f64() as f32,
                tenant_use: cluster.tenant(row.request.tenant).use_ratio() as f32,
                best_speed: speed.iter().copied().fold(0.0, f64::max),
                ranks: [0.0; 6],
            });
        }
        let keys: [fn(&JobFacts) -> f32; 6] = [
            |facts| facts.remaining_s,
            |facts| facts.gpu_time_gpu_s,
            |facts| facts.job.0 as f32,
            |facts| facts.attained_gpu_s,
            |facts| facts.num_gpus,
            |facts| facts.tenant_use,
        ];
        let others = self.jobs.len().saturating_sub(1).max(1) as f32;
        for (number, key) in keys.into_iter().enumerate() {
            let mut values = [0.0_f32; MAX_CANDIDATES];
            for (value, facts) in values.iter_mut().zip(&self.jobs) {
                *value = key(facts);
            }
            let values = &values[..self.jobs.len().min(MAX_CANDIDATES)];
            for (facts, value) in self.jobs.iter_mut().zip(values) {
                let smaller: u32 = values.iter().map(|other| u32::from(other < value)).sum();
                facts.ranks[number] = smaller as f32 / others;
            }
        }
    }
}

fn put(row: &mut [f32], features: &[Feature], at: usize, raw: f32) {
    row[at] = features[at].encode(raw);
}

fn ratio(num_gpus: u32, cluster: &Cluster) -> f32 {
    num_gpus as f32 / cluster.num_gpus() as f32
}

fn free_after(cluster: &Cluster, set: &CandidateSet, candidate: &Candidate, free: u32) -> u32 {
    let given: u32 = set
        .victims(candidate)
        .iter()
        .map(|job| cluster.job(*job).request.num_gpus)
        .sum();
    (free + given).saturating_sub(candidate.facts.map_or(0, |facts| facts.num_gpus))
}

fn write_job(cluster: &Cluster, facts: &JobFacts, row: &mut [f32]) {
    let mut put = |column: C, raw: f32| put(row, column::CANDIDATE, column as usize, raw);
    put(C::NumGpus, facts.num_gpus);
    put(C::GpuFraction, facts.num_gpus / cluster.num_gpus() as f32);
    put(C::RemainingS, facts.remaining_s);
    put(C::GpuTime, facts.gpu_time_gpu_s);
    put(C::WaitS, facts.wait_s);
    put(
        C::WaitRatio,
        (facts.wait_s + facts.remaining_s) / facts.remaining_s,
    );
    put(C::Attained, facts.attained_gpu_s);
    put(C::NumPreemptions, cluster.job(facts.job).num_preemptions as f32);
    put(C::TenantUse, facts.tenant_use);
    put(C::RankRemaining, facts.ranks[0]);
    put(C::RankGpuTime, facts.ranks[1]);
    put(C::RankArrival, facts.ranks[2]);
    put(C::RankAttained, facts.ranks[3]);
    put(C::RankNumGpus, facts.ranks[4]);
    put(C::Deficit, facts.ranks[5]);
}

fn write_action(
    cluster: &Cluster,
    set: &CandidateSet,
    candidate: &Candidate,
    job: &JobFacts,
    row: &mut [f32],
) {
    let mut put = |column: C, raw: f32| put(row, column::CANDIDATE, column as usize, raw);
    match candidate.kind {
        CandidateKind::Hold => put(C::IsHold, 1.0),
        CandidateKind::Start => put(C::IsStart, 1.0),
        CandidateKind::Reserve => put(C::IsReserve, 1.0),
        CandidateKind::Preempt => put(C::IsPreempt, 1.0),
    }
    let cost_s = cluster.resume_cost_s(job.job) as f32;
    let rate = candidate.facts.map_or(job.best_speed, |facts| facts.rate);
    put(C::DurationS, cost_s + job.remaining_s / rate as f32);
    if let Some(facts) = candidate.facts {
        put(C::Speed, (facts.rate / job.best_speed) as f32);
        put(C::Locality, facts.locality as f32);
        put(C::NodesRatio, facts.num_nodes as f32 / facts.num_nodes_min as f32);
        put(C::NumLeft, facts.num_left as f32);
    }
    put(C::WaitToFitS, candidate.wait_to_fit_s as f32);
    let victims = set.victims(candidate);
    if !victims.is_empty() {
        put(C::NumVictims, victims.len() as f32);
        put(
            C::VictimsRemainingS,
            least_remaining_s(cluster, victims, cluster.now()) as f32,
        );
    }
    put(C::HeadArrival, f32::from(candidate.heads.contains(Lens::Arrival)));
    put(
        C::HeadShortest,
        f32::from(candidate.heads.contains(Lens::Shortest)),
    );
    put(
        C::HeadGpuTime,
        f32::from(candidate.heads.contains(Lens::SmallestGpuTime)),
    );
}

fn write_global(
    cluster: &Cluster,
    reservation: Option<&Reservation>,
    oldest: Option<JobId>,
    row: &mut [f32],
) {
    row.fill(0.0);
    let mut put = |column: G, raw: f32| put(row, column::GLOBAL, column as usize, raw);
    let now = cluster.now();
    let seconds_to = |time: Time| (time - now).as_secs_f64().max(0.0) as f32;
    let kinds = || cluster.types_in(u64::MAX >> (64 - cluster.num_types()));
    put(G::Free, ratio(cluster.num_free(), cluster));
    let node_max = kinds()
        .map(|kind| cluster.node_gpus_max_of(kind))
        .max()
        .unwrap_or(1);
    let largest = kinds()
        .map(|kind| cluster.largest_free_of(kind))
        .max()
        .unwrap_or(0);
    put(G::LargestFree, largest as f32 / node_max as f32);
    let empty: u32 = kinds().map(|kind| cluster.num_empty_nodes_of(kind)).sum();
    put(G::EmptyNodes, empty as f32 / cluster.nodes().len() as f32);
    put(G::NumPending, cluster.num_pending() as f32);
    put(
        G::PendingGpus,
        cluster.num_pending_gpus() as f32 / cluster.num_gpus() as f32,
    );
    put(G::NumRunning, cluster.num_running() as f32);
    let next = kinds()
        .filter_map(|kind| cluster.running_of(kind).first())
        .map(|(end, _)| *end)
        .min();
    put(G::NextFinishS, next.map_or(0.0, seconds_to));
    if let Some(reservation) = reservation {
        put(G::IsReserved, 1.0);
        put(G::ReservationS, seconds_to(reservation.shadow));
        put(G::ReservationExtra, ratio(reservation.extra, cluster));
    }
    put(G::SmallestGpuTime, cluster.smallest_pending_gpu_s() as f32);
    put(
        G::OldestWaitS,
        oldest.map_or(0.0, |job| (now - cluster.job(job).submit).as_secs_f64() as f32),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::{cluster_of, submit};
    use crate::pass::Pass;
    use crate::policy::Needs;
    use crate::spec::ClusterSpec;

    fn value(row: &[f32], column: C) -> f32 {
        row[column as usize]
    }

    #[test]
    fn the_numbers_of_a_small_decision_point_are_those_worked_by_hand() {
        // Two nodes of 4 GPUs. A 3-GPU job has run for 50 of 100 s; 2 GPUs x 200 s and 8 GPUs x 1000 s wait since 0 s.
        let mut cluster = cluster_of(&ClusterSpec::uniform(2, 4, 2));
        let needs = Needs::full();
        let mut pass = Pass::new();
        submit(&mut cluster, 3, 100.0);
        pass.open(&cluster, &needs);
        pass.act(&mut cluster, &needs, 1);
        let small = submit(&mut cluster, 2, 200.0);
        let large = submit(&mut cluster, 8, 1000.0);
        cluster.advance(Time::from_secs_f64(50.0));
        pass.open(&cluster, &needs);
        pass.observe(&cluster);
        let observation = pass.observation().as_ref();
        let rows = pass.candidates();
        let start = rows.iter().position(|row| row.job == Some(small)).unwrap();
        let row = observation.row(start);
        assert_eq!(value(row, C::IsStart), 1.0);
        assert_eq!(value(row, C::GpuFraction), 0.25);
        assert!((value(row, C::RemainingS) - 201_f32.log10() / 6.0).abs() < 1e-6);
        assert!((value(row, C::WaitS) - 51_f32.log10() / 6.0).abs() < 1e-6);
        assert_eq!(
            value(row, C::NumLeft) * 8.0,
            2.0,
            "the empty node keeps 2 of its 4"
        );
        assert_eq!(value(row, C::Leftover), 3.0 / 8.0);
        assert_eq!(value(row, C::OldestSlack), (3.0 - 8.0) / 8.0);
        assert_eq!(
            (value(row, C::RankRemaining), value(row, C::RankArrival)),
            (0.0, 0.0)
        );
        assert_eq!(value(row, C::HeadArrival), 1.0);
        let reserve = rows
            .iter()
            .position(|row| row.kind == CandidateKind::Reserve)
            .unwrap();
        assert_eq!(rows.get(reserve).unwrap().job, Some(large));
        let row = observation.row(reserve);
        assert!((value(row, C::WaitToFitS) - 51_f32.log10() / 6.0).abs() < 1e-6);
        assert_eq!(value(row, C::RankRemaining), 1.0);
        let global = observation.global;
        assert_eq!(global[G::Free as usize], 5.0 / 8.0);
        assert_eq!(global[G::LargestFree as usize], 1.0);
        assert_eq!(global[G::EmptyNodes as usize], 0.5);
        assert!((global[G::SmallestGpuTime as usize] - 401_f32.log10() / 8.0).abs() < 1e-6);
    }
}
