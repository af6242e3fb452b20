//! Leases, which no pass has: a schema of three kinds for tests of what is generic over schemas, in builds with debug assertions.

use super::feature::{Among, Control, Feature, Group, Kinds, Relation, RowKind, Scale};
use super::schema::{FeatureSchema, View};

const fn kind(name: &'static str, is_about_a_job: bool) -> RowKind {
    RowKind {
        name,
        does: "do what its name says",
        action: None,
        is_about_a_job,
        waits: is_about_a_job,
    }
}

const fn column(name: &'static str, group: Group, among: Among) -> Feature {
    Feature {
        name,
        unit: "",
        min: 0.0,
        max: 1.0,
        scale: Scale::Linear(1.0),
        doc: "A number of a lease.",
        group,
        among,
        moves: [Relation::Equal; 3],
        control: Control::Fixed,
        is_whole: false,
    }
}

const KINDS: [RowKind; 3] = [kind("idle", false), kind("renew", true), kind("grant", true)];
const OWN: Among = Among::Varies(Kinds::of(&[1, 2]));
const FEATURES: [Feature; 6] = [
    column("is_idle", Group::Row, Among::Flag(0)),
    column("is_renew", Group::Row, Among::Flag(1)),
    column("left", Group::Row, OWN),
    column("load", Group::Context, Among::Varies(Kinds::of(&[0, 1, 2]))),
    column("waited", Group::Row, OWN),
    column("unseen", Group::Row, OWN),
];

/// All columns but the last.
pub const LEASE_1: View = View::of("lease-1", &FEATURES, 5);
/// The schema.
pub static LEASE: FeatureSchema = FeatureSchema::new("lease", &KINDS, &FEATURES, &[], &[LEASE_1]);

/// Where the load is high, renewals with little left come first, else leases that waited; idle comes in between.
#[must_use]
pub fn teacher(row: &[f32], load: f32) -> f32 {
    let [is_idle, is_renew, left, waited] = [row[0], row[1], row[2], row[3]];
    if is_idle == 1.0 {
        return 1.0;
    }
    let is_first = if load > 0.5 {
        is_renew == 1.0 && left <= 0.25
    } else {
        waited > 0.5
    };
    if is_first { 2.0 } else { 0.0 }
}

/// The whole rows of a decision, wider than the view, from numbers of 0 to 1: idle, and five leases.
pub fn rows(mut draw: impl FnMut() -> f32) -> Vec<f32> {
    let mut rows = vec![1.0, 0.0, 0.0, 0.0, 0.0];
    for number in 0..5 {
        let is_renew = f32::from(u8::from(number % 2 == 0));
        rows.extend([0.0, is_renew, draw(), draw(), draw()]);
    }
    rows
}
