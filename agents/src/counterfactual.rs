//! Exact credit by forks: what another decision would have cost is seen in a copy of the episode, and not estimated.
//!
//! At some decisions an episode is copied, another candidate is taken in the copy, and both go on with the likeliest candidates for a
//! bounded time. The cost is the difference of what is then *paid and committed*
//! ([`World::committed_s`](pleach_env::world::World::committed_s)), over the list's average JCT. The network learns from
//!
//! ```text
//! loss  mean( clamp(cost / mean |cost|, -3, 3) sigmoid(z_other - z_own) )
//! ```
//!
//! over the newest forks. What is deployed is the running mean of the parameters.
//!
//! # Source
//! Roll-outs of a base policy: Bertsekas, Tsitsiklis and Wu, 1997. The bounded time, what is committed at its end, the loss and all
//! constants are ours, *assumed* by trial on `Pleach/GavelMulti-v1`.

use std::collections::VecDeque;

use pleach_env::{Episode, Reached, Seed, Spaces};
use pleach_network::softmax::{log_softmax, sample};
use pleach_network::{
    Contract, DecisionBatch, DecisionRef, Inference, LearnedPolicy, PriorPolicy, action_of, choice_of,
};
use pleach_scheduler::portable_math::exp_f32;
use pleach_scheduler::settings::Above;
use pleach_scheduler::{Time, settings};
use rand_chacha::ChaCha8Rng;

use crate::error::{Error, SETTING_MAX};
use crate::random::uniform;

/// The other candidate is drawn from the softmax of the logits over this.
const TEMPERATURE: f32 = 2.0;
/// Largest cost that counts, over the mean absolute one.
const COST_MAX: f32 = 3.0;
/// How long a fork is followed where no time is set, over the average JCT.
const HORIZON_JCTS: f64 = 0.6;

settings! {
    /// Settings of exact credit by forks.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct CounterfactualConfig {
        /// Lists that are played in an update.
        pub num_lists: usize = 8, in 1..=4096;
        /// Every second list comes at so many times its load: queues are learned on short lists.
        pub heavier_load: f64 = 2.0, in 0.01..=100.0;
        /// One decision of so many is forked, by chance.
        pub fork_every: u32 = 13, in 1..=1_000_000;
        /// How long a fork is followed, s; 0 for 0.6 of the average JCT of the lists so far.
        pub horizon_s: f64 = 0.0, in 0.0..=SETTING_MAX;
        /// Newest forks that are learned from; a checkpoint holds them.
        pub num_kept: usize = 40_000, in 1..=200_000;
        /// Forks before learning begins.
        pub num_first: usize = 1_000, in 0..=1_000_000;
        /// Steps of Adam in an update.
        pub num_steps: u32 = 64, in 0..=1_000_000;
        /// Forks in a minibatch.
        pub minibatch_size: usize = 256, in 1..=1_048_576;
        /// Learning rate of the first update.
        pub learning_rate: f64 = 1e-3, in Above(0.0, SETTING_MAX);
        /// Learning rate of the last update; linear between.
        pub learning_rate_final: f64 = 1e-4, in 0.0..=SETTING_MAX;
        /// Longer gradients are shortened to this.
        pub max_grad_norm: f64 = 1.0, in Above(0.0, SETTING_MAX);
    }
}

impl CounterfactualConfig {
    /// Settings that are the default are not written, so that files of other learners stay as they are.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == CounterfactualConfig::default()
    }

    /// How long a fork is followed.
    pub(crate) fn horizon(&self, avg_jct_s: f64) -> Time {
        let given = Some(self.horizon_s).filter(|given| *given > 0.0);
        Time::from_secs_f64(given.unwrap_or(HORIZON_JCTS * avg_jct_s))
    }
}

/// A decision that was taken otherwise: places among the admissible candidates, and what it cost more, over the average JCT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fork {
    pub(crate) own: u32,
    pub(crate) other: u32,
    pub(crate) cost: f32,
}

/// Forks with what was seen at each.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Forks {
    pub(crate) rows: DecisionBatch,
    pub(crate) all: Vec<Fork>,
}

impl Forks {
    pub(crate) fn new(spaces: Spaces) -> Forks {
        Forks {
            rows: DecisionBatch::new(spaces),
            all: Vec::new(),
        }
    }

    pub(crate) fn extend(&mut self, other: &Forks) {
        self.rows.extend(&other.rows);
        self.all.extend_from_slice(&other.all);
    }

    /// A copy of some, in order.
    pub(crate) fn part(&self, range: std::ops::Range<usize>) -> Forks {
        let mut rows = self.rows.empty_like();
        range
            .clone()
            .for_each(|index| rows.push_ref(self.rows.get(index)));
        Forks {
            rows,
            all: self.all[range].to_vec(),
        }
    }

