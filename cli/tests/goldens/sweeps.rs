//! `sweep gather` and `suite`.

use std::fs;

use pleach_tests::golden::{Row, hold};

use super::answers;
use crate::command_line::succeed;

const GRID: &str = "\
name = 's'
seeds = 3
[base]
workload = 'Pleach/PhillyGang-v1'
num_jobs = 80
[grid]
policy = ['fifo', 'sjf']
load = [2, 4]
";

#[test]
fn a_gathered_sweep_has_the_figures_that_it_had() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("grid.toml"), GRID).unwrap();
    succeed(folder, "sweep plan --config grid.toml --out s/sweep.json");
    succeed(folder, "sweep run --manifest s/sweep.json --quiet");
    let mut rows = answers(folder, &[("status", "sweep gather --manifest s/sweep.json")]);
    succeed(folder, "sweep gather --manifest s/sweep.json");
    // A column of a unit is a figure.
    let table = fs::read_to_string(folder.join("s/results.csv")).unwrap();
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    for (unit, cells) in lines.enumerate() {
        let figures = header.iter().zip(cells);
        rows.extend(figures.map(|(column, cell)| Row {
            name: format!("results, unit {unit}: {column}"),
            result: cell.to_owned(),
        }));
    }
    hold("json-sweep", rows);
}

#[cfg(feature = "lab")]
const SETTINGS: &str = "\
num_validation = 2
validate_every = 1
prior = 'sjf-best-type'
[train]
num_updates = 1
[train.network]
hidden = 8
context = 8
[train.evolution]
num_pairs = 1
num_workloads = 1
";

#[cfg(feature = "lab")]
#[test]
fn a_suite_has_the_figures_that_it_had() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("suite.toml"), SETTINGS).unwrap();
    let line = "suite --config suite.toml --stages 1 --trainings 1 --workloads 2 --task Pleach/PhillyGang-v1 \
                --out suite --quiet";
    hold("json-suite", answers(folder.path(), &[("suite", line)]));
}
