//! A counterfactual worked by hand, and random trees in which no point of a grid is nearer.

use proptest::prelude::*;

use super::super::tests::{leaf, meta, small_tree, split};
use super::super::{Node, Tree};
use super::search::Search;
use super::*;
use crate::candidate::CandidateKind;
use crate::cluster::Cluster;
use crate::cluster::tests::{cluster_of, submit};
use crate::cluster_spec::ClusterSpec;
use crate::ids::Time;
use crate::pass::Pass;
use crate::policy::Policy;

/// The pass of a cluster, observed.
fn observed(cluster: &Cluster, policy: &TreePolicy) -> Pass {
    let mut pass = Pass::new();
    pass.open(cluster, &policy.needs());
    pass.observe(cluster);
    pass
}

fn start_of(pass: &Pass, job: u32) -> usize {
    let mut rows = pass.candidates().iter();
    let place = rows.position(|row| row.job.is_some_and(|found| found.0 == job));
    place.unwrap()
}

/// Job 0 asks for 2 GPUs x 3,000 s, 6,000 GPU s, and is in tier 2; job 1 is in tier 1 with 2 GPUs x 600 s. In tier 1 job 0 has
/// to come first by its rest, too: below 600 s of rest, which is a smaller change than none that keeps 3,000 s.
#[test]
fn the_nearest_change_of_a_passed_over_job_is_the_one_worked_by_hand() {
    let mut cluster = cluster_of(&ClusterSpec::uniform(1, 4, 1));
    submit(&mut cluster, 2, 3000.0);
    submit(&mut cluster, 2, 600.0);
    let policy = TreePolicy::new(small_tree());
    let pass = observed(&cluster, &policy);
    let point = DecisionPoint {
        cluster: &cluster,
        candidates: pass.candidates(),
        observation: pass.observation().as_ref(),
    };
    let pair = (start_of(&pass, 0), start_of(&pass, 1));
    let found = policy.counterfactual(&point, pair, &|_| true).unwrap().unwrap();
    assert_eq!((found.tier, found.changes.len()), (1, 1));
    assert_eq!(found.changes[0].feature, "remaining_s");
    assert!(
        (found.changes[0].raw.1 - 600.0).abs() < 0.2,
        "{:?}",
        found.changes[0]
    );
    assert_eq!(found.changes[0].control, Control::User);
    assert_eq!(
        found.to_string(),
        "remaining_s 599.9 s (10.0 min) instead of 3,000 s (50.0 min) (the user's choice), hence gpu_time_gpu_s 1,200 \
         GPU s: tier 1"
    );
    // Where no feature may change, or only what time changes, there is no counterfactual.
    let none = policy.counterfactual(&point, pair, &|_| false).unwrap();
    assert_eq!(none, None);
    let time = |control| control == Control::Time;
    assert_eq!(policy.counterfactual(&point, pair, &time).unwrap(), None);
}

/// What is said to follow from another size, rest or wait is what the observation of such a job says.
#[test]
fn a_row_with_other_roots_is_the_row_of_such_a_job() {
    let policy = TreePolicy::new(small_tree());
    let world = |gpus: u32, run_s: f64, wait_s: f64| {
        let mut cluster = cluster_of(&ClusterSpec::uniform(2, 8, 2));
        let needs = policy.needs();
        let mut pass = Pass::new();
        submit(&mut cluster, 3, 90_000.0);
        pass.open(&cluster, &needs);
        pass.act(&mut cluster, &needs, 1);
        submit(&mut cluster, gpus, run_s);
        cluster.advance(Time::from_secs_f64(wait_s));
        let pass = observed(&cluster, &policy);
        let at = start_of(&pass, 1);
        let seen = pass.observation().as_ref();
        ([seen.row(at), seen.global].concat(), 1.0)
    };
    let (row, rate) = world(2, 4000.0, 1000.0);
    let rank = Rank {
        score: 0.0,
        sum: 0.0,
        tie: 0.0,
        index: 1,
    };
    let tree = policy.tree();
    let search = Search::new(tree, &row, CandidateKind::Start, rate, (rank, rank), &|_| true);
    for (gpus, run_s, wait_s) in [
        (2, 900.0, 1000.0),
        (3, 4000.0, 1000.0),
        (2, 4000.0, 7000.0),
        (1, 50.0, 60.0),
    ] {
        let (other, _) = world(gpus, run_s, wait_s);
        let made = search.row_of(f64::from(gpus), run_s, wait_s).unwrap();
        for column in [
            C::NumGpus,
            C::GpuFraction,
            C::RemainingS,
            C::DurationS,
            C::GpuTime,
            C::WaitS,
            C::WaitRatio,
            C::Leftover,
        ] {
            let (made, other) = (made[column as usize], other[column as usize]);
            assert!((made - other).abs() < 2e-6, "{column:?}: {made} for {other}");
        }
    }
}

