//! Hadar and HadarE.

use std::sync::Arc;

use pleach_env::workload::generate::{GavelConfig, GeneratorConfig, Paper, generate};
use pleach_env::workload::{JobSpec, Outcome, Workload};
use pleach_env::{Seed, SimConfig, SimResult};
use pleach_scheduler::Time;
use pleach_scheduler::cluster_spec::{
    ClusterSpec, GpuTypeSpec, ModelClass, NodeGroup, Resources, TenantSpec,
};
use pleach_scheduler::portable_math::pow;
use rand::{Rng, RngExt as _};
use serde_json::json;

use super::plot::lines;
use super::{Benchmark, Effort, Figure, Reproduction, Run, Series, Target, run_all};
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::stats::mean;

/// The benchmarks of this line.
pub(super) const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        id: "H1",
        title: "Hadar against Gavel and YARN-CS on three GPU types",
        source: "Hadar IPDPS'24 and arXiv 2503.10918: total time 1.20 times, mean JCT 2.5 times better than Gavel",
        setup: "15 nodes of 4 GPUs, 20 each of V100, P100 and K80, rounds of 360 s. 480 jobs at once with Gavel's gangs, \
                their GPU-hours in four equally likely classes (up to 1, 10, 50, and 60 to 100). Each is of Gavel's job types of the \
                models that Hadar has at that size (as remembered). YARN-CS is fifo; a restart costs 30 s",
        run: h1,
    },
    Benchmark {
        id: "H2",
        title: "HadarE against Hadar on five unlike nodes",
        source: "arXiv 2503.10918: utilisation 1.45 times, total time 50 % less on AWS, 80 % less in the lab",
        setup: "5 nodes of one GPU: V100, 2 T4, 2 K80 (AWS); RTX 3090, Titan RTX, A2000, T4, T400 (lab). Mixes of 1 to 12 \
                jobs at once, 1 to 4 hours each on the fastest node; speeds of the nodes and lengths are assumed. A restart \
                costs 30 s",
        run: h2,
    },
];

/// GPU-hours and models of the classes small, medium, large and very large.
///
/// # Source
/// Hadar's table of jobs, from memory; that the classes are equally likely is *assumed*.
const CLASSES: [((f64, f64), &[&str]); 4] = [
    ((0.1, 1.0), &["ResNet-18"]),
    ((1.0, 10.0), &["CycleGAN"]),
    ((10.0, 50.0), &["LM", "Transformer"]),
    ((60.0, 100.0), &["ResNet-50"]),
];

fn log_uniform(range: (f64, f64), rng: &mut impl Rng) -> f64 {
    range.0 * pow(range.1 / range.0, rng.random::<f64>())
}

/// Gavel's gangs with Hadar's models and lengths, all at once.
fn three_types(seed: Seed, num_jobs: usize) -> Result<Workload, Error> {
    let config = GavelConfig {
        num_jobs,
        nodes_per_type: 5,
        gpus_per_node: 4,
        nodes_per_rack: 5,
        ..GavelConfig::default()
    };
    let mut workload = generate(&GeneratorConfig::Paper(Paper::GavelMulti(config)), seed)?;
    let mut rng = seed.stream("gpu-hours", 0);
    for job in &mut workload.jobs {
        let (hours, models) = CLASSES[rng.random_range(0..CLASSES.len())];
        let of_gang = |num_gpus: u32| -> Vec<usize> {
            let is_kind = |name: &str| {
                let is_model = models.iter().any(|model| name.split(' ').next() == Some(model));
                is_model && name.ends_with(&format!(" x{num_gpus}"))
            };
            let kinds = workload.classes.iter().enumerate();
            kinds
                .filter_map(|(kind, class)| is_kind(&class.name).then_some(kind))
                .collect()
        };
        // What Gavel did not measure on a gang goes as on one GPU.
        let kinds = [of_gang(job.num_gpus), of_gang(1)]
            .into_iter()
            .find(|kinds| !kinds.is_empty())
            .unwrap_or_default();
        job.class = kinds[rng.random_range(0..kinds.len())] as u16;
        job.submit = Time::ZERO;
        job.run_time_s = log_uniform(hours, &mut rng) * 3600.0 / f64::from(job.num_gpus);
        job.estimate_s = None;
    }
    Ok(workload)
}

/// The planners beside Hadar: name in the tables, and planner.
const OTHERS: [(&str, &str); 4] = [
    ("Gavel", "gavel-las"),
    ("YARN-CS", "fifo"),
    ("Tiresias", "tiresias"),
    ("srtf", "srtf"),
];

