//! Whether a tree is an accident: one teacher distilled several times, each time from another seed.
//!
//! The seed decides which episodes the teacher is watched on and which lists choose the tree; all else is the same. Trees that
//! schedule alike may still look different, so both are said: on how many decisions each two choose alike, and what each is worth
//! beside its teacher.
//!
//! # Source
//! Agreement between fits as a measure of trust, and the fit that agrees most as the one to take: Jacobs et al., Trustee (CCS'22).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use pleach_distill::DistillConfig;
use pleach_env::{EnvConfig, Seed, SimConfig, Split, simulate_planner};
use pleach_scheduler::policy::{Policy, choice_of};
use pleach_scheduler::tree::{Tree, TreePolicy};
use pleach_scheduler::{DecisionPoint, PolicyError, PolicyPlanner, Watched};
use serde::Serialize;

use super::parts::{Kind, REPORTED, in_words, instances, kinds_of};
use super::prune;
use super::side_by_side::{PartOver, side_by_side};
use crate::door::PolicySpec;
use crate::error::Error;
use crate::evaluate::instances::Instance;
use crate::progress::Watcher;
use crate::train::validation::Validation;

/// Lists as long as the task's, four times as long, and a low load.
const KINDS: [Kind; 3] = [REPORTED[0], REPORTED[2], REPORTED[3]];
/// Workloads on which the tree of each fit is chosen and pruned.
const NUM_VALIDATION: usize = 32;

/// What is fitted how often.
#[derive(Clone, Debug)]
pub struct StabilityInput {
    /// Whom the trees learn from.
    pub teacher: PolicySpec,
    /// How.
    pub distill: DistillConfig,
    /// Fits, at least 2.
    pub num_fits: usize,
    /// Lists of each part; half as many of the longer ones.
    pub num_lists: usize,
}

/// One fit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FitRow {
    /// Its seed.
    pub seed: u64,
    /// Leaves of its tree.
    pub leaves: usize,
    /// Names of the features that it reads.
    pub features: Vec<&'static str>,
    /// Share of the decisions on which it chooses as the other fits do, mean over them.
    pub agreement: f64,
    /// Average JCT and more over the teacher's, part by part.
    pub parts: Vec<PartOver>,
}

/// How much fits differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StabilityReport {
    /// Version of this form.
    pub schema: u32,
    /// Lists of each part; half as many of the longer ones.
    pub num_lists: usize,
    /// Decisions with more than one candidate that were compared.
    pub num_decisions: u64,
    /// In the order of the seeds.
    pub fits: Vec<FitRow>,
    /// Share of the decisions on which each two choose alike. `[num_fits][num_fits]`
    pub agreement: Vec<Vec<f64>>,
    /// Place of the fit that agrees most with the others.
    pub most_agreed: usize,
    /// In how many fits each feature is read, the most first.
    pub features: Vec<(&'static str, usize)>,
}

