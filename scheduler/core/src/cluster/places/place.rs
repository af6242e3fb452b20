//! Where a gang may go: a few placement templates, and what a placement is worth.
//!
//! A gang stays on one GPU type. Its rate there is the class's speed on the type times a locality factor: 1 on the
//! tightest placement that the cluster could offer, less on more nodes or racks than that (the tiers of the Philly
//! study). Ties always go to the lowest node.

use crate::ActionKind;
use crate::cluster::Cluster;
use crate::cluster::tables::{Slice, lowest, num_in};
use crate::cluster_spec::{ModelClass, Tasks};
use crate::ids::{ClassId, GpuTypeId, JobId, NodeId, RackId};

/// How a placement was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Template {
    /// Tightest on the fastest type that has room.
    Fastest,
    /// Tightest on the type where this class gains most over the average class.
    BestValue,
    /// From the most fragmented nodes up, keeping whole nodes free for gangs; may be loose.
    Fragments,
}

/// What a placement amounts to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlacementFacts {
    /// Type of all its GPUs.
    pub gpu_type: GpuTypeId,
    /// Size of the gang.
    pub num_gpus: u32,
    /// Nodes it touches.
    pub num_nodes: u32,
    /// Fewest nodes on which such a gang fits in this cluster.
    pub num_nodes_min: u32,
    /// Racks it touches.
    pub num_racks: u32,
    /// Locality factor, (0, 1].
    pub locality: f64,
    /// Reference seconds of progress per second: speed x locality.
    pub rate: f64,
    /// GPUs that stay free in the touched nodes.
    pub num_left: u32,
}

/// Words of the bit mask that counts the racks of a placement: up to 4096 racks, else pair by pair.
const RACK_WORDS: usize = 64;

impl Cluster {
    /// What a placement is worth to a gang of a class that is cut into such tasks.
    ///
    /// # Panics
    /// If the placement is empty, or mixes GPU types where the cluster cannot.
    #[must_use]
    pub fn facts(&self, class: ClassId, tasks: Tasks, placement: &[Slice]) -> PlacementFacts {
        let first = &self.places.nodes[placement[0].node.index()];
        let (mut gpu_type, mut num_gpus, mut num_left) = (first.gpu_type, 0, 0);
        let speed = &self.facts.classes[class.index()].speed;
        for slice in placement {
            let node = &self.places.nodes[slice.node.index()];
            if node.gpu_type != gpu_type {
                assert!(
                    self.facts.capabilities.can(ActionKind::MixTypes),
                    "a gang stays on one GPU type"
                );
                // The slowest member sets the pace; of two equally slow types the first.
                if speed[node.gpu_type.index()] < speed[gpu_type.index()] {
                    gpu_type = node.gpu_type;
                }
            }
            num_gpus += slice.num_gpus();
            num_left += num_in(node.free & !slice.gpus);
        }
        let num_racks = self.num_racks(placement);
        let num_nodes = placement.len() as u32;
        let (num_nodes_min, one_rack) = self.tightest(self.facts.class_types[class.index()], num_gpus, tasks);
        let by_links = self.locality_by_links(class, placement, num_racks, (num_gpus, tasks));
        let class = &self.facts.classes[class.index()];
        let tiers = || tier_factor(class, (num_nodes, num_racks), (num_nodes_min, one_rack));
        let locality = by_links.unwrap_or_else(tiers);
        let rate = class.speed[gpu_type.index()] * locality;
        PlacementFacts {
            gpu_type,
            num_gpus,
            num_nodes,
            num_nodes_min,
            num_racks,
            locality,
            rate,
            num_left,
        }
    }

    /// The locality factor of so many GPUs, cut as one likes, on so many nodes and racks; none where a fabric says more than these
    /// numbers tell.
    pub(crate) fn factor_of(
        &self,
        class: ClassId,
        num_gpus: u32,
        (num_nodes, num_racks): (u32, u32),
    ) -> Option<f64> {
        let tightest = self.tightest(self.facts.class_types[class.index()], num_gpus, Tasks::ANY);
        let is_by_links = num_gpus > 1 && self.is_by_links(class);
        let class = &self.facts.classes[class.index()];
        (!is_by_links).then(|| tier_factor(class, (num_nodes, num_racks), tightest))
    }

    /// Number of different racks.
    pub(in crate::cluster) fn num_racks(&self, placement: &[Slice]) -> u32 {
        let rack_of = |slice: &Slice| self.places.nodes[slice.node.index()].rack;
        if placement.len() == 1 {
            return 1;
        }
        if self.places.racks.len() <= 64 {
            let seen = |seen, slice| seen | 1_u64 << rack_of(slice).index();
            return placement.iter().fold(0, seen).count_ones();
        }
        if placement.len() <= RACK_WORDS || self.places.racks.len() > RACK_WORDS * 64 {
            let is_new = |at: usize| {
                let rack = rack_of(&placement[at]);
                placement[..at].iter().all(|other| rack_of(other) != rack)
            };
            return (0..placement.len()).map(|at| u32::from(is_new(at))).sum();
        }
        let mut seen = [0_u64; RACK_WORDS];
        for slice in placement {
            let rack = rack_of(slice).index();
            seen[rack / 64] |= 1 << (rack % 64);
        }
        seen.iter().map(|word| word.count_ones()).sum()
    }

