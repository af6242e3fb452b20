//! Ways of users to put a job of two days before jobs of minutes, and to keep all jobs from starting. None of them works.

use std::fs;

use pleach_daemon::Settings;
use pleach_daemon::slurm::Slurm;
use pleach_daemon::wait::block_on;

use super::fake::{Fake, out};

/// Limits of the honest jobs, which come after the other one and ask for whole nodes as it does.
const HONEST: [(usize, &str); 3] = [(2, "30:00"), (3, "10:00"), (4, "20:00")];
const TWO_DAYS: &str = "2-00:00:00";

/// A Slurm whose nodes are full, with a partition beside the driven one.
fn site() -> Fake {
    let fake = Fake::patient(Fake::ordered(&[]));
    let partitions = "PartitionName=main Nodes=g[1-2] State=UP\nPartitionName=side Nodes=g1 State=UP\n\
                      PartitionName=wide Nodes=g[1-2],h1 State=UP\nPartitionName=far Nodes=h1 State=UP\n";
    fs::write(fake.at("partition"), partitions).unwrap();
    for node in ["features-g1", "features-g2"] {
        fs::write(fake.at(node), "ib,nvme").unwrap();
    }
    let licences = "LicenseName=matlab Total=9 Used=0 Free=9 Reserved=0 Remote=no\n";
    fs::write(fake.at("licenses"), licences).unwrap();
    fake
}

/// The long job, which came first.
fn come(fake: &Fake, more: &str) {
    fake.come(1, 4, TWO_DAYS, more);
}

fn honest(fake: &Fake) {
    HONEST
        .iter()
        .for_each(|(number, limit)| fake.come(*number, 4, limit, ""));
}

/// Whether Slurm starts the long job behind all honest ones, which are shortest first.
fn is_last(fake: &Fake) -> bool {
    let all = HONEST.iter().all(|(job, _)| fake.factor(*job) > fake.factor(1));
    fake.line() == [3, 4, 2, 1] && all
}

#[test]
fn no_wish_of_a_long_job_is_a_free_pass() {
    for (what, more) in [
        ("nothing", ""),
        ("no limit", "limit=UNLIMITED"),
        ("a feature", "feature=ib"),
        ("features", "feature='ib&nvme'"),
        ("a set of features", "feature='[ib|nvme]'"),
        ("a count of features", "feature='ib*1'"),
        ("licences", "licence=matlab:1"),
        ("any of two licences", "licence='matlab|ansys'"),
        ("whole nodes", "over=NO"),
        ("whole nodes without GPUs", "over=NO kind=cpu"),
        ("nodes of its user's own", "over=USER"),
        ("nodes of its account's own", "over=MCS"),
        ("a node by name", "req=g1"),
        ("all nodes but one", "shuns=g2"),
        ("GPUs of two types", "asks='gpu:a100:2,gpu:v100:2'"),
        ("GPUs of its type", "asks=gpu:a100:4"),
        ("GPUs by task", "kind=cpu task=gres:gpu:1"),
        ("GPUs in all", "kind=cpu inall=gres:gpu:4"),
        ("more GPUs than a node has", "asks=gpu:6 gpus=6"),
        ("percentages of a GPU", "asks=mps:50"),
        ("shards", "asks=shard:2"),
        ("much memory", "mem=60000"),
        ("another partition of these nodes", "part=side"),
        ("a partition that reaches further", "part=wide"),
        ("several partitions", "part=far,wide"),
        ("another QOS", "qos=low"),
        ("an array", "name='1_[0-7%2]'"),
        ("a task of an array", "name=1_3"),
        ("the first part of a heterogeneous job", "name=1+0"),
        ("another part of it", "name=1+1 gpus=1"),
        ("a limit that is reached", "reason=AssocGrpGRES"),
        ("many runs before", "restarts=9"),
    ] {
        let fake = site();
        come(&fake, more);
        honest(&fake);
        let said = fake.rounds("sjf", "--live", "1");
        assert!(is_last(&fake), "{what}: {:?} {said}", fake.line());
    }
}