/// Distils the teacher once for each of as many seeds, drawn from `seed`, and sets the trees beside each other on lists of their own. The trees come
/// in the order of the rows.
///
/// # Errors
/// Settings out of range, a teacher or a run that fails.
pub fn stability(
    env: &EnvConfig,
    input: &StabilityInput,
    seed: u64,
    watcher: &Watcher,
) -> Result<(StabilityReport, Vec<Tree>), Error> {
    let mut trees = Vec::new();
    let seeds = (0..input.num_fits as u64).map(|fit| Seed(seed).child("distill/fit", fit).0);
    for (fit, seed) in seeds.clone().enumerate() {
        let validation = Validation::new(env, seed, NUM_VALIDATION)?;
        let distilled = watcher.part(&format!("fit {}", fit + 1), 0, || {
            prune(env, &input.teacher, &input.distill, &validation, seed, watcher)
        })?;
        trees.push(distilled.tree);
    }
    let drawn = (seed, "distill/stability");
    let judged = env.in_split(Split::Test);
    let lists = instances(&judged, &kinds_of(env, &KINDS), drawn, input.num_lists)?;
    let lists: Vec<Instance> = lists.into_iter().map(|(_, list)| list).collect();
    let (alike, num_decisions) = compared(&trees, &lists, &env.sim)?;
    let agreement: Vec<Vec<f64>> = alike
        .iter()
        .map(|row| row.iter().map(|count| share(*count, num_decisions)).collect())
        .collect();
    let mut policies = vec![input.teacher.clone()];
    for (fit, tree) in trees.iter().enumerate() {
        policies.push(PolicySpec::tree(&format!("fit {}", fit + 1), tree.clone()));
    }
    let parts = side_by_side(env, &KINDS, (drawn, input.num_lists), &policies, watcher)?;
    let with_others = |fit: usize| {
        let others = (0..trees.len()).filter(|other| *other != fit);
        others.map(|other| agreement[fit][other]).sum::<f64>() / (trees.len() - 1).max(1) as f64
    };
    let rows = trees.iter().zip(seeds).zip(parts.into_iter().skip(1)).enumerate();
    let fits: Vec<FitRow> = rows
        .map(|(fit, ((tree, seed), parts))| FitRow {
            seed,
            leaves: tree.num_leaves(),
            features: tree.features(),
            agreement: with_others(fit),
            parts,
        })
        .collect();
    let report = StabilityReport {
        schema: 1,
        num_lists: input.num_lists,
        num_decisions,
        // The first of the best.
        most_agreed: (0..fits.len())
            .rev()
            .max_by(|a, b| fits[*a].agreement.total_cmp(&fits[*b].agreement))
            .unwrap_or(0),
        features: counted(&fits),
        fits,
        agreement,
    };
    Ok((report, trees))
}

fn share(part: u64, of: u64) -> f64 {
    if of == 0 { 1.0 } else { part as f64 / of as f64 }
}

