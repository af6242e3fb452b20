//! Links between GPUs: what a gang pays for being spread.
//!
//! A gang lies in *domains*: GPUs that NVLink or PCIe joins, that is a node, or a rack of trays with rack-scale NVLink.
//! Domains are joined by NICs, racks of nodes by uplinks, pods of racks by a core. A synchronous step is compute plus an
//! all-reduce of the gradients, which is pipelined: the slowest of its links sets the pace, and the times do not add.
//!
//! ```text
//! W          = 2 (n-1)/n bytes                                   n GPUs
//! all-reduce = latency + W / B + root sqrt(W)                    inside a domain both may grow with n
//! B          = 1 domain:   switch reduction where the gang fills it, else the ring
//!              2 nodes:    min(0.93 inside, 0.92 x 2 (n-1)/n net)         a tree: each byte crosses once
//!              3 or more:  min(inside, 0.97 net, ceiling)
//! net        = NICs that the gang reaches x GB/s x tuned x share of the links that it crosses, less hash_loss beyond a rack
//! step       = (compute^gamma + all-reduce^gamma)^(1/gamma)      gamma 1 = no overlap, as in Pollux
//! locality   = step at the tightest placement / step at this one (0, 1]
//! ```
//!
//! # How good it is
//! `env/tests/physics_data.rs` holds it to 182 published measurements: RMS of the logarithm of time 4.8 % from 16 MiB up, 8.4 % from
//! 1 MiB up. With 10 Gb/s Ethernet at 82.5 % and no overlap it meets three of four models on eight spread V100s (Gavel) within
//! 3 %. It misses what is not a link: a tight placement that starves on CPUs, and neighbours on the same servers. The tests
//! state each miss.
//!
//! # Source
//! Constants fitted to public nccl-tests curves (`presets.rs` names them); the volume of a ring all-reduce is standard
//! (Patarasuk and Yuan, 2009).

use serde::Serialize;

use crate::portable_math::pow;
use crate::settings;

mod check;
mod collectives;
#[macro_use]
mod file;
#[cfg(test)]
mod measured_tests;
mod presets;
#[cfg(test)]
mod tests;

/// Part of the inner bandwidth, and of the NICs', that a tree over two nodes gets; part of the NICs' that a ring over more
/// gets. *Source*: fitted to nccl-tests on 2 to 248 nodes.
const TREE_INSIDE: f64 = 0.93;
const TREE_NET: f64 = 0.92;
const RING_NET: f64 = 0.97;

/// The links of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fabric {
    /// Inside a domain.
    pub inside: Inside,
    /// Between domains.
    pub between: Between,
}

links! {
    "inside" as InsideFile,
    /// Links inside a domain: a node, or the nodes that one NVLink switch joins.
    pub struct Inside {
        /// What a ring over direct links gets, GB/s (10^9 bytes) in each direction; 100 Gb/s is 12.5.
        ring_gb_per_s: f64 = needed, in Fabric::GB_PER_S_MIN..=Fabric::GB_PER_S_MAX;
        /// What switches that add up (NVLink SHARP) get, GB/s, at least the ring's; none: they only pass on.
        #[serde(skip_serializing_if = "Option::is_none")]
        switch: Option<Switch> = optional;
        /// What a ring gets over several NVLink islands of a node, GB/s, at most the ring's; none: as inside an island.
        #[serde(skip_serializing_if = "Option::is_none")]
        islands_gb_per_s: Option<f64> = optional, in Fabric::GB_PER_S_MIN..=Fabric::GB_PER_S_MAX;
        /// Nodes of one domain: 18 trays of 4 GPUs are an NVLink domain of 72, 1 where NVLink ends at the node. Counted from the
        /// first node of a rack.
        nodes_per_domain: u32 = or(1), in 1..=64;
        /// Time of an all-reduce without content over two GPUs, us.
        latency_us: f64 = needed, in 0.0..=1e9;
        /// What each further GPU adds to that, us: rings and trees take more steps over a rack than over a tray.
        #[serde(skip_serializing_if = "is_zero")]
        latency_per_gpu_us: f64 = or(0.0), in 0.0..=1e9;
        /// What grows with the root of the volume, us per root of a MB; over two GPUs.
        root_us: f64 = or(0.0), in 0.0..=1e9;
        /// What each further GPU adds to that, us per root of a MB.
        #[serde(skip_serializing_if = "is_zero")]
        root_per_gpu_us: f64 = or(0.0), in 0.0..=1e9;
    }
}

