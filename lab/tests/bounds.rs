//! Lower bounds beside planners whose jobs are not the same computation.

use pleach_experiments::Results;
use pleach_experiments::door::DOOR;
use pleach_experiments::evaluate::instances::{episodes, seeds};
use pleach_experiments::evaluate::run::{Grants, Runner};
use pleach_experiments::evaluate::table::Table;
use pleach_experiments::evaluate::workload_source::env_of;

use crate::registered;

#[test]
fn a_planner_that_copies_jobs_has_no_bound_and_the_others_keep_theirs() {
    registered();
    let env = env_of("Pleach/GavelMulti-v1", Some(12), Some(0.3)).unwrap();
    let instances = episodes(&env, &seeds(0, "test", 2)).unwrap();
    let policies = DOOR
        .open_all(&["hadare".into(), "hadar".into(), "sjf".into()])
        .unwrap();
    let runner = Runner::new(&env.sim).granting(Grants::AsAsked);
    let runs = runner.run(&instances, &policies).unwrap();
    // It is below what would be the bound, as copies add up.
    let (copied, own) = (runs[0].metrics["avg_jct_s"], runs[1].metrics["avg_jct_bound_s"]);
    assert!(copied < own, "{copied} {own}");
    let results = Results::new("evaluate", runs, None).unwrap();
    let table = Table::compare(&results, &["avg_jct_s", "avg_jct_gap"]).to_terminal();
    for (line, words) in [("hadare ", true), ("hadar ", false), ("sjf ", false)] {
        let row = table.lines().find(|row| row.starts_with(line)).unwrap();
        assert_eq!(row.contains("no bound"), words, "{table}");
    }
}
