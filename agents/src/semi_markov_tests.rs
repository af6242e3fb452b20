//! Learning where decisions take unequal times, held to the optimum of the decision process and to fixed rules.
//!
//! One machine, two kinds of jobs, and a setup whenever the kind changes: a short job of the other kind may cost more than a
//! long one of the same, so the best policy depends on both queues and on the machine, and no fixed rule comes close.

use pleach_env::{Seed, Spaces};
use pleach_network::{Contract, DecisionBatch, Inference, NetworkConfig, action_of, softmax::argmax};
use pleach_scheduler::policy::CandidateConfig;
use rand_chacha::ChaCha8Rng;

use crate::ppo::PpoConfig;
use crate::random::uniform;
use crate::toy::{Many, Toy};
use crate::train_config::TrainConfig;
use crate::trainer::Trainer;

/// Longest queue; jobs that arrive at a full one go elsewhere.
const LONGEST: usize = 3;
/// Per kind: arrivals per second and seconds of a job.
const KINDS: [(f64, f64); 2] = [(0.15, 1.0), (0.1, 8.0)];
/// Seconds of a change from one kind to the other.
const SETUP_S: f64 = 6.0;
/// Seconds of waiting for what may come.
const IDLE_S: f64 = 2.0;
/// Time constant of the discount, s.
const HORIZON_S: f64 = 120.0;

/// Jobs that wait, and the kind that the machine is set up for.
#[derive(Clone, Copy, Debug, PartialEq)]
struct State {
    queues: [usize; 2],
    kind: usize,
}

impl State {
    fn all() -> impl Iterator<Item = State> {
        let side = LONGEST + 1;
        (0..2 * side * side).map(move |index| State {
            queues: [index / 2 / side, index / 2 % side],
            kind: index % 2,
        })
    }

    fn index(self) -> usize {
        2 * (self.queues[0] * (LONGEST + 1) + self.queues[1]) + self.kind
    }

    /// Waiting is always possible, serving where a job waits.
    fn actions(self) -> impl Iterator<Item = usize> {
        (0..3).filter(move |action| *action == 0 || self.queues[action - 1] > 0)
    }

    /// What is left when an action begins, and how long it takes, s.
    fn begin(self, action: usize) -> (State, f64) {
        let Some(kind) = action.checked_sub(1) else {
            return (self, IDLE_S);
        };
        let setup_s = if kind == self.kind { 0.0 } else { SETUP_S };
        let mut queues = self.queues;
        queues[kind] -= 1;
        (State { queues, kind }, KINDS[kind].1 + setup_s)
    }

    /// Every waiting job costs 1 a second; all is paid when the action begins.
    fn reward(self, dt_s: f64) -> f64 {
        -((self.queues[0] + self.queues[1]) as f64) * dt_s
    }
}

/// Probabilities that 0, 1, ... `room` jobs of a kind find room in `dt_s` seconds: Poisson's, the rest at the end.
fn arrivals(kind: usize, dt_s: f64, room: usize) -> Vec<f64> {
    let mean = KINDS[kind].0 * dt_s;
    let mut shares = vec![(-mean).exp()];
    for count in 1..room {
        shares.push(shares[count - 1] * mean / count as f64);
    }
    shares.truncate(room);
    shares.push(1.0 - shares.iter().sum::<f64>());
    shares
}

/// Seconds that an action takes, and the mean value of the states that it leads to.
fn outcome(values: &[f64], state: State, action: usize) -> (f64, f64) {
    let (left, dt_s) = state.begin(action);
    let [first, second] = [0, 1].map(|kind| arrivals(kind, dt_s, LONGEST - left.queues[kind]));
    let mut next = 0.0;
    for (i, p) in first.iter().enumerate() {
        for (j, q) in second.iter().enumerate() {
            let queues = [left.queues[0] + i, left.queues[1] + j];
            next += p * q * values[State { queues, ..left }.index()];
        }
    }
    (dt_s, next)
}