/// Published (total time, mean JCT) of another over Hadar's.
fn published(name: &str) -> (Option<f64>, Option<f64>) {
    match name {
        "Gavel" => (Some(1.2), Some(2.5)),
        "YARN-CS" => (None, Some(3.0)),
        _ => (None, None),
    }
}

fn h1(effort: &Effort) -> Result<Reproduction, Error> {
    let seeds = effort.seeds(3);
    let utilities = ["effective-throughput", "makespan", "finish-time-fairness"];
    let mut runs = Vec::new();
    for seed in &seeds {
        let workload = Arc::new(three_types(*seed, effort.size(480, 40))?);
        for utility in utilities {
            runs.push(
                Run::new(&workload, &SimConfig::default(), "hadar").with(json!({ "utility": utility })),
            );
        }
        runs.extend(
            OTHERS
                .iter()
                .map(|other| Run::new(&workload, &SimConfig::default(), other.1)),
        );
    }
    let results = run_all("H1", &effort.watcher, &runs)?;
    let per_seed = utilities.len() + OTHERS.len();
    let over = |at: usize, value: fn(&SimResult) -> f64| -> Vec<f64> {
        let of_seed = results
            .chunks(per_seed)
            .map(|results| value(&results[at]) / value(&results[0]));
        of_seed.collect()
    };
    let total = |result: &SimResult| result.metrics.makespan_s;
    let jct = |result: &SimResult| result.metrics.avg_jct_s;
    let mut reproduction = Reproduction::default();
    let figures = &mut reproduction.figures;
    let within =
        |value: Option<f64>, part: f64| value.map_or(Target::Record, |value| Target::Within { value, part });
    for (number, (name, _)) in OTHERS.iter().enumerate() {
        let at = utilities.len() + number;
        let (total_published, jct_published) = published(name);
        let what = format!("total time, {name} / hadar");
        figures.push(Figure::of(what, &over(at, total), within(total_published, 0.15)));
        let what = format!("mean JCT, {name} / hadar");
        figures.push(Figure::of(what, &over(at, jct), within(jct_published, 0.3)));
    }
    for (at, utility) in utilities.iter().enumerate().skip(1) {
        let what = format!("total time, hadar for {utility} / for {}", utilities[0]);
        figures.push(Figure::of(what, &over(at, total), Target::Record));
        let what = format!("mean JCT, hadar for {utility} / for {}", utilities[0]);
        figures.push(Figure::of(what, &over(at, jct), Target::Record));
        if let Some(gavel) = OTHERS.iter().position(|other| other.0 == "Gavel") {
            let both = over(utilities.len() + gavel, jct).into_iter().zip(over(at, jct));
            let ratios: Vec<f64> = both.map(|(gavel, hadar)| gavel / hadar).collect();
            let what = format!("mean JCT, Gavel / hadar for {utility}");
            figures.push(Figure::of(what, &ratios, Target::Record));
        }
    }
    reproduction.findings.push(
        "Total time is Gavel's; mean JCT is not Hadar's published one. A job that a round leaves out counts nothing in its sum of \
         payoffs, and the utility E N / d of a short job falls faster while it waits, so the effective throughput as \
         we have it prefers long jobs. For finish-time fairness the same programme has a much lower mean JCT. The paper's \
         details are not at hand."
            .into(),
    );
    Ok(reproduction)
}

/// A cluster of five nodes and what its GPUs do relative to the fastest. *Assumed.*
struct Site {
    name: &'static str,
    nodes: &'static [(&'static str, u32, f64)],
    /// Published total time of HadarE over that of its counterparts.
    total: f64,
}

const SITES: [Site; 2] = [
    Site {
        name: "AWS",
        nodes: &[("V100", 1, 1.0), ("T4", 2, 0.4), ("K80", 2, 0.15)],
        total: 0.5,
    },
    Site {
        name: "lab",
        nodes: &[
            ("RTX 3090", 1, 1.0),
            ("Titan RTX", 1, 0.7),
            ("RTX A2000", 1, 0.35),
            ("T4", 1, 0.3),
            ("T400", 1, 0.06),
        ],
        total: 0.2,
    },
];
/// Sizes of the mixes M-1 to M-12.
const MIXES: [usize; 7] = [1, 3, 4, 5, 8, 10, 12];
/// Published utilisation of HadarE over that of its counterparts.
const UTILISATION: f64 = 1.45;

