//! What the cluster below us is able to do, and what its starts and restarts cost.

use serde::{Deserialize, Serialize};

use crate::actions::{ActionKind, ActionSet};
use crate::cluster_spec::ModelClass;
use crate::physics::overheads::{Moved, Overheads, sia_kind};
use crate::physics::storage::Storage;
use crate::problem::Problem;
use crate::settings::{Above, check};

/// Bytes of a GiB.
pub(super) const GIB: f64 = 1_073_741_824.0;

/// What the cluster below us is able to do, and what it costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "WrittenCapabilities", into = "WrittenCapabilities")]
pub struct Capabilities {
    /// What may be done, of the kinds that have to be granted; sharing is granted by `sharing`. In files the older kinds are keys
    /// of their own, `true` or `false`, the others a list of names, `actions`.
    pub granted: ActionSet,
    /// Time that a job loses when it starts for the first time, s.
    pub start_cost_s: f64,
    /// Time that a job loses when it starts again after a preemption or a failure, s; a model class may have its own.
    pub restart_cost_s: f64,
    /// Time that a MIG instance costs when it is made for a job, s, on top of the start.
    ///
    /// # Source
    /// About 4 s (MISO, SoCC'22), the default.
    pub mig_create_s: f64,
    /// Work between two checkpoints, in seconds of the reference run. A failure loses what was done since the last one;
    /// without, a failure loses nothing. A preemption always writes a checkpoint first.
    pub checkpoint_interval_s: Option<f64>,
    /// What starts and restarts cost by a published model, instead of the two costs above. Of a random one the
    /// scheduler believes the median.
    pub overheads: Option<Overheads>,
    /// Jobs write checkpoints at the interval of their class, where it has one, and their training stands still meanwhile for as
    /// long as the site's store says ([`crate::physics::storage`]).
    pub class_checkpoints: bool,
    /// Time that a job is given to save when it is stopped, s, 0 to 86,400: one that needs longer loses what it did since its last
    /// checkpoint. Without, every stop saves first.
    pub stop_grace_s: Option<f64>,
    /// How two whole-GPU jobs can run on the same GPUs.
    pub sharing: Sharing,
    /// The cost of a restart is added to the job's work when it is stopped, so it counts as remaining time and what was
    /// paid of it is not lost by another stop; otherwise it is time at the beginning of each later run.
    pub restart_cost_is_work: bool,
    /// A gang runs only on whole nodes and one node for the rest, and waits while the free GPUs lie scattered; for jobs
    /// that ask for whole GPUs and nothing else. Counts of GPUs (of victims) do not see it and may promise too
    /// much.
    pub consolidated: bool,
    /// Of a node that is chosen a share comes from the GPU with the lowest index that has room, shared or free, because the
    /// batch system chooses it (Slurm); otherwise from the shared GPU with the least left. Whole GPUs are the lowest free ones
    /// either way.
    pub lowest_gpu: bool,
}

/// How two whole-GPU jobs can run on the same GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// They cannot.
    #[default]
    Off,
    /// In turn: each gets its part of the time.
    TimeSlice,
    /// At once (MPS): each gets what the other leaves.
    Mps,
}

impl Capabilities {
    /// No preemption, reservations, a restart of 30 s, no sharing.
    pub const DEFAULT: Capabilities = Capabilities {
        granted: ActionSet::DEFAULT,
        start_cost_s: 0.0,
        restart_cost_s: 30.0,
        mig_create_s: 4.0,
        checkpoint_interval_s: None,
        overheads: None,
        class_checkpoints: false,
        stop_grace_s: None,
        sharing: Sharing::Off,
        restart_cost_is_work: false,
        consolidated: false,
        lowest_gpu: false,
    };
}

