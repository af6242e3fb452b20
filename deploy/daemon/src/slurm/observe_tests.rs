//! Texts as Slurm 22.05 prints them, and texts that it does not print.

use super::*;
use crate::slurm::node::node_state;
use pleach_scheduler::cluster::NodeState;

const NODES: &str = "64000|0|1|(null)|g1|mixed|gpu:a100:4,shard:a100:16|gpu:a100:2(IDX:0-1),shard:a100:1(IDX:2)|2/14/0/16|main*|
64000|0|1|(null)|g2|idle|gpu:a100:4(S:0-1),shard:a100:16|gpu:a100:0(IDX:N/A),shard:a100:0(IDX:N/A)|0/16/0/16|main*|
64000|0|1|(null)|g3|drained|gpu:v100:8|gpu:v100:0(IDX:N/A)|0/16/0/16|main*|
64000|0|1|(null)|c1|idle|(null)|gpu:0|0/16/0/16|main*|
";

fn texts<'a>(jobs: &'a str, nodes: &'a str) -> Texts<'a> {
    Texts {
        jobs,
        nodes,
        ..Texts::default()
    }
}

fn look(jobs: &str, nodes: &str) -> Result<Snapshot, Error> {
    read(&texts(jobs, nodes), "main", 1_795_384_600)
}

/// A line of a job; each change replaces one field.
fn line(changes: &[(usize, &str)]) -> String {
    let mut fields = vec![
        "7",
        "PENDING",
        "9",
        "gres:gpu:2",
        "N/A",
        "N/A",
        "N/A",
        "1",
        "4",
        "",
        "",
        "(null)",
        "Priority",
        "10:00",
        "1795384544",
        "N/A",
        "0",
        "OK",
        "0",
        "(null)",
        "(null)",
        "(null)",
        "(null)",
        "main",
        "ann",
        "(null)",
    ];
    for (at, text) in changes {
        fields[*at] = text;
    }
    format!("cpu=4,mem=0,node=1|normal|N/A|N/A|{}|\n", fields.join("|"))
}

fn one(changes: &[(usize, &str)]) -> JobSeen {
    let snapshot = look(&line(changes), NODES).unwrap();
    snapshot.jobs.into_iter().next().unwrap()
}

fn foreign(changes: &[(usize, &str)]) -> String {
    match one(changes).phase {
        Phase::Foreign { reason } => reason,
        phase => panic!("{phase:?}"),
    }
}

