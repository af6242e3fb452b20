//! The program as a batch system sees it: exit codes, what goes to which stream, and files.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn pleach(folder: &Path, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pleach"));
    command
        .current_dir(folder)
        .args(line.split_whitespace())
        .output()
        .expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_plan_is_written_once_and_its_status_is_an_array_list() {
    let folder = tempfile::tempdir().unwrap();
    let grid = "name = 'load'\nseeds = 3\n[grid]\nload = [0.6, 0.8]\n";
    fs::write(folder.path().join("grid.toml"), grid).unwrap();
    let plan = pleach(folder.path(), "sweep plan --config grid.toml --out s/sweep.json");
    assert_eq!(plan.status.code(), Some(0), "{}", text(&plan.stderr));
    assert_eq!(text(&plan.stdout), "6 units in s/sweep.json\nto run: 0-5\n");
    let first = fs::read(folder.path().join("s/sweep.json")).unwrap();
    assert_eq!(
        pleach(folder.path(), "sweep plan --config grid.toml --out s/sweep.json")
            .status
            .code(),
        Some(0)
    );
    assert_eq!(fs::read(folder.path().join("s/sweep.json")).unwrap(), first);
    let status = pleach(folder.path(), "sweep status --manifest s/sweep.json --missing");
    assert_eq!(
        (status.status.code(), text(&status.stdout)),
        (Some(0), "0-5\n".to_string())
    );
}

#[test]
fn an_input_that_cannot_be_used_exits_with_2_and_says_what_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("grid.toml"), "name = 'load'\nsedes = 3\n").unwrap();
    let plan = pleach(folder.path(), "sweep plan --config grid.toml");
    assert_eq!(plan.status.code(), Some(2));
    assert!(plan.stdout.is_empty());
    let words = text(&plan.stderr);
    assert!(
        words.contains("grid.toml, line 2, column 1") && words.contains("`seeds`"),
        "{words}"
    );
    assert_eq!(pleach(folder.path(), "sweep status").status.code(), Some(2));
    assert_eq!(pleach(folder.path(), "prune").status.code(), Some(2));
    fs::write(folder.path().join("sweep.json"), "{}").unwrap();
    assert_eq!(
        pleach(folder.path(), "sweep status --manifest sweep.json")
            .status
            .code(),
        Some(2)
    );
}

#[test]
fn a_sweep_without_results_cannot_be_gathered() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("grid.toml"), "name = 'load'\n").unwrap();
    pleach(folder.path(), "sweep plan --config grid.toml --out sweep.json");
    let gather = pleach(folder.path(), "sweep gather --manifest sweep.json --partial");
    assert_eq!(gather.status.code(), Some(1));
    assert!(!folder.path().join("results.csv").exists());
}

