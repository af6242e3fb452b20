//! Rules of sites, from texts as Slurm 22.05 prints them.

use super::*;
use crate::slurm::observe::{Texts, read};
use crate::snapshot::Snapshot;
use pleach_scheduler::cluster::NodeState;

const NOW_S: i64 = 1_795_000_000;

const NODES: &str = "64000|3000|5|nvme,old|g1|mixed|gpu:a100:4|gpu:a100:1(IDX:0)|3/13/0/16|main*|
64000|0|1|(null)|g2|idle|gpu:a100:4|gpu:a100:0(IDX:N/A)|0/16/0/16|main*|
128000|0|1|nvme|g3|idle~|gpu:a100:8|gpu:a100:0(IDX:N/A)|0/32/0/32|main*|
";

/// A job of one GPU that waits; each change replaces one field of those behind the first three.
fn line(tres: &str, per_gpu: &str, changes: &[(usize, &str)]) -> String {
    let text = "7|PENDING|9|gres:gpu:1|N/A|N/A|N/A|1|3|||(null)|Priority|10:00|1794999000|N/A|0|OK|0|(null)|(null)|(null)|\
                (null)|main|ann|a1";
    let mut fields: Vec<&str> = text.split('|').collect();
    for (at, text) in changes {
        fields[*at] = text;
    }
    format!("{tres}|normal|{per_gpu}|1794999000|{}|\n", fields.join("|"))
}

fn look(jobs: &str, rules: &RuleTexts<'_>) -> Snapshot {
    let texts = Texts {
        jobs,
        nodes: NODES,
        rules: *rules,
        ..Texts::default()
    };
    read(&texts, "main", NOW_S).unwrap()
}

/// A job that asks for features.
fn featured(wanted: &str) -> (JobSeen, Snapshot) {
    let wishes = format!("7\u{1f}\u{1f}(null)\u{1f}{wanted}\n");
    let texts = RuleTexts {
        wishes: &wishes,
        ..RuleTexts::default()
    };
    let snapshot = look(&line(TRES, "N/A", &[]), &texts);
    (snapshot.jobs[0].clone(), snapshot)
}

fn one(tres: &str, per_gpu: &str, changes: &[(usize, &str)]) -> (JobSeen, Snapshot) {
    let snapshot = look(&line(tres, per_gpu, changes), &RuleTexts::default());
    (snapshot.jobs[0].clone(), snapshot)
}

const TRES: &str = "cpu=3,mem=3000M,node=1,billing=3,gres/gpu=1";

/// What closes which nodes to a job.
fn closed(job: &JobSeen, snapshot: &Snapshot) -> Vec<(String, String)> {
    let rules = job
        .terms
        .rules
        .iter()
        .map(|row| &snapshot.site.rules[*row as usize]);
    rules
        .map(|rule| (rule.closed.clone(), rule.why.clone()))
        .collect()
}

#[test]
fn nodes_have_cpus_and_memory_and_lighter_ones_come_first() {
    let (_, snapshot) = one(TRES, "N/A", &[]);
    let names: Vec<&str> = snapshot.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["g2", "g3", "g1"]);
    let (g1, g3) = (&snapshot.nodes[2], &snapshot.nodes[1]);
    let host = g1.host.unwrap();
    assert_eq!(
        (host.num_cpus, host.memory_mib, host.memory_mib_free),
        (16, 64_000, 61_000)
    );
    assert_eq!(
        (g1.num_cpus_free, g3.state),
        (13, NodeState::Up),
        "who sleeps is woken"
    );
}

#[test]
fn a_job_asks_for_cpus_and_memory_in_whatever_words() {
    let (job, _) = one(TRES, "N/A", &[]);
    assert_eq!((job.num_cpus, job.terms.memory_mib), (3, 3000));
    let (job, _) = one(
        "cpu=1,mem=10G,node=1,gres/gpu=2",
        "gres:gpu:4",
        &[(3, "gres:gpu:2"), (8, "1")],
    );
    assert_eq!((job.num_cpus, job.terms.memory_mib), (8, 10_240), "CPUs by GPU");
    let (job, _) = one("cpu=4,mem=20G,node=2,gres/gpu=2", "N/A", &[(7, "2"), (8, "4")]);
    assert_eq!(
        (job.num_cpus, job.terms.memory_mib),
        (4, 10_240),
        "on each of two nodes"
    );
}