impl Site {
    /// So many jobs of one GPU at once.
    fn mix(&self, seed: Seed, num_jobs: usize) -> Workload {
        let group = |(name, count, _): &(&str, u32, f64)| NodeGroup {
            count: *count,
            gpus_per_node: 1,
            gpu_type: (*name).into(),
            nodes_per_rack: *count,
            ..NodeGroup::default()
        };
        let kind = |(name, ..): &(&str, u32, f64)| GpuTypeSpec {
            name: (*name).into(),
            memory_gib: 16.0,
            mig: None,
        };
        let mut rng = seed.stream("mix", num_jobs as u64);
        let job = |number: usize| JobSpec {
            id: number.to_string(),
            submit: Time::ZERO,
            num_gpus: 1,
            run_time_s: log_uniform((3600.0, 14_400.0), &mut rng),
            estimate_s: None,
            tenant: 0,
            class: 0,
            user: None,
            outcome: Outcome::Unknown,
            resources: Resources::WHOLE_GPU,
            observed: None,
        };
        Workload {
            name: format!("{}-M-{num_jobs}", self.name),
            cluster: ClusterSpec {
                gpu_types: self.nodes.iter().map(kind).collect(),
                node_groups: self.nodes.iter().map(group).collect(),
                tenants: vec![TenantSpec {
                    name: "all".into(),
                    quota_gpus: self.nodes.iter().map(|node| node.1).sum(),
                }],
                ..ClusterSpec::default()
            },
            classes: vec![ModelClass {
                speed: self.nodes.iter().map(|node| node.2).collect(),
                ..ModelClass::default()
            }],
            jobs: (0..num_jobs).map(job).collect(),
        }
    }
}

const H2_POLICIES: [&str; 3] = ["hadare", "hadar", "fifo"];

/// Copies join and leave at round boundaries for nothing, and the copies that stay train on. Here a job that gets other nodes
/// stops and starts again, so without the cost of that.
fn free_joins() -> SimConfig {
    let mut sim = SimConfig::default();
    sim.capabilities.restart_cost_s = 0.0;
    sim
}

fn h2(effort: &Effort) -> Result<Reproduction, Error> {
    let seeds = effort.seeds(10);
    let mixes = effort.size(&MIXES[..], &MIXES[..2]);
    let mut runs = Vec::new();
    for site in &SITES {
        for mix in mixes {
            for seed in &seeds {
                let workload = Arc::new(site.mix(*seed, *mix));
                runs.extend(H2_POLICIES.map(|policy| Run::new(&workload, &SimConfig::default(), policy)));
                runs.push(Run::new(&workload, &free_joins(), "hadare"));
            }
        }
    }
    let results = run_all("H2", &effort.watcher, &runs)?;
    let per_list = H2_POLICIES.len() + 1;
    let by_run: Vec<&[SimResult]> = results.chunks(per_list).collect();
    let (of_mix, of_site) = (seeds.len(), seeds.len() * mixes.len());
    let mut reproduction = Reproduction::default();
    for (number, site) in SITES.iter().enumerate() {
        let here = &by_run[number * of_site..(number + 1) * of_site];
        // The mean over the mixes for each seed.
        let over = |ratio: &dyn Fn(&[SimResult]) -> f64| -> Vec<f64> {
            let of_seed = |seed: usize| {
                let ratios: Vec<f64> = here
                    .iter()
                    .skip(seed)
                    .step_by(of_mix)
                    .map(|run| ratio(run))
                    .collect();
                mean(&ratios)
            };
            (0..of_mix).map(of_seed).collect()
        };
        for (other, name) in H2_POLICIES.iter().enumerate().skip(1) {
            let total = over(&|run| run[0].metrics.makespan_s / run[other].metrics.makespan_s);
            let used = over(&|run| run[0].metrics.utilisation / run[other].metrics.utilisation);
            let targets = if *name == "hadar" {
                let within = |value: f64| Target::Within { value, part: 0.25 };
                (within(site.total), within(UTILISATION))
            } else {
                (Target::Record, Target::Record)
            };
            let what = format!("{}: total time, hadare / {name}, mean over the mixes", site.name);
            reproduction.figures.push(Figure::of(what, &total, targets.0));
            let what = format!("{}: utilisation, hadare / {name}, mean over the mixes", site.name);
            reproduction.figures.push(Figure::of(what, &used, targets.1));
        }
        let free = over(&|run| run[H2_POLICIES.len()].metrics.makespan_s / run[1].metrics.makespan_s);
        let what = format!(
            "{}: total time, hadare whose copies join for nothing / hadar",
            site.name
        );
        reproduction.figures.push(Figure::of(what, &free, Target::Record));
        // All nodes busy to the end with copies that join and leave for nothing: no HadarE is faster.
        let speed: f64 = site.nodes.iter().map(|node| f64::from(node.1) * node.2).sum();
        let bound = |seed: usize| {
            let of_seed = (seed..of_site).step_by(of_mix).map(|at| {
                let jobs = &runs[(number * of_site + at) * per_list].workload.jobs;
                let work_s: f64 = jobs.iter().map(|job| job.run_time_s).sum();
                work_s / speed / here[at][1].metrics.makespan_s
            });
            mean(&of_seed.collect::<Vec<f64>>())
        };
        let what = format!(
            "{}: total time if all nodes were always busy, over hadar",
            site.name
        );
        let bounds: Vec<f64> = (0..of_mix).map(bound).collect();
        reproduction
            .figures
            .push(Figure::of(what, &bounds, Target::Record));
        let curve = |policy: usize| {
            let points = mixes.iter().enumerate().map(|(at, mix)| {
                let runs = &here[at * of_mix..(at + 1) * of_mix];
                let hours: Vec<f64> = runs
                    .iter()
                    .map(|run| run[policy].metrics.makespan_s / 3600.0)
                    .collect();
                (*mix as f64, mean(&hours))
            });
            Series::new(H2_POLICIES[policy], points.collect())
        };
        let series: Vec<Series> = (0..H2_POLICIES.len()).map(curve).collect();
        let plot = lines("jobs in the mix", "total time (h)", &series, None);
        reproduction
            .plots
            .push((format!("{}: total time of a mix", site.name), plot));
    }
    reproduction.findings.push(
        "What copies gain depends on what the slow nodes are worth beside the fastest, which was not published in a form \
         that we have: the speeds are ours. With copies that join for nothing and nodes that never idle the total time would still be \
         above the published half and fifth of our Hadar's, so these cannot come of HadarE alone."
            .into(),
    );
    Ok(reproduction)
}

