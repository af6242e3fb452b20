//! EASY on nodes: seven jobs that a real Slurm was given, and random lists against an EASY written anew.

use pleach_env::workload::estimates::EstimateModel;
use pleach_env::workload::{JobSpec, Outcome, Workload};
use pleach_env::{SimConfig, SimResult, simulate, simulate_planner};
use pleach_scheduler::cluster_spec::{ClusterSpec, LocalityFactors, ModelClass, Resources, Tasks};
use pleach_scheduler::{Time, heuristics};
use proptest::prelude::*;

/// A job in whole seconds.
#[derive(Clone, Copy, Debug)]
struct Row {
    submit: u32,
    num_gpus: u32,
    /// GPUs of a task, which lie on one node.
    each: u32,
    run: u32,
    /// What the user asked for, no less than the run time.
    limit: u32,
}

/// A job of one task, with a limit of its run time: (submission, GPUs, run time).
fn on_one_node((submit, num_gpus, run): (u32, u32, u32)) -> Row {
    Row {
        submit,
        num_gpus,
        each: num_gpus,
        run,
        limit: run,
    }
}

/// Nodes of 8 GPUs in one rack.
fn workload(num_nodes: u32, rows: &[Row]) -> Workload {
    let jobs = rows.iter().enumerate().map(|(id, row)| JobSpec {
        id: id.to_string(),
        submit: Time::from_secs_f64(f64::from(row.submit)),
        num_gpus: row.num_gpus,
        run_time_s: f64::from(row.run),
        estimate_s: Some(f64::from(row.limit)),
        tenant: 0,
        class: 0,
        user: None,
        outcome: Outcome::Completed,
        resources: Resources {
            tasks: match row.each {
                1 => Tasks::ANY,
                each => Tasks::of(each as u8),
            },
            ..Resources::WHOLE_GPU
        },
        observed: None,
    });
    Workload {
        name: "rows".into(),
        cluster: ClusterSpec::uniform(num_nodes, 8, num_nodes),
        classes: vec![ModelClass {
            name: "any".into(),
            speed: vec![1.0],
            locality: LocalityFactors::NONE,
            ..ModelClass::default()
        }],
        jobs: jobs.collect(),
    }
}

fn config() -> SimConfig {
    SimConfig {
        estimates: EstimateModel::UserLimit { default_s: 3600.0 },
        ..SimConfig::default()
    }
}

fn starts(result: &SimResult) -> Vec<u32> {
    let starts = result.jobs.iter().map(|job| job.first_start_s as u32);
    starts.collect()
}

fn easy(workload: &Workload) -> Vec<u32> {
    starts(&simulate(workload, &config(), &mut heuristics::by_name("easy").unwrap()).unwrap())
}

#[test]
fn of_the_seven_jobs_those_that_take_nothing_from_the_reserved_node_start_at_once() {
    // 3 nodes. R1 holds node 0 until 36,000 s; R2 and R3 hold 5 GPUs of a node each, R3 until 360,000 s. H needs a whole node: node 0
    // when R1 ends. B, C and D run for 50 hours on the 6 GPUs that R2 and R3 leave, and delay no job; a real Slurm starts them
    // when they come. An EASY that reserves 8 GPUs anywhere keeps B and D for ten hours.
    let rows = [
        // (submission, GPUs, run time)
        (0, 8, 36_000),
        (0, 5, 36_000),
        (0, 5, 360_000),
        (10, 8, 3_600),
        (20, 2, 180_000),
        (30, 1, 180_000),
        (40, 1, 180_000),
    ];
    let workload = workload(3, &rows.map(on_one_node));
    let expected = [0, 0, 0, 36_000, 20, 30, 40];
    assert_eq!(easy(&workload), expected);
    let make = pleach_dealing::BACKFILLING[0].make;
    let mut conservative = make(&serde_json::json!({})).unwrap();
    let result = simulate_planner(&workload, &config(), conservative.as_mut()).unwrap();
    assert_eq!(starts(&result), expected);
}

#[test]
fn a_job_goes_round_the_reserved_node_if_its_tightest_place_is_there() {
    // Node 0 has one GPU free beside job 0, until 100 s; node 1 has two beside job 1, until 1,000 s. Job 2 needs node 0 whole, at 100 s.
    // Job 3 (1 GPU for 500 s) would best fill node 0 and goes to node 1; job 4 (1 GPU for 50 s) is over by then and fills node 0;
    // job 5 (1 GPU for 500 s) takes what is left of node 1; job 6 waits until job 4 has gone and job 2 too.
    let rows = [
        // (submission, GPUs, run time)
        (0, 7, 100),
        (0, 6, 1000),
        (0, 8, 100),
        (0, 1, 500),
        (0, 1, 50),
        (0, 1, 500),
        (0, 1, 500),
    ];
    let workload = workload(2, &rows.map(on_one_node));
    assert_eq!(easy(&workload), [0, 0, 100, 0, 0, 0, 200]);
}

/// So many GPUs of each node.
type Place = Vec<u32>;