/// What every state is worth under a rule, or under the best one, given the worth of its actions.
fn improved(rule: Option<&dyn Fn(State) -> usize>, worth: impl Fn(State, usize) -> f64) -> Vec<f64> {
    let of_state = |state: State| match rule {
        Some(rule) => worth(state, rule(state)),
        None => state
            .actions()
            .map(|action| worth(state, action))
            .fold(f64::NEG_INFINITY, f64::max),
    };
    State::all().map(of_state).collect()
}

/// Discounted value of every state under a rule, or of the best one, by iteration to convergence.
fn values(rule: Option<&dyn Fn(State) -> usize>) -> Vec<f64> {
    let mut values = vec![0.0; State::all().count()];
    loop {
        let next = improved(rule, |state, action| {
            let (dt_s, next) = outcome(&values, state, action);
            state.reward(dt_s) + (-dt_s / HORIZON_S).exp() * next
        });
        let moved = |(a, b): (&f64, &f64)| (a - b).abs();
        let furthest = next.iter().zip(&values).map(moved).fold(0.0, f64::max);
        values = next;
        if furthest < 1e-6 {
            return values;
        }
    }
}

/// The machine as an environment.
struct Machine {
    random: ChaCha8Rng,
    state: State,
    age: u32,
}

impl Toy for Machine {
    const SPACES: Spaces = Spaces::new(4, 3, 5);

    fn begin(random: ChaCha8Rng) -> Machine {
        let state = State {
            queues: [0; 2],
            kind: 0,
        };
        let mut machine = Machine {
            random,
            state,
            age: 0,
        };
        machine.again();
        machine
    }

    fn observe(&self, global: &mut [f32], candidates: &mut [f32], mask: &mut [bool]) {
        observe(self.state, global, candidates, mask);
    }

    fn step(&mut self, action: usize) -> (f32, bool, bool, f64) {
        let (mut left, dt_s) = self.state.begin(action);
        let reward = self.state.reward(dt_s);
        for kind in 0..2 {
            let mut draw = uniform(&mut self.random);
            let shares = arrivals(kind, dt_s, LONGEST - left.queues[kind]);
            let count = shares.iter().position(|share| {
                draw -= share;
                draw < 0.0
            });
            left.queues[kind] += count.unwrap_or(shares.len() - 1);
        }
        self.state = left;
        self.age += 1;
        (reward as f32, false, self.age.is_multiple_of(40), dt_s)
    }

    fn again(&mut self) {
        let states: Vec<State> = State::all().collect();
        self.state = states[(uniform(&mut self.random) * states.len() as f64) as usize];
    }
}

fn observe(state: State, global: &mut [f32], candidates: &mut [f32], mask: &mut [bool]) {
    let filling = state.queues.map(|jobs| jobs as f32 / LONGEST as f32);
    global.copy_from_slice(&[filling[0], filling[1], state.kind as f32, 1.0 - state.kind as f32]);
    candidates.fill(0.0);
    candidates[0] = 1.0;
    for (kind, row) in candidates[5..].chunks_exact_mut(5).enumerate() {
        row[1 + kind] = 1.0;
        row[3] = if kind == state.kind { 0.0 } else { 1.0 };
        row[4] = filling[kind];
    }
    mask.copy_from_slice(&[true, state.queues[0] > 0, state.queues[1] > 0]);
}

/// The likeliest action of a network.
fn likeliest(inference: &Inference, state: State) -> usize {
    let (mut global, mut candidates, mut mask) = ([0.0; 4], [0.0; 15], [false; 3]);
    observe(state, &mut global, &mut candidates, &mut mask);
    let mut rows = DecisionBatch::new(Machine::SPACES);
    rows.push(&global, &candidates, &mask);
    let row = rows.get(0);
    let mut logits = vec![0.0; row.num_candidates];
    inference.forward(row, &mut inference.scratch(row.num_candidates), &mut logits);
    action_of(argmax(&logits), &mask).unwrap()
}

