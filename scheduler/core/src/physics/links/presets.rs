//! Fabrics by name.
//!
//! # Source
//! Constants inside nodes: nccl-tests curves of A100, H100, H200, B200 and GB200 in stas00/ml-engineering (network README),
//! Azure/AI-benchmarking-guide, coreweave/nccl-tests and lixueduan.com. Between nodes: coreweave/nccl-tests, NVIDIA/nccl-tests
//! issues 119 and 283, NVIDIA/nccl issue 527, aws-ofi-nccl issue 19. NICs and tiers: NVIDIA's DGX SuperPOD reference pages,
//! Meta's and Alibaba's papers on their networks, and the vendors' pages of cloud instances. docs/gpu-model.md has the table.

use super::{Between, Fabric, Inside, Switch};
use crate::problem::Problem;

/// (ring, switch and its fewest and most GPUs, latency, root) of a node.
const fn node(ring: f64, switch: Option<(f64, u32, u32)>, latency_us: f64, root_us: f64) -> Inside {
    let switch = match switch {
        Some((gb_per_s, from_gpus, full_gpus)) => Some(Switch {
            gb_per_s,
            from_gpus,
            full_gpus,
        }),
        None => None,
    };
    Inside {
        ring_gb_per_s: ring,
        switch,
        islands_gb_per_s: None,
        nodes_per_domain: 1,
        latency_us,
        latency_per_gpu_us: 0.0,
        root_us,
        root_per_gpu_us: 0.0,
    }
}

const A100: Inside = node(243.0, None, 38.0, 16.5);
/// As [`A100`] in a p4d: ring 231 measured.
const A100_CLOUD: Inside = node(231.0, None, 38.0, 16.5);
const H100: Inside = node(367.0, Some((491.0, 5, 8)), 33.0, 5.3);
const B200: Inside = node(690.0, Some((866.0, 6, 8)), 44.0, 8.5);
/// 18 trays of 4. Fitted to one tray (4 GPUs, Azure) and to one rack (72, CoreWeave); `measured_tests.rs` has the points, and
/// others. From 6 GPUs on the switches are used, as in [`B200`] (assumed); on 8, two trays, an all-reduce gets 811 GB/s.
const NVL72: Inside = Inside {
    nodes_per_domain: 18,
    latency_per_gpu_us: 1.1,
    root_per_gpu_us: 0.19,
    ..node(690.0, Some((940.0, 6, 12)), 13.0, 2.6)
};
/// Ring measured on a p3dn; latency and root as [`A100`] (assumed).
const V100: Inside = node(130.0, None, 38.0, 16.5);
/// PCIe 3 x16 at 80 % (assumed); latency and root as [`A100`] (assumed).
const PCIE_3: Inside = node(12.8, None, 38.0, 16.5);
/// T4 behind PCIe 3: inferred.
const T4: Inside = node(6.0, None, 38.0, 16.5);

/// (latency, latency of a further domain, root), us.
type Times = (f64, f64, f64);
const INFINIBAND: Times = (50.0, 2.0, 8.0);
const EFA: Times = (340.0, 4.0, 18.0);
const RACKS_OF_TRAYS: Times = (440.0, 200.0, 14.0);
/// Messages of 30 us twice for each further node; no root (assumed).
const ETHERNET: Times = (0.0, 60.0, 0.0);

/// NICs without over-subscription.
const fn nics(nics_per_node: u32, nic_gb_per_s: f64, times: Times) -> Between {
    Between {
        nics_per_node,
        nic_gb_per_s,
        ceiling_gb_per_s: None,
        latency_us: times.0,
        latency_per_domain_us: times.1,
        root_us: times.2,
        rack_oversubscription: 1.0,
        racks_per_pod: 0,
        pod_oversubscription: 1.0,
        tuned: 1.0,
        hash_loss: 0.0,
    }
}

/// A tray's NICs, and what 20 racks were measured to reach.
const fn trays(nic_gb_per_s: f64) -> Between {
    Between {
        ceiling_gb_per_s: Some(445.0),
        ..nics(4, nic_gb_per_s, RACKS_OF_TRAYS)
    }
}

/// Tiers above the racks.
const fn tiers(below: Between, rack: f64, racks_per_pod: u32, pod: f64) -> Between {
    Between {
        rack_oversubscription: rack,
        racks_per_pod,
        pod_oversubscription: pod,
        ..below
    }
}

/// The network of untuned or slow software.
const fn tuned(below: Between, tuned: f64) -> Between {
    Between { tuned, ..below }
}

