//! Where lists come from that `when` reads: a site's files, or a list; one without recorded starts is played first.

use std::path::Path;

use pleach_env::SimConfig;
use pleach_env::workload::Workload;
use pleach_forecast::record::played;
use pleach_scheduler::cluster_spec::SiteScheduler;

use super::standing::{LATER_S, standing};
use crate::decide::{SiteConfig, site_list};
use crate::door::{DOOR, PolicySpec};
use crate::error::Error;
use crate::evaluate::instances::seeds;
use crate::evaluate::sim_config::SchedulingConfig;
use crate::evaluate::workload_source::WorkloadSource;
use crate::twin::{believed, is_record};

/// A list with its cluster's settings and its policy: of a `site.toml`, or of a list by its file or name. `policy` and `cluster` win
/// over what those say.
///
/// # Errors
/// Files that cannot be used, a policy that is none.
pub fn list_of(
    name: &str,
    cluster: Option<&Path>,
    policy: Option<&str>,
    scheduling: &SchedulingConfig,
) -> Result<(Workload, SimConfig, PolicySpec), Error> {
    let (workload, policies, scheduling) = match Path::new(name).extension().is_some_and(|end| end == "toml")
    {
        true => {
            let config = SiteConfig::read(Path::new(name))?;
            let path = |path: &Option<std::path::PathBuf>| path.clone();
            let cluster = cluster.map(Path::to_path_buf).or(path(&config.cluster));
            let (nodes, mapping) = (config.nodes.as_deref(), config.mapping.as_deref());
            let all = site_list(&config.jobs, nodes, mapping, cluster.as_deref(), Some(LATER_S))?.workload;
            let skipped = all.jobs.len().saturating_sub(config.jobs_max);
            let policies = config.policies(&all.cluster.seen);
            (all.slice(skipped, config.jobs_max), policies, config.scheduling)
        }
        false => {
            let source = WorkloadSource {
                cluster: cluster.map(Path::to_path_buf),
                ..WorkloadSource::of(name)
            };
            let (workload, _) = source.workload(source.only("forecast")?, seeds(0, "test", 1)[0])?;
            let own = workload
                .cluster
                .seen
                .scheduler
                .map_or("easy", SiteScheduler::policy);
            (workload, vec![own.to_owned()], scheduling.clone())
        }
    };
    let mut sim = scheduling.over(&[], is_record(&workload));
    sim.estimates = believed(&workload, scheduling.estimates)[0].model();
    let policy = policy.unwrap_or_else(|| policies.first().map_or("easy", String::as_str));
    let policy = DOOR.open_one(policy)?;
    policy.check(sim.capabilities)?;
    Ok((workload, sim, policy))
}

/// The list with starts: its own, or, where it has none, those that the policy makes of it; whether they are such.
///
/// # Errors
/// A simulation that fails.
pub fn recorded(workload: Workload, sim: &SimConfig, policy: &PolicySpec) -> Result<(Workload, bool), Error> {
    let workload = standing(workload);
    if is_record(&workload) {
        return Ok((workload, false));
    }
    Ok((played(workload, sim, policy)?, true))
}