    /// Fewest nodes for a gang on any of the types, and whether one rack could hold it.
    pub(in crate::cluster) fn tightest(&self, types: u64, num_gpus: u32, tasks: Tasks) -> (u32, bool) {
        let mut num_nodes = u32::MAX;
        let mut one_rack = false;
        for kind in self.types_in(types) {
            let room = self.type_room(kind, tasks);
            if room.all >= num_gpus && room.node > 0 {
                num_nodes = num_nodes.min(num_gpus.div_ceil(room.node));
                one_rack |= room.rack >= num_gpus;
            }
        }
        (num_nodes, one_rack)
    }

    /// The type that a template prefers among `types`, or none if the mask is empty.
    #[must_use]
    pub fn preferred_type(&self, template: Template, class: ClassId, types: u64) -> Option<GpuTypeId> {
        let speed = &self.facts.classes[class.index()].speed;
        let worth = |kind: GpuTypeId| match template {
            Template::BestValue => speed[kind.index()] / self.facts.type_value[kind.index()].max(1e-12),
            Template::Fastest | Template::Fragments => speed[kind.index()],
        };
        // Strictly better only: the lowest type wins a tie.
        self.types_in(types).fold(None, |best, kind| match best {
            Some(other) if worth(kind) <= worth(other) => best,
            _ => Some(kind),
        })
    }

    /// Writes the placement of a gang, cut as it comes, on one type; false (and nothing written) if it does not fit there.
    pub fn place(&self, template: Template, kind: GpuTypeId, num_gpus: u32, out: &mut Vec<Slice>) -> bool {
        if num_gpus == 0 || self.places.free.num_free[kind.index()] < num_gpus {
            return false;
        }
        if self.facts.capabilities.consolidated {
            return self.place_consolidated(kind, num_gpus, out);
        }
        match template {
            Template::Fragments => self.place_in_order(kind, num_gpus, self.places.free.levels(kind), out),
            Template::Fastest | Template::BestValue => self.place_tight(kind, num_gpus, out),
        }
        true
    }

    pub(in crate::cluster) fn place_tight(&self, kind: GpuTypeId, num_gpus: u32, out: &mut Vec<Slice>) {
        if let Some(node) = self.places.free.best_fit(kind, num_gpus) {
            let gpus = self.places.nodes[node.index()].lowest_free(num_gpus);
            out.push(Slice { node, gpus });
            return;
        }
        // Several nodes: the rack that needs the fewest of them, then the one with the fewest GPUs to spare.
        let mut best: Option<(u32, u32, usize)> = None;
        for (id, rack) in self.places.racks.iter().enumerate() {
            if rack.gpu_type == kind && rack.num_free >= num_gpus {
                let key = (
                    self.nodes_needed(rack.first_node, rack.num_nodes, num_gpus),
                    rack.num_free,
                    id,
                );
                if best.is_none_or(|other| key < other) {
                    best = Some(key);
                }
            }
        }
        match best {
            Some((_, _, id)) => {
                let taken = self.fill_rack(kind, RackId(id as u32), num_gpus, out);
                debug_assert_eq!(taken, num_gpus, "the rack was chosen because it holds the gang");
            }
            None if self.places.links.is_some() => self.place_over_racks(kind, num_gpus, out),
            None => {
                self.place_in_order(kind, num_gpus, self.places.free.levels(kind).rev(), out);
            }
        }
    }

    fn nodes_needed(&self, first: NodeId, num_nodes: u32, num_gpus: u32) -> u32 {
        let (mut histogram, mut largest) = ([0_u32; 65], 0);
        for node in &self.places.nodes[first.index()..first.index() + num_nodes as usize] {
            let free = node.num_free();
            histogram[free as usize] += 1;
            largest = largest.max(free);
        }
        let (mut rest, mut used) = (num_gpus, 0);
        for free in (1..=largest).rev() {
            let here = histogram[free as usize];
            let take = here.min(rest.div_ceil(free));
            used += take;
            rest = rest.saturating_sub(take * free);
            if rest == 0 {
                break;
            }
        }
        used
    }

