//! Planners that put several jobs on one GPU, in whole simulations: by hand, by what the physics allows, and against a
//! published run, start by start.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;

use pleach_baselines::sharing::{Indolent, IndolentConfig};
use pleach_env::bound::LowerBounds;
use pleach_env::workload::generate::{GeneratorConfig, Paper, SiaConfig, generate};
use pleach_env::workload::{JobSpec, Outcome, Workload};
use pleach_env::{Seed, SimConfig, SimResult, simulate_planner};
use pleach_scheduler::cluster::{Capabilities, Cluster, Placement, Sharing, Slice, Submission};
use pleach_scheduler::cluster_spec::{ClusterSpec, Load, ModelClass, Resources};
use pleach_scheduler::physics::interference::PairEntry;
use pleach_scheduler::physics::mixed::Fusion;
use pleach_scheduler::{ClassId, Estimate, JobId, NodeId, Planner, PolicyError, Provenance, TenantId, Time};
use serde_json::Value;

/// Checks the cluster after every plan.
struct Checked(Box<dyn Planner>);

impl Planner for Checked {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        self.0.plan(cluster)?;
        cluster.check();
        Ok(())
    }
    fn wake_at(&self, cluster: &Cluster) -> Option<Time> {
        self.0.wake_at(cluster)
    }
}

fn run(workload: &Workload, name: &str) -> SimResult {
    let entry = pleach_baselines::find(name).unwrap();
    let mut config = SimConfig::default();
    config.capabilities = config.capabilities.with_actions(entry.requirements);
    let mut planner = Checked((entry.make)(&Value::Null).unwrap());
    simulate_planner(workload, &config, &mut planner).unwrap()
}

/// Every pair of classes takes so many times as long.
fn force(workload: &mut Workload, factor: f64) {
    let names: Vec<String> = workload.classes.iter().map(|class| class.name.clone()).collect();
    let gpus = workload.cluster.gpu_types.clone();
    workload.cluster.pairs.clear();
    for gpu in &gpus {
        for victim in &names {
            for neighbour in &names {
                workload.cluster.pairs.push(PairEntry {
                    gpu_type: gpu.name.clone(),
                    victim: victim.clone(),
                    neighbour: neighbour.clone(),
                    speed: 1.0 / factor,
                });
            }
        }
    }
}

/// Jobs of one GPU and one class, all at time 0, on one GPU of 16 GiB.
fn one_gpu(run_times_s: &[f64], factor: f64) -> Workload {
    let job = |(number, run_time_s): (usize, &f64)| JobSpec {
        id: number.to_string(),
        submit: Time::ZERO,
        num_gpus: 1,
        run_time_s: *run_time_s,
        estimate_s: None,
        tenant: 0,
        class: 0,
        user: None,
        outcome: Outcome::Completed,
        resources: Resources::WHOLE_GPU,
        observed: None,
    };
    let mut workload = Workload {
        name: "by hand".into(),
        cluster: ClusterSpec::uniform(1, 1, 1),
        classes: vec![ModelClass::default()],
        jobs: run_times_s.iter().enumerate().map(job).collect(),
    };
    workload.cluster.gpu_types[0].memory_gib = 16.0;
    force(&mut workload, factor);
    workload
}

fn finishes(result: &SimResult) -> Vec<f64> {
    result
        .jobs
        .iter()
        .map(|job| (job.finish_s * 1e3).round() / 1e3)
        .collect()
}

#[test]
fn the_test_of_pairs_and_taking_the_first_differ_by_hand() {
    // Two jobs of 100 s. At 1.8 it is better to wait: 100 and 200 s, against 180 both. At 1.2: 120 both.
    let dear = one_gpu(&[100.0, 100.0], 1.8);
    assert_eq!(finishes(&run(&dear, "sjf-bsbf")), [100.0, 200.0]);
    assert_eq!(finishes(&run(&dear, "sjf-ffs")), [180.0, 180.0]);
    let cheap = one_gpu(&[100.0, 100.0], 1.2);
    for name in ["sjf-bsbf", "sjf-ffs"] {
        assert_eq!(finishes(&run(&cheap, name)), [120.0, 120.0]);
    }
    // At 2 a short job still gains beside a long one. 30 s runs first alone; 50 s beside it would wait less but end later:
    // (25 + 0.75 x 60 = 70 against 30 + 25 = 55), so it waits; so does 1000 s. At 30 s, 50 s runs alone; 1000 s waits.
    let mixed = one_gpu(&[1000.0, 30.0, 50.0], 2.0);
    assert_eq!(finishes(&run(&mixed, "sjf-bsbf")), [1080.0, 30.0, 80.0]);
    // A job of 10 s that comes while the long one runs: at half the speed it ends after 20 s, and costs the long one 10 s.
    let mut late = one_gpu(&[1000.0, 10.0], 2.0);
    late.jobs[1].submit = Time::from_secs_f64(100.0);
    assert_eq!(finishes(&run(&late, "sjf-bsbf")), [1010.0, 120.0]);
}