    /// Numbers that a fork takes in a file, at most.
    pub(crate) fn numbers_max(spaces: Spaces) -> usize {
        4 + spaces.num_global + spaces.num_candidates * (1 + spaces.num_features)
    }

    /// Adds the newest of these to `numbers`: places, cost, number of candidates, then what was seen.
    pub(crate) fn write(&self, num_kept: usize, numbers: &mut Vec<f32>) {
        for index in self.all.len().saturating_sub(num_kept)..self.all.len() {
            let (fork, row) = (self.all[index], self.rows.get(index));
            numbers.extend([
                fork.own as f32,
                fork.other as f32,
                fork.cost,
                row.num_candidates as f32,
            ]);
            for part in [row.global, row.candidates, row.prior] {
                numbers.extend_from_slice(part);
            }
        }
    }

    /// Reads what [`Forks::write`] wrote; none where it does not fit itself.
    pub(crate) fn read(spaces: Spaces, mut numbers: &[f32]) -> Option<Forks> {
        let mut forks = Forks::new(spaces);
        let count = |number: f32| {
            (number.fract() == 0.0 && (0.0..65_536.0).contains(&number)).then_some(number as usize)
        };
        while let Some((head, rest)) = numbers.split_at_checked(4) {
            let (own, other, n) = (count(head[0])?, count(head[1])?, count(head[3])?);
            if own >= n || other >= n || own == other || n > spaces.num_candidates {
                return None;
            }
            let (global, rest) = rest.split_at_checked(spaces.num_global)?;
            let (candidates, rest) = rest.split_at_checked(n * spaces.num_features)?;
            let (prior, rest) = rest.split_at_checked(n)?;
            forks.rows.push_ref(DecisionRef {
                global,
                candidates,
                num_candidates: n,
                prior,
            });
            forks.all.push(Fork {
                own: own as u32,
                other: other as u32,
                cost: head[2],
            });
            numbers = rest;
        }
        numbers.is_empty().then_some(forks)
    }

    /// Mean absolute cost of the forks from `first` on.
    pub(crate) fn scale(&self, first: usize) -> f32 {
        let costs = self.all[first..].iter().map(|fork| f64::from(fork.cost.abs()));
        (costs.sum::<f64>() / (self.all.len() - first).max(1) as f64) as f32
    }

    /// The loss of one fork, and its derivative by the logits.
    pub(crate) fn loss(&self, index: usize, scale: f32, logits: &[f32], by_logits: &mut [f32]) -> f64 {
        let fork = self.all[index];
        let (own, other) = (fork.own as usize, fork.other as usize);
        let cost = (fork.cost / scale).clamp(-COST_MAX, COST_MAX);
        let chance = 1.0 / (1.0 + exp_f32(logits[own] - logits[other]));
        let slope = cost * chance * (1.0 - chance);
        by_logits[other] += slope;
        by_logits[own] -= slope;
        f64::from(cost * chance)
    }
}

/// What a run that learns from forks has beside the running mean, which is its network.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Memory {
    /// The network that plays.
    pub(crate) parameters: Vec<f32>,
    pub(crate) forks: Forks,
}

/// What plays lists.
#[derive(Clone)]
pub(crate) struct Player {
    policy: LearnedPolicy,
    prior: Option<PriorPolicy>,
    spaces: Spaces,
    cells: Vec<f32>,
}

/// What one list gave.
pub(crate) struct Played {
    pub(crate) forks: Forks,
    pub(crate) num_decisions: u64,
    pub(crate) avg_jct_s: f64,
}

/// Which decisions are forked, and for how long.
#[derive(Clone)]
pub(crate) struct Forking {
    pub(crate) every: u32,
    pub(crate) horizon: Time,
    pub(crate) random: ChaCha8Rng,
}

/// What a copy came to, until its original comes to the same time.
struct Due {
    until: Time,
    committed_s: f64,
}

impl Player {
    pub(crate) fn new(contract: &Contract, inference: Inference) -> Result<Player, Error> {
        Ok(Player {
            policy: LearnedPolicy::new(contract, inference)?,
            prior: contract.prior.as_ref().map(PriorPolicy::new).transpose()?,
            spaces: contract.spaces,
            cells: Vec::new(),
        })
    }

