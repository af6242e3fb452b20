//! What of these rooms a program has by name.

use pleach_experiments::worlds::{Opened, OwnRoom, Registered, config};
use pleach_serving::Reward;
use pleach_workloads::Seed;
use serde::{Deserialize, Serialize};
use serde_json::{Value, to_value};

use crate::contexts::{Placing, Run, released};
use crate::{contexts, layers, workflows};

/// Their policies, rows and environments.
pub const ROOM: OwnRoom = OwnRoom {
    policies: &[
        contexts::POLICIES,
        contexts::residents::POLICIES,
        layers::POLICIES,
        workflows::POLICIES,
    ],
    schemas: &[&contexts::SCHEMA, &layers::SCHEMA],
    environments: &[Registered {
        id: "Pleach/Sgprs-v0",
        line: "24 cameras on three contexts of a GPU; giving one up hits 95.8 %, and no order more than 97: little is left to win",
        settings: || to_value(Cameras::default()),
        open: placing,
    }],
};

/// Cameras on a GPU that is parted into contexts.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cameras {
    /// Cameras of 30 frames a second.
    cameras: u16,
    /// Contexts.
    contexts: u16,
    /// Sum of their SMs over those of the GPU.
    oversubscription: f64,
    /// Length of an episode, s.
    length_s: f64,
    /// Whose units and order in queues contexts have: a rule by name.
    order: String,
    reward: Reward,
}

impl Default for Cameras {
    /// The set-up of SGPRS's best published figure, one camera past what it bears here.
    fn default() -> Cameras {
        Cameras {
            cameras: 24,
            contexts: 3,
            oversubscription: 1.5,
            length_s: 10.0,
            order: "sgprs".into(),
            reward: Reward::default(),
        }
    }
}

fn placing(settings: Value) -> Opened {
    let of: Cameras = config(settings)?;
    let (gpu, policy) = released::set_up(&of.order, of.contexts.into(), of.oversubscription, None)?;
    let run = Run::new(of.length_s, 0.0, Seed(0))?;
    let env = Placing::new(gpu, policy.discipline(), of.cameras.into(), run, of.reward)?;
    Ok(Box::new(env))
}
