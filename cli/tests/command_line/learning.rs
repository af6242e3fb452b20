//! Commands that learn: quickstart, train, distill, suite.

use std::fs;

use super::{SMALL, assert_same_files, files, pleach, succeed, text};

/// Whether a line under a table says that a policy decided as another one.
fn is_folded(table: &str, policy: &str) -> bool {
    let words: Vec<&str> = table.split_whitespace().collect();
    words.windows(2).any(|pair| pair == [policy, "as"])
}

#[test]
fn a_quickstart_makes_the_same_bytes_at_any_number_of_threads_and_its_policies_can_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let line = "quickstart --num-jobs 30 --updates 1 --seeds 3 --leaves 8 --simulations 300";
    let said = succeed(
        folder.path(),
        &format!("{line} --threads 1 --out a --json a.json"),
    );
    assert!(said.contains("network") && said.contains("tree:"), "{said}");
    let summary = fs::read_to_string(folder.path().join("a/summary.md")).unwrap();
    for column in [
        "avg JCT",
        "lists 4 times as long: JCT vs ",
        "guessed run times: JCT vs ",
        "guessed, lists 4 times as long: JCT vs ",
    ] {
        assert!(summary.contains(column), "{column}: {summary}");
    }
    // A rule is the reference of each column, and the strongest of its column: none is below 1.
    for results in [
        "results",
        "results-longer",
        "results-guessed",
        "results-guessed-longer",
    ] {
        let text = fs::read(folder.path().join(format!("a/{results}.json"))).unwrap();
        let results: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let policies = results["policies"].as_object().unwrap();
        assert!(policies.contains_key("best-gavel-multi"), "{policies:?}");
        for (name, policy) in policies
            .iter()
            .filter(|(name, _)| !["network", "tree"].contains(&name.as_str()))
        {
            let ratio = &policy["ratio_vs_reference"];
            assert!(ratio["mean"].as_f64().unwrap() >= 1.0 - 1e-9, "{name}: {ratio}");
        }
    }
    assert!(
        said.contains("1 of the lists where jobs may be stopped"),
        "{said}"
    );
    let stopping = fs::read_to_string(folder.path().join("a/table-stopping.md")).unwrap();
    for policy in ["network", "las-deal", "belief-deal", "index"] {
        assert!(
            stopping.contains(&format!("| {policy} |")) || is_folded(&stopping, policy),
            "{policy}: {stopping}"
        );
    }
    succeed(folder.path(), &format!("{line} --threads 2 --out b --quiet"));
    assert_same_files(&folder.path().join("a"), &folder.path().join("b"));
    let results: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.path().join("a.json")).unwrap()).unwrap();
    for policy in ["fifo", "sjf", "easy", "network", "tree"] {
        for key in ["avg_jct_s", "p99_jct_s", "makespan_s", "utilisation"] {
            let value = results["policies"][policy][key].as_f64();
            assert!(
                value.is_some_and(|value| value > 0.0),
                "{policy} {key}: {value:?}"
            );
        }
    }
    // Few rows, and none that repeats another for lack of what sets it apart.
    assert!(results["policies"].as_object().unwrap().len() <= 14, "{said}");
    assert!(results.get("stand_ins").is_none(), "{said}");
    // Terminal and page say what to do with the tree, in commands.
    let page = fs::read_to_string(folder.path().join("a/report.html")).unwrap();
    for (name, text, tree) in [("terminal", &said, "a/tree.json"), ("page", &page, "tree.json")] {
        for command in [
            format!("pleach evaluate --workload jobs.csv --policy fifo,sjf,{tree}"),
            format!("pleach explain {tree} --workload jobs.csv --why-not ID"),
            format!("pleach-scheduler run --policy {tree} --shadow"),
            format!("pleach-kubernetes run --policy {tree} --shadow"),
            "pleach run site.toml --init".to_string(),
        ] {
            assert!(text.contains(&command), "{name}, {command}: {text}");
        }
    }
    // Terminal, file, graph and page say where holding lies.
    for (name, text) in [
        ("terminal", said),
        (
            "tree.txt",
            fs::read_to_string(folder.path().join("a/tree.txt")).unwrap(),
        ),
        (
            "tree.dot",
            fs::read_to_string(folder.path().join("a/tree.dot")).unwrap(),
        ),
        (
            "report.html",
            fs::read_to_string(folder.path().join("a/report.html")).unwrap(),
        ),
    ] {
        assert!(
            text.contains("hold: in tier") && text.contains("start: "),
            "{name}: {text}"
        );
    }
    // The folder stands for its network and its tree; one file for itself.
    let table = succeed(
        folder.path(),
        "evaluate --policy fifo,a,best=a/tree.json --seeds 2 --num-jobs 30",
    );
    for name in ["fifo", "network", "tree", "best"] {
        assert!(
            table.lines().any(|line| line.starts_with(name)) || is_folded(&table, name),
            "{name}: {table}"
        );
    }
    let words = succeed(folder.path(), "policies --show a/tree.json");
    assert!(words.contains("tier"), "{words}");
}