#[test]
fn nodes_are_read_with_what_others_hold_and_nodes_without_gpus_are_left_out() {
    let snapshot = look("", NODES).unwrap();
    let seen: Vec<_> = snapshot
        .nodes
        .iter()
        .map(|node| {
            (
                node.name.as_str(),
                node.gpu_type.as_str(),
                node.num_gpus,
                node.num_gpus_used,
                node.num_cpus_free,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("g1", "a100", 4, 3, 14),
            ("g2", "a100", 4, 0, 16),
            ("g3", "v100", 8, 0, 16)
        ]
    );
    assert_eq!(snapshot.nodes[2].state, NodeState::Draining);
    assert_eq!(node_state("down*"), NodeState::Down);
    assert_eq!(node_state("idle*"), NodeState::Down);
    assert_eq!(node_state("mixed-"), NodeState::Up);
    // Asleep, and waking up: Slurm wakes the node for a job that is let go to it. On its way to sleep it takes no job.
    assert_eq!(node_state("idle~"), NodeState::Up);
    assert_eq!(node_state("mixed#"), NodeState::Up);
    assert_eq!(node_state("idle%"), NodeState::Draining);
    assert_eq!(node_state("maint"), NodeState::Draining);
}

#[test]
fn a_job_stands_where_slurm_and_its_user_say() {
    let job = one(&[(13, "2-03:04:05")]);
    assert_eq!(
        (job.phase.clone(), job.limit_s, job.num_gpus()),
        (Phase::Loose, Some(183_845), 2)
    );
    // Whatever else Slurm says of it, it is ranked, for it may start in any moment.
    for reason in ["AssocGrpGRES", "QOSMaxJobsPerUserLimit"] {
        let Phase::Blocked { reason: told } = one(&[(12, reason), (25, "a1")]).phase else {
            panic!("{reason} does not pause it");
        };
        assert!(told.contains(reason), "{told}");
    }
    for reason in [
        "None",
        "Resources",
        "Licenses",
        "JobArrayTaskLimit",
        "PartitionTimeLimit",
        "ReqNodeNotAvail, UnavailableNodes:g3",
    ] {
        assert_eq!(one(&[(12, reason)]).phase, Phase::Loose, "{reason}");
    }
    let gang = one(&[(7, "2")]);
    assert_eq!(
        (gang.phase, gang.num_nodes, gang.gpus_per_node),
        (Phase::Loose, 2, 2)
    );
    let running = one(&[(1, "RUNNING"), (7, "2"), (9, "g[1-2]"), (15, "1795384550")]);
    assert_eq!(
        (running.phase, running.nodes.len(), running.start_s),
        (Phase::Running, 2, Some(1_795_384_550))
    );
    let task = one(&[(0, "12_3"), (20, "afterok:4(unfulfilled)")]);
    assert_eq!(task.id.to_string(), "12_3");
    assert_eq!(one(&[(0, "12_[3-9%2]")]).id.to_string(), "12");
    assert_eq!(
        one(&[(0, "12+1")]).id.to_string(),
        "12_1",
        "a part of a heterogeneous job"
    );
    for (changes, words) in [
        (vec![(20, "aftero")], "another job"),
        (vec![(12, "Dependency")], "another job"),
        (vec![(2, "0"), (12, "JobHeldUser")], "held by its user"),
        (vec![(12, "BeginTime")], "BeginTime"),
        (vec![(21, "maint")], "reservation"),
        (vec![(23, "low")], "another partition"),
        (vec![(11, "pleach:off")], "off"),
        (vec![(1, "COMPLETING"), (9, "g1")], "completing"),
    ] {
        let reason = foreign(&changes);
        assert!(reason.contains(words), "{changes:?}: {reason}");
    }
    assert!(
        look(&line(&[(3, "N/A")]), NODES).unwrap().jobs.is_empty(),
        "it asks for no GPUs"
    );
}

/// On one node of two GPUs.
const ONE_NODE: &str = "cpu=4,mem=1G,node=1,gres/gpu=2";

/// What is wished, what Slurm counts, changes of a line; nodes and GPUs on each, by which it is ranked.
type Kind = (
    &'static str,
    &'static str,
    &'static [(usize, &'static str)],
    u32,
    u32,
);

