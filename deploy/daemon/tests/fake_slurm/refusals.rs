//! Nodes that will not take a job: remembered with the reason, not chosen for it again, and everybody else goes on.

use std::fs;
use std::time::Duration;

use super::fake::{Fake, out};

/// Two jobs of one GPU, which the daemon puts on one node, and a CPU job that leaves that node no CPU.
fn with_a_node_without_cpus() -> Fake {
    let fake = Fake::new(&[(1, "10:00"), (1, "20:00")]);
    fs::write(fake.at("cpus-g1"), "16/0/0/16").unwrap();
    fake
}

#[test]
fn who_finds_no_cpus_on_a_node_goes_to_another_one_at_once_and_is_told_where_there_are_none() {
    let fake = with_a_node_without_cpus();
    let told = out(&fake.scheduler(&["why-not", "1", "--policy", "sjf"]));
    assert!(
        told.contains("Closed to it now: g1 has 0 of 1 CPUs free.")
            && told.contains("It starts in the present round."),
        "{told}"
    );
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.starts(), [(1, "g2".to_owned()), (2, "g2".to_owned())]);
    // Nowhere any CPU: it waits, and nobody lets it go to and fro.
    fs::write(fake.at("cpus-g2"), "16/0/0/16").unwrap();
    fake.submit(3, 1, "5:00");
    let said = fake.rounds("sjf", "--live", "2");
    assert!(!said.contains("job 3"), "{said}");
    let told = out(&fake.scheduler(&["why-not", "3", "--policy", "sjf"]));
    assert!(
        told.contains("2 nodes (g1 to g2): each has 0 of 1 CPUs free")
            && told.contains("It does not fit now"),
        "{told}"
    );
    fake.end(1);
    fs::write(fake.at("cpus-g2"), "15/1/0/16").unwrap();
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.starts()[2..], [(3, "g2".to_owned())]);
    // Every round is a function of what was logged.
    let log = fake.at("state/decisions.jsonl").display().to_string();
    let told = out(&fake.scheduler(&["replay", &log, "--policy", "sjf"]));
    assert!(
        !told.contains("otherwise") && told.contains("decided alike"),
        "{told}"
    );
}

#[test]
fn who_was_let_go_and_did_not_start_goes_elsewhere_at_once_and_slurms_reason_is_told() {
    let fake = Fake::new(&[(4, "10:00"), (4, "20:00")]);
    fs::write(fake.at("full-g1"), "").unwrap();
    fake.rounds("sjf", "--live", "1");
    // One of both was let go to g1 and waits there.
    assert_eq!(fake.starts(), [(2, "g2".to_owned())]);
    std::thread::sleep(Duration::from_millis(2100));
    let said = fake.rounds("sjf", "--live", "1");
    assert!(
        said.contains("job 1 was let go to g1 and did not start: Resources; not there again for 60 s"),
        "{said}"
    );
    // A job that came later goes to where the first may not.
    fs::remove_file(fake.at("full-g1")).unwrap();
    fake.submit(3, 4, "30:00");
    let told = out(&fake.scheduler(&["why-not", "1", "--policy", "sjf"]));
    assert!(
        told.contains("let go 1 time(s)")
            && told.contains("g1 refused it: Resources")
            && told.contains("It does not fit now"),
        "{told}"
    );
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.starts()[1..], [(3, "g1".to_owned())]);
    fake.end(2);
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.starts()[2..], [(1, "g2".to_owned())], "without a pause");
}

#[test]
fn a_limit_of_an_account_is_no_nodes_fault_and_pauses_its_job() {
    let fake = Fake::new(&[(4, "10:00")]);
    fs::write(fake.at("full-g1"), "").unwrap();
    fs::write(fake.at("reason"), "AssocGrpGRES").unwrap();
    fake.rounds("sjf", "--live", "1");
    std::thread::sleep(Duration::from_millis(2100));
    let said = fake.rounds("sjf", "--live", "1");
    assert!(
        said.contains("job 1 was let go and did not start: AssocGrpGRES; not again for 2 s"),
        "{said}"
    );
    let told = out(&fake.scheduler(&["why-not", "1", "--policy", "sjf"]));
    assert!(!told.contains("refused it"), "{told}");
}

#[test]
fn a_dealer_and_a_fallback_go_round_a_node_too() {
    for policy in ["las-deal", "deal:sjf"] {
        let fake = with_a_node_without_cpus();
        for _ in 0..3 {
            fake.rounds(policy, "--live", "1");
        }
        let mut starts = fake.starts();
        starts.sort();
        assert_eq!(starts, [(1, "g2".to_owned()), (2, "g2".to_owned())], "{policy}");
        let log = fake.at("state/decisions.jsonl").display().to_string();
        let told = out(&fake.scheduler(&["replay", &log, "--policy", policy]));
        assert!(
            !told.contains("otherwise") && told.contains("decided alike"),
            "{told}"
        );
    }
    let fake = with_a_node_without_cpus();
    let config = fake.read("pleach.toml") + "deadline_s = 0.001\n";
    fs::write(fake.at("pleach.toml"), config).unwrap();
    for _ in 0..3 {
        fake.rounds("sjf", "--live", "1");
    }
    assert_eq!(fake.starts().len(), 2, "late or not");
}

#[test]
fn an_account_that_may_not_let_jobs_go_is_told_and_no_start_counts() {
    let fake = Fake::new(&[(4, "10:00")]);
    // As Slurm answers whoever is neither its own user nor an operator.
    let script = fake.read("bin/scontrol").replace(
        "    hold | release)\n",
        "    release) echo \"Access/permission denied for job $1\" >&2; return 1 ;;\n    hold)\n",
    );
    fs::write(fake.at("bin/scontrol"), script).unwrap();
    let said = fake.rounds("sjf", "--live", "1");
    assert!(
        said.contains("job 1: refused: Access/permission denied for job 1"),
        "{said}"
    );
    assert_eq!(fake.order(), [0; 0]);
    let told = fake.scheduler(&["status"]);
    let text = out(&told);
    assert!(!told.status.success(), "{text}");
    assert!(
        text.contains("0 starts and preemptions") && text.contains("last error: job 1: refused"),
        "{text}"
    );
}
