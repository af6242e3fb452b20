//! What one decision of a tree costs, for comparisons with other runtimes: `tree_cost FILE ROUNDS`.
//!
//! Sixty-four candidates with drawn features, one hundred of such decisions in turn, until a round has taken a fifth of a second.
//! Prints JSON: leaves, and the time of one decision in each round, ns.

use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use pleach_scheduler::candidate::MAX_CANDIDATES;
use pleach_scheduler::features::DECISION_1;
use pleach_scheduler::features::FeatureSchema;
use pleach_scheduler::observation::ObservationRef;
use pleach_scheduler::tree::{Tree, TreePolicy};

/// Decisions that are walked in turn, so that no branch is learned by heart.
const NUM_DECISIONS: usize = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(file), Some(rounds)) = (args.next(), args.next()) else {
        return Err("usage: tree_cost FILE ROUNDS".into());
    };
    let rounds: usize = rounds.parse()?;
    let policy = TreePolicy::new(Tree::load(Path::new(&file))?);
    let candidates = drawn(NUM_DECISIONS * MAX_CANDIDATES, 0..DECISION_1.num_row);
    let globals = drawn(
        NUM_DECISIONS,
        DECISION_1.num_row..DECISION_1.num_row + DECISION_1.num_context,
    );
    let (width, mask) = (MAX_CANDIDATES * DECISION_1.num_row, [true; MAX_CANDIDATES]);
    let mut leaves = [0_u32; MAX_CANDIDATES];
    let mut decision_ns = Vec::new();
    for _ in 0..rounds {
        let (start, mut num) = (Instant::now(), 0_u32);
        while start.elapsed().as_millis() < 200 {
            for (candidates, global) in candidates
                .chunks_exact(width)
                .zip(globals.chunks_exact(DECISION_1.num_context))
            {
                let observation = ObservationRef {
                    global,
                    candidates,
                    width: DECISION_1.num_row,
                    mask: &mask,
                };
                policy.leaves(black_box(&observation), &mut leaves)?;
                black_box(&leaves);
                num += 1;
            }
        }
        decision_ns.push(start.elapsed().as_nanos() as f64 / f64::from(num));
    }
    let leaves = policy.tree().num_leaves();
    println!(
        "{}",
        serde_json::json!({"leaves": leaves, "decision_ns": decision_ns})
    );
    Ok(())
}

/// Scaled features between their bounds, row by row, from a fixed sequence (SplitMix64).
fn drawn(num_rows: usize, features: std::ops::Range<usize>) -> Vec<f32> {
    let schema = FeatureSchema::current();
    let mut state = 1_u64;
    let mut share = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) >> 40) as f32 / (1_u32 << 24) as f32
    };
    let mut value = |index: usize| {
        let feature = schema.joined(index)?;
        let (least, most) = (feature.encode(feature.min), feature.encode(feature.max));
        Some(least + (most - least) * share())
    };
    let row: Vec<usize> = features.collect();
    (0..num_rows)
        .flat_map(|_| row.clone())
        .map(|index| value(index).unwrap_or(0.0))
        .collect()
}