    /// Plays an episode with the likeliest candidates, and forks it; without `forking` it is only played.
    pub(crate) fn play(&mut self, mut episode: Episode, forking: Option<Forking>) -> Result<Played, Error> {
        let mut forking = forking;
        let (mut forks, mut costs, mut num_decisions) = (Forks::new(self.spaces), Vec::new(), 0);
        let mut dues: VecDeque<Due> = VecDeque::new();
        loop {
            match episode.run_until(dues.front().map_or(Time::MAX, |due| due.until)) {
                Reached::Decision => {}
                Reached::Time => {
                    let due = dues.pop_front();
                    costs.extend(due.map(|due| due.committed_s - episode.committed_s(due.until)));
                    continue;
                }
                Reached::End => break,
            }
            let own = episode
                .choice_of(&mut self.policy)
                .map_err(pleach_env::Error::from)?;
            num_decisions += 1;
            if let Some(forking) = &mut forking
                && uniform(&mut forking.random) * f64::from(forking.every) < 1.0
                && let Some(other) = self.other(&mut episode, own, &mut forking.random, &mut forks)?
            {
                let until = Time(episode.cluster().now().0.saturating_add(forking.horizon.0));
                let committed_s = self.follow(episode.clone(), other, until, &mut num_decisions)?;
                dues.push_back(Due { until, committed_s });
            }
            episode.act(own).map_err(pleach_env::Error::from)?;
        }
        costs.extend(
            dues.iter()
                .map(|due| due.committed_s - episode.committed_s(Time::ZERO)),
        );
        let avg_jct_s = episode.metrics().avg_jct_s;
        for (fork, cost_s) in forks.all.iter_mut().zip(costs) {
            fork.cost = (cost_s / avg_jct_s.max(f64::MIN_POSITIVE)) as f32;
        }
        Ok(Played {
            forks,
            num_decisions,
            avg_jct_s,
        })
    }

    /// Another action than the network's own, and a fork of it; none where there is no other.
    fn other(
        &mut self,
        episode: &mut Episode,
        own: usize,
        random: &mut ChaCha8Rng,
        forks: &mut Forks,
    ) -> Result<Option<usize>, Error> {
        let (rows, scores) = episode.seen();
        let Some(own) = choice_of(own, rows.mask) else {
            return Ok(None);
        };
        let admissible = scores
            .iter()
            .zip(rows.mask)
            .filter(|(_, admissible)| **admissible);
        let mut logits: Vec<f32> = admissible.map(|(score, _)| *score).collect();
        if logits.len() < 2 {
            return Ok(None);
        }
        logits.remove(own);
        let mut logprobs = vec![0.0; logits.len()];
        log_softmax(&logits, TEMPERATURE, &mut logprobs);
        let drawn = sample(&logprobs, uniform(random));
        let other = drawn + usize::from(drawn >= own);
        self.cells.clear();
        for row in rows.rows.chunks_exact(rows.width) {
            self.cells.extend_from_slice(&row[..self.spaces.num_features]);
        }
        let global = &rows.context[..self.spaces.num_global];
        forks.rows.push(global, &self.cells, rows.mask);
        forks.all.push(Fork {
            own: own as u32,
            other: other as u32,
            cost: 0.0,
        });
        let action = action_of(other, rows.mask);
        if let Some(prior) = &mut self.prior {
            let mask = rows.mask.to_vec();
            episode.choice_of(prior).map_err(pleach_env::Error::from)?;
            forks.rows.set_prior(episode.seen().1, &mask);
        }
        Ok(action)
    }

    /// Takes an action in a copy, then the likeliest ones; what is committed at `until`.
    fn follow(&mut self, mut copy: Episode, first: usize, until: Time, num: &mut u64) -> Result<f64, Error> {
        let mut action = first;
        loop {
            copy.act(action).map_err(pleach_env::Error::from)?;
            if copy.run_until(until) != Reached::Decision {
                return Ok(copy.committed_s(until));
            }
            action = copy
                .choice_of(&mut self.policy)
                .map_err(pleach_env::Error::from)?;
            *num += 1;
        }
    }
}