#[expect(clippy::trivially_copy_pass_by_ref)]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

settings! {
    /// Switches that add up what they pass on.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Switch: required {
        /// What an all-reduce over the whole domain gets, GB/s in each direction.
        pub gb_per_s: f64, in Fabric::GB_PER_S_MIN..=Fabric::GB_PER_S_MAX;
        /// Fewest GPUs of a domain with which it is used, for example 5.
        pub from_gpus: u32, in 2..=4096;
        /// GPUs with which it reaches its figure, at least `from_gpus`, for example 8; linear from the ring's between.
        pub full_gpus: u32, in 2..=4096;
    }
}

links! {
    "between" as BetweenFile,
    /// Links between domains.
    pub struct Between {
        /// NICs (rails) of a node, at most its GPUs; nodes of today have one for each.
        nics_per_node: u32 = needed, in 1..=64;
        /// Of one NIC, GB/s (10^9 bytes) in each direction; 100 Gb/s is 12.5.
        nic_gb_per_s: f64 = needed, in Fabric::GB_PER_S_MIN..=Fabric::GB_PER_S_MAX;
        /// What three and more domains have been measured to reach whatever their NICs, GB/s; none: no such limit.
        #[serde(skip_serializing_if = "Option::is_none")]
        ceiling_gb_per_s: Option<f64> = optional, in Fabric::GB_PER_S_MIN..=Fabric::GB_PER_S_MAX;
        /// Time of an all-reduce without content over two domains, less the next, us.
        latency_us: f64 = needed, in 0.0..=1e9;
        /// What each domain beyond the first adds to that, us.
        latency_per_domain_us: f64 = or(0.0), in 0.0..=1e9;
        /// What grows with the root of the volume, us per root of a MB.
        root_us: f64 = or(0.0), in 0.0..=1e9;
        /// NICs of a rack's nodes over its uplinks; 1 = every node can send at full speed to other racks.
        rack_oversubscription: f64 = or(1.0), in 1.0..=1000.0;
        /// Racks of one pod, consecutive ones; 0 = all racks of the cluster.
        racks_per_pod: u32 = or(0);
        /// NICs of a pod's nodes over its links to the core; 1 = not over-subscribed.
        pod_oversubscription: f64 = or(1.0), in 1.0..=1000.0;
        /// Part of the network's bandwidth that the site's software gets; 1 = as measured on tuned clusters, 0.6 = untuned.
        tuned: f64 = or(1.0), in 0.01..=1.0;
        /// Part that flows lose beyond a rack because they meet on the same paths: up to 0.3 on plain Ethernet, 0 with
        /// adaptive routing.
        hash_loss: f64 = or(0.0), in 0.0..=0.9;
    }
}

/// How a gang lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// GPUs of the gang, 1 or more.
    pub num_gpus: u32,
    /// Domains that it uses, 1 to `num_gpus`.
    pub num_domains: u32,
    /// Fewest of its GPUs in one of its domains.
    pub domain_gpus_min: u32,
    /// Fewest NICs that it reaches in one of its domains.
    pub domain_nics_min: u32,
    /// Whether one NVLink island holds what it has in a domain.
    pub is_one_island: bool,
    /// Whether it lies in one rack.
    pub is_one_rack: bool,
    /// Part that it gets of its NICs' bandwidth on the fullest link that it crosses, (0, 1].
    pub share: f64,
}

settings! {
    /// What a step of a job computes and sends.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct StepCost: required {
        /// Compute on one GPU, s.
        pub compute_s: f64, in 1e-12..=1e6;
        /// Gradients, bytes: 4 per parameter in single precision, 2 in half.
        pub gradient_bytes: f64, in 0.0..=1e18;
        /// Overlap of the two: 1 = none, 10 = nearly the longer of them.
        pub gamma: f64, in 1.0..=10.0;
    }
}

