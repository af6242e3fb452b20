//! Routing in steps: it is the loop of `simulate`, its return is what was booked, and its columns are what was believed.

use std::sync::{Arc, Mutex};

use pleach_scheduler::Problem;
use pleach_serving::llm::generate::RequestGenerator;
use pleach_serving::llm::{
    Decision, Fleet, Lists, Outcome, Requests, Router, Routing, SCHEMA, Served, by_name, simulate,
};
use pleach_serving::{Environment, Reward};
use pleach_workloads::Seed;
use proptest::prelude::*;

fn fleet(num_gateways: usize, scrape_s: f64, may_refuse: bool) -> Fleet {
    Fleet {
        may_refuse,
        ..crate::fleet::fleet(8, num_gateways, scrape_s)
    }
}

fn generator(num_requests: u32, rate_per_s: f64, turns: f64) -> RequestGenerator {
    RequestGenerator {
        num_requests,
        rate_per_s,
        turns,
        ..RequestGenerator::default()
    }
}

/// Notes what a rule chooses, as a row, and the believed times of each replica over their targets.
struct Noting {
    rule: Box<dyn Router>,
    rows: Vec<usize>,
    shares: Vec<[f64; 2]>,
}

impl Noting {
    fn new(rule: &str) -> Noting {
        Noting {
            rule: by_name(rule, 7).unwrap(),
            rows: Vec::new(),
            shares: Vec::new(),
        }
    }
}

