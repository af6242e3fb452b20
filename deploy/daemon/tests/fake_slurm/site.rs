//! What a site knows of its jobs and nodes is in the tables: memory, features, names of nodes, reservations, limits, budgets, licences,
//! partitions beside the driven one.

use std::fs;

use super::fake::{Fake, out};

/// A Slurm whose nodes are full.
fn site() -> Fake {
    Fake::patient(Fake::ordered(&[]))
}

fn why_not(fake: &Fake, job: &str) -> String {
    out(&fake.scheduler(&["why-not", job, "--policy", "sjf"]))
}

#[test]
fn a_job_to_which_no_node_is_open_is_last_until_one_is() {
    let fake = site();
    fs::write(fake.at("features-g1"), "nvme,old").unwrap();
    fs::write(fake.at("features-g2"), "nvme,new").unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.unwrap().as_secs() as usize;
    let jobs = [
        ("11:00", "feature='nvme&old'"),
        ("12:00", "shuns=g1 mem=1"),
        ("13:00", "req=g1 mem=1"),
        ("1:00", "feature=gone"),
        ("20:00", ""),
    ];
    for (at, (limit, more)) in jobs.iter().enumerate() {
        fake.come(at + 1, 1, limit, more);
        fake.change(at + 1, &format!("submit={}", now - 60 + at));
    }
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.line(), [1, 2, 3, 5, 4]);
    let told = why_not(&fake, "4");
    assert!(told.contains("each lacks what it asks for: gone"), "{told}");
    let told = why_not(&fake, "3");
    assert!(
        told.contains("g2 is not among those that it names (g1)"),
        "{told}"
    );
    fs::write(fake.at("features-g2"), "nvme,new,gone").unwrap();
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.line(), [4, 1, 2, 3, 5]);
    // Whatever is read wrongly here, a job that came more than a day ago has its place by arrival.
    fs::write(fake.at("features-g2"), "nvme,new").unwrap();
    fake.change(4, &format!("submit={}", now - 90_000));
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.line(), [4, 1, 2, 3, 5]);
    fake.change(4, "submit=1795000004");
}

#[test]
fn jobs_of_an_association_that_slurm_refuses_for_an_unread_limit_are_last_with_its_others() {
    let fake = site();
    fake.come(
        1,
        2,
        "10:00",
        "user=ann account=a1 reason=AssocMaxCpuMinutesPerJobLimit",
    );
    fake.come(2, 4, "5:00", "user=ann account=a1");
    // It asks for less than what is refused, or is of another user.
    fake.come(3, 1, "40:00", "user=ann account=a1");
    fake.come(4, 2, "20:00", "user=bob account=a1");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.unwrap().as_secs() as usize;
    (1..=4).for_each(|job| fake.change(job, &format!("submit={}", now - 60 + job)));
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.line(), [4, 3, 1, 2]);
    let told = why_not(&fake, "2");
    assert!(told.contains("AssocMaxCpuMinutesPerJobLimit"), "{told}");
    fake.change(1, "reason=Priority");
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.line(), [2, 1, 4, 3]);
}

#[test]
fn reservations_limits_of_the_partition_and_licences_are_told() {
    let fake = site();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let start = now.unwrap().as_secs() + 1200;
    let line = format!(
        "ReservationName=maint StartTime={start} EndTime={} Nodes=g1 NodeCnt=1 CoreCnt=16 Flags=MAINT State=INACTIVE\n",
        start + 3600
    );
    fs::write(fake.at("reservation"), line).unwrap();
    let partition = "PartitionName=main MaxTime=01:00:00 MaxNodes=1 State=UP\n";
    fs::write(fake.at("partition"), partition).unwrap();
    let licences = "LicenseName=matlab Total=2 Used=2 Free=0 Reserved=0 Remote=no\n";
    fs::write(fake.at("licenses"), licences).unwrap();
    fake.come(1, 4, "50:00", "");
    fake.come(2, 4, "10:00", "");
    fake.come(3, 1, "2:00:00", "");
    fake.come(4, 1, "11:00", "licence=matlab:1");
    fake.rounds("sjf", "--live", "1");
    for (job, words) in [
        ("1", "g1 is in the reservation maint from"),
        ("3", "has a limit of 7200 s, and the partition allows 3600 s"),
        ("4", "licences matlab"),
    ] {
        let told = why_not(&fake, job);
        assert!(told.contains(words), "{told}");
    }
    let told = why_not(&fake, "2");
    assert!(told.contains("number 1 of 2"), "it ends before: {told}");
}

