//! Gangs that the tables have no place for, gangs that lose a pod, and Jobs that are none, on hand-worked lists.

use crate::fake::owned;
use crate::objects::{NOW_S, job, lists, mark, node, pod, settings, time};
use pleach_daemon::memory::Memory;
use pleach_daemon::policy::Loaded;
use pleach_daemon::snapshot::{JobSeen, Phase};
use pleach_kubernetes::Settings;
use pleach_kubernetes::config::ParallelJobs;
use pleach_kubernetes::observe::{Observed, observe, observe_after};
use pleach_kubernetes::standing::Duty;
use serde_json::{Value, json};

/// Pods of a gang with owners, which came 100 s ago.
pub fn gang(num: usize, gpus: u32) -> Vec<Value> {
    let annotations = json!({ "pleach/gang": "g", "pleach/gang-size": num.to_string() });
    let of = |rank: usize| {
        let mut pod = owned(pod(&format!("w-{rank}"), gpus));
        pod["metadata"]["annotations"] = annotations.clone();
        pod
    };
    (0..num).map(of).collect()
}

fn of_gang(observed: &Observed) -> &JobSeen {
    let mut jobs = observed.snapshot.jobs.iter();
    jobs.find(|job| observed.jobs[&job.id].name.starts_with("team/g") || job.num_nodes > 1)
        .unwrap()
}

fn why_not(observed: &Observed, job: &JobSeen) -> String {
    let mut fifo = Loaded::heuristic("fifo").unwrap();
    let rounds = Settings::default().rounds;
    pleach_daemon::why_not::answer(&observed.snapshot, &Memory::default(), &mut fifo, &rounds, job.id)
        .unwrap()
}

#[test]
fn what_the_tables_have_no_place_for_on_empty_nodes_is_given_back_with_the_true_reason() {
    let nodes = ["n1", "n2", "n3", "n4"].map(|name| node(name, 8));
    for (num, gpus, words) in [
        (
            5,
            5,
            "has 5 pods of 5 GPUs, and the nodes that they may have hold 4",
        ),
        (
            9,
            3,
            "has 9 pods of 3 GPUs, and the nodes that they may have hold 8",
        ),
        (
            2,
            9,
            "has pods of 9 GPUs, and the largest node that they may have has 8",
        ),
        (
            1,
            16,
            "asks for 16 GPUs on one node, and the largest that it may have has 8",
        ),
    ] {
        let mut pods = gang(num, gpus);
        let observed = observe(&lists(&nodes, &pods, &[]), &settings(), NOW_S);
        let job = of_gang(&observed);
        let told = why_not(&observed, job);
        assert!(
            told.contains("is left alone: it ") && told.contains(words),
            "{told}"
        );
        assert_eq!(
            observed.jobs[&job.id].duty,
            Duty::GiveBackInTurn,
            "{num} x {gpus}"
        );
        // Once its gates are lifted it is still nothing that waits for the policy.
        for pod in &mut pods {
            pod["spec"]["schedulingGates"] = json!([]);
        }
        let observed = observe(&lists(&nodes, &pods, &[]), &settings(), NOW_S);
        let job = of_gang(&observed);
        assert!(matches!(job.phase, Phase::Foreign { .. }), "{:?}", job.phase);
        assert_eq!(observed.jobs[&job.id].duty, Duty::None);
    }
    // The rest finds its place, however full the nodes are at present.
    let mut full = pod("full", 8);
    full["spec"]["nodeName"] = json!("n1");
    full["spec"]["schedulingGates"] = json!([]);
    for (num, gpus) in [
        (1, 8),
        (2, 4),
        (2, 8),
        (4, 2),
        (3, 4),
        (8, 4),
        (5, 1),
        (9, 2),
        (2, 5),
        (2, 6),
        (2, 7),
        (3, 3),
        (4, 3),
    ] {
        let pods = [gang(num, gpus), vec![full.clone()]].concat();
        let observed = observe(&lists(&nodes, &pods, &[]), &settings(), NOW_S);
        let jobs = &observed.snapshot.jobs;
        assert!(
            jobs.iter().any(|job| job.phase == Phase::Waiting),
            "{num} x {gpus}: {jobs:?}"
        );
    }
    // All nodes of a type count, whatever their state, and of types only those that a pod may have.
    let mut big = node("n5", 16);
    big["spec"]["unschedulable"] = json!(true);
    let nodes = [node("n1", 8), big];
    let waits = |pods: &[Value]| {
        of_gang(&observe(&lists(&nodes, pods, &[]), &settings(), NOW_S))
            .phase
            .clone()
    };
    assert_eq!(waits(&gang(2, 5)), Phase::Waiting);
    assert!(matches!(waits(&gang(2, 9)), Phase::Foreign { .. }));
}

