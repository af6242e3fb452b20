//! Unopposed starts against the best of all schedules on toys: wherever a start is unopposed, no schedule is better than the best that
//! begins with it, neither one that begins with a hold nor one that begins with another start.

use proptest::prelude::*;

use super::{InPlaceOf, Unopposed};
use crate::cluster::{Capabilities, Cluster, Slice, Submission};
use crate::cluster_spec::{ClusterSpec, LocalityFactors, ModelClass, Resources};
use crate::estimate::{Estimate, Provenance};
use crate::ids::{ClassId, JobId, NodeId, TenantId};
use crate::pass::Pass;
use crate::policy::Needs;

/// Nodes of 2 GPUs.
const GPUS: u32 = 2;

/// A cluster of one GPU type with known run times, in numbers.
#[derive(Clone, Debug)]
struct Toy {
    now: f64,
    /// Free GPUs. `[node]`
    free: Vec<u32>,
    nodes_per_rack: usize,
    /// When jobs end, and the GPUs that they then give back. `[node]`
    running: Vec<(f64, Vec<u32>)>,
    /// GPUs, run time at a tight place, weight of its end.
    waiting: Vec<(u32, f64, f64)>,
    locality: LocalityFactors,
}

impl Toy {
    /// The rate of a gang on so many GPUs of each node, as the cluster has it: fewest nodes, one rack if one could hold it.
    fn rate(&self, taken: &[u32]) -> f64 {
        let num_gpus: u32 = taken.iter().sum();
        let nodes: Vec<usize> = (0..taken.len()).filter(|node| taken[*node] > 0).collect();
        let rack_gpus = self.free.len().min(self.nodes_per_rack) as u32 * GPUS;
        let is_one_rack = nodes
            .iter()
            .all(|node| node / self.nodes_per_rack == nodes[0] / self.nodes_per_rack);
        if !is_one_rack && num_gpus <= rack_gpus {
            self.locality.cross_rack
        } else if nodes.len() as u32 > num_gpus.div_ceil(GPUS) {
            self.locality.more_nodes
        } else {
            1.0
        }
    }

    /// All ways to take so many GPUs from the nodes from `node` on.
    fn places(&self, node: usize, num_gpus: u32, taken: &mut Vec<u32>, found: &mut Vec<Vec<u32>>) {
        if node == self.free.len() {
            if num_gpus == 0 {
                found.push(taken.clone());
            }
            return;
        }
        for here in 0..=self.free[node].min(num_gpus) {
            taken.push(here);
            self.places(node + 1, num_gpus - here, taken, found);
            taken.pop();
        }
    }

    /// After a start, and what its end costs.
    fn after_start(&self, job: usize, taken: &[u32]) -> (Toy, f64) {
        let mut next = self.clone();
        let (_, run_s, weight) = next.waiting.remove(job);
        let end = self.now + run_s / self.rate(taken);
        for (free, taken) in next.free.iter_mut().zip(taken) {
            *free -= taken;
        }
        next.running.push((end, taken.to_vec()));
        (next, weight * end)
    }

    /// After a hold: the next job has ended.
    fn after_hold(&self) -> Option<Toy> {
        let mut next = self.clone();
        let ends = next.running.iter().enumerate();
        let (first, _) = ends.min_by(|a, b| a.1.0.total_cmp(&b.1.0))?;
        let (end, given) = next.running.swap_remove(first);
        next.now = end;
        for (free, given) in next.free.iter_mut().zip(given) {
            *free += given;
        }
        Some(next)
    }

    /// The least weighted sum of the ends of the jobs that wait. At one instant jobs start in their order, so that no set of starts is
    /// looked at twice; `from` is the first that still may.
    fn best(&self, from: usize) -> f64 {
        if self.waiting.is_empty() {
            return 0.0;
        }
        let held = self.after_hold().map_or(f64::INFINITY, |next| next.best(0));
        held.min(self.best_begun_from(from))
    }

    /// The same of the schedules in which some job starts now.
    fn best_begun_from(&self, from: usize) -> f64 {
        let mut best = f64::INFINITY;
        for job in from..self.waiting.len() {
            let mut places = Vec::new();
            self.places(0, self.waiting[job].0, &mut Vec::new(), &mut places);
            for taken in places {
                let (next, cost) = self.after_start(job, &taken);
                best = best.min(cost + next.best(job));
            }
        }
        best
    }
}