/// A budget of an account, as Slurm tells it.
fn budget(limits: &str) -> String {
    format!(
        "ClusterName=c Account=root UserName= Partition= ParentAccount= GrpTRES=cpu=N(0),gres/gpu=N(0)\n\
         ClusterName=c Account=a1 UserName= Partition= ParentAccount=root(1) {limits}\n"
    )
}

#[test]
fn an_account_without_budget_delays_no_other_and_is_ranked_again_once_it_has_some() {
    for limits in [
        "GrpTRES=gres/gpu=2(2)",
        "GrpTRESMins=gres/gpu=0(0)",
        "GrpTRESMins=cpu=N(3),gres/gpu=600(600)",
        "GrpWall=60(61.25)",
        "GrpJobs=1(1)",
        "MaxTRESMinsPJ=gres/gpu=0",
        "MaxTRESPN=gres/gpu=0",
        "MaxTRESPJ=gres/gpu=0",
    ] {
        let fake = site();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.unwrap().as_secs();
        fs::write(fake.at("assoc_mgr"), budget(limits)).unwrap();
        for number in 1..=8 {
            let whose = if number <= 5 {
                "user=bin account=a1"
            } else {
                "user=games account=a2"
            };
            let submit = now - 60 + number as u64;
            fake.come(number, 1, ["1:00", "10:00"][usize::from(number > 5)], whose);
            fake.change(number, &format!("submit={submit}"));
        }
        fake.rounds("sjf", "--live", "1");
        assert_eq!(fake.line()[..3], [6, 7, 8], "{limits}");
        fs::write(fake.at("assoc_mgr"), budget("GrpTRES=gres/gpu=N(0)")).unwrap();
        fake.rounds("sjf", "--live", "1");
        assert_eq!(fake.line()[..5], [1, 2, 3, 4, 5], "{limits}");
    }
}

#[test]
fn partitions_on_the_same_nodes_are_ranked_too_and_those_of_another_tier_are_told() {
    let fake = site();
    let partitions = "PartitionName=main Nodes=g[1-2] State=UP PriorityTier=1\n\
                      PartitionName=side Nodes=g1 State=UP PriorityTier=1\n\
                      PartitionName=wide Nodes=g[1-2],h1 State=UP PriorityTier=7\nPartitionName=other Nodes=h1 State=UP\n";
    fs::write(fake.at("partition"), partitions).unwrap();
    fake.come(1, 4, "3:00", "");
    fake.come(2, 4, "1:00", "part=side");
    fake.come(3, 4, "4:00", "part=wide");
    fake.come(4, 1, "2:00", "part=other,side");
    fake.come(5, 1, "1:00", "part=other");
    fake.rounds("sjf", "--live", "1");
    let factors: Vec<i64> = [2, 1, 3].map(|job| fake.factor(job)).to_vec();
    assert!(
        factors.is_sorted_by(|a, b| a > b) && factors[2] > 0,
        "{factors:?}"
    );
    assert!(fake.factor(4) > 0, "one of its partitions is here");
    assert_eq!(fake.factor(5), 0, "it is none of ours");
    let told = why_not(&fake, "2");
    assert!(told.contains("g2 is not of its partition (side)"), "{told}");
    let told = out(&fake.scheduler(&["status"]));
    assert!(
        told.contains("wide (PriorityTier 7)") && !told.contains("side (Prio"),
        "{told}"
    );
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
    let told = out(&fake.scheduler(&["status"]));
    assert!(told.contains("order: 1"), "{told}");
}
