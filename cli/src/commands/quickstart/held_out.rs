//! The lists of the quickstart that nothing has seen, and what plays them: run times that are known and run times that are guessed, on
//! lists as long as the environment's and on longer ones.
//!
//! Each column compares with the rule that is strongest on the very lists of that column, so that luck is on the rule's side.

use pleach_env::workload::estimates::EstimateModel;
use pleach_env::{EnvConfig, SimConfig};
use pleach_scheduler::ActionKind;
use pleach_scheduler::tree::Tree;

use crate::flags::QuickstartArgs;
use crate::progress::bars;
use pleach_experiments::door::{DOOR, PolicySpec, RIVALS};
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::instances::{Instance, episodes, seeds};
use pleach_experiments::evaluate::results::{PolicyRun, Results};
use pleach_experiments::evaluate::run::Runner;
use pleach_experiments::evaluate::stand_in::stand_ins;
use pleach_experiments::regret::Room;
use pleach_experiments::train::validation::Validation;

/// How many times as long the longer lists are: what is learned shows where there is a queue.
pub(super) const LONGER: usize = 4;

/// Lists on which the best heuristic is chosen where run times are guessed.
const GUESSED_LISTS: usize = 16;

/// Simulations of the search for what can be won, a list. *Assumed*.
const SEARCH: u32 = 50;

/// What stands in the table beside the best heuristics and the named rivals, for orientation.
const ROWS: [&str; 4] = ["fifo", "sjf", "easy", "sjf-best-type"];

/// The strongest that we could write by hand where jobs may be stopped, and the learned formula.
const STOPPING_ROWS: [&str; 3] = ["las-deal", "belief-deal", "index"];

/// The same where run times are guessed from the jobs that have ended.
pub(super) fn guessed(env: &EnvConfig) -> EnvConfig {
    let mut env = env.clone();
    env.sim.estimates = EstimateModel::HISTORY;
    env
}

/// Named rivals that are trees and ask for no more than the cluster can do.
pub(super) fn rivals(sim: &SimConfig) -> Result<Vec<PolicySpec>, Error> {
    let names: Vec<String> = RIVALS.iter().map(|rival| rival.info.name.to_string()).collect();
    let mut rivals = DOOR.open_all(&names)?;
    rivals.retain(|rival| rival.tree_policy().is_some() && rival.check(sim.capabilities).is_ok());
    Ok(rivals)
}

/// What stands in the tables: the rules, and then what was learned.
pub(super) struct Field {
    rules: Vec<PolicySpec>,
    learned: [PolicySpec; 2],
    /// The heuristic that is best where run times are known.
    best: String,
}

impl Field {
    pub(super) fn new(
        args: &QuickstartArgs,
        env: &EnvConfig,
        validation: &Validation,
        network: PolicySpec,
        tree: &Tree,
    ) -> Result<Field, Error> {
        let mut names = ROWS.map(str::to_string).to_vec();
        let of_guesses = Validation::new(&guessed(env), args.run.seed(), GUESSED_LISTS)?;
        for best in [of_guesses.best(), validation.best()] {
            if !names.iter().any(|name| name == best) {
                names.push(best.to_string());
            }
        }
        let mut rules = DOOR.open_all(&names)?;
        rules.extend(rivals(&env.sim)?);
        Ok(Field {
            rules,
            learned: [network, PolicySpec::tree("tree", tree.clone())],
            best: validation.best().to_string(),
        })
    }

    /// All of them on these lists, compared with the strongest rule there, and which part of what can be won each learned one wins.
    pub(super) fn compared(
        &self,
        args: &QuickstartArgs,
        lists: &HeldOut,
    ) -> Result<(Results, String), Error> {
        let policies: Vec<PolicySpec> = self.rules.iter().chain(&self.learned).cloned().collect();
        let runs = lists.played(args, &policies)?;
        let (all, bars) = ((runs.as_slice(), policies.as_slice()), bars(args.run.quiet()));
        let room = Room::of(&lists.sim, &lists.instances, all, &self.rules, SEARCH, &bars)?;
        let of = |policy: &PolicySpec| {
            let share = room.share(&runs, policy.name());
            format!("{} {}", policy.name(), room.in_words(share))
        };
        let won = format!(
            "of what a search of {SEARCH} simulations that sees each list finds can be won: {}",
            self.learned.each_ref().map(of).join(", ")
        );
        Ok((lists.results(runs, (&policies, &room.rule))?, won))
    }

    /// The best heuristic and the network, which stop no job, and what deals, where jobs may be stopped.
    pub(super) fn stopping(&self, args: &QuickstartArgs, lists: &HeldOut) -> Result<Results, Error> {
        let stays = |policy: &&PolicySpec| policy.name() == self.best;
        let mut policies: Vec<PolicySpec> = self.rules.iter().filter(stays).cloned().collect();
        policies.push(self.learned[0].clone());
        policies.extend(DOOR.open_all(&STOPPING_ROWS.map(str::to_string))?);
        let runs = lists.played(args, &policies)?;
        lists.results(runs, (&policies, &self.best))
    }
}

/// Held-out lists that are so many times as long as the environment's: the longer, the fewer.
pub(super) fn num_lists(args: &QuickstartArgs, times: usize) -> usize {
    (args.seeds as usize).div_ceil(times)
}

/// Held-out lists and how they are simulated.
pub(super) struct HeldOut {
    instances: Vec<Instance>,
    sim: SimConfig,
}

impl HeldOut {
    pub(super) fn draw(
        args: &QuickstartArgs,
        env: &EnvConfig,
        validation: &Validation,
        times: usize,
    ) -> Result<HeldOut, Error> {
        let mut env = env.clone();
        let role = if times == 1 { "test" } else { "longer test" };
        if times > 1 {
            let num_jobs = validation.num_jobs() * times;
            env.workload = env.workload.resized(Some(num_jobs), None);
        }
        let instances = episodes(&env, &seeds(args.run.seed(), role, num_lists(args, times)))?;
        let mut sim = env.sim;
        sim.record_utilisation = true;
        Ok(HeldOut { instances, sim })
    }

    /// The first of the lists, on a cluster whose jobs may be stopped.
    pub(super) fn stopping(&self, num: usize) -> HeldOut {
        let mut sim = self.sim.clone();
        sim.capabilities.grant(ActionKind::Preempt, true);
        HeldOut {
            instances: self.instances.iter().take(num).cloned().collect(),
            sim,
        }
    }

    fn played(&self, args: &QuickstartArgs, policies: &[PolicySpec]) -> Result<Vec<PolicyRun>, Error> {
        let bars = bars(args.run.quiet());
        let mut runs = Runner::new(&self.sim)
            .watched("compare", &bars)
            .run(&self.instances, policies)?;
        for run in &mut runs {
            run.workload.clone_from(&args.env);
        }
        Ok(runs)
    }

    fn results(
        &self,
        runs: Vec<PolicyRun>,
        (policies, reference): (&[PolicySpec], &str),
    ) -> Result<Results, Error> {
        let results = Results::new("quickstart", runs, Some(reference))?.in_world(self.sim.in_words());
        Ok(results.with_stand_ins(stand_ins(policies, &self.instances, &self.sim)))
    }
}
