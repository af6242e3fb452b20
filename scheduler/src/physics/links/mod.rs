//! Links between GPUs: what a gang pays for being spread.
//!
//! A cluster is nested: GPU, NVLink island, node, rack, cluster. A synchronous step is compute plus an all-reduce of
//! the gradients, which runs in two rings: one inside each node, one between the nodes.
//!
//! ```text
//! ring(n)    = 2 (n-1)/n bytes / bandwidth + 2 (n-1) latency          n members, slowest link of the ring
//! all-reduce = ring(GPUs of a node) on the node's link + ring(nodes) on the link of the tier that holds all nodes
//! step       = (compute^gamma + all-reduce^gamma)^(1/gamma)           gamma 1 = no overlap, as in Pollux
//! locality   = step at the tightest placement / step at this one      (0, 1]
//! ```
//!
//! With one level this is the standard `2 (K-1)/K bytes / slowest link`. The ring between nodes carries each gradient
//! once per node and not once per GPU, so eight GPUs on two nodes are cheaper than on eight, as measured.
//!
//! # How good it is
//! With 10 Gb/s Ethernet at 80 % and no overlap it meets three of four models on eight spread V100s (Gavel) within 3 %,
//! the fourth within 17 %, and Philly's ResNet-50 within 2 %. It misses what is not a link: a tight placement that starves on CPUs, and neighbours
//! on the same servers. The tests state each miss.
//!
//! # Source
//! Vendor figures of links; the cost of a ring all-reduce is standard (Patarasuk and Yuan, 2009).

use serde::{Deserialize, Serialize};

use crate::error::ConfigError;
use crate::portable_math::pow;

#[cfg(test)]
mod tests;

/// The smallest domain that holds a whole gang.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// One GPU.
    Gpu,
    /// GPUs with direct links.
    Island,
    /// One node.
    Node,
    /// One fast-network domain.
    Rack,
    /// Anywhere.
    Cluster,
}

/// One kind of link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// What an all-reduce gets of it in each direction, GB/s (10^9 bytes).
    pub gb_per_s: f64,
    /// Time of a message without content, us.
    pub latency_us: f64,
}

/// Part of a link's nominal bandwidth that an all-reduce gets. 10 Gb/s Ethernet at 0.8 is what Gavel's spread gangs
/// show; taken for all other links (assumed).
const EFFICIENCY: f64 = 0.8;

/// (name, nominal GB/s in each direction, latency in us). Bandwidths are vendor figures: NVLink per GPU, half of the
/// bidirectional figure; PCIe x16. Latencies are assumed.
const PRESETS: [(&str, f64, f64); 12] = [
    ("nvlink-v100", 150.0, 3.0),
    ("nvlink-a100", 300.0, 3.0),
    ("nvlink-h100", 450.0, 3.0),
    ("pcie-3", 16.0, 5.0),
    ("pcie-4", 32.0, 5.0),
    ("pcie-5", 64.0, 5.0),
    ("ib-edr", 12.5, 5.0),
    ("ib-hdr", 25.0, 5.0),
    ("ib-ndr", 50.0, 5.0),
    ("ethernet-10", 1.25, 30.0),
    ("ethernet-25", 3.125, 30.0),
    ("ethernet-50", 6.25, 30.0),
];

impl Link {
    /// The link of this name, at 80 % of its nominal bandwidth.
    ///
    /// # Errors
    /// A name that is not known.
    pub fn from_name(name: &str) -> Result<Link, ConfigError> {
        let found = PRESETS.iter().find(|(known, ..)| *known == name);
        found
            .map(|(_, nominal, latency_us)| Link {
                gb_per_s: nominal * EFFICIENCY,
                latency_us: *latency_us,
            })
            .ok_or_else(|| {
                let names: Vec<&str> = PRESETS.iter().map(|(known, ..)| *known).collect();
                ConfigError::new("link", name, names.join(", "), "or write gb_per_s and latency_us")
            })
    }

    /// Time of an all-reduce of `bytes` over `members`, `sharers` rings using the link at once, s.
    #[must_use]
    pub fn ring_s(&self, members: u32, bytes: f64, sharers: u32) -> f64 {
        if members <= 1 {
            return 0.0;
        }
        let (hops, members) = (2.0 * f64::from(members - 1), f64::from(members));
        let bandwidth = self.gb_per_s * 1e9 / f64::from(sharers.max(1));
        hops / members * bytes / bandwidth + hops * self.latency_us * 1e-6
    }
}

/// The links of a cluster, tier by tier.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fabric {
    /// Between GPUs of an NVLink island.
    pub island: Link,
    /// Between GPUs of a node.
    pub node: Link,
    /// Between nodes of a rack.
    pub rack: Link,
    /// Between racks.
    pub cluster: Link,
}

/// How a gang lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// GPUs of the gang, 1 or more.
    pub num_gpus: u32,
    /// Nodes that it uses, 1 to `num_gpus`.
    pub num_nodes: u32,
    /// The smallest domain that holds it; [`Tier::Rack`] or [`Tier::Cluster`] with several nodes.
    pub tier: Tier,
}

/// What a step of a job computes and sends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepCost {
    /// Compute on one GPU, s.
    pub compute_s: f64,
    /// Gradients, bytes: 4 per parameter in single precision, 2 in half.
    pub gradient_bytes: f64,
    /// Overlap of the two: 1 = none, 10 = nearly the longer of them.
    pub gamma: f64,
}

impl Fabric {
    /// Philly's fabric: PCIe inside a server, 100 Gb/s InfiniBand in a rack, Ethernet between racks.
    #[must_use]
    pub fn philly() -> Fabric {
        Fabric::nominal(["pcie-3", "pcie-3", "ib-edr", "ethernet-10"])
    }

