//! What a guard costs, and what it gains: a tree under guards against waiting of several lengths, and under floors of tenants, on the
//! same lists.

use std::fmt::Write as _;

use pleach_env::EnvConfig;
use pleach_scheduler::Guards;
use pleach_scheduler::tree::Tree;
use serde::Serialize;

use super::side_by_side::{PartOver, side_by_side};
use crate::door::PolicySpec;
use crate::error::Error;
use crate::evaluate::metric::show_seconds;
use crate::evaluate::stats::Ratio;
use crate::judge::{Kind, REPORTED, in_words};
use crate::plot::{Axis, Mark, Plot};
use crate::progress::Watcher;

/// Lists as long as the task's, and four times as long: where queues grow is where jobs starve.
const KINDS: [Kind; 2] = [REPORTED[0], REPORTED[2]];

/// What is compared.
#[derive(Clone, Debug)]
pub struct GuardInput {
    /// The tree. The guard that is shown is replaced in it; its others stay.
    pub tree: Tree,
    /// Times after which a job is overdue, s.
    pub overdue_after_s: Vec<f64>,
    /// Shares of their quota below which tenants come first.
    pub tenant_floors: Vec<f64>,
    /// Lists of each part; half as many of those four times as long.
    pub num_lists: usize,
    /// Policies that are shown beside.
    pub against: Vec<PolicySpec>,
}

/// A policy on all parts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GuardRow {
    /// Its name.
    pub policy: String,
    /// When a job is overdue, s; none for what has no such guard.
    pub overdue_after_s: Option<f64>,
    /// Share of its quota below which a tenant comes first; none for what has no such guard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_floor: Option<f64>,
    /// Part by part, over the tree without the guards that are shown.
    pub parts: Vec<PartOver>,
}

/// A guard's price.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GuardReport {
    /// Version of this form.
    pub schema: u32,
    /// Lists of each part; half as many of the longer ones.
    pub num_lists: usize,
    /// The tree without a guard first, then the longest, then the highest floor, then other policies.
    pub rows: Vec<GuardRow>,
}

/// Runs the tree without a guard, under each, and the other policies on the same lists.
///
/// # Errors
/// A guard that the tree cannot obey, a list that cannot be drawn, a run that fails.
pub fn guard(
    env: &EnvConfig,
    input: &GuardInput,
    seed: u64,
    watcher: &Watcher,
) -> Result<GuardReport, Error> {
    let under = |name: &str, overdue_after_s: Option<f64>, tenant_floor: Option<f64>| {
        let shown = |given: &[f64], own: Option<f64>| if given.is_empty() { own } else { None };
        let own = input.tree.guards();
        let guards = Guards {
            overdue_after_s: overdue_after_s.or(shown(&input.overdue_after_s, own.overdue_after_s)),
            tenant_floor: tenant_floor.or(shown(&input.tenant_floors, own.tenant_floor)),
            ..own
        };
        let tree = input.tree.clone().with_guards(guards);
        let tree = tree.map_err(|error| Error::Failed(error.to_string()))?;
        Ok::<_, Error>((overdue_after_s, tenant_floor, PolicySpec::tree(name, tree)))
    };
    let mut policies = vec![under("no guard", None, None)?];
    for after_s in largest_first(&input.overdue_after_s) {
        let name = format!("overdue after {}", show_seconds(after_s));
        policies.push(under(&name, Some(after_s), None)?);
    }
    for floor in largest_first(&input.tenant_floors) {
        policies.push(under(
            &format!("floor {:.0} %", 100.0 * floor),
            None,
            Some(floor),
        )?);
    }
    policies.extend(input.against.iter().map(|policy| (None, None, policy.clone())));
    let specs: Vec<PolicySpec> = policies.iter().map(|(_, _, spec)| spec.clone()).collect();
    let drawn = ((seed, "distill/guard"), input.num_lists);
    let parts = side_by_side(env, &KINDS, drawn, &specs, watcher)?;
    let rows = policies
        .iter()
        .zip(parts)
        .map(|((overdue_after_s, tenant_floor, spec), parts)| GuardRow {
            policy: spec.name().to_string(),
            overdue_after_s: *overdue_after_s,
            tenant_floor: *tenant_floor,
            parts,
        });
    Ok(GuardReport {
        schema: 1,
        num_lists: input.num_lists,
        rows: rows.collect(),
    })
}

fn largest_first(given: &[f64]) -> Vec<f64> {
    let mut values = given.to_vec();
    values.sort_by(|a, b| b.total_cmp(a));
    values.dedup();
    values
}

