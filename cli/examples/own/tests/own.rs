//! The template: everything that it names works by name in every command, and so does a policy in a process.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::Command;

fn run(folder: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_pleach-own"))
        .current_dir(folder)
        .args(words)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn succeed(folder: &Path, line: &str) -> String {
    succeed_with(folder, &line.split_whitespace().collect::<Vec<_>>())
}

fn succeed_with(folder: &Path, words: &[&str]) -> String {
    let (code, said, error) = run(folder, words);
    assert_eq!(code, Some(0), "{words:?}: {error}");
    said
}

fn has_row(table: &str, name: &str) -> bool {
    table.lines().any(|line| line.starts_with(&format!("{name} ")))
}

/// A row, or a place in the line of those that decided as another one.
fn is_compared(table: &str, name: &str) -> bool {
    let words: Vec<&str> = table.split_whitespace().collect();
    has_row(table, name) || words.windows(2).any(|pair| pair == [name, "as"])
}

const SMALL: &str = "\
num_envs = 4
warm_start_steps = 100
num_validation = 4
validate_every = 1
checkpoint_every = 1
[train]
num_updates = 1
num_steps = 64
group_size = 2
[train.network]
hidden = 8
context = 8
";

#[test]
fn what_the_program_has_is_listed_compared_and_swept_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let listed = succeed(here, "policies");
    assert!(
        has_row(&listed, "aged-sjf") && has_row(&listed, "widest-first"),
        "{listed}"
    );
    assert!(succeed(here, "policies --show widest-first").contains("gang size"));
    assert!(has_row(&succeed(here, "workload"), "bursty"));
    let table = succeed(
        here,
        "evaluate --policy sjf,aged-sjf,deal:aged-sjf,order:aged-sjf,widest-first --workload bursty --num-jobs 40 \
         --load 1.2 --seeds 2 --preemption",
    );
    for name in [
        "sjf",
        "aged-sjf",
        "deal:aged-sjf",
        "order:aged-sjf",
        "widest-first",
    ] {
        assert!(is_compared(&table, name), "{name}: {table}");
    }
    let table = succeed(
        here,
        "tournament --policy fifo,aged-sjf,widest-first --workload bursty --num-jobs 30 --seeds 1 --condition ideal",
    );
    assert!(
        table.contains("aged-sjf") && table.contains("widest-first"),
        "{table}"
    );
    let grid = "name = 's'\nseeds = 1\n[base]\nworkload = 'bursty'\nnum_jobs = 30\n[grid]\npolicy = ['fifo', 'aged-sjf']\n";
    fs::write(here.join("grid.toml"), grid).unwrap();
    succeed(here, "sweep plan --config grid.toml --out s/sweep.json");
    succeed(here, "sweep run --manifest s/sweep.json --quiet");
    succeed(here, "sweep gather --manifest s/sweep.json");
    let table = fs::read_to_string(here.join("s/results.csv")).unwrap();
    assert!(table.contains("aged-sjf"), "{table}");
    // A name that is none is refused with theirs beside ours.
    let (code, _, said) = run(here, &["evaluate", "--policy", "aged-sfj"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("Did you mean aged-sjf?"), "{said}");
}

#[test]
fn its_policy_teaches_networks_and_trees_and_its_reward_pays() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::write(here.join("small.toml"), SMALL).unwrap();
    let mut words: Vec<&str> =
        "train --config small.toml --workload bursty --num-jobs 20 --warm-start aged-sjf --out net --reward"
            .split_whitespace()
            .collect();
    words.push("-idle_gpu_hours / 100 - jobs_in_system_s / total_run_s");
    let said = succeed_with(here, &words);
    assert!(said.contains("from a clone of aged-sjf"), "{said}");
    let settings = fs::read_to_string(here.join("net/settings.toml")).unwrap();
    assert!(
        settings.contains("-idle_gpu_hours / 100") && settings.contains("\"own\""),
        "{settings}"
    );
    let said = succeed(
        here,
        "distill --teacher aged-sjf --workload bursty --num-jobs 20 --leaves 4 --rounds 0 --episodes 2 --test-seeds 2 --part-lists 0 --out tree",
    );
    assert!(said.contains("tier"), "{said}");
    let table = succeed(
        here,
        "evaluate --policy aged-sjf,net,tree --workload bursty --num-jobs 20 --seeds 2",
    );
    assert!(
        is_compared(&table, "network") && is_compared(&table, "tree"),
        "{table}"
    );
    *words.last_mut().unwrap() = "-idle_gpu_hour";
    let (code, _, said) = run(here, &words);
    assert_eq!(code, Some(2));
    assert!(said.contains("did you mean idle_gpu_hours?"), "{said}");
}

