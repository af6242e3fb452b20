//! A configuration of `pleach-scheduler` for a site's cluster, to begin a shadow with.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use pleach_env::workload::Workload;

use crate::evaluate::estimate_source::EstimateSource;

/// The configuration as TOML with comments. `slurm_names` are the GPU types' names in Slurm by their names in the cluster, where
/// they differ; `promise` is the file of what was promised, which a shadow does not keep.
#[must_use]
pub fn scheduler_config(
    workload: &Workload,
    estimates: EstimateSource,
    preemption: bool,
    slurm_names: &BTreeMap<String, String>,
    promise: Option<&Path>,
) -> String {
    let mut partitions: BTreeMap<&str, usize> = BTreeMap::new();
    let seen = workload.jobs.iter().filter_map(|job| job.observed.as_deref());
    for observed in seen.filter(|observed| !observed.partition.is_empty()) {
        *partitions.entry(&observed.partition).or_default() += 1;
    }
    let mut text = String::from(
        "# Configuration of pleach-scheduler for a shadow: it decides, writes down, and touches nothing.\n",
    );
    let most = partitions.iter().max_by_key(|(_, num)| **num);
    if let Some((name, _)) = most {
        let others = match partitions.len() {
            1 => String::new(),
            num => format!("   # of {num}; the one of the most jobs"),
        };
        let _ = writeln!(text, "partition = {}{others}", quoted(name));
    }
    let _ = writeln!(
        text,
        "preemption = {preemption}   # true only where jobs write checkpoints"
    );
    if let Some(path) = promise {
        let _ = writeln!(
            text,
            "# promise = {}   # once it is live: the fallback decides where waits break it\n# margin = 0.2",
            quoted(&path.display().to_string())
        );
    }
    for (place, of_type) in workload.cluster.gpu_types.iter().enumerate() {
        let name = slurm_names.get(&of_type.name).unwrap_or(&of_type.name);
        let speeds = workload.classes.iter().filter_map(|class| class.speed.get(place));
        let speeds: Vec<f64> = speeds.copied().filter(|speed| *speed > 0.0).collect();
        let speed = match speeds.is_empty() {
            true => 1.0,
            false => crate::evaluate::stats::mean(&speeds),
        };
        let _ = write!(
            text,
            "\n[gpu_types.{}]   # speed over the reference type\nspeed = {speed:?}\n",
            quoted(name)
        );
        if of_type.memory_gib > 0.0 {
            let _ = writeln!(text, "memory_gib = {:?}", of_type.memory_gib);
        }
    }
    let from = match estimates {
        EstimateSource::History => {
            "from = \"history\"   # as judged: learned from ended jobs\nseed_days = 30"
        }
        _ => "from = \"limit\"   # time limits",
    };
    let _ = write!(text, "\n[estimates]\n{from}\n");
    text
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
