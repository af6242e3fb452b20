use super::rows::{rank_of, threshold_at};
use super::*;
use crate::dataset::Dataset;
use pleach_env::Seed;
use pleach_scheduler::features::FeatureSchema;
use pleach_scheduler::policy::{Needs, TieKey};
use std::convert::Infallible;

fn feature(name: &str) -> u16 {
    FeatureSchema::current().joined_index(name).unwrap() as u16
}

fn draft(root: Branch) -> Draft {
    Draft {
        root,
        key: Vec::new(),
        tie_key: TieKey::ShortestEstimate,
        needs: Needs::full(),
    }
}

/// Rows in which every feature goes through its range in 200 steps, each in an order of its own.
fn rows() -> Rows {
    let width = pleach_scheduler::features::DECISION_1.len;
    let schema = FeatureSchema::current();
    let mut values = Vec::new();
    for row in 0..200_usize {
        for feature in 0..width {
            let share = ((row * (2 * feature + 1) * 7 + feature) % 200) as f32 / 200.0;
            let found = schema.joined(feature).unwrap();
            let (low, high) = (found.encode(found.min), found.encode(found.max));
            values.push(low + (high - low) * share);
        }
    }
    Rows::with(values)
}

/// What a tree does in a made-up simulator: the nearer its first threshold is to 0.3 the better, a key over `num_left` adds a gain,
/// and each leaf beyond 3 costs.
fn judged(question: Question<'_>, asked: &mut u64) -> Vec<Outcome> {
    *asked += question.runs.len() as u64;
    let value = |(tree, list): &(usize, usize)| {
        let tree = question.trees[*tree].tree();
        let off = match tree.nodes()[0] {
            pleach_scheduler::tree::Node::Split { threshold, .. } => f64::from((threshold - 0.3).abs()),
            pleach_scheduler::tree::Node::Leaf { .. } => 1.0,
        };
        let weighs = tree.meta().key_weights.iter();
        let key: f64 = weighs
            .filter(|term| term.feature == feature("num_left"))
            .map(|term| -f64::from(term.weight.clamp(-0.3, 0.3)))
            .sum();
        let noise = ((list * 37) % 11) as f64 / 1000.0 * (1.0 + off);
        let ln_jct = off - 0.5 * key + noise + 0.01 * tree.num_leaves().saturating_sub(3) as f64;
        Outcome { ln_jct, ln_p99: 0.0 }
    };
    question.runs.iter().map(value).collect()
}

fn starts() -> Vec<(String, Draft)> {
    let root = Branch::split(feature("gpu_fraction"), 0.9, Branch::Leaf(1), Branch::Leaf(0));
    vec![("hand".into(), draft(root))]
}

fn config(simulations: u64) -> SearchConfig {
    SearchConfig {
        seed: Seed(5),
        simulations,
        batch: 8,
        rungs: vec![4, 8, 16],
        ..SearchConfig::default()
    }
}

fn run(
    config: &SearchConfig,
    state: Option<SearchState>,
    states: &mut Vec<SearchState>,
) -> (SearchState, u64) {
    let rows = rows();
    let meta = starts()[0].1.plain_meta("test");
    let mut asked = 0;
    let found = search::<Infallible>(
        starts(),
        (&meta, &rows),
        config,
        state,
        &mut Caller {
            judge: &mut |question| Ok(judged(question, &mut asked)),
            keep: &mut |state| {
                states.push(state.clone());
                Ok(())
            },
        },
    );
    (found.unwrap(), asked)
}

/// Rows are recorded under rules that stop no job. What a start says of stopping jobs is kept all the same.
#[test]
fn a_start_keeps_what_no_recorded_row_comes_to() {
    let rows = rows();
    let unreached = feature("is_preempt");
    let high = 0.999;
    let guarded = draft(Branch::split(
        unreached,
        high,
        Branch::split(feature("gpu_fraction"), 0.9, Branch::Leaf(2), Branch::Leaf(1)),
        Branch::Leaf(0),
    ));
    let mut states = Vec::new();
    search::<Infallible>(
        vec![("start".into(), guarded.clone())],
        (&guarded.plain_meta("test"), &rows),
        &config(16),
        None,
        &mut Caller {
            judge: &mut |question| Ok(judged(question, &mut 0)),
            keep: &mut |state| {
                states.push(state.clone());
                Ok(())
            },
        },
    )
    .unwrap();
    assert_eq!(states[0].best_start.draft.root, guarded.root);
}

