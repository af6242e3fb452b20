//! Pollux's and Sia's lists: applications, GPUs and batch sizes, without run times.
//!
//! # Source
//! Qiao et al., "Pollux", OSDI 2021 (`petuum/adaptdl`, Apache-2.0), and Subramanya et al., "Sia", SOSP 2023. Both
//! schedulers resize jobs, so how long one runs is up to them and their profiles.
//!
//! A job here keeps its size, and gets the GPU time that is the geometric middle of its application's published
//! category: small 0.1-1, medium 1-10, large 10-100, extra large 100-1000 GPU h (the bounds 0.1 and 1000 are *assumed*).
//! The run time is that over the GPUs asked for, so gangs are taken to speed up in proportion. Every row is counted as
//! mended by this rule: use the lists for their arrivals and gangs, not for run times.

use std::path::Path;

use pleach_scheduler::Time;
use pleach_scheduler::cluster_spec::Resources;

use super::cluster_of_list::{Nodes, Plan, cluster_of};
use super::{Draft, ImportOptions, RawRow};
use crate::Error;
use crate::table::Table;
use crate::{Outcome, SUBMIT_S_MAX};

pub(super) const REQUIRED: [&str; 5] = ["name", "time", "application", "num_replicas", "batch_size"];

/// (application, GPU h from, GPU h to).
/// # Source
/// The evaluation sections of both papers: categories by GPU time, each with its applications.
const CATEGORIES: [(&str, f64, f64); 6] = [
    ("cifar10", 0.1, 1.0),
    ("ncf", 0.1, 1.0),
    ("bert", 1.0, 10.0),
    ("deepspeech2", 1.0, 10.0),
    ("yolov3", 10.0, 100.0),
    ("imagenet", 100.0, 1000.0),
];

/// # Source
/// Both papers' homogeneous simulations: 16 nodes of 4 T4, 64 GPUs. One rack *assumed*.
const NODES: Nodes = Nodes {
    count: 16,
    gpus_per_node: 4,
    gpu_type: "T4",
    cpu_cores: 0.0,
    memory_gib: 0.0,
    nodes_per_rack: 16,
};

pub(super) fn read(path: &Path, options: &ImportOptions) -> Result<Draft, Error> {
    let mut table = Table::open(path, &REQUIRED)?;
    let column = |name: &str| table.column(name);
    let (name, time, application) = (column("name"), column("time"), column("application"));
    let replicas = column("num_replicas");
    let plan = Plan::of(
        cluster_of(&[("T4", 16.0)], &[NODES]),
        "cluster: 16 nodes x 4 T4, as in the papers' simulations",
    );
    let mut draft = Draft::new(path, plan.site(options));
    while table.next_row()? {
        draft.account.rows_read += 1;
        let submit_s = table.number(time, -SUBMIT_S_MAX, SUBMIT_S_MAX, "give seconds")?;
        let num_gpus = table.count(replicas, "give the number of GPUs")?;
        if num_gpus == 0 {
            return Err(table
                .refuse(replicas, "1 or more", "remove jobs without GPUs")
                .into());
        }
        let known = CATEGORIES.iter().find(|known| known.0 == table.text(application));
        let Some((_, from_gpu_h, to_gpu_h)) = known else {
            let names = CATEGORIES.map(|known| known.0).join(", ");
            let fix = "no size category is published for others, and the list has no run times";
            return Err(table.refuse(application, &names, fix).into());
        };
        draft.mend(
            "run time not in the list: the middle of the application's published size category over its GPUs",
        );
        let gpu_s = 3600.0 * (from_gpu_h * to_gpu_h).sqrt();
        let row = RawRow {
            line: table.line(),
            id: table.name(name)?,
            submit: Time::from_secs_f64(submit_s),
            num_gpus,
            run_time_s: gpu_s / f64::from(num_gpus),
            estimate_s: None,
            tenant: None,
            class: draft.class(&table, application)?,
            user: None,
            outcome: Outcome::Unknown,
            resources: Resources::WHOLE_GPU,
            observed: None,
        };
        draft.rows.push(row);
    }
    Ok(draft)
}
