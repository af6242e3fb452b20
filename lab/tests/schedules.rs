//! The record of every published planner is a possible schedule, in the worlds of `experiments/tests`.

use pleach_experiments::door::{DOOR, PolicySpec};
use rayon::prelude::*;
use serde_json::json;

use crate::recorded_worlds::{hold, worlds};
use crate::registered;

#[test]
fn the_record_of_every_published_planner_is_a_possible_schedule() {
    registered();
    let mut policies: Vec<PolicySpec> = pleach_baselines::names()
        .map(|name| DOOR.open_one(name).unwrap())
        .collect();
    // A fifth of its population: what is held here does not depend on how good a plan is.
    PolicySpec::configure(&mut policies, &json!({ "pollux": { "population": 20 } })).unwrap();
    let worlds = worlds();
    let pairs: Vec<_> = worlds
        .iter()
        .flat_map(|world| policies.iter().map(move |policy| (world, policy)))
        .collect();
    pairs
        .par_iter()
        .for_each(|((id, workload, sim), policy)| drop(hold(id, workload, sim, policy)));
}
