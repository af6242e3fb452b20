//! Contracts of the whole workspace.

#![allow(clippy::unwrap_used)]

use std::sync::Once;

mod certificates;
mod doors;
mod feature_page;
mod forecasts;
mod goldens;
mod hostile;
mod operator;

/// The laboratory by name, as in the program; once.
fn with_laboratory() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        pleach_lab::added_to(pleach_experiments::Plugins::new())
            .register()
            .unwrap()
    });
}
