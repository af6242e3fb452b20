//! A cluster that is set up from the records of its jobs decides like the one that they were taken of, whatever has happened to it.

use proptest::prelude::*;

use super::decision::{Action, Decision};
use super::rates::mixed_tests::{Move, carry_out, cluster, moves};
use super::tests::{cluster_of, submit};
use super::*;
use crate::actions::ActionKind;
use crate::candidate::CandidateSet;
use crate::cluster_spec::ElasticJob;
use crate::heuristics::{by_name, names};
use crate::ids::TenantId;
use crate::ids::{GpuTypeId, NodeId};
use crate::pass::{Pass, PassState};
use crate::physics::goodput::Elastic;
use crate::policy::Needs;

/// The cluster of the tests of everything at once, with a third class whose jobs are elastic.
fn rich_cluster(borrowing: bool, mixed_types: bool, sharing: Sharing) -> Cluster {
    let plain = cluster(borrowing, mixed_types);
    let mut classes = plain.classes().to_vec();
    classes.push(ModelClass {
        name: "elastic".into(),
        speed: vec![1.0, 1.5],
        elastic: Some(ElasticJob {
            gpus_max: 4,
            profile: Elastic::proportional(2).into(),
        }),
        ..ModelClass::default()
    });
    let capabilities = Capabilities {
        sharing,
        ..plain.capabilities()
    };
    Cluster::new(plain.spec(), &classes, capabilities).unwrap()
}

/// The needs of a policy that looks at everything.
fn all_needs() -> Needs {
    Needs {
        actions: ActionKind::ALL.into_iter().collect(),
        ..Needs::full()
    }
}

/// All that a candidate says, its jobs by their names.
fn candidates_of(cluster: &Cluster, set: &CandidateSet) -> Vec<String> {
    let name = |id: &JobId| cluster.job(*id).external.to_string();
    let rows = set.iter().enumerate();
    rows.map(|(index, row)| {
        let victims: Vec<String> = set.victims(row).iter().map(name).collect();
        format!(
            "{:?} {:?} {:?} {:?} {:?} {:?} {victims:?} {:?} {:?} {:?} {:?}",
            row.kind,
            row.job.as_ref().map(name),
            row.partner.as_ref().map(name),
            row.facts,
            row.granted,
            row.reserved_type,
            set.placement(row),
            row.wait_to_fit_s.to_bits(),
            row.heads,
            set.opportunity_cost(index),
        )
    })
    .collect()
}

/// What a pass of a heuristic decides; rows are no part of it.
fn decisions_of(cluster: &Cluster, name: &str) -> Vec<Decision> {
    let mut cluster = cluster.clone();
    let mut decisions = Vec::new();
    cluster.take_decisions(&mut decisions);
    decisions.clear();
    Pass::new()
        .run(&mut cluster, by_name(name).unwrap().as_mut())
        .unwrap();
    cluster.take_decisions(&mut decisions);
    cluster.check();
    for decision in &mut decisions {
        decision.row = JobId(u32::MAX);
    }
    decisions
}

fn observation_of(cluster: &Cluster) -> (Vec<String>, Vec<u32>) {
    let mut pass = Pass::new();
    pass.open(cluster, &all_needs());
    let seen = pass.observe(cluster).as_ref();
    let numbers = seen.global.iter().chain(seen.candidates);
    let bits = numbers.map(|number| number.to_bits()).collect();
    (candidates_of(cluster, pass.candidates()), bits)
}

/// All that is known of the jobs and of which jobs share GPUs, by the jobs' names and without the numbers of shapes.
fn rows_of(cluster: &Cluster) -> Vec<String> {
    let live = cluster
        .jobs
        .rows
        .iter()
        .filter(|job| job.state != JobState::Finished);
    let jobs = live.map(|job| {
        let shapes = (cluster.shape(job.shape), cluster.shape(job.granted));
        let mut job = job.clone();
        (job.shape, job.granted) = (ShapeId::PLAIN, ShapeId::PLAIN);
        if job.state == JobState::Running {
            // Looked up anew when it waits again.
            job.pace = WaitingPace::NONE;
        } else {
            // What is left of the last run says nothing.
            (job.gpu_type, job.is_forked, job.start_number) = (GpuTypeId(0), false, 0);
            (job.run_start, job.rate_since, job.cost_left_s) = (Time::ZERO, Time::ZERO, 0.0);
            (job.rate_alone, job.rate) = (0.0, 0.0);
        }
        format!("{shapes:?} {job:?}")
    });
    let shared = cluster.shared_gpus().map(|(row, gpu)| {
        let residents = gpu.residents.iter();
        let residents: Vec<_> = residents
            .map(|resident| {
                (
                    cluster.job(resident.job).external,
                    Resident {
                        job: JobId(0),
                        ..*resident
                    },
                )
            })
            .collect();
        format!("{row} {residents:?} {:?} {}", gpu.mig, gpu.is_fused)
    });
    jobs.chain(shared).collect()
}