#[test]
fn its_learner_is_listed_learns_and_goes_on_from_a_checkpoint_with_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    assert!(succeed(here, "train --help").contains("bandit"));
    let begin = "train --learner bandit --workload bursty --num-jobs 20 --set num_validation=2 --set train.network.hidden=8 \
                 --set train.network.context=8 --set checkpoint_every=1 --set validate_every=1 --quiet --set train.num_updates=";
    succeed(here, &format!("{begin}4 --out whole"));
    succeed(here, &format!("{begin}2 --out parts"));
    succeed(here, "train --out parts --extend 2 --quiet");
    let bytes = |run: &str| fs::read(here.join(run).join("checkpoints/update-00000004.ckpt")).unwrap();
    assert!(
        fs::read_to_string(here.join("whole/settings.toml"))
            .unwrap()
            .contains("learner = \"bandit\"")
    );
    assert!(bytes("whole") == bytes("parts"));
    let (code, _, said) = run(here, &["train", "--learner", "bandid"]);
    assert_eq!(code, Some(2));
    assert!(
        said.contains("bandit") && said.contains("evolution") && said.contains("imitation"),
        "{said}"
    );
}

/// Words of a line, as a shell has them; quotes are single ones.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), None::<String>, false);
    for letter in line.chars() {
        match letter {
            '\'' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            ' ' if !is_quoted => words.extend(word.take()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[test]
fn what_the_tutorial_types_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("../../../docs/tutorials/researcher-rust.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    // A command may go on in the next line.
    let page = page.replace("\\\n", "");
    let lines = page.lines().filter_map(|line| line.strip_prefix("own "));
    let mut num_lines = 0;
    for line in lines {
        let mut typed = words(line);
        for (long, short) in [
            ("400000", "1024"),
            ("3000", "400"),
            ("200", "40"),
            ("150", "20"),
            ("10", "1"),
            ("3", "1"),
            ("4,8,16", "4"),
        ] {
            // The same in short.
            for word in typed.iter_mut().filter(|word| *word == long) {
                *word = short.to_string();
            }
        }
        if typed[0] == "train" {
            let small = "--num-envs 16 --set num_validation=8 --set warm_start_steps=200";
            typed.extend(words(small));
        }
        if typed[0] == "evaluate" && !line.contains("--seeds") {
            typed.extend(["--seeds".to_string(), "1".to_string()]);
        }
        succeed_with(
            folder.path(),
            &typed.iter().map(String::as_str).collect::<Vec<_>>(),
        );
        num_lines += 1;
    }
    assert_eq!(num_lines, 5);
}

/// A world in a folder has every verb: it is listed, compared, searched in, learned in, explained, exported and swept.
#[test]
fn a_world_of_ones_own_has_every_verb() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    assert!(has_row(&succeed(here, "workload"), "packing"));
    assert!(has_row(&succeed(here, "policies"), "best-fit"));
    let keys = succeed(here, "workload settings packing");
    assert!(
        has_row(&keys, "items") && has_row(&keys, "search.judge_lists"),
        "{keys}"
    );
    let small = "--workload packing --set items=60";
    let said = succeed(
        here,
        &format!("evaluate {small} --set lists=5 --json found.json --html page.html"),
    );
    assert!(has_row(&said, "first-fit"), "{said}");
    let found: serde_json::Value =
        serde_json::from_slice(&fs::read(here.join("found.json")).unwrap()).unwrap();
    let bins = |policy: &str| found["policies"][policy]["bins"].as_f64().unwrap();
    // Any fit that looks at all bins opens one only where none has room.
    assert!(bins("best-fit") <= bins("next-fit") && bins("first-fit") <= bins("next-fit"));
    let gain = &found["policies"]["next-fit"]["gain_vs_reference"];
    assert!(gain["mean"].as_f64().unwrap() > 0.0, "{found}");
    let search = "--simulations 40 --set search.judge_lists=3 --set search.tune_lists=2 --out packed";
    let said = succeed(here, &format!("distill --search {small} {search}"));
    assert!(said.contains("in bins over"), "{said}");
    let train = "--learner evolution --set train.num_updates=1 --set train.evolution.num_pairs=2 --set train.network.hidden=8 \
                 --set train.network.context=8 --set search.judge_lists=2 --out trained";
    let said = succeed(here, &format!("train {small} {train}"));
    assert!(said.contains("Over the strongest rule"), "{said}");
    let both = "--policy best-fit,packed,trained/network.ckpt --reference best-fit --set lists=3";
    let said = succeed(here, &format!("evaluate {small} {both}"));
    assert!(
        is_compared(&said, "packed") && is_compared(&said, "trained/network.ckpt"),
        "{said}"
    );
    let said = succeed(here, &format!("explain packed {small} --decision 20"));
    assert!(said.contains("decision 20"), "{said}");
    succeed(here, "export packed/tree.json --to python --out written");
    assert!(succeed(here, "distill check packed/tree.json").contains("every score lies between"));
    let (code, _, error) = run(
        here,
        &["evaluate", "--workload", "packing", "--set", "spread=0.9"],
    );
    assert!(code == Some(2) && error.contains("0 to 0.5"), "{error}");
}
