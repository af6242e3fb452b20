//! A list of one's own: in the words of an evaluation, and split so that no policy is judged on the jobs that made it.

use std::path::{Path, PathBuf};

use pleach_env::{EnvConfig, Seed, SimConfig, Source, Split, WorkloadConfig};

use crate::evaluate::evaluation::EvaluationConfig;
use crate::evaluate::instances::{Instance, seeds};
use crate::evaluate::sim_config::SchedulingConfig;
use crate::evaluate::workload_source::WorkloadSource;
use crate::train::validation::Validation;
use crate::worlds::jobs::JobsWorld;

/// A list of so many jobs, an hour apart, in a file.
fn list(folder: &Path, num_jobs: u32) -> PathBuf {
    let made = WorkloadSource {
        num_jobs: Some(num_jobs),
        ..WorkloadSource::default()
    };
    let (mut workload, _) = made.workload("philly-like", Seed(1)).unwrap();
    for (number, job) in workload.jobs.iter_mut().enumerate() {
        job.submit = pleach_scheduler::Time::from_secs_f64(3600.0 * number as f64);
    }
    let path = folder.join("mine.csv");
    workload.write(&path).unwrap();
    path
}

fn source(path: &Path) -> WorkloadSource {
    WorkloadSource::of(path.to_str().unwrap())
}

#[test]
fn a_list_is_trained_on_with_the_cluster_load_and_knowledge_that_an_evaluation_has() {
    let folder = tempfile::tempdir().unwrap();
    let path = list(folder.path(), 200);
    let source = WorkloadSource {
        cluster: Some("40x8:V100".into()),
        load: Some(0.5),
        ..source(&path)
    };
    let text = "preemption = true\nestimates = 'history'\noverheads = { model = 'tacc-empirical' }";
    let scheduling: SchedulingConfig = toml::from_str(text).unwrap();
    let env = source.env_to_learn_in(&scheduling).unwrap();
    assert_eq!(env.sim, scheduling.sim(&[]));
    // A quarter of 40 jobs, the smallest part.
    let whole = source.workload(&source.workload[0], Seed(0)).unwrap().0;
    assert!((whole.offered_load() - 0.5).abs() < 1e-3);
    let episode = Source::open(&env).unwrap().workload(&env, Seed(1)).unwrap();
    assert_eq!(episode.cluster, whole.cluster);
    assert_eq!(episode.jobs.len(), 10);
    let at = whole
        .jobs
        .iter()
        .position(|job| job.id == episode.jobs[0].id)
        .unwrap();
    let same = whole.slice(at, 10);
    assert_eq!(episode.jobs, same.jobs);
    let said = WorkloadSource {
        split: Some(Split::Test),
        ..source
    };
    let said = said.env(&scheduling).unwrap_err().to_string();
    assert!(said.contains("split = test"), "{said}");
}

#[test]
fn what_chooses_and_what_judges_has_not_been_trained_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = list(folder.path(), 100);
    let env = source(&path).env(&SchedulingConfig::default()).unwrap();
    let whole = source(&path).workload(path.to_str().unwrap(), Seed(0)).unwrap().0;
    let places = |lists: &[Instance]| -> Vec<usize> {
        let place = |one: &Instance| {
            let id = &one.workload.jobs[0].id;
            whole.jobs.iter().position(|job| job.id == *id).unwrap()
        };
        lists.iter().map(place).collect()
    };
    let chosen_by = Validation::new(&env, 1, 20).unwrap();
    assert!(
        places(&chosen_by.instances)
            .iter()
            .all(|at| (60..=75).contains(at))
    );
    // By the settings that a training leaves behind, and by the list itself.
    let settings = folder.path().join("settings.toml");
    let text = toml::to_string(&std::collections::BTreeMap::from([("env", &env)])).unwrap();
    std::fs::write(&settings, text).unwrap();
    let drawn = source(&settings)
        .instances(&SimConfig::default(), &seeds(0, "test", 20), &mut |_| {})
        .unwrap();
    assert!(places(&drawn).iter().all(|at| (80..=95).contains(at)));
    let mut notes = Vec::new();
    let judged = EvaluationConfig {
        workload: WorkloadSource {
            split: Some(Split::Test),
            ..source(&path)
        },
        ..EvaluationConfig::default()
    };
    let judged = JobsWorld::open(&judged)
        .unwrap()
        .instances(&mut |note| notes.push(note))
        .unwrap();
    assert_eq!(
        (judged.len(), places(&judged), judged[0].workload.jobs.len()),
        (1, vec![80], 20)
    );
    assert!(notes[0].contains("the part test: 20 of 100 jobs"), "{notes:?}");
    let generated = WorkloadSource {
        split: Some(Split::Test),
        ..WorkloadSource::of("philly-like")
    };
    let said = generated.check().unwrap_err().to_string();
    assert!(
        said.contains("split = test") && said.contains("which is generated"),
        "{said}"
    );
}

#[test]
fn a_list_without_a_split_is_drawn_from_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = list(folder.path(), 60);
    let text = format!("[workload.file]\npath = '{}'\nnum_jobs = 10", path.display());
    let env: EnvConfig = toml::from_str(&text).unwrap();
    assert!(matches!(
        &env.workload,
        WorkloadConfig::File {
            split: None,
            load: None,
            ..
        }
    ));
    assert_eq!(env.in_split(Split::Test), env);
}
