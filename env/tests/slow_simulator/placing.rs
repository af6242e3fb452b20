//! Where a gang goes and how fast it is there, by looking at every node.

use super::Slow;

/// So many GPUs of a node.
pub(super) type Part = (usize, u32);

impl Slow {
    pub(super) fn nodes_of(&self, kind: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.nodes.len()).filter(move |node| self.nodes[*node].kind == kind)
    }

    /// GPUs of the largest node of a type.
    pub(super) fn widest(&self, kind: usize) -> u32 {
        let sizes = self
            .nodes_of(kind)
            .map(|node| self.nodes[node].owners.len() as u32);
        sizes.max().unwrap()
    }

    pub(super) fn num_free(&self, kind: usize) -> u32 {
        self.nodes_of(kind).map(|node| self.nodes[node].num_free()).sum()
    }

    pub(super) fn num_gpus(&self, kind: usize) -> u32 {
        let of = |node: usize| self.nodes[node].owners.len() as u32;
        self.nodes_of(kind).map(of).sum()
    }

    /// The type on which a running job runs.
    pub(super) fn kind_of(&self, job: usize) -> usize {
        let mut nodes = self.nodes.iter();
        nodes.find(|node| node.owners.contains(&Some(job))).unwrap().kind
    }

    /// GPUs of a node that a job holds.
    pub(super) fn held_on(&self, node: usize, job: usize) -> u32 {
        let owners = self.nodes[node].owners.iter();
        owners.filter(|owner| **owner == Some(job)).count() as u32
    }

    /// Types on which a job could start now: it can use them, they have its gang free, and its tenant has room.
    pub(super) fn fitting_kinds(&self, job: usize) -> Vec<usize> {
        let row = &self.jobs[job];
        (0..self.num_kinds)
            .filter(|kind| self.has_room(job) && row.can_use(*kind) && self.num_free(*kind) >= row.gang)
            .collect()
    }

    /// The type of these on which a job is fastest; the first among equals.
    pub(super) fn fastest(&self, job: usize, kinds: &[usize]) -> Option<usize> {
        let speed = |kind: usize| self.jobs[job].class.speed[kind];
        let best = kinds.iter().map(|kind| speed(*kind)).fold(0.0, f64::max);
        kinds.iter().copied().find(|kind| speed(*kind) == best)
    }

    /// The tightest placement on free GPUs of a type: one node, the fullest that will do; else one rack, the one that
    /// needs the fewest nodes and then the fullest; else the emptiest nodes of all.
    pub(super) fn place(&self, gang: u32, kind: usize) -> Vec<Part> {
        self.place_among(gang, kind, |node| self.nodes[node].num_free())
    }

    /// The same on so many GPUs of each node.
    pub(super) fn place_among(&self, gang: u32, kind: usize, free: impl Fn(usize) -> u32) -> Vec<Part> {
        let all: Vec<Part> = self.nodes_of(kind).map(|node| (node, free(node))).collect();
        let one = all.iter().filter(|(_, free)| *free >= gang);
        if let Some((node, _)) = one.min_by_key(|(node, free)| (*free, *node)) {
            return vec![(*node, gang)];
        }
        let mut racks: Vec<usize> = all.iter().map(|(node, _)| self.nodes[*node].rack).collect();
        racks.dedup();
        let mut best: Option<((usize, u32), Vec<Part>)> = None;
        for rack in racks {
            let within = all.iter().filter(|(node, _)| self.nodes[*node].rack == rack);
            let within: Vec<Part> = within.copied().collect();
            let free: u32 = within.iter().map(|(_, free)| free).sum();
            if free >= gang {
                let placement = fill(within, gang);
                let key = (placement.len(), free);
                if best.as_ref().is_none_or(|other| key < other.0) {
                    best = Some((key, placement));
                }
            }
        }
        best.map_or_else(|| fill(all, gang), |best| best.1)
    }

    /// The placement on what is free once these jobs have gone: on one of their nodes, the one with least to spare; else
    /// on their nodes, the largest part first, and then on the emptiest others.
    pub(super) fn place_over(&self, gang: u32, kind: usize, victims: &[usize]) -> Vec<Part> {
        let left_by = |node: usize| -> u32 { victims.iter().map(|victim| self.held_on(node, *victim)).sum() };
        let theirs = self.nodes_of(kind).filter(|node| left_by(*node) > 0);
        let theirs: Vec<Part> = theirs
            .map(|node| (node, self.nodes[node].num_free() + left_by(node)))
            .collect();
        let one = theirs.iter().filter(|(_, free)| *free >= gang);
        if let Some((node, _)) = one.min_by_key(|(node, free)| (*free, *node)) {
            return vec![(*node, gang)];
        }
        let others = self.nodes_of(kind).filter(|node| left_by(*node) == 0);
        let others: Vec<Part> = others.map(|node| (node, self.nodes[node].num_free())).collect();
        let most: u32 = theirs.iter().map(|(_, free)| free).sum();
        let mut placement = fill(theirs, gang.min(most));
        placement.extend(fill(others, gang.saturating_sub(most)));
        placement
    }

    /// Speed on the type, less what is lost by more nodes or racks than a gang of this size needs in this cluster.
    pub(super) fn rate(&self, job: usize, placement: &[Part]) -> f64 {
        let row = &self.jobs[job];
        let mut racks: Vec<usize> = placement.iter().map(|(node, _)| self.nodes[*node].rack).collect();
        racks.sort_unstable();
        racks.dedup();
        let usable =
            (0..self.num_kinds).filter(|kind| row.can_use(*kind) && self.num_gpus(*kind) >= row.gang);
        let (mut fewest_nodes, mut one_rack_would_do) = (usize::MAX, false);
        for kind in usable {
            let sizes = self
                .nodes_of(kind)
                .map(|node| self.nodes[node].owners.len() as u32);
            fewest_nodes = fewest_nodes.min(row.gang.div_ceil(sizes.max().unwrap()) as usize);
            for rack in self.nodes_of(kind).map(|node| self.nodes[node].rack) {
                let within = self.nodes.iter().filter(|node| node.rack == rack);
                one_rack_would_do |= within.map(|node| node.owners.len() as u32).sum::<u32>() >= row.gang;
            }
        }
        let factor = if racks.len() > 1 && one_rack_would_do {
            row.class.locality.cross_rack
        } else if placement.len() > fewest_nodes {
            row.class.locality.more_nodes
        } else {
            1.0
        };
        row.class.speed[self.nodes[placement[0].0].kind] * factor
    }
}

/// Takes a gang from the nodes with most to give, the first among equals.
fn fill(mut nodes: Vec<Part>, gang: u32) -> Vec<Part> {
    nodes.sort_by_key(|(node, free)| (std::cmp::Reverse(*free), *node));
    let (mut rest, mut placement) = (gang, Vec::new());
    for (node, free) in nodes {
        let take = rest.min(free);
        if take > 0 {
            placement.push((node, take));
            rest -= take;
        }
    }
    assert_eq!(rest, 0, "there was said to be room");
    placement
}
