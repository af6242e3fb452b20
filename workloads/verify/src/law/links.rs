//! What links make of a step: an all-reduce over the slowest of them, with the links of a gang to itself.

use std::collections::BTreeMap;

use pleach_tables::schedule::Gpus;

use super::goodput::power;
use crate::Facts;
use crate::facts::class::{Fabric, Inside, Step};

/// GPUs for whole tasks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Room {
    pub(super) node: u32,
    pub(super) rack: u32,
    pub(super) all: u32,
}

/// How a gang lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    num_gpus: u32,
    num_domains: u32,
    /// Fewest GPUs, and NICs, in one domain.
    gpus_min: u32,
    nics_min: u32,
    is_one_island: bool,
    is_one_rack: bool,
    /// Part that it gets of its NICs on the fullest uplink that it crosses.
    share: f64,
}

/// What a gang has in one domain, rack or pod.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    num_domains: u32,
    num_gpus: u32,
    num_nics: u32,
}

/// Time of a step, s.
pub(super) fn step_s(fabric: &Fabric, step: &Step, lay: &Spread) -> f64 {
    let sync_s = all_reduce_s(fabric, step.gradient_bytes, lay);
    let longer = step.compute_s.max(sync_s);
    let powers = power(step.compute_s / longer, step.gamma) + power(sync_s / longer, step.gamma);
    longer * power(powers, 1.0 / step.gamma)
}

fn all_reduce_s(fabric: &Fabric, bytes: f64, lay: &Spread) -> f64 {
    if lay.num_gpus <= 1 {
        return 0.0;
    }
    let (inside, between) = (&fabric.inside, &fabric.between);
    let twice = 2.0 * f64::from(lay.num_gpus - 1) / f64::from(lay.num_gpus);
    let volume = twice * bytes;
    let within = inside_gb_per_s(inside, lay.gpus_min, lay.is_one_island);
    let hashed = if lay.is_one_rack {
        1.0
    } else {
        1.0 - between.hash_loss
    };
    let nics = f64::from(lay.nics_min.max(1)) * between.nic_gb_per_s;
    let net = nics * between.tuned * hashed * lay.share;
    let ceiling = between.ceiling_gb_per_s.unwrap_or(f64::INFINITY);
    let gb_per_s = match lay.num_domains {
        0 | 1 => within,
        2 if inside.nodes_per_domain == 1 => (0.93 * within).min(0.92 * twice * net),
        2 => within.min(0.97 * net),
        _ => within.min(0.97 * net).min(ceiling),
    };
    let (latency_us, root_us) = match lay.num_domains {
        0 | 1 => {
            let further = f64::from(lay.num_gpus.max(2) - 2);
            (
                inside.latency_us + inside.latency_per_gpu_us * further,
                inside.root_us + inside.root_per_gpu_us * further,
            )
        }
        num => {
            let further = between.latency_per_domain_us * f64::from(num - 1);
            (between.latency_us + further, between.root_us)
        }
    };
    latency_us * 1e-6 + volume / (gb_per_s * 1e9) + root_us * 1e-6 * (volume / 1e6).sqrt()
}

fn inside_gb_per_s(inside: &Inside, num_gpus: u32, is_one_island: bool) -> f64 {
    if num_gpus <= 1 {
        return f64::INFINITY;
    }
    if !is_one_island {
        return inside.islands_gb_per_s.unwrap_or(inside.ring_gb_per_s);
    }
    match inside.switch {
        Some(switch) if num_gpus >= switch.from_gpus => {
            let of = f64::from(switch.full_gpus.saturating_sub(switch.from_gpus) + 1);
            let part = (f64::from(num_gpus - switch.from_gpus + 1) / of).min(1.0);
            inside.ring_gb_per_s + (switch.gb_per_s - inside.ring_gb_per_s) * part
        }
        _ => inside.ring_gb_per_s,
    }
}

/// How a gang lies that holds these.
pub(super) fn lay(facts: &Facts, fabric: &Fabric, places: &[(u32, Gpus)]) -> Spread {
    let (inside, between) = (&fabric.inside, &fabric.between);
    let mut domains: BTreeMap<u32, Part> = BTreeMap::new();
    let mut racks: BTreeMap<u32, Part> = BTreeMap::new();
    let (per_domain, mut is_one_island) = (inside.nodes_per_domain.max(1), true);
    for (number, gpus) in places {
        let node = &facts.nodes[*number as usize];
        if let Gpus::Which(mask) = gpus {
            let (first, last) = (mask.trailing_zeros(), 63 - mask.leading_zeros());
            is_one_island &= first / node.nvlink_gpus == last / node.nvlink_gpus;
        }
        let at = node.rack_first + (number - node.rack_first) / per_domain * per_domain;
        let num_nics = gpus.num().min(between.nics_per_node);
        let is_new = !domains.contains_key(&at);
        for part in [
            domains.entry(at).or_default(),
            racks.entry(node.rack).or_default(),
        ] {
            part.num_gpus += gpus.num();
            part.num_nics += num_nics;
        }
        racks.entry(node.rack).or_default().num_domains += u32::from(is_new);
    }
    let num_domains = domains.len() as u32;
    let least = |of: fn(&Part) -> u32| domains.values().map(of).min().unwrap_or(1);
    Spread {
        num_gpus: places.iter().map(|(_, gpus)| gpus.num()).sum(),
        num_domains,
        gpus_min: least(|part| part.num_gpus),
        nics_min: least(|part| part.num_nics),
        is_one_island,
        is_one_rack: racks.len() <= 1,
        share: share(facts, fabric, num_domains, racks),
    }
}

