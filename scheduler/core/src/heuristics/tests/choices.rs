//! Heuristics that choose a size, a share or a type, worked by hand.

use crate::actions::ActionKind;
use crate::cluster::{Capabilities, Cluster, JobState, Submission};
use crate::cluster_spec::{ClusterSpec, ElasticJob, GpuTypeSpec, ModelClass, Resources};
use crate::estimate::{Estimate, Provenance};
use crate::heuristics::by_name;
use crate::ids::{ClassId, JobId, TenantId, Time};
use crate::pass::Pass;
use crate::physics::goodput::Elastic;
use crate::physics::sensitivity::Sensitivity;

fn submit(cluster: &mut Cluster, num_gpus: u32, run_s: f64, cpu_cores: f64) -> JobId {
    let request = Submission {
        tenant: TenantId(0),
        class: ClassId(0),
        num_gpus,
        estimate_s: Estimate {
            value: run_s,
            provenance: Provenance::Oracle,
        },
        resources: Resources {
            cpu_cores,
            ..Resources::WHOLE_GPU
        },
    };
    cluster.submit(request).unwrap()
}

fn run(cluster: &mut Cluster, name: &str) {
    Pass::new().run(cluster, by_name(name).unwrap().as_mut()).unwrap();
    cluster.check();
}

#[test]
fn a_moldable_job_takes_the_size_at_which_it_ends_soonest_if_its_gpus_are_used_well() {
    // A step takes 1 s whatever the batch up to 8 a GPU, and of a batch B 8 / (7 + B) is useful: 64 / 15 = 4.27 samples a
    // second on one GPU, 128 / 23 = 5.57 on two, 256 / 39 = 6.56 on four. Per GPU, over one: 1, 0.65 and 0.38.
    let profile = Elastic {
        noise_at_start: 7.0,
        noise_at_end: 7.0,
        ..Elastic::proportional(8)
    };
    let class = ModelClass {
        elastic: Some(ElasticJob {
            gpus_max: 8,
            profile: profile.into(),
        }),
        ..ModelClass::default()
    };
    let held = |num_gpus: u32, asked: u32| {
        let spec = ClusterSpec::uniform(1, num_gpus, 1);
        let mut cluster = Cluster::new(&spec, std::slice::from_ref(&class), Capabilities::default()).unwrap();
        let job = submit(&mut cluster, asked, 100.0, 0.0);
        run(&mut cluster, "sjf-moldable");
        cluster.job(job).num_held
    };
    assert_eq!(held(8, 1), 2, "twice is faster and efficient enough");
    assert_eq!(held(8, 2), 2, "four would be faster, but at 0.38");
    assert_eq!(held(8, 4), 2, "half of what is asked for is efficient");
    assert_eq!(held(1, 1), 1, "no more is there");
    assert_eq!(held(8, 8), 4, "no size is efficient: the better of 4 and 8");
}

#[test]
fn half_a_moldable_job_starts_where_the_whole_does_not_fit() {
    // 16 samples a second from two GPUs on: of 2, 4 and 8 GPUs the job takes 2.
    let profile = Elastic::proportional(2);
    let class = ModelClass {
        elastic: Some(ElasticJob {
            gpus_max: 8,
            profile: profile.into(),
        }),
        ..ModelClass::default()
    };
    let mut cluster =
        Cluster::new(&ClusterSpec::uniform(1, 4, 1), &[class], Capabilities::default()).unwrap();
    let short = submit(&mut cluster, 1, 10.0, 0.0);
    let wide = submit(&mut cluster, 4, 100.0, 0.0);
    run(&mut cluster, "sjf-moldable");
    assert_eq!((cluster.job(short).num_held, cluster.job(wide).num_held), (2, 2));
    assert!((cluster.job(wide).rate - 1.0).abs() < 1e-6, "as fast as on four");
}

#[test]
fn the_first_hungry_job_takes_the_cores_that_it_can_use_and_the_next_what_it_asked_for() {
    // 4 GPUs, 12 cores: 3 cores give a speed of 1, 9 cores 2.2.
    let mut spec = ClusterSpec::uniform(1, 4, 1);
    (spec.node_groups[0].cpu_cores, spec.node_groups[0].memory_gib) = (12.0, 64.0);
    let class = ModelClass {
        sensitivity: Some(Sensitivity {
            cores: vec![1.0, 3.0, 9.0],
            memory_gib: vec![8.0],
            speed: vec![0.4, 1.0, 2.2],
            storage: None,
        }),
        ..ModelClass::default()
    };
    let mut cluster = Cluster::new(&spec, &[class], Capabilities::default()).unwrap();
    let jobs = [300.0, 100.0, 200.0].map(|run_s| submit(&mut cluster, 1, run_s, 3.0));
    run(&mut cluster, "sjf-tuned");
    let rates = jobs.map(|job| cluster.job(job).rate);
    for (rate, expected) in rates.into_iter().zip([0.0, 2.2, 1.0]) {
        assert!((rate - expected).abs() < 1e-9, "{rates:?}");
    }
    assert_eq!(
        cluster.job(jobs[0]).state,
        JobState::Pending,
        "no core is left for the third"
    );
}