/// A pod of a gang that was let go `age_s` ago and bound a second later.
fn bound(pod: &Value, node: &str, seats: &[(&str, u32)], age_s: i64) -> Value {
    let mut pod = pod.clone();
    pod["metadata"]["annotations"]["pleach/decided"] = json!(mark(&pod, NOW_S - age_s, node, seats));
    pod["spec"]["schedulingGates"] = json!([]);
    pod["spec"]["nodeSelector"] = json!({ "kubernetes.io/hostname": node });
    pod["spec"]["nodeName"] = json!(node);
    pod["status"] = json!({ "phase": "Running", "conditions": [{
        "type": "PodScheduled", "status": "True", "lastTransitionTime": time(NOW_S - age_s + 1) }] });
    pod
}

/// Used in the tables, and free for pods without a decision: GPUs of n1, then of n2.
fn gpus(observed: &Observed) -> [(u32, u32); 2] {
    let used = |row: usize| observed.snapshot.nodes[row].num_gpus_used;
    [(used(0), observed.free["n1"]), (used(1), observed.free["n2"])]
}

/// Nothing tells how many pods a RayCluster has: one that was evicted while they wait is made anew a moment later, and until then
/// the others are no whole gang.
#[test]
fn a_gang_without_a_size_that_loses_a_pod_while_it_waits_is_not_decided_about_without_it() {
    let nodes = [node("n1", 8)];
    let mut pods = gang(3, 2);
    for pod in &mut pods {
        pod["metadata"]["annotations"] = Value::Null;
        pod["metadata"]["labels"] = json!({ "ray.io/cluster": "g" });
    }
    let at = |before: &Observed, pods: &[Value], now_s: i64| {
        observe_after(&before.traces, &lists(&nodes, pods, &[]), &settings(), now_s)
    };
    let all = observe(&lists(&nodes, &pods, &[]), &settings(), NOW_S);
    assert_eq!(
        (of_gang(&all).phase.clone(), of_gang(&all).num_nodes),
        (Phase::Waiting, 3)
    );
    let short = at(&all, &pods[..2], NOW_S + 2);
    assert!(
        matches!(of_gang(&short).phase, Phase::Blocked { .. }),
        "{:?}",
        of_gang(&short).phase
    );
    let whole = at(&short, &pods, NOW_S + 2 + settings().settle_s);
    assert_eq!(
        (of_gang(&whole).phase.clone(), of_gang(&whole).num_nodes),
        (Phase::Waiting, 3)
    );
    // A smaller one is one too, once it has settled.
    let later = at(&short, &pods[..2], NOW_S + 2 + settings().settle_s);
    assert_eq!(
        (of_gang(&later).phase.clone(), of_gang(&later).num_nodes),
        (Phase::Waiting, 2)
    );
}

