//! Jobs that the tables cannot say, from texts as Slurm 22.05 prints them.

use super::*;
use crate::slurm::observe::{Read, SharesText, read_rules};
use crate::slurm::rules::RuleTexts;
use crate::slurm::scope::Scope;

const NOW_S: i64 = 1_795_000_000;

const NODES: &str = "64000|0|1|(null)|g1|idle|gpu:a100:4,shard:a100:16|gpu:a100:0|0/16/0/16|main*|
64000|0|1|(null)|g2|idle|gpu:a100:4|gpu:a100:0|0/16/0/16|main*|
64000|0|1|(null)|g3|idle|gpu:v100:8|gpu:v100:0|0/16/0/16|main*|
";

const PARTITIONS: &str = "PartitionName=main Nodes=g[1-3] State=UP\nPartitionName=side Nodes=g1 MaxTime=01:00:00 State=UP\n\
                          PartitionName=all Nodes=g[1-3],h1 State=UP\nPartitionName=debug Nodes=g2 State=UP\n";

/// A pending job that came so many seconds ago: number, priority, what it asks for, mark, reason, partition.
fn line(number: u32, came_s: i64, [priority, asked, mark, reason, partition]: [&str; 5]) -> String {
    let submit = NOW_S - came_s;
    format!(
        "cpu=1,mem=100M,node=1|normal|N/A|{submit}|{number}|PENDING|{priority}|gres:{asked}|N/A|N/A|N/A|1|1|||{mark}|{reason}|10:00|\
         {submit}|N/A|0|OK|0|(null)|(null)|(null)|(null)|{partition}|ann|a1|\n"
    )
}

/// One that is held for the daemon.
fn held(number: u32, came_s: i64, asked: &str) -> String {
    line(number, came_s, ["0", asked, "pleach:held", "JobHeldUser", "main"])
}

fn look(jobs: &[String], spare: &[&str], wishes: &str) -> Read {
    let (spare, left): (Vec<String>, _) = (
        spare.iter().map(|name| (*name).to_owned()).collect(),
        ["debug".to_owned()],
    );
    let scope = Scope {
        partition: "main",
        left_partitions: &left,
        spare_nodes: &spare,
    };
    let texts = RuleTexts {
        partitions: PARTITIONS,
        gpu_nodes: "g1|gpu:4\nh1|gpu:8\n",
        wishes,
        ..RuleTexts::default()
    };
    read_rules(
        &jobs.concat(),
        NODES,
        &scope,
        &SharesText::default(),
        &texts,
        NOW_S,
    )
    .unwrap()
}

fn steps_of(read: &Read) -> Vec<(String, Step)> {
    let steps = read.apart.steps.iter();
    steps.map(|(job, step)| (job.to_string(), step.clone())).collect()
}

fn reason(read: &Read, at: usize) -> &str {
    match &read.snapshot.jobs[at].phase {
        Phase::Foreign { reason } => reason,
        phase => panic!("{phase:?}"),
    }
}

fn without(nodes: &str, own: &str) -> Step {
    Step::Without {
        nodes: nodes.into(),
        own: own.into(),
    }
}

#[test]
fn what_nobody_can_decide_about_is_last_where_no_nodes_are_set_aside() {
    let jobs = [
        held(1, 100, "shard:1"),
        held(2, 90, "gpu:1"),
        held(3, 80, "mps:50"),
        held(4, 70, "gpu:1,gres:shard:1"),
    ];
    let read = look(&jobs, &[], "");
    assert_eq!(steps_of(&read), [("1".into(), Step::Last)], "it came first");
    assert_eq!(read.snapshot.jobs[1].phase, Phase::Waiting);
    let why = reason(&read, 2);
    assert!(
        why.starts_with("asks for mps:50, which the tables cannot say") && why.contains("spare_nodes"),
        "{why}"
    );
    assert!(
        read.apart.told.contains("2 job(s) wait to be last"),
        "{}",
        read.apart.told
    );
    // Nobody waits any more.
    let read = look(&[jobs[2].clone(), jobs[3].clone()], &[], "");
    assert_eq!(
        steps_of(&read),
        [("3".into(), Step::Last), ("4".into(), Step::Last)]
    );
    // Nobody waits for ever for one who cannot start.
    let read = look(&[held(2, 90_000, "gpu:1"), held(3, 86_401, "mps:50")], &[], "");
    assert_eq!(steps_of(&read), [("3".into(), Step::Last)]);
    // Other devices are none of ours.
    let read = look(
        &[line(5, 9, ["7", "nic:1", "(null)", "Priority", "main"])],
        &[],
        "",
    );
    assert!(read.apart.steps.is_empty() && reason(&read, 0) == "asks for nic:1");
}

