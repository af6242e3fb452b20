//! Time of one tree decision over 64 candidates, and of fitting a tree to 300,000 candidates.

#![allow(clippy::unwrap_used, missing_docs)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use pleach_distill::cart::{Binned, CartConfig, Grown, grow};
use pleach_distill::{Dataset, Recording, TargetConfig, Targets};
use pleach_env::workload::generate::{GeneratorConfig, generate};
use pleach_env::{Seed, SimConfig, simulate};
use pleach_scheduler::PolicyError;
use pleach_scheduler::candidate::MAX_CANDIDATES;
use pleach_scheduler::features::DECISION_1;
use pleach_scheduler::features::FeatureSchema;
use pleach_scheduler::observation::ObservationRef;
use pleach_scheduler::policy::{DecisionPoint, Needs, Policy, TieKey};
use pleach_scheduler::tree::{Tree, TreeMeta, TreePolicy};

const NUM_ROWS: usize = 300_000;
const NUM_FEATURES: usize = DECISION_1.len;

/// A smooth score of several features, so that a tree has something to do.
struct Smooth;

impl Policy for Smooth {
    fn name(&self) -> &str {
        "smooth"
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        let schema = FeatureSchema::current();
        let at = |name| schema.joined_index(name).unwrap();
        let (hold, gpu_time, wait) = (at("is_hold"), at("gpu_time_gpu_s"), at("wait_s"));
        let (leftover, locality) = (at("leftover_fraction"), at("locality"));
        for (index, score) in scores.iter_mut().enumerate() {
            let row = point.observation.row(index);
            *score = 2.0 * locality_bonus(row[locality]) - 6.0 * row[gpu_time] + row[wait] * row[leftover]
                - 4.0 * row[hold];
        }
        Ok(())
    }
}

fn locality_bonus(locality: f32) -> f32 {
    locality * locality
}

fn record() -> Dataset {
    let mut data = Dataset::new(Seed(1), NUM_ROWS);
    for index in 0.. {
        let config = GeneratorConfig::default().with(1000, 1.5);
        let workload = generate(&config, Seed(1).child("bench", index)).unwrap();
        let mut teacher = Smooth;
        let mut recording = Recording::of_teacher(&mut teacher, &mut data, Seed(1).stream("bench", index));
        simulate(&workload, &SimConfig::default(), &mut recording).unwrap();
        if data.num_offered() > data.num_points() as u64 {
            break;
        }
    }
    data
}

/// Joined rows and targets, `NUM_ROWS` of them by repetition.
fn table(data: &Dataset) -> (Vec<f32>, Vec<f32>, Vec<f32>) {
    let points: Vec<usize> = (0..data.num_points()).collect();
    let targets = Targets::of(data, &points, &TargetConfig::default());
    let mut rows = Vec::with_capacity(NUM_ROWS * NUM_FEATURES);
    for &index in &points {
        let point = data.point(index);
        for candidate in point.candidates.chunks_exact(DECISION_1.num_row) {
            rows.extend_from_slice(candidate);
            rows.extend_from_slice(point.global);
        }
    }
    let fill = |values: &[f32], width: usize| values.iter().copied().cycle().take(NUM_ROWS * width).collect();
    (
        fill(&rows, NUM_FEATURES),
        fill(&targets.target, 1),
        fill(&targets.weight, 1),
    )
}

fn fit(rows: &[f32], target: &[f32], weight: &[f32], leaves: usize) -> Grown {
    let value = |row: usize, feature: usize| rows[row * NUM_FEATURES + feature];
    let config = CartConfig::default();
    let data = Binned::new(target.len(), NUM_FEATURES, config.bins, value);
    grow(&data, value, target, weight, leaves, &config, &[])
}

fn benches(criterion: &mut Criterion) {
    let data = record();
    let (rows, target, weight) = table(&data);
    let grown = fit(&rows, &target, &weight, 256);
    let mut candidates: Vec<f32> = Vec::new();
    for index in 0..data.num_points() {
        candidates.extend_from_slice(data.point(index).candidates);
    }
    let width = MAX_CANDIDATES * DECISION_1.num_row;
    let num_sets = candidates.len() / width;
    for leaves in [8, 32, 256] {
        let meta = TreeMeta {
            name: "bench".into(),
            tie_key: TieKey::ShortestEstimate,
            key_weights: Vec::new(),
            needs: Needs::full(),
            estimates: Vec::new(),
            trained_by: Default::default(),
        };
        let tree = Tree::new(meta, &grown.nodes_with(leaves)).unwrap();
        let policy = TreePolicy::new(tree);
        let mut found = [0; MAX_CANDIDATES];
        let mut next = 0;
        criterion.bench_function(&format!("decision, 64 candidates, {leaves} leaves"), |bencher| {
            bencher.iter(|| {
                next = (next + 1) % num_sets;
                let observation = ObservationRef {
                    global: data.point(next).global,
                    candidates: &candidates[next * width..(next + 1) * width],
                    width: DECISION_1.num_row,
                    mask: &[true; MAX_CANDIDATES],
                };
                policy.leaves(black_box(&observation), &mut found).unwrap();
                black_box(&found);
            });
        });
    }
    let mut group = criterion.benchmark_group("fit");
    group.sample_size(10);
    group.bench_function("300,000 rows x 44 features, 32 leaves", |bencher| {
        bencher.iter(|| black_box(fit(&rows, &target, &weight, 32)));
    });
    group.finish();
}

criterion_group!(tree, benches);
criterion_main!(tree);