/// What random trees read: all roots, what follows from them, a placement and a flag.
const READ: [C; 9] = [
    C::NumGpus,
    C::RemainingS,
    C::GpuTime,
    C::WaitS,
    C::WaitRatio,
    C::DurationS,
    C::Leftover,
    C::Speed,
    C::HeadArrival,
];

fn random_tree() -> impl Strategy<Value = Tree> {
    let step = (any::<u16>(), 0..READ.len(), 0.02..0.98_f32, -2_i8..3);
    prop::collection::vec(step, 1..12).prop_map(|steps| {
        let mut nodes = vec![leaf(0, 0.0)];
        for (number, (which, feature, share, score)) in steps.into_iter().enumerate() {
            let leaves: Vec<usize> = (0..nodes.len())
                .filter(|index| matches!(nodes[*index], Node::Leaf { .. }))
                .collect();
            let place = leaves[usize::from(which) % leaves.len()];
            let column = READ[feature];
            // Where rows are: gangs of up to 16, times of up to a day.
            let most: f32 = match column {
                C::NumGpus => 16.0,
                C::RemainingS | C::WaitS | C::DurationS => 1e5,
                C::GpuTime => 1e6,
                C::WaitRatio => 100.0,
                _ => 1.0,
            };
            let found = &FEATURES[column as usize];
            let (left, right) = (nodes.len() as u32, nodes.len() as u32 + 1);
            let old = nodes[place];
            let low = found.encode(found.min);
            nodes[place] = Node::Split {
                feature: column as u16,
                threshold: low + (found.encode(most) - low) * share,
                left,
                right,
            };
            nodes.push(old);
            nodes.push(leaf(number as u32 + 1, f32::from(score)));
        }
        let mut meta = meta();
        meta.tie_key = crate::policy::TieKey::Index;
        Tree::new(meta, &nodes).unwrap()
    })
}

/// A row of a start of `gpus` of 16 GPUs, all free.
fn row_of(gpus: f32, rest_s: f32, wait_s: f32, speed: f32) -> Vec<f32> {
    let mut row = vec![0.0; FEATURES.len()];
    let mut put = |column: C, raw: f32| row[column as usize] = FEATURES[column as usize].encode(raw);
    put(C::IsStart, 1.0);
    put(C::NumGpus, gpus);
    put(C::GpuFraction, gpus / 16.0);
    put(C::RemainingS, rest_s);
    put(C::DurationS, rest_s / speed);
    put(C::GpuTime, rest_s * gpus);
    put(C::WaitS, wait_s);
    put(C::WaitRatio, 1.0 + wait_s / rest_s);
    put(C::Speed, speed);
    put(C::Leftover, 1.0 - gpus / 16.0);
    row[C::OldestWaitS as usize] = 1.0;
    row
}

/// Steps of a time, s, over six decades.
fn times() -> impl Iterator<Item = f64> {
    (0..=36).map(|step| 10_f64.powf(f64::from(step) / 6.0))
}

