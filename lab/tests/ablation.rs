//! Ablations beside planners that cannot do without what is taken away.

use pleach_experiments::worlds::{Comparing, compare};
use pleach_experiments::{EvaluationConfig, JobsWorld, Watcher};

use crate::registered;

#[test]
fn a_world_in_which_the_reference_cannot_schedule_is_named_and_left_out() {
    registered();
    let config: EvaluationConfig = toml::from_str(
        "policy = ['srtf', 'themis']\nreference = 'themis'\nseeds = 2\n[workload]\nworkload = ['Pleach/Philly-v0']\n\
         num_jobs = 20\n[scheduling]\npreemption = true",
    )
    .unwrap();
    let asked = Comparing {
        reference: config.reference.clone(),
        ablated: true,
        ..Comparing::default()
    };
    let found = compare(&JobsWorld::open(&config).unwrap(), &asked, &Watcher::silent()).unwrap();
    let (_, _, table) = &found.at[0].beside.tables[0];
    assert!(table.rows.iter().all(|row| row[0] != "no preemption"));
    assert!(
        table.notes[0].contains("no preemption: themis cannot do without"),
        "{:?}",
        table.notes
    );
}