#[cfg(test)]
mod tests {
    use pleach_env::simulate_planner;

    use super::*;

    #[test]
    fn the_static_list_has_hadars_lengths_and_gavels_gangs() {
        let workload = three_types(Seed(1), 480).unwrap();
        workload.validate().unwrap();
        assert_eq!(
            workload
                .cluster
                .node_groups
                .iter()
                .map(|group| group.count)
                .sum::<u32>(),
            15
        );
        for job in &workload.jobs {
            let gpu_hours = job.run_time_s * f64::from(job.num_gpus) / 3600.0;
            assert!(
                (0.1..=100.0).contains(&gpu_hours) && job.submit == Time::ZERO,
                "{job:?}"
            );
        }
    }

    #[test]
    fn a_copy_joins_at_a_round_and_a_restart_is_all_that_it_costs_here() {
        // Two equal nodes, jobs of 720 and 1,080 s, copies that lose 144 of 360 s: two are 1.2 times as fast as one. The second copy
        // joins when the third round begins, at 720 s, with 360 s left: 300 s. Where the job starts again they begin 30 s later.
        let site = Site {
            name: "two",
            nodes: &[("V100", 2, 1.0)],
            total: 1.0,
        };
        let mut workload = site.mix(Seed(1), 2);
        for (job, run_time_s) in workload.jobs.iter_mut().zip([720.0, 1080.0]) {
            job.run_time_s = run_time_s;
        }
        for (mut sim, ends_s) in [(free_joins(), 1020.0), (SimConfig::default(), 1050.0)] {
            let entry = pleach_baselines::find("hadare").unwrap();
            sim.capabilities = sim.capabilities.with_actions(entry.requirements);
            let mut planner = (entry.make)(&json!({ "weight_gb": 72.0, "gb_per_s": 1.0 })).unwrap();
            let result = simulate_planner(&workload, &sim, planner.as_mut()).unwrap();
            let finishes = result.jobs.iter().map(|job| job.finish_s);
            assert_eq!(finishes.collect::<Vec<f64>>(), [720.0, ends_s]);
        }
    }

    #[test]
    fn sites_have_five_nodes_and_valid_mixes() {
        for site in &SITES {
            assert_eq!(site.nodes.iter().map(|node| node.1).sum::<u32>(), 5);
            site.mix(Seed(1), 12).validate().unwrap();
        }
    }
}