/// The kinds of wishes that Slurm knows.
const KINDS: [Kind; 27] = [
    ("CPUs and memory", "cpu=16,mem=60G,node=1,gres/gpu=2", &[], 1, 2),
    ("features", ONE_NODE, &[(19, "nvme&ib")], 1, 2),
    ("sets of features", ONE_NODE, &[(19, "[nvme|ib]")], 1, 2),
    ("licences", ONE_NODE, &[(22, "matlab:1")], 1, 2),
    ("nodes by name", ONE_NODE, &[(10, "g2")], 1, 2),
    (
        "nodes by name beside others",
        "cpu=4,node=2,gres/gpu=4",
        &[(10, "g2"), (7, "2")],
        2,
        2,
    ),
    (
        "nodes side by side",
        "cpu=4,node=2,gres/gpu=4",
        &[(18, "1"), (7, "2")],
        2,
        2,
    ),
    ("whole nodes", ONE_NODE, &[(17, "NO")], 1, 4),
    (
        "whole nodes without GPUs",
        "cpu=4,node=1",
        &[(3, "N/A"), (17, "NO")],
        1,
        4,
    ),
    ("nodes of its user's own", ONE_NODE, &[(17, "USER")], 1, 2),
    (
        "GPUs by task",
        "cpu=4,node=1,gres/gpu=4",
        &[(3, "N/A"), (5, "gres:gpu:1")],
        1,
        4,
    ),
    (
        "GPUs by socket",
        "cpu=4,node=1,gres/gpu=2",
        &[(3, "N/A"), (6, "gres:gpu:1")],
        1,
        2,
    ),
    (
        "GPUs in all",
        "cpu=4,node=2,gres/gpu=6",
        &[(3, "N/A"), (4, "gres:gpu:6"), (7, "2")],
        2,
        3,
    ),
    (
        "more in all than a node has",
        "cpu=4,node=1,gres/gpu=10",
        &[(3, "N/A"), (4, "gres:gpu:10")],
        1,
        8,
    ),
    ("GPUs of a type", ONE_NODE, &[(3, "gres:gpu:v100:2")], 1, 2),
    (
        "GPUs of two types",
        "cpu=4,node=1,gres/gpu=3",
        &[(3, "gres:gpu:a100:1,gres:gpu:v100:2")],
        1,
        3,
    ),
    (
        "a type that is not here",
        ONE_NODE,
        &[(3, "gres:gpu:h100:2")],
        1,
        2,
    ),
    (
        "more nodes than there are",
        "cpu=4,node=9,gres/gpu=36",
        &[(3, "gres:gpu:4"), (7, "9")],
        2,
        4,
    ),
    ("shards", "cpu=4,node=1", &[(3, "gres:shard:3")], 1, 1),
    ("percentages", "cpu=4,node=1", &[(3, "gres:mps:50")], 1, 1),
    ("several partitions", ONE_NODE, &[(23, "low,main")], 1, 2),
    ("an array", ONE_NODE, &[(0, "9_[1-7%2]")], 1, 2),
    ("a part of a heterogeneous job", ONE_NODE, &[(0, "9+1")], 1, 2),
    ("a limit that is reached", ONE_NODE, &[(12, "QOSGrpGRES")], 1, 2),
    ("a node that is down", ONE_NODE, &[(12, "ReqNodeNotAvail")], 1, 2),
    ("a second run", ONE_NODE, &[(16, "3")], 1, 2),
    ("no limit", ONE_NODE, &[(13, "UNLIMITED")], 1, 2),
];

#[test]
fn no_wish_takes_a_job_out_of_the_order() {
    for (what, tres, changes, num_nodes, gpus) in KINDS {
        // Features and licences are asked for apart, for they may hold any separator.
        let of = |at| {
            changes
                .iter()
                .find(|(field, _)| *field == at)
                .map_or("(null)", |(_, text)| *text)
        };
        let wishes = format!("7\u{1f}\u{1f}{}\u{1f}{}\n", of(22), of(19));
        let others: Vec<(usize, &str)> = changes
            .iter()
            .copied()
            .filter(|(at, _)| ![19, 22].contains(at))
            .collect();
        let text = line(&others).replace("cpu=4,mem=0,node=1", tres);
        let mut texts = texts(&text, NODES);
        texts.rules.wishes = &wishes;
        let job = read(&texts, "main", 1_795_384_600).unwrap().jobs.remove(0);
        assert_eq!(
            (job.phase, job.num_nodes, job.gpus_per_node),
            (Phase::Loose, num_nodes, gpus),
            "{what}"
        );
    }
}

