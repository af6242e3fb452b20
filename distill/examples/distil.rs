//! Distils a made-up teacher on generated workloads; prints what each tree is worth, and the tree.

#![allow(
    clippy::disallowed_methods,
    reason = "an example; its last places are nobody's promise"
)]

use pleach_distill::{DistillConfig, Label, distill};
use pleach_env::{Error, GeneratorConfig, Seed, SimConfig, candidate_rows, generate, simulate};
use pleach_scheduler::{DecisionPoint, FeatureSchema, Policy, PolicyError, TreePolicy};

/// Weighs size, waiting and what is left free; stands for a network.
struct Teacher;

impl Policy for Teacher {
    fn name(&self) -> &str {
        "weighted-sum"
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        let at = |name| FeatureSchema::current().joined_index(name).unwrap_or(0);
        let (size, wait, left) = (at("gpu_time_gpu_s"), at("wait_ratio"), at("leftover_fraction"));
        let hold = at("is_hold");
        for (score, row) in scores.iter_mut().zip(candidate_rows(&point.observation).rows()) {
            *score = -12.0 * row[size] + 2.0 * row[wait] + 3.0 * row[left] - 20.0 * row[hold];
        }
        Ok(())
    }
}

/// Mean JCT of a policy on one of many workloads, s.
fn jct_s(stream: &str, number: usize, policy: &mut dyn Policy) -> Result<f64, Error> {
    let config = GeneratorConfig::default().with(400, 1.1);
    let workload = generate(&config, Seed(1).child(stream, number as u64))?;
    Ok(simulate(&workload, &SimConfig::default(), policy)?
        .metrics
        .avg_jct_s)
}

fn main() -> Result<(), pleach_distill::Error<Error>> {
    let teacher_s: Result<Vec<f64>, Error> = (0..8).map(|n| jct_s("judge", n, &mut Teacher)).collect();
    let teacher_s = teacher_s.map_err(pleach_distill::Error::Caller)?;
    let mut judge = |tree: &TreePolicy| {
        let ratio = |n: usize| Ok(jct_s("judge", n, &mut tree.clone())? / teacher_s[n]);
        let ratios: Result<Vec<f64>, Error> = (0..8).map(ratio).collect();
        Ok((ratios?.iter().map(|ratio| ratio.ln()).sum::<f64>() / 8.0).exp())
    };
    let label = Label {
        name: "example".into(),
        ..Label::default()
    };
    let found = distill(
        &mut Teacher,
        &DistillConfig::default(),
        &label,
        &mut |episode, policy| jct_s("learn", episode.number, policy).map(|_| ()),
        &mut judge,
    )?;
    for row in found.report.students.iter().chain(&found.report.pruning) {
        let agrees = row.fidelity.agreement * 100.0;
        println!(
            "round {}, {:2} leaves: agrees {agrees:.1} %, JCT ratio {:.3?}",
            row.round, row.leaves, row.ratio
        );
    }
    println!("\n{}", found.report.text);
    Ok(())
}
