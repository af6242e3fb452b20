//! The most that a job can do in a second on what it holds, by docs/gpu-model.md: the speed of its class on the GPU type, times what
//! its placement, its size, its cores and its memory leave of it.
//!
//! A bound and no value: neighbours, checkpoints and drifting software make jobs slower than this, and nothing makes them faster.

mod goodput;
mod links;
mod starts;

use std::collections::BTreeMap;

use pleach_tables::schedule::{Gpus, Segment};

use crate::facts::class::{Class, Sensitivity};
use crate::{Facts, Job};
use links::{Room, Spread};

pub use starts::Starts;

/// What a rate may lie above its bound by rounding.
const ROUNDING: f64 = 1e-6;
/// The same where shares of links are kept in whole thousandths of a NIC.
const ROUNDING_OF_LINKS: f64 = 2e-3;
/// No factor of a placement or of an input counts as less.
const FACTOR_MIN: f64 = 1e-3;

/// Class, sizes, cut into tasks, and what comes with a GPU.
type Wish = (usize, [u32; 2], [u32; 3], [u64; 3]);

/// What tight placements have, worked out once for each class, size held, size asked for, cut into tasks, and what comes with a GPU.
#[derive(Default)]
pub(crate) struct Law {
    tightest: BTreeMap<Wish, Tightest>,
    /// Largest ratio of goodput, by class and by GPUs and nodes: those that it holds, and those that it asked for.
    ratios: BTreeMap<(usize, [u32; 4]), f64>,
}

/// How a gang lies where it lies best.
#[derive(Clone, Debug, Default)]
struct Tightest {
    num_nodes: u32,
    is_one_rack: bool,
    /// On each type that could hold it.
    spreads: Vec<Spread>,
}

impl Law {
    /// The largest rate that a segment can have, and how far above it rounding may lie, as a part of it.
    pub(crate) fn rate_max(
        &mut self,
        facts: &Facts,
        job: &Job,
        segment: &Segment,
        places: &[(u32, Gpus)],
    ) -> (f64, f64) {
        let class = &facts.classes[job.class];
        let type_of = |node: u32| facts.nodes[node as usize].gpu_type;
        if segment.copies > 0 {
            let part = |gpus: Gpus| (f64::from(gpus.num()) / f64::from(job.num_gpus)).min(1.0);
            let each = places
                .iter()
                .map(|(node, gpus)| class.speed[type_of(*node)] * part(*gpus));
            return (each.sum(), ROUNDING);
        }
        let speeds = places.iter().map(|(node, _)| class.speed[type_of(*node)]);
        let speed = speeds.fold(0.0, f64::max) * input(facts, class, segment, places);
        let num_gpus = places.iter().map(|(_, gpus)| gpus.num()).sum();
        let Some(elastic) = &class.elastic else {
            let (part, rounding) = self.locality(facts, job, num_gpus, places);
            return (speed * part, rounding);
        };
        if let Some(profile) = &elastic.profile {
            let (num_nodes, asked) = (places.len() as u32, job.num_gpus);
            let asked_nodes = self.tightest(facts, job, asked).num_nodes;
            let key = (job.class, [num_gpus, num_nodes, asked, asked_nodes]);
            let ratio = || goodput::ratio_max(profile, (num_gpus, num_nodes), (asked, asked_nodes));
            return (speed * *self.ratios.entry(key).or_insert_with(ratio), ROUNDING);
        }
        let rate = |num_gpus: u32| {
            let rows = elastic.sizes.iter().flatten().rev();
            let held = rows.copied().find(|(size, _)| *size <= num_gpus);
            held.map_or(0.0, |(_, rate)| rate)
        };
        let asked = rate(job.num_gpus);
        let ratio = if asked > 0.0 { rate(num_gpus) / asked } else { 0.0 };
        let (part, rounding) = self.locality(facts, job, num_gpus, places);
        (speed * ratio * part, rounding)
    }

    /// What a placement leaves of a speed, (0, 1], and what rounding may add to it.
    fn locality(&mut self, facts: &Facts, job: &Job, num_gpus: u32, places: &[(u32, Gpus)]) -> (f64, f64) {
        let class = &facts.classes[job.class];
        let tightest = self.tightest(facts, job, num_gpus);
        if let (Some(fabric), Some(step)) = (&facts.fabric, &class.step) {
            let here = links::step_s(fabric, step, &links::lay(facts, fabric, places));
            let best = tightest
                .spreads
                .iter()
                .map(|lay| links::step_s(fabric, step, lay));
            // A gang that only several types together hold lies nowhere tighter.
            let best = best.reduce(f64::max).unwrap_or(here);
            return ((best / here).clamp(FACTOR_MIN, 1.0), ROUNDING_OF_LINKS);
        }
        let first = facts.nodes[places[0].0 as usize].rack;
        let is_apart = |(node, _): &(u32, Gpus)| facts.nodes[*node as usize].rack != first;
        let part = if tightest.is_one_rack && places.iter().any(is_apart) {
            class.locality.cross_rack
        } else if places.len() > tightest.num_nodes as usize {
            class.locality.more_nodes
        } else {
            1.0
        };
        (part, ROUNDING)
    }

