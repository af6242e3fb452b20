//! Rooms of a program's own: their policies in tables, their trees in explanations, their environments for learners.

use std::sync::OnceLock;

use pleach_scheduler::features::FeatureSchema;
use pleach_scheduler::heuristics::Info;
use pleach_serving::Environment;
use serde_json::Value;

use crate::error::Error;

/// An environment, or why there is none.
pub type Opened = Result<Box<dyn Environment>, Error>;

/// An environment by name.
#[derive(Clone, Copy, Debug)]
pub struct Registered {
    /// Its name with a version.
    pub id: &'static str,
    /// What it is, in one line.
    pub line: &'static str,
    /// Its settings.
    pub settings: fn() -> serde_json::Result<Value>,
    /// Of such settings.
    pub open: fn(Value) -> Opened,
}

/// A crate of rooms.
#[derive(Clone, Copy, Debug)]
pub struct OwnRoom {
    /// Policies by name, room by room.
    pub policies: &'static [&'static [Info]],
    /// Rows that its trees may read.
    pub schemas: &'static [&'static FeatureSchema],
    /// Environments of learners.
    pub environments: &'static [Registered],
}

static OWN: OnceLock<Vec<OwnRoom>> = OnceLock::new();

/// Keeps the program's own rooms, once.
///
/// # Errors
/// A second call.
pub fn register(rooms: Vec<OwnRoom>) -> Result<(), Error> {
    let hint = "Name all of them in one call.";
    let again = |_| Error::config("rooms", "registered again", "once in a program", hint);
    OWN.set(rooms).map_err(again)
}

/// Rooms of the program's own, in the order in which they were named.
pub(super) fn own_rooms() -> &'static [OwnRoom] {
    OWN.get().map_or(&[], Vec::as_slice)
}