    pub(in crate::cluster) fn place_in_order(
        &self,
        kind: GpuTypeId,
        num_gpus: u32,
        order: impl Iterator<Item = u32>,
        out: &mut Vec<Slice>,
    ) {
        let mut rest = num_gpus;
        for free in order {
            for node in self.places.free.with_free(kind, free) {
                if rest == 0 {
                    return;
                }
                rest -= self.push_slice(node, rest, out);
            }
        }
        debug_assert_eq!(rest, 0, "the type was checked to hold the gang");
    }

    pub(in crate::cluster) fn push_slice(&self, node: NodeId, wanted: u32, out: &mut Vec<Slice>) -> u32 {
        let row = &self.places.nodes[node.index()];
        let take = wanted.min(row.num_free());
        out.push(Slice {
            node,
            gpus: row.lowest_free(take),
        });
        take
    }

    /// Writes a placement of a gang, cut as it comes, on the free GPUs of one type plus those of `victims`, preferring the victims'
    /// nodes; false if even that is too little.
    pub fn place_over(
        &self,
        kind: GpuTypeId,
        num_gpus: u32,
        victims: &[JobId],
        out: &mut Vec<Slice>,
    ) -> bool {
        let start = out.len();
        // The victims' nodes with all that would be free there, gathered in place at the end of `out`.
        let mut seen = SeenNodes::default();
        for victim in victims {
            for slice in &self.jobs.rows[victim.index()].placement {
                let known = match seen.insert(slice.node) {
                    true => out[start..].iter_mut().find(|other| other.node == slice.node),
                    false => None,
                };
                match known {
                    Some(other) => other.gpus |= slice.gpus,
                    None => {
                        let free = self.places.nodes[slice.node.index()].free;
                        out.push(Slice {
                            node: slice.node,
                            gpus: slice.gpus | free,
                        });
                    }
                }
            }
        }
        let single = out[start..]
            .iter()
            .map(|slice| (slice.num_gpus(), slice.node, slice.gpus));
        let single = single.filter(|(num, ..)| *num >= num_gpus);
        if let Some((_, node, gpus)) = single.min_by_key(|(num, node, _)| (*num, *node)) {
            let best = Slice { node, gpus };
            out.truncate(start);
            out.push(Slice {
                node: best.node,
                gpus: lowest(best.gpus, num_gpus),
            });
            return true;
        }
        sort_most_first(&mut out[start..]);
        let (mut rest, mut kept) = (num_gpus, start);
        while rest > 0 && kept < out.len() {
            let (slice, num) = (out[kept], out[kept].num_gpus());
            if num > rest {
                out[kept].gpus = lowest(slice.gpus, rest);
            }
            rest -= rest.min(num);
            kept += 1;
        }
        out.truncate(kept);
        if rest == 0 {
            return true;
        }
        'fill: for free in self.places.free.levels(kind).rev() {
            for node in self.places.free.with_free(kind, free) {
                if rest == 0 {
                    break 'fill;
                }
                if !(seen.may_hold(node) && out[start..].iter().any(|slice| slice.node == node)) {
                    rest -= self.push_slice(node, rest, out);
                }
            }
        }
        if rest > 0 {
            out.truncate(start);
        }
        rest == 0
    }
}

/// What a class loses on so many nodes and racks, where so few nodes would do and perhaps one rack.
fn tier_factor(class: &ModelClass, (num_nodes, num_racks): (u32, u32), tightest: (u32, bool)) -> f64 {
    if num_racks > 1 && tightest.1 {
        class.locality.cross_rack
    } else if num_nodes > tightest.0 {
        class.locality.more_nodes
    } else {
        1.0
    }
}

/// Nodes that may have been seen, by the last bits of their ids: a node that is not among them need not be looked for.
#[derive(Clone, Copy, Debug, Default)]
struct SeenNodes(u64);

impl SeenNodes {
    fn may_hold(self, node: NodeId) -> bool {
        self.0 >> (node.0 % 64) & 1 == 1
    }

    /// Whether it may have been seen before.
    fn insert(&mut self, node: NodeId) -> bool {
        let before = self.may_hold(node);
        self.0 |= 1 << (node.0 % 64);
        before
    }
}

