//! The laboratory in a program: published planners by name in evaluations, records and ablations.

#![allow(clippy::unwrap_used)]

use std::sync::Once;

mod ablation;
mod bounds;
mod door;
#[allow(dead_code, reason = "tests of experiments take all of it")]
#[path = "../../experiments/tests/recorded_worlds.rs"]
mod recorded_worlds;
mod reference;
mod schedules;

/// The laboratory, registered once in the program of these tests.
fn registered() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        pleach_lab::added_to(pleach_experiments::Plugins::new())
            .register()
            .unwrap()
    });
}