#[test]
fn the_search_finds_the_threshold_and_the_key_that_its_judge_likes() {
    let mut states = Vec::new();
    let (found, asked) = run(&config(6000), None, &mut states);
    assert_eq!(found.simulations, asked);
    assert!((6000..6200).contains(&asked), "{asked}");
    let start = states[0].archive.best().unwrap().objective;
    let best = found.archive.best().unwrap();
    assert!(best.objective < start - 1.0, "{start} to {}", best.objective);
    let Branch::Split { threshold, .. } = best.draft.root else {
        panic!("a tree splits");
    };
    assert!((threshold - 0.3).abs() < 0.03, "{threshold}");
    let (_, weight) = best
        .draft
        .key
        .iter()
        .find(|(own, _)| *own == feature("num_left"))
        .unwrap();
    assert!(*weight < -0.2, "{:?}", best.draft.key);
    assert!(best.draft.key.len() <= 4);
    // At most three of each size, best first, and no two that did the same.
    for entry in found.archive.entries() {
        let of_size = found.archive.of_size(entry.draft.size());
        assert!(of_size.len() <= 3 && of_size.is_sorted_by(|a, b| a.objective <= b.objective));
        let alike = found
            .archive
            .entries()
            .filter(|other| other.outcomes == entry.outcomes);
        assert_eq!(alike.count(), 1);
    }
    assert!(
        found
            .archive
            .frontier()
            .is_sorted_by(|a, b| a.objective > b.objective)
    );
    assert!(found.moves[&Move::Key][1] > 0 && found.moves[&Move::Threshold][1] > 0);
}

#[test]
fn a_search_that_was_broken_off_goes_on_to_the_same_end() {
    let mut states = Vec::new();
    let (whole, _) = run(&config(2500), None, &mut states);
    assert!(states.len() > 5);
    for kept in [&states[0], &states[states.len() / 2]] {
        // Through its file.
        let text = serde_json::to_string(kept).unwrap();
        let back: SearchState = serde_json::from_str(&text).unwrap();
        assert_eq!(&back, kept);
        let (found, _) = run(&config(2500), Some(back), &mut Vec::new());
        assert_eq!(found, whole);
    }
    // A state of another search is refused.
    let mut other = states[1].clone();
    other.best_start.outcomes.pop();
    let text = other.check(&config(2500)).unwrap_err().to_string();
    assert!(text.contains("judged on 16 lists"), "{text}");
    let other = SearchConfig {
        seed: Seed(6),
        ..config(2500)
    };
    assert_ne!(run(&other, None, &mut Vec::new()).0.archive, whole.archive);
}

#[test]
fn the_objective_is_that_of_a_hand_worked_example() {
    let outcome = |ln_jct: f64, ratio_p99: f64| Outcome {
        ln_jct,
        ln_p99: ratio_p99.ln(),
    };
    let config = SearchConfig {
        num_parts: 2,
        rungs: vec![2, 4],
        survivors: vec![1],
        ..SearchConfig::default()
    };
    // Part 0: -0.2 and -0.4, p99 0.9; part 1: +0.1 twice, p99 1.25.
    let outcomes = [
        outcome(-0.2, 0.9),
        outcome(0.1, 1.25),
        outcome(-0.4, 0.9),
        outcome(0.1, 1.25),
    ];
    // Mean of -0.3 and 0.1; 2 x 0.1 lost; 0.3 x (1.25 - 1.05) / 2.
    assert!((config.objective(&outcomes) - (-0.1 + 0.2 + 0.03)).abs() < 1e-12);
}

#[test]
fn changes_give_valid_trees_whose_splits_all_do_something() {
    let (rows, config) = (rows(), config(0));
    let meta = starts()[0].1.plain_meta("test");
    let mut rng = Seed(3).stream("test", 0);
    let mut now = starts()[0].1.clone();
    let mut seen = std::collections::BTreeSet::new();
    let mut sizes = std::collections::BTreeSet::new();
    for _ in 0..3000 {
        let Some((new, moves)) = changed(&now, &rows, &config, &mut rng) else {
            continue;
        };
        seen.extend(moves);
        let tree = new.tree(&meta, &rows).unwrap();
        assert_eq!(Draft::of(&tree), new);
        assert_eq!(tree.num_leaves(), new.root.num_leaves());
        assert!(tree.num_leaves() <= config.leaves_max && new.key.len() <= 4);
        let samples = tree.nodes().iter().filter_map(|node| match node {
            pleach_scheduler::tree::Node::Leaf { samples, .. } => Some(*samples),
            pleach_scheduler::tree::Node::Split { .. } => None,
        });
        let samples: Vec<u64> = samples.collect();
        assert_eq!(samples.iter().sum::<u64>(), 200);
        assert!(samples.iter().all(|samples| *samples > 0), "{samples:?}");
        assert_eq!(tree.tiers().len(), new.root.ranks().len());
        sizes.insert(tree.num_leaves());
        now = new;
    }
    assert_eq!(seen.len(), 9, "{seen:?}");
    assert!(sizes.len() > 8, "{sizes:?}");
}

