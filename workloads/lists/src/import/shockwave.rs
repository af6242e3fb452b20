//! Shockwave's lists: Gavel's job types with batch sizes that change while they train.
//!
//! # Source
//! Zheng et al., "Shockwave", NSDI 2023; `uw-mad-dash/shockwave` (MIT). Twelve tab-separated fields: Gavel's ten with
//! the way in which the batch size adapts and the run time. Such a job's speed changes as it runs; here its run time is
//! the list's and its relative speed on GPU types Gavel's, at the batch size that it starts with.

use std::path::Path;

use super::cluster_of_list::{Nodes, sized_for};
use super::gavel::{classes_of, num_gpus};
use super::row::Columns;
use super::{Draft, ImportOptions, Site, SiteOf, Tenancy};
use crate::Error;
use crate::config;
use crate::gavel_speeds::{class_index, classes, gpu_types};
use crate::table::{Delimiter, Table};

#[rustfmt::skip]
const FIELDS: [&str; 12] = [
    "job_type", "command", "folder", "flag", "needs_data", "total_steps", "scale_factor", "mode", "priority", "slo",
    "duration_s", "arrival_s",
];

/// Nodes of 4 V100, as the testbed's.
const NODES: Nodes<'static> = Nodes {
    count: 1,
    gpus_per_node: 4,
    gpu_type: "V100",
    cpu_cores: 0.0,
    memory_gib: 0.0,
    nodes_per_rack: 16,
};

/// Whether a line looks like one of Shockwave's.
pub(super) fn is_row(line: &str) -> bool {
    let job_type = line.split('\t').next().unwrap_or_default();
    line.split('\t').count() == FIELDS.len() && class_index(job_type.trim(), 1).is_some()
}

pub(super) fn read(path: &Path, options: &ImportOptions) -> Result<Draft, Error> {
    let names = |num: usize| (num == FIELDS.len()).then_some(&FIELDS[..]);
    let mut table = Table::open_without_header(path, Delimiter::Tab, "12 in every row", names)?;
    let columns = Columns {
        id: None,
        ..Columns::named(&table, ["job_type", "arrival_s", "scale_factor", "duration_s"])
    };
    let mode = table.column("mode");
    let mut draft = Draft::new(path, site(options)?);
    while table.next_row()? {
        draft.account.rows_read += 1;
        if !matches!(table.text(mode), "static" | "accordion" | "gns") {
            return Err(table.refuse(mode, "static, accordion or gns", "correct the row"));
        }
        let (single, measured) = classes_of(&table, num_gpus(&table)?)?;
        let mut row = columns.read(&table, &mut draft)?;
        row.class = measured.unwrap_or(single) as u16;
        draft.rows.push(row);
    }
    Ok(draft)
}

fn site(options: &ImportOptions) -> Result<SiteOf, Error> {
    let given = options.cluster.clone();
    let v100 = gpu_types()
        .into_iter()
        .filter(|gpu| gpu.name == NODES.gpu_type)
        .collect();
    let types: Vec<_> = given.as_ref().map_or(v100, |cluster| cluster.gpu_types.clone());
    let memory_gib = types.first().map_or(16.0, |gpu| gpu.memory_gib);
    let classes = classes(&types).map_err(|name| {
        let hint = "the job types were measured on these only";
        config(
            "import.cluster.gpu_types",
            name,
            "types named K80, P100 or V100",
            hint,
        )
    })?;
    Ok(Box::new(move |rows, _| {
        let (cluster, note) = match &given {
            Some(cluster) => (cluster.clone(), "cluster: given by the caller".to_owned()),
            None => sized_for(rows, (NODES.gpu_type, memory_gib), NODES),
        };
        Site {
            cluster,
            classes: classes.clone(),
            tenancy: Tenancy::Single,
            notes: vec![
                note,
                "run times are on V100; batch sizes are taken as fixed".into(),
            ],
        }
    }))
}