/// The action in a state.
type Rule = fn(State) -> usize;

/// Rules that people would write down: a kind first, the longer queue first, the present kind until none is left.
fn fixed_rules() -> [(&'static str, Rule); 4] {
    fn first_of(state: State, kinds: [usize; 2]) -> usize {
        let waiting = kinds.into_iter().find(|kind| state.queues[*kind] > 0);
        waiting.map_or(0, |kind| kind + 1)
    }
    [
        ("short jobs first", |state| first_of(state, [0, 1])),
        ("long jobs first", |state| first_of(state, [1, 0])),
        ("longer queue first", |state| {
            let longer = usize::from(state.queues[1] > state.queues[0]);
            first_of(state, [longer, 1 - longer])
        }),
        ("the present kind first", |state| {
            first_of(state, [state.kind, 1 - state.kind])
        }),
    ]
}

#[test]
fn a_lone_state_is_worth_what_the_formulas_say() {
    // Of 0 to 1 jobs with room for one, mean 0.15 * 2: none with probability exp(-0.3).
    assert_eq!(arrivals(0, 2.0, 1), [(-0.3_f64).exp(), 1.0 - (-0.3_f64).exp()]);
    assert_eq!(arrivals(0, 2.0, 0), [1.0]);
    // A short job on a machine set up for long ones: 6 s of setup and 1 s of work; with a long one waiting too, 14 paid.
    let state = State {
        queues: [1, 1],
        kind: 1,
    };
    let (left, dt_s) = state.begin(1);
    assert_eq!((left.queues, left.kind, dt_s), ([0, 1], 0, 7.0));
    assert_eq!(state.reward(dt_s), -14.0);
    // Full queues for ever, as under the rule that only waits: -6 * 2 / (1 - exp(-2/120)).
    let waiting = values(Some(&|_| 0));
    let full = State {
        queues: [3, 3],
        kind: 0,
    };
    let expected = -12.0 / (1.0 - (-2.0_f64 / 120.0).exp());
    assert!(
        (waiting[full.index()] - expected).abs() < 1e-3,
        "{} {expected}",
        waiting[full.index()]
    );
}

/// A learner that is fast on this machine.
fn config() -> TrainConfig {
    TrainConfig {
        num_updates: 40,
        num_steps: 80,
        horizon_s: HORIZON_S,
        network: NetworkConfig {
            hidden: 16,
            context: 16,
            ..NetworkConfig::default()
        },
        ppo: PpoConfig {
            minibatch_size: 128,
            learning_rate: 3e-3,
            learning_rate_final: 3e-4,
            ..PpoConfig::default()
        },
        ..TrainConfig::default()
    }
}

fn trained(config: TrainConfig) -> Trainer {
    let contract = Contract::current(Machine::SPACES, CandidateConfig::default(), "toy");
    let mut trainer = Trainer::new(config, contract, Seed(11)).unwrap();
    let mut envs = Many::<Machine>::new(16);
    while !trainer.is_finished() {
        trainer.update(&mut envs).unwrap();
    }
    trainer
}

#[test]
fn ppo_over_unequal_times_comes_within_five_percent_of_the_optimum_and_beats_every_fixed_rule() {
    let trainer = trained(config());
    let inference = trainer.inference().unwrap();
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    let best = mean(values(None));
    let learned = mean(values(Some(&|state| likeliest(&inference, state))));
    eprintln!("learned {:.4} of the optimal cost", learned / best);
    // Values are costs with a minus sign.
    assert!(
        learned <= best * (1.0 - 1e-9) && learned >= 1.05 * best,
        "learned {learned}, best {best}"
    );
    for (name, rule) in fixed_rules() {
        let fixed = mean(values(Some(&rule)));
        assert!(
            fixed < 1.1 * best && learned > fixed,
            "{name} {fixed}, learned {learned}, best {best}"
        );
    }
}