/// Changes of a row to a grid of others: how many, and how far.
fn nearest_on_grid(tree: &Tree, row: &[f32], search: &Search<'_>, score: f32) -> Option<(usize, f64)> {
    let raw = |column: C| FEATURES[column as usize].scale.invert(row[column as usize]);
    let own = (raw(C::NumGpus).round(), raw(C::RemainingS), raw(C::WaitS));
    let span = |column: C| {
        let feature = &FEATURES[column as usize];
        f64::from(feature.encode(feature.max) - feature.encode(feature.min))
    };
    let mut best: Option<(usize, f64)> = None;
    let sizes = std::iter::once(own.0).chain((1..=16).map(f64::from));
    for gpus in sizes {
        for rest_s in std::iter::once(own.1).chain(times()) {
            for wait_s in std::iter::once(own.2).chain(times()) {
                let Some(made) = search.row_of(gpus, rest_s, wait_s) else {
                    continue;
                };
                for (speed, oldest) in [0.1, 0.4, 0.7, 1.0, -1.0]
                    .into_iter()
                    .flat_map(|speed| [(speed, 0.0), (speed, 1.0)])
                {
                    let mut made = made.clone();
                    if speed >= 0.0 {
                        made[C::Speed as usize] = speed;
                    }
                    made[C::HeadArrival as usize] = oldest;
                    if super::score_at(tree, tree.walk(&made)).0 <= score {
                        continue;
                    }
                    let by_itself = [C::NumGpus, C::RemainingS, C::WaitS, C::Speed, C::HeadArrival];
                    let differ = by_itself
                        .into_iter()
                        .filter(|column| made[*column as usize] != row[*column as usize]);
                    let (mut num, mut cost) = (0, 0.0);
                    for column in differ {
                        let (a, b) = (made[column as usize], row[column as usize]);
                        (num, cost) = (num + 1, cost + f64::from((a - b).abs()) / span(column));
                    }
                    if best.is_none_or(|best| (num, cost) < best) {
                        best = Some((num, cost));
                    }
                }
            }
        }
    }
    best
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn no_point_of_a_grid_is_nearer_than_what_is_found(
        tree in random_tree(),
        (gpus, rest, wait, speed) in (1_u8..=16, 0.0..5.0_f32, 0.0..5.0_f32, 0.05..1.0_f32),
    ) {
        let row = row_of(f32::from(gpus), 10_f32.powf(rest), 10_f32.powf(wait), speed);
        let (score, _) = super::score_at(&tree, tree.walk(&row));
        let rank = |index| Rank { score, sum: 0.0, tie: 0.0, index };
        // Its own score, and the lower index: only a better leaf will do.
        let ranks = (rank(2), rank(1));
        let search = Search::new(&tree, &row, CandidateKind::Start, f64::from(speed), ranks, &|_| true);
        let found = search.nearest();
        if let Some(found) = &found {
            prop_assert!(super::score_at(&tree, tree.walk(&found.row)).0 > score, "it does not win");
        }
        if let Some((num, cost)) = nearest_on_grid(&tree, &row, &search, score) {
            let found = found.expect("the grid has one");
            let own = (found.changed.len(), found.cost);
            prop_assert!(own.0 < num || own.0 == num && own.1 <= cost + 1e-4, "{own:?} against {num}, {cost}");
        }
    }
}

#[test]
fn a_key_is_lowered_by_the_feature_that_may_move() {
    let tree = {
        let mut meta = meta();
        meta.key_weights = vec![super::super::tests::weight("speed_ratio", -1.0)];
        Tree::new(meta, &[split("is_hold", 0.5, 1, 2), leaf(0, 1.0), leaf(1, 0.0)]).unwrap()
    };
    let row = row_of(2.0, 100.0, 50.0, 0.5);
    let rank = |sum: f64, index| Rank {
        score: 1.0,
        sum,
        tie: 0.0,
        index,
    };
    let ranks = (rank(-0.5, 2), rank(-0.8, 1));
    let search = Search::new(&tree, &row, CandidateKind::Start, 1.0, ranks, &|_| true);
    let found = search.nearest().unwrap();
    assert_eq!(found.changed, [C::Speed as usize]);
    assert!((found.row[C::Speed as usize] - 0.8).abs() < 1e-4);
}
