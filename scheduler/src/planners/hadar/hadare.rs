//! HadarE: a job is forked onto as many nodes as it can use, so that none idles while a job is left.
//!
//! In every round the nodes, fastest first, are given copies of jobs, each to the job whose utility a copy there raises
//! most. The copies of one job train independently on a node each; its remaining steps are split in proportion to their
//! speeds, so that all end together, and at the end of the round their weights are averaged, which takes a part of it.
//!
//! # Source
//! Hadar's journal version, arXiv 2503.10918, from a secondary description.
//!
//! # Deviations
//! - Speeds are known; the paper estimates the unknown ones by formula and measures them in the first round.
//! - A copy takes the job's gang, or what the node has of it, not the whole node, so nodes of many GPUs hold copies of
//!   several jobs. A copy on fewer GPUs is slower in proportion. A single whole copy is the plain gang.
//! - A job that gets other nodes than before is stopped and pays a restart; a copy is only added where that is worth it,
//!   so the last minutes of a job may leave nodes idle.
//! - Averaging sends and receives the weights over one link: a part of the class's state, or a default, both assumed. What
//!   averaging does to the quality of a model is not modelled.
//! - Jobs that ask for parts of GPUs start where they fit, before the plan.

use serde::{Deserialize, Serialize};

use super::market::Stock;
use super::utility::{Prices, Utility, Wish, wishes};
use crate::cluster::{Cluster, JobState, Placement, Slice};
use crate::error::{ConfigError, PolicyError};
use crate::ids::{ClassId, GpuTypeId, JobId, NodeId, Time};
use crate::physics::mixed::Copies;
use crate::planner::Planner;
use crate::planners::board::{Board, is_on_board};
use crate::planners::layout::{Grant, Layout, apply, start_fractions};
use crate::planners::settings::check;
use crate::planners::timer::RoundTimer;

/// Settings of [`HadarE`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HadarEConfig {
    /// What the schedule is to be good at.
    pub utility: Utility,
    /// Length of a round, s, 1 to 1e9. Published: 360.
    pub round_s: f64,
    /// Scale of the lowest price; larger is cheaper. Above 0. *Assumed.*
    pub eta: f64,
    /// Most copies of one job; none = the number of nodes (published).
    pub copies_max: Option<usize>,
    /// Part of a class's state that is weights, 0 to 1: 4 of the 16 bytes per parameter of Adam in mixed precision.
    /// *Assumed.*
    pub weight_part: f64,
    /// Weights of a class whose state is not known, GB: ResNet-50 in single precision. *Assumed.*
    pub weight_gb: f64,
    /// Bandwidth of averaging, GB/s, above 0: 10 Gb/s Ethernet. *Assumed.*
    pub gb_per_s: f64,
}

impl Default for HadarEConfig {
    fn default() -> HadarEConfig {
        HadarEConfig {
            utility: Utility::EffectiveThroughput,
            round_s: 360.0,
            eta: 1.0,
            copies_max: None,
            weight_part: 0.25,
            weight_gb: 0.1,
            gb_per_s: 1.25,
        }
    }
}

/// The planner.
#[derive(Clone, Debug)]
pub struct HadarE {
    config: HadarEConfig,
    timer: RoundTimer,
}

/// A job and its copies as a plan grows.
#[derive(Clone, Debug)]
struct Fork {
    wish: Wish,
    copies: Copies,
    /// What a start costs, s.
    start_s: f64,
    slices: Placement,
    sum_rates: f64,
    /// Whether a copy is where the job does not run now.
    moves: bool,
    /// Utility with the copies so far; 0 without any.
    utility: f64,
    /// What a copy of so many GPUs of a type would add elsewhere than where the job runs, since the last copy.
    known: Option<(GpuTypeId, u32, f64)>,
}

impl Fork {
    /// Utility with one more copy at a rate.
    fn with(&self, rate: f64, moves: bool) -> f64 {
        let useful = 1.0 - self.copies.consolidation_s(self.slices.len() as u32 + 1) / self.copies.round_s;
        let rate = (self.sum_rates + rate) * useful;
        if rate <= 0.0 {
            return 0.0;
        }
        let start_s = if self.moves || moves { self.start_s } else { 0.0 };
        self.wish.utility(start_s + self.wish.rest_s / rate)
    }
}

/// A copy that a node could take.
#[derive(Clone, Copy, Debug)]
struct Copy {
    fork: usize,
    num_gpus: u32,
    rate: f64,
    /// The slice that the job has there now, if it is still free.
    stays: Option<Slice>,
    /// What it adds to the utility.
    gain: f64,
}

