//! Unopposed starts, worked by hand: which jobs start although the policy would rather hold, and for which it may still wait.

use crate::candidate::{Candidate, CandidateKind};
use crate::cluster::tests::{cluster_of, submit};
use crate::cluster::{Capabilities, Cluster, JobState, Sharing, Slice, Submission};
use crate::cluster_spec::{
    ClusterSpec, GpuTypeSpec, LocalityFactors, ModelClass, NodeGroup, Resources, TenantSpec,
};
use crate::error::PolicyError;
use crate::estimate::{Estimate, Provenance};
use crate::heuristics::tests::world::{cluster_with, events, happen};
use crate::ids::{ClassId, JobId, NodeId, TenantId};
use crate::pass::{Pass, PassState};
use crate::policy::{ChoiceRule, DecisionPoint, Needs, Policy};
use proptest::prelude::*;

/// Whatever its function says of a candidate.
struct Scored {
    unopposed_starts: bool,
    score: fn(&Candidate) -> f32,
}

impl Policy for Scored {
    fn name(&self) -> &'static str {
        "scored"
    }

    fn needs(&self) -> Needs {
        Needs {
            observation: false,
            ..Needs::full()
        }
    }

    fn choice_rule(&self) -> ChoiceRule<'_> {
        ChoiceRule {
            unopposed_starts: self.unopposed_starts,
            ..ChoiceRule::PLAIN
        }
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        for (score, row) in scores.iter_mut().zip(point.candidates.iter()) {
            *score = (self.score)(row);
        }
        Ok(())
    }
}

/// Would rather hold, and among starts prefers loose ones.
fn idler(unopposed_starts: bool) -> Scored {
    Scored {
        unopposed_starts,
        score: |row| {
            if row.kind == CandidateKind::Hold {
                9.0
            } else {
                looseness(row)
            }
        },
    }
}

/// Would rather start, and that on a loose place.
fn spreader(unopposed_starts: bool) -> Scored {
    Scored {
        unopposed_starts,
        score: |row| {
            if row.kind == CandidateKind::Hold {
                -9.0
            } else {
                looseness(row)
            }
        },
    }
}

fn looseness(row: &Candidate) -> f32 {
    row.facts.map_or(-1.0, |facts| 1.0 - facts.locality as f32)
}

/// Starts a job on GPUs of some nodes.
fn start(cluster: &mut Cluster, slices: &[(u32, u64)], run_s: f64) -> JobId {
    let num_gpus = slices.iter().map(|(_, gpus)| gpus.count_ones()).sum();
    let job = submit(cluster, num_gpus, run_s);
    let placement = slices.iter().map(|(node, gpus)| Slice {
        node: NodeId(*node),
        gpus: *gpus,
    });
    cluster.start(job, placement.collect());
    job
}

/// The jobs that start in a pass of a policy that would rather hold, in their order.
fn started(cluster: &mut Cluster) -> Vec<JobId> {
    let pending: Vec<JobId> = cluster.pending().collect();
    Pass::new().run(cluster, &mut idler(false)).unwrap();
    assert_eq!(cluster.num_pending(), pending.len(), "left to itself it holds");
    Pass::new().run(cluster, &mut idler(true)).unwrap();
    cluster.check();
    let runs = |job: &JobId| cluster.job(*job).state == JobState::Running;
    pending.into_iter().filter(runs).collect()
}

#[test]
fn a_job_that_waits_alone_starts_at_the_tightest_place() {
    // 64 GPUs in two racks; 8 are taken. On the first three nodes of a rack, 24 GPUs, there is no better place.
    let mut cluster = cluster_of(&ClusterSpec::uniform(8, 8, 4));
    start(&mut cluster, &[(0, 0xff)], 1e5);
    let wide = submit(&mut cluster, 24, 1e6);
    assert_eq!(started(&mut cluster), [wide]);
    assert_eq!(cluster.job(wide).rate, 1.0);
}

#[test]
fn a_long_job_starts_only_where_it_leaves_two_fifths_and_a_short_one_in_any_case() {
    // 64 GPUs, 8 of them taken: 30 more leave two fifths, 31 do not.
    for (num_gpus, run_s, starts) in [
        (30, 1e6, true),
        (31, 1e6, false),
        (31, 3601.0, false),
        (31, 3600.0, true),
        (56, 3600.0, true),
    ] {
        let mut cluster = cluster_of(&ClusterSpec::uniform(8, 8, 8));
        start(&mut cluster, &[(0, 0xff)], 1e5);
        let job = submit(&mut cluster, num_gpus, run_s);
        assert_eq!(started(&mut cluster) == [job], starts, "{num_gpus} {run_s}");
    }
}

