//! Which links between nodes running gangs use, and what that leaves for each of them.
//!
//! Links that can be too narrow for all gangs that use them are a node's NICs, a rack's uplinks and a pod's links to the core. A
//! gang wants of its nodes the NICs that it reaches, and of a rack (or pod) the NICs that it has there times the part of its
//! neighbours that are elsewhere, `(N - k) / (N - 1)` of `N` domains with `k` inside: ranks are taken not to be ordered by rack.
//! Where more is wanted of a link than it has, every gang gets the same part of what it wants. A gang goes at the pace of the
//! narrowest link that it crosses. Wants are whole thousandths of a NIC, so that sums are exact whatever the order in which gangs
//! come and go.

use smallvec::SmallVec;

use crate::cluster::capabilities::Sharing;
use crate::cluster::tables::{Node, Rack};
use crate::ids::JobId;
use crate::physics::links::Fabric;

/// A link and how much a gang wants of it, thousandths of a NIC.
pub(in crate::cluster) type Want = (u32, u64);

/// The links of a cluster and the gangs that use them.
#[derive(Clone, Debug)]
pub(in crate::cluster) struct Links {
    pub(in crate::cluster) fabric: Fabric,
    /// Links that can be short: nodes, then racks, then pods; a kind that never is has none.
    pub(in crate::cluster) links: Vec<Link>,
    pub(in crate::cluster) first_rack: u32,
    pub(in crate::cluster) first_pod: u32,
    pub(in crate::cluster) can_nodes: bool,
    pub(in crate::cluster) can_racks: bool,
    pub(in crate::cluster) can_pods: bool,
}

#[derive(Clone, Debug, Default)]
pub(in crate::cluster) struct Link {
    /// What it has, thousandths of a NIC.
    pub(in crate::cluster) has: u64,
    /// What all gangs want of it.
    pub(in crate::cluster) wanted: u64,
    pub(in crate::cluster) gangs: SmallVec<[JobId; 2]>,
}

impl Link {
    pub(in crate::cluster) fn share(&self) -> f64 {
        part(self.has, self.wanted)
    }
}

/// The part that every gang gets of what it wants, (0, 1].
pub(in crate::cluster) fn part(has: u64, wanted: u64) -> f64 {
    if wanted <= has {
        1.0
    } else {
        has as f64 / wanted as f64
    }
}

impl Links {
    pub(in crate::cluster) fn new(fabric: Fabric, nodes: &[Node], racks: &[Rack], sharing: Sharing) -> Links {
        let between = &fabric.between;
        let nics = u64::from(between.nics_per_node) * 1000;
        // With as many NICs as GPUs only jobs on the same GPU meet at one.
        let can_nodes =
            sharing != Sharing::Off || nodes.iter().any(|node| node.num_gpus > between.nics_per_node);
        let can_racks = between.rack_oversubscription > 1.0 && racks.len() > 1;
        let per_pod = between.racks_per_pod as usize;
        let can_pods = between.pod_oversubscription > 1.0 && per_pod > 0 && racks.len() > per_pod;
        let link = |has: f64| Link {
            has: has as u64,
            ..Link::default()
        };
        let uplinks = |racks: &[Rack], over: f64| {
            let num_nodes: u64 = racks.iter().map(|rack| u64::from(rack.num_nodes)).sum();
            link(((num_nodes * nics) as f64 / over).max(1.0))
        };
        let mut links = Vec::new();
        if can_nodes {
            links.extend(nodes.iter().map(|_| link(nics as f64)));
        }
        let first_rack = links.len() as u32;
        if can_racks {
            let each = racks.chunks(1);
            links.extend(each.map(|rack| uplinks(rack, between.rack_oversubscription)));
        }
        let first_pod = links.len() as u32;
        if can_pods {
            let pods = racks.chunks(per_pod);
            links.extend(pods.map(|pod| uplinks(pod, between.pod_oversubscription)));
        }
        Links {
            fabric,
            links,
            first_rack,
            first_pod,
            can_nodes,
            can_racks,
            can_pods,
        }
    }

    pub(in crate::cluster) fn share(&self, wants: &[Want]) -> f64 {
        let shares = wants.iter().map(|(link, _)| self.links[*link as usize].share());
        shares.fold(1.0, f64::min)
    }

    /// The share that a gang with these wants gets where no other gang uses its links.
    pub(in crate::cluster) fn share_alone(&self, wants: &[Want]) -> f64 {
        let alone = wants
            .iter()
            .map(|(link, wanted)| part(self.links[*link as usize].has, *wanted));
        alone.fold(1.0, f64::min)
    }
}
