//! The program against a Slurm of shell scripts that keeps its state in files: order, placement, and every way to end badly.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

struct Fake {
    folder: tempfile::TempDir,
}

impl Fake {
    /// Nodes g1 and g2 with four GPUs each, and jobs as (GPUs, time limit).
    fn new(jobs: &[(u32, &str)]) -> Fake {
        let fake = Fake {
            folder: tempfile::tempdir().unwrap(),
        };
        fs::create_dir_all(fake.at("bin")).unwrap();
        fs::create_dir_all(fake.at("jobs")).unwrap();
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake");
        for name in ["lib.sh", "squeue", "sinfo", "scontrol", "sacct"] {
            fs::copy(scripts.join(name), fake.at("bin").join(name)).unwrap();
        }
        for (number, (gpus, limit)) in jobs.iter().enumerate() {
            fake.submit(number + 1, *gpus, limit);
        }
        let config = format!(
            "slurm_bin = {:?}\nstate_dir = {:?}\ntick_s = 0.1\ncommand_limit_s = 2.0\nrelease_limit_s = 1\n",
            fake.at("bin"),
            fake.at("state")
        );
        fs::write(fake.at("pleach.toml"), config).unwrap();
        fake
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Held for the daemon, as the generated Lua does.
    fn submit(&self, number: usize, gpus: u32, limit: &str) {
        let submit = 1_795_000_000 + number;
        let text = format!("id={number} gpus={gpus} limit={limit} prio=0 mark=pleach:held submit={submit}\n");
        fs::write(self.at("jobs").join(number.to_string()), text).unwrap();
    }

    /// The same, by a user.
    fn submit_by(&self, user: &str, number: usize, gpus: u32, limit: &str) {
        self.submit(number, gpus, limit);
        let text = self.job(number).trim_end().to_owned() + &format!(" user={user}\n");
        fs::write(self.at("jobs").join(number.to_string()), text).unwrap();
    }

    /// A job ends in a state, as Slurm tells for some minutes, after a run of so many seconds.
    fn end_after(&self, number: usize, state: &str, run_s: i64) {
        let job = self.job(number);
        let start = job
            .split("start='")
            .nth(1)
            .and_then(|rest| rest.split('\'').next())
            .unwrap();
        let start_s: i64 = start.parse().unwrap();
        let mut text = self.read("ended");
        text += &format!("{number}|{state}|{start_s}|{}|g1|\n", start_s + run_s);
        fs::write(self.at("ended"), text).unwrap();
        self.end(number);
    }

    fn end(&self, job: usize) {
        fs::remove_file(self.at("jobs").join(job.to_string())).unwrap();
    }

    fn scheduler(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_pleach-scheduler"))
            .arg("--config")
            .arg(self.at("pleach.toml"))
            .args(args)
            .output()
            .unwrap()
    }

    fn rounds(&self, policy: &str, mode: &str, num: &str) -> String {
        let output = self.scheduler(&["run", "--policy", policy, mode, "--rounds", num]);
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap_or_default()
    }

    /// Jobs and nodes in the order in which they started.
    fn starts(&self) -> Vec<(usize, String)> {
        let text = self.read("starts");
        let line = |line: &str| {
            let (job, node) = line.split_once(' ').unwrap();
            (job.parse().unwrap(), node.to_owned())
        };
        text.lines().map(line).collect()
    }

    fn order(&self) -> Vec<usize> {
        self.starts().into_iter().map(|(job, _)| job).collect()
    }

    fn job(&self, number: usize) -> String {
        self.read(&format!("jobs/{number}"))
    }
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A queue whose shortest-first order is 4, 2, 3, 1.
const QUEUE: [(u32, &str); 4] = [(4, "4:00:00"), (3, "20:00"), (4, "1:00:00"), (1, "10:00")];

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
fn killed_behind_any_call_it_goes_on_and_starts_every_job_once() {
    for call in 1.. {
        let fake = Fake::new(&QUEUE);
        fs::write(fake.at("kill_after"), call.to_string()).unwrap();
        fake.rounds("sjf", "--live", "1");
        let was_killed = fake.read("calls").trim() == call.to_string();
        fs::remove_file(fake.at("kill_after")).unwrap();
        fake.rounds("sjf", "--live", "2");
        assert_eq!(fake.order(), [4, 2, 3], "killed behind call {call}");
        fake.end(3);
        fake.rounds("sjf", "--live", "1");
        assert_eq!(fake.order(), [4, 2, 3, 1], "killed behind call {call}");
        if !was_killed {
            assert!(
                call > 6,
                "six calls start three jobs, {call}: {}",
                fake.read("scontrol.log")
            );
            break;
        }
    }
}

#[test]
fn a_squeue_that_hangs_or_prints_garbage_costs_a_round_and_nothing_else() {
    let fake = Fake::new(&QUEUE);
    for (fault, word) in [("hang", "no answer within 2s"), ("garbage", "Zero Bytes")] {
        fs::write(fake.at(fault), "").unwrap();
        let began = Instant::now();
        let said = fake.rounds("sjf", "--live", "1");
        assert!(said.contains(word), "{said}");
        assert!(began.elapsed() < Duration::from_secs(20));
        assert_eq!(
            fake.read("scontrol.log"),
            "",
            "nothing is done on what was not understood"
        );
        assert!(!fake.scheduler(&["status"]).status.success());
        fs::remove_file(fake.at(fault)).unwrap();
    }
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.order(), [4, 2, 3]);
}

#[test]
fn a_job_that_is_cancelled_while_it_is_started_is_dropped_and_the_others_start() {
    let fake = Fake::new(&QUEUE);
    fs::write(fake.at("cancel"), "4").unwrap();
    let said = fake.rounds("sjf", "--live", "1");
    assert!(
        said.contains("job 4: refused") && said.contains("Invalid job id"),
        "{said}"
    );
    assert_eq!(fake.order(), [2, 3]);
}

#[test]
fn a_log_that_cannot_be_written_costs_its_lines_and_no_job() {
    let fake = Fake::new(&QUEUE);
    fs::create_dir_all(fake.at("state")).unwrap();
    std::os::unix::fs::symlink("/dev/full", fake.at("state/decisions.jsonl")).unwrap();
    let said = fake.rounds("sjf", "--live", "1");
    assert!(said.contains("decisions.jsonl"), "{said}");
    assert_eq!(fake.order(), [4, 2, 3]);
    assert!(out(&fake.scheduler(&["status"])).contains("1 lines of the log lost"));
}

#[test]
fn a_job_that_does_not_start_is_held_again_and_others_get_its_gpus() {
    let fake = Fake::new(&[(4, "10:00")]);
    // Let go long ago, and its node is full of somebody else's.
    let text = "id=1 gpus=4 limit=10:00 prio=9 req=g1 submit=1795000001 mark='pleach:decided at=1795000002 tries=0'\n";
    fs::write(fake.at("jobs/1"), text).unwrap();
    fs::write(
        fake.at("jobs/9"),
        "id='9' state='RUNNING' prio='9' gpus='2' node='g1' mark='pleach:off'\n",
    )
    .unwrap();
    fake.rounds("sjf", "--live", "1");
    assert!(
        fake.job(1).contains("prio='0'") && fake.job(1).contains("tries=1"),
        "{}",
        fake.job(1)
    );
    std::thread::sleep(Duration::from_millis(3100));
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.starts(), [(1, "g2".to_string())]);
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

#[test]
fn a_policy_that_does_not_fit_is_refused_and_a_reload_keeps_the_present_one() {
    let fake = Fake::new(&QUEUE);
    let said = fake.rounds("srtf", "--live", "1");
    assert!(said.contains("Preempt"), "{said}");
    fs::write(fake.at("tree.json"), "{}").unwrap();
    let path = fake.at("tree.json");
    let said = fake.rounds(path.to_str().unwrap(), "--live", "1");
    assert!(said.contains("tree.json"), "{said}");
    assert_eq!(fake.read("scontrol.log"), "");
    let neither = fake.scheduler(&["run", "--policy", "sjf"]);
    assert!(!neither.status.success(), "shadow or live must be said");
}

#[test]
fn why_not_tells_what_was_preferred() {
    let fake = Fake::new(&QUEUE);
    let told = out(&fake.scheduler(&["why-not", "1", "--policy", "sjf"]));
    assert!(
        told.contains("Decision 1: job 4 starts") && told.contains("job 3 starts"),
        "{told}"
    );
    let told = out(&fake.scheduler(&["why-not", "4", "--policy", "sjf"]));
    assert!(told.contains("starts in the present round"), "{told}");
    let told = out(&fake.scheduler(&["why-not", "77", "--policy", "sjf"]));
    assert!(told.contains("not in the queue"), "{told}");
}

#[test]
fn drift_is_remembered_across_restarts_and_hands_over_to_the_fallback_where_that_is_asked_for() {
    use pleach_scheduler::tree::{Tree, Visits};
    let fake = Fake::new(&[(1, "1:00:00"); 8]);
    let reference = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../checkpoints/reference/PhillyGang-v1-tree.json"
    );
    let tree = Tree::load(reference.as_ref()).unwrap();
    // Judged where candidates end in the last leaf alone, where none ends here.
    let mut visits = Visits::none(tree.num_leaves());
    let last = tree.num_leaves() as u32 - 1;
    (0..1000).for_each(|_| visits.add(&[last; 9]));
    let tree = tree.with_golden().with_visits(visits).unwrap();
    let tree = tree.with_fallback(Some("sjf".into())).unwrap();
    let path = fake.at("tree.json");
    tree.save(&path).unwrap();
    let policy = path.display().to_string();
    let config = fake.read("pleach.toml") + "on_drift = \"fallback\"\ndrift_window = 100\n";
    fs::write(fake.at("pleach.toml"), config).unwrap();
    // Each start of the daemon counts the queue as it finds it once, whatever it decides in further rounds.
    let mut told = Vec::new();
    for _ in 0..40 {
        let text = fake.rounds(&policy, "--shadow", "2");
        let is_told = text.contains("drift: what the tree is offered is not what it was judged on");
        told.push(is_told);
        if is_told {
            break;
        }
    }
    assert!(told.len() > 5 && *told.last().unwrap(), "{}", told.len());
    let status = |fake: &Fake| String::from_utf8_lossy(&fake.scheduler(&["status"]).stdout).into_owned();
    assert!(status(&fake).contains("warning: drift: "), "{}", status(&fake));
    // The next daemon lets the file's fallback decide from its first round on.
    let text = fake.rounds(&policy, "--shadow", "1");
    assert!(text.contains("sjf answered: drift: "), "{text}");
    assert!(
        fake.read("state/decisions.jsonl")
            .contains("sjf answered: drift: ")
    );
    // With `warn` the tree decides, and the warning stays.
    let config = fake.read("pleach.toml").replace("\"fallback\"", "\"warn\"");
    fs::write(fake.at("pleach.toml"), config).unwrap();
    let text = fake.rounds(&policy, "--shadow", "1");
    assert!(
        !text.contains("answered") && status(&fake).contains("warning: drift: "),
        "{text}"
    );
}

