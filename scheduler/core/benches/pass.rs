//! What a decision costs on a busy cluster of 256 GPUs: a heuristic's pass, and the candidates and features of a learned
//! policy.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use pleach_scheduler::cluster::{Capabilities, Cluster, Submission};
use pleach_scheduler::cluster_spec::{ClusterSpec, LocalityFactors, ModelClass, Resources, TenantSpec};
use pleach_scheduler::pass::Pass;
use pleach_scheduler::policy::Needs;
use pleach_scheduler::{ActionKind, ClassId, Estimate, Provenance, TenantId, Time, heuristics};

/// Gang sizes as in production traces: most jobs are small. *Assumed* shares.
const GANGS: [u32; 12] = [1, 1, 1, 1, 1, 2, 2, 4, 4, 8, 8, 16];

/// 32 nodes of 8 GPUs, four tenants; `num_pending` jobs wait beside `num_free` free GPUs at most.
fn busy_cluster(num_pending: usize, num_free: u32) -> Cluster {
    let mut spec = ClusterSpec::uniform(32, 8, 8);
    spec.tenants = (0..4)
        .map(|number| TenantSpec {
            name: format!("tenant{number}"),
            quota_gpus: 64,
        })
        .collect();
    let class = ModelClass {
        name: "any".into(),
        speed: vec![1.0],
        locality: LocalityFactors::PHILLY,
        ..ModelClass::default()
    };
    let capabilities = Capabilities {
        ..Capabilities::DEFAULT.with(ActionKind::Preempt)
    };
    let mut cluster = Cluster::new(&spec, &[class], capabilities).expect("the description is valid");
    // A fixed sequence of sizes and times; xorshift, so that they follow no pattern.
    let mut state = 88_172_645_463_325_252_u64;
    let mut next = |bound: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % bound
    };
    let mut submit = |cluster: &mut Cluster| {
        let magnitude = 10_u64.pow(1 + next(3) as u32);
        let run_s = 60.0 * (1 + next(magnitude)) as f64;
        let request = Submission {
            tenant: TenantId(next(4) as u16),
            class: ClassId(0),
            num_gpus: GANGS[next(GANGS.len() as u64) as usize],
            estimate_s: Estimate {
                value: run_s,
                provenance: Provenance::Predicted,
            },
            resources: Resources::WHOLE_GPU,
        };
        cluster.submit(request).expect("the request is valid");
    };
    let mut policy = heuristics::by_name("fifo").expect("fifo is known");
    let mut pass = Pass::new();
    while cluster.num_free() > num_free {
        if cluster.num_pending() == 0 {
            submit(&mut cluster);
        }
        cluster.advance(cluster.now() + Time::from_secs_f64(1.0));
        pass.run(&mut cluster, policy.as_mut())
            .expect("heuristics do not fail");
        if cluster.num_pending() > 0 && cluster.num_free() > num_free {
            break;
        }
    }
    while cluster.num_pending() < num_pending {
        cluster.advance(cluster.now() + Time::from_secs_f64(1.0));
        submit(&mut cluster);
    }
    cluster
}

fn passes(criterion: &mut Criterion) {
    for name in ["fifo", "sjf", "easy", "srtf"] {
        criterion.bench_function(&format!("pass/{name}"), |bencher| {
            let (cluster, mut policy) = (busy_cluster(40, 24), heuristics::by_name(name).expect("known"));
            let mut pass = Pass::new();
            bencher.iter_batched_ref(
                || cluster.clone(),
                |cluster| pass.run(cluster, policy.as_mut()),
                BatchSize::SmallInput,
            );
        });
    }
}

fn observations(criterion: &mut Criterion) {
    for (what, num_pending, num_free) in [("typical", 12, 6), ("crowded", 200, 24), ("full", 200, 0)] {
        let cluster = busy_cluster(num_pending, num_free);
        let (needs, mut pass) = (Needs::full(), Pass::new());
        pass.open(&cluster, &needs);
        let num_candidates = pass.candidates().len();
        criterion.bench_function(&format!("enumerate/{what}/{num_candidates}"), |bencher| {
            bencher.iter(|| pass.open(&cluster, &needs));
        });
        criterion.bench_function(&format!("observe/{what}/{num_candidates}"), |bencher| {
            bencher.iter(|| pass.observe(&cluster).as_ref().global[0]);
        });
    }
}

criterion_group!(benches, passes, observations);
criterion_main!(benches);