#[test]
fn a_gang_that_lost_a_pod_keeps_its_place_for_a_while_and_finds_it_again() {
    let nodes = [node("n1", 8), node("n2", 8)];
    let seats = [("n1", 1), ("n2", 1)];
    let whole: Vec<Value> = std::iter::zip(gang(2, 8), ["n1", "n2"])
        .map(|(pod, node)| bound(&pod, node, &seats, 50))
        .collect();
    let look = |before: &Observed, pods: &[Value], now_s: i64| {
        observe_after(&before.traces, &lists(&nodes, pods, &[]), &settings(), now_s)
    };
    let begin = observe(&lists(&nodes, &whole, &[]), &settings(), NOW_S);
    assert_eq!((gpus(&begin), begin.traces.lost.len()), ([(8, 0), (8, 0)], 0));
    // The second one is gone: its node is still the gang's, and a note says so.
    let short = look(&begin, &whole[..1], NOW_S);
    let job = of_gang(&short);
    assert_eq!((&job.phase, job.nodes.len()), (&Phase::Running, 2));
    assert_eq!(gpus(&short), [(8, 0), (8, 0)]);
    assert!(
        short.notes[0].contains("1 of 2 pods") && short.notes[0].contains("120 s"),
        "{:?}",
        short.notes
    );
    // Another one is made, and goes there.
    let mut anew = gang(2, 8).remove(1);
    anew["metadata"]["name"] = json!("w-1-again");
    anew["metadata"]["creationTimestamp"] = json!(time(NOW_S + 10));
    let both = [whole[0].clone(), anew.clone()];
    let again = look(&short, &both, NOW_S + 10);
    let job = of_gang(&again);
    assert_eq!(
        (&job.phase, again.jobs[&job.id].duty),
        (&Phase::Running, Duty::Finish)
    );
    assert_eq!(
        (job.nodes.join(","), gpus(&again)),
        ("n1,n2".into(), [(8, 0), (8, 0)])
    );
    // Pinned there and not bound yet, it makes the gang none that is about to start.
    let mut pinned = bound(&anew, "n2", &seats, -10);
    pinned["spec"].as_object_mut().unwrap().remove("nodeName");
    pinned["status"] = json!({ "phase": "Pending" });
    let going = look(&again, &[whole[0].clone(), pinned], NOW_S + 12);
    assert_eq!(of_gang(&going).phase, Phase::Running);
    assert_eq!(gpus(&going), [(8, 0), (8, 0)]);
    // No pod came in time: the place is given up, and one that comes later waits for its turn.
    let late = look(&short, &whole[..1], NOW_S + 121);
    assert_eq!(
        (of_gang(&late).nodes.join(","), gpus(&late)),
        ("n1".into(), [(8, 0), (0, 8)])
    );
    let later = look(&late, &both, NOW_S + 200);
    let job = of_gang(&later);
    assert_eq!(
        (&job.phase, job.num_nodes),
        (&Phase::Waiting, 1),
        "it waits for its turn"
    );
    let turn = later.jobs[&job.id].turn.as_deref().unwrap();
    assert!(
        turn.contains("made anew after their places were given to others"),
        "{turn}"
    );
}