#[test]
fn nobody_runs_slower_than_its_company_and_its_placement_allow_and_memory_is_never_exceeded() {
    for (seed, factor) in [(1, 1.1), (2, 1.4), (3, 1.9)] {
        // 64 GPUs, 120 jobs in 48 minutes.
        let crowd = GeneratorConfig::Paper(Paper::SiaPhilly(SiaConfig {
            num_jobs: Some(120),
            jobs_per_hour: Some(150.0),
            heterogeneous: false,
            ..SiaConfig::default()
        }));
        let mut workload = generate(&crowd, Seed(seed)).unwrap();
        force(&mut workload, factor);
        // Every third job fills most of a GPU's memory, so it cannot be packed beside another such job.
        let memory_gib = workload.cluster.gpu_types[0].memory_gib;
        for (number, job) in workload.jobs.iter_mut().enumerate() {
            job.resources.gpu_memory_gib = if number % 3 == 0 { 0.7 } else { 0.25 } * memory_gib;
        }
        let mut num_shared = 0;
        for name in ["sjf-bsbf", "sjf-ffs", "indolent"] {
            let result = run(&workload, name);
            for (outcome, job) in result.jobs.iter().zip(&workload.jobs) {
                let class = &workload.classes[usize::from(job.class)];
                let worst = class.locality.more_nodes.min(class.locality.cross_rack);
                let fastest = class.speed.iter().copied().fold(0.0, f64::max);
                let slowest = class
                    .speed
                    .iter()
                    .copied()
                    .filter(|speed| *speed > 0.0)
                    .fold(fastest, f64::min);
                let ran_s = outcome.finish_s - outcome.first_start_s;
                let (least_s, most_s) = (
                    job.run_time_s / fastest,
                    job.run_time_s * factor / slowest / worst,
                );
                assert!(
                    ran_s >= least_s - 1e-3 && ran_s <= most_s + 1e-3,
                    "{name}: {ran_s} s is not in {least_s} to {most_s}"
                );
                // A placement slows gangs only.
                num_shared += usize::from(job.num_gpus == 1 && ran_s > 1.02 * least_s + 1.0);
            }
        }
        assert!(num_shared > 0, "nobody shared");
    }
}

#[test]
fn fused_jobs_take_what_the_curve_says_and_the_lower_bounds_know_of_it() {
    // HFTA's best on 16 GiB: 30 jobs in one program, each at 15.1 / (30 + 14.1) of its speed; 31 jobs are one more round.
    let mut workload = one_gpu(&[600.0; 31], 1.0);
    workload.classes[0].fusion = Some(Fusion::HFTA_BEST);
    let result = run(&workload, "hfta");
    let together_s = 600.0 * 44.1 / 15.1;
    for outcome in &result.jobs[..30] {
        assert!((outcome.finish_s - together_s).abs() < 1e-3);
    }
    assert!((result.jobs[30].finish_s - (together_s + 600.0)).abs() < 1e-3);
    // One after the other: 31 x 600 s. The bound is for a limitless program, 15.1 at once.
    let capabilities = Capabilities {
        sharing: Sharing::Mps,
        ..Capabilities::DEFAULT
    };
    let bounds = LowerBounds::of(&workload, &capabilities);
    assert!((bounds.makespan_s - 31.0 * 600.0 / 15.1).abs() < 1e-3);
    assert!(bounds.makespan_s <= result.metrics.makespan_s && bounds.avg_jct_s <= result.metrics.avg_jct_s);
}

#[test]
fn gandiva_packs_by_trial_and_takes_turns_otherwise() {
    // Two jobs of 600 s. At 1.2 they stay together: 720 s both. At 2.5 the pair does 0.8 and is taken apart after 60 s (each has
    // done 24 s); then turns of 600 s, as a restart costs 30 s: the second waited, and has 576 s and a restart to go.
    let cheap = one_gpu(&[600.0, 600.0], 1.2);
    assert_eq!(finishes(&run(&cheap, "gandiva")), [720.0, 720.0]);
    let dear = one_gpu(&[600.0, 600.0], 2.5);
    let result = run(&dear, "gandiva");
    // The first has 576 s left at 60 s and ends at 636 s, unless its turn is over at 600 s: it began at 0 s.
    // At 600 s it has 36 s left and gives way; the second runs from 600 s, 30 + 576 s, to 1,206 s; a turn is 600 s, so at 1,200 s
    // the first takes over: 30 + 36 s to 1,266 s; then the second: 30 + 6 s.
    assert_eq!(finishes(&result), [1266.0, 1302.0]);
}

/// The rows of a table by column name; none where it is missing.
fn rows(path: &str) -> Option<Vec<BTreeMap<String, String>>> {
    let path = pleach_tests::data(path)?;
    let mut file = File::open(&path).unwrap();
    let mut text = String::new();
    if path.extension().is_some_and(|end| end == "gz") {
        flate2::read::GzDecoder::new(file)
            .read_to_string(&mut text)
            .unwrap();
    } else {
        file.read_to_string(&mut text).unwrap();
    }
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    Some(reader.deserialize().map(Result::unwrap).collect())
}