/// The same as tables; none if a running job finds no room.
fn cluster_of(toy: &Toy) -> (Cluster, Vec<JobId>) {
    let spec = ClusterSpec::uniform(toy.free.len() as u32, GPUS, toy.nodes_per_rack as u32);
    let class = ModelClass {
        locality: toy.locality,
        ..ModelClass::default()
    };
    let mut cluster = Cluster::new(&spec, &[class], Capabilities::DEFAULT).unwrap();
    let submit = |cluster: &mut Cluster, num_gpus: u32, run_s: f64| {
        let estimate_s = Estimate {
            value: run_s,
            provenance: Provenance::Oracle,
        };
        let request = Submission {
            tenant: TenantId(0),
            class: ClassId(0),
            num_gpus,
            estimate_s,
            resources: Resources::WHOLE_GPU,
        };
        cluster.submit(request).unwrap()
    };
    let mut used = vec![0_u32; toy.free.len()];
    for (end, given) in &toy.running {
        let job = submit(&mut cluster, given.iter().sum(), end * toy.rate(given));
        let mut placement = Vec::new();
        for (node, num) in given.iter().enumerate().filter(|(_, num)| **num > 0) {
            let gpus = ((1_u64 << num) - 1) << used[node];
            used[node] += num;
            placement.push(Slice {
                node: NodeId(node as u32),
                gpus,
            });
        }
        cluster.start(job, placement.into_iter().collect());
    }
    let waiting = toy.waiting.iter();
    let jobs = waiting.map(|(num_gpus, run_s, _)| submit(&mut cluster, *num_gpus, *run_s));
    let jobs = jobs.collect();
    (cluster, jobs)
}

fn toys() -> impl Strategy<Value = Toy> {
    let localities = prop_oneof![
        Just(LocalityFactors::NONE),
        Just(LocalityFactors::PHILLY),
        Just(LocalityFactors {
            more_nodes: 0.95,
            cross_rack: 0.3
        }),
    ];
    let running = (proptest::collection::vec(0_u32..3, 3), 1_u32..30);
    let waiting = (1_u32..6, 1_u32..30, 1_u32..5);
    (
        2_usize..4,
        1_usize..4,
        proptest::collection::vec(running, 1..4),
        proptest::collection::vec(waiting, 1..4),
        localities,
    )
        .prop_map(|(num_nodes, nodes_per_rack, running, waiting, locality)| {
            let mut toy = Toy {
                now: 0.0,
                free: vec![GPUS; num_nodes],
                nodes_per_rack,
                running: Vec::new(),
                waiting: Vec::new(),
                locality,
            };
            for (wanted, end) in running {
                let pairs = toy.free.iter_mut().zip(wanted);
                let given: Vec<u32> = pairs
                    .map(|(free, wanted)| {
                        let given = wanted.min(*free);
                        *free -= given;
                        given
                    })
                    .collect();
                if given.iter().sum::<u32>() > 0 {
                    toy.running.push((f64::from(end) * 10.0, given));
                }
            }
            let num_gpus = num_nodes as u32 * GPUS;
            toy.waiting = waiting
                .into_iter()
                .map(|(gpus, run, weight)| (gpus.min(num_gpus), f64::from(run) * 10.0, f64::from(weight)))
                .collect();
            toy
        })
}

/// The number of unopposed starts of a toy, each of which begins a best schedule.
fn check(toy: &Toy) -> Result<usize, TestCaseError> {
    let (cluster, jobs) = cluster_of(toy);
    let mut pass = Pass::new();
    let needs = Needs {
        observation: false,
        ..Needs::full()
    };
    pass.open(&cluster, &needs);
    let best = toy.best(0);
    let unopposed = Unopposed::new(&cluster).unwrap();
    let mut num_unopposed = 0;
    for row in pass.candidates().iter() {
        let placement = pass.candidates().placement(row);
        if !unopposed.is(row, placement, InPlaceOf::Hold) {
            continue;
        }
        num_unopposed += 1;
        let job = jobs.iter().position(|job| row.job == Some(*job)).unwrap();
        let mut taken = vec![0; toy.free.len()];
        for slice in placement {
            taken[slice.node.index()] = slice.num_gpus();
        }
        let (next, cost) = toy.after_start(job, &taken);
        let run_s = toy.waiting[job].1 / row.facts.unwrap().rate;
        prop_assert!(
            (toy.waiting[job].2 * run_s - cost).abs() < 1e-6,
            "the toy is not the cluster: {:?}",
            toy
        );
        let begun = cost + next.best(0);
        prop_assert!(
            begun <= best + 1e-6,
            "{:?} at {:?}: {} where {} can be had; {:?}",
            row.job,
            taken,
            begun,
            best,
            toy
        );
    }
    Ok(num_unopposed)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn an_unopposed_start_begins_a_best_schedule(toy in toys()) {
        check(&toy)?;
    }
}

#[test]
fn there_are_toys_with_unopposed_starts_and_toys_whose_best_schedules_all_begin_with_a_hold() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let (mut num_unopposed, mut num_holds) = (0, 0);
    for _ in 0..400 {
        let toy = toys().new_tree(&mut runner).unwrap().current();
        num_unopposed += usize::from(check(&toy).unwrap() > 0);
        let held = toy.after_hold().map_or(f64::INFINITY, |next| next.best(0));
        let begun = toy.best_begun_from(0);
        num_holds += usize::from(begun.is_finite() && held < begun - 1e-6);
    }
    assert!(
        num_unopposed >= 40 && num_holds >= 5,
        "{num_unopposed} {num_holds}"
    );
}