#[test]
fn a_job_waits_for_the_type_on_which_it_ends_sooner_and_others_go_first() {
    // One node of 4 GPUs of each type; the new ones are four times as fast and busy until 100 s. 800 s end after 800 s here
    // and 100 + 200 s there; 120 s after 120 s here and 130 s there; 150 s after 150 s here and 137.5 s there.
    let mut spec = ClusterSpec::uniform(1, 4, 1);
    let kind = |name: &str| GpuTypeSpec {
        name: name.into(),
        memory_gib: 16.0,
        mig: None,
    };
    spec.gpu_types = ["old", "new"].map(kind).into();
    spec.node_groups[0].gpu_type = "old".into();
    let mut group = spec.node_groups[0].clone();
    group.gpu_type = "new".into();
    spec.node_groups.push(group);
    let class = ModelClass {
        speed: vec![1.0, 4.0],
        ..ModelClass::default()
    };
    let mut cluster = Cluster::new(&spec, &[class], Capabilities::default()).unwrap();
    let first = submit(&mut cluster, 4, 400.0, 0.0);
    run(&mut cluster, "sjf-best-type");
    assert_eq!(cluster.job(first).gpu_type.0, 1);
    let jobs = [800.0, 120.0, 150.0].map(|run_s| submit(&mut cluster, 1, run_s, 0.0));
    run(&mut cluster, "sjf-best-type");
    let states = jobs.map(|job| cluster.job(job).state);
    assert_eq!(states, [JobState::Pending, JobState::Running, JobState::Pending]);
    let greedy = |name: &str| {
        let mut other = cluster.clone();
        run(&mut other, name);
        jobs.map(|job| other.job(job).state)
    };
    assert_eq!(greedy("sjf"), [JobState::Running; 3]);
    // When the new ones are free, both go there.
    cluster.advance(Time::from_secs_f64(100.0));
    cluster.finish(first);
    run(&mut cluster, "sjf-best-type");
    for job in [jobs[0], jobs[2]] {
        assert_eq!(
            (cluster.job(job).state, cluster.job(job).gpu_type.0),
            (JobState::Running, 1)
        );
    }
}

#[test]
fn a_job_grows_while_nobody_waits_and_gives_the_gpus_back_that_do_little_when_somebody_comes() {
    // As above: 1 on one GPU, 1.30 on two, 1.54 on four, over one. The last half of two GPUs does 0.30 of one alone, that of four 0.12.
    let profile = Elastic {
        noise_at_start: 7.0,
        noise_at_end: 7.0,
        ..Elastic::proportional(8)
    };
    let class = ModelClass {
        elastic: Some(ElasticJob {
            gpus_max: 4,
            profile: profile.into(),
        }),
        ..ModelClass::default()
    };
    let capabilities = Capabilities::DEFAULT.with(ActionKind::Resize);
    let mut cluster = Cluster::new(&ClusterSpec::uniform(1, 4, 1), &[class], capabilities).unwrap();
    let long = submit(&mut cluster, 2, 10_000.0, 0.0);
    run(&mut cluster, "sjf-resize");
    assert_eq!(cluster.job(long).num_held, 1, "half is the most efficient size");
    for (at_s, held) in [(100.0, 2), (200.0, 4), (300.0, 4)] {
        cluster.advance(Time::from_secs_f64(at_s));
        run(&mut cluster, "sjf-resize");
        assert_eq!(cluster.job(long).num_held, held, "at {at_s} s");
    }
    let [one, two] = [1, 1].map(|gpus| submit(&mut cluster, gpus, 500.0, 0.0));
    run(&mut cluster, "sjf-resize");
    let held = [long, one, two].map(|job| cluster.job(job).num_held);
    assert_eq!(held, [2, 1, 1], "both are there at once");
    cluster.advance(Time::from_secs_f64(400.0));
    let third = submit(&mut cluster, 1, 500.0, 0.0);
    run(&mut cluster, "sjf-resize");
    let held = [long, one, two, third].map(|job| cluster.job(job).num_held);
    assert_eq!(held, [1, 1, 1, 1]);
}