/// A Slurm whose daemon learns: ann's jobs are short and bob's are long, though their limits say the opposite.
fn with_history() -> Fake {
    let fake = Fake::new(&[]);
    let config = fake.read("pleach.toml") + "[estimates]\nfrom = \"history\"\n";
    fs::write(fake.at("pleach.toml"), config).unwrap();
    fake.submit_by("ann", 1, 4, "4:00:00");
    fake.submit_by("bob", 2, 4, "3:00:00");
    fake
}

#[test]
fn what_ended_is_learned_from_and_outlives_the_daemon() {
    let fake = with_history();
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.order(), [2, 1], "by the limits");
    fake.submit_by("bob", 3, 4, "10:00");
    fake.submit_by("ann", 4, 4, "1:00:00");
    fake.submit_by("bob", 5, 4, "2:00:00");
    fake.end_after(1, "FAILED", 60);
    fake.end_after(2, "COMPLETED", 5000);
    // Another process: it learns from both ends. Job 3 is held to its limit, the others to what was learned.
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.order(), [2, 1, 4, 3]);
    let told = out(&fake.scheduler(&["explain", "4"]));
    assert!(
        told.contains("believed run time 60 s: predicted from ended jobs"),
        "{told}"
    );
    let told = out(&fake.scheduler(&["explain", "3"]));
    assert!(told.contains("believed run time 600 s: its time limit"), "{told}");
    fake.end_after(4, "NODE_FAIL", 1);
    fake.rounds("sjf", "--live", "1");
    let told = out(&fake.scheduler(&["explain", "5"]));
    assert!(
        told.contains("believed run time 5000 s: predicted from ended jobs"),
        "{told}"
    );
    let log = fake.at("state/decisions.jsonl");
    let replayed = out(&fake.scheduler(&["replay", log.to_str().unwrap(), "--policy", "sjf"]));
    assert!(replayed.contains("3 of 3 rounds are decided alike"), "{replayed}");
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
        fake.rounds("sjf", "--live", "1");
        fake.submit_by("ann", 3, 4, "1:00:00");
        fake.submit_by("ann", 4, 4, "2:00:00");
        fake.end_after(1, "COMPLETED", 60);
        fake.end_after(2, "COMPLETED", 500);
        fs::write(fake.at("calls"), "0").unwrap();
        fs::write(fake.at("kill_after"), call.to_string()).unwrap();
        fake.rounds("sjf", "--live", "1");
        let was_killed = fake.read("calls").trim() == call.to_string();
        fs::remove_file(fake.at("kill_after")).unwrap();
        fake.rounds("sjf", "--live", "2");
        let history = fake.read("state/history.json");
        let all = history.split("\"all\":").last().unwrap();
        assert_eq!(all.split(',').count(), 2, "killed behind call {call}: {history}");
        if !was_killed {
            assert!(call > 4, "four calls start two jobs, {call}");
            break;
        }
    }
}

