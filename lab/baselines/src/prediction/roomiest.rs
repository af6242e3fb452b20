//! Where A-SRPT puts a gang: on the roomiest nodes, its members where they talk least across nodes.

use pleach_scheduler::cluster::{Cluster, Placement, Slice, Template};
use pleach_scheduler::{JobId, NodeId};

use super::heavy_edge::{JobGraph, heavy_edge};
use crate::shared::what_if::FreeResources;

/// The heavy-edge placement of a gang on the nodes of its fastest type that have most GPUs free.
pub(super) fn place(cluster: &Cluster, free: &FreeResources, id: JobId) -> Option<Placement> {
    let job = cluster.job(id);
    let class = job.request.class;
    let kind = cluster.preferred_type(
        Template::Fastest,
        class,
        cluster.fitting_types(cluster.demand(id)),
    )?;
    let shape = cluster.shape(job.shape);
    let nodes = free.nodes().iter().enumerate();
    let of_type = nodes.filter(|(_, node)| node.gpu_type == kind && node.free != 0);
    let mut rooms: Vec<(u32, NodeId)> = of_type
        .map(|(index, _)| NodeId(index as u32))
        .map(|node| (free.hosts(node, shape), node))
        .collect();
    // The roomiest nodes that it takes to hold the gang; the others would stay empty.
    rooms.sort_unstable_by_key(|(room, node)| (std::cmp::Reverse(*room), *node));
    let num_gpus = job.request.num_gpus;
    let mut total = 0;
    let needed = rooms.iter().take_while(|(room, _)| {
        let more = total < num_gpus;
        total += room;
        more
    });
    let num_needed = needed.count();
    if num_needed > shape.tasks.most_nodes() {
        return None;
    }
    rooms.truncate(num_needed);
    let counts: Vec<u32> = rooms.iter().map(|(room, _)| *room).collect();
    let graph = if cluster.class(class).step.is_some() {
        JobGraph::Ring
    } else {
        JobGraph::Clique
    };
    let members = heavy_edge(graph, num_gpus as usize, &counts)?;
    let slice = |(index, (_, node)): (usize, &(u32, NodeId))| {
        let num = members.iter().filter(|other| **other == index).count() as u32;
        (num > 0).then(|| free.lowest(*node, num))
    };
    let slices: Vec<Slice> = rooms.iter().enumerate().filter_map(slice).collect();
    Some(Placement::from_slice(&slices))
}