impl Inside {
    /// Bandwidth of an all-reduce inside one domain over so many of its GPUs, GB/s.
    fn gb_per_s(&self, num_gpus: u32, is_one_island: bool) -> f64 {
        match self.switch {
            _ if num_gpus <= 1 => f64::INFINITY,
            _ if !is_one_island => self.islands_gb_per_s.unwrap_or(self.ring_gb_per_s),
            Some(switch) if num_gpus >= switch.from_gpus => {
                let steps = f64::from(switch.full_gpus - switch.from_gpus + 1);
                let part = f64::from(num_gpus - switch.from_gpus + 1) / steps;
                self.ring_gb_per_s + (switch.gb_per_s - self.ring_gb_per_s) * part.min(1.0)
            }
            _ => self.ring_gb_per_s,
        }
    }
}

impl Fabric {
    /// Least bandwidth that is believed, GB/s: an hour for 3.6 GB.
    pub const GB_PER_S_MIN: f64 = 1e-3;
    /// Most bandwidth that is believed, GB/s: a hundred times that of an NVLink of 2025.
    pub const GB_PER_S_MAX: f64 = 1e5;

    /// Time of an all-reduce, s.
    #[must_use]
    pub fn all_reduce_s(&self, spread: Spread, bytes: f64) -> f64 {
        if spread.num_gpus <= 1 {
            return 0.0;
        }
        let num_gpus = f64::from(spread.num_gpus);
        let twice = 2.0 * (num_gpus - 1.0) / num_gpus;
        let volume = twice * bytes;
        let inside = &self.inside;
        let within = inside.gb_per_s(spread.domain_gpus_min, spread.is_one_island);
        let gb_per_s = if spread.num_domains <= 1 {
            within
        } else {
            let net = self.net_gb_per_s(spread);
            match spread.num_domains {
                // Trees pair nodes; between racks of trays the ring was measured.
                2 if inside.nodes_per_domain == 1 => (TREE_INSIDE * within).min(TREE_NET * twice * net),
                2 => within.min(RING_NET * net),
                _ => within
                    .min(RING_NET * net)
                    .min(self.between.ceiling_gb_per_s.unwrap_or(f64::INFINITY)),
            }
        };
        let (latency_us, root_us) = self.delays_us(spread);
        latency_us * 1e-6 + volume / (gb_per_s * 1e9) + root_us * 1e-6 * (volume / 1e6).sqrt()
    }

    /// What the gang gets of the NICs that it reaches.
    fn net_gb_per_s(&self, spread: Spread) -> f64 {
        let between = &self.between;
        let hashed = if spread.is_one_rack {
            1.0
        } else {
            1.0 - between.hash_loss
        };
        let nics = f64::from(spread.domain_nics_min.max(1)) * between.nic_gb_per_s;
        nics * between.tuned * hashed * spread.share
    }

    /// Latency, us, and what grows with the root of the volume, us per root of a MB.
    fn delays_us(&self, spread: Spread) -> (f64, f64) {
        let (inside, between) = (&self.inside, &self.between);
        if spread.num_domains <= 1 {
            let further = f64::from(spread.num_gpus.saturating_sub(2));
            return (
                inside.latency_us + inside.latency_per_gpu_us * further,
                inside.root_us + inside.root_per_gpu_us * further,
            );
        }
        let further = f64::from(spread.num_domains - 1);
        let latency_us = between.latency_us + between.latency_per_domain_us * further;
        (latency_us, between.root_us)
    }

    /// Time of a step, s.
    #[must_use]
    pub fn step_s(&self, cost: StepCost, spread: Spread) -> f64 {
        let sync = self.all_reduce_s(spread, cost.gradient_bytes);
        if cost.gamma == 1.0 {
            return cost.compute_s + sync;
        }
        let longer = cost.compute_s.max(sync);
        let powers = pow(cost.compute_s / longer, cost.gamma) + pow(sync / longer, cost.gamma);
        longer * pow(powers, 1.0 / cost.gamma)
    }
}