#[test]
fn what_runs_on_driven_nodes_is_there_until_its_limit_whatever_it_asked_for() {
    let runs = [(1, "RUNNING"), (15, "1795384550")];
    let on = |tres: &str, changes: &[(usize, &str)]| {
        let text = line(&[&runs[..], changes].concat()).replace("cpu=4,mem=0,node=1", tres);
        let snapshot = look(&text, NODES).unwrap();
        let job = snapshot.jobs.first();
        let job = job.map(|job| (job.phase.clone(), job.gpus_per_node, job.nodes.join(",")));
        (job, snapshot.site.leaving)
    };
    let running = |gpus, nodes: &str| Some((Phase::Running, gpus, nodes.to_owned()));
    // Of another partition, with a user's own nodes, in a reservation; part of it on nodes that are not driven.
    let (job, leaving) = on(
        "cpu=4,node=1,gres/gpu=3",
        &[(9, "g1"), (17, "USER"), (21, "maint"), (23, "low")],
    );
    assert_eq!((job, leaving), (running(3, "g1"), BTreeMap::new()));
    let (job, _) = on("cpu=4,node=2,gres/gpu=4", &[(9, "g1,h7"), (7, "2")]);
    assert_eq!(job, running(2, "g1"));
    let (job, _) = on("cpu=4,node=1,gres/gpu=4", &[(9, "g2"), (3, "N/A"), (17, "NO")]);
    assert_eq!(job, running(4, "g2"), "Slurm gave it the node's");
    // Not here; a part of a GPU; one that ends: what is in use is given to no job.
    let (job, leaving) = on("cpu=4,node=1,gres/gpu=2", &[(9, "h7")]);
    assert_eq!((job, leaving.get("g1")), (None, Some(&3)));
    let (job, leaving) = on("cpu=4,node=1", &[(9, "g1"), (3, "gres:shard:1")]);
    assert!(matches!(job, Some((Phase::Foreign { .. }, ..))) && leaving["g1"] == 3);
    let leaking = NODES.replace(
        "g2|idle|gpu:a100:4(S:0-1),shard:a100:16|gpu:a100:0",
        "g2|idle|gpu:a100:4,shard:a100:16|gpu:a100:4",
    );
    let told = read_pinned(
        &texts("", &leaking),
        ("main", &partitions("")),
        (&Names::new(), &mut Known::default()),
        0,
    )
    .unwrap()
    .standing;
    assert!(told.contains("idle nodes") && told.contains(": g2 "), "{told}");
}

#[test]
fn garbage_is_refused_with_its_line() {
    let good = line(&[]);
    for bad in [
        "Segmentation fault\n".to_string(),
        "\n".to_string(),
        good.replace("PENDING", "pend\u{1}ing"),
        good.replace("|9|gres", "|-1|gres"),
        good.replace("1795384544", "yesterday"),
        good.replace("10:00", "10 minutes"),
        good[..good.len() / 2].to_string(),
        good.replace("|7|", "|seven|"),
        format!("{good}{good}"),
    ] {
        let error = look(&bad, NODES).unwrap_err();
        assert!(
            matches!(
                error,
                Error::Garbage {
                    command: "squeue",
                    ..
                }
            ),
            "{bad:?}: {error}"
        );
    }
    for bad in [
        "slurm_load_node error\n",
        "64000|0|1|(null)|g1|idle|gpu:4|gpu:0|16|main|\n",
        "64000|0|1|(null)|g[1-2]|idle|gpu:4|gpu:0|0/16/0/16|main|\n",
    ] {
        let error = look("", bad).unwrap_err();
        assert!(
            matches!(
                error,
                Error::Garbage {
                    command: "sinfo",
                    line: 1,
                    ..
                }
            ),
            "{bad:?}: {error}"
        );
    }
    assert_eq!(one(&[(25, "a|b")]).account, "a|b", "an account may be any text");
}

#[test]
fn no_cut_and_no_changed_byte_of_a_text_makes_the_reader_panic() {
    let text = line(&[(1, "RUNNING"), (7, "2"), (9, "g[1-2]")]) + &line(&[(0, "8_1")]);
    for at in 0..text.len() {
        let _ = look(&text[..at], NODES);
        for byte in [b'|', b'[', b',', b':', b'9', b'-', b'\n', b'(', b' '] {
            let mut changed = text.clone().into_bytes();
            changed[at] = byte;
            let _ = look(&String::from_utf8(changed).unwrap(), NODES);
        }
    }
    for at in 0..NODES.len() {
        let _ = look(&text, &NODES[..at]);
    }
}

