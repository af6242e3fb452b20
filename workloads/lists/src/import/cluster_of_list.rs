//! The cluster that a list's jobs ran on or were meant for, and the classes of its jobs.

use pleach_scheduler::cluster_spec::{ClusterSpec, GpuTypeSpec, LocalityFactors, ModelClass, NodeGroup};

use super::draft::{RawRow, Site, SiteOf, Tenancy};
use super::tenants::{any_class, single_tenant, tenancy_for};

/// Nodes that share the fast network where a list does not say. *Assumed*.
pub(super) const NODES_PER_RACK: u32 = 16;

/// Equal nodes of a published cluster.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nodes<'a> {
    pub count: u32,
    pub gpus_per_node: u32,
    pub gpu_type: &'a str,
    /// Per node; 0 = not published.
    pub cpu_cores: f64,
    /// Per node, GiB; 0 = not published.
    pub memory_gib: f64,
    pub nodes_per_rack: u32,
}

/// A cluster with one owner, of the GPU types (name, memory in GiB) and nodes given.
pub(super) fn cluster_of(gpu_types: &[(&str, f64)], nodes: &[Nodes<'_>]) -> ClusterSpec {
    let gpu_types = gpu_types.iter().map(|(name, memory_gib)| GpuTypeSpec {
        name: (*name).into(),
        memory_gib: *memory_gib,
        mig: None,
    });
    let groups = nodes.iter().map(|nodes| NodeGroup {
        count: nodes.count,
        gpus_per_node: nodes.gpus_per_node,
        gpu_type: nodes.gpu_type.into(),
        nodes_per_rack: nodes.nodes_per_rack,
        cpu_cores: nodes.cpu_cores,
        memory_gib: nodes.memory_gib,
        ..NodeGroup::default()
    });
    let num_gpus = nodes.iter().fold(0_u32, |sum, nodes| {
        sum.saturating_add(nodes.count.saturating_mul(nodes.gpus_per_node))
    });
    ClusterSpec {
        gpu_types: gpu_types.collect(),
        node_groups: groups.collect(),
        tenants: vec![single_tenant(num_gpus)],
        borrowing: true,
        ..ClusterSpec::default()
    }
}

/// Mean use of the cluster that a list's jobs shall offer where its size was not published. *Assumed*: between Philly's
/// 0.64 and Venus's 0.78.
const LOAD: f64 = 0.7;

/// The smallest cluster of `nodes` (whose count is ignored) that holds the largest gang and keeps the mean demand at or
/// below [`LOAD`], and a note that says so.
pub(super) fn sized_for(rows: &[RawRow], gpu_type: (&str, f64), nodes: Nodes<'_>) -> (ClusterSpec, String) {
    let demand: f64 = rows
        .iter()
        .map(|row| f64::from(row.num_gpus) * row.run_time_s)
        .sum();
    let span_s = match (rows.first(), rows.last()) {
        (Some(first), Some(last)) => (last.submit - first.submit).as_secs_f64().max(1.0),
        _ => 1.0,
    };
    let largest = rows.iter().map(|row| row.num_gpus).max().unwrap_or(1);
    // Bounded so that a list of absurd gangs is excluded by the fit instead of building an absurd cluster.
    let wanted = (demand / span_s / LOAD).max(f64::from(largest)).min(100_000.0);
    let per_node = nodes.gpus_per_node;
    let count = (wanted / f64::from(per_node)).ceil().max(1.0) as u32;
    let note = format!(
        "cluster: sizes were not published; {count} nodes x {per_node} GPUs make the mean demand at most {LOAD} of the \
         capacity (assumed)"
    );
    (cluster_of(&[gpu_type], &[Nodes { count, ..nodes }]), note)
}

/// A list's own cluster with a note on its source, from the rows that are left.
pub(super) type OwnCluster = Box<dyn Fn(&[RawRow]) -> (ClusterSpec, String)>;

/// What a format says about where its jobs run.
pub(super) struct Plan {
    pub own: OwnCluster,
    /// What a loose placement costs, whatever the class; every class is equally fast on every GPU type.
    pub locality: LocalityFactors,
    /// Tenants of a known size, GPUs, where the list names tenants; none: it does not.
    pub tenants: Option<Vec<(String, u32)>>,
    pub notes: Vec<String>,
}

impl Plan {
    /// A published cluster of one kind of job and no tenants.
    pub(super) fn of(cluster: ClusterSpec, note: &str) -> Plan {
        let note = note.to_owned();
        Plan::sized(Box::new(move |_| (cluster.clone(), note.clone())))
    }

    /// A cluster that depends on the rows.
    pub(super) fn sized(own: OwnCluster) -> Plan {
        Plan {
            own,
            locality: LocalityFactors::PHILLY,
            tenants: None,
            notes: Vec::new(),
        }
    }

    /// The site; a cluster given by the caller goes before the list's own. A list without classes gets one.
    pub(super) fn site(self, given: &Option<ClusterSpec>) -> SiteOf {
        let given = given.clone();
        Box::new(move |rows, class_names| {
            let (cluster, note) = match &given {
                Some(cluster) => (cluster.clone(), "cluster: given by the caller".to_owned()),
                None => (self.own)(rows),
            };
            let classes = if class_names.is_empty() {
                let mut any = any_class(&cluster);
                any.locality = self.locality;
                vec![any]
            } else {
                let class = |name: &String| ModelClass {
                    name: name.clone(),
                    speed: vec![1.0; cluster.gpu_types.len()],
                    locality: self.locality,
                    ..ModelClass::default()
                };
                class_names.iter().map(class).collect()
            };
            let tenancy = match &self.tenants {
                Some(known) => tenancy_for(&cluster, given.is_some(), known),
                None => Tenancy::Single,
            };
            let mut notes = vec![note];
            notes.extend(self.notes.iter().cloned());
            Site {
                cluster,
                classes,
                tenancy,
                notes,
            }
        })
    }
}
