//! The Standard Workload Format of batch logs; a processor is taken as a GPU.
//!
//! # Source
//! Feitelson's Parallel Workloads Archive, "The Standard Workload Format", version 2.2: comments after semicolons, then
//! 18 fields a line, -1 where not known. Used here to compare with schedulers learned on batch logs.
//!
//! The gang is the number of processors asked for, or else given; the estimate is the requested time. Lines about parts
//! of a job (status 2 to 4) repeat one that is there as a whole and are excluded, as are jobs without processors or run
//! time, most of which were cancelled while they waited. A loose placement costs nothing: processors of such machines
//! are alike.

use std::path::Path;

use pleach_scheduler::cluster_spec::LocalityFactors;

use super::cluster_of_list::{Nodes, Plan, cluster_of, sized_for};
use super::row::Columns;
use super::{Draft, ImportOptions};
use crate::Error;
use crate::Outcome;
use crate::table::{Delimiter, Lines, Table};

#[rustfmt::skip]
const FIELDS: [&str; 18] = [
    "job", "submit_s", "wait_s", "run_s", "processors", "cpu_s", "memory_kb", "requested_processors", "requested_s",
    "requested_memory_kb", "status", "user", "group", "application", "queue", "partition", "preceding_job", "think_s",
];

/// Whether a line can be the first of such a log.
pub(super) fn is_first_line(line: &str) -> bool {
    let line = line.trim_start();
    let fields = line.split_ascii_whitespace();
    line.starts_with(';')
        || (fields.clone().count() == FIELDS.len()
            && fields.clone().all(|field| field.parse::<f64>().is_ok()))
}

pub(super) fn read(path: &Path, options: &ImportOptions) -> Result<Draft, Error> {
    let machine = read_machine(path)?;
    let names = |num: usize| (num == FIELDS.len()).then_some(&FIELDS[..]);
    let mut table = Table::open_without_header(path, Delimiter::Blanks, "18 in every row", names)?;
    let column = |name: &str| table.column(name);
    let (given, requested) = (column("processors"), column("requested_processors"));
    let (limit, status, user) = (column("requested_s"), column("status"), column("user"));
    let columns = Columns::named(&table, ["job", "submit_s", "requested_processors", "run_s"]);
    let mut draft = Draft::new(path, plan(machine).site(&options.cluster));
    while table.next_row()? {
        draft.account.rows_read += 1;
        let number = |column| table.number(column, -1.0, 1e12, "-1 is not known");
        let is_known = |column| number(column).map(|value| value > 0.0);
        let outcome = match table.text(status) {
            "0" => Outcome::Failed,
            "1" => Outcome::Completed,
            "5" => Outcome::Killed,
            "-1" => Outcome::Unknown,
            "2" | "3" | "4" => {
                draft.exclude("part of a job that is listed as a whole");
                continue;
            }
            _ => {
                return Err(table.refuse(status, "-1 or 0 to 5", "see the format's description"));
            }
        };
        let num_gpus = if is_known(requested)? { requested } else { given };
        if !is_known(num_gpus)? || number(columns.run_time)? < 0.0 {
            draft.exclude("its processors or its run time are not known");
            continue;
        }
        if number(columns.submit)? < 0.0 {
            draft.exclude("its submission is not known");
            continue;
        }
        let columns = Columns {
            num_gpus,
            estimate: if is_known(limit)? { limit } else { None },
            user: if is_known(user)? { user } else { None },
            ..columns
        };
        let row = columns.read(&table, &mut draft)?;
        draft.rows.push(super::RawRow { outcome, ..row });
    }
    Ok(draft)
}

/// What the comments say about the machine.
#[derive(Clone, Copy, Debug, Default)]
struct Machine {
    num_nodes: Option<u32>,
    num_processors: Option<u32>,
}

/// Reads the comments before the first job.
fn read_machine(path: &Path) -> Result<Machine, Error> {
    let mut lines = Lines::open(path)?;
    let mut machine = Machine::default();
    while let Some(line) = lines.next_line()? {
        let Some(comment) = line.trim_start().strip_prefix(';') else {
            break;
        };
        let Some((key, value)) = comment.split_once(':') else {
            continue;
        };
        // -1 stands for not known, and what is no number is no size.
        let value = value
            .trim()
            .parse::<u32>()
            .ok()
            .filter(|num| (1..=4_000_000).contains(num));
        match key.trim() {
            "MaxNodes" => machine.num_nodes = value,
            "MaxProcs" => machine.num_processors = value,
            _ => {}
        }
    }
    Ok(machine)
}

fn plan(machine: Machine) -> Plan {
    let nodes = |count, gpus_per_node| Nodes {
        count,
        gpus_per_node,
        gpu_type: "processor",
        cpu_cores: 0.0,
        memory_gib: 0.0,
        nodes_per_rack: count,
    };
    let kind = ("processor", 1.0);
    let num_processors = machine.num_processors.or(machine.num_nodes);
    let mut plan = match num_processors {
        Some(num_processors) => {
            // Nodes as published where they divide the processors; else each processor stands alone.
            let per_node = machine
                .num_nodes
                .filter(|num_nodes| num_processors % num_nodes == 0)
                .map(|num_nodes| num_processors / num_nodes)
                .filter(|per_node| (1..=64).contains(per_node))
                .unwrap_or(1);
            let count = num_processors / per_node;
            let note = format!("cluster: {count} nodes x {per_node} processors, from the log's comments");
            Plan::of(cluster_of(&[kind], &[nodes(count, per_node)]), &note)
        }
        None => Plan::sized(Box::new(move |rows| sized_for(rows, kind, nodes(1, 1)))),
    };
    plan.locality = LocalityFactors::NONE;
    plan.notes = vec!["a processor is taken as a GPU; any placement is as fast as any other".into()];
    plan
}
