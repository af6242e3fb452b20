//! Searching for a tree on the episodes of an environment, from hand rules, given trees and a teacher's students.
//!
//! Four streams of workloads share nothing: the lists of the race, on which trees are changed; the lists of the choice, on which one
//! of those that the race kept is taken; the lists of the acceptance, on which it must beat the best start by a paired interval, and
//! on which everything is reported; and the episodes on which candidates are recorded.

use std::collections::BTreeMap;
use std::path::Path;

use pleach_dealing::policy_planner;
use pleach_distill::search::{Draft, Outcome, Question, Rows, SearchConfig, SearchState};
use pleach_distill::{DistillConfig, Monotone};
use pleach_env::{EnvConfig, Split};
use pleach_scheduler::tree::{Tree, TreeMeta, TreePolicy};
use pleach_scheduler::{Planner, PolicyPlanner};

use super::choice::{best_of_each_size, candidates, judged};
use super::narrow::narrowed;
use super::provenance;
use super::recorded::recorded;
pub use super::search_report::{FrontierRow, OtherRow, SearchReport};
use super::starts::hand_rules;
use crate::door::PolicySpec;
use crate::error::Error;
pub use crate::judge::state_file;
use crate::judge::{
    Acceptance, CHOICE_LISTS, CHOSEN, Kind, Lists, REPORTED, Rivals, SEARCHED, kept_in, kinds_of,
    nearly_best, paired, raced, settled,
};
use crate::progress::Watcher;
use crate::train::validation::Validation;

/// The policy that decides where a tree by whose passes GPUs are dealt fails. *Assumed*: as for any policy that names no
/// fallback.
const DEALT_FALLBACK: &str = "easy";
/// What a search is given.
#[derive(Clone, Debug)]
pub struct SearchInput {
    /// Settings of the search; `num_parts` and `seed` are set here.
    pub config: SearchConfig,
    /// Lists of each part for acceptance and report.
    pub accept_lists: usize,
    /// The teacher to distil first, for starts; none = hand rules and trees only.
    pub teacher: Option<PolicySpec>,
    /// How the teacher is distilled.
    pub distill: DistillConfig,
    /// More starts.
    pub trees: Vec<(String, Tree)>,
    /// Policies that the table shows beside the trees.
    pub against: Vec<PolicySpec>,
    /// Whether GPUs are dealt by the passes of trees, as if all leases had ended.
    pub deals: bool,
}

impl SearchInput {
    fn rivals(&self) -> Rivals<'static> {
        if self.deals {
            Rivals::Dealers
        } else {
            Rivals::Heuristics
        }
    }
}

/// The result.
#[derive(Clone, Debug)]
pub struct Searched {
    /// The tree.
    pub tree: Tree,
    /// How it came about.
    pub report: SearchReport,
    /// The trees of [`SearchReport::frontier`].
    pub frontier: Vec<Tree>,
}

/// Where a search is done, and what is the same in all of it.
struct Ground<'a> {
    env: &'a EnvConfig,
    seed: u64,
    watcher: &'a Watcher,
    /// Whether GPUs are dealt by the passes of trees.
    deals: bool,
    meta: TreeMeta,
    rows: Rows,
}

/// Searches, keeping the state in `state` after each batch and going on from it where it is there.
///
/// # Errors
/// Settings out of range, a state of another search, a run that fails.
pub fn search_tree(
    env: &EnvConfig,
    input: &SearchInput,
    seed: u64,
    state: &Path,
    watcher: &Watcher,
) -> Result<Searched, Error> {
    let kinds = kinds_of(env, &SEARCHED);
    let config = settled(&input.config, kinds.len(), seed)?;
    let kept = kept_in(state)?;
    let rules = hand_rules(env, input.deals);
    let ground = Ground {
        env,
        seed,
        watcher,
        deals: input.deals,
        meta: meta_of(env, input, (seed, &config), &rules[0].1),
        rows: recorded(env, &kinds, seed, (&rules, input.deals))?,
    };
    let of_each = config.num_lists() / kinds.len().max(1);
    let drawn = (seed, "search/race");
    let race = Lists::draw(env, &kinds, drawn, of_each, input.rivals(), watcher)?;
    let starts = match &kept {
        Some(_) => Vec::new(),
        None => ground.starts(input, rules)?,
    };
    let found = ground.raced(starts, &race, &config, (kept, state))?;
    ground.finished(input, &config, (found, &race.best))
}

