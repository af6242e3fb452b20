//! The reference policies that are part of the project: they are read by this version and are worth what lab/notes/suite.md says.

#![allow(clippy::disallowed_methods)]

use std::path::{Path, PathBuf};

use pleach_bench::suite::TASKS;
use pleach_experiments::door::{DOOR, PolicySpec};
use pleach_experiments::evaluate::instances::{episodes, seeds};
use pleach_experiments::evaluate::run::Runner;

fn reference(id: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../checkpoints/reference");
    // Networks keep the names of the environments in which they learned.
    let name = id
        .trim_start_matches("Pleach/")
        .replace("LlmSite-v1", "LlmSite-v0");
    folder.join(format!("{name}.ckpt"))
}

/// Geometric mean of average JCT over that of a heuristic, on a few of the held-out workloads.
fn ratio(id: &str, heuristic: &str, num: usize) -> f64 {
    let task = TASKS.into_iter().find(|task| task.id == id).unwrap();
    let env = task.env().unwrap();
    let instances = episodes(&env, &seeds(0, "test", num)).unwrap();
    let learned = DOOR.open(reference(id).to_str().unwrap()).unwrap();
    let both = [PolicySpec::heuristic(heuristic).unwrap(), learned[0].clone()];
    let runs = Runner::new(&env.sim).run(&instances, &both).unwrap();
    let log = |pair: &[pleach_experiments::evaluate::results::PolicyRun]| {
        (pair[1].metrics["avg_jct_s"] / pair[0].metrics["avg_jct_s"]).ln()
    };
    (runs.chunks(2).map(log).sum::<f64>() / num as f64).exp()
}

#[test]
fn every_task_has_a_reference_policy_that_this_version_reads() {
    for task in TASKS {
        // All but the site of today have a second stage.
        let longer = (task.id != "Pleach/LlmSite-v1").then(|| format!("{}-longer", task.id));
        for id in [task.id.to_string()].into_iter().chain(longer) {
            let path = reference(&id);
            let found = DOOR.open(path.to_str().unwrap());
            assert!(found.is_ok(), "{}: {:?}", path.display(), found.err());
        }
    }
}

#[test]
fn the_formula_among_the_reference_policies_is_the_one_that_the_planner_has() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../checkpoints/reference");
    let path = folder.join("index.json");
    let found = DOOR.open(path.to_str().unwrap()).unwrap();
    assert!(found[0].is_planner());
    let own = DOOR.open("index").unwrap();
    assert_eq!(found[0].text(), own[0].text());
    let built_in = folder.join("../../scheduler/dealing/src/index.json");
    assert_eq!(std::fs::read(path).unwrap(), std::fs::read(built_in).unwrap());
}

#[test]
fn on_several_gpu_types_it_is_far_ahead_of_the_best_heuristic() {
    let ratio = ratio("Pleach/GavelMulti-v1", "sjf-best-type", 4);
    assert!(ratio < 0.95, "{ratio}");
}