#[test]
fn no_short_job_keeps_its_place_when_it_becomes_a_long_one() {
    for (what, leaves, back) in [
        ("in the queue", "", ""),
        ("behind another job", "dep=aftero", "dep="),
        ("held", "prio=0", "prio=1"),
        (
            "at a time to come",
            "dep=begin reason=BeginTime",
            "dep= reason=Priority",
        ),
        ("in another partition", "part=far", "part=main"),
    ] {
        let fake = site();
        fake.come(1, 4, "1:00", "");
        honest(&fake);
        let settings = Settings::load(&fake.at("pleach.toml")).unwrap();
        let mut driver = Slurm::driver(&settings, "sjf", false).unwrap();
        let mut round = || drop(block_on(driver.round(1_795_001_000)));
        round();
        assert_eq!(fake.line()[0], 1, "{what}: as long as it is short it is first");
        fake.change(1, leaves);
        round();
        fake.change(1, &format!("limit={TWO_DAYS} {back}"));
        // At once where it has left, else as soon as it was looked at.
        assert!(leaves.is_empty() || is_last(&fake), "{what}: before a round");
        round();
        assert!(is_last(&fake), "{what}: {:?}", fake.line());
    }
}

#[test]
fn an_account_above_its_limit_comes_behind_all_in_the_moment_in_which_it_is_below() {
    let fake = site();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.unwrap().as_secs() as usize;
    let limits = |used: u32| {
        format!("ClusterName=c Account=a1 UserName= Partition= ParentAccount= GrpTRES=gres/gpu=4({used})\n")
    };
    fs::write(fake.at("assoc_mgr"), limits(4)).unwrap();
    come(&fake, "account=a1");
    honest(&fake);
    (1..=4).for_each(|job| fake.change(job, &format!("submit={}", now - 9 + job)));
    fake.rounds("sjf", "--live", "1");
    assert!(is_last(&fake), "above: {:?}", fake.line());
    fs::write(fake.at("assoc_mgr"), limits(0)).unwrap();
    assert!(is_last(&fake), "before a round");
    fake.rounds("sjf", "--live", "1");
    assert!(is_last(&fake), "below: {:?}", fake.line());
}

#[test]
fn ten_tiny_jobs_do_not_make_a_long_one_short() {
    let fake = site();
    let config = fake.read("pleach.toml") + "[estimates]\nfrom = \"history\"\n";
    fs::write(fake.at("pleach.toml"), config).unwrap();
    fake.end(91);
    fake.end(92);
    for number in 11..21 {
        fake.come(number, 4, "10:00", "user=eve");
        fake.played("sjf", 1);
        fake.rounds("sjf", "--live", "1");
        fake.end_after(number, "COMPLETED", 1);
    }
    fake.fill();
    come(&fake, "user=eve");
    for (number, _) in HONEST {
        fake.come(number, 4, "10:00", &format!("user=honest-{number}"));
    }
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.line().last(), Some(&1), "{:?}", fake.line());
}

#[test]
fn no_text_of_a_user_stops_a_round() {
    for (what, more) in [
        ("an end of line", "account='x|\n9|PENDING|0|gres:gpu:1|'"),
        ("a byte that is no text", "account=$'a\\377b'"),
        ("a control character", "account=$'a\\001b'"),
        ("a long record", "account=LONG"),
        ("a long list of nodes", "shuns='g[1-2],h[1-9999]'"),
        ("a list that is none", "shuns='g['"),
        ("a feature that is none", "feature='((('"),
        ("a licence that is none", "licence='a:b:c'"),
        ("a mark of a daemon's", "mark='pleach:decided;at=x'"),
        ("a dependency on thousands", "dep=aftero"),
    ] {
        let fake = site();
        honest(&fake);
        come(&fake, &more.replace("LONG", &"x".repeat(40_000)));
        fake.rounds("sjf", "--live", "1");
        let told = out(&fake.scheduler(&["status"]));
        assert!(told.contains("1 rounds, 0 failed"), "{what}: {told}");
        let line: Vec<usize> = fake.line().into_iter().filter(|job| *job != 1).collect();
        assert_eq!(line, [3, 4, 2], "{what}");
    }
}