fn meta_of(
    env: &EnvConfig,
    input: &SearchInput,
    (seed, settled): (u64, &SearchConfig),
    rule: &Draft,
) -> TreeMeta {
    let config = SearchConfig {
        seed: input.config.seed,
        ..settled.clone()
    };
    let teacher = input.teacher.as_ref().map(PolicySpec::name);
    TreeMeta {
        estimates: vec![provenance(env.sim.estimates)],
        trained_by: BTreeMap::from([
            ("seed".to_string(), serde_json::json!(seed)),
            ("teacher".to_string(), serde_json::json!(teacher)),
            ("search".to_string(), serde_json::json!(config)),
            ("deals".to_string(), serde_json::json!(input.deals)),
        ]),
        ..rule.plain_meta("tree")
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Failed(error.to_string())
}

impl Ground<'_> {
    /// Hand rules, the given trees, and the teacher's students of the last round, free and monotone.
    fn starts(
        &self,
        input: &SearchInput,
        rules: Vec<(String, Draft)>,
    ) -> Result<Vec<(String, Draft)>, Error> {
        let named = rules
            .into_iter()
            .map(|(name, draft)| (format!("hand: {name}"), draft));
        let mut starts: Vec<(String, Draft)> = named.collect();
        for (name, tree) in &input.trees {
            starts.push((name.clone(), Draft::of(tree)));
        }
        let Some(teacher) = &input.teacher else {
            return Ok(starts);
        };
        let validation = Validation::new(self.env, self.seed, 16)?;
        let free = DistillConfig {
            leaves: sizes(&input.distill.leaves, input.config.leaves_max),
            ..input.distill.clone()
        };
        // Monotone trees are the better starts on some tasks and free ones on others.
        let monotone = DistillConfig {
            monotone: vec![Monotone::Waiting, Monotone::Estimate],
            ..free.clone()
        };
        let mut ways = vec![("distilled", &free)];
        if input.distill.monotone.is_empty() {
            ways.push(("monotone", &monotone));
        }
        for (name, distill) in ways {
            let distilled = self.watcher.part(name, 0, || {
                super::prune(self.env, teacher, distill, &validation, self.seed, self.watcher)
            })?;
            let rounds = distilled.report.students.iter().map(|student| student.round);
            let last = rounds.max();
            let students = distilled.students.iter().zip(&distilled.report.students);
            for (tree, report) in students.filter(|(_, report)| Some(report.round) == last) {
                starts.push((format!("{name}: {} leaves", report.leaves), Draft::of(tree)));
            }
            starts.push((format!("{name}: pruned"), Draft::of(&distilled.tree)));
        }
        Ok(starts)
    }

    /// The race.
    fn raced(
        &self,
        starts: Vec<(String, Draft)>,
        race: &Lists,
        config: &SearchConfig,
        (kept, file): (Option<SearchState>, &Path),
    ) -> Result<SearchState, Error> {
        let mut judge = |question: Question<'_>| -> Result<Vec<Outcome>, Error> {
            let planner = |place: usize| self.planner(&question.trees[place]);
            match question.standing {
                Some(standing) => race.raced(planner, question.runs, standing),
                None => race.outcomes(planner, question.runs),
            }
        };
        let (fixed, kept) = ((&self.meta, &self.rows, config), (kept, Some(file)));
        raced(starts, fixed, kept, &mut judge, self.watcher)
    }

    fn tree(&self, draft: &Draft) -> Result<Tree, Error> {
        draft.tree(&self.meta, &self.rows).map_err(failed)
    }

    /// A tree on all lists.
    fn played(&self, lists: &Lists, draft: &Draft) -> Result<Vec<Outcome>, Error> {
        let tree = TreePolicy::new(self.tree(draft)?);
        lists.played(|| self.planner(&tree))
    }

    fn planner(&self, tree: &TreePolicy) -> Result<Box<dyn Planner>, Error> {
        Ok(match self.deals {
            true => Box::new(policy_planner("tree", tree.clone())?),
            false => Box::new(PolicyPlanner::of_one_cluster(tree.clone().sparing())),
        })
    }

    /// Chooses, accepts and reports.
    fn finished(
        &self,
        input: &SearchInput,
        config: &SearchConfig,
        (found, best): (SearchState, &[String]),
    ) -> Result<Searched, Error> {
        // On an almost idle cluster the heuristic that is best at load 0.6 is yardstick enough.
        let num_chosen = kinds_of(self.env, &CHOSEN).len();
        let mut yardsticks = best.to_vec();
        yardsticks.extend(best.last().cloned().filter(|_| num_chosen > best.len()));
        let (kinds, rivals) = ((Split::Validation, &CHOSEN[..]), Rivals::Known(&yardsticks));
        let choice = self.lists(kinds, "search/choice", CHOICE_LISTS, rivals)?;
        let of_choice = SearchConfig {
            num_parts: choice.parts.len(),
            ..config.clone()
        };
        let entries = candidates(&found.archive);
        let trees = entries
            .iter()
            .map(|entry| Ok(TreePolicy::new(self.tree(&entry.draft)?)));
        let trees = trees.collect::<Result<Vec<_>, Error>>()?;
        let planner = |place: usize| self.planner(&trees[place]);
        let frontier = best_of_each_size(judged(&entries, planner, &choice, &of_choice)?);
        let objectives: Vec<f64> = frontier.iter().map(|(objective, _)| *objective).collect();
        let chosen = nearly_best(&objectives)?;

        let kinds = (Split::Test, &REPORTED[..]);
        let lists = self.lists(kinds, "search/acceptance", input.accept_lists, input.rivals())?;
        let mut outcomes: Vec<Vec<Outcome>> = Vec::new();
        for (_, entry) in &frontier {
            outcomes.push(self.played(&lists, &entry.draft)?);
        }
        let of_start = self.played(&lists, &found.best_start.draft)?;
        let start = if self.deals {
            "deal:the best start"
        } else {
            "the best start"
        };
        let Acceptance {
            over_start,
            accepted,
            verdict,
            ..
        } = lists.acceptance(&outcomes[chosen], &of_start);
        let mut others = vec![other(&lists, start, &of_start, &outcomes[chosen])];
        for policy in &input.against {
            let own = lists.all(policy)?;
            others.push(other(&lists, policy.name(), &own, &outcomes[chosen]));
        }
        let at_home = |draft: &Draft| {
            // A policy that deals GPUs cannot decide where a tree fails. Which one of the others is best does not matter as much.
            let fallback = if self.deals {
                DEALT_FALLBACK
            } else {
                &lists.best[0]
            };
            narrowed(self.tree(draft)?, fallback, lists.num_gpu_types()).map_err(failed)
        };
        let trees: Vec<Tree> = frontier
            .iter()
            .map(|(_, entry)| at_home(&entry.draft))
            .collect::<Result<_, _>>()?;
        let tree = if accepted {
            trees[chosen].clone()
        } else {
            at_home(&found.best_start.draft)?
        };
        let frontier = frontier
            .iter()
            .zip(&outcomes)
            .map(|((objective, entry), outcomes)| FrontierRow {
                leaves: entry.draft.root.num_leaves(),
                key_features: entry.draft.key.len(),
                origin: entry.origin.clone(),
                objective_of_race: entry.objective,
                objective_of_choice: *objective,
                parts: lists.rows(outcomes),
            });
        let report = SearchReport {
            config: config.clone(),
            simulations: found.simulations,
            batches: found.batch,
            best_start: (found.best_start.origin.clone(), found.best_start.objective),
            accepted,
            tree_over_start: over_start,
            verdict,
            frontier: frontier.collect(),
            chosen,
            others,
            moves: found.moves,
        };
        Ok(Searched {
            tree,
            report,
            frontier: trees,
        })
    }

    fn lists(
        &self,
        (split, kinds): (Split, &[Kind]),
        stream: &str,
        num: usize,
        rivals: Rivals<'_>,
    ) -> Result<Lists, Error> {
        let (env, drawn) = (self.env.in_split(split), (self.seed, stream));
        Lists::draw(&env, kinds, drawn, num, rivals, self.watcher)
    }
}

/// Sizes to distil: none above what the search may grow to, for the best start may be its result.
fn sizes(wanted: &[usize], leaves_max: usize) -> Vec<usize> {
    let mut sizes: Vec<usize> = wanted.iter().map(|size| (*size).min(leaves_max)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

fn other(lists: &Lists, name: &str, own: &[Outcome], tree: &[Outcome]) -> OtherRow {
    let over = |part: usize| paired(&lists.of_part(tree, part), &lists.of_part(own, part));
    OtherRow {
        policy: name.to_string(),
        parts: lists.rows(own),
        tree_over_it: (0..lists.parts.len()).map(over).collect(),
    }
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