/// Sorts slices of different nodes by their number of GPUs, most first, then by node. Bits are counted once for each slice: where
/// the processor is not known to do that, it takes longer than a comparison.
fn sort_most_first(slices: &mut [Slice]) {
    let mut counts = [0_u8; 64];
    if slices.len() > counts.len() {
        slices.sort_unstable_by_key(|slice| (std::cmp::Reverse(slice.num_gpus()), slice.node));
        return;
    }
    for end in 0..slices.len() {
        let slice = slices[end];
        let (count, mut at) = (slice.num_gpus() as u8, end);
        while at > 0 && (counts[at - 1], slice.node) < (count, slices[at - 1].node) {
            (counts[at], slices[at]) = (counts[at - 1], slices[at - 1]);
            at -= 1;
        }
        (counts[at], slices[at]) = (count, slice);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::tests::{cluster_of, submit};
    use crate::cluster_spec::{ClusterSpec, LocalityFactors};
    use proptest::prelude::*;

    fn nodes_of(placement: &[Slice]) -> Vec<(u32, u32)> {
        placement
            .iter()
            .map(|slice| (slice.node.0, slice.num_gpus()))
            .collect()
    }

    proptest! {
        #[test]
        fn most_first_is_the_order_of_a_sort_by_count_and_node(
            masks in proptest::collection::vec(1_u64.., 0..70), step in 1_u32..7,
        ) {
            let slice = |(number, gpus)| Slice { node: NodeId(number as u32 * step % 71), gpus };
            let mut slices: Vec<Slice> = masks.into_iter().map(|mask| mask & 0xff | 1).enumerate().map(slice).collect();
            let mut expected = slices.clone();
            expected.sort_by_key(|slice| (std::cmp::Reverse(slice.num_gpus()), slice.node));
            sort_most_first(&mut slices);
            prop_assert_eq!(slices, expected);
        }
    }

    #[test]
    fn tight_takes_the_fullest_node_that_holds_the_gang_and_fragments_takes_the_crumbs() {
        // Three nodes of 4; node 0 has 1 free, node 1 has 2 free, node 2 is empty.
        let mut cluster = cluster_of(&ClusterSpec::uniform(3, 4, 3));
        for (node, gpus) in [(0, 0b111), (1, 0b11)] {
            let job = submit(&mut cluster, u64::count_ones(gpus), 100.0);
            cluster.start(
                job,
                [Slice {
                    node: NodeId(node),
                    gpus,
                }]
                .into_iter()
                .collect(),
            );
        }
        let mut out = Vec::new();
        assert!(cluster.place(Template::Fastest, GpuTypeId(0), 2, &mut out));
        assert_eq!(nodes_of(&out), [(1, 2)]);
        out.clear();
        assert!(cluster.place(Template::Fragments, GpuTypeId(0), 2, &mut out));
        assert_eq!(nodes_of(&out), [(0, 1), (1, 1)]);
        let facts = cluster.facts(ClassId(0), Tasks::ANY, &out);
        assert_eq!((facts.num_nodes, facts.num_nodes_min, facts.num_left), (2, 1, 1));
        assert_eq!(facts.rate, LocalityFactors::PHILLY.more_nodes);
        out.clear();
        // Six GPUs need all but one: the whole node first, then the two, then nothing is left over.
        assert!(cluster.place(Template::Fastest, GpuTypeId(0), 6, &mut out));
        assert_eq!(nodes_of(&out), [(2, 4), (1, 2)]);
        assert!(!cluster.place(Template::Fastest, GpuTypeId(0), 8, &mut out));
    }

    #[test]
    fn a_gang_that_one_rack_could_hold_pays_for_crossing_racks() {
        // Two racks of two 4-GPU nodes; one node in each rack is taken.
        let mut cluster = cluster_of(&ClusterSpec::uniform(4, 4, 2));
        for node in [0, 2] {
            let job = submit(&mut cluster, 4, 100.0);
            cluster.start(
                job,
                [Slice {
                    node: NodeId(node),
                    gpus: 0b1111,
                }]
                .into_iter()
                .collect(),
            );
        }
        let mut out = Vec::new();
        assert!(cluster.place(Template::Fastest, GpuTypeId(0), 8, &mut out));
        assert_eq!(nodes_of(&out), [(1, 4), (3, 4)]);
        let facts = cluster.facts(ClassId(0), Tasks::ANY, &out);
        assert_eq!((facts.num_racks, facts.num_nodes, facts.num_nodes_min), (2, 2, 2));
        assert_eq!(facts.rate, LocalityFactors::PHILLY.cross_rack);
    }

    #[test]
    fn placing_over_victims_prefers_the_node_that_they_empty() {
        let mut cluster = cluster_of(&ClusterSpec::uniform(2, 4, 2));
        let mut victims = Vec::new();
        for (node, gpus) in [(0, 0b1110), (1, 0b0011), (1, 0b0100)] {
            let job = submit(&mut cluster, u64::count_ones(gpus), 100.0);
            cluster.start(
                job,
                [Slice {
                    node: NodeId(node),
                    gpus,
                }]
                .into_iter()
                .collect(),
            );
            victims.push(job);
        }
        let mut out = Vec::new();
        assert!(cluster.place_over(GpuTypeId(0), 3, &victims[1..2], &mut out));
        assert_eq!(nodes_of(&out), [(1, 3)]);
        assert_eq!(
            out[0].gpus, 0b1011,
            "the victim's GPUs 0 and 1, and the free GPU 3"
        );
        out.clear();
        assert!(!cluster.place_over(GpuTypeId(0), 5, &victims[1..2], &mut out));
        assert!(out.is_empty());
    }
}
