//! Units whose answers are not what was asked for: each ends the training with an error that names the unit.

use std::cell::Cell;
use std::path::Path;

use pleach_agents::{Checkpoint, Learner, Trainer};
use pleach_env::{Seed, Source};
use pleach_network::{Contract, LearnedPolicy, Prior};

use super::constraint::Constraint;
use super::part::{Part, replayed};
use super::population::{Bounded, Generation, Play, policies};
use super::settings::TrainSettings;
use super::task::Task;
use super::tests::moving;
use super::unit::play_unit;
use super::units::{TASK_FILE, UNITS, Units, part_file, program};
use crate::door::PolicySpec;
use crate::error::{EXIT_CONFIG, Error};
use crate::progress::Watcher;
use crate::run_folder::hash::hash_file;
use crate::run_folder::{SETTINGS_FILE, atomic_file};

/// A training before its first generation, and the figures of that.
struct Training {
    settings: TrainSettings,
    source: Source,
    members: Vec<LearnedPolicy>,
    seed: Seed,
    present: LearnedPolicy,
    checkpoint: Checkpoint,
    baseline: PolicySpec,
    honest: Vec<Play>,
}

impl Training {
    fn new() -> Training {
        let mut settings = moving(Learner::EVOLUTION);
        settings.constraint = Constraint {
            metrics: [("p99_jct_s".to_string(), 1.05)].into(),
            ..Constraint::default()
        };
        let mut contract = Contract::current(settings.env.spaces(), settings.env.candidates, String::new());
        contract.prior = Some(Prior {
            policy: settings.prior.clone(),
            weight: settings.prior_weight,
        });
        let trainer = Trainer::new(settings.train, contract, Seed(7)).unwrap();
        let (networks, seed) = trainer.population().unwrap();
        let members = policies(trainer.contract(), &networks).unwrap();
        let mut training = Training {
            source: Source::open(&settings.env).unwrap(),
            members,
            seed,
            present: trainer.policy().unwrap(),
            checkpoint: trainer.checkpoint(),
            baseline: PolicySpec::heuristic("sjf").unwrap(),
            honest: Vec::new(),
            settings,
        };
        let generation = training.generation();
        training.honest = generation.plays(&generation.all()).unwrap();
        training
    }

    fn generation(&self) -> Generation<'_> {
        Generation {
            source: &self.source,
            env: &self.settings.env,
            objective: &self.settings.objective,
            num_workloads: self.settings.train.evolution.num_workloads,
            members: &self.members,
            bounded: Some(Bounded {
                constraint: &self.settings.constraint,
                baseline: &self.baseline,
                multipliers: &[],
                present: &self.present,
            }),
            seed: self.seed,
        }
    }

    /// The generation as two processes play it, of which the second answers with its own figures as `change` leaves them.
    fn answered(
        &self,
        folder: &Path,
        change: impl FnOnce(&mut Task, &mut Vec<Play>),
    ) -> Result<Vec<Play>, Error> {
        let settings = folder.join(SETTINGS_FILE);
        std::fs::write(&settings, "the settings").unwrap();
        let state = folder.join("state.ckpt");
        self.checkpoint.save(&state).unwrap();
        let mut units = Units::open(folder, 2, Some(&self.baseline)).unwrap().unwrap();
        let mut task = Task {
            program: program(),
            generation: 0,
            state: hash_file(&state).unwrap().1,
            settings: hash_file(&settings).unwrap().1,
            num_units: 2,
            num_plays: self.honest.len(),
            baseline: Some(self.baseline.name().to_string()),
        };
        let mut plays = self.honest[task.part(1)].to_vec();
        change(&mut task, &mut plays);
        let part = Part::of(&task, &plays);
        atomic_file::write_compact_json(&part_file(&folder.join(UNITS), 1), &part).unwrap();
        let clock = Cell::new(0.0);
        let tick = || {
            clock.set(clock.get() + 1.0);
            clock.get()
        };
        units.play(&self.generation(), &self.checkpoint, &tick)
    }
}