/// A job of the recorded run.
struct Recorded {
    num_gpus: u32,
    memory_mib: f64,
    duration_s: f64,
    label: u16,
    start_s: f64,
    end_s: f64,
    placement: Placement,
}

fn number(row: &BTreeMap<String, String>, key: &str) -> f64 {
    row[key].parse().unwrap()
}

/// `[{0: [1, 3]}]` and the like.
fn placement(text: &str) -> Placement {
    let mut slices = Placement::new();
    for part in text.split('{').skip(1) {
        let (node, gpus) = part.split_once(':').unwrap();
        let gpus = gpus.trim_matches(|sign: char| !sign.is_ascii_digit());
        let mask = gpus
            .split(',')
            .fold(0, |mask, gpu| mask | 1 << gpu.trim().parse::<u32>().unwrap());
        slices.push(Slice {
            node: NodeId(node.trim().parse().unwrap()),
            gpus: mask,
        });
    }
    slices
}

/// The recorded jobs in the order of their starts; those of one second by GPU time, as the queue was.
fn recorded() -> Option<Vec<Recorded>> {
    let labels = rows("lucid/single_data.csv")?;
    let inputs = rows("golden/lucid/inputs/lucid_200_2x8.csv.gz")?;
    let outputs = rows("golden/lucid/lucid_200_2x8/lucid/jobs.csv.gz")?;
    let key =
        |row: &BTreeMap<String, String>| ["model", "dataset", "batchsize", "amp"].map(|key| row[key].clone());
    let mut jobs: Vec<Recorded> = Vec::new();
    for (input, output) in inputs.iter().zip(&outputs) {
        assert_eq!(input["job_id"], output["job_id"]);
        let label = labels.iter().find(|row| key(row) == key(input)).unwrap();
        jobs.push(Recorded {
            num_gpus: number(output, "gpu_num") as u32,
            memory_mib: number(input, "gmem"),
            duration_s: number(output, "duration_s"),
            label: number(label, "label") as u16,
            start_s: number(output, "start_s"),
            end_s: number(output, "end_s"),
            placement: placement(&output["nodes"]),
        });
    }
    jobs.sort_by(|a, b| {
        let gpu_time_s = |job: &Recorded| job.duration_s * f64::from(job.num_gpus);
        a.start_s
            .total_cmp(&b.start_s)
            .then(gpu_time_s(a).total_cmp(&gpu_time_s(b)))
    });
    Some(jobs)
}

/// 200 jobs on 16 GPUs under Lucid's own simulator: at every start our rule names the same partner, or none where the job
/// started alone. The run's defect is respected: a job whose partner was there before it and left is never joined again.
#[test]
fn lucids_released_simulator_packs_the_same_pairs() {
    let Some(recorded) = recorded() else { return };
    let classes = [0.2, 0.5, 0.9].map(|utilisation| ModelClass {
        name: format!("busy {utilisation}"),
        load: Load {
            utilisation,
            bandwidth: 0.0,
        },
        ..ModelClass::default()
    });
    let mut spec = ClusterSpec::uniform(2, 8, 2);
    spec.gpu_types[0].memory_gib = 24.0;
    let capabilities = Capabilities {
        sharing: Sharing::Mps,
        ..Capabilities::DEFAULT
    };
    let mut cluster = Cluster::new(&spec, &classes, capabilities).unwrap();
    let planner = Indolent::new(IndolentConfig::default()).unwrap();
    let mut running: Vec<(f64, JobId)> = Vec::new();
    let mut spoilt: Vec<JobId> = Vec::new();
    let mut num_pairs = 0;
    for job in &recorded {
        running.sort_by(|a, b| a.0.total_cmp(&b.0));
        while running.first().is_some_and(|first| first.0 <= job.start_s) {
            let (_, ended) = running.remove(0);
            let first = cluster.job(ended).placement[0];
            for other in cluster.residents(first.node, first.gpus.trailing_zeros()) {
                if other > ended {
                    spoilt.push(other);
                }
            }
            cluster.finish(ended);
        }
        cluster.advance(Time::from_secs_f64(job.start_s));
        let request = Submission {
            tenant: TenantId(0),
            class: ClassId(job.label),
            num_gpus: job.num_gpus,
            estimate_s: Estimate {
                value: job.duration_s,
                provenance: Provenance::Oracle,
            },
            resources: Resources {
                gpu_memory_gib: job.memory_mib / 1024.0,
                ..Resources::WHOLE_GPU
            },
        };
        let id = cluster.submit(request).unwrap();
        let partners = planner.partners(&cluster, id);
        let ours = partners.into_iter().find(|partner| !spoilt.contains(partner));
        let first = job.placement[0];
        let theirs = cluster
            .residents(first.node, first.gpus.trailing_zeros())
            .first()
            .copied();
        assert_eq!(ours, theirs, "the start at {} s", job.start_s);
        num_pairs += usize::from(theirs.is_some());
        cluster.start(id, job.placement.clone());
        cluster.check();
        running.push((job.end_s, id));
    }
    assert_eq!((recorded.len(), num_pairs), (200, 84));
}
