//! Dispatchers that plan beforehand: one configuration for each function of each application, queues by deadline.

use pleach_scheduler::Problem;
use pleach_workloads::Seed;
use rand::{Rng, RngExt as _};

use super::leave::{Leave, by_deadline};
use crate::functions::app::{App, Work};
use crate::functions::engine::Dispatcher;
use crate::functions::fronts::{Point, front, plan};
use crate::functions::platform::Platform;
use crate::functions::profile::Configuration;
use crate::functions::state::State;

/// How a plan is made.
#[derive(Clone, Copy, Debug)]
pub(super) enum Planner {
    /// The cheapest way within the time.
    Cheapest,
    /// The cheapest way whose 95th percentile is within it (Orion). Latencies of functions are independent, so that
    /// variances add up, and the sum is taken as normal.
    Percentile,
    /// A search by trial: a function is given another configuration, which stays where the way is cheaper and its 95th
    /// percentile within the time. In place of Aquatope's Bayesian optimisation, whose aim it has.
    Search(Seed),
    /// The fastest, whatever it costs.
    Fastest,
}

/// Quantile of the standard normal distribution at 95 %.
const Z_95: f64 = 1.645;
/// Trials of a search for each function. *Assumed.*
const TRIALS: usize = 400;
/// Rounds in which a plan is made tighter until its percentile is within the time.
const ROUNDS: usize = 50;

/// Fixed configurations.
pub(super) struct Fixed {
    leave: Leave,
    of_step: Vec<Configuration>,
    order: Vec<(u64, usize)>,
}

impl Fixed {
    pub(super) fn new(
        planner: Planner,
        leave: Leave,
        (work, platform, slo): (&Work, &Platform, f64),
        batch_max: u16,
    ) -> Fixed {
        let mut of_step = Vec::with_capacity(work.steps.len());
        for app in &work.apps {
            let within_us = (app.base_us as f64 * slo * (1.0 - leave.margin)) as u64;
            let plan = Plan::new(work, app, platform, batch_max);
            of_step.extend(plan.of(planner, within_us));
        }
        Fixed {
            leave,
            of_step,
            order: Vec::new(),
        }
    }
}

