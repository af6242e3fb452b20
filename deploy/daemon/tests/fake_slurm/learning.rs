//! Estimates from ended jobs.

use std::fs;

use super::fake::{Fake, out};

/// A Slurm whose daemon learns: ann's jobs are short and bob's are long, though their limits say the opposite.
fn with_history() -> Fake {
    let fake = Fake::new(&[]);
    let config = fake.read("pleach.toml") + "[estimates]\nfrom = \"history\"\n";
    fs::write(fake.at("pleach.toml"), config).unwrap();
    fake.come(1, 4, "4:00:00", "user=ann");
    fake.come(2, 4, "3:00:00", "user=bob");
    fake
}

#[test]
fn what_ended_is_learned_from_and_outlives_the_daemon() {
    let fake = with_history();
    fake.played("sjf", 1);
    assert_eq!(fake.order(), [2, 1], "by the limits");
    fake.come(3, 4, "10:00", "user=bob");
    fake.come(4, 4, "1:00:00", "user=ann");
    fake.come(5, 4, "2:00:00", "user=bob");
    fake.end_after(1, "FAILED", 60);
    fake.end_after(2, "COMPLETED", 5000);
    // Another process: it learns from both ends. Job 3 is held to its limit, the others to what was learned.
    fake.played("sjf", 1);
    assert_eq!(fake.order(), [2, 1, 4, 3]);
    let told = out(&fake.scheduler(&["explain", "4"]));
    assert!(
        told.contains("believed run time 60 s: predicted from ended jobs"),
        "{told}"
    );
    let told = out(&fake.scheduler(&["explain", "3"]));
    assert!(told.contains("believed run time 600 s: its time limit"), "{told}");
    fake.end_after(4, "NODE_FAIL", 1);
    fake.played("sjf", 1);
    let log = fake.at("state/decisions.jsonl");
    let replayed = out(&fake.scheduler(&["replay", log.to_str().unwrap(), "--policy", "sjf"]));
    assert!(
        replayed.contains(" rounds are decided alike") && !replayed.contains("otherwise"),
        "{replayed}"
    );
    assert_eq!(
        fake.read("state/history.json")
            .matches("\"user\":\"ann\"")
            .count(),
        1
    );
}

#[test]
fn killed_behind_any_call_it_learns_every_end_once() {
    for call in 1.. {
        let fake = with_history();
        fake.played("sjf", 1);
        fake.come(3, 4, "1:00:00", "user=ann");
        fake.come(4, 4, "2:00:00", "user=ann");
        fake.end_after(1, "COMPLETED", 60);
        fake.end_after(2, "COMPLETED", 500);
        fs::write(fake.at("calls"), "0").unwrap();
        fs::write(fake.at("kill_after"), call.to_string()).unwrap();
        fake.played("sjf", 1);
        let was_killed = fake.read("calls").trim() == call.to_string();
        fs::remove_file(fake.at("kill_after")).unwrap();
        fake.played("sjf", 2);
        let history = fake.read("state/history.json");
        let all = history.split("\"all\":").last().unwrap();
        assert_eq!(
            all.split("],[").count(),
            2,
            "killed behind call {call}: {history}"
        );
        if !was_killed {
            assert!(call > 2, "two factors are written, {call}");
            break;
        }
    }
}

#[test]
fn accounting_is_read_once_where_nothing_was_learned_yet() {
    let fake = with_history();
    let config = fake.read("pleach.toml") + "seed_days = 30\n";
    fs::write(fake.at("pleach.toml"), config).unwrap();
    let said = fake.played("sjf", 1);
    assert!(
        said.contains("estimates begin with nothing learned")
            && said.contains("accounting storage is disabled"),
        "{said}"
    );
    assert_eq!(fake.order(), [2, 1], "the round goes on, by the limits");
    fs::remove_dir_all(fake.at("state")).unwrap();
    fake.end(1);
    fake.end(2);
    fake.come(3, 4, "1:00:00", "user=ann");
    fake.come(4, 4, "3:00:00", "user=bob");
    let line = |user: &str, run_s: i64| {
        let end_s = 1_795_000_000 + run_s;
        format!("COMPLETED|1795000000|{end_s}|cpu=4,gres/gpu=4,node=1|g1|{user}|\n")
    };
    fs::write(fake.at("sacct"), line("ann", 50) + &line("bob", 900)).unwrap();
    fake.played("sjf", 1);
    assert_eq!(fake.order(), [2, 1, 3, 4]);
    let told = out(&fake.scheduler(&["explain", "3"]));
    assert!(told.contains("believed run time 50 s: predicted"), "{told}");
    fs::remove_file(fake.at("sacct")).unwrap();
    let said = fake.played("sjf", 1);
    assert!(!said.contains("nothing learned"), "{said}");
}

#[test]
fn a_slurm_that_does_not_tell_how_jobs_ended_costs_no_round() {
    let fake = with_history();
    fake.played("sjf", 1);
    fake.come(3, 4, "1:00:00", "user=ann");
    fs::write(fake.at("ended"), "slurm_load_jobs: Zero Bytes were transmitted\n").unwrap();
    fake.end(1);
    let said = fake.played("sjf", 1);
    assert!(said.contains("Zero Bytes"), "{said}");
    assert_eq!(fake.order(), [2, 1, 3]);
    let said = fake.played("sjf", 1);
    assert!(
        !said.contains("Zero Bytes"),
        "asked again only where another has left: {said}"
    );
}
