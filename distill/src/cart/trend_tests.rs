//! Trends held to all pairs of a grid, and to the prover of certificates.

use super::*;
use crate::config::{DistillConfig, Monotone};
use crate::prune::{merged, weakest_links};
use crate::test_trees::meta;
use pleach_scheduler::features::{DECISION_1, FeatureSchema};
use pleach_scheduler::tree::{Property, Tree, Verdict};
use proptest::prelude::*;

const TRENDS: [Trend; 4] = [Trend::Free, Trend::Rising, Trend::Falling, Trend::Unused];
/// Values of a feature on the grid.
const STEPS: usize = 4;

fn config() -> CartConfig {
    CartConfig {
        leaf_rows_min: 1,
        leaf_weight_min: 0.0,
        ..CartConfig::default()
    }
}

fn fit(rows: &[Vec<f32>], target: &[f32], trends: &[Trend], leaves: usize) -> Grown {
    let value = |row: usize, feature: usize| rows[row][feature];
    let data = Binned::new(rows.len(), rows[0].len(), 255, value);
    let weight = vec![1.0; rows.len()];
    grow(&data, value, target, &weight, leaves, &config(), trends)
}

fn grid() -> Vec<[usize; 3]> {
    (0..STEPS.pow(3))
        .map(|cell| [cell % STEPS, cell / STEPS % STEPS, cell / STEPS / STEPS])
        .collect()
}

/// Whether `after` is at least as far along every trend as `before`, and elsewhere the same.
fn is_further(before: [usize; 3], after: [usize; 3], trends: &[Trend]) -> bool {
    (0..3).all(|feature| match trends[feature] {
        Trend::Rising => before[feature] <= after[feature],
        Trend::Falling => before[feature] >= after[feature],
        Trend::Free | Trend::Unused => before[feature] == after[feature],
    })
}

proptest! {
    #[test]
    fn whoever_is_further_along_the_trends_never_gets_less(
        target in prop::collection::vec(-3.0..3.0_f32, STEPS.pow(3)),
        which in prop::collection::vec(0..TRENDS.len(), 3),
        leaves in 2..24_usize,
    ) {
        let trends: Vec<Trend> = which.iter().map(|index| TRENDS[*index]).collect();
        let rows: Vec<Vec<f32>> = grid().iter().map(|cell| cell.map(|value| value as f32).to_vec()).collect();
        let whole = fit(&rows, &target, &trends, 24);
        let asked = whole.nodes.iter().filter_map(|node| node.split).map(|split| split.feature);
        prop_assert!(asked.into_iter().all(|feature| trends[feature] != Trend::Unused));
        let answers: Vec<f64> = rows.iter().map(|row| whole.answer(leaves, |feature| row[feature])).collect();
        for (before, first) in grid().into_iter().zip(&answers) {
            for (after, second) in grid().into_iter().zip(&answers) {
                if is_further(before, after, &trends) {
                    prop_assert!(first <= second, "{before:?} gets {first}, {after:?} {second}: {trends:?}");
                }
            }
        }
    }

    #[test]
    fn trees_made_monotone_are_proved_to_be(
        rows in prop::collection::vec((any::<u64>(), -3.0..3.0_f32), 40..120),
        what in 1..4_u8,
        leaves in 2..24_usize,
    ) {
        let monotone = [Monotone::Waiting, Monotone::Estimate];
        let monotone = monotone.iter().enumerate().filter(|(bit, _)| what >> bit & 1 == 1).map(|(_, one)| *one).collect();
        let config = DistillConfig { monotone, ..DistillConfig::default() };
        let target: Vec<f32> = rows.iter().map(|row| row.1).collect();
        let rows: Vec<Vec<f32>> = rows.iter().map(|row| spread(row.0)).collect();
        let grown = fit(&rows, &target, &config.trends(FeatureSchema::current(), DECISION_1), leaves);
        let mut tree = Tree::new(meta(), &grown.nodes_with(leaves)).unwrap();
        proved(&tree, &config)?;
        // And so are the smaller trees that pruning makes of it, whichever pair goes next.
        loop {
            let links = weakest_links(&tree);
            if links.is_empty() {
                break;
            }
            tree = merged(&tree, links[rows.len() % links.len()]).unwrap();
            proved(&tree, &config)?;
        }
    }
}

/// What a tree was made monotone in is proved of it.
fn proved(tree: &Tree, config: &DistillConfig) -> Result<(), TestCaseError> {
    for certificate in tree.certify() {
        let wanted = match certificate.property {
            Property::MonotoneInWaiting => config.monotone.contains(&Monotone::Waiting),
            Property::MonotoneInEstimate => config.monotone.contains(&Monotone::Estimate),
            _ => false,
        };
        if wanted {
            prop_assert!(
                matches!(certificate.verdict, Verdict::Proved),
                "{certificate:?} of\n{}",
                tree.to_text()
            );
        }
    }
    Ok(())
}

/// A row of all features, each one of eight values between its bounds.
fn spread(bits: u64) -> Vec<f32> {
    let of = |index: usize| {
        let mixed = (bits ^ index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let feature = FeatureSchema::current().joined(index).unwrap();
        let (least, most) = (feature.encode(feature.min), feature.encode(feature.max));
        least + (most - least) * (mixed >> 61) as f32 / 8.0
    };
    (0..DECISION_1.len).map(of).collect()
}

#[test]
fn a_fall_against_the_trend_is_averaged_away_and_the_rest_is_kept() {
    let rows: Vec<Vec<f32>> = (0..6).map(|row| vec![row as f32]).collect();
    let target = [0.0, 0.0, 5.0, 3.0, 9.0, 9.0];
    let free = fit(&rows, &target, &[], 6);
    let rising = fit(&rows, &target, &[Trend::Rising], 6);
    let of = |grown: &Grown| -> Vec<f64> {
        let answers = rows.iter().map(|row| grown.answer(6, |feature| row[feature]));
        answers.map(|answer| (answer * 1e6).round() / 1e6).collect()
    };
    assert_eq!(of(&free), [0.0, 0.0, 5.0, 3.0, 9.0, 9.0]);
    assert_eq!(of(&rising), [0.0, 0.0, 4.0, 4.0, 9.0, 9.0]);
}

#[test]
fn what_would_have_to_rise_and_fall_is_not_asked_for() {
    assert_eq!(Trend::Rising.and(Trend::Free), Trend::Rising);
    assert_eq!(Trend::Rising.and(Trend::Rising), Trend::Rising);
    assert_eq!(Trend::Rising.and(Trend::Falling), Trend::Unused);
    assert_eq!(Trend::Free.and(Trend::Unused), Trend::Unused);
}