#[test]
fn jobs_that_fit_side_by_side_all_start_and_one_more_gpu_asked_for_keeps_all_waiting() {
    for (last, starts) in [(4, 5), (5, 0)] {
        let mut cluster = cluster_of(&ClusterSpec::uniform(8, 8, 4));
        start(&mut cluster, &[(0, 0xff)], 1e5);
        let jobs = [8, 16, 4, 24, last].map(|num_gpus| submit(&mut cluster, num_gpus, 600.0));
        assert_eq!(started(&mut cluster).len(), starts);
        let is_tight = |job: &JobId| cluster.job(*job).rate == 1.0;
        assert_eq!(jobs.iter().filter(|job| is_tight(job)).count(), starts);
    }
}

#[test]
fn who_has_no_tight_place_may_wait_for_one() {
    // Two nodes of 4, half of each is free: a job of 2 has a tight place, one of 4 has none.
    let mut cluster = cluster_of(&ClusterSpec::uniform(2, 4, 2));
    for node in [0, 1] {
        start(&mut cluster, &[(node, 0b0011)], 1e5);
    }
    let four = submit(&mut cluster, 4, 600.0);
    assert_eq!(started(&mut cluster), []);
    cluster.withdraw(four);
    let two = submit(&mut cluster, 2, 600.0);
    assert_eq!(started(&mut cluster), [two]);
}

#[test]
fn a_gang_that_does_not_fit_wants_these_gpus_too() {
    let mut cluster = cluster_of(&ClusterSpec::uniform(1, 8, 1));
    start(&mut cluster, &[(0, 0x0f)], 1000.0);
    let gang = submit(&mut cluster, 8, 500.0);
    let small = submit(&mut cluster, 1, 500.0);
    assert_eq!(started(&mut cluster), []);
    cluster.withdraw(gang);
    assert_eq!(started(&mut cluster), [small]);
}

#[test]
fn a_start_that_would_break_the_tight_place_of_another_is_opposed() {
    // Three nodes of 4 in one rack; 4, 1 and 1 GPUs are free. The best node for a job of 2 is the empty one, which is the only
    // tight place of the job of 4, whose start would leave the other no tight place either.
    let mut cluster = cluster_of(&ClusterSpec::uniform(3, 4, 3));
    for node in [1, 2] {
        start(&mut cluster, &[(node, 0b0111)], 200.0);
    }
    let (pair, four) = (submit(&mut cluster, 2, 600.0), submit(&mut cluster, 4, 600.0));
    assert_eq!(started(&mut cluster), []);
    cluster.withdraw(pair);
    assert_eq!(started(&mut cluster), [four]);
}

#[test]
fn a_job_is_not_spread_where_nobody_wants_the_tight_place() {
    // Four nodes of 4 in two racks; one rack is free but for 2 GPUs of each node, the other one altogether.
    let cluster = || {
        let mut cluster = cluster_of(&ClusterSpec::uniform(4, 4, 2));
        for node in [0, 1] {
            start(&mut cluster, &[(node, 0b0011)], 1e5);
        }
        cluster
    };
    let rates = |cluster: &mut Cluster, unopposed_starts: bool| {
        let jobs: Vec<JobId> = cluster.pending().collect();
        let mut policy = spreader(unopposed_starts);
        Pass::new().run(cluster, &mut policy).unwrap();
        jobs.iter().map(|job| cluster.job(*job).rate).collect::<Vec<_>>()
    };
    let spread = LocalityFactors::PHILLY.more_nodes;
    for (unopposed_starts, rate) in [(false, spread), (true, 1.0)] {
        let mut alone = cluster();
        submit(&mut alone, 4, 1e6);
        assert_eq!(rates(&mut alone, unopposed_starts), [rate]);
    }
    // A job of 8 beside it has the free rack for its tight place, which leaves none to the job of 4: the policy may spread it.
    for unopposed_starts in [false, true] {
        let mut contended = cluster();
        submit(&mut contended, 4, 1e6);
        submit(&mut contended, 8, 1e6);
        let across = LocalityFactors::PHILLY.cross_rack;
        assert_eq!(rates(&mut contended, unopposed_starts), [1.0, across]);
    }
}

#[test]
fn a_busy_faster_type_may_be_waited_for_and_a_free_one_not() {
    let mut spec = ClusterSpec::uniform(1, 4, 1);
    let kind = |name: &str| GpuTypeSpec {
        name: name.into(),
        memory_gib: 16.0,
        mig: None,
    };
    spec.gpu_types = ["old", "new"].map(kind).into();
    spec.node_groups = ["old", "new"]
        .map(|name| NodeGroup {
            gpu_type: name.into(),
            ..spec.node_groups[0].clone()
        })
        .into();
    let class = ModelClass {
        speed: vec![1.0, 2.0],
        ..ModelClass::default()
    };
    let mut cluster = Cluster::new(&spec, &[class], Capabilities::default()).unwrap();
    let runs = start(&mut cluster, &[(1, 0b1111)], 1e5);
    let job = submit(&mut cluster, 4, 10.0);
    assert_eq!(
        started(&mut cluster),
        [],
        "1e5 s are long, but that is the policy's business"
    );
    cluster.finish(runs);
    start(&mut cluster, &[(0, 0b1111)], 1e5);
    assert_eq!(started(&mut cluster), [job]);
    assert_eq!(cluster.job(job).gpu_type.0, 1);
}