#[test]
fn gpus_by_task_by_socket_and_in_all_are_shared_out_evenly() {
    let by_task = one(
        "cpu=4,mem=1G,node=1,gres/gpu=4",
        "N/A",
        &[(3, "N/A"), (5, "gres:gpu:2")],
    )
    .0;
    assert_eq!((by_task.phase, by_task.gpus_per_node), (Phase::Loose, 4));
    let in_all = one(
        "cpu=4,mem=1G,node=2,gres/gpu=4",
        "N/A",
        &[(3, "N/A"), (4, "gres:gpu:a100:4"), (7, "2")],
    )
    .0;
    assert_eq!(
        (in_all.num_nodes, in_all.gpus_per_node, in_all.gpu_type.as_deref()),
        (2, 2, Some("a100"))
    );
    let several = one(TRES, "N/A", &[(23, "debug,main")]).0;
    assert_eq!(several.phase, Phase::Loose);
    assert!(matches!(
        one(TRES, "N/A", &[(23, "debug")]).0.phase,
        Phase::Foreign { .. }
    ));
}

#[test]
fn features_and_nodes_by_name_close_the_others() {
    let (job, snapshot) = featured("nvme&old");
    assert_eq!(
        closed(&job, &snapshot),
        [("g[2-3]".into(), "lacks what it asks for: nvme&old".into())]
    );
    let (job, snapshot) = featured("nvme|old");
    assert_eq!(closed(&job, &snapshot)[0].0, "g2");
    let (job, snapshot) = one(TRES, "N/A", &[(10, "g3")]);
    assert_eq!(closed(&job, &snapshot)[0].0, "g2,g1");
    // What is no rule about single nodes Slurm judges at the start.
    let (job, snapshot) = featured("[nvme|old]");
    assert_eq!(closed(&job, &snapshot)[0].0, "g2");
    let (job, snapshot) = featured("nvme*2");
    assert!(job.phase == Phase::Loose && closed(&job, &snapshot).is_empty());
    let (beside, snapshot) = one(TRES, "N/A", &[(10, "g3"), (7, "2")]);
    assert!(closed(&beside, &snapshot).is_empty(), "others may be beside it");
}

#[test]
fn a_job_that_wants_whole_nodes_asks_for_all_of_them() {
    let (job, snapshot) = one(TRES, "N/A", &[(17, "NO")]);
    assert_eq!((job.gpus_per_node, job.num_cpus), (4, 16));
    assert_eq!(closed(&job, &snapshot)[0].0, "g3", "of another size");
    let running = [
        (1, "RUNNING"),
        (2, "9"),
        (9, "g3"),
        (15, "1794999900"),
        (17, "NO"),
        (8, "32"),
    ];
    let (job, _) = one("cpu=32,mem=1G,node=1,gres/gpu=8", "N/A", &running);
    assert_eq!((job.phase, job.gpus_per_node), (Phase::Running, 8));
}

#[test]
fn excluded_nodes_reservations_and_limits_are_known() {
    let jobs = [
        line(TRES, "N/A", &[]),
        line(TRES, "N/A", &[(0, "8"), (13, "1-00:00:00")]),
        line(TRES, "N/A", &[(0, "9"), (13, "3-00:00:00")]),
    ];
    let texts = RuleTexts {
        wishes: "7\u{1f}g1\u{1f}(null)\u{1f}(null)\n8\u{1f}\u{1f}(null)\u{1f}(null)\nnonsense\n",
        reservations: "ReservationName=m StartTime=1795003600 EndTime=1795007200 Nodes=g2 CoreCnt=16 State=INACTIVE\n",
        partitions: "PartitionName=main MaxTime=2-00:00:00 State=UP",
        limits: "ClusterName=c Account=a1 UserName= Partition= ParentAccount= GrpTRES=gres/gpu=3(1)\n",
        ..RuleTexts::default()
    };
    let snapshot = look(&jobs.concat(), &texts);
    let of = |at: usize| closed(&snapshot.jobs[at], &snapshot);
    assert_eq!(
        of(0),
        [("g1".into(), "is excluded by its user".into())],
        "it ends before the reservation"
    );
    assert!(
        of(1).len() == 1 && of(1)[0].1.contains("reservation m from 1795003600 on"),
        "{:?}",
        of(1)
    );
    assert!(
        matches!(&snapshot.jobs[2].phase, Phase::Blocked { reason } if reason.contains("allows 172800 s"))
    );
    assert_eq!(snapshot.site.allowances[0].left, 2);
}

#[test]
fn lines_with_too_few_fields_are_refused() {
    for (jobs, nodes) in [("cpu=1|normal", NODES), ("", "64000|0|1")] {
        let texts = Texts {
            jobs,
            nodes,
            ..Texts::default()
        };
        let read = read(&texts, "main", NOW_S);
        assert!(read.is_err(), "{jobs} {nodes}");
    }
}