#[test]
fn accounting_is_read_once_where_nothing_was_learned_yet() {
    let fake = with_history();
    let config = fake.read("pleach.toml") + "seed_days = 30\n";
    fs::write(fake.at("pleach.toml"), config).unwrap();
    let said = fake.rounds("sjf", "--live", "1");
    assert!(
        said.contains("estimates begin with nothing learned")
            && said.contains("accounting storage is disabled"),
        "{said}"
    );
    assert_eq!(fake.order(), [2, 1], "the round goes on, by the limits");
    fs::remove_dir_all(fake.at("state")).unwrap();
    fake.end(1);
    fake.end(2);
    fake.submit_by("ann", 3, 4, "4:00:00");
    fake.submit_by("bob", 4, 4, "3:00:00");
    let line = |user: &str, run_s: i64| {
        let end_s = 1_795_000_000 + run_s;
        format!("COMPLETED|1795000000|{end_s}|cpu=4,gres/gpu=4,node=1|g1|{user}|\n")
    };
    fs::write(fake.at("sacct"), line("ann", 50) + &line("bob", 900)).unwrap();
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.order(), [2, 1, 3, 4]);
    let told = out(&fake.scheduler(&["explain", "3"]));
    assert!(told.contains("believed run time 50 s: predicted"), "{told}");
    fs::remove_file(fake.at("sacct")).unwrap();
    let said = fake.rounds("sjf", "--live", "1");
    assert!(!said.contains("nothing learned"), "{said}");
}

