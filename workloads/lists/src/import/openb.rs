//! Alibaba openb, 2023: pods of a Kubernetes cluster that ask for fractions of GPUs, and its machines.
//!
//! # Source
//! Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent",
//! USENIX ATC 2023; `alibaba/clusterdata`, `cluster-trace-gpu-v2023`: the list `default` and its variants with other
//! shares of CPU-only pods (`cpu*`), of fractions (`gpushare*`) and of pods tied to GPU types (`gpuspec*`). The variants
//! `multigpu*` carry no times and are refused.
//!
//! A pod is one task: all its GPUs lie on one node. The run time is deletion minus scheduling; pods that were never
//! scheduled have none and are excluded. `pod_phase` is a snapshot: pods that were running then ended unknown.

use std::path::Path;

use pleach_scheduler::cluster_spec::{ClusterSpec, ModelClass, Resources};
use pleach_scheduler::{Tasks, Time};

use super::mappings;
use super::row::raised;
use super::tenants::any_class;
use super::{Draft, ImportOptions, RawRow, Site, SiteOf, Tenancy};
use crate::Error;
use crate::table::Table;
use crate::{Outcome, SUBMIT_S_MAX};

/// Class of the pods that run on any GPU type.
const ANY: &str = "any";

pub(super) fn read(path: &Path, options: &ImportOptions) -> Result<Draft, Error> {
    let (mut table, published) = mappings::open("openb", path)?;
    let fleet = &published.cluster;
    let (cluster, note) = match &options.cluster {
        Some(cluster) => (cluster.clone(), "cluster: given by the caller"),
        None => (fleet.cluster(), fleet.note.as_str()),
    };
    let mut draft = Draft::new(path, site(cluster.clone(), note));
    while table.next_row()? {
        draft.account.rows_read += 1;
        if let Some(row) = read_row(&table, &mut draft, &cluster)? {
            draft.rows.push(row);
        }
    }
    Ok(draft)
}

fn read_row(table: &Table, draft: &mut Draft, cluster: &ClusterSpec) -> Result<Option<RawRow>, Error> {
    let column = |name: &str| table.column(name);
    let num_gpus = table.count(column("num_gpu"), "give the number of GPUs")?;
    if num_gpus == 0 {
        draft.exclude("asks for no GPU");
        return Ok(None);
    }
    let Some(gpus_per_task) = u8::try_from(num_gpus).ok().filter(|num| *num <= 64) else {
        let fix = "a pod lies on one node";
        return Err(table.refuse(column("num_gpu"), "at most 64", fix));
    };
    let amount = |name: &str| table.number(column(name), 0.0, 1e9, "give what the whole pod asks for");
    let gpu_milli = table.number(column("gpu_milli"), 1.0, 1000.0, "1000 is a whole GPU")?;
    if gpu_milli.fract() != 0.0 {
        let fix = "give thousandths of a GPU";
        return Err(table.refuse(column("gpu_milli"), "a whole number from 1 to 1000", fix));
    }
    let resources = Resources {
        gpu_milli: gpu_milli as u16,
        gpu_memory_gib: 0.0,
        cpu_cores: amount("cpu_milli")? / 1000.0 / f64::from(num_gpus),
        memory_gib: amount("memory_mib")? / 1024.0 / f64::from(num_gpus),
        tasks: Tasks::of(gpus_per_task),
        ..Resources::WHOLE_GPU
    };
    let seconds = |name: &str| table.number(column(name), -SUBMIT_S_MAX, SUBMIT_S_MAX, "give seconds");
    let (submit_s, deleted_s) = (seconds("creation_time")?, seconds("deletion_time")?);
    let outcome = match table.text(column("pod_phase")) {
        "Succeeded" => Outcome::Completed,
        "Failed" => Outcome::Failed,
        "Running" | "Pending" | "" => Outcome::Unknown,
        _ => {
            let allowed = "Succeeded, Failed, Running, Pending or nothing";
            return Err(table.refuse(column("pod_phase"), allowed, "map other words to these"));
        }
    };
    let id = table.name(column("name"))?;
    if table.text(column("scheduled_time")).is_empty() {
        draft.exclude("never scheduled: its run time is not known");
        return Ok(None);
    }
    let scheduled_s = seconds("scheduled_time")?;
    if deleted_s < scheduled_s || scheduled_s < submit_s {
        let allowed = "creation_time <= scheduled_time <= deletion_time";
        return Err(table.refuse(column("scheduled_time"), allowed, "correct the row"));
    }
    let spec = table.optional_name(column("gpu_spec"))?;
    let is_there = |name: &str| cluster.gpu_types.iter().any(|gpu| gpu.name == name);
    let class = match &spec {
        None => ANY,
        Some(spec) if spec.split('|').any(is_there) => spec,
        Some(_) => {
            draft.exclude("asks for GPU types that the cluster does not have");
            return Ok(None);
        }
    };
    let Some(class) = draft.class_of(class) else {
        let fix = "is the right column read as gpu_spec?";
        return Err(table.refuse(column("gpu_spec"), "at most 10,000 different sets of types", fix));
    };
    Ok(Some(RawRow {
        line: table.line(),
        id,
        submit: Time::from_secs_f64(submit_s),
        num_gpus,
        run_time_s: raised(deleted_s - scheduled_s, draft),
        estimate_s: None,
        tenant: None,
        class,
        user: None,
        outcome,
        resources,
        observed: None,
    }))
}

fn site(cluster: ClusterSpec, note: &'static str) -> SiteOf {
    Box::new(move |_, names| {
        let any = any_class(&cluster);
        let class = |name: &String| {
            let speed = |gpu: &str| {
                let is_allowed = name == ANY || name.split('|').any(|allowed| allowed == gpu);
                f64::from(u8::from(is_allowed))
            };
            ModelClass {
                name: name.clone(),
                speed: cluster.gpu_types.iter().map(|gpu| speed(&gpu.name)).collect(),
                locality: any.locality,
                ..ModelClass::default()
            }
        };
        let classes = if names.is_empty() {
            vec![any.clone()]
        } else {
            names.iter().map(class).collect()
        };
        Site {
            cluster: cluster.clone(),
            classes,
            tenancy: Tenancy::Single,
            notes: vec![
                note.into(),
                "all GPU types equally fast (assumed); the publisher used the list as a sequence, not by time".into(),
            ],
        }
    })
}
