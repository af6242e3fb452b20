//! Texts as Slurm 22.05 prints them, and texts that it does not print.

use super::*;
use crate::slurm::job::is_to_give_back;
use crate::slurm::node::node_state;
use pleach_scheduler::cluster::NodeState;

const NODES: &str =
    "g1|mixed|gpu:a100:4,shard:a100:16|gpu:a100:2(IDX:0-1),shard:a100:1(IDX:2)|2/14/0/16|main*|
g2|idle|gpu:a100:4(S:0-1),shard:a100:16|gpu:a100:0(IDX:N/A),shard:a100:0(IDX:N/A)|0/16/0/16|main*|
g3|drained|gpu:v100:8|gpu:v100:0(IDX:N/A)|0/16/0/16|main*|
c1|idle|(null)|gpu:0|0/16/0/16|main*|
";

/// A line of a job; each change replaces one field.
fn line(changes: &[(usize, &str)]) -> String {
    let mut fields = vec![
        "7",
        "PENDING",
        "0",
        "gres:gpu:2",
        "N/A",
        "N/A",
        "N/A",
        "1",
        "4",
        "",
        "",
        "pleach:held",
        "JobHeldAdmin",
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
    fields.join("|") + "|\n"
}

fn one(changes: &[(usize, &str)]) -> JobSeen {
    let snapshot = read(&line(changes), NODES, "main", 1_795_384_600).unwrap();
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
    let snapshot = read("", NODES, "main", 0).unwrap();
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
    // Asleep, and waking up: Slurm wakes it for who is let go to it. On its way to sleep it takes nobody.
    assert_eq!(node_state("idle~"), NodeState::Up);
    assert_eq!(node_state("mixed#"), NodeState::Up);
    assert_eq!(node_state("idle%"), NodeState::Draining);
    assert_eq!(node_state("maint"), NodeState::Draining);
}

#[test]
fn a_job_stands_where_its_hold_and_its_mark_say() {
    let job = one(&[(13, "2-03:04:05")]);
    assert_eq!(
        (job.phase.clone(), job.limit_s, job.num_gpus()),
        (Phase::Waiting, Some(183_845), 2)
    );
    assert_eq!(
        one(&[(2, "99"), (11, "(null)"), (12, "Priority")]).phase,
        Phase::Loose
    );
    let gang = one(&[(7, "2")]);
    assert_eq!(
        (gang.phase, gang.num_nodes, gang.gpus_per_node),
        (Phase::Waiting, 2, 2)
    );
    let released = one(&[
        (2, "99"),
        (11, "pleach:decided at=5 tries=1"),
        (10, "g2"),
        (12, "Resources"),
    ]);
    assert_eq!(released.phase, Phase::Released { since_s: 5 });
    assert_eq!((released.nodes, released.num_tries), (vec!["g2".to_string()], 1));
    // Decided, and the daemon ended before it was let go: it waits.
    assert_eq!(
        one(&[(11, "pleach:decided at=5 tries=1"), (10, "g2")]).phase,
        Phase::Waiting
    );
    let running = one(&[
        (1, "RUNNING"),
        (2, "9"),
        (7, "2"),
        (9, "g[1-2]"),
        (15, "1795384550"),
    ]);
    assert_eq!(
        (running.phase, running.nodes.len(), running.start_s),
        (Phase::Running, 2, Some(1_795_384_550))
    );
    let array = one(&[(0, "12_3"), (20, "afterok:4(unfulfilled)")]);
    assert_eq!(array.id.to_string(), "12_3");
    assert!(matches!(array.phase, Phase::Blocked { .. }));
    assert!(foreign(&[(11, "(null)"), (12, "JobHeldUser")]).contains("held by its user"));
    assert!(foreign(&[(2, "9"), (11, "(null)"), (12, "BeginTime")]).contains("BeginTime"));
}

#[test]
fn a_pause_that_a_clock_ahead_wrote_down_is_over() {
    let until = |until_s: i64| one(&[(11, &format!("pleach:held tries=2 until={until_s}"))]).not_before_s;
    let now_s = 1_795_384_600;
    assert_eq!(until(now_s + 600), now_s + 600);
    assert_eq!(until(now_s + 18_000), 0);
}

#[test]
fn what_the_tables_cannot_say_is_left_to_slurm_and_given_back_if_it_was_held() {
    for (at, text) in [
        (3, "gres:shard:3"),
        (19, "fast"),
        (21, "maint"),
        (17, "NO"),
        (18, "1"),
        (22, "matlab"),
        (3, "gres:gpu:1,gres:shard:2"),
    ] {
        let reason = foreign(&[(at, text)]);
        assert!(is_to_give_back(&reason), "{text}: {reason}");
    }
    let unmarked = foreign(&[(2, "9"), (3, "gres:shard:3"), (11, "(null)")]);
    assert!(!is_to_give_back(&unmarked));
    assert!(foreign(&[(11, "pleach:off")]).contains("off"));
    assert!(foreign(&[(1, "COMPLETING"), (9, "g1")]).contains("completing"));
    let snapshot = read(&line(&[(3, "N/A")]), NODES, "main", 0).unwrap();
    assert!(snapshot.jobs.is_empty(), "a job without GPUs is none of ours");
    let whole = one(&[(3, "N/A"), (4, "gres:gpu:a100:3")]);
    assert_eq!(
        (whole.gpu_type.as_deref(), whole.gpus_per_node),
        (Some("a100"), 3)
    );
}

#[test]
fn garbage_is_refused_with_its_line() {
    let good = line(&[]);
    for bad in [
        "Segmentation fault\n".to_string(),
        "\n".to_string(),
        good.replace("PENDING", "pend\u{1}ing"),
        good.replace("|0|gres", "|-1|gres"),
        good.replace("1795384544", "yesterday"),
        good.replace("10:00", "10 minutes"),
        good[..good.len() / 2].to_string(),
        good.replacen('7', "seven", 1),
        format!("{good}{good}"),
    ] {
        let error = read(&bad, NODES, "main", 0).unwrap_err();
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
        "g1|idle|gpu:4|gpu:0|16|main|\n",
        "g[1-2]|idle|gpu:4|gpu:0|0/16/0/16|main|\n",
    ] {
        let error = read("", bad, "main", 0).unwrap_err();
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
        let _ = read(&text[..at], NODES, "main", 0);
        for byte in [b'|', b'[', b',', b':', b'9', b'-', b'\n', b'(', b' '] {
            let mut changed = text.clone().into_bytes();
            changed[at] = byte;
            let _ = read(&String::from_utf8(changed).unwrap(), NODES, "main", 0);
        }
    }
    for at in 0..NODES.len() {
        let _ = read(&text, &NODES[..at], "main", 0);
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
    let seen = |text: &str| read(text, NODES, "main", 1_795_384_600).unwrap().jobs;
    let old = seen(&jobs("gres:", "gres:gpu:1", "OK", "NO"));
    let middle = seen(&jobs("gres/", "gres/gpu=1", "OK", "NO"));
    let new = seen(&jobs("gres/", "gres/gpu=1", "NO/NO", "NO/NODE"));
    assert_eq!(old, middle);
    assert_eq!(old, new);
    assert_eq!(old.len(), 6);
    let reasons: Vec<_> = old
        .iter()
        .filter(|job| matches!(job.phase, Phase::Foreign { .. }))
        .collect();
    assert!(
        reasons.len() >= 4 && !matches!(old[0].phase, Phase::Foreign { .. }),
        "{old:?}"
    );
}
