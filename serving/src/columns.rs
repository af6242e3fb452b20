//! What the columns of all rooms have in common: values from 0 upwards, which neither users nor operators set.

use pleach_scheduler::features::{Among, Control, Feature, Group, Relation, RowKind, Scale};

/// A kind of rows.
pub const fn kind(name: &'static str, does: &'static str) -> RowKind {
    RowKind {
        name,
        does,
        action: None,
        is_about_a_job: true,
        waits: false,
    }
}

/// A column of a row or of the context: name, unit, range from 0, scale, meaning.
pub const fn column(
    group: Group,
    among: Among,
    name: &'static str,
    unit: &'static str,
    max: f32,
    scale: Scale,
    doc: &'static str,
) -> Feature {
    Feature {
        name,
        unit,
        min: 0.0,
        max,
        scale,
        doc,
        group,
        among,
        moves: [Relation::Equal; 3],
        control: Control::Cluster,
        is_whole: matches!(among, Among::Flag(_)),
    }
}

/// The same, of what is no more where there is less to do ([`Stimulus::Relief`](pleach_scheduler::features::Stimulus)).
pub const fn falls(feature: Feature) -> Feature {
    Feature {
        moves: [Relation::Equal, Relation::Equal, Relation::Down],
        ..feature
    }
}