/// In how many fits each feature is read, the most first, then by name.
fn counted(fits: &[FitRow]) -> Vec<(&'static str, usize)> {
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    for feature in fits.iter().flat_map(|fit| &fit.features) {
        *counts.entry(feature).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

/// On how many decisions each two trees choose alike, and how many there were. Each tree decides on every so many lists, so that all
/// bring the states that they themselves come to.
fn compared(trees: &[Tree], lists: &[Instance], sim: &SimConfig) -> Result<(Vec<Vec<u64>>, u64), Error> {
    let policies: Vec<TreePolicy> = trees.iter().map(|tree| TreePolicy::new(tree.clone())).collect();
    let mut alike = vec![vec![0; trees.len()]; trees.len()];
    let mut num_decisions = 0;
    let mut asked = policies.clone();
    for (number, list) in lists.iter().enumerate() {
        let sim = SimConfig {
            seed: list.seed,
            ..sim.clone()
        };
        let (mut scores, mut choices) = (Vec::new(), vec![0; trees.len()]);
        let ask = |_: &TreePolicy, point: &DecisionPoint<'_>, own: &[f32]| -> Result<(), PolicyError> {
            if point.observation.mask.iter().filter(|may| **may).count() < 2 {
                return Ok(());
            }
            for (policy, choice) in asked.iter_mut().zip(&mut choices) {
                scores.clear();
                scores.resize(own.len(), 0.0);
                policy.score(*point, &mut scores)?;
                *choice = choice_of(policy, point, &scores).unwrap_or(0);
            }
            num_decisions += 1;
            for (choice, row) in choices.iter().zip(&mut alike) {
                for (other, count) in choices.iter().zip(row) {
                    *count += u64::from(choice == other);
                }
            }
            Ok(())
        };
        let driver = policies[number % policies.len()].clone();
        simulate_planner(
            &list.workload,
            &sim,
            &mut PolicyPlanner::new(Watched::new(driver, ask)),
        )?;
    }
    Ok((alike, num_decisions))
}

impl StabilityReport {
    /// Tables, as Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = String::from("| seed | leaves | agrees with the others |");
        let parts = self.fits.first().map_or(&[][..], |fit| &fit.parts);
        for part in parts {
            let _ = write!(text, " {} |", part.part);
        }
        let _ = writeln!(text, "\n|---|---:|---:|{}", "---:|".repeat(parts.len()));
        for (place, fit) in self.fits.iter().enumerate() {
            let mark = if place == self.most_agreed { " (most)" } else { "" };
            let agreement = 100.0 * fit.agreement;
            let _ = write!(text, "| {} | {} | {agreement:.1} %{mark} |", fit.seed, fit.leaves);
            for part in &fit.parts {
                let words = part.jct.as_ref().map_or_else(|| "no figure".into(), in_words);
                let _ = write!(text, " {words} |");
            }
            text.push('\n');
        }
        let num = self.fits.len();
        let read = self
            .features
            .iter()
            .map(|(name, count)| format!("{name} {count} of {num}"));
        let _ = writeln!(
            text,
            "\nAverage JCT over the teacher's, paired. Agreement over {} decisions that had a choice. Features read: {}.",
            self.num_decisions,
            read.collect::<Vec<_>>().join(", ")
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::workload_source::env_of;
    use pleach_scheduler::tree::Node;

    fn turned(mut node: Node) -> Node {
        if let Node::Leaf { score, .. } = &mut node {
            *score = -*score;
        }
        node
    }

    fn input(num_fits: usize) -> StabilityInput {
        StabilityInput {
            teacher: PolicySpec::heuristic("sjf-best-type").unwrap(),
            distill: DistillConfig {
                leaves: vec![2, 6],
                rounds: 1,
                episodes: 2,
                ..DistillConfig::default()
            },
            num_fits,
            num_lists: 3,
        }
    }

    #[test]
    fn fits_stand_beside_each_other_and_the_report_is_the_same_again() {
        let env = env_of("Pleach/GavelMulti-v1", Some(40), Some(2.0)).unwrap();
        let found = stability(&env, &input(3), 5, &Watcher::nobody()).unwrap();
        let (report, trees) = &found;
        let drawn = [0, 1, 2].map(|fit| Seed(5).child("distill/fit", fit).0);
        assert_eq!(report.fits.iter().map(|fit| fit.seed).collect::<Vec<_>>(), drawn);
        assert!(report.num_decisions > 100);
        for (place, row) in report.agreement.iter().enumerate() {
            assert_eq!(row[place], 1.0);
            for (other, share) in row.iter().enumerate() {
                assert_eq!(*share, report.agreement[other][place]);
                assert!((0.0..=1.0).contains(share));
            }
        }
        let best = report.fits[report.most_agreed].agreement;
        assert!(report.fits.iter().all(|fit| fit.agreement <= best));
        // Another seed, another tree: else nothing would be shown here.
        assert!(trees.windows(2).any(|pair| pair[0].nodes() != pair[1].nodes()));
        let row = format!("| {} | ", drawn[2]);
        assert!(report.markdown().contains(&row), "{}", report.markdown());
        let again = stability(&env, &input(3), 5, &Watcher::nobody()).unwrap();
        assert_eq!(again.0, report.clone());
    }

    #[test]
    fn a_tree_agrees_with_itself_and_not_with_its_opposite() {
        let env = env_of("Pleach/GavelMulti-v1", Some(30), Some(2.0)).unwrap();
        let (_, trees) = stability(&env, &input(2), 5, &Watcher::nobody()).unwrap();
        let tree = &trees[0];
        let turned: Vec<Node> = tree.nodes().iter().map(|node| turned(*node)).collect();
        let other = Tree::new(tree.meta().clone(), &turned).unwrap();
        // Two lists, so that the third, which would hold for ever, decides on none.
        let lists = instances(&env, &kinds_of(&env, &KINDS[..1]), (1, "test"), 2).unwrap();
        let lists: Vec<Instance> = lists.into_iter().map(|(_, list)| list).collect();
        let three = [tree.clone(), tree.clone(), other];
        let (alike, num) = compared(&three, &lists, &env.sim).unwrap();
        assert!(num > 20);
        assert_eq!(alike[0][1], num);
        assert!(alike[0][2] < num);
        assert_eq!(alike[0][2], alike[2][1]);
    }
}
