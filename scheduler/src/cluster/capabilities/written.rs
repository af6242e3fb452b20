//! What a cluster can do as files have it: each of the first kinds of actions is a key of its own, the others are a list.

use serde::{Deserialize, Serialize};

use super::{Capabilities, Sharing};
use crate::actions::{ActionKind, ActionSet};
use crate::physics::overheads::Overheads;

/// The written form of [`Capabilities`], which says what each key means.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Capabilities", default, deny_unknown_fields)]
pub(super) struct WrittenCapabilities {
    preemption: bool,
    reservation: bool,
    start_cost_s: f64,
    restart_cost_s: f64,
    mig_create_s: f64,
    checkpoint_interval_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    overheads: Option<Overheads>,
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
            sharing: capabilities.sharing,
            mixed_types: granted.contains(ActionKind::MixTypes),
            restart_cost_is_work: capabilities.restart_cost_is_work,
            consolidated: capabilities.consolidated,
            lowest_gpu: capabilities.lowest_gpu,
            actions: granted.difference(KEYS),
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
