//! What a list of jobs is like, its cluster, and what a policy makes of them.

use pleach_env::workload::Workload;
use pleach_env::{Seed, SimConfig, simulate};

use crate::door::PolicySpec;
use crate::error::Error;
use crate::evaluate::workload_source::WorkloadSource;
use crate::report::Block;
use crate::workload_report::simulated::Simulated;
use crate::workload_report::{Inspection, page, tables};
use crate::worlds::world::Description;

/// Describes one list with the seed that draws it; the policy, if there is one, plays its first jobs, at most so many.
pub(super) fn describe(
    (source, seed): (&WorkloadSource, Seed),
    sim: &SimConfig,
    policy: Option<(&PolicySpec, usize)>,
) -> Result<Description, Error> {
    let (workload, report) = source.workload(source.only("described")?, seed)?;
    let notes = match report {
        Some(report) => report.to_string(),
        None => source.assumed()?.unwrap_or_default(),
    };
    let mut inspection = Inspection::of(&workload);
    if let Some((policy, num_jobs)) = policy.filter(|_| !workload.jobs.is_empty()) {
        let sim = SimConfig {
            seed: seed.0,
            ..sim.clone()
        };
        inspection.simulated = Some(simulated(policy, workload, num_jobs, sim)?);
    }
    let mut said = vec![notes.clone(), format!("Workload {}", inspection.name)];
    if inspection.sizes.num_jobs == 0 {
        said.push("There are no jobs.".into());
    }
    let shown = |section: tables::Section| {
        format!(
            "\n{}\n{}",
            section.heading,
            section.table.to_terminal().trim_end()
        )
    };
    said.extend(tables::sections(&inspection).into_iter().map(shown));
    said.retain(|line| !line.is_empty());
    let importer = (!notes.is_empty()).then_some(Block::Code(notes));
    Ok(Description {
        said: said.join("\n"),
        report: page::report(&inspection).section("What the importer said", importer),
        json: serde_json::to_value(&inspection).map_err(|error| Error::Failed(error.to_string()))?,
    })
}

fn simulated(
    policy: &PolicySpec,
    mut workload: Workload,
    num_jobs_max: usize,
    sim: SimConfig,
) -> Result<Simulated, Error> {
    let num_left_out = workload.jobs.len().saturating_sub(num_jobs_max);
    workload.jobs.truncate(num_jobs_max);
    let sim = SimConfig {
        record_utilisation: true,
        record_waits: true,
        record_occupancy: true,
        ..sim
    };
    let result = simulate(&workload, &sim, &mut policy.policy()?)?;
    Ok(Simulated::of(policy.name(), &workload, num_left_out, result))
}
