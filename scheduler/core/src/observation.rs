//! The observation: the facts of a decision point as numbers, row by row in the order of the candidates.
//!
//! One writer serves everyone who looks: the environment writes the columns of its view into its caller's buffers, [`Observation`]
//! all columns into its own. What is written where is said in the table of columns, `features/decision.rs`; here is the order in which
//! facts are gathered.

use crate::candidate::{Candidate, CandidateSet, MAX_CANDIDATES, OpportunityCost};
use crate::cluster::Cluster;
use crate::features::decision::{self, DECISION_2, FEATURES, Id};
use crate::features::{All, CONTEXT_WIDTH, ColumnSet, DECISION_1, FeatureSchema, ROW_WIDTH, Wanted};
use crate::ids::JobId;
use crate::lens::oldest_two;
use crate::pass::reservation::Reservation;
use crate::rows::Rows;

pub(crate) mod facts;
mod jobs;
mod spaces;

use facts::{ActionFacts, ContextFacts, RowFacts, TimeFacts};
use jobs::JobTable;

pub use spaces::Spaces;

/// A filled observation. All values are finite and scaled as the schema says.
#[derive(Clone, Copy, Debug)]
pub struct ObservationRef<'a> {
    /// `[G]`
    pub global: &'a [f32],
    /// `[n, F]`, row-major; row 0 is hold.
    pub candidates: &'a [f32],
    /// F: numbers of a candidate.
    pub width: usize,
    /// `[n]`, true where the candidate is admissible.
    pub mask: &'a [bool],
}

impl<'a> ObservationRef<'a> {
    /// Features of one candidate. `[F]`
    #[must_use]
    pub fn row(&self, index: usize) -> &'a [f32] {
        self.as_rows().row(index)
    }

    /// The numbers alone, as a [`Scorer`](crate::Scorer) reads them.
    #[must_use]
    #[inline]
    pub fn as_rows(&self) -> Rows<'a> {
        Rows {
            schema: FeatureSchema::current(),
            rows: self.candidates,
            width: self.width,
            context: self.global,
            mask: self.mask,
        }
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
        Observation {
            global: vec![0.0; CONTEXT_WIDTH],
            candidates: vec![0.0; MAX_CANDIDATES * ROW_WIDTH],
            mask: vec![true; MAX_CANDIDATES],
            len: 0,
            filled: false,
            scratch: WriterScratch::default(),
        }
    }
}

impl Observation {
    /// Writes the facts of a decision point, all columns.
    pub fn fill(&mut self, cluster: &Cluster, set: &CandidateSet, reservation: Option<&Reservation>) {
        self.fill_wanted(cluster, set, reservation, All);
    }

    /// Writes some columns, and leaves the others undefined.
    pub(crate) fn fill_columns(
        &mut self,
        cluster: &Cluster,
        set: &CandidateSet,
        reservation: Option<&Reservation>,
        columns: ColumnSet,
    ) {
        if columns == ColumnSet::ALL {
            self.fill(cluster, set, reservation);
        } else {
            self.fill_wanted(cluster, set, reservation, columns);
        }
    }

    fn fill_wanted(
        &mut self,
        cluster: &Cluster,
        set: &CandidateSet,
        reservation: Option<&Reservation>,
        wanted: impl Wanted,
    ) {
        self.clear(set);
        self.filled = true;
        let out = (&mut self.global[..], &mut self.candidates[..]);
        self.scratch
            .write_rows::<ROW_WIDTH>(cluster, set, reservation, wanted, out);
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
            candidates: &self.candidates[..rows * ROW_WIDTH],
            width: ROW_WIDTH,
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
    /// Times of the candidates, s, those of one after those of the other.
    times_s: [f32; TIMES_MAX],
    /// The same, scaled.
    times: [f32; TIMES_MAX],
}

/// Most times of all candidates: each has a duration, one of its kind at most, and the wait for its best type.
const TIMES_MAX: usize = 3 * MAX_CANDIDATES;

/// Where the numbers of a candidate are.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// Row in the table of jobs.
    job: u8,
    /// Its first time.
    time: u8,
    /// The times that it has, a bit for each column of that kind.
    has_times: u8,
}

impl Default for WriterScratch {
    fn default() -> WriterScratch {
        WriterScratch {
            jobs: JobTable::default(),
            places: [Place::default(); MAX_CANDIDATES],
            times_s: [0.0; TIMES_MAX],
            times: [0.0; TIMES_MAX],
        }
    }
}

impl WriterScratch {
    /// Writes one observation of a view with so many columns of a candidate: `global` has its columns of the context, the first n
    /// rows of `candidates` are written, the rest is left alone.
    ///
    /// # Panics
    /// If no view is so wide.
    pub fn write(
        &mut self,
        cluster: &Cluster,
        set: &CandidateSet,
        reservation: Option<&Reservation>,
        global: &mut [f32],
        (candidates, width): (&mut [f32], usize),
    ) {
        // A writer for each width, so that columns beyond it cost nothing.
        const FIRST: usize = DECISION_1.num_row;
        const SECOND: usize = DECISION_2.num_row;
        match width {
            FIRST => self.write_rows::<FIRST>(cluster, set, reservation, All, (global, candidates)),
            SECOND => self.write_rows::<SECOND>(cluster, set, reservation, All, (global, candidates)),
            // In tests there are columns after those of the last view.
            _ if width == ROW_WIDTH => {
                self.write_rows::<ROW_WIDTH>(cluster, set, reservation, All, (global, candidates))
            }
            _ => panic!("no view has {width} columns of a candidate"),
        }
    }

