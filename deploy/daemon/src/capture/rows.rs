//! Rows of a captured list.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use pleach_scheduler::Tasks;

use crate::fleet;
use crate::snapshot::{JobSeen, NodeSeen};

/// A row of a list.
pub(super) struct Row<'a> {
    pub(super) seen: &'a JobSeen,
    pub(super) run_time_s: f64,
    /// Start, end and nodes as cells.
    pub(super) observed: Option<String>,
}

/// The list, with the classes of its rows; a gang that these nodes could not hold by its parts is one that may be cut as one likes.
pub(super) fn text(
    rows: &[(&Row<'_>, &str)],
    nodes: &[NodeSeen],
    tenants: &BTreeMap<String, u32>,
    first_s: i64,
) -> String {
    let has_classes = rows.iter().any(|(_, class)| *class != fleet::ANY);
    let has_shares = rows.iter().any(|(row, _)| row.seen.share.is_some());
    let has_observed = rows.first().is_some_and(|(row, _)| row.observed.is_some());
    let mut text = String::from("job_id,submit_s,num_gpus,run_time_s,estimate_s,tenant,user");
    if has_classes {
        text.push_str(",class");
    }
    if has_shares {
        text.push_str(",gpu_milli,gpu_memory_gib,cpu_cores,memory_gib");
    }
    let tasks = |seen: &JobSeen| match fleet::never_fits(seen, nodes) {
        None => fleet::tasks_of(seen),
        Some(_) => Tasks::ANY,
    };
    let tasks: Vec<Tasks> = rows.iter().map(|(row, _)| tasks(row.seen)).collect();
    let has_tasks = tasks.iter().any(|tasks| !tasks.is_any());
    if has_tasks {
        text.push_str(",gpus_per_task,tasks_per_node_max");
    }
    if has_observed {
        text.push_str(",observed_start_s,observed_end_s,observed_nodes");
    }
    text.push('\n');
    for ((row, class), tasks) in rows.iter().zip(tasks) {
        let seen = row.seen;
        let tenant = Some(&seen.account).filter(|name| tenants.contains_key(*name));
        let limit_s = seen
            .limit_s
            .map_or(String::new(), |limit_s| limit_s.max(1).to_string());
        let _ = write!(
            text,
            "{},{},{},{},{limit_s},{},{}",
            seen.id,
            seen.submit_s - first_s,
            seen.num_gpus(),
            row.run_time_s,
            field(tenant.map_or("*", |name| name)),
            field(&seen.user)
        );
        if has_classes {
            let _ = write!(text, ",{class}");
        }
        if has_shares {
            let _ = write!(text, ",{},0,0,0", seen.gpu_milli());
        }
        if has_tasks {
            let _ = write!(text, ",{},{}", tasks.gpus_per_task, tasks.tasks_per_node_max);
        }
        if let Some(cells) = &row.observed {
            let _ = write!(text, ",{cells}");
        }
        text.push('\n');
    }
    text
}

/// A field of a CSV file.
pub(super) fn field(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"").replace(['\n', '\r'], " ")),
        false => text.to_owned(),
    }
}