impl GuardReport {
    /// A table for each part, as Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let words = |ratio: &Option<Ratio>| ratio.as_ref().map_or_else(|| "no figure".into(), in_words);
        let mut text = String::new();
        let parts = self.rows.first().map_or(&[][..], |row| &row.parts);
        for (place, part) in parts.iter().enumerate() {
            let _ = write!(
                text,
                "**{}**\n\n| policy | longest wait | average JCT | p99 JCT | mean slowdown | fairness |\n|---|---:|---:|---:|---:|---:|\n",
                part.part
            );
            for row in &self.rows {
                let own = &row.parts[place];
                let (jct, p99, slowdown) = (words(&own.jct), words(&own.p99), words(&own.slowdown));
                let longest = show_seconds(own.longest_wait_s);
                let _ = writeln!(
                    text,
                    "| {} | {longest} | {jct} | {p99} | {slowdown} | {:.3} |",
                    row.policy, own.fairness
                );
            }
            text.push('\n');
        }
        text.push_str(
            "Longest wait: of a list, mean over the lists. Fairness: Jain's index over the tenants' mean slowdowns. All else over the tree \
             without a guard, paired.\n",
        );
        text
    }

    /// A plot for each part: the longest wait against average JCT, a point for each policy, the guards joined.
    #[must_use]
    pub fn plots(&self) -> Vec<Plot> {
        let parts = self.rows.first().map_or(&[][..], |row| &row.parts);
        (0..parts.len()).filter_map(|part| self.plot(part)).collect()
    }

    fn plot(&self, part: usize) -> Option<Plot> {
        let own = "tree";
        let mut line = Vec::new();
        let dots = self.rows.iter().filter_map(|row| {
            let found = row.parts.get(part)?;
            let point = (found.longest_wait_s, found.jct.as_ref()?.mean);
            let is_own = self.is_of_the_tree(row);
            line.extend(is_own.then_some(point));
            Some(Mark::dots(if is_own { own } else { &row.policy }, [point]))
        });
        let dots: Vec<Mark> = dots.collect();
        let name = &self.rows.first()?.parts[part].part;
        let plot = Plot::new(
            format!("What guards cost, {name}: the tree without a guard and under each"),
            Axis::of("longest wait").seconds().log(),
            Axis::of("average JCT / that without a guard").log(),
        );
        plot.of_policies()
            .with([Mark::line(own, line)])
            .with(dots)
            .if_any()
    }

    fn is_of_the_tree(&self, row: &GuardRow) -> bool {
        row.overdue_after_s.is_some() || self.rows.first() == Some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::workload_source::env_of;
    use crate::plot::Shape;
    use pleach_tests::assert_well_formed;

    #[test]
    fn a_guard_shortens_the_longest_wait_and_one_that_nobody_meets_changes_nothing() {
        let env = env_of("Pleach/PhillyGang-v1", Some(120), Some(1.5)).unwrap();
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../tests/trees/PhillyGang-v1-tree.json"
        );
        let input = GuardInput {
            tree: Tree::load(path.as_ref()).unwrap(),
            overdue_after_s: vec![1800.0, 1e8],
            tenant_floors: Vec::new(),
            num_lists: 4,
            against: vec![PolicySpec::heuristic("easy").unwrap()],
        };
        let report = guard(&env, &input, 3, &Watcher::silent()).unwrap();
        let names: Vec<&str> = report.rows.iter().map(|row| row.policy.as_str()).collect();
        assert_eq!((names.len(), names[0], names[3]), (4, "no guard", "easy"));
        let longest_s = |row: usize| report.rows[row].parts[0].longest_wait_s;
        assert_eq!(report.rows[1].parts, report.rows[0].parts);
        assert!(longest_s(2) < longest_s(0), "{} {}", longest_s(2), longest_s(0));
        assert_eq!(report.rows[0].parts[0].jct.as_ref().unwrap().mean, 1.0);
        let text = report.markdown();
        assert!(text.contains("| overdue after 30.0 min |"), "{text}");
        for plot in report.plots() {
            assert_well_formed(&crate::plot::markup(&plot).into_string());
            let dots = plot.marks.iter().filter(|mark| mark.shape == Shape::Dots);
            assert_eq!(dots.count(), 4);
        }
        assert_eq!(guard(&env, &input, 3, &Watcher::silent()).unwrap(), report);
    }

    #[test]
    fn floors_stand_beside_guards_against_waiting_and_move_who_comes_first() {
        let env = env_of("Pleach/HeliosTenants-v1", Some(120), Some(1.5)).unwrap();
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../tests/trees/HeliosTenants-v1-tree.json"
        );
        let input = GuardInput {
            tree: Tree::load(path.as_ref()).unwrap(),
            overdue_after_s: vec![1e8],
            tenant_floors: vec![0.25, 1.0, 0.25],
            num_lists: 4,
            against: Vec::new(),
        };
        let report = guard(&env, &input, 3, &Watcher::silent()).unwrap();
        let rows = report
            .rows
            .iter()
            .map(|row| (row.policy.as_str(), row.tenant_floor));
        let rows: Vec<(&str, Option<f64>)> = rows.collect();
        assert_eq!((rows[0], rows.len()), (("no guard", None), 4));
        assert_eq!(
            rows[2..],
            [("floor 100 %", Some(1.0)), ("floor 25 %", Some(0.25))]
        );
        assert_eq!(report.rows[1].parts, report.rows[0].parts);
        assert_ne!(report.rows[2].parts, report.rows[0].parts);
        assert!(report.markdown().contains("| floor 25 % |"));
    }
}
