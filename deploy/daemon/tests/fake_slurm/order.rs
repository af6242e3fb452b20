//! Order and placement; preemption; what is held and what is handed back.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::time::Duration;

use super::fake::{Fake, QUEUE, out};

#[test]
fn jobs_start_in_the_order_of_the_policy_on_nodes_that_it_names() {
    let fake = Fake::new(&QUEUE);
    let said = fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.order(), [4, 2, 3], "{said}");
    let starts = fake.starts();
    // 1 and 3 GPUs fill one node, 4 the other: nothing is left for job 1.
    assert_eq!(starts[0].1, starts[1].1);
    assert_ne!(starts[0].1, starts[2].1);
    assert!(fake.job(1).contains("prio='0'") || fake.job(1).contains("prio=0"));
    fake.end(3);
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.order(), [4, 2, 3, 1]);
    let told = out(&fake.scheduler(&["explain", "3"]));
    assert!(
        told.contains("start job 3 on 4 GPU(s)") && told.contains("sent"),
        "{told}"
    );
    let log = fake.at("state/decisions.jsonl");
    let replayed = out(&fake.scheduler(&["replay", log.to_str().unwrap(), "--policy", "sjf"]));
    assert!(replayed.contains("2 of 2 rounds are decided alike"), "{replayed}");
    let other = out(&fake.scheduler(&["replay", log.to_str().unwrap(), "--policy", "fifo"]));
    assert!(other.contains("decided otherwise"), "{other}");
    assert!(fake.scheduler(&["status"]).status.success());
}

#[test]
fn the_shadow_decides_and_touches_nothing() {
    let fake = Fake::new(&QUEUE);
    fake.rounds("sjf", "--shadow", "3");
    assert_eq!((fake.order(), fake.read("scontrol.log").as_str()), (vec![], ""));
    let told = out(&fake.scheduler(&["explain", "4"]));
    assert!(told.contains("only decided (shadow)"), "{told}");
    assert!(
        !fake.at("state/heartbeat").exists(),
        "the Lua must hold nothing for a shadow"
    );
}

#[test]
fn what_nobody_held_is_held_first_and_what_a_user_holds_stays_his() {
    let fake = Fake::new(&[(2, "10:00")]);
    fs::write(
        fake.at("jobs/2"),
        "id=2 gpus=2 submit=1795000005 limit=05:00 prio=5\n",
    )
    .unwrap();
    fs::write(
        fake.at("jobs/3"),
        "id=3 gpus=2 submit=1795000006 limit=05:00 prio=0\n",
    )
    .unwrap();
    fake.rounds("sjf", "--live", "1");
    assert!(
        fake.job(2).contains("prio='0'") && fake.job(2).contains("pleach:held"),
        "{}",
        fake.job(2)
    );
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.order(), [1, 2]);
    let told = out(&fake.scheduler(&["why-not", "3", "--policy", "sjf"]));
    assert!(told.contains("held by its user"), "{told}");
}

#[test]
fn preemption_requeues_longer_jobs_and_they_run_again() {
    let fake = Fake::new(&[(4, "10-00:00:00"), (4, "10-00:00:00")]);
    let config = fake.read("pleach.toml") + "preemption = true\nrestart_cost_s = 1.0\n";
    fs::write(fake.at("pleach.toml"), config).unwrap();
    fake.rounds("srtf", "--live", "1");
    assert_eq!(fake.order(), [1, 2]);
    // Nobody is stopped in the second in which he started.
    std::thread::sleep(Duration::from_millis(1100));
    fake.submit(3, 4, "01:00");
    fake.rounds("srtf", "--live", "2");
    assert!(
        fake.read("scontrol.log").contains("requeuehold incomplete"),
        "{}",
        fake.read("scontrol.log")
    );
    assert_eq!(fake.order()[2], 3);
    fake.end(3);
    fake.rounds("srtf", "--live", "2");
    let order = fake.order();
    assert!(order.len() == 4 && order[3] <= 2, "{order:?}");
    // Not within the second in which its last run was ended, or Slurm kills it.
    assert!(fake.read("scontrol.log").contains("starttime=now+2"));
}

#[test]
fn shares_go_to_the_nodes_that_are_set_apart_and_to_the_gpus_that_were_foreseen() {
    let fake = Fake::new(&[(3, "2:00:00"), (2, "3:00:00")]);
    let config = "share_nodes = \"g2\"\n".to_owned() + &fake.read("pleach.toml");
    fs::write(fake.at("pleach.toml"), config).unwrap();
    for (number, shards, limit) in [(3, 2, "30:00"), (4, 3, "20:00"), (5, 2, "40:00"), (6, 5, "1:00")] {
        fake.submit(number, 1, limit);
        let text = fake.job(number).trim_end().to_owned() + &format!(" shards={shards}\n");
        fs::write(fake.at(&format!("jobs/{number}")), text).unwrap();
    }
    let said = fake.rounds("sjf", "--live", "1");
    // Shortest first: 4 takes three shards of GPU 0, 3 and 5 share GPU 1. Of the whole ones only one fits on g1.
    let start = |job: usize, place: &str| (job, place.to_owned());
    assert_eq!(
        fake.starts(),
        [
            start(4, "g2:0"),
            start(3, "g2:1"),
            start(5, "g2:1"),
            start(1, "g1")
        ],
        "{said}"
    );
    let told = out(&fake.scheduler(&["why-not", "6", "--policy", "sjf"]));
    assert!(told.contains("no GPU has more than 4"), "{told}");
    let told = out(&fake.scheduler(&["explain", "4"]));
    assert!(
        told.contains("start job 4 on 750 thousandths of 1 GPU(s) of g2"),
        "{told}"
    );
    // GPU 0 has one shard left; what ends on GPU 1 leaves two there.
    fake.end(3);
    for (number, shards) in [(7, 2), (8, 1)] {
        fake.submit(number, 1, "15:00");
        let text = fake.job(number).trim_end().to_owned() + &format!(" shards={shards}\n");
        fs::write(fake.at(&format!("jobs/{number}")), text).unwrap();
    }
    let said = fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.starts()[4..], [start(7, "g2:1"), start(8, "g2:0")], "{said}");
    let log = fake.at("state/decisions.jsonl");
    let replayed = out(&fake.scheduler(&["replay", log.to_str().unwrap(), "--policy", "sjf"]));
    assert!(replayed.contains("2 of 2 rounds are decided alike"), "{replayed}");
}

#[test]
fn handing_back_releases_everything_in_the_order_of_arrival() {
    let fake = Fake::new(&QUEUE);
    let told = out(&fake.scheduler(&["hand-back"]));
    assert!(told.contains("4 jobs were given back"), "{told}");
    let order = fake.order();
    assert_eq!(order[..2], [1, 2], "by arrival, where they fit");
    assert!(
        (1..=4).all(|job| !fake.job(job).contains("pleach:")),
        "no mark is left"
    );
    // No job is held: Slurm alone starts the rest.
    fs::write(fake.at("own"), "").unwrap();
    for job in [1, 2] {
        fake.end(job);
        Command::new(fake.at("bin/squeue")).output().unwrap();
    }
    let all: BTreeSet<usize> = fake.order().into_iter().collect();
    assert_eq!(all.len(), 4);
}
