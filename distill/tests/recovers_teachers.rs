//! Teachers that a tree can express are found again, from episodes of the real simulator.

use crate::world::{SmallestFirst, avg_jct_s, index_of, judge_against, run};
use pleach_distill::{Centre, DistillConfig, Distilled, Label, PruneConfig, TargetConfig, distill};
use pleach_env::{Error, Seed};
use pleach_scheduler::Provenance;
use pleach_scheduler::policy::{Needs, Policy, TieKey};
use pleach_scheduler::tree::{Node, Tree, TreeMeta, TreePolicy};

fn label() -> Label {
    Label {
        name: "student".into(),
        estimates: vec![Provenance::Oracle],
        trained_by: Default::default(),
    }
}

fn quick() -> DistillConfig {
    DistillConfig {
        seed: Seed(5),
        leaves: vec![2, 4, 8, 16],
        rounds: 1,
        episodes: 3,
        ..DistillConfig::default()
    }
}

fn distilled(teacher: &mut dyn Policy, config: &DistillConfig) -> Distilled {
    let baseline_s = avg_jct_s(teacher, 2).unwrap();
    distill(
        teacher,
        config,
        &label(),
        &mut run,
        &mut judge_against(baseline_s),
    )
    .unwrap()
}

#[test]
fn a_rule_with_the_right_tie_key_becomes_a_tree_of_a_few_leaves() {
    let config = DistillConfig {
        tie_keys: vec![TieKey::SmallestGpuTime],
        ..quick()
    };
    let found = distilled(&mut SmallestFirst, &config);
    let result = &found.report.result;
    assert!(result.leaves <= 4, "{}", found.report.text);
    assert!(result.fidelity.agreement >= 0.95, "{:?}", result.fidelity);
    assert!(result.ratio.unwrap() < 1.02, "{result:?}");
    assert_eq!(found.tree.meta().tie_key, TieKey::SmallestGpuTime);
    let needs = found.tree.meta().needs;
    assert_eq!(needs, SmallestFirst.needs(), "asked about the same candidates");
}

#[test]
fn without_the_tie_key_more_leaves_are_more_faithful() {
    let config = DistillConfig {
        tie_keys: vec![TieKey::Index],
        ..quick()
    };
    let found = distilled(&mut SmallestFirst, &config);
    let last: Vec<f64> = found
        .report
        .students
        .iter()
        .filter(|student| student.round == 1)
        .map(|student| student.fidelity.agreement_weighted)
        .collect();
    assert_eq!(last.len(), 4);
    assert!(last[3] > last[0], "{last:?}");
}

/// Starts small jobs first, but large ones before middling ones when much is free; holds before reserving.
fn teacher_tree() -> TreePolicy {
    let split = |name: &str, threshold: f32, left, right| Node::Split {
        feature: index_of(name) as u16,
        threshold,
        left,
        right,
    };
    let leaf = |id, score| Node::Leaf {
        id,
        score,
        samples: 1,
        weight: 1.0,
    };
    let nodes = [
        split("is_hold", 0.5, 1, 2),
        split("gpu_time_gpu_s", 0.45, 3, 4),
        leaf(0, -3.0),
        leaf(1, 2.0),
        split("leftover_fraction", 0.25, 5, 6),
        leaf(2, 0.0),
        leaf(3, 1.0),
    ];
    let meta = TreeMeta {
        name: "teacher".into(),
        tie_key: TieKey::Arrival,
        key_weights: Vec::new(),
        needs: SmallestFirst.needs(),
        estimates: vec![],
        trained_by: Default::default(),
    };
    TreePolicy::new(Tree::new(meta, &nodes).unwrap())
}

#[test]
fn a_teacher_that_is_a_tree_is_recovered_exactly() {
    let config = DistillConfig {
        tie_keys: vec![TieKey::Arrival],
        target: TargetConfig {
            centre: Centre::None,
            ..TargetConfig::default()
        },
        held_out: 0.0,
        rounds: 0,
        prune: PruneConfig {
            tries: 0,
            ..PruneConfig::default()
        },
        cart: pleach_distill::cart::CartConfig {
            leaf_rows_min: 1,
            leaf_weight_min: 0.0,
            ..Default::default()
        },
        ..quick()
    };
    let mut teacher = teacher_tree();
    let found = distilled(&mut teacher, &config);
    let student = found.report.students.last().unwrap();
    assert_eq!(student.fidelity.agreement, 1.0, "{}", found.report.text);
    assert_eq!(student.fidelity.regret, 0.0);
    let tree = found.students.last().unwrap();
    assert_eq!(tree.num_leaves(), 4, "{}", tree.to_text());
    let mut scores = tree.tiers();
    scores
        .iter_mut()
        .for_each(|score| *score = (*score * 1e4).round() / 1e4);
    assert_eq!(scores, [2.0, 1.0, 0.0, -3.0]);
    assert_eq!(
        tree.features(),
        ["is_hold", "gpu_time_gpu_s", "leftover_fraction"]
    );
}

#[test]
fn the_same_distillation_gives_the_same_bytes_at_any_number_of_threads() {
    let config = DistillConfig {
        rows_max: 4000,
        beta: 0.5,
        leaves: vec![8],
        ..quick()
    };
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| {
            let found = distilled(&mut SmallestFirst, &config);
            let report = serde_json::to_string(&found.report).unwrap();
            (found.tree.to_json(), report)
        })
    };
    let one = with(1);
    assert_eq!(one, with(4));
    assert!(one.1.contains("\"num_rows\""));
}

#[test]
fn errors_of_the_caller_and_empty_episodes_are_reported() {
    let mut fail = |_: pleach_distill::Episode, _: &mut dyn Policy| Err::<(), String>("no disk".into());
    let mut judge = |_: &TreePolicy| Ok::<f64, String>(1.0);
    let text = distill(&mut SmallestFirst, &quick(), &label(), &mut fail, &mut judge)
        .unwrap_err()
        .to_string();
    assert_eq!(text, "no disk");
    let mut nothing = |_: pleach_distill::Episode, _: &mut dyn Policy| Ok::<(), String>(());
    let text = distill(&mut SmallestFirst, &quick(), &label(), &mut nothing, &mut judge)
        .unwrap_err()
        .to_string();
    assert!(text.contains("nothing was recorded in 3 episodes"), "{text}");
}

#[test]
fn a_heuristic_is_a_teacher_like_any_other() {
    let mut teacher = pleach_scheduler::heuristics::by_name("sjf-reserve").unwrap();
    let config = DistillConfig {
        target: TargetConfig {
            centre: Centre::Rank,
            ..TargetConfig::default()
        },
        ..quick()
    };
    let found: Result<_, pleach_distill::Error<Error>> = distill(
        &mut teacher,
        &config,
        &label(),
        &mut run,
        &mut judge_against(
            avg_jct_s(
                &mut pleach_scheduler::heuristics::by_name("sjf-reserve").unwrap(),
                2,
            )
            .unwrap(),
        ),
    );
    let found = found.unwrap();
    assert!(
        found.report.result.fidelity.agreement > 0.9,
        "{:#?}",
        found.report.result
    );
    assert_ne!(Needs::full(), teacher.needs());
}