const PRESETS: [(&str, Inside, Between); 25] = [
    ("dgx-a100-hdr", A100, nics(8, 25.0, INFINIBAND)),
    ("hgx-h100-ndr", H100, nics(8, 50.0, INFINIBAND)),
    ("h200-ndr", H100, nics(8, 50.0, INFINIBAND)),
    ("b200-ndr", B200, nics(8, 50.0, INFINIBAND)),
    ("b300-xdr", B200, nics(8, 100.0, INFINIBAND)),
    ("gb200-nvl72", NVL72, trays(50.0)),
    ("gb300-nvl72", NVL72, trays(100.0)),
    // 50 GB/s nominal, 42 of them in an all-reduce.
    ("aws-p4d", A100_CLOUD, tuned(nics(4, 12.5, EFA), 0.87)),
    ("aws-p5", H100, nics(8, 50.0, EFA)),
    ("aws-p5en", H100, nics(8, 50.0, EFA)),
    ("aws-p6-b200", B200, nics(8, 50.0, EFA)),
    ("gcp-a3-high", H100, nics(4, 25.0, EFA)),
    ("gcp-a3-mega", H100, nics(8, 25.0, EFA)),
    ("gcp-a3-ultra", H100, nics(8, 50.0, INFINIBAND)),
    ("azure-nd-a100-v4", A100_CLOUD, nics(8, 25.0, INFINIBAND)),
    ("azure-nd-h100-v5", H100, nics(8, 50.0, INFINIBAND)),
    // Racks of two nodes; 192 racks without blocking, 7:1 above.
    ("meta-24k", H100, tiers(nics(8, 50.0, INFINIBAND), 1.0, 192, 7.0)),
    // Segments of 1,024 GPUs as racks, 15 to a pod, 1.067:1 inside and 15:1 at the core.
    (
        "alibaba-hpn",
        H100,
        tiers(nics(8, 50.0, INFINIBAND), 1.067, 15, 15.0),
    ),
    // 10 GB/s on two nodes, 6 to 8 on 8 to 32.
    ("v100-p3dn", V100, tuned(nics(1, 12.5, EFA), 0.6)),
    ("t4-pcie", T4, nics(1, 3.125, ETHERNET)),
    // V100 nodes on 10 Gb/s Ethernet of which 82.5 % are used, as Gavel's spread gangs show.
    (
        "gavel",
        Inside {
            islands_gb_per_s: Some(12.8),
            ..V100
        },
        tuned(nics(1, 1.25, ETHERNET), 0.825),
    ),
    // Acme's Seren (NSDI'24): eight A100 and one 200 Gb/s InfiniBand of each node for its jobs; 2:1 above racks is assumed.
    ("acme-seren", A100, tiers(nics(1, 25.0, INFINIBAND), 2.0, 0, 1.0)),
    // V100 with NVLink and one 100 Gb/s InfiniBand a node; 2:1 above racks is assumed.
    ("v100-edr", V100, tiers(nics(1, 12.5, INFINIBAND), 2.0, 0, 1.0)),
    // Clouds of small GPUs: 25 Gb/s Ethernet a node, 4:1 above racks, a tenth lost to colliding flows (all assumed).
    (
        "ethernet-25",
        PCIE_3,
        Between {
            hash_loss: 0.1,
            ..tiers(nics(1, 3.125, ETHERNET), 4.0, 0, 1.0)
        },
    ),
    // PCIe inside a node, 100 Gb/s InfiniBand in a rack, Ethernet of a tenth of it between racks (assumed).
    ("philly", PCIE_3, tiers(nics(1, 12.5, INFINIBAND), 10.0, 0, 1.0)),
];

/// Names of former versions: one NIC a node, six to ten times slower than measured.
const FORMER: [(&str, &str); 2] = [("a100-hdr", "dgx-a100-hdr"), ("h100-ndr", "hgx-h100-ndr")];

impl Fabric {
    /// The fabric of this name.
    ///
    /// # Errors
    /// A name that is not known.
    pub fn from_name(name: &str) -> Result<Fabric, Problem> {
        if let Some((_, inside, between)) = PRESETS.iter().find(|(known, ..)| *known == name) {
            return Ok(Fabric {
                inside: *inside,
                between: *between,
            });
        }
        let former = FORMER.iter().find(|(known, _)| *known == name);
        let hint = match former {
            Some((_, now)) => format!("{name} had one NIC a node; {now} has all of them"),
            None => "or write the tables inside and between (docs/gpu-model.md, Links)".to_string(),
        };
        let names: Vec<&str> = Fabric::names().collect();
        Err(Problem::new(
            "fabric",
            format!("{name:?}"),
            names.join(", "),
            hint,
        ))
    }

    /// Names of all presets.
    pub fn names() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|(name, ..)| *name)
    }
}