#[test]
fn honest_answers_and_those_to_another_state_leave_the_figures_as_they_are() {
    let training = Training::new();
    let folder = tempfile::tempdir().unwrap();
    let plays = training.answered(folder.path(), |_, _| {}).unwrap();
    assert_eq!(plays, training.honest);
    let folder = tempfile::tempdir().unwrap();
    let stale = training.answered(folder.path(), |task, plays| {
        task.state = "0".repeat(64);
        plays.iter_mut().for_each(|play| play.loss = 0.0);
    });
    assert_eq!(stale.unwrap(), training.honest);
}

#[test]
fn a_hostile_answer_ends_the_training_with_the_unit_and_what_is_wrong() {
    type Change = fn(&mut Task, &mut Vec<Play>);
    fn losses(plays: &mut [Play], loss: f64) {
        plays.iter_mut().for_each(|play| play.loss = loss);
    }
    let changes: [(Change, &str); 13] = [
        (|_, plays| losses(plays, 0.0), "played again here: expected loss"),
        (|_, plays| losses(plays, -1e6), "found -1000000"),
        (|_, plays| losses(plays, 1e300), "a loss of at most 45 either way"),
        (|_, plays| losses(plays, f64::NAN), "found NaN"),
        (|_, plays| losses(plays, f64::NEG_INFINITY), "found -inf"),
        (
            |_, plays| plays.push(plays[0].clone()),
            "expected 7 plays, found 8 plays",
        ),
        (|_, plays| plays.truncate(1), "expected 7 plays, found 1 plays"),
        (
            |_, plays| plays[3].num_passes = u64::MAX,
            "found 18446744073709551615",
        ),
        (
            |_, plays| plays[6].excess.push(0.0),
            "an excess over each of 1 bounds, found 2",
        ),
        (
            |_, plays| plays[6].excess.clear(),
            "an excess over each of 1 bounds, found 0",
        ),
        (
            |_, plays| plays[6].excess[0] = f64::INFINITY,
            "an excess of at most 90 either way, found inf",
        ),
        (
            |task, _| task.program = "pleach 0.0.1, exchange 1".into(),
            "program: expected pleach",
        ),
        (|task, _| task.settings = "0".repeat(64), "settings: expected"),
    ];
    let training = Training::new();
    assert_eq!(training.honest.len(), 14);
    for (change, words) in changes {
        let folder = tempfile::tempdir().unwrap();
        let error = training.answered(folder.path(), change).unwrap_err();
        let said = error.to_string();
        assert!(
            said.contains("unit 1 of the training") && said.contains(words),
            "{words}: {said}"
        );
        assert_eq!(error.exit_code(), EXIT_CONFIG);
        // The run goes on without what was refused.
        assert!(!part_file(&folder.path().join(UNITS), 1).exists());
    }
}

#[test]
fn a_bit_of_a_play_that_is_played_again_is_enough() {
    let training = Training::new();
    let [number] = replayed(7..14, training.seed, 1)[..] else {
        panic!("one of seven plays is played again");
    };
    let changes: [fn(&mut Play); 3] = [
        |play| play.loss = f64::from_bits(play.loss.to_bits() ^ 1),
        |play| play.num_passes += 1,
        |play| play.excess[0] = -play.excess[0],
    ];
    for change in changes {
        let folder = tempfile::tempdir().unwrap();
        let error = training.answered(folder.path(), |_, plays| change(&mut plays[number - 7]));
        let said = error.unwrap_err().to_string();
        assert!(
            said.contains(&format!("figures of play {number}, played again here")),
            "{said}"
        );
    }
}

#[test]
fn a_unit_refuses_a_training_by_another_version() {
    for (task, found) in [
        (
            r#"{"program": "pleach 0.0.1, exchange 1", "later": 3}"#,
            "found pleach 0.0.1, exchange 1",
        ),
        (
            r#"{"generation": 0, "state": "", "settings": ""}"#,
            "found the first version of the exchange",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        atomic_file::write(&folder.path().join(UNITS).join(TASK_FILE), task.as_bytes()).unwrap();
        let error = play_unit(folder.path(), 1, &|| 0.0, &Watcher::silent()).unwrap_err();
        let said = error.to_string();
        assert!(
            said.contains("program of the training: expected pleach") && said.contains(found),
            "{said}"
        );
        assert_eq!(error.exit_code(), EXIT_CONFIG);
    }
}
