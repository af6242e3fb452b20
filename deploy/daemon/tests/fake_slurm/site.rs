//! What a site knows of its jobs and nodes is in the tables: memory, features, names of nodes, reservations, limits, licences.

use std::fs;

use super::fake::{Fake, out};

/// A Slurm without jobs.
fn site() -> Fake {
    let fake = Fake::new(&[]);
    // The scripts take their time on a busy machine.
    let config = fake
        .read("pleach.toml")
        .replace("command_limit_s = 6.0", "command_limit_s = 20.0");
    fs::write(fake.at("pleach.toml"), config).unwrap();
    fake
}

/// A job that is held, with more of what the scripts know of jobs.
fn held(fake: &Fake, number: usize, gpus: u32, limit: &str, more: &str) {
    fake.submit(number, gpus, limit);
    fake.change(number, more);
}

fn why_not(fake: &Fake, job: &str) -> String {
    out(&fake.scheduler(&["why-not", job, "--policy", "sjf"]))
}

fn start(job: usize, node: &str) -> (usize, String) {
    (job, node.to_owned())
}

#[test]
fn host_memory_features_and_nodes_by_name_are_known_before_anybody_is_let_go() {
    let fake = site();
    fs::write(fake.at("memory-g1"), "10000").unwrap();
    fs::write(fake.at("features-g1"), "nvme,old").unwrap();
    fs::write(fake.at("features-g2"), "nvme,new").unwrap();
    held(&fake, 1, 1, "10:00", "mem=60000");
    held(&fake, 2, 1, "11:00", "feature='nvme&old'");
    held(&fake, 3, 1, "12:00", "shuns=g1 mem=1");
    held(&fake, 4, 1, "13:00", "req=g1 mem=1");
    held(&fake, 5, 1, "14:00", "feature=gone");
    held(&fake, 6, 1, "15:00", "mem=64001");
    fake.rounds("sjf", "--live", "1");
    let starts = [start(1, "g2"), start(2, "g1"), start(3, "g2"), start(4, "g1")];
    assert_eq!(fake.starts(), starts);
    let told = why_not(&fake, "5");
    assert!(told.contains("each lacks what it asks for: gone"), "{told}");
    let told = why_not(&fake, "6");
    assert!(
        told.contains("has 64000 MiB of memory, and it asks for 64001"),
        "{told}"
    );
    // What users named is theirs again, and no line is written of those who cannot start.
    assert!(
        !fake.read("scontrol.log").contains("jobid=5"),
        "{}",
        fake.read("scontrol.log")
    );
}

#[test]
fn nobody_is_let_go_into_a_reservation_and_short_jobs_are_let_go_before_it() {
    let fake = site();
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let line = |start: u64| {
        format!(
            "ReservationName=maint StartTime={start} EndTime={} Nodes=g1 NodeCnt=1 CoreCnt=16 Flags=MAINT State=INACTIVE\n",
            start + 3600
        )
    };
    fs::write(fake.at("reservation"), line(now + 1200)).unwrap();
    held(&fake, 1, 4, "1:00:00", "");
    held(&fake, 2, 4, "10:00", "");
    held(&fake, 3, 4, "2:00:00", "");
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.starts(), [start(2, "g1"), start(1, "g2")]);
    fake.end(2);
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.starts().len(), 2, "the last would run into it");
    let told = why_not(&fake, "3");
    assert!(told.contains("g1 is in the reservation maint from"), "{told}");
    fs::write(fake.at("reservation"), line(now - 4000)).unwrap();
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.starts()[2..], [start(3, "g1")], "it is over");
}

/// Two GPUs for an account, as Slurm tells it, of which so many are in use.
fn limit_of(account: &str, used: u32) -> String {
    format!(
        "ClusterName=c Account=root UserName= Partition= ParentAccount= GrpTRES=cpu=N(0),gres/gpu=N({used})\n\
         ClusterName=c Account={account} UserName= Partition= ParentAccount=root(1) GrpTRES=cpu=N(0),gres/gpu=2({used})\n"
    )
}

#[test]
fn what_a_limit_forbids_is_not_let_go_and_others_have_the_gpus_in_the_same_round() {
    let fake = site();
    fs::write(fake.at("assoc_mgr"), limit_of("a1", 0)).unwrap();
    for number in 1..=8 {
        held(&fake, number, 1, "10:00", "user=bin account=a1");
    }
    for number in 11..=16 {
        held(&fake, number, 1, "20:00", "user=games account=a2");
    }
    let said = fake.rounds("sjf", "--live", "1");
    assert!(!said.contains("refused"), "{said}");
    let of_a1 = fake.order().into_iter().filter(|job| *job < 10).count();
    assert_eq!((of_a1, fake.order().len()), (2, 8), "{:?}", fake.starts());
    fs::write(fake.at("assoc_mgr"), limit_of("a1", 2)).unwrap();
    fake.end(11);
    fake.end(12);
    fake.rounds("sjf", "--live", "2");
    assert_eq!(fake.order().len(), 8);
    let told = why_not(&fake, "5");
    assert!(
        told.contains("0 is left of GrpTRES=gres/gpu of account a1"),
        "{told}"
    );
    for number in 1..=8 {
        assert!(
            !fake.job(number).contains("tries=1"),
            "nobody was let go for nothing, so nobody pauses"
        );
    }
    let log = fake.at("state/decisions.jsonl").display().to_string();
    let told = out(&fake.scheduler(&["replay", &log, "--policy", "sjf"]));
    assert!(
        !told.contains("otherwise") && told.contains("decided alike"),
        "{told}"
    );
}