#[test]
fn it_is_kept_to_the_nodes_that_are_set_aside_and_they_are_nobody_elses() {
    let jobs = [held(2, 90, "gpu:1"), held(3, 80, "mps:50")];
    let read = look(&jobs, &["g1"], "3\u{1f}g3\u{1f}(null)\u{1f}(null)\n");
    assert_eq!(steps_of(&read), [("3".into(), without("g[2-3]", "g3"))]);
    let nodes: Vec<&str> = read
        .snapshot
        .nodes
        .iter()
        .map(|node| node.name.as_str())
        .collect();
    assert_eq!(nodes, ["g2", "g3"]);
    // Let go, and kept there.
    let gone = |mark| line(3, 80, ["9", "mps:50", mark, "Resources", "main"]);
    let shunned = "3\u{1f}g[2-3]\u{1f}(null)\u{1f}(null)\n";
    let read = look(&[gone("pleach:apart;exc=g3")], &["g1"], shunned);
    assert!(read.apart.steps.is_empty(), "{:?}", read.apart.steps);
    assert!(
        read.apart.told.contains("1 go to nodes set aside"),
        "{}",
        read.apart.told
    );
    // Its user has taken them away, or the nodes have changed: it is held again, and his own are given back.
    for (spare, shunned) in [(["g1"], "3\u{1f}g2\u{1f}(null)\u{1f}(null)\n"), (["g2"], shunned)] {
        let read = look(&[gone("pleach:apart;exc=g3")], &spare, shunned);
        assert_eq!(steps_of(&read), [("3".into(), Step::Hold { is_changed: true })]);
        assert_eq!(read.named.shuns.values().collect::<Vec<_>>(), ["g3"]);
    }
    // Let go last it may be anywhere.
    let read = look(&[gone("pleach:apart;last")], &["g1"], "");
    assert!(read.apart.steps.is_empty());
    // Slurm has found that no node of those will do.
    let refused = line(
        3,
        80,
        ["0", "mps:50", "pleach:apart;exc=g3", "BadConstraints", "main"],
    );
    let read = look(&[refused], &["g1"], shunned);
    assert_eq!(steps_of(&read), [("3".into(), Step::Last)]);
    let nowhere = line(
        3,
        80,
        ["0", "mps:50", "pleach:apart;last", "BadConstraints", "main"],
    );
    let read = look(&[nowhere], &["g1"], "");
    assert!(read.apart.steps.is_empty() && reason(&read, 0) == "asks for mps:50");
}

#[test]
fn whatever_partition_a_job_names_it_is_held_where_it_may_run_on_driven_nodes() {
    let of = |partition, priority, mark| line(3, 80, [priority, "gpu:1", mark, "Resources", partition]);
    let one = |job: String, spare: &[&str]| look(&[job], spare, "");
    for (partition, phase) in [
        ("side", Phase::Loose),
        ("side,main", Phase::Loose),
        ("main,all", Phase::Loose),
    ] {
        assert_eq!(
            one(of(partition, "9", "(null)"), &[]).snapshot.jobs[0].phase,
            phase,
            "{partition}"
        );
    }
    // Decided about on its partition's nodes and by its limits.
    let read = one(of("side", "0", "pleach:held"), &[]);
    assert_eq!(read.snapshot.jobs[0].phase, Phase::Waiting);
    let rule = &read.snapshot.site.rules[0];
    assert_eq!(
        (rule.closed.as_str(), rule.why.as_str()),
        ("g[2-3]", "is not of its partition (side)")
    );
    let long = of("side", "0", "pleach:held").replace("|10:00|", "|2:00:00|");
    assert!(matches!(
        one(long, &[]).snapshot.jobs[0].phase,
        Phase::Blocked { .. }
    ));
    // It reaches further: it is held, then kept to the other nodes.
    let read = one(of("all", "9", "(null)"), &[]);
    assert_eq!(steps_of(&read), [("3".into(), Step::Hold { is_changed: false })]);
    let read = one(of("all", "0", "pleach:held"), &[]);
    assert_eq!(steps_of(&read), [("3".into(), without("g[1-3]", ""))]);
    // Left to Slurm by the site, and given back where it was held.
    let read = one(of("debug", "9", "(null)"), &[]);
    assert!(read.apart.steps.is_empty() && reason(&read, 0) == "asks for another partition");
    assert!(reason(&one(of("debug", "0", "pleach:held"), &[]), 0).starts_with("held, and"));
    // All nodes of its partition are set aside.
    let read = one(of("side", "0", "pleach:held"), &["g1"]);
    assert_eq!(steps_of(&read), [("3".into(), without("g[2-3]", ""))]);
}

#[test]
fn what_is_its_users_stays_his_and_a_time_to_begin_is_waited_for() {
    let of = |priority, mark, reason| line(3, 80, [priority, "mps:1", mark, reason, "main"]);
    for (priority, mark, why) in [
        ("0", "(null)", "JobHeldUser"),
        ("0", "pleach:own", "JobHeldUser"),
        ("0", "pleach:apart;last", "JobHeldUser"),
        ("9", "(null)", "AssocGrpGRES"),
    ] {
        let read = look(&[of(priority, mark, why)], &[], "");
        assert!(
            read.apart.steps.is_empty(),
            "{mark} {why}: {:?}",
            read.apart.steps
        );
    }
    let later =
        of("0", "pleach:held", "JobHeldAdmin").replace(&format!("|N/A|{}|", NOW_S - 80), "|N/A|1795000300|");
    let read = look(std::slice::from_ref(&later), &[], "");
    assert!(read.apart.steps.is_empty() && reason(&read, 0).ends_with("and may not begin yet"));
    let free = later
        .replace("|0|gres", "|9|gres")
        .replace("pleach:held", "(null)")
        .replace("JobHeldAdmin", "BeginTime");
    assert_eq!(
        steps_of(&look(&[free], &[], "")),
        [("3".into(), Step::Hold { is_changed: false })]
    );
}
