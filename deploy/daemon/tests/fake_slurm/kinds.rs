//! Kinds of jobs, all at once: where each stands among jobs of a plain kind. `kinds_slurm.sh` plays the same on a real Slurm.

use std::fs;

use super::fake::Fake;

/// Where a job of half an hour stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    /// Between jobs of ten minutes and of an hour.
    Ranked,
    /// Behind all that are ranked, without a factor: it may not start now.
    NotNow,
    /// It has begun.
    Runs,
}
use Stands::{NotNow, Ranked, Runs};

const KINDS: [(&str, &str, Stands); 27] = [
    ("plain", "", Ranked),
    ("CPUs", "cpus=8", Ranked),
    ("host memory", "mem=40000", Ranked),
    ("a node by name", "req=g2", Ranked),
    ("all nodes but one", "shuns=g1", Ranked),
    ("a feature", "feature=nvme", Ranked),
    ("two features", "feature='nvme&fast'", Ranked),
    ("a set of features", "feature='[nvme|old]'", Ranked),
    ("licences that are free", "licence=matlab:1", Ranked),
    ("short before a reservation", "req=g1", Ranked),
    ("long beside a reservation", "limit=50:00", Ranked),
    ("an array", "name='12_[0-5%2]'", Ranked),
    ("a time to begin", "dep=begin reason=BeginTime", NotNow),
    ("behind another job", "dep=aftero reason=Dependency", NotNow),
    (
        "behind one that failed",
        "dep=aftero reason=DependencyNeverSatisfied",
        NotNow,
    ),
    ("parts", "name=16+0", Ranked),
    ("nodes of its own", "over=NO gpus=1", Ranked),
    ("a gang", "num=2 gpus=4", Ranked),
    ("GPUs in all", "kind=cpu inall=gres:gpu:10 num=2", Ranked),
    ("GPUs by task", "kind=cpu task=gres:gpu:1", Ranked),
    ("shards", "asks=shard:1", Ranked),
    ("memory by GPU", "mem=2000", Ranked),
    ("CPUs by GPU", "pergpu=gres:gpu:2", Ranked),
    ("neighbouring nodes", "num=2", Ranked),
    ("requeued", "restarts=1", Ranked),
    ("suspended", "state=SUSPENDED node=g1", Runs),
    ("held by its user", "prio=0 reason=JobHeldUser", NotNow),
];

/// Beside these, what no node or limit allows now.
const NOT_NOW: [(&str, &str); 3] = [
    ("a feature that no node has", "feature=tape"),
    ("licences that are used up", "licence=ansys:1"),
    ("so long that it meets a reservation", "limit=9:00:00 req=g1"),
];

#[test]
fn twenty_seven_kinds_of_jobs_stand_where_they_belong_in_one_order() {
    let fake = Fake::patient(Fake::ordered(&[]));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let begins = now.unwrap().as_secs() + 7200;
    for (name, text) in [
        ("features-g1", "nvme,fast".to_owned()),
        ("features-g2", "old".to_owned()),
        (
            "licenses",
            "LicenseName=matlab Total=1 Used=0 Free=1 Reserved=0\nLicenseName=ansys Total=1 Used=1 Free=0 Reserved=0\n".to_owned(),
        ),
        (
            "reservation",
            format!("ReservationName=later StartTime={begins} EndTime={} Nodes=g1 CoreCnt=16 State=INACTIVE\n", begins + 60),
        ),
    ] {
        fs::write(fake.at(name), text).unwrap();
    }
    let arrives = |number: usize| format!("submit={}", begins as usize - 8000 + number);
    let come = |number: usize, limit: &str, more: &str| {
        fake.come(number, 1, limit, &format!("{more} {}", arrives(number)));
    };
    for (row, (_, more, _)) in KINDS.iter().enumerate() {
        come(row + 1, "30:00", more);
    }
    for (row, (_, more)) in NOT_NOW.iter().enumerate() {
        come(40 + row, "1:00", more);
    }
    // A gang of the whole cluster: it fills no room that is left beside others.
    come(50, "1:00:00", "num=2 gpus=4");
    come(51, "10:00", "");
    let said = fake.rounds("sjf", "--live", "1");
    let (low, high) = (fake.factor(50), fake.factor(51));
    assert!(0 < low && low < high, "{low} {high} {said}");
    let stands = |number: usize| match fake.factor(number) {
        _ if fake.job(number).contains("SUSPENDED") => Runs,
        0 => NotNow,
        factor if (low..high).contains(&factor) => Ranked,
        factor => panic!("{number} has factor {factor}, {high} has a job of ten minutes"),
    };
    for (row, (name, _, wanted)) in KINDS.iter().enumerate() {
        assert_eq!(stands(row + 1), *wanted, "{name}: {said}");
    }
    for (row, (name, _)) in NOT_NOW.iter().enumerate() {
        assert_eq!(stands(40 + row), NotNow, "{name}: {said}");
    }
}
