//! Tests of the schema and its table.

use super::decision::{FEATURES, Id, PLACES};
use super::*;

#[test]
fn names_are_unique_and_scales_invert() {
    let schema = FeatureSchema::current();
    for (index, feature) in schema.features.iter().enumerate() {
        assert_eq!(
            schema.joined_index(feature.name),
            Some(index),
            "{} appears twice",
            feature.name
        );
        assert_eq!(schema.joined_name(index), feature.name);
        assert!(feature.min < feature.max && !feature.doc.is_empty());
        for raw in [feature.min, feature.max, (feature.min + feature.max) / 2.0] {
            let back = feature.scale.invert(feature.encode(raw));
            assert!(
                (back - f64::from(raw)).abs() <= 1e-4 * f64::from(raw.abs()).max(1.0),
                "{}",
                feature.name
            );
        }
        let is_flag = feature.name.starts_with("is_");
        assert!(!is_flag || feature.is_whole, "{}: a flag is 0 or 1", feature.name);
    }
}

#[test]
fn encode_tames_infinities_and_nan() {
    let feature = &FEATURES[Id::RemainingS as usize];
    for raw in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        assert!(feature.encode(raw).is_finite());
    }
}

/// Every policy file and every environment from before views rests on these numbers.
#[test]
fn the_first_view_is_what_it_was() {
    let schema = FeatureSchema::current();
    assert_eq!(
        schema.hash(),
        "7ed2687b5e5beee18f8121596c20b03c7cafca0e9aca6c7970de9dfee280c7e7"
    );
    assert_eq!((DECISION_1.num_row, DECISION_1.num_context), (42, 14));
    assert_eq!(schema.view_of_hash(schema.hash()), Some(&DECISION_1));
    assert_eq!(schema.view_of_hash("another"), None);
    assert_eq!(schema.view("decision-1"), Some(&DECISION_1));
}

#[test]
fn the_second_view_is_what_it_was() {
    let (schema, view) = (FeatureSchema::current(), decision::DECISION_2);
    assert_eq!((view.num_row, view.num_context), (44, 14));
    assert_eq!(schema.view("decision-2"), Some(&view));
    assert_eq!(
        schema.hash_of(&view),
        "9e620a6283efcac857bcf7af4ce91eb20524db6601f3036f5ad06a5c87bf1799"
    );
}

#[test]
fn views_are_longer_and_longer_and_each_has_a_hash_of_its_own() {
    let schema = FeatureSchema::current();
    for pair in schema.views.windows(2) {
        assert!(pair[0].len < pair[1].len && schema.hash_of(&pair[0]) != schema.hash_of(&pair[1]));
    }
    let mut other = FEATURES.to_vec();
    other[4].max += 1.0;
    assert_ne!(FEATURES[4].line(), other[4].line());
}

#[test]
fn a_joined_row_has_every_column_at_its_number() {
    let schema = FeatureSchema::current();
    let row: Vec<f32> = (0..ROW_WIDTH as u16).map(f32::from).collect();
    let context: Vec<f32> = (0..CONTEXT_WIDTH as u16)
        .map(|place| 1000.0 + f32::from(place))
        .collect();
    let joined = schema.joined_row(&row, &context);
    assert_eq!(joined.len(), FEATURES.len());
    for (index, value) in joined.iter().enumerate() {
        let place = schema.place(index);
        assert_eq!(place, PLACES[index]);
        let expected = match FEATURES[index].group {
            Group::Row => row[place],
            Group::Context => context[place],
        };
        assert_eq!(*value, expected, "{}", FEATURES[index].name);
    }
    // A narrower view begins with the same numbers.
    let View {
        num_row,
        num_context,
        len,
        ..
    } = DECISION_1;
    assert_eq!(
        schema.joined_row(&row[..num_row], &context[..num_context]),
        joined[..len]
    );
}

#[test]
fn times_are_scaled_together_and_so_have_one_scale() {
    let times = FEATURES
        .iter()
        .zip(decision::WRITERS)
        .filter(|(_, writer)| **writer == "time");
    for (feature, _) in times {
        let duration = &FEATURES[Id::DurationS as usize];
        assert_eq!(
            (feature.min, feature.max, feature.scale),
            (duration.min, duration.max, duration.scale),
            "{}",
            feature.name
        );
    }
}