    fn write_rows<const W: usize>(
        &mut self,
        cluster: &Cluster,
        set: &CandidateSet,
        reservation: Option<&Reservation>,
        wanted: impl Wanted,
        (global, candidates): (&mut [f32], &mut [f32]),
    ) {
        let oldest = oldest_two(cluster);
        let context = ContextFacts {
            cluster,
            reservation,
            oldest: oldest[0],
        };
        decision::write_context(&context, wanted, global);
        self.gather(cluster, set, wanted.set());
        let (free, oldest) = (cluster.num_free(), Oldest::of(cluster, oldest));
        let row_facts = |job, num_left: u32| RowFacts {
            num_left: num_left as f32,
            oldest_other_gpus: oldest.other_than(job),
            cluster_gpus: cluster.num_gpus() as f32,
        };
        // Candidates of one job stand together and share what is said of the job.
        let mut shared = [0.0; W];
        decision::write_cost(&OpportunityCost::PLAIN, wanted, &mut shared);
        let mut known = None;
        let num = set.rows.len().min(MAX_CANDIDATES);
        let (rows, _) = candidates.as_chunks_mut::<W>();
        let rows = set.rows[..num].iter().zip(&self.places).zip(rows);
        for (index, ((candidate, place), row)) in rows.enumerate() {
            let flag = decision::FLAGS[candidate.kind as usize];
            let Some(job) = candidate.job else {
                row.fill(0.0);
                decision::write(row, flag, 1.0);
                decision::write_any(&row_facts(None, free), wanted, row);
                continue;
            };
            if known != Some(place.job) {
                known = Some(place.job);
                self.jobs.write(usize::from(place.job), &mut shared);
            }
            *row = shared;
            decision::write(row, flag, 1.0);
            self.write_action(candidate, *place, wanted, row);
            if let Some(cost) = set.opportunity_costs.get(index) {
                decision::write_cost(cost, wanted, row);
            }
            let taken = candidate.facts.map_or(0, |facts| facts.num_gpus);
            let left = (free + candidate.stopped.num_gpus).saturating_sub(taken);
            decision::write_any(&row_facts(Some(job), left), wanted, row);
        }
    }

    /// Reads the facts of the offered jobs, each once, and scales the times of all candidates.
    fn gather(&mut self, cluster: &Cluster, set: &CandidateSet, columns: ColumnSet) {
        self.jobs.clear();
        let has_any_time = columns.meets(decision::TIMES);
        let (mut at, mut last, mut num_times) = (0, None, 0);
        for (index, (candidate, place)) in set.rows.iter().zip(&mut self.places).enumerate() {
            let Some(job) = candidate.job else { continue };
            if last != Some(job) {
                last = Some(job);
                at = self.jobs.read(cluster, job);
            }
            let first = num_times;
            if !has_any_time {
                *place = Place {
                    job: at as u8,
                    ..Place::default()
                };
                continue;
            }
            let rate = candidate
                .facts
                .as_ref()
                .map_or(self.jobs.best_speed(at), |facts| facts.rate);
            let times = TimeFacts {
                candidate,
                cluster,
                duration_s: self.jobs.resume_cost_s(at) + self.jobs.remaining_s(at) / rate as f32,
                cost: set.opportunity_costs.get(index),
            };
            let has_times = decision::read_times(&times, |seconds| {
                self.times_s[num_times] = seconds;
                num_times += 1;
            });
            *place = Place {
                job: at as u8,
                time: first as u8,
                has_times,
            };
        }
        self.jobs.encode(columns);
        let feature = &FEATURES[Id::DurationS as usize];
        jobs::encode(feature, &self.times_s, &mut self.times, num_times);
    }

    #[inline]
    fn write_action<const W: usize>(
        &self,
        candidate: &Candidate,
        place: Place,
        wanted: impl Wanted,
        row: &mut [f32; W],
    ) {
        decision::write_times(place.has_times, &self.times[usize::from(place.time)..], row);
        let facts = ActionFacts { candidate };
        if let Some(found) = candidate.facts {
            let best = self.jobs.best_speed(usize::from(place.job));
            decision::write_place(&(found, best), wanted, row);
        }
        if !candidate.victims.is_empty() {
            decision::write_stop(&facts, wanted, row);
        }
        decision::write_action(&facts, wanted, row);
    }
}

/// Gangs of the oldest and of the second oldest pending job.
struct Oldest {
    job: Option<JobId>,
    /// 0 without one.
    gangs: [f32; 2],
}

impl Oldest {
    fn of(cluster: &Cluster, oldest: [Option<JobId>; 2]) -> Oldest {
        let gang = |job: Option<JobId>| job.map_or(0, |job| cluster.job(job).request.num_gpus) as f32;
        Oldest {
            job: oldest[0],
            gangs: oldest.map(gang),
        }
    }

    /// Gang of the oldest pending job that is not this one.
    fn other_than(&self, job: Option<JobId>) -> f32 {
        self.gangs[usize::from(job.is_some() && job == self.job)]
    }
}

#[cfg(test)]
mod direction_tests;
#[cfg(test)]
mod opportunity_tests;

#[cfg(test)]
mod tests {
    use crate::candidate::CandidateKind;
    use crate::cluster::tests::{cluster_of, submit};
    use crate::cluster_spec::ClusterSpec;
    use crate::features::decision::{Id as C, place};
    use crate::ids::Time;
    use crate::pass::Pass;
    use crate::policy::Needs;

    fn value(row: &[f32], column: C) -> f32 {
        row[place(column)]
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
        assert_eq!(global[place(C::Free)], 5.0 / 8.0);
        assert_eq!(global[place(C::LargestFree)], 1.0);
        assert_eq!(global[place(C::EmptyNodes)], 0.5);
        assert!((global[place(C::SmallestGpuTime)] - 401_f32.log10() / 8.0).abs() < 1e-6);
    }
}
