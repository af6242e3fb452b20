//! `pleach sweep`.

use std::fs;
use std::path::{Path, PathBuf};

use super::{pleach, succeed, text};

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
    let status = pleach(folder.path(), "sweep gather --manifest s/sweep.json --missing");
    assert_eq!(
        (status.status.code(), text(&status.stdout)),
        (Some(0), "0-5\n".to_string())
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

#[test]
fn a_sweep_runs_and_is_gathered() {
    let folder = tempfile::tempdir().unwrap();
    let grid = "name = 's'\nseeds = 2\n[base]\nnum_jobs = 40\n[grid]\npolicy = ['fifo', 'srtf']\nload = [0.6, 1.2]\n";
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
    // Jobs cannot be preempted here: a table that gave sjf's figures as srtf's would say nothing of srtf.
    assert_eq!(table.matches("as sjf: no preemption").count(), 4, "{table}");
    let page = fs::read_to_string(folder.path().join("s/results.html")).unwrap();
    assert!(page.contains("policy = srtf (as sjf: no preemption)"));
    assert_eq!(
        pleach(folder.path(), "sweep unit --manifest s/sweep.json --index 99")
            .status
            .code(),
        Some(2)
    );
}

#[test]
fn a_sweep_takes_every_flag_of_a_simulation_and_answers_a_wrong_key_with_the_nearest() {
    let folder = tempfile::tempdir().unwrap();
    let write = |grid: &str| fs::write(folder.path().join("grid.toml"), grid).unwrap();
    write(
        "name = 's'\n[base]\nnum_jobs = 30\nworkload = 'Pleach/GavelMulti-v1'\noverheads = 'zero'\nestimates = 'history'\n\
         [grid]\npolicy = ['sjf', 'sjf-share']\nsharing = ['off', 'mps']\n",
    );
    succeed(folder.path(), "sweep plan --config grid.toml --out s/sweep.json");
    succeed(folder.path(), "sweep run --manifest s/sweep.json --quiet");
    let said = succeed(
        folder.path(),
        "sweep gather --manifest s/sweep.json --mlflow mlruns",
    );
    assert!(said.contains("policy = sjf-share, sharing = mps"), "{said}");
    assert_eq!(fs::read_dir(folder.path().join("mlruns")).unwrap().count(), 1);
    write("name = 's'\n[base]\ncommand = 'train'\nlerner = 'ppo'\n");
    let refused = pleach(folder.path(), "sweep plan --config grid.toml --out t/sweep.json");
    let said = text(&refused.stderr);
    assert!(
        refused.status.code() == Some(2) && said.contains("Did you mean learner?"),
        "{said}"
    );
    assert!(!folder.path().join("t").exists());
}

/// A search over two settings on two rungs, whose learning rate ends at `last`.
fn two_rungs(folder: &Path, last: f64) -> PathBuf {
    let grid = format!(
        "name = 'h'\n[base]\ncommand = 'train'\nlearner = 'evolution'\nenv = 'Pleach/GavelMulti-v1'\nnum_jobs = 15\n\
         num_validation = 2\nvalidate_every = 2\njudge.seeds = 2\n\
         train.evolution = {{ num_pairs = 2, num_workloads = 1, learning_rate = 0.2, learning_rate_final = {last} }}\n\
         [grid]\ntrain.evolution.sigma = [0.1, 0.5]\n\
         [halving]\nsetting = 'train.num_updates'\nvalues = [2, 4]\nkeep = 2\n"
    );
    fs::write(folder.join("grid.toml"), grid).unwrap();
    succeed(folder, "sweep plan --config grid.toml --out s/sweep.json");
    for unit in 0..2 {
        succeed(
            folder,
            &format!("sweep unit --manifest s/sweep.json --index {unit}"),
        );
    }
    folder.join("s/units")
}

/// The run of a unit.
fn run_of(units: &Path, unit: usize) -> Option<PathBuf> {
    let entries = fs::read_dir(units.join(unit.to_string())).ok()?;
    let mut paths = entries.map(|entry| entry.unwrap().path());
    paths.find(|path| path.is_dir())
}

#[test]
fn a_training_goes_on_from_the_rung_below_and_ends_as_one_from_the_beginning() {
    let [one, other, falling] = [0, 1, 2].map(|_| tempfile::tempdir().unwrap());
    // Where this file comes along, a run was gone on with.
    let mark = |units: &Path| {
        for unit in 0..2 {
            let logs = run_of(units, unit).unwrap().join("tensorboard");
            fs::write(logs.join("mark"), "").unwrap();
        }
    };
    let ended = |folder: &Path| {
        succeed(folder, "sweep run --manifest s/sweep.json --quiet");
        let units = folder.join("s/units");
        let unit = (2..4).find(|unit| units.join(unit.to_string()).is_dir()).unwrap();
        let run = run_of(&units, unit).unwrap();
        let bytes = [
            units.join(format!("{unit}/result.json")),
            run.join("network.ckpt"),
            run.join("validation.json"),
        ];
        let bytes = bytes.map(|path| fs::read(path).unwrap());
        (bytes, run.join("tensorboard/mark").exists())
    };
    mark(&two_rungs(one.path(), 0.2));
    let units = two_rungs(other.path(), 0.2);
    for unit in 0..2 {
        fs::remove_dir_all(run_of(&units, unit).unwrap()).unwrap();
    }
    let (gone_on, whole) = (ended(one.path()), ended(other.path()));
    assert!(gone_on.1 && !whole.1);
    assert!(
        gone_on.0 == whole.0,
        "{}\n{}",
        text(&gone_on.0[0]),
        text(&whole.0[0])
    );
    // A learning rate that falls over the whole length is another one on each rung.
    mark(&two_rungs(falling.path(), 0.1));
    assert!(!ended(falling.path()).1);
}