#[test]
fn a_start_that_takes_the_quota_of_another_is_opposed() {
    // Two tenants with 4 GPUs each and no borrowing; tenant 0's jobs of 3 and 2 do not go into its quota together.
    let mut spec = ClusterSpec::uniform(1, 8, 1);
    spec.borrowing = false;
    spec.tenants = ["a", "b"]
        .map(|name| TenantSpec {
            name: name.into(),
            quota_gpus: 4,
        })
        .into();
    let mut cluster = cluster_of(&spec);
    let of = |cluster: &mut Cluster, tenant: u16, num_gpus: u32, run_s: f64| {
        let request = Submission {
            tenant: TenantId(tenant),
            class: ClassId(0),
            num_gpus,
            estimate_s: Estimate {
                value: run_s,
                provenance: Provenance::Oracle,
            },
            resources: Resources::WHOLE_GPU,
        };
        cluster.submit(request).unwrap()
    };
    let runs = of(&mut cluster, 1, 1, 100.0);
    let slice = Slice {
        node: NodeId(0),
        gpus: 1,
    };
    cluster.start(runs, [slice].into_iter().collect());
    let jobs = [of(&mut cluster, 0, 3, 600.0), of(&mut cluster, 0, 2, 600.0)];
    assert_eq!(started(&mut cluster), []);
    cluster.withdraw(jobs[1]);
    let other = of(&mut cluster, 1, 2, 600.0);
    assert_eq!(started(&mut cluster), [jobs[0], other]);
}

#[test]
fn where_counts_of_gpus_do_not_tell_nothing_is_said() {
    let with = |capabilities: Capabilities, change: &dyn Fn(&mut ModelClass), resources: Resources| {
        let mut class = ModelClass {
            locality: LocalityFactors::PHILLY,
            ..ModelClass::default()
        };
        change(&mut class);
        let mut spec = ClusterSpec::uniform(2, 4, 2);
        (spec.node_groups[0].cpu_cores, spec.node_groups[0].memory_gib) = (16.0, 64.0);
        let mut cluster = Cluster::new(&spec, &[class], capabilities).unwrap();
        start(&mut cluster, &[(0, 0b1)], 100.0);
        let estimate_s = Estimate {
            value: 600.0,
            provenance: Provenance::Oracle,
        };
        let request = Submission {
            tenant: TenantId(0),
            class: ClassId(0),
            num_gpus: 2,
            estimate_s,
            resources,
        };
        cluster.submit(request).unwrap();
        started(&mut cluster).len()
    };
    let same = |_: &mut ModelClass| {};
    assert_eq!(with(Capabilities::DEFAULT, &same, Resources::WHOLE_GPU), 1);
    let sharing = Capabilities {
        sharing: Sharing::Mps,
        ..Capabilities::DEFAULT
    };
    assert_eq!(
        with(sharing, &same, Resources::WHOLE_GPU),
        1,
        "alone it shares with nobody"
    );
    let consolidated = Capabilities {
        consolidated: true,
        ..Capabilities::DEFAULT
    };
    assert_eq!(with(consolidated, &same, Resources::WHOLE_GPU), 0);
    let hungry = Resources {
        cpu_cores: 5.0,
        ..Resources::WHOLE_GPU
    };
    assert_eq!(with(Capabilities::DEFAULT, &same, hungry), 0);
    let elastic = |class: &mut ModelClass| {
        class.elastic = Some(crate::cluster_spec::ElasticJob {
            gpus_max: 4,
            profile: crate::physics::goodput::Elastic::proportional(2).into(),
        });
    };
    assert_eq!(with(Capabilities::DEFAULT, &elastic, Resources::WHOLE_GPU), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn who_makes_unopposed_starts_chooses_what_it_may(
        cluster in any::<bool>().prop_flat_map(|share| {
            let sharing = if share { Sharing::Mps } else { Sharing::Off };
            cluster_with(2, any::<bool>().boxed(), Capabilities { sharing, ..Capabilities::DEFAULT })
        }),
        events in events(40),
    ) {
        let mut cluster = cluster;
        let (mut free, mut bound) = (idler(false), idler(true));
        for event in events {
            happen(&mut cluster, event);
            let mut pass = Pass::new();
            let mut state = pass.open(&cluster, &bound.needs());
            while state == PassState::Open {
                let own = pass.decide(&cluster, &mut free).unwrap();
                let choice = pass.decide(&cluster, &mut bound).unwrap();
                prop_assert!(pass.candidates().is_admissible(choice));
                if choice != own {
                    // Only a hold gives way, and only to a start.
                    prop_assert_eq!(own, 0);
                    prop_assert_eq!(pass.candidates().get(choice).unwrap().kind, CandidateKind::Start);
                }
                state = pass.act(&mut cluster, &bound.needs(), choice);
            }
            cluster.check();
        }
    }
}