#[test]
fn a_training_run_that_was_stopped_ends_in_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("small.toml"), SMALL).unwrap();
    let line = "train --config small.toml --num-jobs 30 --quiet";
    succeed(folder.path(), &format!("{line} --out whole"));
    succeed(folder.path(), &format!("{line} --out broken"));
    // As if it had been killed after its second update, in the middle of writing: what is newer is gone or torn.
    let broken = folder.path().join("broken");
    for name in ["artefacts.json", "train.json"] {
        let _ = fs::remove_file(broken.join(name));
    }
    let mut checkpoints: Vec<_> = fs::read_dir(broken.join("checkpoints"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    checkpoints.sort();
    assert!(checkpoints.len() >= 3);
    let newest = checkpoints.pop().unwrap();
    let torn = fs::read(&newest).unwrap();
    fs::write(&newest, &torn[..torn.len() / 2]).unwrap();
    succeed(folder.path(), &format!("{line} --out broken"));
    assert_same_files(&folder.path().join("whole"), &broken);
}

#[test]
fn no_steps_of_training_means_imitation_alone() {
    let folder = tempfile::tempdir().unwrap();
    succeed(
        folder.path(),
        "train --warm-start sjf --env-steps 0 --num-jobs 30 --num-envs 16 --out i --quiet",
    );
    succeed(folder.path(), "evaluate --policy sjf,i --num-jobs 30 --seeds 2");
}

#[test]
fn a_run_goes_on_with_its_own_settings_and_others_are_refused_by_key() {
    let folder = tempfile::tempdir().unwrap();
    let flags = "--num-envs 2 --num-jobs 20 --warm-start sjf --set num_validation=2 --set warm_start_steps=50 \
        --set train.group_size=1 --set train.num_steps=32 --set train.num_updates=1 --set train.imitation.num_epochs=1";
    let said = succeed(folder.path(), &format!("train {flags} --seed 5 --out r"));
    let first = said.lines().next().unwrap();
    for words in [
        "PPO, 1 updates",
        "clone of sjf",
        "Pleach/Philly-v0 --num-jobs 20",
        "64 GPUs",
        "load 1.5",
    ] {
        assert!(first.contains(words), "{words}: {first}");
    }
    assert!(
        said.contains("pleach evaluate --workload Pleach/Philly-v0 --num-jobs 20 --policy "),
        "{said}"
    );
    let run = folder.path().join("r");
    let before = files(&run);
    fs::remove_file(run.join("artefacts.json")).unwrap();
    let said = succeed(folder.path(), "train --out r --resume");
    assert!(said.contains("seed 5; on Pleach/Philly-v0"), "{said}");
    assert!(files(&run) == before);
    let other = pleach(
        folder.path(),
        &format!("train {flags} --seed 5 --out r --set train.num_updates=2"),
    );
    let said = text(&other.stderr);
    assert_eq!(other.status.code(), Some(2), "{said}");
    for words in [
        "train.num_updates = 2, there 1",
        "--config r/settings.toml --seed 5",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let seed = pleach(folder.path(), "train --out r --resume --seed 6");
    assert_eq!(seed.status.code(), Some(2));
    assert!(
        text(&seed.stderr).contains("seed = 6: allowed is 5"),
        "{}",
        text(&seed.stderr)
    );
    let card = succeed(folder.path(), "policies --show mine=r");
    for words in [
        "mine: a trained network",
        "trained on: Pleach/Philly-v0 --num-jobs 20",
        "learner: PPO, ",
    ] {
        assert!(card.contains(words), "{words}: {card}");
    }
}

#[test]
fn a_heuristic_is_distilled_into_a_tree_that_schedules() {
    let folder = tempfile::tempdir().unwrap();
    let line =
        "distill --teacher sjf --num-jobs 40 --rounds 1 --episodes 2 --test-seeds 2 --leaves 4,8 --out t";
    let said = succeed(folder.path(), line);
    assert!(said.contains("tier"), "{said}");
    succeed(folder.path(), "evaluate --policy sjf,t --num-jobs 40 --seeds 2");
}

#[test]
fn a_tree_can_be_the_teacher_of_a_tree() {
    let folder = tempfile::tempdir().unwrap();
    let flags = "--num-jobs 20 --rounds 0 --episodes 1 --test-seeds 1 --leaves 4";
    let objective = "--objective avg_jct_s=1,p99_jct_s=0.2";
    let said = succeed(
        folder.path(),
        &format!("distill --teacher sjf {flags} {objective} --out t"),
    );
    assert!(
        said.contains(" of the avg_jct_s x p99_jct_s^0.2 of sjf"),
        "{said}"
    );
    let said = succeed(folder.path(), &format!("distill --teacher t {flags} --out again"));
    let is_warned = |line: &str| line.starts_with("t was made for") && line.ends_with(objective);
    assert!(said.lines().any(is_warned), "{said}");
    for name in ["tree", "tree-2"] {
        let has_row = said.lines().any(|line| line.starts_with(&format!("{name} ")));
        assert!(has_row || is_folded(&said, name), "{name}: {said}");
    }
}

#[cfg(feature = "lab")]
#[test]
fn a_suite_trains_judges_and_reads_its_trainings_back() {
    let folder = tempfile::tempdir().unwrap();
    let line = "suite --smoke --task Pleach/GavelMulti-v1 --trainings 2 --workloads 2 --json s.json";
    let first = pleach(folder.path(), line);
    assert_eq!(first.status.code(), Some(0), "{}", text(&first.stderr));
    let lines = text(&first.stdout);
    assert!(
        lines.contains("Pleach/GavelMulti-v1, trained on lists of 900: avg JCT")
            && lines.contains("sia-philly"),
        "{lines}"
    );
    let bytes = fs::read(folder.path().join("s.json")).unwrap();
    let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    let stages = value["tasks"][0]["stages"].as_array().unwrap();
    assert_eq!(stages.len(), 2);
    for stage in stages {
        let judged = &stage["judged"]["held-out"];
        assert_eq!(judged["trainings"].as_array().unwrap().len(), 2);
        assert_eq!(judged["baselines"][0][1], 1.0);
    }
    let of_second = "runs/suite/GavelMulti-v1-1-longer/network.ckpt";
    let trained = fs::read(folder.path().join(of_second)).unwrap();
    let again = pleach(folder.path(), line);
    assert_eq!(text(&again.stdout), lines);
    assert_eq!(fs::read(folder.path().join("s.json")).unwrap(), bytes);
    assert_eq!(fs::read(folder.path().join(of_second)).unwrap(), trained);
}

#[cfg(feature = "lab")]
#[test]
fn a_suite_of_one_stage_goes_on_to_a_second_with_settings_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let of = "--task Pleach/GavelMulti-v1 --trainings 1 --workloads 2 --out runs/other";
    let one = pleach(
        folder.path(),
        &format!("suite --smoke --stages 1 {of} --json one.json"),
    );
    assert!(
        !text(&one.stdout).contains("lists of 900"),
        "{}",
        text(&one.stdout)
    );
    assert!(
        text(&one.stdout).contains("lists of 300"),
        "{}",
        text(&one.stdout)
    );
    let bytes = fs::read(folder.path().join("one.json")).unwrap();
    let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(value["tasks"][0]["stages"].as_array().unwrap().len(), 1);
    let settings = "[train]\nlearner = 'evolution'\nnum_updates = 1\n";
    fs::write(folder.path().join("mine.toml"), settings).unwrap();
    let two = pleach(
        folder.path(),
        &format!("suite --smoke --config-longer mine.toml {of}"),
    );
    assert_eq!(two.status.code(), Some(0), "{}", text(&two.stderr));
    let updates = |name: &str| {
        let path = folder.path().join("runs/other").join(name).join("config.toml");
        let settings: toml::Table = toml::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        settings["train"]["num_updates"].as_integer()
    };
    assert_eq!(
        ["GavelMulti-v1-0", "GavelMulti-v1-0-longer"].map(updates),
        [Some(3), Some(1)]
    );
}

#[cfg(feature = "lab")]
#[test]
fn a_suite_refuses_settings_of_its_tasks_and_names_the_tasks_that_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let of_task = pleach(folder.path(), "suite --smoke --set env.max_steps=9");
    assert_eq!(of_task.status.code(), Some(2));
    assert!(
        text(&of_task.stderr).contains("the task gives the environment"),
        "{}",
        text(&of_task.stderr)
    );
    let unknown = pleach(folder.path(), "suite --task Pleach/Phily");
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("Pleach/Synergy-v1"));
}

