//! Recorded schedules of real schedulers, imported as a site imports its own, beside their twins.

use std::path::Path;

use pleach_env::workload::Workload;
use pleach_env::workload::import::site::{NodeTable, SiteOptions, import_site};
use pleach_env::{SimConfig, simulate_planner};
use pleach_experiments::door::{DOOR, PolicySpec};
use pleach_experiments::twin::Twin;

/// The list of a recorded run: its records beside its nodes.
pub fn list(place: &Path, records: &str, nodes: &str) -> Workload {
    let options = SiteOptions {
        nodes: Some(NodeTable::read(&place.join(nodes)).unwrap()),
        ..SiteOptions::default()
    };
    import_site(&place.join(records), &options).unwrap().workload
}

/// A list under a policy beside what was recorded.
pub fn twin(list: &Workload, sim: &SimConfig, spec: &PolicySpec) -> Twin {
    let mut planner = spec.make_planner().unwrap();
    let jobs = simulate_planner(list, sim, planner.as_mut()).unwrap().jobs;
    Twin::since(spec, list, sim, &jobs, 0.0).unwrap()
}

/// The same under the site's own policy, and under others by name; all are printed.
pub fn twins(name: &str, list: &Workload, sim: &SimConfig, own: &PolicySpec, others: &[&str]) -> Vec<Twin> {
    let others = others.iter().map(|other| DOOR.open_one(other).unwrap());
    let specs: Vec<PolicySpec> = [own.clone()].into_iter().chain(others).collect();
    let twins: Vec<Twin> = specs.iter().map(|spec| twin(list, sim, spec)).collect();
    for twin in &twins {
        println!("{name}: {} {:.1} % {:?}", twin.policy, part(twin), twin.trust);
    }
    twins
}

/// Starts that are explained, %.
pub fn part(twin: &Twin) -> f64 {
    100.0 * twin.explained.part().unwrap_or(0.0)
}
