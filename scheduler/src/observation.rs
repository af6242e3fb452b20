//! The observation: the facts of a decision point as numbers, row by row in the order of the candidates.
//!
//! One writer serves everyone who looks: the environment writes into its caller's buffers, [`Observation`] into its own.

use crate::candidate::{Candidate, CandidateKind, CandidateSet, MAX_CANDIDATES, OpportunityCost};
use crate::cluster::Cluster;
use crate::features::FeatureSchema;
use crate::features::column::{self, Candidate as C, Global as G};
use crate::ids::{JobId, Time};
use crate::lens::{Lens, oldest_two};
use crate::pass::reservation::Reservation;

mod jobs;
mod spaces;

use jobs::{Column, JobTable};

pub use spaces::{NUM_CANDIDATE_FEATURES, NUM_GLOBAL_FEATURES, Spaces};

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

/// Working memory of the writer; allocates nothing.
#[derive(Clone, Debug)]
pub struct WriterScratch {
    jobs: JobTable,
    /// Where the numbers of each candidate are.
    places: [Place; MAX_CANDIDATES],
    /// Times of the candidates, s: of each one its duration, and behind that the other one if it has any.
    times_s: [f32; 2 * MAX_CANDIDATES],
    /// The same, scaled.
    times: [f32; 2 * MAX_CANDIDATES],
    best_type_wait_s: Column,
    best_type_waits: Column,
    /// Scaled numbers of victims, by number.
    num_victims: Column,
}

/// Where the numbers of a candidate are.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// Row in the table of jobs.
    job: u8,
    /// Its first time.
    time: u8,
}

impl Default for WriterScratch {
    fn default() -> WriterScratch {
        let num_victims = |number: usize| column::CANDIDATE[C::NumVictims as usize].encode(number as f32);
        WriterScratch {
            jobs: JobTable::default(),
            places: [Place::default(); MAX_CANDIDATES],
            times_s: [0.0; 2 * MAX_CANDIDATES],
            times: [0.0; 2 * MAX_CANDIDATES],
            best_type_wait_s: [0.0; MAX_CANDIDATES],
            best_type_waits: [0.0; MAX_CANDIDATES],
            num_victims: std::array::from_fn(num_victims),
        }
    }
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
        let oldest = oldest_two(cluster);
        write_global(cluster, reservation, oldest[0], global);
        self.gather(cluster, set);
        let (free, slack) = (cluster.num_free(), Slack::of(cluster, oldest));
        let num_gpus = cluster.num_gpus() as f32;
        // Candidates of one job stand together and share what is said of the job.
        let mut shared = [0.0; NUM_CANDIDATE_FEATURES];
        write_opportunity_cost(&OpportunityCost::PLAIN, &mut shared);
        put(&mut shared, C::PartnerRate, 1.0);
        let mut known = None;
        let num = set.rows.len().min(MAX_CANDIDATES);
        let (rows, _) = candidates.as_chunks_mut::<NUM_CANDIDATE_FEATURES>();
        let rows = set.rows[..num].iter().zip(&self.places).zip(rows);
        for (index, ((candidate, place), row)) in rows.enumerate() {
            let Some(job) = candidate.job else {
                row.fill(0.0);
                put(row, C::IsHold, 1.0);
                put(row, C::Leftover, free as f32 / num_gpus);
                put(row, C::OldestSlack, slack.after(None, free));
                continue;
            };
            if known != Some(place.job) {
                known = Some(place.job);
                self.jobs.write(usize::from(place.job), num_gpus, &mut shared);
            }
            *row = shared;
            self.write_action(candidate, *place, row);
            if let Some(cost) = set.opportunity_costs.get(index) {
                write_opportunity_cost(cost, row);
                row[C::BestTypeWaitS as usize] = self.best_type_waits[index];
            }
            let taken = candidate.facts.map_or(0, |facts| facts.num_gpus);
            let left = (free + candidate.stopped.num_gpus).saturating_sub(taken);
            put(row, C::Leftover, left as f32 / num_gpus);
            put(row, C::OldestSlack, slack.after(Some(job), left));
        }
    }

    /// Reads the facts of the offered jobs, each once, and scales the times of all candidates.
    fn gather(&mut self, cluster: &Cluster, set: &CandidateSet) {
        self.jobs.clear();
        let (mut at, mut last, mut num_times) = (0, None, 0);
        for (candidate, place) in set.rows.iter().zip(&mut self.places) {
            let Some(job) = candidate.job else { continue };
            if last != Some(job) {
                last = Some(job);
                at = self.jobs.read(cluster, job);
            }
            *place = Place {
                job: at as u8,
                time: num_times as u8,
            };
            let rate = candidate
                .facts
                .as_ref()
                .map_or(self.jobs.best_speed(at), |facts| facts.rate);
            let duration_s = self.jobs.resume_cost_s(at) + self.jobs.remaining_s(at) / rate as f32;
            let other_s = match (candidate.kind, candidate.partner) {
                (CandidateKind::Reserve, _) => Some(candidate.wait_to_fit_s),
                (CandidateKind::Preempt, _) => Some(candidate.stopped.remaining_s_min),
                (_, Some(partner)) => Some(cluster.job(partner).remaining_s_at(cluster.now())),
                (_, None) => None,
            };
            self.times_s[num_times] = duration_s;
            num_times += 1;
            if let Some(other_s) = other_s {
                self.times_s[num_times] = other_s as f32;
                num_times += 1;
            }
        }
        self.jobs.encode();
        let feature = &column::CANDIDATE[C::DurationS as usize];
        jobs::encode(feature, &self.times_s, &mut self.times, num_times);
        if !set.opportunity_costs.is_empty() {
            for (wait_s, cost) in self.best_type_wait_s.iter_mut().zip(&set.opportunity_costs) {
                *wait_s = cost.best_type_wait_s as f32;
            }
            let feature = &column::CANDIDATE[C::BestTypeWaitS as usize];
            let (raw, scaled) = (&self.best_type_wait_s, &mut self.best_type_waits);
            jobs::encode(feature, raw, scaled, set.len());
        }
    }

    #[inline]
    fn write_action(&self, candidate: &Candidate, place: Place, row: &mut [f32; NUM_CANDIDATE_FEATURES]) {
        let at = usize::from(place.time);
        row[C::DurationS as usize] = self.times[at];
        match candidate.kind {
            CandidateKind::Hold => row[C::IsHold as usize] = 1.0,
            CandidateKind::Start => row[C::IsStart as usize] = 1.0,
            CandidateKind::Reserve => {
                row[C::IsReserve as usize] = 1.0;
                row[C::WaitToFitS as usize] = self.times[at + 1];
            }
            CandidateKind::Preempt => {
                row[C::IsPreempt as usize] = 1.0;
                row[C::VictimsRemainingS as usize] = self.times[at + 1];
                let number = candidate.victims.len();
                match self.num_victims.get(number) {
                    Some(scaled) => row[C::NumVictims as usize] = *scaled,
                    None => put(row, C::NumVictims, number as f32),
                }
            }
        }
        if let Some(facts) = &candidate.facts {
            let best = self.jobs.best_speed(usize::from(place.job));
            put(row, C::Speed, (facts.rate / best) as f32);
            put(row, C::Locality, facts.locality as f32);
            put(
                row,
                C::NodesRatio,
                facts.num_nodes as f32 / facts.num_nodes_min as f32,
            );
            put(row, C::NumLeft, facts.num_left as f32);
        }
        if candidate.partner.is_some() {
            row[C::IsBeside as usize] = 1.0;
            put(row, C::PartnerRate, candidate.partner_rate_ratio as f32);
            row[C::PartnerRemainingS as usize] = self.times[at + 1];
        }
        for (lens, column) in [
            (Lens::Arrival, C::HeadArrival),
            (Lens::Shortest, C::HeadShortest),
            (Lens::SmallestGpuTime, C::HeadGpuTime),
        ] {
            row[column as usize] = f32::from(candidate.heads.contains(lens));
        }
    }
}