impl Dispatcher for Fixed {
    fn pass(&mut self, state: &mut State<'_>) -> Result<(), Problem> {
        self.leave.shed(state);
        by_deadline(state, &mut self.order, |_, head| head);
        for &(_, step) in &self.order {
            let k = self.of_step[step];
            let share = state.work().steps[step].rest_share;
            while let Some(head) = state.head(step) {
                if state.queues()[step].waiting.len() < usize::from(k.batch) {
                    // A batch is waited for until its share of the time that was left is used up.
                    let share_us = ((head.deadline_us.saturating_sub(head.ready_us)) as f64 * share) as u64;
                    let until_us = head.ready_us + share_us.saturating_sub(k.latency_us);
                    if state.now_us() < until_us {
                        state.wake(step, until_us);
                        break;
                    }
                }
                if !state.start(step, &k, self.leave.placing) {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// What may be planned for an application.
struct Plan<'a> {
    work: &'a Work,
    app: &'a App,
    noise: f64,
    fetch_us: u64,
    /// Of each stage.
    lists: Vec<Vec<Configuration>>,
}

impl<'a> Plan<'a> {
    fn new(work: &'a Work, app: &'a App, platform: &Platform, batch_max: u16) -> Plan<'a> {
        let list = |step: usize| -> Vec<Configuration> {
            let all = work.functions[work.steps[step].function].pareto();
            all.iter().filter(|k| k.batch <= batch_max).copied().collect()
        };
        Plan {
            work,
            app,
            noise: platform.noise,
            fetch_us: platform.fetch_us,
            lists: app.steps.clone().map(list).collect(),
        }
    }

    fn of(&self, planner: Planner, within_us: u64) -> Vec<Configuration> {
        let fastest = || self.lists.iter().map(|list| list[0]).collect();
        match planner {
            Planner::Fastest => fastest(),
            Planner::Cheapest => self.cheapest(within_us),
            Planner::Search(seed) => self.search(fastest(), within_us, &mut seed.stream("aquatope", 0)),
            Planner::Percentile => {
                let mut for_us = within_us;
                for _ in 0..ROUNDS {
                    let found = self.cheapest(for_us);
                    let over_us = (self.percentile_us(&found) - within_us as f64).ceil();
                    if over_us <= 0.0 {
                        return found;
                    }
                    for_us = for_us.saturating_sub(over_us as u64);
                }
                self.cheapest(for_us)
            }
        }
    }

    /// The cheapest whole way of a chain. In a graph with forks each group has its part of the time.
    fn cheapest(&self, within_us: u64) -> Vec<Configuration> {
        let steps = &self.work.steps[self.app.steps.clone()];
        let is_chain = steps
            .iter()
            .all(|step| step.next.len() <= 1 && step.num_previous <= 1);
        let num = steps.len();
        if is_chain {
            return self.along(&(0..num).collect::<Vec<_>>(), within_us);
        }
        let mut found: Vec<Option<Configuration>> = vec![None; num];
        for stage in 0..num {
            if found[stage].is_some() {
                continue;
            }
            // The whole group: that of its first stage, which no longer group holds.
            let of = |stage: usize| steps[stage].group.iter().map(|step| step - self.app.steps.start);
            let whole = (0..num).filter(|first| of(*first).any(|other| other == stage));
            let first = whole
                .max_by_key(|first| steps[*first].group.len())
                .unwrap_or(stage);
            let group: Vec<usize> = of(first).collect();
            let share: f64 = group.iter().map(|stage| steps[*stage].share).sum();
            let configurations = self.along(&group, (within_us as f64 * share) as u64);
            for (stage, k) in group.into_iter().zip(configurations) {
                found[stage] = Some(k);
            }
        }
        found
            .into_iter()
            .zip(&self.lists)
            .map(|(k, list)| k.unwrap_or(list[0]))
            .collect()
    }

    /// The cheapest way through stages one after another within a time, the fastest where there is none.
    fn along(&self, stages: &[usize], within_us: u64) -> Vec<Configuration> {
        let mut left_us = within_us;
        let mut found = Vec::new();
        let lists: Vec<&[Configuration]> = stages.iter().map(|stage| &self.lists[*stage][..]).collect();
        let rests: Vec<Vec<Point>> = (1..=lists.len()).map(|first| front(&lists[first..])).collect();
        let mut first = Vec::new();
        for (list, rest) in lists.iter().zip(&rests) {
            plan(list, rest, (usize::MAX, left_us, 1), &mut first);
            let k = list[first.first().map_or(0, |(place, _)| *place)];
            left_us = left_us.saturating_sub(k.latency_us);
            found.push(k);
        }
        found
    }

    /// 95th percentile of the longest way, us.
    fn percentile_us(&self, plan: &[Configuration]) -> f64 {
        let first = self.app.steps.start;
        let mut most = 0.0_f64;
        let starts = (0..plan.len()).filter(|stage| self.work.steps[first + stage].num_previous == 0);
        for stage in starts {
            self.ways(plan, stage, (0.0, 0.0), &mut most);
        }
        most
    }

    fn ways(&self, plan: &[Configuration], stage: usize, (mean, variance): (f64, f64), most: &mut f64) {
        let step = &self.work.steps[self.app.steps.start + stage];
        let us = plan[stage].latency_us as f64;
        let fetch_us = if step.num_previous > 0 {
            self.fetch_us as f64
        } else {
            0.0
        };
        let (mean, variance) = (
            mean + us + fetch_us,
            variance + (us * self.noise) * (us * self.noise),
        );
        *most = most.max(mean + Z_95 * variance.sqrt());
        for next in &step.next {
            self.ways(plan, next - self.app.steps.start, (mean, variance), most);
        }
    }

    fn search(&self, mut best: Vec<Configuration>, within_us: u64, rng: &mut impl Rng) -> Vec<Configuration> {
        let usd = |plan: &[Configuration]| plan.iter().map(Configuration::usd).sum::<f64>();
        for _ in 0..TRIALS * best.len() {
            let stage = rng.random_range(0..best.len());
            let mut tried = best.clone();
            tried[stage] = self.lists[stage][rng.random_range(0..self.lists[stage].len())];
            if usd(&tried) < usd(&best) && self.percentile_us(&tried) <= within_us as f64 {
                best = tried;
            }
        }
        best
    }
}