    fn tightest(&mut self, facts: &Facts, job: &Job, num_gpus: u32) -> &Tightest {
        let tasks = [job.gpus_per_task, job.tasks_per_node_max, job.nodes_max];
        let worked_out = || {
            let mut tightest = Tightest {
                num_nodes: u32::MAX,
                ..Tightest::default()
            };
            for kind in (0..facts.gpu_types.len()).filter(|kind| job.types[*kind] && holds(facts, *kind, job))
            {
                let room = room(facts, kind, tasks);
                if room.all < num_gpus || room.node == 0 {
                    continue;
                }
                tightest.num_nodes = tightest.num_nodes.min(num_gpus.div_ceil(room.node));
                tightest.is_one_rack |= room.rack >= num_gpus;
                if let Some(fabric) = &facts.fabric {
                    let is_cut = tasks != [1, 0, 0];
                    let lay = links::tightest(facts, fabric, kind, room, (num_gpus, is_cut));
                    tightest.spreads.push(lay);
                }
            }
            tightest
        };
        let with_each = [job.cpu_milli, job.memory_mib, job.gpu_memory_mib];
        let key = (job.class, [num_gpus, job.num_gpus], tasks, with_each);
        self.tightest.entry(key).or_insert_with(worked_out)
    }
}

/// Whether the empty nodes of a type have the GPUs that a job asks for, each with its memory, and with its cores and host memory.
fn holds(facts: &Facts, kind: usize, job: &Job) -> bool {
    let serves = |has: u64, with_each: u64| match (has, with_each) {
        (0, _) | (_, 0) => u64::MAX,
        _ => has / with_each,
    };
    let of_type = facts.nodes.iter().filter(|node| node.gpu_type == kind);
    let rooms = of_type.map(|node| {
        let served = serves(node.cpu_milli, job.cpu_milli).min(serves(node.memory_mib, job.memory_mib));
        u64::from(node.num_gpus).min(served)
    });
    facts.gpu_types[kind].1 >= job.gpu_memory_mib && rooms.sum::<u64>() >= u64::from(job.num_gpus)
}

/// What the empty nodes of a type have for tasks: GPUs of each, most on a node, most nodes.
fn room(facts: &Facts, kind: usize, [each, most, nodes_max]: [u32; 3]) -> Room {
    let on_node = |num_gpus: u32| {
        let num = num_gpus / each;
        each * if most > 0 { num.min(most) } else { num }
    };
    let most_nodes = |rooms: &mut Vec<u32>| -> u32 {
        rooms.sort_unstable_by(|one, other| other.cmp(one));
        let num = if nodes_max > 0 {
            nodes_max as usize
        } else {
            rooms.len()
        };
        rooms.iter().take(num).sum()
    };
    let mut racks: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for node in facts.nodes.iter().filter(|node| node.gpu_type == kind) {
        racks.entry(node.rack).or_default().push(on_node(node.num_gpus));
    }
    let mut all: Vec<u32> = racks.values().flatten().copied().collect();
    Room {
        node: all.iter().copied().max().unwrap_or(0),
        rack: racks.values_mut().map(most_nodes).max().unwrap_or(0),
        all: most_nodes(&mut all),
    }
}

/// What cores and memory make of a speed: the gang is as fast as on its worst-served node.
fn input(facts: &Facts, class: &Class, segment: &Segment, places: &[(u32, Gpus)]) -> f64 {
    let Some(surface) = &class.sensitivity else {
        return 1.0;
    };
    let speeds = places.iter().map(|(node, _)| {
        let node = &facts.nodes[*node as usize];
        if node.cpu_milli == 0 || node.memory_mib == 0 {
            return 1.0;
        }
        let part = |held: f64, has: f64| {
            if held > 0.0 {
                held
            } else {
                has / f64::from(node.num_gpus)
            }
        };
        let cores = part(segment.cpu_cores, node.cpu_milli as f64 / 1000.0);
        speed_at(
            surface,
            cores,
            part(segment.memory_gib, node.memory_mib as f64 / 1024.0),
        )
    });
    speeds.fold(f64::INFINITY, f64::min).max(FACTOR_MIN)
}

/// Bilinear between levels, level above the last, and in proportion below the first. What storage takes is left out.
fn speed_at(surface: &Sensitivity, cores: f64, memory_gib: f64) -> f64 {
    let width = surface.memory_gib.len();
    let (row, down, least_cores) = between(&surface.cores, cores);
    let (column, right, least_memory) = between(&surface.memory_gib, memory_gib);
    // What lies beyond the last level counts with a part of 0.
    let at = |row: usize, column: usize| surface.speed.get(row * width + column).copied().unwrap_or(0.0);
    let along = |row: usize| at(row, column) * (1.0 - right) + at(row, column + 1) * right;
    (along(row) * (1.0 - down) + along(row + 1) * down) * least_cores * least_memory
}

/// The level at or below a value, how far it is to the next, and the part of the first level that it is.
fn between(levels: &[f64], value: f64) -> (usize, f64, f64) {
    match levels.iter().position(|level| *level > value) {
        Some(0) => (0, 0.0, value / levels[0]),
        Some(next) => {
            let (low, high) = (levels[next - 1], levels[next]);
            (next - 1, (value - low) / (high - low), 1.0)
        }
        None => (levels.len().saturating_sub(1), 0.0, 1.0),
    }
}
