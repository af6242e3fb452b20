//! Files without end, output that cannot be written, names that are not there, signals that come early: each is reported and
//! costs nothing else.

use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::fake::{Fake, QUEUE, out};

fn errors(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn files_without_end_are_refused_and_not_read_into_memory() {
    let fake = Fake::new(&QUEUE);
    fake.rounds("sjf", "--shadow", "1");
    let began = Instant::now();
    let config = Command::new(env!("CARGO_BIN_EXE_pleach-scheduler"))
        .args(["--config", "/dev/zero", "status"])
        .output()
        .unwrap();
    assert!(!config.status.success() && errors(&config).contains("/dev/zero: longer than 1048576 bytes"));
    for (name, args, words) in [
        ("status.json", vec!["status"], "longer than 1048576 bytes"),
        ("decisions.jsonl", vec!["explain", "4"], "begins with a brace"),
        (
            "memory.json",
            vec!["why-not", "4", "--policy", "sjf"],
            "begins anew",
        ),
        (
            "tree.json",
            vec!["why-not", "4", "--policy"],
            "does not begin with",
        ),
    ] {
        let path = fake.at("state").join(name);
        let _ = fs::remove_file(&path);
        symlink("/dev/zero", &path).unwrap();
        let mut args: Vec<String> = args.into_iter().map(str::to_owned).collect();
        if name == "tree.json" {
            args.push(path.display().to_string());
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let said = errors(&fake.scheduler(&args));
        assert!(said.contains(name) && said.contains(words), "{name}: {said}");
    }
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn words_that_cannot_be_written_are_an_error_and_a_reader_that_has_gone_is_none() {
    let fake = Fake::new(&QUEUE);
    fake.rounds("sjf", "--shadow", "1");
    for args in [
        vec!["status"],
        vec!["explain", "4"],
        vec!["why-not", "1", "--policy", "sjf"],
        vec!["hand-back"],
    ] {
        let run = |stdout: Stdio| -> Child {
            Command::new(env!("CARGO_BIN_EXE_pleach-scheduler"))
                .arg("--config")
                .arg(fake.at("pleach.toml"))
                .args(&args)
                .stdout(stdout)
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let full = run(fs::File::create("/dev/full").unwrap().into());
        let full = full.wait_with_output().unwrap();
        assert!(
            !full.status.success() && errors(&full).contains("standard output"),
            "{args:?}"
        );
        let mut gone = run(Stdio::piped());
        drop(gone.stdout.take());
        let mut said = String::new();
        gone.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(
            gone.wait().unwrap().success() && said.is_empty(),
            "{args:?}: {said}"
        );
    }
}

#[test]
fn a_partition_that_is_not_there_is_refused_with_those_that_are() {
    let fake = Fake::new(&QUEUE);
    for args in [
        vec!["run", "--policy", "sjf", "--shadow", "--rounds", "1"],
        vec!["why-not", "1", "--policy", "sjf"],
    ] {
        let output = fake.scheduler(&[vec!["--partition", "mian"], args].concat());
        let said = errors(&output);
        assert!(
            !output.status.success() && said.contains("partition = \"mian\": allowed is one of main"),
            "{said}"
        );
    }
}

#[test]
fn a_policy_and_a_configuration_that_cannot_be_read_say_what_and_where() {
    let fake = Fake::new(&QUEUE);
    let tree = fake.at("tree.json");
    fs::write(&tree, "{\"format\": \"pleach-tree\",\n\"nodes\": [").unwrap();
    let said = fake.rounds(tree.to_str().unwrap(), "--shadow", "1");
    assert!(said.contains("policy file ") && said.contains("line 2"), "{said}");
    let config = fake.read("pleach.toml") + "\ntick = 3\n";
    fs::write(fake.at("pleach.toml"), &config).unwrap();
    let said = errors(&fake.scheduler(&["status"]));
    let line = config.lines().count();
    assert!(
        said.contains(&format!(
            "pleach.toml, line {line}: \"tick = 3\": unknown field `tick`"
        )),
        "{said}"
    );
}

#[test]
fn parts_of_heterogeneous_jobs_that_a_daemon_held_are_given_back_by_the_daemon_and_by_hand() {
    for by_hand in [false, true] {
        let fake = Fake::new(&[]);
        for part in ["8+0", "8+1"] {
            let text = format!("id={part} gpus=1 prio=0 mark=pleach:held submit=1795000000\n");
            fs::write(fake.at("jobs").join(part), text).unwrap();
        }
        match by_hand {
            true => assert!(out(&fake.scheduler(&["hand-back"])).contains("2 jobs were given back")),
            false => drop(fake.played("sjf", 1)),
        }
        let text = fake.read("starts");
        assert!(text.contains("8+0 g") && text.contains("8+1 g"), "{text}");
        assert!(!fake.read("jobs/8+0").contains("pleach:"), "no mark is left");
    }
}

/// Where accounts are not enforced a user says any text, also one that looks like the line of another job.
#[test]
fn an_account_with_an_end_of_line_costs_no_round_and_is_no_other_job() {
    let account = "account='x|\n2|PENDING|0|gres:gpu:1|'";
    let ordered = Fake::ordered(&QUEUE);
    ordered.come(5, 1, "1:00", account);
    ordered.rounds("sjf", "--live", "1");
    assert_eq!(ordered.line(), [5, 4, 2, 3, 1]);
    let told = out(&ordered.scheduler(&["status"]));
    assert!(told.contains("1 rounds, 0 failed"), "{told}");
}

/// A daemon that goes on until a signal ends it, by a configuration.
fn begin(fake: &Fake, config: &str, policy: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_pleach-scheduler"))
        .arg("--config")
        .arg(fake.at(config))
        .args(["run", "--policy", policy, "--shadow"])
        .stderr(fs::File::create(fake.at("said")).unwrap())
        .spawn()
        .unwrap()
}

fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
}

fn wait_for(fake: &Fake, words: &str) {
    let began = Instant::now();
    while !fake.read("said").contains(words) {
        assert!(
            began.elapsed().as_secs() < 15,
            "{words} is not in {}",
            fake.read("said")
        );
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_hangup_reads_the_policy_and_says_so_and_what_was_refused_stands_in_the_status() {
    let fake = Fake::new(&QUEUE);
    let tree = fake.at("tree.json");
    let reference = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/trees/PhillyGang-v1-tree.json"
    );
    fs::copy(reference, &tree).unwrap();
    let mut daemon = begin(&fake, "pleach.toml", tree.to_str().unwrap());
    wait_for(&fake, "decides and touches nothing");
    signal(&daemon, "-HUP");
    wait_for(&fake, "the policy was read again");
    wait_for(&fake, "the configuration is that of the start");
    fs::write(&tree, "{").unwrap();
    signal(&daemon, "-HUP");
    wait_for(&fake, "the policy stays: ");
    let began = Instant::now();
    while !out(&fake.scheduler(&["status"])).contains("warning: the last reload was refused: ") {
        assert!(
            began.elapsed().as_secs() < 15,
            "{}",
            out(&fake.scheduler(&["status"]))
        );
        thread::sleep(Duration::from_millis(50));
    }
    signal(&daemon, "-TERM");
    assert!(daemon.wait().unwrap().success());
}

#[test]
fn a_hangup_in_the_first_moments_does_not_end_a_daemon() {
    let fake = Fake::new(&QUEUE);
    // It waits for the first line of its configuration when the signal comes.
    let pipe = fake.at("pipe.toml");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut daemon = begin(&fake, "pipe.toml", "sjf");
    thread::sleep(Duration::from_millis(500));
    signal(&daemon, "-HUP");
    thread::sleep(Duration::from_millis(100));
    fs::write(&pipe, fake.read("pleach.toml")).unwrap();
    wait_for(&fake, "the policy was read again: sjf");
    signal(&daemon, "-TERM");
    assert!(daemon.wait().unwrap().success());
}