/// Every file below `folder` with its bytes, but for those that depend on the clock.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
            if path.is_dir() && name != "tensorboard" {
                open.push(path);
            } else if path.is_file() && name != "timing.jsonl" {
                found.push((name, fs::read(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn assert_same_files(one: &Path, other: &Path) {
    let (one, other) = (files(one), files(other));
    let names = |files: &[(String, Vec<u8>)]| files.iter().map(|file| file.0.clone()).collect::<Vec<_>>();
    assert_eq!(names(&one), names(&other));
    for ((name, one), (_, other)) in one.iter().zip(&other) {
        assert!(one == other, "{name} differs");
    }
}

fn succeed(folder: &Path, line: &str) -> String {
    let output = pleach(folder, line);
    assert_eq!(output.status.code(), Some(0), "{line}: {}", text(&output.stderr));
    text(&output.stdout)
}

const SMALL: &str = "\
num_envs = 4
warm_start_steps = 100
num_validation = 4
validate_every = 1
checkpoint_every = 1
[train]
num_updates = 4
num_steps = 64
group_size = 2
[train.network]
hidden = 8
context = 8
[train.imitation]
num_epochs = 2
";

#[test]
fn a_quickstart_makes_the_same_bytes_at_any_number_of_threads_and_its_policies_can_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let line = "quickstart --num-jobs 30 --updates 1 --seeds 3 --leaves 8";
    let said = succeed(
        folder.path(),
        &format!("{line} --threads 1 --out a --json a.json"),
    );
    assert!(said.contains("network") && said.contains("tree:"), "{said}");
    succeed(folder.path(), &format!("{line} --threads 2 --out b --quiet"));
    assert_same_files(&folder.path().join("a"), &folder.path().join("b"));
    let results: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.path().join("a.json")).unwrap()).unwrap();
    for policy in ["fifo", "sjf", "fair-share", "network", "tree"] {
        for key in ["avg_jct_s", "p99_jct_s", "makespan_s", "utilisation"] {
            let value = results["policies"][policy][key].as_f64();
            assert!(
                value.is_some_and(|value| value > 0.0),
                "{policy} {key}: {value:?}"
            );
        }
    }
    // The folder stands for its network and its tree; one file for itself.
    let table = succeed(
        folder.path(),
        "evaluate --policy fifo,a,best=a/tree.json --seeds 2 --num-jobs 30",
    );
    for name in ["fifo", "network", "tree", "best"] {
        assert!(
            table.lines().any(|line| line.starts_with(name)),
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
    succeed(
        folder.path(),
        &format!("distill --teacher sjf {flags} --out t --quiet"),
    );
    let said = succeed(folder.path(), &format!("distill --teacher t {flags} --out again"));
    for name in ["tree ", "tree-2"] {
        assert!(said.lines().any(|line| line.starts_with(name)), "{name}: {said}");
    }
}

#[test]
fn a_sweep_runs_and_is_gathered() {
    let folder = tempfile::tempdir().unwrap();
    let grid =
        "name = 's'\nseeds = 2\n[base]\nnum_jobs = 40\n[grid]\npolicy = ['fifo', 'sjf']\nload = [0.6, 1.2]\n";
    fs::write(folder.path().join("grid.toml"), grid).unwrap();
    succeed(folder.path(), "sweep plan --config grid.toml --out s/sweep.json");
    succeed(folder.path(), "sweep unit --manifest s/sweep.json --index 3");
    let before = fs::read(folder.path().join("s/units/3/result.json")).unwrap();
    succeed(
        folder.path(),
        "sweep run --manifest s/sweep.json --threads 2 --quiet",
    );
    assert_eq!(
        fs::read(folder.path().join("s/units/3/result.json")).unwrap(),
        before
    );
    succeed(folder.path(), "sweep gather --manifest s/sweep.json");
    let table = fs::read_to_string(folder.path().join("s/results.csv")).unwrap();
    assert_eq!(table.lines().count(), 1 + 8, "{table}");
    assert_eq!(
        pleach(folder.path(), "sweep unit --manifest s/sweep.json --index 99")
            .status
            .code(),
        Some(2)
    );
}

#[test]
fn a_workload_is_described_with_tables_a_page_and_figures_that_agree() {
    let folder = tempfile::tempdir().unwrap();
    let line = "workload describe --workload philly-like --num-jobs 300 --load 1.2 --policy easy";
    let said = succeed(folder.path(), &format!("{line} --out a --json a.json"));
    for words in [
        "Gangs",
        "Arrivals",
        "Tenants",
        "Causes of waiting under easy",
        "empty nodes %",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!said.contains("NaN") && !said.contains("inf"), "{said}");
    let page = fs::read_to_string(folder.path().join("a/report.html")).unwrap();
    assert!(page.contains("<svg") && !page.contains("NaN") && !page.contains("<script"));
    let bytes = fs::read(folder.path().join("a.json")).unwrap();
    assert_eq!(bytes, fs::read(folder.path().join("a/describe.json")).unwrap());
    let figures: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(figures["sizes"]["num_jobs"], 300);
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    assert!((number(&figures["load"]["offered"]) - 1.2).abs() < 1e-6);
    // The causes are parts of one whole.
    let causes = &figures["simulated"]["delay_by_bucket"][4]["causes"];
    let sum: f64 = ["fair_share", "capacity", "fragmentation", "held_back"]
        .iter()
        .map(|cause| number(&causes[*cause]))
        .sum();
    assert!((sum - 1.0).abs() < 1e-9, "{causes}");
    // The same again, byte by byte; and a finished run is not overwritten.
    succeed(folder.path(), &format!("{line} --out b --quiet --threads 1"));
    assert_same_files(&folder.path().join("a"), &folder.path().join("b"));
    assert_eq!(
        pleach(folder.path(), &format!("{line} --out b")).status.code(),
        Some(2)
    );
    let alone = succeed(folder.path(), "workload describe --num-jobs 5 --no-simulate");
    assert!(
        !alone.contains("Waiting") && alone.contains("Run times"),
        "{alone}"
    );
}

/// Each of these is refused with code 2, nothing on standard output, and these words.
#[test]
fn bad_input_is_refused_with_the_reason_and_what_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    succeed(
        folder.path(),
        "workload write --workload philly-like --num-jobs 20 --to good.csv",
    );
    let good = fs::read_to_string(folder.path().join("good.csv")).unwrap();
    let header = good.lines().find(|line| line.contains("num_gpus")).unwrap();
    let column = header.split(',').position(|name| name == "num_gpus").unwrap();
    let spoil = |value: &str| {
        let mut number = 0;
        let lines = good.lines().map(|line| {
            number += usize::from(!line.starts_with('#'));
            let mut cells: Vec<&str> = line.split(',').collect();
            if number == 3 {
                cells[column] = value;
            }
            cells.join(",")
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    for name in ["zero", "nan", "many", "none", "column"] {
        let cluster = folder.path().join(format!("{name}.cluster.toml"));
        fs::copy(folder.path().join("good.cluster.toml"), cluster).unwrap();
    }
    write("zero.csv", spoil("0").as_bytes());
    write("nan.csv", spoil("NaN").as_bytes());
    write("many.csv", spoil("1000000").as_bytes());
    write("none.csv", good.lines().next().unwrap().as_bytes());
    write("column.csv", good.replace("num_gpus", "gpus").as_bytes());
    write("torn.csv.gz", &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 75]);
    write("tree.json", b"{\"schema\": 1}");
    write("network.ckpt", b"not a checkpoint");
    write("nan.toml", b"[tiresias]\npromote_after = nan\n");
    fs::create_dir(folder.path().join("folder.toml")).unwrap();
    for (line, words) in [
        ("evaluate --policy fofo", vec!["fofo", "fifo", "easy"]),
        ("evaluate --policy tree.json", vec!["tree.json"]),
        ("evaluate --policy network.ckpt", vec!["network.ckpt"]),
        (
            "evaluate --workload nothing.csv",
            vec!["nothing.csv", "Pleach/Philly-v0"],
        ),
        (
            "evaluate --workload zero.csv",
            vec!["data: zero.csv, line 3, column num_gpus: "],
        ),
        (
            "evaluate --workload nan.csv",
            vec!["data: nan.csv, line 3, column num_gpus: ", "NaN"],
        ),
        (
            "evaluate --workload none.csv",
            vec!["data: none.csv: ", "no job is left to run"],
        ),
        ("evaluate --workload many.csv", vec!["1000000"]),
        ("evaluate --workload column.csv", vec!["column.csv", "num_gpus"]),
        ("evaluate --workload torn.csv.gz", vec!["torn.csv.gz"]),
        ("evaluate --load 1000", vec!["1000", "10"]),
        (
            "workload describe --workload philly-like,gavel-multi",
            vec!["philly-like,gavel-multi", "one workload"],
        ),
        (
            "workload describe --window-days 3",
            vec!["window_days = 3", "for trace files"],
        ),
        (
            "workload describe --workload good.csv --window-days 3",
            vec!["window_days = 3", "--from-day"],
        ),
        (
            "workload write --workload philly-like,gavel-multi --to w.csv",
            vec!["philly-like,gavel-multi", "one workload"],
        ),
        (
            "workload write --workload good.csv --window-days 3 --to w.csv",
            vec!["window_days = 3", "--from-day"],
        ),
        // The cluster of good.csv lies where this one's would.
        (
            "workload write --workload gavel-multi --to good.parquet",
            vec!["good.cluster.toml", "--force"],
        ),
        (
            "workload stats --from-day 3",
            vec!["from_day = 3", "Pleach/Philly-v0", "for trace files"],
        ),
        (
            "evaluate --workload philly-like --virtual-clusters",
            vec!["virtual_clusters", "philly-like", "for trace files"],
        ),
        (
            "evaluate --workload good.csv,./good.csv",
            vec!["./good.csv", "listed twice"],
        ),
        (
            "evaluate --policy fifo,sjf --reference srtf",
            vec!["reference = srtf", "fifo, sjf"],
        ),
        (
            "distill --teacher sjf --format philly",
            vec!["format = philly", "for trace files"],
        ),
        (
            "distill --teacher sjf --cluster good.cluster.toml",
            vec!["good.cluster.toml", "workload write --cluster"],
        ),
        (
            "distill --teacher sjf --workload good.csv --load 2",
            vec!["load = 2", "workload write --load"],
        ),
        (
            "workload describe --policy fofo",
            vec!["fofo", "Did you mean fifo?"],
        ),
        (
            "workload describe --policy easy --no-simulate",
            vec!["--no-simulate"],
        ),
        (
            "train --env Pleach/Nothing-v9",
            vec!["Pleach/Nothing-v9", "Pleach/Philly-v0"],
        ),
        (
            "reproduce B1 --smoke --data nowhere",
            vec!["data = nowhere", "no such folder"],
        ),
        ("quickstart --leaves 0", vec!["0"]),
        ("train --config folder.toml", vec!["folder.toml"]),
        ("train --fine-tune network.ckpt", vec!["network.ckpt", "PLEACHCK"]),
        (
            "evaluate --policy tiresias --policy-config nan.toml",
            vec!["nan.toml", "tiresias.promote_after = nan"],
        ),
        ("train --num-envs 7", vec!["num_envs = 7", "group_size = 16"]),
        ("train --device gpu", vec!["gpu", "cpu, cuda, wgpu"]),
        (
            "train --device cuda --set train.learner=evolution",
            vec!["device = cuda", "cpu with evolution strategies", "--device"],
        ),
        #[cfg(not(feature = "cuda"))]
        (
            "train --device cuda",
            vec![
                "device = cuda",
                "in this build",
                "cargo build --release --features cuda",
            ],
        ),
        #[cfg(not(feature = "wgpu"))]
        (
            "train --device wgpu",
            vec![
                "device = wgpu",
                "in this build",
                "cargo build --release --features wgpu",
            ],
        ),
    ] {
        let output = pleach(folder.path(), line);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(output.stdout.is_empty(), "{line}: {}", text(&output.stdout));
        for word in words {
            assert!(said.contains(word), "{line}: no {word} in {said}");
        }
    }
}

#[test]
fn a_workload_survives_the_way_through_parquet_to_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let say = |line: &str| succeed(folder.path(), line);
    say("workload write --workload philly-like --num-jobs 50 --to a.csv");
    say("workload convert --workload a.csv --to b.parquet");
    say("workload convert --workload b.parquet --to c.csv");
    let bytes = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert_eq!(bytes("a.csv"), bytes("c.csv"));
    assert_eq!(bytes("a.cluster.toml"), bytes("c.cluster.toml"));
    assert!(bytes("b.parquet").starts_with(b"PAR1"));
    let list = "job_id,num_gpu,submit_time,model_name,duration\n0,2,30,vgg19,90\n";
    fs::write(folder.path().join("list.csv"), list).unwrap();
    say("workload convert --workload list.csv --format tiresias --to d.parquet");
}

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
    // One stage, and a second one with settings of its own, which goes on from the same first.
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
    let unknown = pleach(folder.path(), "suite --task Pleach/Phily");
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("Pleach/Synergy-v1"));
}

#[test]
fn networks_are_blended_into_one_that_can_be_evaluated() {
    let folder = tempfile::tempdir().unwrap();
    let reference = concat!(env!("CARGO_MANIFEST_DIR"), "/../checkpoints/reference");
    let both =
        format!("blend --network {reference}/GavelMulti-v1.ckpt,{reference}/GavelMulti-v1-longer.ckpt");
    let blend = pleach(folder.path(), &format!("{both} --weights 3,1 --to b.ckpt"));
    assert_eq!(blend.status.code(), Some(0), "{}", text(&blend.stderr));
    assert!(text(&blend.stdout).contains("75 % of"), "{}", text(&blend.stdout));
    let line = "evaluate --workload Pleach/GavelMulti-v1 --num-jobs 30 --seeds 1 --policy sjf,b.ckpt";
    let evaluate = pleach(folder.path(), line);
    assert_eq!(evaluate.status.code(), Some(0), "{}", text(&evaluate.stderr));
    for (line, word) in [
        (format!("{both} --to b.ckpt"), "--force"),
        (format!("{both} --to c.json"), ".ckpt"),
        (format!("{both} --weights 1 --to c.ckpt"), "one for each"),
        (
            format!("{both},{reference}/Elastic-v1.ckpt --to c.ckpt"),
            "expected",
        ),
    ] {
        let refused = pleach(folder.path(), &line);
        assert_eq!(
            refused.status.code(),
            Some(2),
            "{line}: {}",
            text(&refused.stderr)
        );
        assert!(text(&refused.stderr).contains(word), "{}", text(&refused.stderr));
    }
}

#[test]
fn the_cluster_that_is_written_beside_a_list_can_be_given_to_another() {
    let folder = tempfile::tempdir().unwrap();
    let write = pleach(
        folder.path(),
        "workload write --workload philly-like --num-jobs 20 --to a.csv",
    );
    assert_eq!(write.status.code(), Some(0), "{}", text(&write.stderr));
    let line =
        "evaluate --workload philly-like --num-jobs 20 --cluster a.cluster.toml --policy fifo --seeds 1";
    let evaluate = pleach(folder.path(), line);
    assert_eq!(evaluate.status.code(), Some(0), "{}", text(&evaluate.stderr));
}
