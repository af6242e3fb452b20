//! The reference networks on almost idle clusters of wide gangs: no worse there than the best heuristic that waits for no place, which
//! the same networks without their rules are not. `lab/bench/lists/idle_gangs.py` measures more such lists (lab/notes/suite.md).

#![allow(clippy::disallowed_methods)]

use std::path::{Path, PathBuf};

use pleach_env::workload::estimates::EstimateModel;
use pleach_env::workload::{JobSpec, Workload};
use pleach_env::{SimConfig, simulate};
use pleach_network::{LearnedPolicy, TrainedNetwork};
use pleach_scheduler::cluster_spec::{ClusterSpec, LocalityFactors, ModelClass};
use pleach_scheduler::tree::{Tree, TreePolicy};
use pleach_scheduler::{Policy, Time, WideGangs, heuristics};

const NUM_JOBS: usize = 200;
const LOAD: f64 = 0.2;

/// Numbers from 0 to 1.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        // Knuth's linear congruential generator, MMIX.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Gangs of 8 to 512 GPUs, each size as likely, run times log-uniform from 100 s to 8.8 h, arrivals at random.
fn list(num_nodes: u32, seed: u64) -> Workload {
    let mut numbers = Numbers(seed);
    let cluster = ClusterSpec::uniform(num_nodes, 8, 8);
    let mut jobs: Vec<(u32, f64)> = Vec::new();
    for _ in 0..NUM_JOBS {
        jobs.push((
            8 << (numbers.next() * 7.0) as u32,
            10_f64.powf(2.0 + 2.5 * numbers.next()),
        ));
    }
    let work: f64 = jobs.iter().map(|(gang, run_s)| f64::from(*gang) * run_s).sum();
    let span_s = work / (LOAD * f64::from(num_nodes * 8));
    let mut times: Vec<f64> = jobs.iter().map(|_| span_s * numbers.next()).collect();
    times.sort_by(f64::total_cmp);
    let rows = jobs.into_iter().zip(times).enumerate();
    let jobs = rows.map(|(number, ((num_gpus, run_time_s), submit_s))| {
        JobSpec::new(
            number.to_string(),
            Time::from_secs_f64(submit_s),
            num_gpus,
            run_time_s,
        )
    });
    let class = ModelClass {
        locality: LocalityFactors::PHILLY,
        ..ModelClass::default()
    };
    Workload {
        name: format!("{num_nodes}-{seed}"),
        cluster,
        classes: vec![class],
        jobs: jobs.collect(),
    }
}

/// Mean logarithm of average JCT over lists.
fn ln_jct(lists: &[Workload], make: &dyn Fn() -> Box<dyn Policy>) -> f64 {
    let of_list = |list: &Workload| {
        let result = simulate(list, &SimConfig::default(), make().as_mut()).unwrap();
        result.metrics.avg_jct_s.ln()
    };
    lists.iter().map(of_list).sum::<f64>() / lists.len() as f64
}

fn best_rival(lists: &[Workload]) -> f64 {
    let rivals = ["fifo", "sjf", "easy", "sjf-reserve", "gpu-time-reserve"];
    let values = rivals.map(|name| ln_jct(lists, &|| heuristics::by_name(name).unwrap()));
    values.into_iter().fold(f64::INFINITY, f64::min)
}

fn reference_networks() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../checkpoints/reference");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|end| end == "ckpt"))
        .collect();
    files.sort();
    files
}

fn ratio(network: &TrainedNetwork, lists: &[Workload], rival: f64) -> f64 {
    (ln_jct(lists, &|| Box::new(LearnedPolicy::from_network(network).unwrap())) - rival).exp()
}

#[test]
fn on_an_idle_cluster_of_wide_gangs_no_reference_network_is_worse_than_the_best_of_five_heuristics() {
    for (num_nodes, num_lists, without_rules) in [(64, 5, 1.05), (302, 2, 1.03)] {
        let lists: Vec<Workload> = (0..num_lists).map(|seed| list(num_nodes, seed)).collect();
        let rival = best_rival(&lists);
        let networks = reference_networks();
        assert_eq!(networks.len(), 27);
        for path in networks {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let mut network = TrainedNetwork::load(&path).unwrap();
            let unopposed = ["Elastic", "PhillyGang", "PhillyShare", "Synergy"];
            let is_among = unopposed.iter().any(|task| name.starts_with(task));
            assert!(network.contract.wide_gangs.is_some(), "{name}");
            assert_eq!(network.contract.unopposed_starts, is_among, "{name}");
            let found = ratio(&network, &lists, rival);
            assert!(found <= 1.01, "{name} on {num_nodes} nodes: {found}");
            if name == "PhillyGang-v1" {
                (network.contract.wide_gangs, network.contract.unopposed_starts) = (None, false);
                let alone = ratio(&network, &lists, rival);
                assert!(
                    alone > without_rules,
                    "{name} without its rules on {num_nodes} nodes: {alone}"
                );
            }
        }
    }
}

/// On wide gangs the guarded tree has the rule's schedule to the bit, known or guessed, and a schedule of its own without its guard.
#[test]
fn a_guarded_tree_has_the_schedule_of_the_rule_on_wide_gangs_and_under_guesses() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../checkpoints/reference/Synergy-v1-tree.json");
    let shipped = Tree::load(&path).unwrap();
    let own = shipped.wide_gangs().cloned().unwrap();
    assert!(own.guessed_at_any_width);
    let narrow = WideGangs {
        gpus_part: Some(0.01),
        ..own
    };
    let everywhere = shipped.clone().with_wide_gangs(Some(narrow)).unwrap();
    let alone = shipped.clone().with_wide_gangs(None).unwrap();
    let mut list = list(8, 5);
    // Almost at once, so that there is a queue to order.
    for job in &mut list.jobs {
        job.submit = Time(job.submit.0 / 500);
        job.num_gpus = job.num_gpus.min(32);
    }
    let finished = |policy: &mut dyn Policy, estimates: EstimateModel| -> Vec<f64> {
        let config = SimConfig {
            estimates,
            ..SimConfig::default()
        };
        let result = simulate(&list, &config, policy).unwrap();
        result.jobs.iter().map(|job| job.finish_s).collect()
    };
    let of = |tree: &Tree, estimates| finished(&mut TreePolicy::new(tree.clone()), estimates);
    for (tree, rule, estimates) in [
        (&everywhere, "gpu-time-reserve", EstimateModel::Oracle),
        (&shipped, "gpu-time", EstimateModel::HISTORY),
    ] {
        let by_rule = finished(heuristics::by_name(rule).unwrap().as_mut(), estimates);
        assert_eq!(of(tree, estimates), by_rule, "{rule}");
        assert_ne!(of(&alone, estimates), by_rule, "{rule}");
    }
    assert_eq!(
        of(&shipped, EstimateModel::Oracle),
        of(&alone, EstimateModel::Oracle)
    );
}