#[test]
fn a_slurm_that_does_not_tell_how_jobs_ended_costs_no_round() {
    let fake = with_history();
    fake.rounds("sjf", "--live", "1");
    fake.submit_by("ann", 3, 4, "1:00:00");
    fs::write(fake.at("ended"), "slurm_load_jobs: Zero Bytes were transmitted\n").unwrap();
    fake.end(1);
    let said = fake.rounds("sjf", "--live", "1");
    assert!(said.contains("Zero Bytes"), "{said}");
    assert_eq!(fake.order(), [2, 1, 3]);
    let said = fake.rounds("sjf", "--live", "1");
    assert!(
        !said.contains("Zero Bytes"),
        "asked again only where another has left: {said}"
    );
}

#[test]
fn messages_are_lines_of_text_or_of_json_and_nobody_need_read_them() {
    let fake = Fake::new(&QUEUE);
    let text = fake.rounds("sjf", "--live", "1");
    let words: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(words[1..4], ["INFO", "sjf", "drives"], "{text}");
    let output = fake.scheduler(&[
        "run", "--policy", "sjf", "--live", "--rounds", "1", "--log", "json",
    ]);
    let lines = String::from_utf8(output.stderr).unwrap();
    let values: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(values[0]["level"], "INFO");
    assert!(
        values[0]["fields"]["message"]
            .as_str()
            .unwrap()
            .starts_with("sjf drives partition main"),
        "{lines}"
    );
    let last = values.last().unwrap();
    assert!(
        last["level"] == "WARN"
            && last["fields"]["message"]
                .as_str()
                .unwrap()
                .contains("1 jobs stay held"),
        "{lines}"
    );
    // A full disk behind standard error costs the messages.
    let fake = Fake::new(&QUEUE);
    let status = Command::new(env!("CARGO_BIN_EXE_pleach-scheduler"))
        .arg("--config")
        .arg(fake.at("pleach.toml"))
        .args(["run", "--policy", "sjf", "--live", "--rounds", "2"])
        .stderr(fs::File::create("/dev/full").unwrap())
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(fake.order(), [4, 2, 3]);
}

