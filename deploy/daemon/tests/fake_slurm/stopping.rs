//! Where the policy may stop running jobs: Slurm requeues those that it may, and starts what comes first in the order.

use std::fs;

use super::fake::{Fake, out};

/// Two jobs that fill the nodes and have run for an hour of nine, and one that came now; `preemption` is on.
fn site() -> Fake {
    let fake = Fake::patient(Fake::ordered(&[]));
    let config = fake.read("pleach.toml") + "preemption = true\n";
    fs::write(fake.at("pleach.toml"), config).unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let began_s = now.unwrap().as_secs() - 3600;
    [91, 92]
        .iter()
        .for_each(|job| fake.change(*job, &format!("start={began_s}")));
    fake.come(1, 4, "10:00", "");
    fake
}

/// The jobs that were asked to be requeued.
fn requeued(fake: &Fake) -> Vec<String> {
    let log = fake.read("scontrol.log");
    let names = log
        .lines()
        .filter_map(|line| line.strip_prefix("requeue incomplete "));
    names.map(str::to_owned).collect()
}

#[test]
fn a_dealer_and_a_policy_that_preempts_stop_one_job_for_one_that_waits_which_then_starts() {
    for policy in ["las-deal", "srtf"] {
        let fake = site();
        let said = fake.rounds(policy, "--live", "1");
        let stopped = requeued(&fake);
        assert_eq!(stopped.len(), 1, "{policy}: {said}");
        let told = out(&fake.scheduler(&["status"]));
        assert!(told.contains("1 starts and preemptions"), "{policy}: {told}");
        fake.look();
        assert_eq!(fake.order(), [1], "{policy}");
        // The order was there before the GPUs were free.
        let log = fake.read("scontrol.log");
        let place = |word: &str| log.lines().position(|line| line.contains(word)).unwrap();
        assert!(place("sitefactor=") < place("requeue incomplete"), "{log}");
        fake.rounds(policy, "--live", "2");
        assert_eq!(requeued(&fake), stopped, "{policy}: no further one is stopped");
        let told = out(&fake.scheduler(&["explain", &stopped[0]]));
        assert!(
            told.contains("preempt") && told.contains("sent"),
            "{policy}: {told}"
        );
    }
}

#[test]
fn without_the_key_none_is_stopped_and_a_shadow_stops_none() {
    let fake = site();
    let said = fake.rounds("las-deal", "--shadow", "2");
    assert!(requeued(&fake).is_empty(), "{said}");
    let config = fake.read("pleach.toml").replace("preemption = true\n", "");
    fs::write(fake.at("pleach.toml"), config).unwrap();
    let said = fake.rounds("las-deal", "--live", "2");
    assert!(said.contains("no more than its order is carried out"), "{said}");
    assert!(requeued(&fake).is_empty() && fake.factor(1) > 0, "{said}");
}

#[test]
fn what_the_job_or_the_site_forbids_is_not_even_asked_for() {
    let both = |fake: &Fake, change: &str| [91, 92].iter().for_each(|job| fake.change(*job, change));
    for what in ["again=0", "batch=0", "mark=pleach:off", "part=side", "name=91+0"] {
        let fake = site();
        let partitions =
            "PartitionName=main Nodes=g[1-2] State=UP\nPartitionName=side Nodes=g[1-2] State=UP\n";
        fs::write(fake.at("partition"), partitions).unwrap();
        match what.split_once("name=91") {
            Some((_, part)) => {
                fake.change(91, what);
                fake.change(92, &format!("name=92{part}"));
            }
            None => both(&fake, what),
        }
        let said = fake.rounds("las-deal", "--live", "2");
        assert!(requeued(&fake).is_empty(), "{what}: {said}");
        assert!(fake.factor(1) > 0, "{what}: it is ranked all the same: {said}");
    }
    for (preempt, mode, num) in [
        ("PreemptExemptTime = 20000-00:00:00", "OFF", 0),
        ("PreemptExemptTime = 00:05:00", "OFF", 1),
        ("PreemptType = preempt/none", "OFF", 1),
        ("PreemptType = preempt/partition_prio", "OFF", 0),
        ("PreemptType = preempt/qos", "GANG,SUSPEND", 0),
        ("PreemptType = preempt/qos", "REQUEUE", 1),
    ] {
        let fake = site();
        fs::write(fake.at("preempt"), format!("{preempt}\n")).unwrap();
        let partition = format!("PartitionName=main Nodes=g[1-2] PreemptMode={mode} State=UP\n");
        fs::write(fake.at("partition"), partition).unwrap();
        let said = fake.rounds("las-deal", "--live", "1");
        assert_eq!(requeued(&fake).len(), num, "{preempt} {mode}: {said}");
    }
}

#[test]
fn of_two_the_one_that_may_be_requeued_is_stopped_and_a_refusal_is_not_repeated() {
    let fake = site();
    fake.change(91, "again=0");
    fake.rounds("las-deal", "--live", "1");
    assert_eq!(requeued(&fake), ["92"]);
    let fake = site();
    fs::write(fake.at("no-requeue"), "").unwrap();
    let said = fake.rounds("las-deal", "--live", "1");
    assert!(said.contains("presently disabled"), "{said}");
    assert_eq!(fake.order(), [0; 0]);
    let first = requeued(&fake);
    fake.rounds("las-deal", "--live", "2");
    assert_eq!(
        requeued(&fake),
        first,
        "it is left alone for ten minutes, by the next daemon too"
    );
}
