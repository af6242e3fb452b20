//! A cluster from what jobs were seen to use, where no list of its nodes is given.

use std::collections::BTreeMap;

use pleach_scheduler::cluster_spec::{ClusterSpec, NodeGroup};
use pleach_site::slurm::expand;

use super::merge::SiteJob;
use crate::Error;
use crate::cluster::assume;

/// Most mentions of nodes that are counted; those behind are not looked at. *Ours*: some minutes of work.
const MENTIONS_MAX: usize = 5_000_000;
/// Name of the type of GPUs where none is named.
const TYPE: &str = "GPU";
/// Mean use of the cluster where no node is named. *Assumed*, as for published lists without a size.
const LOAD: f64 = 0.7;
/// Most GPUs of a node that is guessed from its jobs. *Assumed*: servers of today have 4 to 16.
const GUESSED_GPUS_MAX: u32 = 16;

/// A node as its jobs show it.
#[derive(Default)]
struct SeenNode {
    of_type: Option<u16>,
    /// GPUs that jobs took (+) or gave back (-), with the instants, s.
    changes: Vec<(f64, i64)>,
}

/// The cluster, and a note on where it comes from.
///
/// # Errors
/// Nodes that would have more than [`GUESSED_GPUS_MAX`] GPUs.
pub(super) fn cluster(jobs: &[SiteJob], types: &[String]) -> Result<(ClusterSpec, String), Error> {
    let mut nodes: BTreeMap<String, SeenNode> = BTreeMap::new();
    let (mut num_mentions, mut num_behind) = (0, 0);
    for job in jobs {
        let (Some(start), false) = (job.row.start_s, job.row.nodes.is_empty()) else {
            continue;
        };
        // A list that cannot be read was not kept with its row.
        let Ok(names) = expand(&job.row.nodes) else {
            continue;
        };
        num_mentions += names.len();
        if names.is_empty() || num_mentions > MENTIONS_MAX {
            num_behind += u32::from(!names.is_empty());
            continue;
        }
        let each = i64::from(job.row.num_gpus).div_euclid(names.len() as i64).max(1);
        for name in names {
            let node = nodes.entry(name).or_default();
            if let [of_type] = job.row.ran_on[..] {
                node.of_type = Some(of_type);
            }
            node.changes.push((start, each));
            node.changes.push((start + job.run_s, -each));
        }
    }
    if nodes.is_empty() {
        return Ok(sized(jobs, types));
    }
    let mut num_by_size: BTreeMap<(Option<u16>, u32), u32> = BTreeMap::new();
    for node in nodes.values_mut() {
        let gpus = size_of(most_at_once(&mut node.changes));
        *num_by_size.entry((node.of_type, gpus)).or_default() += 1;
    }
    // Nodes of a type are taken to be alike: a small one was hardly used.
    let mut groups: BTreeMap<Option<u16>, (u32, u32)> = BTreeMap::new();
    for ((of_type, gpus), count) in num_by_size {
        let (num, most) = groups.entry(of_type).or_default();
        *num += count;
        *most = (*most).max(gpus);
    }
    let mut cluster = ClusterSpec::default();
    for (of_type, (count, gpus_per_node)) in groups {
        cluster
            .node_groups
            .push(group(count, gpus_per_node, name_of(of_type, types)));
    }
    if cluster
        .node_groups
        .iter()
        .any(|group| group.gpus_per_node > GUESSED_GPUS_MAX)
    {
        let allowed = format!("guessed nodes of at most {GUESSED_GPUS_MAX} GPUs");
        let hint = "The most GPUs in use at once on a node say so, which wide jobs or a wrong column may have caused. Give the \
                    list of nodes (scontrol show node -o > nodes.txt; --nodes nodes.txt, or nodes in site.toml) or the \
                    cluster (--cluster 12x8:A100).";
        return Err(crate::config("nodes", words(&cluster), &allowed, hint));
    }
    let assumed = assume(&mut cluster);
    let mut note = format!(
        "cluster: seen in the list, {}: nodes on which jobs ran, GPUs of a node by the most in use at once (assumed); give the \
         list of nodes or a cluster for the true one; {}",
        words(&cluster),
        assumed.unwrap_or_default()
    );
    if num_behind > 0 {
        note.push_str(&format!(
            "; the nodes of {num_behind} jobs behind {MENTIONS_MAX} mentions of nodes are not looked at"
        ));
    }
    Ok((cluster, note))
}

