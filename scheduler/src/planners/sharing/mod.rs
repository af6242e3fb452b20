//! Schedulers that put several jobs on one GPU.

mod hosts;
mod sjf;
mod speeds;
#[cfg(test)]
mod tests;

pub use sjf::{SjfSharing, SjfSharingConfig};

use super::{Asks, Entry, settings};
use crate::heuristics::Info;

/// The planners of this line.
pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        info: Info {
            name: "sjf-ffs",
            family: "sharing, non-preemptive",
            citation: "SJF-FFS, the aggressive baseline of SJF-BSBF (WiseShare IWQoS'24)",
            knows: "run time estimates, gang size, GPU memory",
            decides: "shortest job first; who finds too few free GPUs shares the first that have one resident",
        },
        asks: SHARING,
        defaults: settings::defaults::<SjfSharingConfig>,
        make: |value| Ok(Box::new(SjfSharing::first_fit(settings::read("sjf-ffs", value)?))),
    },
    Entry {
        info: Info {
            name: "sjf-bsbf",
            family: "sharing, non-preemptive",
            citation: "SJF-BSBF (WiseShare IWQoS'24)",
            knows: "run time estimates, gang size, GPU memory, interference of pairs",
            decides: "shortest job first; who finds too few free GPUs shares with those beside whom both end earlier on average",
        },
        asks: SHARING,
        defaults: settings::defaults::<SjfSharingConfig>,
        make: |value| {
            Ok(Box::new(SjfSharing::best_benefit(settings::read(
                "sjf-bsbf", value,
            )?)))
        },
    },
];

/// Two jobs on the same GPUs.
const SHARING: Asks = Asks {
    sharing: true,
    ..Asks::NOTHING
};