/// An episode on the list of a seed, at so many times the load of the environment.
pub type Lists<'a> = dyn Fn(Seed, f64) -> Result<Episode, Error> + Sync + 'a;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::networks;
    use crate::random::initial_parameters;
    use pleach_env::{EnvConfig, Source, Workload};
    use pleach_network::NetworkConfig;

    /// A small busy task with several types of GPUs.
    fn task() -> (EnvConfig, Workload) {
        let mut config = EnvConfig::registered("Pleach/GavelMulti-v1").unwrap();
        config.workload = config.workload.resized(Some(60), Some(4.0));
        let source = Source::open(&config).unwrap();
        let workload = source.workload(&config, Seed(3)).unwrap();
        (config, workload)
    }

    fn player(config: &EnvConfig) -> Player {
        let contract = Contract::current(config.spaces(), config.candidates, "a test");
        let network = NetworkConfig {
            hidden: 8,
            context: 8,
            ..NetworkConfig::default()
        };
        let layout = networks::layout(network, contract.spaces).unwrap();
        let parameters = initial_parameters(&layout, Seed(2));
        Player::new(&contract, Inference::new(&layout, &parameters).unwrap()).unwrap()
    }

    fn forking(horizon_s: f64) -> Forking {
        Forking {
            every: 4,
            horizon: Time::from_secs_f64(horizon_s),
            random: Seed(7).stream("fork", 0),
        }
    }

    #[test]
    fn to_the_end_a_fork_costs_what_the_sums_of_jcts_say() {
        let (config, workload) = task();
        let begin = || Episode::begin(&config, &workload, Seed(3)).unwrap();
        let played = player(&config).play(begin(), Some(forking(1e12))).unwrap();
        assert!(played.forks.all.len() > 20 && played.num_decisions > 500);
        // By hand: the episode anew, with the other candidate at the fork.
        let mut own = begin();
        let (mut network, mut index) = (player(&config), 0);
        let mut random = forking(1e12).random;
        while own.run_until(Time::MAX) == Reached::Decision {
            let choice = own.choice_of(&mut network.policy).unwrap();
            let mask = own.seen().0.mask.to_vec();
            let is_forked = uniform(&mut random) * 4.0 < 1.0;
            if is_forked && mask.iter().filter(|admissible| **admissible).count() > 1 {
                uniform(&mut random);
                let fork = played.forks.all[index];
                assert_eq!(action_of(fork.own as usize, &mask), Some(choice));
                let (mut other, mut action) = (own.clone(), action_of(fork.other as usize, &mask).unwrap());
                loop {
                    other.act(action).unwrap();
                    if other.run_until(Time::MAX) == Reached::End {
                        break;
                    }
                    action = other.choice_of(&mut network.policy).unwrap();
                }
                let cost = other.metrics().avg_jct_s / played.avg_jct_s - 1.0;
                let found = f64::from(fork.cost) / 60.0;
                assert!((found - cost).abs() < 1e-6, "{index}: {found} {cost}");
                index += 1;
            }
            own.act(choice).unwrap();
        }
        assert_eq!(index, played.forks.all.len());
        assert!(played.forks.all.iter().any(|fork| fork.cost > 0.0));
        assert!(played.forks.all.iter().any(|fork| fork.cost < 0.0));
    }

    #[test]
    fn forks_of_no_time_cost_what_their_decision_commits_to_and_are_read_as_they_were_written() {
        let (config, workload) = task();
        let begin = || Episode::begin(&config, &workload, Seed(3)).unwrap();
        let short = player(&config).play(begin(), Some(forking(0.0))).unwrap();
        let long = player(&config).play(begin(), Some(forking(1e12))).unwrap();
        assert_eq!(short.forks.rows, long.forks.rows, "the time changes no draw");
        assert!(short.num_decisions < long.num_decisions && short.avg_jct_s == long.avg_jct_s);
        let spaces = config.spaces();
        let mut numbers = Vec::new();
        short.forks.write(10, &mut numbers);
        assert!(numbers.len() <= 10 * Forks::numbers_max(spaces));
        let newest = short.forks.all.len() - 10;
        let expected = short.forks.part(newest..short.forks.all.len());
        assert_eq!(Forks::read(spaces, &numbers), Some(expected));
        for spoiled in [&numbers[1..], &numbers[..numbers.len() - 1]] {
            assert_eq!(Forks::read(spaces, spoiled), None);
        }
        for (place, value) in [(0, 1e9), (1, 0.5), (3, 0.0), (3, -1.0), (3, f32::NAN)] {
            let mut spoiled = numbers.clone();
            spoiled[place] = value;
            assert_eq!(Forks::read(spaces, &spoiled), None, "{value} at {place}");
        }
    }

    #[test]
    fn the_slope_of_the_loss_is_its_derivative_and_costs_are_clamped() {
        let mut forks = Forks::new(Spaces::new(1, 3, 1));
        for cost in [0.5, -0.25, 80.0] {
            let (own, other) = (0, 2);
            forks.all.push(Fork { own, other, cost });
        }
        let at = |index: usize, logits: [f32; 3]| {
            let mut by = [0.0; 3];
            (forks.loss(index, 0.5, &logits, &mut by), by)
        };
        for (index, weight) in [(0, 1.0), (1, -0.5), (2, 3.0)] {
            let (loss, by) = at(index, [0.3, 9.0, -0.4]);
            assert!((loss - weight / (1.0 + 0.7_f64.exp())).abs() < 1e-6, "{loss}");
            let ahead = at(index, [0.3, 9.0, -0.39]).0 - at(index, [0.3, 9.0, -0.41]).0;
            assert!((f64::from(by[2]) - ahead / 0.02).abs() < 1e-3);
            assert_eq!((by[0], by[1]), (-by[2], 0.0));
        }
    }
}