impl Router for Noting {
    fn route(&mut self, decision: &Decision<'_>) -> Result<Option<usize>, Problem> {
        let chosen = self.rule.route(decision)?;
        self.rows.push(chosen.unwrap_or(decision.facts.len()));
        let targets = decision.fleet.targets;
        self.shares.extend((0..decision.facts.len()).map(|replica| {
            let believed = decision.believed(replica, true);
            [believed.ttft_s / targets.ttft_s, believed.tpot_s / targets.tpot_s]
        }));
        Ok(chosen)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn steps_are_the_loop_of_simulate_and_the_return_is_what_was_booked(
        seed in 0_u64..1_000, num_gateways in 1_usize..5, scrape_ms in 0_u32..3_000, rate_per_s in 20.0_f64..150.0,
        rule in prop_oneof![Just("random"), Just("least-ttft:shed=0.9"), Just("sessions:tpot=0.8")],
    ) {
        let fleet = fleet(num_gateways, f64::from(scrape_ms) / 1e3, true);
        let generator = generator(600, rate_per_s, 2.0);
        let mut noting = Noting::new(rule);
        let whole = simulate(&generator.draw(Seed(seed)).unwrap(), &fleet, &mut noting).unwrap();

        let reward = Reward { hit: 1.0, miss: -0.5, refused: -0.25 };
        let mut env = Routing::new(fleet.clone(), Lists::Drawn(generator), reward).unwrap();
        env.reset(seed).unwrap();
        prop_assert!(env.take_outcome().is_none());
        let place = |name: &str| SCHEMA.place(SCHEMA.joined_index(name).unwrap());
        let places = [place("ttft_now_share"), place("tpot_now_share")];
        let (mut sum, mut span_s, mut shares) = (0.0, 0.0, noting.shares.chunks(fleet.num_replicas));
        for (at, row) in noting.rows.iter().enumerate() {
            for (replica, share) in shares.next().unwrap().iter().enumerate() {
                for (place, share) in places.iter().zip(share) {
                    let feature = SCHEMA.of_rows().nth(*place).unwrap();
                    prop_assert_eq!(env.rows().row(replica)[*place], feature.encode(*share as f32));
                }
            }
            let step = env.step(*row).unwrap();
            sum += step.reward;
            span_s += step.dt_s;
            prop_assert_eq!(step.is_last, at == 599);
        }
        let tally = env.tally();
        let outcome = env.take_outcome().unwrap();
        prop_assert_eq!(&outcome, &whole);
        let hits = (600.0 * outcome.hit_share(fleet.targets)).round();
        let refused = (600.0 * outcome.refused_share()).round();
        prop_assert_eq!((tally.hits as f64, tally.refused as f64), (hits, refused));
        prop_assert!((sum - (hits - 0.5 * (600.0 - hits - refused) - 0.25 * refused)).abs() < 1e-9);
        prop_assert!(span_s > 0.0);
    }
}

#[test]
fn an_episode_is_its_seed_and_steps_out_of_turn_are_refused() {
    let lists = Lists::Drawn(generator(50, 30.0, 1.0));
    let mut env = Routing::new(fleet(2, 1.0, false), lists, Reward::default()).unwrap();
    let error = env.step(0).unwrap_err().to_string();
    assert!(error.contains("Reset it"), "{error}");
    let mut play = |seed: u64| -> (Vec<f32>, f64) {
        env.reset(seed).unwrap();
        let (mut seen, mut sum) = (Vec::new(), 0.0);
        loop {
            seen.extend_from_slice(env.rows().rows);
            seen.extend_from_slice(env.rows().context);
            let step = env.step(seen.len() % 8).unwrap();
            sum += step.reward;
            if step.is_last {
                return (seen, sum);
            }
        }
    };
    let first = play(3);
    assert_ne!(first, play(4));
    assert_eq!(first, play(3));
    assert_eq!(env.rows().mask.len(), 8);
    for (choice, expected) in [(8, "Reset it"), (0, "Reset it")] {
        assert!(env.step(choice).unwrap_err().to_string().contains(expected));
    }
    env.reset(1).unwrap();
    let error = env.step(8).unwrap_err().to_string();
    assert!(error.contains("action = 8: allowed is 0 to 7"), "{error}");
    let none = Routing::new(fleet(2, 1.0, false), Lists::Given(Vec::new()), Reward::default());
    assert!(none.err().unwrap().to_string().contains("at least 1"));
}

/// What is believed when a request comes against what it gets, over a fleet near its capacity.
#[test]
fn the_time_between_tokens_is_believed_within_a_fifth_and_the_old_belief_was_a_third_short() {
    struct Guess {
        rule: Box<dyn Router>,
        believed: Arc<Mutex<Vec<[f64; 2]>>>,
    }
    impl Router for Guess {
        fn route(&mut self, decision: &Decision<'_>) -> Result<Option<usize>, Problem> {
            let chosen = self.rule.route(decision)?;
            let replica = chosen.unwrap();
            let pair = [
                decision.believed(replica, true).tpot_s,
                decision.tpot_s(replica, true),
            ];
            self.believed.lock().unwrap().push(pair);
            Ok(chosen)
        }
    }
    let list: Requests = RequestGenerator {
        burst: 0.0,
        ..generator(8_000, 140.0, 1.0)
    }
    .draw(Seed(5))
    .unwrap();
    let believed = Arc::new(Mutex::new(Vec::new()));
    let mut guess = Guess {
        rule: by_name("round-robin", 0).unwrap(),
        believed: Arc::clone(&believed),
    };
    let outcome: Outcome = simulate(&list, &fleet(2, 1.0, false), &mut guess).unwrap();
    let believed = believed.lock().unwrap();
    let (mut ratios, mut num) = ([0.0; 2], 0.0);
    // The first seconds fill the fleet; answers of a few tokens have no mean.
    for (place, (request, pair)) in list.rows().iter().zip(believed.iter()).enumerate() {
        let Some(Served { tpot_s, .. }) = outcome.requests[place] else {
            continue;
        };
        if place > 1_000 && request.output_tokens > 100 {
            ratios = [ratios[0] + pair[0] / tpot_s, ratios[1] + pair[1] / tpot_s];
            num += 1.0;
        }
    }
    let [new, old] = ratios.map(|sum| sum / num);
    assert!(
        (new - 1.0).abs() < 0.2 && old < 0.67,
        "new {new}, old {old} over {num}"
    );
}