#[test]
fn the_learner_of_the_suite_is_one_flag_away() {
    let folder = tempfile::tempdir().unwrap();
    let sizes =
        "--num-jobs 30 --set train.num_updates=1 --set num_validation=2 --set train.evolution.num_pairs=1";
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../experiments/configs/suite.toml");
    let line = format!("train --env Pleach/GavelMulti-v1 {sizes} --quiet");
    succeed(folder.path(), &format!("{line} --learner evolution --out flag"));
    succeed(folder.path(), &format!("{line} --config {shipped} --out file"));
    assert_same_files(&folder.path().join("flag"), &folder.path().join("file"));
    // A run that goes on takes the smaller steps of the second stage.
    succeed(
        folder.path(),
        &format!("{line} --learner evolution --fine-tune flag --out on"),
    );
    let settings = fs::read_to_string(folder.path().join("on/settings.toml")).unwrap();
    assert!(settings.contains("sigma = 0.5"), "{settings}");
    let refused = pleach(
        folder.path(),
        &format!("{line} --learner evolution --config {shipped}"),
    );
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    let resumed = pleach(
        folder.path(),
        &format!("{line} --learner ppo --out flag --resume"),
    );
    let said = text(&resumed.stderr);
    assert_eq!(
        resumed.status.code(),
        Some(2),
        "another learner is another run: {said}"
    );
    assert!(said.contains("prior = \"none\""), "{said}");
}