/// Free GPUs less the gang of the oldest pending job other than one, over all GPUs.
struct Slack {
    oldest: Option<JobId>,
    /// Gangs of the oldest and of the second oldest pending job; 0 without one.
    gangs: [f32; 2],
    num_gpus: f32,
}

impl Slack {
    fn of(cluster: &Cluster, oldest: [Option<JobId>; 2]) -> Slack {
        let gang = |job: Option<JobId>| job.map_or(0, |job| cluster.job(job).request.num_gpus) as f32;
        Slack {
            oldest: oldest[0],
            gangs: oldest.map(gang),
            num_gpus: cluster.num_gpus() as f32,
        }
    }

    /// With so many GPUs free after a candidate that is about `taken`.
    fn after(&self, taken: Option<JobId>, free: u32) -> f32 {
        let is_oldest = taken.is_some() && taken == self.oldest;
        (free as f32 - self.gangs[usize::from(is_oldest)]) / self.num_gpus
    }
}

/// Clamps, scales and writes a value; with the column known where this is compiled, a few instructions.
#[inline(always)]
fn put(row: &mut [f32; NUM_CANDIDATE_FEATURES], feature: C, raw: f32) {
    row[feature as usize] = column::CANDIDATE[feature as usize].encode(raw);
}

/// Writes what a candidate is worth beside what else its job could have, but for the logarithmic column.
#[inline]
fn write_opportunity_cost(cost: &OpportunityCost, row: &mut [f32; NUM_CANDIDATE_FEATURES]) {
    put(row, C::EndGain, cost.end_gain as f32);
    put(row, C::TypeAdvantage, cost.type_advantage as f32);
    put(row, C::SizeRatio, cost.size_ratio as f32);
    put(row, C::GpuEfficiency, cost.gpu_efficiency as f32);
    put(row, C::CoresRatio, cost.cores_ratio as f32);
    put(row, C::DemandRate, cost.demand_rate_ratio as f32);
}

fn ratio(num_gpus: u32, cluster: &Cluster) -> f32 {
    num_gpus as f32 / cluster.num_gpus() as f32
}

fn write_global(
    cluster: &Cluster,
    reservation: Option<&Reservation>,
    oldest: Option<JobId>,
    row: &mut [f32],
) {
    row.fill(0.0);
    let mut put = |feature: G, raw: f32| row[feature as usize] = column::GLOBAL[feature as usize].encode(raw);
    let now = cluster.now();
    let seconds_to = |time: Time| time.since(now).as_secs_f64().max(0.0) as f32;
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
    let fastest = cluster.fastest_type();
    put(
        G::FreeFastest,
        cluster.num_free_of(fastest) as f32 / cluster.num_gpus_of(fastest).max(1) as f32,
    );
    put(
        G::BelievedDrainS,
        (cluster.pending_gpu_s() / f64::from(cluster.num_gpus())) as f32,
    );
}

#[cfg(test)]
mod opportunity_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::{cluster_of, submit};
    use crate::cluster_spec::ClusterSpec;
    use crate::pass::Pass;
    use crate::policy::Needs;

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
