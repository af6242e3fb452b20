//! Classes of priority: a higher one is decided about first, what is held back for it stays so, and none of it is stopped for a lower
//! one. Worked by hand on nodes of four GPUs.

use pleach_daemon::memory::Memory;
use pleach_daemon::policy::Loaded;
use pleach_daemon::round::{self, Deciders};
use pleach_daemon::snapshot::{JobSeen, NodeSeen, Phase, Snapshot};
use pleach_daemon::{RoundSettings, why_not};
use pleach_scheduler::ExternalId;
use pleach_scheduler::decision::Action;

use crate::site::{NOW_S, job, node, seen};

/// A job of four GPUs on each of so many nodes.
fn of_class(number: u64, num_nodes: u32, priority: i32) -> JobSeen {
    let mut job = job(number, 4, num_nodes);
    job.terms.priority = priority;
    job
}

fn runs(mut job: JobSeen, on: &[usize], limit_s: i64) -> JobSeen {
    job.phase = Phase::Running;
    job.start_s = Some(NOW_S - 50);
    job.limit_s = Some(limit_s);
    job.nodes = on.iter().map(|number| format!("g{number}")).collect();
    job
}

fn beside(num_nodes: usize, jobs: Vec<JobSeen>) -> Snapshot {
    let used = |node: NodeSeen| NodeSeen {
        num_gpus_used: 4 * u32::from(
            jobs.iter()
                .any(|job| job.is_placed() && job.nodes.contains(&node.name)),
        ),
        ..node
    };
    seen((0..num_nodes).map(|number| used(node(number, 4))).collect(), jobs)
}

/// What is decided, as letters and numbers of jobs.
fn decided(snapshot: &Snapshot, policy: &str, preemption: bool) -> Vec<String> {
    let settings = RoundSettings {
        preemption,
        ..RoundSettings::default()
    };
    let mut policy = Loaded::driving(policy, &settings).unwrap();
    let mut fallback = Loaded::heuristic("fifo").unwrap();
    let mut deciders = Deciders {
        policy: &mut policy,
        fallback: &mut fallback,
    };
    let memory = Memory::default();
    let plan = round::plan(snapshot, &memory, &mut deciders, &settings, false, &mut || false).unwrap();
    assert_eq!(plan.fallback, None);
    let told = |action| match action {
        Action::Start => "start",
        Action::Preempt => "stop",
        Action::Reserve => "reserve",
    };
    let all = plan.decisions.iter();
    all.map(|planned| format!("{} {}", told(planned.decision.action), planned.job()))
        .collect()
}

#[test]
fn a_higher_class_starts_before_older_and_shorter_jobs_and_the_policy_decides_within_one() {
    // The younger ones are longer: the shortest first is the oldest first.
    let jobs = vec![
        of_class(0, 1, -1),
        of_class(1, 1, 0),
        of_class(2, 1, 7),
        of_class(3, 1, 7),
    ];
    assert_eq!(
        decided(&beside(3, jobs.clone()), "sjf", false),
        ["start 2", "start 3", "start 1"]
    );
    let same = jobs.into_iter().map(|mut job| {
        job.terms.priority = 0;
        job
    });
    assert_eq!(
        decided(&beside(3, same.collect()), "sjf", false),
        ["start 0", "start 1", "start 2"]
    );
}

#[test]
fn what_is_held_back_for_a_higher_class_is_not_a_lower_ones() {
    // One node is busy for 950 s more. The gang of two of the higher class waits for it; a job of the lower one that is
    // believed to take longer would delay it on the free node, and one that is shorter would not.
    let busy = runs(of_class(0, 1, 0), &[0], 1000);
    let gang = of_class(1, 2, 5);
    let with = |limit_s: i64| {
        let mut other = of_class(2, 1, 0);
        other.limit_s = Some(limit_s);
        decided(&beside(2, vec![busy.clone(), gang.clone(), other]), "easy", false)
    };
    assert_eq!(with(2000), ["reserve 1"]);
    assert_eq!(with(500), ["reserve 1", "start 2"]);
}

#[test]
fn no_job_is_stopped_for_one_of_a_lower_class() {
    let stopped = |of_running: i32, of_waiting: i32| {
        let long = runs(of_class(0, 1, of_running), &[0], 1_000_000);
        let mut short = of_class(1, 1, of_waiting);
        short.limit_s = Some(10);
        decided(&beside(1, vec![long, short]), "srtf", true)
    };
    assert_eq!(stopped(0, 0), ["stop 0", "start 1"]);
    assert_eq!(stopped(0, 3), ["stop 0", "start 1"]);
    // Of two classes that wait the lower one stops none of the higher.
    let long = runs(of_class(0, 1, 3), &[0], 1_000_000);
    let other = runs(of_class(1, 1, 0), &[1], 1_000_000);
    let (mut high, mut low) = (of_class(2, 1, 3), of_class(3, 1, 0));
    (high.limit_s, low.limit_s) = (Some(2_000_000), Some(10));
    let decided = decided(&beside(2, vec![long, other, high, low]), "srtf", true);
    assert!(!decided.contains(&"stop 0".to_owned()), "{decided:?}");
    assert_eq!(stopped(3, 0), Vec::<String>::new());
}

#[test]
fn why_not_tells_of_jobs_that_go_first() {
    let snapshot = beside(1, vec![of_class(0, 1, 0), of_class(1, 1, 9)]);
    let settings = RoundSettings::default();
    let mut loaded = Loaded::heuristic("sjf").unwrap();
    let mut why = |number: u64| {
        let id = ExternalId::number(number);
        why_not::answer(&snapshot, &Memory::default(), &mut loaded, &settings, id).unwrap()
    };
    let first = why(1);
    assert!(first.contains("It starts in the present round"), "{first}");
    let second = why(0);
    assert!(
        second.contains("Jobs of a lower priority follow") && second.contains("does not fit now"),
        "{second}"
    );
}