/// Nodes of 8 GPUs that hold the largest job and keep the mean use from the first submission to the last end at or below [`LOAD`].
fn sized(jobs: &[SiteJob], types: &[String]) -> (ClusterSpec, String) {
    let mut cluster = ClusterSpec::default();
    let mut kinds: BTreeMap<Option<u16>, Vec<&SiteJob>> = BTreeMap::new();
    for job in jobs {
        let of_type = match job.row.ran_on[..] {
            [of_type] => Some(of_type),
            _ => None,
        };
        kinds.entry(of_type).or_default().push(job);
    }
    // To the end of the last job: by submissions alone a list of one burst would need thousands of nodes.
    let first = jobs
        .iter()
        .map(|job| job.row.submit_s)
        .fold(f64::INFINITY, f64::min);
    let end = |job: &SiteJob| job.end_s.unwrap_or(job.row.submit_s + job.run_s);
    let last = jobs.iter().map(end).fold(f64::NEG_INFINITY, f64::max);
    let span_s = (last - first).max(1.0);
    for (of_type, jobs) in kinds {
        let work: f64 = jobs
            .iter()
            .map(|job| f64::from(job.row.num_gpus) * job.run_s)
            .sum();
        let largest = jobs.iter().map(|job| job.row.num_gpus).max().unwrap_or(1);
        // Bounded so that a list of absurd jobs is left out by the fit instead of making an absurd cluster.
        let gpus = (work / span_s / LOAD).max(f64::from(largest)).min(100_000.0);
        let count = (gpus / 8.0).ceil().max(1.0) as u32;
        cluster.node_groups.push(group(count, 8, name_of(of_type, types)));
    }
    if cluster.node_groups.is_empty() {
        cluster.node_groups.push(group(1, 8, TYPE.into()));
    }
    cluster.node_groups.truncate(64);
    let assumed = assume(&mut cluster);
    let note = format!(
        "cluster: the list names no nodes; {} keep the mean use at most {LOAD} (assumed): give the list of nodes or a cluster; {}",
        words(&cluster),
        assumed.unwrap_or_default()
    );
    (cluster, note)
}

fn group(count: u32, gpus_per_node: u32, gpu_type: String) -> NodeGroup {
    NodeGroup {
        count,
        gpus_per_node,
        gpu_type,
        ..NodeGroup::default()
    }
}

fn name_of(of_type: Option<u16>, types: &[String]) -> String {
    let name = of_type.and_then(|of| types.get(usize::from(of)));
    name.and_then(|name| super::row::tidy(name))
        .unwrap_or_else(|| TYPE.into())
}

fn words(cluster: &ClusterSpec) -> String {
    let groups = cluster.node_groups.iter();
    let groups = groups.map(|group| format!("{}x{}:{}", group.count, group.gpus_per_node, group.gpu_type));
    groups.collect::<Vec<_>>().join(",")
}

/// The most GPUs in use at one instant; a job that ends then has given its GPUs back.
fn most_at_once(changes: &mut [(f64, i64)]) -> i64 {
    changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (mut now, mut most) = (0, 0);
    for (_, change) in changes {
        now += *change;
        most = most.max(now);
    }
    most
}

/// The least size in which nodes are sold that holds so many GPUs.
fn size_of(most: i64) -> u32 {
    let sizes = [1, 2, 4, 8, 10, 16, 32, 64];
    sizes
        .into_iter()
        .find(|size| i64::from(*size) >= most)
        .unwrap_or(64)
}