#[test]
fn a_selector_decides_in_the_shadow_and_live_and_says_which_rule_and_why() {
    use pleach_scheduler::FeatureSchema;
    use pleach_scheduler::selector::{Selector, SelectorMeta, SelectorNode};
    let fake = Fake::new(&QUEUE);
    let schema = FeatureSchema::current();
    let index = schema.joined_index("num_pending").unwrap();
    let leaf = |id, rule: &str| SelectorNode::Leaf {
        id,
        rule: rule.into(),
    };
    let split = SelectorNode::Split {
        feature: index as u16,
        threshold: schema.joined(index).unwrap().encode(3.0),
        left: 1,
        right: 2,
    };
    let meta = SelectorMeta {
        name: "few or many".into(),
        estimates: Vec::new(),
        trained_by: std::collections::BTreeMap::new(),
    };
    // The first decision is by the shortest job, and once three wait the oldest decides.
    let selector = Selector::new(meta, &[split, leaf(4, "fifo"), leaf(7, "sjf")]).unwrap();
    let path = fake.at("selector.json");
    selector.save(&path).unwrap();
    let policy = path.display().to_string();
    let said = fake.rounds(&policy, "--shadow", "2");
    assert_eq!(
        (fake.order(), fake.read("scontrol.log").as_str()),
        (vec![], ""),
        "{said}"
    );
    let told = out(&fake.scheduler(&["explain", "4"]));
    assert!(
        told.contains("only decided (shadow)") && told.contains("sjf decides (leaf 7)"),
        "{told}"
    );
    assert!(told.contains("num_pending > 3 (num_pending is 4)"), "{told}");
    let told = out(&fake.scheduler(&["explain", "1"]));
    assert!(
        told.contains("fifo decides (leaf 4)") && told.contains("num_pending <= 3 (num_pending is 3)"),
        "{told}"
    );
    let told = out(&fake.scheduler(&["why-not", "3", "--policy", &policy]));
    assert!(
        told.contains("Decision 1: job 4 starts") && told.contains("the choice: sjf decides (leaf 7)"),
        "{told}"
    );
    let told = out(&fake.scheduler(&["why-not", "1", "--policy", &policy]));
    assert!(
        told.contains("  the job: sjf decides (leaf 7)\n")
            && told.contains("not chosen: sjf puts 1 before it"),
        "{told}"
    );
    fake.rounds(&policy, "--live", "1");
    assert_eq!(fake.order()[..2], [4, 1]);
}
