//! Rubick's lists: training jobs with CPUs, execution plans and a service level.
//!
//! # Source
//! Zhang et al., "Rubick: Exploiting Job Reconfigurability for Deep Learning Cluster Scheduling", MLSys 2025;
//! `AlibabaPAI/reconfigurable-dl-scheduler` (Apache-2.0): 406 jobs, with the plans of the base, the best plans (`bp`)
//! and two tenants (`mt`).
//!
//! The run time is that with the plan and the resources asked for. A class is an application and its plan: gradient
//! accumulation (`ga`), checkpointing of activations (`gc`), ZeRO (`zero-dp`), with offloading (`zero-offload`), or three digits:
//! the stages, the GPUs that share a layer, the copies. So the artifact's measurements have it: the time of the optimiser falls with
//! the product of the first two, nodes have as many GPUs as the second says, and its simulator adds GPUs by the third. Of a Llama or
//! GPT-2 under such a plan state, memory and traffic are those of [`crate::plans`], for a batch of [`BATCH`] sequences, the
//! artifact's for LLaMA-7B, of the others *assumed*. Jobs of the guaranteed service level are one tenant, the others
//! another.
//!
//! Not here: that Rubick changes plans while jobs run; jobs keep theirs.

use std::path::Path;

use super::draft::SiteOf;
use super::mappings;
use super::row::Columns;
use super::{Draft, ImportOptions};
use crate::Error;
use crate::plans::{Gang, Model, Plan as Cut, Recompute, Training, class_of};
use crate::table::Table;

/// Plans that are words.
const WORDS: [&str; 4] = ["ga", "gc", "zero-dp", "zero-offload"];
/// Sequences of a step of a model that is cut.
const BATCH: u32 = 16;
/// Applications that are models with a known shape.
const MODELS: [(&str, &str); 3] = [
    ("llama7", "llama-7b"),
    ("llama30", "llama-30b"),
    ("gpt2", "gpt2-1.5b"),
];

/// The plan of the present row: its word, or its three numbers with `x` between them.
fn cut_of(table: &Table, column: Option<usize>, num_gpus: u32) -> Result<String, Error> {
    let text = table.text(column);
    if WORDS.contains(&text) {
        return Ok(text.into());
    }
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(10)).collect();
    match digits.as_deref() {
        Some([stages, tensor, copies]) if stages * tensor * copies == num_gpus => {
            Ok(format!("{stages}x{tensor}x{copies}"))
        }
        _ => {
            let allowed = format!(
                "{}, or three digits whose product is {num_gpus}",
                WORDS.join(", ")
            );
            let fix = "stages, GPUs that share a layer, copies; their product is num_gpus";
            Err(table.refuse(column, &allowed, fix))
        }
    }
}

/// Gives the classes of cut models what follows from their plan on the first GPU type that holds it.
fn with_plans(site: SiteOf) -> SiteOf {
    Box::new(move |rows, names| {
        let mut site = site(rows, names);
        for class in &mut site.classes {
            // A cluster of the caller's whose GPUs are not known, or do not hold it, tells nothing of the plan.
            if let Some(made) = gang_of(&class.name).and_then(|gang| class_of("", &gang, &site.cluster).ok())
            {
                class.step = made.step;
                class.state_gib = made.state_gib;
                class.gpu_memory_gib = made.gpu_memory_gib;
            }
        }
        site
    })
}

/// The gang of a class whose plan is three numbers and whose model is known.
fn gang_of(class: &str) -> Option<Gang> {
    let (application, cut) = class.split_once(' ')?;
    let (_, model) = MODELS.iter().find(|(known, _)| *known == application)?;
    let numbers: Option<Vec<u32>> = cut.split('x').map(|number| number.parse().ok()).collect();
    let [pipeline, tensor, copies] = numbers?[..] else {
        return None;
    };
    Some(Gang {
        training: Training::all(Model::from_name(model).ok()?, BATCH),
        num_gpus: copies * tensor * pipeline,
        plan: Some(Cut {
            tensor,
            pipeline,
            recompute: Recompute::Full,
            ..Cut::default()
        }),
    })
}

pub(super) fn read(path: &Path, options: &ImportOptions) -> Result<Draft, Error> {
    let (mut table, published) = mappings::open("rubick", path)?;
    let (application, cpus) = (table.column("application"), table.column("num_cpus"));
    let (level, exec_plan) = (table.column("is_sla"), table.column("exec_plan"));
    let columns = Columns::named(&table, ["name", "submission_time", "num_gpus", "duration"]);
    let plan = published.plan(false, true);
    let mut draft = Draft::new(path, with_plans(plan.site(&options.cluster)));
    while table.next_row()? {
        draft.account.rows_read += 1;
        let mut row = columns.read(&table, &mut draft)?;
        let cpu_cores = table.number(cpus, 0.0, 1e6, "give the CPUs of the whole job")?;
        row.resources.cpu_cores = cpu_cores / f64::from(row.num_gpus);
        let cut = cut_of(&table, exec_plan, row.num_gpus)?;
        let name = format!("{} {cut}", table.name(application)?);
        row.class = draft.class_of(&name).ok_or_else(|| {
            let fix = "is the right column read as the kind of job?";
            table.refuse(application, "at most 10,000 different names and plans", fix)
        })?;
        row.tenant = match table.text(level) {
            "0" => draft.tenant("best-effort"),
            "1" => draft.tenant("guaranteed"),
            _ => {
                return Err(table.refuse(level, "0 or 1", "1 is the guaranteed service level"));
            }
        };
        draft.rows.push(row);
    }
    Ok(draft)
}