impl HadarE {
    /// From its settings.
    ///
    /// # Errors
    /// A setting out of its range.
    pub fn new(config: HadarEConfig) -> Result<HadarE, ConfigError> {
        let name = "hadare";
        let ok = (1.0..=1e9).contains(&config.round_s);
        check(name, "round_s", config.round_s, ok, "1 to 1e9 s")?;
        let ok = config.eta > 0.0 && config.eta <= 1e9;
        check(name, "eta", config.eta, ok, "above 0, at most 1e9")?;
        let most = config.copies_max.unwrap_or(1);
        check(name, "copies_max", most, most >= 1, "1 or more, or left out")?;
        let ok = (0.0..=1.0).contains(&config.weight_part);
        check(name, "weight_part", config.weight_part, ok, "0 to 1")?;
        let ok = (0.0..=1e6).contains(&config.weight_gb);
        check(name, "weight_gb", config.weight_gb, ok, "0 to 1e6 GB")?;
        let ok = config.gb_per_s > 0.0 && config.gb_per_s <= 1e6;
        check(name, "gb_per_s", config.gb_per_s, ok, "above 0, at most 1e6 GB/s")?;
        Ok(HadarE {
            timer: RoundTimer::new(Time::from_secs_f64(config.round_s)),
            config,
        })
    }

    /// How the copies of a class are brought together.
    #[must_use]
    pub fn copies(&self, cluster: &Cluster, class: ClassId) -> Copies {
        let state_gib = cluster.class(class).state_gib;
        let weight_bytes = if state_gib > 0.0 {
            state_gib * 1_073_741_824.0 * self.config.weight_part
        } else {
            self.config.weight_gb * 1e9
        };
        Copies {
            round_s: self.config.round_s,
            weight_bytes,
            gb_per_s: self.config.gb_per_s,
        }
    }

    fn plan_round(&self, cluster: &Cluster) -> Layout {
        let moves = cluster.capabilities().preemption;
        let takes_part = |id: JobId| {
            let job = cluster.job(id);
            is_on_board(job) && (moves || job.state == JobState::Pending)
        };
        let wishes = wishes(cluster, self.config.utility, takes_part);
        let mut stock = Stock::new(cluster, moves);
        let prices = Prices::new(cluster, &wishes, self.config.eta, self.timer.round());
        let order = nodes_by_speed(cluster, &stock, &wishes);
        let fork = |wish: Wish| Fork {
            copies: self.copies(cluster, wish.class),
            start_s: cluster.resume_cost_s(wish.id),
            slices: Placement::new(),
            sum_rates: 0.0,
            moves: cluster.job(wish.id).state != JobState::Running,
            utility: 0.0,
            known: None,
            wish,
        };
        let mut forks: Vec<Fork> = wishes.into_iter().map(fork).collect();
        let copies_max = self.config.copies_max.unwrap_or(cluster.nodes().len());
        for node in order {
            // Again with smaller copies while there is room and a job that a copy would help.
            while serve(cluster, &mut stock, &prices, node, &mut forks, copies_max) {}
        }
        let started = forks.into_iter().filter(|fork| !fork.slices.is_empty());
        started.map(|fork| (fork.wish.id, grant(fork))).collect()
    }
}

/// Nodes with room, the fastest for the average job first.
fn nodes_by_speed(cluster: &Cluster, stock: &Stock, wishes: &[Wish]) -> Vec<NodeId> {
    let mut value = vec![0.0_f64; cluster.num_types()];
    for wish in wishes {
        for (value, speed) in value.iter_mut().zip(&cluster.class(wish.class).speed) {
            *value += speed;
        }
    }
    let spaces = stock.board.spaces().iter().enumerate();
    let free = spaces.filter(|(_, space)| space.free != 0);
    let mut nodes: Vec<(f64, NodeId)> = free
        .map(|(index, space)| (value[space.gpu_type.index()], NodeId(index as u32)))
        .collect();
    nodes.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    nodes.into_iter().map(|(_, node)| node).collect()
}

/// Gives a node's GPUs to the copies with the largest payoffs, at the sizes that fit now. Whether any was given.
fn serve(
    cluster: &Cluster,
    stock: &mut Stock,
    prices: &Prices,
    node: NodeId,
    forks: &mut [Fork],
    copies_max: usize,
) -> bool {
    if stock.board.spaces()[node.index()].free == 0 {
        return false;
    }
    let mut open = candidates(cluster, &stock.board, node, forks, copies_max);
    let mut any = false;
    loop {
        let price = prices.at(&stock.board, node.index());
        let payoff = |copy: &Copy| copy.gain - price * f64::from(copy.num_gpus);
        let best = (0..open.len()).reduce(|best, at| {
            if payoff(&open[at]) > payoff(&open[best]) {
                at
            } else {
                best
            }
        });
        let Some(best) = best else {
            return any;
        };
        let copy = open.remove(best);
        if give(cluster, stock, node, copy, &mut forks[copy.fork]) {
            any = true;
            open.retain(|copy| copy.num_gpus <= stock.board.hosts(node, forks[copy.fork].wish.shape));
        }
    }
}