/// What the uplinks of racks, and of pods, leave a gang that has them to itself.
fn share(facts: &Facts, fabric: &Fabric, num_domains: u32, racks: BTreeMap<u32, Part>) -> f64 {
    let between = &fabric.between;
    if num_domains < 2 || racks.len() < 2 {
        return 1.0;
    }
    // Of each part the NICs that it wants over those that its uplinks have.
    let fullest = |parts: &BTreeMap<u32, Part>, per_part: u32, over: f64| -> f64 {
        let shares = parts.iter().map(|(number, part)| {
            let elsewhere = f64::from(num_domains - part.num_domains) / f64::from(num_domains - 1);
            let racks = number * per_part..(number + 1) * per_part;
            let nodes = facts
                .nodes
                .iter()
                .filter(|node| racks.contains(&node.rack))
                .count();
            let has = nodes as f64 * f64::from(between.nics_per_node) / over;
            (has / (f64::from(part.num_nics) * elsewhere)).min(1.0)
        });
        shares.fold(1.0, f64::min)
    };
    let of_racks = match between.rack_oversubscription > 1.0 {
        true => fullest(&racks, 1, between.rack_oversubscription),
        false => 1.0,
    };
    let per_pod = between.racks_per_pod;
    if between.pod_oversubscription <= 1.0 || per_pod == 0 {
        return of_racks;
    }
    let mut pods: BTreeMap<u32, Part> = BTreeMap::new();
    for (rack, part) in racks {
        let pod = pods.entry(rack / per_pod).or_default();
        pod.num_domains += part.num_domains;
        pod.num_gpus += part.num_gpus;
        pod.num_nics += part.num_nics;
    }
    match pods.len() {
        0 | 1 => of_racks,
        _ => of_racks.min(fullest(&pods, per_pod, between.pod_oversubscription)),
    }
}

/// How a gang would lie at its tightest on a type: on as few nodes, racks and pods as can be, all but the last of them full.
pub(super) fn tightest(
    facts: &Facts,
    fabric: &Fabric,
    kind: usize,
    room: Room,
    (num_gpus, is_cut): (u32, bool),
) -> Spread {
    let (inside, between) = (&fabric.inside, &fabric.between);
    let in_rack = room.rack.max(room.node);
    let in_domain = room
        .node
        .saturating_mul(inside.nodes_per_domain.max(1))
        .min(in_rack);
    let num_domains = num_gpus.div_ceil(in_domain);
    let rest = num_gpus - (num_domains - 1) * in_domain;
    let num_racks = num_gpus.div_ceil(in_rack);
    let nics = match is_cut {
        true => between.nics_per_node.min(room.node),
        false => between.nics_per_node,
    };
    let full = |num_parts: u32, num_full: u32, over: f64| {
        if num_parts < 2 {
            return 1.0;
        }
        let beyond = f64::from(num_domains.saturating_sub(num_full)) / f64::from(num_domains.max(2) - 1);
        1.0 / (over * beyond).max(1.0)
    };
    let in_full_rack = (in_rack / in_domain).max(1);
    let share_racks = full(num_racks, in_full_rack, between.rack_oversubscription);
    let share_pods = match between.racks_per_pod {
        0 => 1.0,
        per_pod => full(
            num_racks.div_ceil(per_pod),
            in_full_rack.saturating_mul(per_pod),
            between.pod_oversubscription,
        ),
    };
    let islands = facts.nodes.iter().filter(|node| node.gpu_type == kind);
    let nvlink = islands.map(|node| node.nvlink_gpus).min().unwrap_or(0);
    Spread {
        num_gpus,
        num_domains,
        gpus_min: rest,
        nics_min: rest / room.node * nics + (rest % room.node).min(nics),
        // Where islands differ, the smallest: a tightest step that is too long makes the bound larger, never smaller.
        is_one_island: num_gpus.min(room.node) <= nvlink,
        is_one_rack: num_racks == 1,
        share: share_racks.min(share_pods),
    }
}
