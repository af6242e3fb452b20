//! Rules of sites, from texts as Slurm 22.05 prints them.

use super::*;
use crate::slurm::observe::{SharesText, read_rules};
use crate::slurm::scope::Scope;
use crate::snapshot::Snapshot;

const NOW_S: i64 = 1_795_000_000;

const NODES: &str = "64000|3000|5|nvme,old|g1|mixed|gpu:a100:4|gpu:a100:1(IDX:0)|3/13/0/16|main*|
64000|0|1|(null)|g2|idle|gpu:a100:4|gpu:a100:0(IDX:N/A)|0/16/0/16|main*|
128000|0|1|nvme|g3|idle~|gpu:a100:8|gpu:a100:0(IDX:N/A)|0/32/0/32|main*|
";

/// A held job of one GPU; each change replaces one field of those behind the first three.
fn line(tres: &str, per_gpu: &str, changes: &[(usize, &str)]) -> String {
    let text = "7|PENDING|0|gres:gpu:1|N/A|N/A|N/A|1|3|||pleach:held|JobHeldAdmin|10:00|1794999000|N/A|0|OK|0|(null)|(null)|(null)|\
                (null)|main|ann|a1";
    let mut fields: Vec<&str> = text.split('|').collect();
    for (at, text) in changes {
        fields[*at] = text;
    }
    format!("{tres}|normal|{per_gpu}|1794999000|{}|\n", fields.join("|"))
}

fn look(jobs: &str, texts: &RuleTexts<'_>) -> (Snapshot, BTreeMap<ExternalId, String>) {
    let read = read_rules(
        jobs,
        NODES,
        &Scope::only("main"),
        &SharesText::default(),
        texts,
        NOW_S,
    )
    .unwrap();
    (read.snapshot, read.named.wishes)
}

/// A job that asks for features.
fn featured(wanted: &str) -> (JobSeen, Snapshot) {
    let wishes = format!("7\u{1f}\u{1f}(null)\u{1f}{wanted}\n");
    let texts = RuleTexts {
        wishes: &wishes,
        ..RuleTexts::default()
    };
    let (snapshot, _) = look(&line(TRES, "N/A", &[]), &texts);
    (snapshot.jobs[0].clone(), snapshot)
}

fn one(tres: &str, per_gpu: &str, changes: &[(usize, &str)]) -> (JobSeen, Snapshot) {
    let (snapshot, _) = look(&line(tres, per_gpu, changes), &RuleTexts::default());
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
    assert_eq!((by_task.phase, by_task.gpus_per_node), (Phase::Waiting, 4));
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
    assert_eq!(several.phase, Phase::Waiting);
    assert!(matches!(
        one(TRES, "N/A", &[(23, "debug")]).0.phase,
        Phase::Foreign { .. }
    ));
    assert!(matches!(
        one(TRES, "N/A", &[(21, "maint")]).0.phase,
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
    assert!(job.phase == Phase::Waiting && closed(&job, &snapshot).is_empty());
    let beside = one(TRES, "N/A", &[(10, "g3"), (7, "2")]).0;
    assert!(matches!(beside.phase, Phase::Foreign { .. }));
}

#[test]
fn who_wants_nodes_for_himself_asks_for_all_of_them() {
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
fn excluded_nodes_reservations_and_what_was_let_go_are_known() {
    let jobs = [
        line(TRES, "N/A", &[]),
        line(TRES, "N/A", &[(0, "8"), (13, "1-00:00:00")]),
        line(
            TRES,
            "N/A",
            &[
                (0, "9"),
                (2, "5"),
                (10, "g2"),
                (11, "pleach:decided;at=1794999999;tries=0;req=g3"),
                (12, "None"),
            ],
        ),
    ];
    let limits = "ClusterName=c Account=a1 UserName= Partition= ParentAccount= GrpTRES=gres/gpu=3(1)\n";
    let texts = RuleTexts {
        wishes: "7\u{1f}g1\u{1f}(null)\u{1f}(null)\n8\u{1f}\u{1f}(null)\u{1f}(null)\nnonsense\n",
        reservations: "ReservationName=m StartTime=1795003600 EndTime=1795007200 Nodes=g2 CoreCnt=16 State=INACTIVE\n",
        partitions: "PartitionName=main MaxTime=2-00:00:00 State=UP",
        limits,
        ..RuleTexts::default()
    };
    let (snapshot, wishes) = look(&jobs.concat(), &texts);
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
    assert_eq!(
        snapshot.jobs[2].phase,
        Phase::Released {
            since_s: 1_794_999_999
        }
    );
    assert_eq!(wishes[&ExternalId::number(9)], "g3");
    // One GPU is in use, and one more is given to the job that was let go.
    assert_eq!(snapshot.site.allowances[0].left, 1);
}

#[test]
fn who_may_not_begin_yet_is_held_until_then_and_whom_slurm_has_requeued_is_not() {
    let phase = |eligible: &str, changes: &[(usize, &str)]| {
        // When it would start, as Slurm foresees, is another time.
        let changes = [&[(15, "1795009999")][..], changes].concat();
        let text = line(TRES, "N/A", &changes).replace("|1794999000|7|", &format!("|{eligible}|7|"));
        look(&text, &RuleTexts::default()).0.jobs[0].phase.clone()
    };
    let Phase::Blocked { reason } = phase("1795000300", &[]) else {
        panic!("{:?}", phase("1795000300", &[]));
    };
    assert!(reason.contains("begins at 1795000300"), "{reason}");
    assert_eq!(phase("1795000300", &[(16, "1")]), Phase::Waiting);
    for eligible in ["1794999999", "N/A"] {
        assert_eq!(phase(eligible, &[]), Phase::Waiting);
    }
    // A clock that was set back: it may begin since it came.
    assert_eq!(phase("1795000300", &[(14, "1795000300")]), Phase::Waiting);
    // Nobody holds it: Slurm would start it in the first moment.
    let loose = |reason| phase("1795000300", &[(2, "9"), (11, "(null)"), (12, reason)]);
    assert_eq!(loose("BeginTime"), Phase::Loose);
    assert!(matches!(loose("Dependency"), Phase::Foreign { .. }));
}

#[test]
fn lines_with_too_few_fields_are_refused() {
    for (jobs, nodes) in [("cpu=1|normal", NODES), ("", "64000|0|1")] {
        let read = read_rules(
            jobs,
            nodes,
            &Scope::only("main"),
            &SharesText::default(),
            &RuleTexts::default(),
            NOW_S,
        );
        assert!(read.is_err(), "{jobs} {nodes}");
    }
}
