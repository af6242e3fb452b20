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

use pleach_scheduler::ids::Time;
use pleach_scheduler::spec::{ClusterSpec, NodeGroup, Resources};

use super::report::count;
use super::tenants::single_tenant;
use super::{Draft, ImportOptions, RawRow, Site, SiteOf, Tenancy};
use crate::error::Error;
use crate::workload::gavel_speeds::{class_index, classes, gpu_types, reference_steps_per_s};
use crate::workload::table::{Lines, shorten, split};
use crate::workload::{Outcome, RUN_TIME_S_MAX, RUN_TIME_S_MIN, SUBMIT_S_MAX, config};

/// Whether a line looks like one of Gavel's.
pub(super) fn is_row(line: &str) -> bool {
    let num_fields = line.split('\t').count();
    let job_type = line.split('\t').next().unwrap_or_default();
    matches!(num_fields, 7 | 10) && class_index(job_type.trim(), 1).is_some()
}

pub(super) fn read(path: &Path, options: &ImportOptions) -> Result<Draft, Error> {
    let mut lines = Lines::open(path)?;
    let mut fields = Vec::new();
    let mut rows = Vec::new();
    let mut repairs = Vec::new();
    let (mut num_fields, mut rows_read) = (0, 0_u64);
    while let Some(line) = lines.next_line()? {
        if let Err(text) = split(line, '\t', &mut fields) {
            return Err(lines.error("-", text.into()));
        }
        rows_read += 1;
        if !matches!(fields.len(), 7 | 10) || (num_fields != 0 && fields.len() != num_fields) {
            let text = format!(
                "the row has {} tab-separated fields; allowed is 7 in every row or 10 in every row",
                fields.len()
            );
            return Err(lines.error("-", text));
        }
        num_fields = fields.len();
        let (steps_at, gang_at, arrival_at) = if num_fields == 7 { (4, 6, 5) } else { (5, 6, 9) };
        let number = |at: usize, name: &str, min: f64, max: f64| {
            let text = fields[at].trim();
            match text.parse::<f64>() {
                Ok(value) if (min..=max).contains(&value) => Ok(value),
                _ => Err(lines.error(
                    name,
                    format!(
                        "`{}` is not allowed here: allowed is a number from {min} to {max}; correct the row",
                        shorten(text)
                    ),
                )),
            }
        };
        let steps = number(steps_at, "total_steps", 0.0, 1e15)?;
        let gang = number(gang_at, "scale_factor", 1.0, 1e6)?;
        let arrival_s = number(arrival_at, "arrival_s", -SUBMIT_S_MAX, SUBMIT_S_MAX)?;
        if gang.fract() != 0.0 {
            let text =
                format!("`{gang}` is not allowed here: allowed is a whole number of GPUs; correct the row");
            return Err(lines.error("scale_factor", text));
        }
        let num_gpus = gang as u32;
        let job_type = fields[0].trim();
        let Some(single) = class_index(job_type, 1) else {
            let text = format!(
                "`{}` is not allowed here: allowed is one of the 26 measured job types, such as `LM (batch size 20)`",
                shorten(job_type)
            );
            return Err(lines.error("job_type", text));
        };
        let (class, steps_per_s) = match class_index(job_type, num_gpus) {
            Some(class) => (class, reference_steps_per_s(class)),
            None => {
                count(
                    &mut repairs,
                    "gang of a size that was not measured: as fast as so many single GPUs",
                    1,
                    false,
                );
                (single, reference_steps_per_s(single) * f64::from(num_gpus))
            }
        };
        let mut run_time_s = steps / steps_per_s;
        if run_time_s < 1.0 {
            run_time_s = 1.0;
            count(&mut repairs, "run time below 1 s: raised to 1 s", 1, false);
        }
        if !(RUN_TIME_S_MIN..=RUN_TIME_S_MAX).contains(&run_time_s) {
            let text = format!("`{steps}` steps take {run_time_s} s; allowed is up to {RUN_TIME_S_MAX} s");
            return Err(lines.error("total_steps", text));
        }
        rows.push(RawRow {
            line: lines.line,
            id: format!("{}", rows_read - 1),
            submit: Time::from_secs_f64(arrival_s),
            num_gpus,
            run_time_s,
            estimate_s: None,
            tenant: None,
            class: class as u16,
            user: None,
            outcome: Outcome::Unknown,
            resources: Resources::WHOLE_GPU,
        });
    }
    let mut draft = Draft::new(path, site(options, num_fields == 7)?);
    (draft.rows, draft.repairs, draft.rows_read) = (rows, repairs, rows_read);
    Ok(draft)
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
    Ok(Box::new(move |_| Site {
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
