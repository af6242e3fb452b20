//! Jobs that the tables cannot say, and partitions beside the driven one: nobody starts before who waits for the policy.

use std::fs;

use super::fake::{Fake, out};

/// A Slurm that starts by itself what nobody holds, whose nodes two jobs fill, 91 on g1 and 92 on g2, and where jobs are held.
fn full(more: &str) -> Fake {
    let fake = Fake::ordered(&[]);
    let config = fake
        .read("pleach.toml")
        .replace("drive = \"order\"", "drive = \"hold\"");
    let config = config.replace("command_limit_s = 6.0", "command_limit_s = 20.0");
    fs::write(fake.at("pleach.toml"), more.to_owned() + &config).unwrap();
    fake
}

fn status(fake: &Fake) -> String {
    out(&fake.scheduler(&["status"]))
}

fn why_not(fake: &Fake, job: &str) -> String {
    out(&fake.scheduler(&["why-not", job, "--policy", "sjf"]))
}

#[test]
fn shares_that_are_not_given_are_held_and_let_go_when_nobody_waits_who_came_before() {
    let fake = full("");
    fake.submit(1, 4, "10:00");
    // As without a script: nobody holds it.
    fake.come(2, 1, "1:00", "kind=mps");
    fake.submit(3, 4, "5:00");
    // Today: nobody waits for longer than a day for who came before.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.unwrap().as_secs() as usize;
    (1..=3).for_each(|job| fake.change(job, &format!("submit={}", now - 10 + job)));
    fake.rounds("sjf", "--live", "1");
    assert!(
        fake.job(2).contains("prio='0'") && fake.job(2).contains("mark='pleach:held"),
        "{}",
        fake.job(2)
    );
    let told = why_not(&fake, "2");
    assert!(
        told.contains("asks for mps:50") && told.contains("nobody who came before it"),
        "{told}"
    );
    fake.rounds("sjf", "--live", "1");
    assert!(
        status(&fake).contains("1 job(s) wait to be last"),
        "{}",
        status(&fake)
    );
    // A node is free: it is the policy's to give, and the job that came before it is still there.
    fake.end(91);
    fake.rounds("sjf", "--live", "2");
    assert_eq!(fake.order(), [3], "the shortest of those who wait");
    fake.end(92);
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.order(), [3, 1]);
    // Nobody who came before it waits: it is next.
    fake.end(3);
    fake.rounds("sjf", "--live", "2");
    assert_eq!(fake.order(), [3, 1, 2]);
    assert!(
        fake.job(2).contains("mark='pleach:apart;last'"),
        "{}",
        fake.job(2)
    );
}

#[test]
fn it_starts_at_once_on_nodes_that_are_set_aside_and_nowhere_else() {
    let fake = full("spare_nodes = \"g2\"\n");
    fake.submit(1, 4, "10:00");
    fake.come(2, 1, "1:00", "kind=mps");
    fake.submit(3, 4, "5:00");
    fake.rounds("sjf", "--live", "2");
    assert!(fake.starts().is_empty(), "{:?}", fake.starts());
    assert!(
        fake.job(2).contains("mark='pleach:apart;exc='") && fake.job(2).contains("shuns='g1'"),
        "{}",
        fake.job(2)
    );
    assert!(
        status(&fake).contains("1 go to nodes set aside"),
        "{}",
        status(&fake)
    );
    // A node of the policy's becomes free, then the one that is set aside.
    fake.end(91);
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.starts(), [(3, "g1".to_owned())]);
    fake.end(92);
    fake.rounds("sjf", "--live", "2");
    assert_eq!(fake.starts(), [(3, "g1".to_owned()), (2, "g2".to_owned())]);
    // Handed back, nodes are their users' to shun.
    fake.come(4, 4, "1:00", "kind=mps shuns=g2");
    fs::write(fake.at("full-g1"), "").unwrap();
    fake.rounds("sjf", "--live", "2");
    assert!(
        fake.job(4).contains("mark='pleach:apart;exc=g2'") && fake.job(4).contains("shuns='g[1-2]'"),
        "{}",
        fake.job(4)
    );
    assert!(fake.scheduler(&["hand-back"]).status.success());
    assert!(
        fake.job(4).contains("shuns='g2'") && fake.job(4).contains("mark=''"),
        "{}",
        fake.job(4)
    );
    assert!(
        !fake.at("state/heartbeat").exists(),
        "the script holds nobody any more"
    );
}

#[test]
fn a_partition_on_the_same_nodes_is_held_too_unless_the_site_leaves_it() {
    let fake = full("left_partitions = [\"debug\"]\n");
    let partitions = "PartitionName=main Nodes=g[1-2] State=UP\nPartitionName=side Nodes=g1 State=UP\n\
                      PartitionName=wide Nodes=g[1-2],h1 State=UP\nPartitionName=debug Nodes=g2 State=UP\n";
    fs::write(fake.at("partition"), partitions).unwrap();
    fake.submit(1, 4, "10:00");
    fake.come(2, 4, "20:00", "part=side");
    fake.come(3, 4, "1:00", "part=debug");
    fake.come(4, 1, "1:00", "part=wide");
    fake.come(5, 1, "1:00", "part=elsewhere");
    let said = fake.rounds("sjf", "--live", "1");
    assert!(said.contains("left_partitions`): debug"), "{said}");
    for (job, is_held) in [(2, true), (3, false), (4, true), (5, false)] {
        assert_eq!(fake.job(job).contains("prio='0'"), is_held, "{}", fake.job(job));
    }
    let told = why_not(&fake, "2");
    assert!(told.contains("g2 is not of its partition (side)"), "{told}");
    // Shorter, and of the driven partition: it comes first; the other one gets the node that it may have.
    fake.rounds("sjf", "--live", "1");
    assert!(
        fake.job(4).contains("shuns='g[1-2]'"),
        "it has a node elsewhere: {}",
        fake.job(4)
    );
    fake.end(3);
    fake.end(5);
    fake.end(91);
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.starts(), [(1, "g1".to_owned())]);
    fake.end(92);
    fake.rounds("sjf", "--live", "2");
    assert_eq!(fake.starts().len(), 1, "g2 is not of its partition");
    fake.end(1);
    fake.rounds("sjf", "--live", "2");
    assert_eq!(fake.starts()[1..], [(2, "g1".to_owned())]);
}