fn assert_same(original: &Cluster, restored: &Cluster) {
    restored.check();
    assert_eq!(rows_of(original), rows_of(restored));
    assert_eq!(observation_of(original), observation_of(restored));
    for name in names() {
        assert_eq!(
            decisions_of(original, name),
            decisions_of(restored, name),
            "{name}"
        );
    }
}

/// A move of the tests of everything at once, some of them about elastic jobs; with few different requests, so that a shape comes
/// back and the parts of a GPU fit into each other's places.
fn richer(mut next: Move, is_elastic: bool) -> Move {
    if let Move::Submit { class, resources, .. } = &mut next {
        (resources.cpu_cores, resources.memory_gib) = (resources.cpu_cores.round(), 0.0);
        resources.gpu_memory_gib = resources.gpu_memory_gib.round() / 2.0;
        if is_elastic {
            *class = 2;
            resources.gpu_milli = 1000;
        }
    }
    next
}

fn pass_of(cluster: &mut Cluster, number: usize) {
    let policy = &mut by_name(names()[number % names().len()]).unwrap();
    Pass::new().run(cluster, policy.as_mut()).unwrap();
    cluster.take_decisions(&mut Vec::new());
}

fn sharings() -> impl Strategy<Value = Sharing> {
    prop_oneof![Just(Sharing::Off), Just(Sharing::Mps), Just(Sharing::TimeSlice)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn a_restored_cluster_decides_like_the_original(
        borrowing in any::<bool>(),
        mixed in any::<bool>(),
        sharing in sharings(),
        moves in proptest::collection::vec((moves(), any::<bool>(), 0_usize..60), 1..120),
        stops in proptest::collection::vec(0_usize..120, 3),
    ) {
        let mut cluster = rich_cluster(borrowing, mixed, sharing);
        for (number, (next, is_elastic, policy)) in moves.iter().enumerate() {
            carry_out(&mut cluster, &richer(next.clone(), *is_elastic));
            if policy % 8 == 0 {
                pass_of(&mut cluster, *policy);
            }
            if stops.contains(&number) || number + 1 == moves.len() {
                let snapshot = cluster.snapshot();
                let mut restored = Cluster::restore(&snapshot).unwrap();
                prop_assert_eq!(restored.snapshot(), snapshot);
                assert_same(&cluster, &restored);
                // And so does it some time later.
                let later = cluster.now() + Time(20_000_000);
                cluster.take_decisions(&mut Vec::new());
                cluster.advance(later);
                restored.advance(later);
                assert_same(&cluster, &restored);
                cluster = restored;
            }
        }
    }
}

fn slice(node: u32, gpus: u64) -> Slice {
    Slice {
        node: NodeId(node),
        gpus,
    }
}

/// Two nodes of 4 GPUs; one job runs on three of them, another waits.
fn running() -> Cluster {
    let mut cluster = cluster_of(&ClusterSpec::uniform(2, 4, 2));
    let first = submit(&mut cluster, 3, 100.0);
    submit(&mut cluster, 8, 50.0);
    cluster.start(first, Placement::from_slice(&[slice(0, 0b111)]));
    cluster.advance(Time::from_secs_f64(10.0));
    cluster
}

#[test]
fn a_job_that_runs_already_is_admitted_with_its_past_or_refused_by_value() {
    use super::jobs::record::{JobRecord, RunRecord};
    let mut cluster = running();
    let now = cluster.now();
    let request = Submission {
        num_gpus: 2,
        ..cluster.job(JobId(0)).request
    };
    let run = |placement: &[Slice]| RunRecord {
        placement: placement.iter().copied().collect(),
        start: Time::from_secs_f64(4.0),
        start_number: 0,
        cpu_milli_per_gpu: 0,
        memory_mib_per_gpu: 0,
        is_forked: false,
        rate_alone: None,
        rate_since: now,
        cost_left_s: 0.0,
        instances: Vec::new(),
    };
    let record = |placement: &[Slice]| JobRecord {
        executed_s: 6.0,
        run: Some(run(placement)),
        ..JobRecord::new(ExternalId::number(77), Time::ZERO, request)
    };
    let refused = |record: &JobRecord, parts: [&str; 2]| {
        let mut cluster = running();
        let error = cluster.admit(record).unwrap_err().to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        cluster.check();
        assert_eq!((cluster.jobs().len(), cluster.num_running()), (2, 1));
        // Nothing of it is left: the GPUs and the name are there for another.
        cluster.submit_as(ExternalId::number(77), request).unwrap();
    };
    refused(&record(&[slice(0, 0b1100)]), ["GPU 2 of node 0", "beside job #0"]);
    refused(&record(&[slice(2, 0b11)]), ["node = 2", "0 to 1"]);
    refused(&record(&[slice(1, 0b11_0000)]), ["0b110000", "4 GPUs of node 1"]);
    refused(&record(&[slice(1, 0)]), ["gpus = 0b0", "node 1"]);
    refused(&record(&[slice(1, 0b111)]), ["3 GPUs", "its gang of 2"]);
    refused(&record(&[]), ["0 GPUs", "its gang of 2"]);
    refused(
        &record(&[slice(1, 0b1), slice(1, 0b10)]),
        ["node = 1", "one slice"],
    );
    let late = JobRecord {
        submit: Time::from_secs_f64(11.0),
        ..record(&[slice(1, 0b11)])
    };
    refused(&late, ["submit = 11000000", "0 to 10000000"]);
    let mut hungry = record(&[slice(1, 0b11)]);
    hungry.run.as_mut().unwrap().cpu_milli_per_gpu = 1;
    refused(&hungry, ["1 thousandths", "0 and 0"]);
    let unknown = JobRecord {
        request: Submission {
            tenant: TenantId(9),
            ..request
        },
        ..record(&[slice(1, 0b11)])
    };
    refused(&unknown, ["job.tenant = 9", "0 to 0"]);

    let id = cluster.admit(&record(&[slice(1, 0b11)])).unwrap();
    cluster.check();
    assert_eq!(cluster.find(ExternalId::number(77)), Some(id));
    let job = cluster.job(id);
    // 94 s are left at rate 1; 2 GPUs for 6 s.
    assert_eq!(job.expected_finish, Time::from_secs_f64(104.0));
    assert_eq!(job.attained_gpu_s_at(now), 12.0);
    let twice = cluster
        .admit(&record(&[slice(1, 0b1100)]))
        .unwrap_err()
        .to_string();
    assert!(twice.contains("job = 77"), "{twice}");
    let mut decisions = Vec::new();
    cluster.take_decisions(&mut decisions);
    assert_eq!(decisions.len(), 1, "what runs already was not decided here");
}

#[test]
fn a_decision_is_complete_and_comes_back_from_its_text() {
    let mut cluster = running();
    let later = submit(&mut cluster, 2, 10.0);
    let policy = &mut by_name("easy").unwrap();
    Pass::new().run(&mut cluster, policy.as_mut()).unwrap();
    let mut decisions = Vec::new();
    cluster.take_decisions(&mut decisions);
    cluster.preempt(later);
    cluster.take_decisions(&mut decisions);
    let actions: Vec<Action> = decisions.iter().map(|decision| decision.action).collect();
    assert_eq!(
        actions,
        [Action::Start, Action::Reserve, Action::Start, Action::Preempt]
    );
    let held = decisions[1].reservation.unwrap();
    assert_eq!(
        (decisions[1].num_gpus, held.start),
        (8, Time::from_secs_f64(100.0))
    );
    let text = serde_json::to_string(&decisions[3]).unwrap();
    let expected = r##"{"job":"#2","action":"preempt","placement":[{"node":1,"gpus":3}],"num_gpus":2,"gpu_milli":1000,"##;
    assert!(text.starts_with(expected), "{text}");
    let read: Decision = serde_json::from_str(&text).unwrap();
    let row = decisions[3].row;
    assert_eq!(Decision { row, ..read }, decisions[3]);
}

#[test]
fn a_pass_of_a_policy_that_reserves_starts_beside_what_it_holds_back() {
    let mut cluster = running();
    let mut pass = Pass::new();
    let needs = all_needs();
    assert_eq!(pass.open(&cluster, &needs), PassState::Open);
    let reserve = pass
        .candidates()
        .iter()
        .position(|row| row.reserved_type.is_some())
        .unwrap();
    pass.act(&mut cluster, &needs, reserve);
    let mut decisions = Vec::new();
    cluster.take_decisions(&mut decisions);
    let last = decisions.last().unwrap();
    assert_eq!(
        (last.action, last.job.to_string().as_str(), last.leaf),
        (Action::Reserve, "#1", None)
    );
}
