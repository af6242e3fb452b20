//! What there is to win as a table: a row for each workload, a column for each policy that was named.

use std::collections::BTreeMap;

use pleach_env::SimConfig;

use super::room::{Room, rules};
use crate::door::PolicySpec;
use crate::error::Error;
use crate::evaluate::instances::Instance;
use crate::evaluate::metric::MAIN_METRIC;
use crate::evaluate::results::{PolicyRun, Results};
use crate::evaluate::run::Runner;
use crate::evaluate::stats::Ratio;
use crate::evaluate::table::{Table, show_interval};
use crate::progress::Watcher;

/// The policies of a comparison against what there is to win on each of its workloads, with `num` simulations of a search on each
/// list. Every rule that the cluster can follow plays too.
///
/// # Errors
/// A metric other than the average JCT; a run that fails.
pub fn table(
    sim: &SimConfig,
    (given, instances): (&[PolicySpec], &[Instance]),
    results: &Results,
    num: u32,
    watcher: &Watcher,
) -> Result<Table, Error> {
    Error::refuse_if(
        results.metric().key != MAIN_METRIC,
        "metric",
        results.metric().key,
        format_args!("{MAIN_METRIC} beside regret"),
        "Leave out --metric or --regret.",
    )?;
    let sim = SimConfig {
        class_facts: false,
        record_utilisation: false,
        ..sim.clone()
    };
    let rules = rules(sim.capabilities)?;
    let is_rule = |policy: &&PolicySpec| rules.iter().any(|rule| rule.name() == policy.name());
    let learned: Vec<&PolicySpec> = given.iter().filter(|policy| !is_rule(policy)).collect();
    let mut policies = rules.clone();
    policies.extend(learned.iter().copied().cloned());
    let mut by_name: BTreeMap<&str, Vec<Instance>> = BTreeMap::new();
    for instance in instances {
        by_name
            .entry(&instance.workload.name)
            .or_default()
            .push(instance.clone());
    }
    let header = [
        "workload",
        "best rule",
        "run times known",
        "foresight",
        "lower bound",
    ];
    let mut table = Table {
        header: header.map(str::to_string).to_vec(),
        ..Table::default()
    };
    for policy in &learned {
        table.header.extend([
            policy.name().to_string(),
            format!("{}: of what can be won", policy.name()),
        ]);
    }
    for (name, instances) in by_name {
        let runs = Runner::new(&sim)
            .watched("rules", watcher)
            .run(&instances, &policies)?;
        let room = Room::of(&sim, &instances, (&runs, &policies), &rules, num, watcher)?;
        let known = format!("{} {}", room.known.0, show_interval(room.known.1));
        let bound = room.bound.map_or("-".to_string(), show_interval);
        let mut row = vec![
            name.to_string(),
            room.rule.clone(),
            known,
            show_interval(room.foresight),
            bound,
        ];
        for policy in &learned {
            row.extend([
                over(&runs, policy.name(), &room.rule),
                room.in_words(room.share(&runs, policy.name())),
            ]);
        }
        table.rows.push(row);
    }
    table.notes.push(format!(
        "avg JCT over that of the best rule on the very lists, 95 % interval; foresight: the least that a search of {num} simulations \
         finds which sees the list. Of what can be won: 0 % is the best rule, 100 % foresight"
    ));
    Ok(table)
}

fn over(runs: &[PolicyRun], policy: &str, rule: &str) -> String {
    let jcts = |name: &str| -> Vec<f64> {
        let own = runs.iter().filter(|run| run.policy == name);
        own.map(|run| run.metrics.get(MAIN_METRIC).copied().unwrap_or(f64::NAN))
            .collect()
    };
    let pairs: Vec<(f64, f64)> = jcts(policy).into_iter().zip(jcts(rule)).collect();
    Ratio::of_pairs(&pairs).map_or("-".to_string(), show_interval)
}
