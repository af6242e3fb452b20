//! The environment: its rewards add up, a seed is an episode, and what may not be taken is refused.

use std::sync::Arc;

use pleach_experiments::worlds::{Player, Turn, World};
use pleach_graphs::board::{Board, ROWS_MAX};
use pleach_graphs::columns::SCHEMA;
use pleach_graphs::engine::Engine;
use pleach_graphs::generate::{Arrivals, Shape, graphs, list};
use pleach_graphs::list::Machine;
use pleach_graphs::{GraphSettings, GraphWorld};
use pleach_scheduler::{PolicyError, Rows, Scorer};
use pleach_serving::Environment;
use pleach_workloads::Seed;

fn small() -> GraphSettings {
    GraphSettings {
        num_graphs: 12,
        jobs: Some(12),
        executors: 20,
        ..GraphSettings::default()
    }
}

fn environment() -> Box<dyn Environment> {
    let settings = serde_json::to_value(small()).unwrap();
    (pleach_graphs::ROOM.environments[0].open)(settings).unwrap()
}

/// Takes the row `pick` names of those that may be taken; rewards and seconds.
fn episode(env: &mut dyn Environment, seed: u64, pick: impl Fn(usize, usize) -> usize) -> (f64, f64, usize) {
    env.reset(seed).unwrap();
    let (mut reward, mut dt_s) = (0.0, 0.0);
    for step in 0.. {
        let num = env.rows().mask.iter().filter(|may| **may).count();
        assert!(num > 0 && env.rows().mask[..num].iter().all(|may| *may));
        let found = env.step(pick(step, num)).unwrap();
        reward += found.reward;
        dt_s += found.dt_s;
        if found.is_last {
            return (reward, dt_s, step + 1);
        }
    }
    unreachable!()
}

#[test]
fn rewards_add_up_to_less_the_completion_times_and_a_seed_is_an_episode() {
    let mut env = environment();
    let pick = |step: usize, num: usize| step * 7 % num;
    let (reward, dt_s, num) = episode(env.as_mut(), 5, pick);
    let figures = env.take_figures().unwrap();
    assert!(env.take_figures().is_none());
    let of = |key: &str| figures.iter().find(|(own, _)| *own == key).unwrap().1;
    assert!(
        (reward + 12.0 * of("mean_jct_s")).abs() < 1e-6,
        "{reward} {figures:?}"
    );
    assert!((dt_s - of("makespan_s")).abs() < 1e-6 && num > 12);
    assert_eq!(episode(env.as_mut(), 5, pick), (reward, dt_s, num));
    assert_ne!(episode(env.as_mut(), 6, pick).0, reward);
}

#[test]
fn what_may_not_be_taken_is_refused_and_the_episode_goes_on() {
    let mut env = environment();
    let said = env.step(0).unwrap_err().to_string();
    assert!(said.contains("Reset it"), "{said}");
    env.reset(1).unwrap();
    let num = env.rows().mask.iter().filter(|may| **may).count();
    for row in [num, ROWS_MAX - 1, ROWS_MAX, usize::MAX] {
        assert!(env.step(row).is_err(), "{row}");
    }
    env.step(0).unwrap();
}

/// A scorer that takes the row of its turn, as the episode above does.
struct Turns(usize);

impl Scorer for Turns {
    fn schema(&self) -> &'static pleach_scheduler::features::FeatureSchema {
        &SCHEMA
    }

    fn score_rows(&mut self, _rows: Rows<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        let chosen = self.0 * 7 % scores.len();
        self.0 += 1;
        for (row, score) in scores.iter_mut().enumerate() {
            *score = f32::from(u8::from(row == chosen));
        }
        Ok(())
    }
}

#[test]
fn what_is_learnt_in_steps_is_what_is_played() {
    let source = small().source().unwrap();
    let list = Arc::new(source.list(Seed(5), 5, 1.0).unwrap());
    let world = GraphWorld::new(small()).unwrap();
    let outcome = world
        .play(&list, Turn::of(0), Player::Scorer(Box::new(Turns(0))))
        .unwrap();
    let (reward, _, _) = episode(environment().as_mut(), 5, |step, num| step * 7 % num);
    assert!((1e-3 * outcome.job_ms as f64 + reward).abs() < 1e-6);
}

/// Every row is a choice of its own, and numbers lie in their ranges. A crowd of jobs fills the rows and no more.
#[test]
fn rows_are_distinct_choices_with_columns_in_their_ranges() {
    let drawn = Arc::new(graphs(Shape::Tpch, 40, Seed(1)).unwrap());
    let machine = Machine::default();
    let list = Arc::new(list(&drawn, machine, Arrivals::Batch { jobs: 120 }, Seed(2)).unwrap());
    let mut engine = Engine::new(list);
    let (mut board, mut most) = (Board::default(), 0);
    for step in 0..600 {
        board.look(&engine);
        let choices = board.choices();
        most = most.max(choices.len());
        assert_eq!(board.rows().len(), choices.len() * SCHEMA.views[0].num_row);
        assert!(choices.last() == Some(&None) || engine.must_choose());
        for (place, choice) in choices.iter().enumerate() {
            assert!(!choices[..place].contains(choice));
            if let Some((stage, num)) = choice {
                assert!(engine.offered().contains(stage) && *num >= 1);
                assert!(*num <= engine.free().min(engine.demand(*stage)));
            }
        }
        for row in board.rows().chunks(SCHEMA.views[0].num_row) {
            for (value, feature) in row.iter().zip(SCHEMA.of_rows()) {
                let (low, high) = (feature.encode(feature.min), feature.encode(feature.max));
                assert!((low..=high).contains(value), "{}: {value}", feature.name);
            }
        }
        engine.decide(choices[step * 7 % choices.len()]);
        if engine.is_over() {
            break;
        }
    }
    assert_eq!(most, ROWS_MAX);
}

/// The door by which Python opens environments by name.
#[test]
fn the_id_opens_with_other_settings_and_refuses_what_is_none() {
    use pleach_experiments::Plugins;
    use pleach_experiments::worlds::{environment_settings, serving_environment};

    let own = Plugins::new()
        .room(pleach_graphs::ROOM)
        .world(pleach_graphs::KIND);
    own.register().unwrap();
    let id = "Pleach/SparkGraph-v0";
    assert!(
        environment_settings(id)
            .unwrap()
            .contains(&"moving_ms".to_string())
    );
    let changes = r#"{"jobs": 4, "arrivals": "batch", "executors": 8}"#;
    let mut env = serving_environment(id, changes).unwrap();
    let (reward, dt_s, _) = episode(env.as_mut(), 1, |_, _| 0);
    // All come at once, so each is in the system for at most the whole time.
    assert!(reward < -dt_s && reward >= -4.0 * dt_s, "{reward} {dt_s}");
    for (changes, words) in [(r#"{"job": 4}"#, "job"), (r#"{"executors": 0}"#, "1 to 10000")] {
        let said = serving_environment(id, changes).err().unwrap().to_string();
        assert!(said.contains(words), "{said}");
    }
}