/// The copies that a node could take, at most one of each job, and only such that help.
fn candidates(
    cluster: &Cluster,
    board: &Board,
    node: NodeId,
    forks: &mut [Fork],
    copies_max: usize,
) -> Vec<Copy> {
    let kind = board.spaces()[node.index()].gpu_type;
    let mut open = Vec::new();
    for (index, fork) in forks.iter_mut().enumerate() {
        let wish = &fork.wish;
        let is_here = fork.slices.iter().any(|slice| slice.node == node);
        if wish.types >> kind.0 & 1 == 0 || fork.slices.len() >= copies_max || is_here {
            continue;
        }
        let num_gpus = board.hosts(node, wish.shape).min(wish.num_gpus);
        if num_gpus == 0 {
            continue;
        }
        let job = cluster.job(wish.id);
        let here = job.placement.iter().find(|slice| slice.node == node).copied();
        let stays = here.filter(|slice| slice.num_gpus() == num_gpus && board.has(&[*slice], wish.shape));
        let part = f64::from(num_gpus) / f64::from(wish.num_gpus);
        let rate = cluster.class(wish.class).speed[kind.index()] * part;
        let gain = match fork.known {
            Some((known, num, gain)) if stays.is_none() && (known, num) == (kind, num_gpus) => gain,
            _ => fork.with(rate, stays.is_none()) - fork.utility,
        };
        if stays.is_none() {
            fork.known = Some((kind, num_gpus, gain));
        }
        if gain > 0.0 {
            open.push(Copy {
                fork: index,
                num_gpus,
                rate,
                stays,
                gain,
            });
        }
    }
    open
}

/// Gives a node's GPUs to a copy, if they and the quota still suffice; whether they do.
fn give(cluster: &Cluster, stock: &mut Stock, node: NodeId, copy: Copy, fork: &mut Fork) -> bool {
    let shape = fork.wish.shape;
    let fits = stock.board.hosts(node, shape) >= copy.num_gpus;
    if !fits || !stock.has_quota(cluster, &fork.wish, copy.num_gpus) {
        return false;
    }
    let stays = copy.stays.filter(|slice| stock.board.has(&[*slice], shape));
    let slice = stays.unwrap_or_else(|| stock.board.lowest(node, copy.num_gpus));
    stock.take(cluster, &fork.wish, &Placement::from_slice(&[slice]));
    fork.known = None;
    fork.utility = fork.with(copy.rate, stays.is_none());
    fork.moves |= stays.is_none();
    fork.sum_rates += copy.rate;
    fork.slices.push(slice);
    true
}

/// One whole copy is the plain gang. Slices are in the order of the nodes, so that equal plans are equal placements.
fn grant(mut fork: Fork) -> Grant {
    fork.slices.sort_unstable_by_key(|slice| slice.node);
    let is_whole = fork.slices.len() == 1 && fork.slices[0].num_gpus() == fork.wish.num_gpus;
    Grant {
        copies: (!is_whole).then_some(fork.copies),
        ..Grant::gang(fork.slices)
    }
}

impl Planner for HadarE {
    fn name(&self) -> &str {
        "hadare"
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        start_fractions(cluster);
        if self.timer.begins(cluster) {
            let layout = self.plan_round(cluster);
            apply(cluster, &layout);
        }
        Ok(())
    }