    /// V100 servers with NVLink and 10 Gb/s Ethernet, as Gavel's measurements were made on.
    #[must_use]
    pub fn gavel() -> Fabric {
        Fabric::nominal(["nvlink-v100", "pcie-3", "ethernet-10", "ethernet-10"])
    }

    /// A100 servers with HDR InfiniBand.
    #[must_use]
    pub(crate) fn a100_hdr() -> Fabric {
        Fabric::nominal(["nvlink-a100", "nvlink-a100", "ib-hdr", "ib-hdr"])
    }

    /// H100 servers with NDR InfiniBand.
    #[must_use]
    pub(crate) fn h100_ndr() -> Fabric {
        Fabric::nominal(["nvlink-h100", "nvlink-h100", "ib-ndr", "ib-ndr"])
    }

    fn nominal(names: [&str; 4]) -> Fabric {
        // Names of this file, held by a test; the fallback is never taken.
        let links = names.map(|name| {
            Link::from_name(name).unwrap_or(Link {
                gb_per_s: 1.0,
                latency_us: 30.0,
            })
        });
        Fabric {
            island: links[0],
            node: links[1],
            rack: links[2],
            cluster: links[3],
        }
    }

    /// The fabric of this name.
    ///
    /// # Errors
    /// A name that is not known.
    pub fn from_name(name: &str) -> Result<Fabric, ConfigError> {
        match name {
            "philly" => Ok(Fabric::philly()),
            "gavel" => Ok(Fabric::gavel()),
            "a100-hdr" => Ok(Fabric::a100_hdr()),
            "h100-ndr" => Ok(Fabric::h100_ndr()),
            _ => Err(ConfigError::new(
                "fabric",
                name,
                "philly, gavel, a100-hdr, h100-ndr",
                "or write island, node, rack and cluster",
            )),
        }
    }

    /// Time of an all-reduce, s. `sharers` is the number of gangs that use the same network links at once, this one
    /// included; links inside a node are not shared.
    #[must_use]
    pub(crate) fn all_reduce_s(&self, spread: Spread, bytes: f64, sharers: u32) -> f64 {
        let num_nodes = spread.num_nodes.max(1);
        let inside = match spread.tier {
            Tier::Gpu | Tier::Island => self.island,
            _ => self.node,
        };
        let between = if spread.tier == Tier::Cluster {
            self.cluster
        } else {
            self.rack
        };
        let on_a_node = spread.num_gpus.div_ceil(num_nodes);
        inside.ring_s(on_a_node, bytes, 1) + between.ring_s(num_nodes, bytes, sharers)
    }

    /// Time of a step, s.
    #[must_use]
    pub fn step_s(&self, cost: StepCost, spread: Spread, sharers: u32) -> f64 {
        let sync = self.all_reduce_s(spread, cost.gradient_bytes, sharers);
        let longer = cost.compute_s.max(sync);
        let powers = pow(cost.compute_s / longer, cost.gamma) + pow(sync / longer, cost.gamma);
        longer * pow(powers, 1.0 / cost.gamma)
    }

    /// Speed at `spread` relative to `tightest`, the best placement the cluster could offer. (0, 1]
    #[must_use]
    pub fn locality(&self, cost: StepCost, spread: Spread, tightest: Spread, sharers: u32) -> f64 {
        let factor = self.step_s(cost, tightest, 1) / self.step_s(cost, spread, sharers);
        factor.min(1.0)
    }

    /// Checks that every link moves something and that no tier is faster than the one inside it.
    ///
    /// # Errors
    /// The first link that is wrong.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let mut inner = f64::INFINITY;
        for (name, link) in [
            ("island", self.island),
            ("node", self.node),
            ("rack", self.rack),
            ("cluster", self.cluster),
        ] {
            let fail = |key: &str, value: f64, allowed: &str, hint: &str| {
                Err(ConfigError::new(
                    format!("fabric.{name}.{key}"),
                    value,
                    allowed,
                    hint,
                ))
            };
            if !(1e-9..=1e9).contains(&link.gb_per_s) {
                let hint = "in 10^9 bytes a second and direction; 100 Gb/s is 12.5";
                return fail("gb_per_s", link.gb_per_s, "1e-9 to 1e9 GB/s", hint);
            }
            if link.gb_per_s > inner {
                let hint = "a wider tier is never faster; repeat the inner link where they are alike";
                return fail("gb_per_s", link.gb_per_s, "at most that of the tier inside", hint);
            }
            if !(0.0..=1e12).contains(&link.latency_us) {
                return fail(
                    "latency_us",
                    link.latency_us,
                    "0 to 1e12",
                    "in millionths of a second",
                );
            }
            inner = link.gb_per_s;
        }
        Ok(())
    }
}

impl StepCost {
    /// Checks the ranges.
    ///
    /// # Errors
    /// The first value out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let checks = [
            (
                "compute_s",
                self.compute_s,
                (1e-12..=1e6).contains(&self.compute_s),
                "1e-12 to 1e6",
            ),
            (
                "gradient_bytes",
                self.gradient_bytes,
                (0.0..=1e18).contains(&self.gradient_bytes),
                "0 to 1e18",
            ),
            ("gamma", self.gamma, (1.0..=10.0).contains(&self.gamma), "1 to 10"),
        ];
        for (key, value, good, allowed) in checks {
            if !good {
                return Err(ConfigError::new(
                    format!("step.{key}"),
                    value,
                    allowed,
                    "gamma 1 = no overlap of compute and all-reduce",
                ));
            }
        }
        Ok(())
    }
}
