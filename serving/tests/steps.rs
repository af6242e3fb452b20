//! Dispatching in steps: it is the loop of `simulate`, and its return is what was booked.

use pleach_scheduler::features::FeatureSchema;
use pleach_scheduler::{PolicyError, Rows, Scorer};
use pleach_serving::functions::{
    self, Arrivals, Dispatching, Late, Platform, SCHEMA, ScorerDispatcher, surface,
};
use pleach_serving::{Environment, Reward, Step};
use pleach_workloads::Seed;
use proptest::prelude::*;

/// A weighted sum of a row's columns; the first of equal ones is taken.
struct Weighted(Vec<f32>);

impl Weighted {
    fn score(&self, row: &[f32]) -> f32 {
        row.iter()
            .zip(&self.0)
            .map(|(value, weight)| value * weight)
            .sum()
    }

    fn best(&self, rows: &Rows<'_>) -> usize {
        let scores = (0..rows.mask.len()).map(|row| (row, self.score(rows.row(row))));
        let allowed = scores.filter(|(row, _)| rows.mask[*row]);
        let best = allowed.reduce(|best, next| if next.1 > best.1 { next } else { best });
        best.unwrap().0
    }
}

impl Scorer for Weighted {
    fn schema(&self) -> &'static FeatureSchema {
        &SCHEMA
    }

    fn score_rows(&mut self, rows: Rows<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        for (row, score) in scores.iter_mut().enumerate() {
            *score = self.score(rows.row(row));
        }
        Ok(())
    }
}

/// Plays an episode: the sum of rewards, and whether each step but the last went on.
fn steps(
    env: &mut dyn Environment,
    seed: u64,
    mut choose: impl FnMut(&Rows<'_>, usize) -> usize,
) -> (f64, f64, usize) {
    env.reset(seed).unwrap();
    let (mut sum, mut span_s, mut num) = (0.0, 0.0, 0);
    loop {
        let rows = env.rows();
        let choice = choose(&rows, num);
        let Step {
            reward,
            dt_s,
            is_last,
        } = env.step(choice).unwrap();
        (sum, span_s, num) = (sum + reward, span_s + dt_s, num + 1);
        if is_last {
            return (sum, span_s, num);
        }
    }
}

const REWARD: Reward = Reward {
    hit: 1.0,
    miss: -0.5,
    refused: -0.25,
};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn dispatching_in_steps_is_the_loop_of_simulate_and_the_return_is_what_was_booked(
        seed in 0_u64..1_000, load in 0.5_f64..2.5, late in prop_oneof![Just(Late::Serve), Just(Late::Expire), Just(Late::Shed)],
        weights in prop::collection::vec(-1.0_f32..1.0, 18),
    ) {
        let platform = Platform { late, nodes: 6, ..Platform::default() };
        let mut arrivals = Arrivals::of_setting("relaxed-heavy", "infless", 400).unwrap();
        arrivals.load = load;
        let work = surface::work("infless").unwrap();
        let mut dispatcher = ScorerDispatcher::new(Box::new(Weighted(weights.clone()))).unwrap();
        let whole = functions::simulate(&work, &platform, &arrivals, &mut dispatcher, Seed(seed)).unwrap();

        let rule = Weighted(weights);
        let mut env = Dispatching::new(work, platform, arrivals, (1.0, 1.0), REWARD).unwrap();
        // An episode before must leave nothing behind.
        steps(&mut env, seed + 1, |rows, _| rule.best(rows));
        prop_assert!(env.take_outcome().is_some() && env.take_outcome().is_none());
        let (sum, span_s, _) = steps(&mut env, seed, |rows, _| {
            let num = rows.mask.iter().take_while(|may| **may).count();
            assert!(rows.mask[num..].iter().all(|may| !may));
            assert!(rows.rows[num * rows.width..].iter().all(|value| *value == 0.0));
            rule.best(rows)
        });
        let tally = env.tally();
        let outcome = env.take_outcome().unwrap();
        prop_assert_eq!(&outcome, &whole);
        prop_assert_eq!(tally.hits + tally.misses + tally.refused, 400);
        let expected = tally.hits as f64 - 0.5 * tally.misses as f64 - 0.25 * tally.refused as f64;
        prop_assert!((sum - expected).abs() < 1e-9 && tally.hits == whole.hits);
        prop_assert!(span_s > 0.0);
    }
}