#[test]
fn a_threshold_moves_by_ranks_and_not_by_values() {
    // Nine of ten values below 0.01: most thresholds lie there.
    let sorted: Vec<f32> = (0..100)
        .map(|number| {
            if number < 90 {
                number as f32 / 9000.0
            } else {
                (number - 89) as f32 / 11.0
            }
        })
        .collect();
    let low = (1..100)
        .filter(|rank| threshold_at(&sorted, *rank).unwrap() < 0.01)
        .count();
    assert_eq!(low, 89);
    assert_eq!(rank_of(&sorted, threshold_at(&sorted, 40).unwrap()), 40);
}

#[test]
fn impossible_settings_are_refused_with_their_key() {
    type Spoil = fn(&mut SearchConfig);
    let cases: [(Spoil, &str); 6] = [
        (|config| config.rungs = vec![8, 24, 70], "search.rungs"),
        (|config| config.rungs = vec![24, 8, 72], "search.rungs"),
        (|config| config.survivors.clear(), "search.survivors"),
        (|config| config.leaves_max = 1, "search.leaves_max"),
        (|config| config.key_features_max = 5, "search.key_features_max"),
        (|config| config.tail_weight = f64::NAN, "tail_weight"),
    ];
    for (spoil, key) in cases {
        let mut config = SearchConfig::default();
        config.validate().unwrap();
        spoil(&mut config);
        let error = config.validate().unwrap_err();
        assert!(error.key.contains(key), "{error}");
    }
}

#[test]
fn a_start_that_is_far_behind_the_best_one_is_run_on_the_first_lists_alone() {
    let rows = rows();
    let at = |threshold: f32| {
        let root = Branch::split(
            feature("gpu_fraction"),
            threshold,
            Branch::Leaf(1),
            Branch::Leaf(0),
        );
        draft(root)
    };
    let starts = || {
        let starts = [("best", 0.3), ("near", 0.32), ("far", 0.9)];
        starts.map(|(name, threshold)| (name.to_string(), at(threshold)))
    };
    let meta = starts()[0].1.plain_meta("test");
    let mut asked = 0;
    let found = search::<Infallible>(
        starts().into(),
        (&meta, &rows),
        &config(1),
        None,
        &mut Caller {
            judge: &mut |question| Ok(judged(question, &mut asked)),
            keep: &mut |_| Ok(()),
        },
    );
    // Three on the 4 lists of the first rung, two on the 12 others.
    let found = found.unwrap();
    assert_eq!((asked, found.simulations), (36, 36));
    let origins: Vec<&str> = found
        .archive
        .entries()
        .map(|entry| entry.origin.as_str())
        .collect();
    assert_eq!(origins, ["best", "near"]);
}

#[test]
fn a_judgement_that_is_not_a_number_is_an_error() {
    let rows = Rows::of(&Dataset::new(Seed(1), 100), 100);
    let meta = starts()[0].1.plain_meta("test");
    let found = search::<Infallible>(
        starts(),
        (&meta, &rows),
        &config(100),
        None,
        &mut Caller {
            judge: &mut |question| {
                let nothing = Outcome {
                    ln_jct: f64::NAN,
                    ln_p99: 0.0,
                };
                Ok(vec![nothing; question.runs.len()])
            },
            keep: &mut |_| Ok(()),
        },
    );
    assert!(found.unwrap_err().to_string().contains("judged NaN"));
}

#[test]
fn a_race_whose_hopeless_runs_are_broken_off_finds_the_same() {
    let (config, rows) = (config(900), rows());
    let (whole, _) = run(&config, None, &mut Vec::new());
    let meta = starts()[0].1.plain_meta("test");
    let (mut num_asked, mut num_broken_off) = (0, 0);
    let found = search::<Infallible>(
        starts(),
        (&meta, &rows),
        &config,
        None,
        &mut Caller {
            judge: &mut |question| {
                let outcomes = judged(question, &mut num_asked);
                let Some(standing) = question.standing else {
                    return Ok(outcomes);
                };
                let ran = |(run, outcome): (&(usize, usize), Outcome)| {
                    let most = standing.ln_jct_max(*run, |_| -1.0);
                    let outcome = most.is_some_and(|most| outcome.ln_jct <= most).then_some(outcome);
                    standing.note(*run, outcome);
                    num_broken_off += u64::from(outcome.is_none());
                    outcome.unwrap_or(Outcome::BROKEN_OFF)
                };
                Ok(question.runs.iter().zip(outcomes).map(ran).collect())
            },
            keep: &mut |_| Ok(()),
        },
    );
    assert_eq!(found.unwrap(), whole);
    assert!(num_broken_off > num_asked / 10, "{num_broken_off} of {num_asked}");
}