#[test]
fn places_are_kept_for_pods_that_come_again_and_for_no_others() {
    let seats = [("n1", 1), ("n2", 1)];
    let mut nodes = [node("n1", 8), node("n2", 8)];
    let mut jobs = [job("train", 2, &json!({}))];
    let indexed = |rank: usize, node: &str| {
        let mut pod = bound(&owned(pod(&format!("t-{rank}"), 8)), node, &seats, 50);
        pod["metadata"]["labels"] = json!({ "batch.kubernetes.io/job-name": "train" });
        pod
    };
    let first = [indexed(0, "n1")];
    let used = |nodes: &[Value], pods: &[Value], jobs: &[Value]| {
        gpus(&observe(&lists(nodes, pods, jobs), &settings(), NOW_S))[1]
    };
    assert_eq!(used(&nodes, &first, &jobs), (8, 0), "it failed");
    // An index that has succeeded does not come again.
    jobs[0]["status"] = json!({ "succeeded": 1 });
    assert_eq!(used(&nodes, &first, &jobs), (0, 8));
    jobs[0]["status"] = json!({});
    // Nor does a pod that no controller owns, nor one to a node that takes no jobs.
    let mut alone = first.clone();
    alone[0]["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("ownerReferences");
    assert_eq!(used(&nodes, &alone, &jobs), (0, 8));
    nodes[1]["spec"]["unschedulable"] = json!(true);
    assert_eq!(used(&nodes, &first, &jobs), (0, 8));
    // A pod that is ending still holds the very place that is kept.
    nodes[1]["spec"] = json!({});
    let mut ending = indexed(1, "n2");
    ending["metadata"]["deletionTimestamp"] = json!(time(NOW_S));
    assert_eq!(used(&nodes, &[first[0].clone(), ending], &jobs), (8, 0));
    // A gang that is about to start holds its places as a whole, and none of them twice.
    let mut pinned = indexed(1, "n2");
    pinned["spec"].as_object_mut().unwrap().remove("nodeName");
    pinned["status"] = json!({ "phase": "Pending" });
    let observed = observe(
        &lists(&nodes, &[first[0].clone(), pinned], &jobs),
        &settings(),
        NOW_S,
    );
    assert_eq!(of_gang(&observed).phase, Phase::Released { since_s: NOW_S - 50 });
    assert_eq!(gpus(&observed), [(0, 0), (0, 0)]);
}

/// Two pods at once, of a Job that does not say whether they need each other.
#[test]
fn a_parallel_job_that_is_not_indexed_is_what_the_settings_or_its_annotation_say() {
    let mut queue = job("queue", 2, &json!({}));
    queue["spec"]["completionMode"] = json!("NonIndexed");
    let nodes = [node("n1", 4)];
    let see = |queue: &Value, says: Option<&str>, parallel_jobs| {
        let pods: Vec<Value> = (0..2)
            .map(|number| {
                let mut pod = pod(&format!("q-{number}"), 2);
                pod["metadata"]["labels"] = json!({ "batch.kubernetes.io/job-name": "queue" });
                if let Some(says) = says {
                    pod["metadata"]["annotations"] = json!({ "pleach/parallel": says });
                }
                pod
            })
            .collect();
        let settings = pleach_kubernetes::Settings {
            parallel_jobs,
            ..settings()
        };
        let observed = observe(
            &lists(&nodes, &pods, std::slice::from_ref(queue)),
            &settings,
            NOW_S,
        );
        let sizes: Vec<u32> = observed.snapshot.jobs.iter().map(|job| job.num_nodes).collect();
        (sizes, observed.notes.join(" "))
    };
    let (sizes, note) = see(&queue, None, ParallelJobs::Alone);
    assert!(
        note.contains("assumed that each of them is a job of its own"),
        "{note}"
    );
    assert_eq!(sizes, [1, 1]);
    let (sizes, note) = see(&queue, None, ParallelJobs::Gang);
    assert!(note.contains("assumed that they start together"), "{note}");
    assert_eq!(sizes, [2]);
    // A Job that says what it is gets no note, and is believed.
    for (says, parallel_jobs, wanted) in [
        ("gang", ParallelJobs::Alone, vec![2]),
        ("alone", ParallelJobs::Gang, vec![1, 1]),
    ] {
        let (sizes, note) = see(&queue, Some(says), parallel_jobs);
        assert_eq!((sizes, note), (wanted, String::new()));
    }
    // Without completions too; with more of them than pods at once they are tasks, whatever is assumed.
    queue["spec"].as_object_mut().unwrap().remove("completions");
    assert_eq!(see(&queue, Some("gang"), ParallelJobs::Alone).0, [2]);
    queue["spec"]["completions"] = json!(7);
    assert_eq!(see(&queue, Some("gang"), ParallelJobs::Gang).0, [1, 1]);
}

#[test]
fn a_job_that_is_not_indexed_is_told_once_that_its_pods_are_no_gang() {
    let mut queue = job("queue", 2, &json!({}));
    queue["spec"]["completionMode"] = json!("NonIndexed");
    let pods: Vec<Value> = (0..2)
        .map(|number| {
            let mut pod = pod(&format!("q-{number}"), 8);
            pod["metadata"]["labels"] = json!({ "batch.kubernetes.io/job-name": "queue" });
            pod
        })
        .collect();
    let nodes = [node("n1", 8)];
    let see = |job: &Value| {
        observe(
            &lists(&nodes, &pods, std::slice::from_ref(job)),
            &settings(),
            NOW_S,
        )
    };
    let observed = see(&queue);
    assert_eq!((observed.snapshot.jobs.len(), observed.notes.len()), (2, 1));
    let note = &observed.notes[0];
    assert!(
        note.contains("Job team/queue runs 2 pods at once and is not Indexed"),
        "{note}"
    );
    assert!(
        observed
            .jobs
            .values()
            .all(|job| job.remark.as_ref() == Some(note)),
        "why-not says it too"
    );
    // One that runs one after the other, one that is a gang, and one of tasks get no note.
    for (key, value) in [
        ("parallelism", json!(1)),
        ("completionMode", json!("Indexed")),
        ("completions", json!(7)),
    ] {
        let mut other = queue.clone();
        other["spec"][key] = value;
        if key == "completions" {
            other["spec"]["completionMode"] = json!("Indexed");
        }
        assert_eq!(see(&other).notes, Vec::<String>::new(), "{key}");
    }
}