#[test]
fn licences_and_limits_of_the_partition_are_kept() {
    let fake = site();
    fs::write(
        fake.at("licenses"),
        "LicenseName=matlab Total=2 Used=1 Free=1 Reserved=0 Remote=no\n",
    )
    .unwrap();
    fs::write(
        fake.at("partition"),
        "PartitionName=main MaxTime=01:00:00 MaxNodes=1 State=UP\n",
    )
    .unwrap();
    held(&fake, 1, 1, "10:00", "licence=matlab:1");
    held(&fake, 2, 1, "11:00", "licence=matlab:1");
    held(&fake, 3, 1, "2:00:00", "");
    held(&fake, 4, 1, "12:00", "");
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.order(), [1, 4]);
    fs::write(
        fake.at("licenses"),
        "LicenseName=matlab Total=2 Used=2 Free=0 Reserved=0 Remote=no\n",
    )
    .unwrap();
    let told = why_not(&fake, "2");
    assert!(told.contains("licences matlab"), "{told}");
    let told = why_not(&fake, "3");
    assert!(
        told.contains("has a limit of 7200 s, and the partition allows 3600 s"),
        "{told}"
    );
    fs::write(
        fake.at("partition"),
        "PartitionName=main MaxTime=UNLIMITED State=DOWN\n",
    )
    .unwrap();
    fs::remove_file(fake.at("licenses")).unwrap();
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.order().len(), 2, "nobody starts in a partition that is down");
}

#[test]
fn who_may_not_begin_yet_is_held_until_then_and_comes_behind_those_who_came_earlier() {
    let fake = site();
    let later_s = 4_000_000_000_u64;
    fake.come(1, 4, "1:00", &format!("begin={later_s} reason=BeginTime"));
    held(&fake, 2, 4, "2:00", &format!("begin={later_s}"));
    fake.rounds("sjf", "--live", "2");
    assert_eq!(fake.order(), [0; 0]);
    assert!(
        fake.job(1).contains("prio='0'") && fake.job(1).contains("pleach:held"),
        "{}",
        fake.job(1)
    );
    let told = why_not(&fake, "2");
    assert!(told.contains("begins at 4000000000"), "{told}");
    held(&fake, 3, 4, "3:00", "");
    held(&fake, 4, 4, "4:00", "");
    fake.rounds("fifo", "--live", "1");
    assert_eq!(fake.order(), [3, 4]);
    for job in [1, 2] {
        fake.change(job, "begin=N/A");
    }
    fake.end(3);
    fake.rounds("fifo", "--live", "1");
    assert_eq!(fake.order(), [3, 4, 1]);
}

#[test]
fn who_did_not_start_gets_the_nodes_back_that_its_user_named() {
    let fake = site();
    held(&fake, 1, 4, "10:00", "req=g1");
    fs::write(fake.at("full-g1"), "").unwrap();
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.order(), [0; 0]);
    std::thread::sleep(std::time::Duration::from_millis(2100));
    fake.rounds("sjf", "--live", "1");
    assert!(
        fake.job(1).contains("req='g1'") && fake.job(1).contains("tries=1"),
        "{}",
        fake.job(1)
    );
    let told = why_not(&fake, "1");
    assert!(
        told.contains("g2 is not among those that it names (g1)"),
        "{told}"
    );
    fs::remove_file(fake.at("full-g1")).unwrap();
    assert!(out(&fake.scheduler(&["hand-back"])).contains("1 jobs were given back"));
    assert_eq!(fake.starts(), [start(1, "g1")]);
}

#[test]
fn what_slurm_does_not_tell_of_its_rules_costs_no_round() {
    let fake = Fake::new(&[(1, "10:00")]);
    let script = fake.read("bin/scontrol").replace(
        "#!/bin/sh\n",
        "#!/bin/sh\ncase \"$*\" in *show*) exit 1 ;; esac\n",
    );
    fs::write(fake.at("bin/scontrol"), script).unwrap();
    let said = fake.rounds("sjf", "--live", "1");
    assert!(said.contains("rules of the site are not known"), "{said}");
    assert_eq!(fake.order(), [1]);
}

#[test]
fn many_jobs_that_nobody_held_are_held_with_one_command_and_an_array_as_one_of_them() {
    let fake = site();
    for number in 1..=40 {
        fake.come(number, 4, "10:00", "");
    }
    for task in 0..40 {
        let text = format!("id=900_{task} gpus=4 limit=10:00 prio=1 submit=1795000900\n");
        fs::write(fake.at(&format!("jobs/900_{task}")), text).unwrap();
    }
    // The script knows tasks alone.
    fs::write(
        fake.at("jobs/900"),
        "id=900 state=COMPLETED kind=cpu prio=1 submit=1795000900\n",
    )
    .unwrap();
    fake.rounds("sjf", "--live", "1");
    let log = fake.read("scontrol.log");
    let commands = log.lines().filter(|line| !line.starts_with("pleach-end")).count();
    assert_eq!(commands, 1, "{log}");
    assert!(log.contains("update jobid=900,1,2,3,"), "{log}");
}