impl Capabilities {
    /// What can be done on the cluster besides starting whole jobs. Sizes, shares of cores and waiting for a type are always
    /// there: what they need is in the jobs.
    #[must_use]
    pub const fn actions(&self) -> ActionSet {
        let granted = self
            .granted
            .intersection(ActionSet::GRANTED)
            .union(ActionSet::ALWAYS);
        granted.set(ActionKind::Share, !matches!(self.sharing, Sharing::Off))
    }

    /// Whether a kind of action can be done.
    #[must_use]
    #[inline]
    pub const fn can(&self, kind: ActionKind) -> bool {
        self.actions().contains(kind)
    }

    /// Grants a kind of action, or takes it away. Sharing is turned on and off by `sharing`.
    pub const fn grant(&mut self, kind: ActionKind, is_granted: bool) {
        self.granted = self.granted.set(kind, is_granted);
    }

    /// The same cluster with one kind of action granted more.
    #[must_use]
    pub const fn with(mut self, kind: ActionKind) -> Capabilities {
        self.grant(kind, true);
        self
    }

    /// The same cluster where all of `required` can be done besides; sharing, where there was none, is MPS.
    #[must_use]
    pub fn with_actions(mut self, required: ActionSet) -> Capabilities {
        self.granted = self.granted.union(required.intersection(ActionSet::GRANTED));
        if required.contains(ActionKind::Share) && self.sharing == Sharing::Off {
            self.sharing = Sharing::Mps;
        }
        self
    }
}

impl Default for Capabilities {
    fn default() -> Capabilities {
        Capabilities::DEFAULT
    }
}

impl Capabilities {
    /// Checks the ranges.
    ///
    /// # Errors
    /// The first cost out of its range.
    pub fn validate(&self) -> Result<(), Problem> {
        let hint = ("leave it out for the default", "");
        let cost = |key, cost_s: f64| check(&cost_s, &(0.0..=1e6), ("capabilities", key), hint);
        cost("start_cost_s", self.start_cost_s)?;
        cost("restart_cost_s", self.restart_cost_s)?;
        cost("mig_create_s", self.mig_create_s)?;
        let key = ("capabilities", "checkpoint_interval_s");
        check(&self.checkpoint_interval_s, &Above(0.0, 1e10), key, hint)?;
        let key = ("capabilities", "stop_grace_s");
        check(&self.stop_grace_s, &(0.0..=86_400.0), key, hint)?;
        match &self.overheads {
            Some(overheads) => overheads.validate(),
            None => Ok(()),
        }
    }
}

/// The written form of [`Capabilities`], which says what each key means.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Capabilities", default, deny_unknown_fields)]
struct WrittenCapabilities {
    preemption: bool,
    reservation: bool,
    start_cost_s: f64,
    restart_cost_s: f64,
    mig_create_s: f64,
    checkpoint_interval_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    overheads: Option<Overheads>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    class_checkpoints: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_grace_s: Option<f64>,
    sharing: Sharing,
    mixed_types: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    restart_cost_is_work: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    consolidated: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    lowest_gpu: bool,
    #[serde(skip_serializing_if = "ActionSet::is_empty")]
    actions: ActionSet,
}

/// The kinds that are keys of their own.
const KEYS: ActionSet = ActionSet::of(ActionKind::Preempt)
    .with(ActionKind::Reserve)
    .with(ActionKind::MixTypes);

impl From<Capabilities> for WrittenCapabilities {
    fn from(capabilities: Capabilities) -> WrittenCapabilities {
        let granted = capabilities.granted;
        WrittenCapabilities {
            preemption: granted.contains(ActionKind::Preempt),
            reservation: granted.contains(ActionKind::Reserve),
            start_cost_s: capabilities.start_cost_s,
            restart_cost_s: capabilities.restart_cost_s,
            mig_create_s: capabilities.mig_create_s,
            checkpoint_interval_s: capabilities.checkpoint_interval_s,
            overheads: capabilities.overheads,
            class_checkpoints: capabilities.class_checkpoints,
            stop_grace_s: capabilities.stop_grace_s,
            sharing: capabilities.sharing,
            mixed_types: granted.contains(ActionKind::MixTypes),
            restart_cost_is_work: capabilities.restart_cost_is_work,
            consolidated: capabilities.consolidated,
            lowest_gpu: capabilities.lowest_gpu,
            actions: granted.intersection(ActionSet::GRANTED).difference(KEYS),
        }
    }
}

