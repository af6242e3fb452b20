//! `16x8:A100,4x4:V100`: nodes, GPUs of each, their type.

use pleach_scheduler::cluster_spec::{ClusterSpec, NodeGroup};

use super::assume;
use crate::Error;
use crate::config;

/// Type of GPUs where none is given.
const TYPE: &str = "GPU";

/// Whether a text is meant as the short form: it begins with a number and an `x`.
#[must_use]
pub fn is_short(text: &str) -> bool {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < text.len()
        && rest.starts_with(['x', 'X'])
        && rest[1..].starts_with(|c: char| c.is_ascii_digit())
}

/// A cluster in the short form, and what was assumed.
///
/// # Errors
/// The part that cannot be read, or a cluster that cannot be.
pub fn of_short(text: &str) -> Result<(ClusterSpec, Option<String>), Error> {
    let mut cluster = ClusterSpec::default();
    for part in text.split(',') {
        let refused = || {
            let allowed = "nodes x GPUs of each : type, such as 16x8:A100, repeated with commas";
            config(
                "cluster",
                part,
                allowed,
                "for example 16x8:A100,4x4:V100, or a file",
            )
        };
        let (size, gpu_type) = part.split_once(':').unwrap_or((part, TYPE));
        let (count, each) = size.split_once(['x', 'X']).ok_or_else(refused)?;
        let number = |text: &str| text.trim().parse::<u32>().ok().filter(|number| *number > 0);
        let (Some(count), Some(gpus_per_node)) = (number(count), number(each)) else {
            return Err(refused());
        };
        if gpu_type.trim().is_empty() {
            return Err(refused());
        }
        cluster.node_groups.push(NodeGroup {
            count,
            gpus_per_node,
            gpu_type: gpu_type.trim().into(),
            ..NodeGroup::default()
        });
    }
    let assumed = assume(&mut cluster);
    cluster.validate()?;
    Ok((cluster, assumed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_form_is_a_cluster() {
        let (cluster, assumed) = of_short("16x8:A100,4x4:V100").unwrap();
        assert_eq!(cluster.num_gpus(), 144);
        let types: Vec<_> = cluster
            .gpu_types
            .iter()
            .map(|gpu| (gpu.name.as_str(), gpu.memory_gib))
            .collect();
        assert_eq!(types, [("A100", 80.0), ("V100", 32.0)]);
        assert!(assumed.unwrap().contains("racks of 16 nodes"));
        assert_eq!(of_short("2x8").unwrap().0.gpu_types[0].name, "GPU");
        for text in ["16x8:A100", "2X8", "1x1:a,b"] {
            assert!(is_short(text), "{text}");
        }
        for text in ["cluster.toml", "x8", "16", "16x", "16xl.toml", ""] {
            assert!(!is_short(text), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_in_a_short_form_is_named() {
        for (text, named) in [
            ("16x8:A100,4y4", "4y4"),
            ("0x8", "0x8"),
            ("2x8:", "2x8:"),
            ("2x99", "gpus_per_node"),
            ("4000000000x64:A100", "GPUs"),
        ] {
            let said = of_short(text).unwrap_err().to_string();
            assert!(said.contains(named), "{said}");
        }
    }
}