/// Printed by 22.05.8, 24.11.5 and 26.05.5 for the same jobs: whole nodes, `--exclusive`, `--gpus=2 -w g3`, `-C nvme` with GPUs by task,
/// shards, GPUs by socket. The last field of each tells how sharing nodes is said (`job_lines`).
#[test]
fn lines_of_three_releases_are_read_as_the_same_jobs() {
    let jobs = |gres: &str, task: &str, shared: &str, own: &str| {
        let end = "0|(null)|(null)|(null)|(null)|main|root|(null)|";
        let nvme = "0|nvme|(null)|(null)|(null)|main|root|(null)|";
        [
            format!("2|PENDING|1|{gres}gpu:v100:8|N/A|N/A|N/A|1|1|||(null)|Resources|9:00|1795384544|N/A|0|{shared}|{end}\n"),
            format!("4|PENDING|1|{gres}gpu:1|N/A|N/A|N/A|1|1|||(null)|Priority|9:00|1795384544|N/A|0|{own}|{end}\n"),
            format!("6|PENDING|1|N/A|{gres}gpu:2|N/A|N/A|1|1||g3|(null)|Priority|9:00|1795384544|N/A|0|{shared}|{end}\n"),
            format!("5|PENDING|0|N/A|N/A|{task}|N/A|1|2|||(null)|JobHeldUser|9:00|1795384544|N/A|0|{shared}|{nvme}\n"),
            format!("9|PENDING|0|{gres}shard:1|N/A|N/A|N/A|1|1|||(null)|JobHeldUser|9:00|1795384544|N/A|0|{shared}|{end}\n"),
            format!("7|PENDING|0|N/A|N/A|N/A|{gres}gpu:1|1|1|||(null)|JobHeldUser|9:00|1795384544|N/A|0|{shared}|{end}\n"),
        ]
        .concat()
    };
    let seen = |text: &str| {
        let lines = text
            .lines()
            .map(|line| format!("cpu=1,node=1|normal|N/A|N/A|{line}\n"));
        look(&lines.collect::<String>(), NODES).unwrap().jobs
    };
    let old = seen(&jobs("gres:", "gres:gpu:1", "OK", "NO"));
    let middle = seen(&jobs("gres/", "gres/gpu=1", "OK", "NO"));
    let new = seen(&jobs("gres/", "gres/gpu=1", "NO/NO", "NO/NODE"));
    assert_eq!(old, middle);
    assert_eq!(old, new);
    assert_eq!(old.len(), 6);
    let phases: Vec<bool> = old.iter().map(|job| job.phase == Phase::Loose).collect();
    assert_eq!(
        phases,
        [true, true, false, true, false, false],
        "three are held: {old:?}"
    );
}

#[test]
fn lines_that_are_known_are_read_as_they_are_read_anew() {
    let running = |node| line(&[(0, "8"), (1, "RUNNING"), (9, node), (15, "1795384600")]);
    let waits = |id, limit| line(&[(0, id), (13, limit)]);
    let beside = "PartitionName=main Nodes=g[1-3] State=UP\nPartitionName=side Nodes=g1 State=UP\n";
    let side = line(&[(0, "9"), (23, "side")]);
    let looks = [
        (running("g1") + &waits("7", "10:00") + &side, NODES, "", false),
        (
            side.clone() + &waits("7", "10:00") + &running("g1"),
            NODES,
            "",
            false,
        ),
        // Another limit, another node, another scope, nodes by name that are ours, a node that went, a line that cannot be read.
        (running("g2") + &waits("7", "20:00") + &side, NODES, "", false),
        (running("g2") + &waits("7", "20:00") + &side, NODES, beside, false),
        (running("g2") + &line(&[(10, "g2")]) + &side, NODES, beside, false),
        (running("g2") + &line(&[(10, "g2")]) + &side, NODES, beside, true),
        (
            running("g2") + &line(&[(10, "g2")]) + &side,
            NODES.split_once('\n').unwrap().1,
            beside,
            true,
        ),
        (running("g1") + "x|\n" + &waits("7", "10:00"), NODES, "", false),
        (
            running("g1") + &waits("7", "10:00") + &waits("7", "10:00"),
            NODES,
            "",
            false,
        ),
        (String::new(), NODES, "", false),
    ];
    let mut known = Known::default();
    for (jobs, nodes, partitions, is_ours) in &looks {
        let mut texts = texts(jobs, nodes);
        texts.rules.partitions = partitions;
        let names = is_ours.then(|| ("7".to_owned(), None)).into_iter().collect();
        let told = |known: &mut Known| {
            let of = ("main", &super::partitions(partitions));
            let read = read_pinned(&texts, of, (&names, known), 1_795_384_600);
            read.map(|read| (read.snapshot, read.shunned, read.named, read.standing, read.note))
                .map_err(|error| error.to_string())
        };
        assert_eq!(told(&mut known), told(&mut Known::default()), "{jobs}");
    }
}
