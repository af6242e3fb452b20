//! Schedulers that put several jobs on one GPU.

mod draw_together;
mod gandiva;
mod gandiva_config;
mod hfta;
mod hosts;
mod indolent;
pub mod interleave;
mod matching;
mod muri;
mod sjf;
mod turns;

#[cfg(test)]
mod tests;

pub use gandiva::Gandiva;
pub use gandiva_config::GandivaConfig;
pub use hfta::{Hfta, HftaConfig};
pub use indolent::{Indolent, IndolentConfig};
pub use muri::{Muri, MuriConfig};
pub use sjf::{SjfSharing, SjfSharingConfig};

use pleach_scheduler::heuristics::Info;

use crate::shared::settings;
use pleach_dealing::{Entry, PREEMPTION, SHARING};

/// The planners of this line.
pub(crate) const ENTRIES: &[Entry] = &[
    Entry {
        info: Info {
            name: "sjf-ffs",
            family: "sharing, non-preemptive",
            citation: "SJF-FFS, the aggressive baseline of SJF-BSBF (WiseShare IWQoS'24)",
            knows: "run time estimates, gang size, GPU memory",
            decides: "shortest job first; a job that finds too few free GPUs shares the first that have one resident",
        },
        requirements: SHARING,
        defaults: settings::defaults::<SjfSharingConfig>,
        make: |value| Ok(Box::new(SjfSharing::first_fit(settings::read("sjf-ffs", value)?))),
    },
    Entry {
        info: Info {
            name: "sjf-bsbf",
            family: "sharing, non-preemptive",
            citation: "SJF-BSBF (WiseShare IWQoS'24)",
            knows: "run time estimates, gang size, GPU memory, interference of pairs",
            decides: "shortest job first; a job that finds too few free GPUs shares with jobs beside which both end earlier on average",
        },
        requirements: SHARING,
        defaults: settings::defaults::<SjfSharingConfig>,
        make: |value| {
            Ok(Box::new(SjfSharing::best_benefit(settings::read(
                "sjf-bsbf", value,
            )?)))
        },
    },
    Entry {
        info: Info {
            name: "gandiva",
            family: "sharing, preemptive",
            citation: "Gandiva OSDI'18",
            knows: "which jobs wait and run how long, utilisation, measured rates of pairs",
            decides: "gangs take turns; packs by trial and takes apart what does less than one alone; draws spread gangs together",
        },
        requirements: PREEMPTION.union(SHARING),
        defaults: settings::defaults::<GandivaConfig>,
        make: |value| Ok(Box::new(Gandiva::new(settings::read("gandiva", value)?)?)),
    },
    Entry {
        info: Info {
            name: "indolent",
            family: "sharing, non-preemptive",
            citation: "Lucid ASPLOS'23, its packing",
            knows: "run time estimates, gang size, GPU memory, utilisation",
            decides: "least GPU time first; equal gangs that are light enough share where no GPU is free",
        },
        requirements: SHARING,
        defaults: settings::defaults::<IndolentConfig>,
        make: |value| Ok(Box::new(Indolent::new(settings::read("indolent", value)?)?)),
    },
    Entry {
        info: Info {
            name: "hfta",
            family: "sharing, non-preemptive",
            citation: "HFTA MLSys'21",
            knows: "arrival, class, GPU memory of fused jobs",
            decides: "first come, first served; jobs of one class and one GPU that start together are fused into one program",
        },
        requirements: SHARING,
        defaults: settings::defaults::<HftaConfig>,
        make: |value| Ok(Box::new(Hfta::new(settings::read("hfta", value)?)?)),
    },
    Entry {
        info: Info {
            name: "muri",
            family: "sharing, preemptive",
            citation: "Muri SIGCOMM'22, Muri-S with pairs",
            knows: "run time estimates, gang size, GPU memory, speeds of pairs",
            decides: "each round: least remaining GPU time first; pairs equal gangs whose speeds together are largest",
        },
        requirements: PREEMPTION.union(SHARING),
        defaults: settings::defaults::<MuriConfig>,
        make: |value| Ok(Box::new(Muri::new(settings::read("muri", value)?)?)),
    },
];
