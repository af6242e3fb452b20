//! Placing in steps: it is the loop of `simulate`, and its return is what was booked.

use pleach_rooms::contexts::{self, Decision, Discipline, Placing, Policy, Run, released};
use pleach_scheduler::{Problem, Rows};
use pleach_serving::{Environment, Reward, Step};
use pleach_workloads::Seed;
use proptest::prelude::*;
use std::sync::{Arc, Mutex};

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
    fn placing_in_steps_is_the_loop_of_simulate_under_each_named_rule(
        seed in 0_u64..1_000, cameras in 1_usize..30, spread in prop_oneof![Just(0.0), Just(0.2)],
        rule in prop_oneof![
            Just("sgprs"), Just("limit"), Just("edf"), Just("fixed"), Just("static"), Just("naive"), Just("sgprs:give-up=true"),
        ],
    ) {
        let run = Run { seed: Seed(seed), ..Run::new(1.0, 0.2, Seed(0)).unwrap() }.with_spread(spread).unwrap();
        let (gpu, policy) = released::set_up(rule, 3, 1.5, None).unwrap();
        let discipline = policy.discipline();
        let noted = Arc::new(Mutex::new(Vec::new()));
        let mut noting = Noting { rule: policy, noted: Arc::clone(&noted), num_contexts: gpu.contexts().len() };
        let tasks = released::cameras(cameras, Seed(seed)).unwrap();
        let whole = contexts::simulate(&gpu, &tasks, &mut noting, &run).unwrap();

        let noted = noted.lock().unwrap();
        let mut env = Placing::new(gpu, discipline, cameras, run, REWARD).unwrap();
        let (sum, _, num) = steps(&mut env, seed, |rows, num| {
            assert!(rows.mask[noted[num]], "a rule's choice is allowed");
            noted[num]
        });
        prop_assert_eq!(num, noted.len());
        let outcome = env.take_outcome().unwrap();
        prop_assert_eq!(outcome, whole);
        prop_assert_eq!(outcome.met + outcome.late + outcome.skipped, outcome.released);
        let expected = outcome.met as f64 - 0.5 * outcome.late as f64 - 0.25 * outcome.skipped as f64;
        prop_assert!((sum - expected).abs() < 1e-9);
    }
}

/// Notes what a rule chooses, as a row.
struct Noting {
    rule: Box<dyn Policy>,
    noted: Arc<Mutex<Vec<usize>>>,
    num_contexts: usize,
}

impl Policy for Noting {
    fn discipline(&self) -> Discipline {
        self.rule.discipline()
    }

    fn not_before_us(&mut self, decision: &Decision<'_>) -> u64 {
        let until_us = self.rule.not_before_us(decision);
        if !decision.was_held && until_us > decision.now_us {
            self.noted.lock().unwrap().push(self.num_contexts);
        }
        until_us
    }

    fn choose(&mut self, decision: &Decision<'_>) -> Result<usize, Problem> {
        let chosen = self.rule.choose(decision)?;
        self.noted.lock().unwrap().push(chosen);
        Ok(chosen)
    }
}

/// One camera that is always given up has no hits, and one that is never is always in time.
#[test]
fn frames_that_are_given_up_are_counted_and_steps_out_of_turn_are_refused() {
    let (gpu, policy) = released::set_up("sgprs", 3, 1.5, None).unwrap();
    let run = Run::new(1.0, 0.0, Seed(0)).unwrap();
    let mut env = Placing::new(gpu.clone(), policy.discipline(), 1, run, Reward::default()).unwrap();
    assert!(env.step(0).unwrap_err().to_string().contains("Reset it"));
    let (sum, _, num) = steps(&mut env, 4, |rows, _| rows.mask.len() - 1);
    let outcome = env.take_outcome().unwrap();
    assert_eq!((outcome.met, outcome.late, outcome.skipped), (0, 0, num as u64));
    assert_eq!(sum, -(num as f64));
    assert!(
        (28..=30).contains(&outcome.released),
        "30 a second from an offset within two periods"
    );
    let (_, _, stages) = steps(&mut env, 4, |_, _| 0);
    let outcome = env.take_outcome().unwrap();
    assert_eq!(
        (outcome.met, outcome.late, stages),
        (outcome.released, 0, 6 * num)
    );
    env.reset(4).unwrap();
    for (choice, expected) in [
        (5, "action = 5: allowed is 0 to 4"),
        (3, "a row but holding back"),
    ] {
        let error = env.step(choice).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let none = Placing::new(gpu, policy.discipline(), 0, run, Reward::default());
    assert!(none.err().unwrap().to_string().contains("tasks = 0"));
}