#[test]
fn the_last_line_is_a_command_that_runs_also_for_an_environment_without_an_id() {
    let folder = tempfile::tempdir().unwrap();
    let flags = "--num-envs 2 --num-jobs 20 --warm-start sjf --set num_validation=2 --set warm_start_steps=50 \
        --set train.group_size=1 --set train.num_steps=32 --set train.num_updates=1 --set train.imitation.num_epochs=1";
    let odd = "--set env.workload.generate.num_nodes=3 --set env.sim.capabilities.restart_cost_s=77 \
        --set env.sim.capabilities.preemption=true";
    let said = succeed(folder.path(), &format!("train {flags} {odd} --out r"));
    let line = said.lines().last().unwrap();
    let (_, command) = line.split_once("compare it: pleach ").unwrap();
    assert!(command.contains("--workload r/settings.toml"), "{command}");
    let json = succeed(folder.path(), &format!("{command} --seeds 2 --json -"));
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let settings = fs::read_to_string(folder.path().join("r/settings.toml")).unwrap();
    assert!(
        settings.contains("num_nodes = 3") && settings.contains("restart_cost_s = 77"),
        "{settings}"
    );
    assert_eq!(value["num_pairs"], 2, "{json}");
    assert_eq!(value["policies"].as_object().unwrap().len(), 2, "{json}");
    // Flags win over what is written there, and a file without an environment is named.
    succeed(
        folder.path(),
        &format!("{command} --seeds 1 --load 0.5 --restart-cost-s 0"),
    );
    fs::write(folder.path().join("other.toml"), "seed = 1\n").unwrap();
    let refused = pleach(folder.path(), "evaluate --workload other.toml");
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("no table `env`"),
        "{}",
        text(&refused.stderr)
    );
}

#[test]
fn a_tree_with_a_raw_threshold_that_was_edited_schedules_by_it() {
    let folder = tempfile::tempdir().unwrap();
    succeed(
        folder.path(),
        "distill --teacher sjf --num-jobs 40 --rounds 1 --episodes 2 --test-seeds 2 --leaves 4 --out t --quiet",
    );
    let tree = fs::read_to_string(folder.path().join("t/tree.json")).unwrap();
    let (_, rest) = tree.split_once("\"raw\":").unwrap();
    let (raw, _) = rest.split_once(',').unwrap();
    let edited = format!("{:?}", raw.parse::<f64>().unwrap() * 0.5);
    let mine = tree.replacen(&format!("\"raw\":{raw},"), &format!("\"raw\":{edited},"), 1);
    fs::write(folder.path().join("mine.json"), &mine).unwrap();
    succeed(
        folder.path(),
        "evaluate --policy sjf,mine.json --num-jobs 40 --seeds 1",
    );
    // What cannot be meant is said with the way to mend it, and not with *train anew*.
    let broken = mine.replacen(&format!("\"raw\":{edited},"), "\"raw\":-5.0,", 1);
    fs::write(folder.path().join("broken.json"), broken).unwrap();
    let refused = pleach(
        folder.path(),
        "evaluate --policy sjf,broken.json --num-jobs 40 --seeds 1",
    );
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(
        said.contains("broken.json") && said.contains("Mend it there") && !said.contains("anew"),
        "{said}"
    );
}