/// One node, that with the least room that will do; else those with most room first. The lowest of equals.
fn place(free: &[u32], row: Row) -> Option<Place> {
    let room = |node: &usize| free[*node] / row.each * row.each;
    let mut place = vec![0; free.len()];
    let one = (0..free.len()).filter(|node| room(node) >= row.num_gpus);
    if let Some(node) = one.min_by_key(|node| (room(node), *node)) {
        place[node] = row.num_gpus;
        return Some(place);
    }
    let mut nodes: Vec<usize> = (0..free.len()).collect();
    nodes.sort_by_key(|node| std::cmp::Reverse(room(node)));
    let mut rest = row.num_gpus;
    for node in nodes {
        place[node] = rest.min(room(&node));
        rest -= place[node];
    }
    (rest == 0).then_some(place)
}

/// A cluster second by second.
struct Slow<'a> {
    rows: &'a [Row],
    now: u32,
    free: Vec<u32>,
    /// (job, its place), of those that run.
    running: Vec<(usize, Place)>,
    /// `[job]`
    starts: Vec<Option<u32>>,
}

impl Slow<'_> {
    fn end(&self, job: usize, lasts: u32) -> u32 {
        self.starts[job].unwrap() + lasts
    }

    /// Jobs that end now give back what they hold.
    fn end_jobs(&mut self) {
        let running = std::mem::take(&mut self.running);
        for (job, place) in running {
            if self.end(job, self.rows[job].run) == self.now {
                self.free
                    .iter_mut()
                    .zip(&place)
                    .for_each(|(free, held)| *free += held);
            } else {
                self.running.push((job, place));
            }
        }
    }

    fn start(&mut self, job: usize, place: Place) {
        self.free
            .iter_mut()
            .zip(&place)
            .for_each(|(free, held)| *free -= held);
        self.starts[job] = Some(self.now);
        self.running.push((job, place));
    }

    /// When the head is believed to fit first, and what others may take of each node beyond that.
    fn reserve(&self, head: Row) -> (u32, Vec<u32>) {
        let end = |job: usize| self.end(job, self.rows[job].limit).max(self.now + 1);
        let mut ends: Vec<u32> = self.running.iter().map(|(job, _)| end(*job)).collect();
        ends.sort_unstable();
        for shadow in ends {
            let mut free = self.free.clone();
            for (_, place) in self.running.iter().filter(|(job, _)| end(*job) <= shadow) {
                free.iter_mut().zip(place).for_each(|(free, held)| *free += held);
            }
            if let Some(place) = place(&free, head) {
                let spare = free.iter().zip(&place).map(|(free, need)| match need {
                    0 => u32::MAX,
                    need => free - need,
                });
                return (shadow, spare.collect());
            }
        }
        unreachable!("an empty cluster holds every job")
    }

    /// The oldest job starts while it fits. Where it does not, it gets nodes, and the others, by age, start if they are over by then, or
    /// beside what it needs there.
    fn decide(&mut self) {
        let is_waiting = |job: &usize| self.rows[*job].submit <= self.now && self.starts[*job].is_none();
        let queue: Vec<usize> = (0..self.rows.len()).filter(is_waiting).collect();
        let mut queue = queue.into_iter();
        let held = loop {
            let Some(head) = queue.next() else { return };
            match place(&self.free, self.rows[head]) {
                Some(place) => self.start(head, place),
                None => break self.reserve(self.rows[head]),
            }
        };
        let (shadow, mut spare) = held;
        for job in queue {
            let row = self.rows[job];
            let in_time = self.now + row.limit <= shadow;
            let fits = |place: &Place| place.iter().zip(&spare).all(|(taken, spare)| taken <= spare);
            let tight = place(&self.free, row).filter(|place| in_time || fits(place));
            let left: Vec<u32> = self
                .free
                .iter()
                .zip(&spare)
                .map(|(free, spare)| *free.min(spare))
                .collect();
            let Some(place) = tight.or_else(|| place(&left, row)) else {
                continue;
            };
            if !in_time {
                for (spare, taken) in spare
                    .iter_mut()
                    .zip(&place)
                    .filter(|(spare, _)| **spare < u32::MAX)
                {
                    *spare -= taken;
                }
            }
            self.start(job, place);
        }
    }
}

fn easy_anew(num_nodes: u32, rows: &[Row]) -> Vec<u32> {
    let mut slow = Slow {
        rows,
        now: 0,
        free: vec![8; num_nodes as usize],
        running: Vec::new(),
        starts: vec![None; rows.len()],
    };
    while slow.starts.iter().any(Option::is_none) {
        let running = slow.running.len();
        slow.end_jobs();
        // Nothing is decided where nothing happens.
        if slow.running.len() < running || rows.iter().any(|row| row.submit == slow.now) {
            slow.decide();
        }
        slow.now += 1;
    }
    slow.starts.into_iter().flatten().collect()
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let gang = prop_oneof![
        (1_u32..17).prop_map(|num_gpus| (num_gpus, 1)),
        (1_u32..9).prop_map(|each| (each, each)),
        (1_u32..9).prop_map(|each| (2 * each, each)),
    ];
    let row = (0_u32..300, gang, 1_u32..200, prop_oneof![Just(2_u32), 2_u32..8]);
    let row = row.prop_map(|(submit, (num_gpus, each), run, halves)| Row {
        submit,
        num_gpus,
        each,
        run,
        limit: run * halves / 2,
    });
    proptest::collection::vec(row, 1..40).prop_map(|mut rows| {
        rows.sort_by_key(|row| row.submit);
        rows
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn every_job_starts_when_an_easy_written_anew_starts_it(num_nodes in 2_u32..6, rows in rows()) {
        prop_assert_eq!(easy(&workload(num_nodes, &rows)), easy_anew(num_nodes, &rows));
    }
}