    fn wake_at(&self, cluster: &Cluster) -> Option<Time> {
        self.timer.wake_at(cluster)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planners::tests::{multi_type_cluster, preemptive_cluster, running, submit};

    fn hadare(config: HadarEConfig) -> HadarE {
        HadarE::new(config).unwrap()
    }

    fn at(planner: &mut HadarE, cluster: &mut Cluster, now_s: f64) -> Vec<u32> {
        cluster.advance(Time::from_secs_f64(now_s));
        planner.plan(cluster).unwrap();
        cluster.check();
        running(cluster)
    }

    fn nodes_of(cluster: &Cluster, id: u32) -> Vec<u32> {
        let slices = cluster.job(JobId(id)).placement.iter();
        slices.map(|slice| slice.node.0).collect()
    }

    #[test]
    fn a_lone_job_runs_on_every_node_and_its_copies_end_together() {
        // Nodes of one GPU with speeds 4, 2 and 1; averaging costs nothing. 7,000 s of work: 1,000 s.
        let mut cluster = multi_type_cluster(&[4.0, 2.0, 1.0], 1);
        let free = HadarEConfig {
            weight_gb: 0.0,
            ..HadarEConfig::default()
        };
        let mut planner = hadare(free);
        submit(&mut cluster, 1, 7000.0);
        assert_eq!(at(&mut planner, &mut cluster, 0.0), [0]);
        assert_eq!(nodes_of(&cluster, 0), [0, 1, 2]);
        assert_eq!(cluster.job(JobId(0)).expected_finish, Time::from_secs_f64(1000.0));
        // The second round begins with 4,480 s left: it does 360 x (4, 2, 1), and all copies end with it.
        let copies = planner.copies(&cluster, ClassId(0));
        let (rates, mut steps) = ([4.0, 2.0, 1.0], [0.0; 3]);
        assert_eq!(copies.split(4480.0, &rates, &mut steps), 2520.0);
        assert_eq!(steps, [1440.0, 720.0, 360.0]);
        // The last 1,960 s: 280 s on every node.
        copies.split(1960.0, &rates, &mut steps);
        assert_eq!(steps.map(|step| (step * 1e6_f64).round()), [1120e6, 560e6, 280e6]);
    }

    #[test]
    fn averaging_takes_a_part_of_every_round() {
        // Two copies send and receive 9 GB over 1 GB/s: 18 s of 360 s, 5 %.
        let mut cluster = preemptive_cluster(2, 1);
        let config = HadarEConfig {
            weight_gb: 9.0,
            gb_per_s: 1.0,
            ..HadarEConfig::default()
        };
        submit(&mut cluster, 1, 1900.0);
        at(&mut hadare(config), &mut cluster, 0.0);
        assert_eq!(cluster.job(JobId(0)).rate, 2.0 * 0.95);
        // 90 GB: the second copy would cost half of the round. It is not worth it.
        let mut cluster = preemptive_cluster(2, 1);
        let config = HadarEConfig {
            weight_gb: 90.0,
            gb_per_s: 1.0,
            ..HadarEConfig::default()
        };
        submit(&mut cluster, 1, 1900.0);
        at(&mut hadare(config), &mut cluster, 0.0);
        assert_eq!((cluster.job(JobId(0)).rate, cluster.num_free()), (1.0, 1));
    }

    #[test]
    fn every_job_gets_a_node_before_anybody_gets_two_and_no_node_idles() {
        // Four equal nodes, three equal jobs: one of them is forked. Two jobs: two nodes each.
        for (num_jobs, expected) in [(3, vec![1, 1, 2]), (2, vec![2, 2]), (1, vec![4])] {
            let mut cluster = preemptive_cluster(4, 1);
            for _ in 0..num_jobs {
                submit(&mut cluster, 1, 7200.0);
            }
            at(&mut hadare(HadarEConfig::default()), &mut cluster, 0.0);
            let mut copies: Vec<usize> = (0..num_jobs).map(|id| nodes_of(&cluster, id).len()).collect();
            copies.sort_unstable();
            assert_eq!(copies, expected);
            assert_eq!(cluster.num_free(), 0);
        }
    }

    #[test]
    fn copies_can_be_limited_and_a_gang_larger_than_a_node_runs_in_parts() {
        let mut cluster = preemptive_cluster(4, 2);
        let config = HadarEConfig {
            copies_max: Some(3),
            weight_gb: 0.0,
            ..HadarEConfig::default()
        };
        submit(&mut cluster, 4, 7200.0);
        at(&mut hadare(config), &mut cluster, 0.0);
        // Three halves of a gang of 4.
        assert_eq!((cluster.job(JobId(0)).rate, cluster.num_free()), (1.5, 2));
    }

    #[test]
    fn who_keeps_its_nodes_is_not_stopped() {
        let mut cluster = preemptive_cluster(2, 1);
        let mut planner = hadare(HadarEConfig::default());
        submit(&mut cluster, 1, 72_000.0);
        submit(&mut cluster, 1, 72_000.0);
        at(&mut planner, &mut cluster, 0.0);
        for round in 1..10 {
            assert_eq!(at(&mut planner, &mut cluster, 360.0 * f64::from(round)), [0, 1]);
        }
        let stops = [0, 1].map(|id| cluster.job(JobId(id)).num_preemptions);
        assert_eq!(stops, [0, 0]);
        cluster.finish(JobId(1));
        at(&mut planner, &mut cluster, 3600.0);
        assert_eq!(
            nodes_of(&cluster, 0),
            [0, 1],
            "the node that is left is worth a restart"
        );
    }

    #[test]
    fn settings_out_of_range_are_refused_by_name() {
        let config = HadarEConfig {
            gb_per_s: 0.0,
            ..HadarEConfig::default()
        };
        let text = HadarE::new(config).unwrap_err().to_string();
        assert!(text.contains("hadare.gb_per_s"), "{text}");
    }
}
