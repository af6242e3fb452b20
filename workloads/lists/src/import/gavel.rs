//! Gavel's lists: generated jobs of 26 measured types, tab-separated, without a header.
//!
//! # Source
//! `stanford-futuredata/gavel` (MIT). Two forms. Seven fields: job type, command, flag, whether it needs data, total
//! steps, arrival (s), gang size. Ten fields: job type, command, folder, flag, whether it needs data, total steps, gang
//! size, priority, deadline, arrival (s).
//!
//! The run time is total steps over the measured speed on V100. A gang of a job type that was measured on one GPU only
//! is taken to be as fast as so many single GPUs.

use std::path::Path;

use pleach_scheduler::Time;
use pleach_scheduler::cluster_spec::{ClusterSpec, NodeGroup, Resources};

use super::row::raised;
use super::tenants::single_tenant;
use super::{Draft, ImportOptions, RawRow, Site, SiteOf, Tenancy};
use crate::Error;
use crate::gavel_speeds::{class_index, classes, gpu_types, reference_steps_per_s};
use crate::table::{Delimiter, Table};
use crate::{Outcome, RUN_TIME_S_MAX, SUBMIT_S_MAX, config};

#[rustfmt::skip]
const SEVEN: [&str; 7] = [
    "job_type", "command", "flag", "needs_data", "total_steps", "arrival_s", "scale_factor",
];
#[rustfmt::skip]
const TEN: [&str; 10] = [
    "job_type", "command", "folder", "flag", "needs_data", "total_steps", "scale_factor", "priority", "slo", "arrival_s",
];

/// Whether a line looks like one of Gavel's.
pub(super) fn is_row(line: &str) -> bool {
    let num_fields = line.split('\t').count();
    let job_type = line.split('\t').next().unwrap_or_default();
    matches!(num_fields, 7 | 10) && class_index(job_type.trim(), 1).is_some()
}

pub(super) fn read(path: &Path, options: &ImportOptions) -> Result<Draft, Error> {
    let mut table = Table::open_without_header(
        path,
        Delimiter::Tab,
        "7 in every row or 10 in every row",
        |num| match num {
            7 => Some(&SEVEN),
            10 => Some(&TEN),
            _ => None,
        },
    )?;
    let is_seven = table.column("priority").is_none();
    let mut draft = Draft::new(path, site(options, is_seven)?);
    while table.next_row()? {
        draft.account.rows_read += 1;
        let row = read_row(&table, &mut draft)?;
        draft.rows.push(row);
    }
    Ok(draft)
}

fn read_row(table: &Table, draft: &mut Draft) -> Result<RawRow, Error> {
    let steps_column = table.column("total_steps");
    let steps = table.number(steps_column, 0.0, 1e15, "correct the row")?;
    let column = table.column("arrival_s");
    let arrival_s = table.number(column, -SUBMIT_S_MAX, SUBMIT_S_MAX, "correct the row")?;
    let num_gpus = num_gpus(table)?;
    let (single, measured) = classes_of(table, num_gpus)?;
    let (class, steps_per_s) = match measured {
        Some(class) => (class, reference_steps_per_s(class)),
        None => {
            draft.mend("gang of a size that was not measured: as fast as so many single GPUs");
            (single, reference_steps_per_s(single) * f64::from(num_gpus))
        }
    };
    let run_time_s = raised(steps / steps_per_s, draft);
    if run_time_s > RUN_TIME_S_MAX {
        let allowed = format!("steps that take up to {RUN_TIME_S_MAX} s, here {run_time_s}");
        return Err(table.refuse(steps_column, &allowed, "correct the row"));
    }
    Ok(RawRow {
        line: table.line(),
        id: (draft.account.rows_read - 1).to_string(),
        submit: Time::from_secs_f64(arrival_s),
        num_gpus,
        run_time_s,
        estimate_s: None,
        tenant: None,
        class: class as u16,
        user: None,
        outcome: Outcome::Unknown,
        resources: Resources::WHOLE_GPU,
        observed: None,
    })
}

/// The gang of the present row.
pub(super) fn num_gpus(table: &Table) -> Result<u32, Error> {
    let column = table.column("scale_factor");
    let gang = table.number(column, 1.0, 1e6, "correct the row")?;
    if gang.fract() != 0.0 {
        return Err(table.refuse(column, "a whole number of GPUs", "correct the row"));
    }
    Ok(gang as u32)
}

/// The class of the present row's job type on one GPU, and on its gang where that was measured.
pub(super) fn classes_of(table: &Table, num_gpus: u32) -> Result<(usize, Option<usize>), Error> {
    let column = table.column("job_type");
    let job_type = table.text(column);
    let Some(single) = class_index(job_type, 1) else {
        let allowed = "one of the 26 measured job types, such as `LM (batch size 20)`";
        return Err(table.refuse(column, allowed, "correct the row"));
    };
    Ok((single, class_index(job_type, num_gpus)))
}

fn site(options: &ImportOptions, is_philly_like: bool) -> Result<SiteOf, Error> {
    // Sizes of the lists' own studies: `cluster_specs_heterogeneous.json` beside the per-virtual-cluster lists, and the
    // simulated cluster of the paper. Four GPUs per node and one rack per type are *assumed*.
    let (num_nodes, note) = if is_philly_like {
        (
            75,
            "cluster: 300 K80 + 300 P100 + 300 V100, as published with these lists",
        )
    } else {
        (
            9,
            "cluster: 36 K80 + 36 P100 + 36 V100, as in the paper's simulations",
        )
    };
    let (cluster, note) = match &options.cluster {
        Some(cluster) => (cluster.clone(), "cluster: given by the caller"),
        None => (gavel_cluster(num_nodes, 4, num_nodes), note),
    };
    let classes = classes(&cluster.gpu_types).map_err(|name| {
        let hint = "Gavel's job types were measured on these only";
        config(
            "import.cluster.gpu_types",
            name,
            "types named K80, P100 or V100",
            hint,
        )
    })?;
    Ok(Box::new(move |_, _| Site {
        cluster: cluster.clone(),
        classes: classes.clone(),
        tenancy: Tenancy::Single,
        notes: vec![note.into(), "run times are on V100".into()],
    }))
}

/// Equal numbers of nodes of each of Gavel's three types.
pub(crate) fn gavel_cluster(nodes_per_type: u32, gpus_per_node: u32, nodes_per_rack: u32) -> ClusterSpec {
    let gpu_types = gpu_types();
    let groups = gpu_types.iter().map(|gpu| NodeGroup {
        count: nodes_per_type,
        gpus_per_node,
        gpu_type: gpu.name.clone(),
        nodes_per_rack,
        ..NodeGroup::default()
    });
    ClusterSpec {
        node_groups: groups.collect(),
        gpu_types,
        tenants: vec![single_tenant(nodes_per_type * gpus_per_node * 3)],
        borrowing: true,
        ..ClusterSpec::default()
    }
}
