//! The figures of a small comparison: means, ratios with their intervals, gaps to the lower bounds.

use std::sync::Arc;

use pleach_env::workload::generate::{GavelConfig, GeneratorConfig, Paper, generate};
use pleach_env::{Seed, SimConfig};
use pleach_experiments::{DOOR, Instance, PolicySpec, Results, Runner};
use pleach_scheduler::ActionKind;

use pleach_tests::golden::{Digest, Row, hold};

#[test]
fn a_comparison_gives_the_figures_it_did() {
    let generator = GeneratorConfig::Paper(Paper::GavelMulti(GavelConfig {
        num_jobs: 40,
        nodes_per_type: 2,
        nodes_per_rack: 2,
        load: 1.5,
        ..GavelConfig::default()
    }));
    let instances: Vec<Instance> = (1..=5)
        .map(|seed| Instance {
            workload: Arc::new(generate(&generator, Seed(seed)).unwrap()),
            seed,
        })
        .collect();
    let network = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../checkpoints/reference/GavelMulti-v1.ckpt"
    );
    crate::with_laboratory();
    let names = ["fifo", "sjf-best-type", "tiresias", &format!("network={network}")];
    let policies = names.iter().flat_map(|name| DOOR.open(name).unwrap());
    let policies: Vec<PolicySpec> = policies.collect();
    let mut sim = SimConfig::default();
    sim.capabilities.grant(ActionKind::Preempt, true);
    let runs = Runner::new(&sim).run(&instances, &policies).unwrap();
    let results = Results::new("golden", runs, Some("fifo")).unwrap();
    let rows = results.policies().map(|(name, summary)| {
        let mut digest = Digest::new();
        for (key, value) in &summary.metrics {
            digest.text(key);
            digest.f64(*value);
        }
        let ratio = summary.ratio_vs_reference.as_ref().map(|versus| versus.ratio);
        let ratio = ratio.map_or(String::new(), |ratio| {
            let [low, high] = [ratio.low, ratio.high].map(Option::unwrap_or_default);
            digest.f64s(&[ratio.mean, low, high]);
            format!(", ratio {:.4} [{low:.4}, {high:.4}]", ratio.mean)
        });
        let metric = |key: &str| summary.metrics[key];
        let figures = format!(
            "average JCT {:.1} s, gap {:.4}{ratio}",
            metric("avg_jct_s"),
            metric("avg_jct_gap")
        );
        Row::new(name, digest, figures)
    });
    hold("evaluation", rows.collect());
}