impl TryFrom<WrittenCapabilities> for Capabilities {
    type Error = String;

    fn try_from(written: WrittenCapabilities) -> Result<Capabilities, String> {
        let keys = ActionSet::where_true([
            (ActionKind::Preempt, written.preemption),
            (ActionKind::Reserve, written.reservation),
            (ActionKind::MixTypes, written.mixed_types),
        ]);
        Ok(Capabilities {
            granted: keys.union(written.actions.within("actions", ActionSet::GRANTED)?),
            start_cost_s: written.start_cost_s,
            restart_cost_s: written.restart_cost_s,
            mig_create_s: written.mig_create_s,
            checkpoint_interval_s: written.checkpoint_interval_s,
            overheads: written.overheads,
            class_checkpoints: written.class_checkpoints,
            stop_grace_s: written.stop_grace_s,
            sharing: written.sharing,
            restart_cost_is_work: written.restart_cost_is_work,
            consolidated: written.consolidated,
            lowest_gpu: written.lowest_gpu,
        })
    }
}

impl Default for WrittenCapabilities {
    fn default() -> WrittenCapabilities {
        Capabilities::DEFAULT.into()
    }
}

/// What a first start and a restart of a class on so many GPUs cost, s; of a random model the median.
pub(super) fn class_cost_s(
    class: &ModelClass,
    num_gpus: u32,
    storage: Storage,
    capabilities: &Capabilities,
) -> (f64, f64) {
    const MEDIAN: u64 = 1 << 63;
    let (start_s, restart_s) = match &capabilities.overheads {
        Some(overheads) => {
            let moved = moved(class, num_gpus, storage);
            (overheads.start_s(moved), overheads.migration_s(moved, MEDIAN))
        }
        None => (capabilities.start_cost_s, capabilities.restart_cost_s),
    };
    match (class.restart_cost_s, &capabilities.overheads) {
        // A measured restart has a start in it, whatever a model makes of that.
        (Some(measured_s), Some(model)) if !matches!(model, Overheads::Fixed(_)) => {
            (start_s.min(measured_s), measured_s)
        }
        (measured_s, _) => (start_s, measured_s.unwrap_or(restart_s)),
    }
}

/// What the overhead models look at in a gang of a class.
#[must_use]
pub fn moved(class: &ModelClass, num_gpus: u32, storage: Storage) -> Moved {
    Moved {
        state_bytes: class.state_gib * GIB,
        kind: sia_kind(&class.name),
        num_gpus,
        warm_up_s: class.warm_up_s,
        reads_first: class.checkpoint_interval_s.is_none(),
        storage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_of_actions_is_the_same_after_a_file_and_may_be_given_as_a_list() {
        let plain = Capabilities::DEFAULT;
        for kind in ActionSet::GRANTED.iter() {
            let able = plain.with(kind);
            let text = serde_json::to_string(&able).unwrap();
            assert_eq!(serde_json::from_str::<Capabilities>(&text).unwrap(), able);
            let list = format!("{{\"actions\": [\"{}\"]}}", kind.row().name);
            assert_eq!(serde_json::from_str::<Capabilities>(&list).unwrap(), able);
        }
        let text = serde_json::to_string(&plain).unwrap();
        assert!(
            !text.contains("actions"),
            "as files of all versions have it: {text}"
        );
        let error = serde_json::from_str::<Capabilities>("{\"actions\": [\"share\"]}").unwrap_err();
        assert!(error.to_string().contains("actions: `share`"), "{error}");
    }
}
