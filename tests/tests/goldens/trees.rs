//! A tiny tree distilled from a made-up teacher: its nodes, and how well it does.

use std::convert::Infallible;

use pleach_distill::{DistillConfig, Label, distill};
use pleach_env::workload::generate::{GeneratorConfig, ProfileConfig, generate};
use pleach_env::{Seed, SimConfig, simulate};
use pleach_scheduler::PolicyError;
use pleach_scheduler::features::FeatureSchema;
use pleach_scheduler::policy::{DecisionPoint, Policy};
use pleach_scheduler::tree::{Tree, TreePolicy};
use serde_json::Value;

use pleach_tests::golden::{Digest, Row, hold};

/// Weighs size, waiting and what is left free.
struct Teacher;

impl Policy for Teacher {
    fn name(&self) -> &str {
        "weighted-sum"
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        let names = ["gpu_time_gpu_s", "wait_ratio", "leftover_fraction", "is_hold"];
        let weights = [-12.0, 2.0, 3.0, -20.0];
        let columns = names.map(|name| FeatureSchema::current().joined_index(name).unwrap());
        for (index, score) in scores.iter_mut().enumerate() {
            let row = point.observation.row(index);
            *score = columns
                .iter()
                .zip(weights)
                .map(|(column, weight)| weight * row[*column])
                .sum();
        }
        Ok(())
    }
}

fn jct_s(stream: &str, number: usize, policy: &mut dyn Policy) -> f64 {
    let generator = GeneratorConfig::Profile(ProfileConfig {
        num_jobs: 60,
        num_nodes: 4,
        nodes_per_rack: 2,
        load: 4.0,
        run_time_s_max: 86_400.0,
        ..ProfileConfig::default()
    });
    let workload = generate(&generator, Seed(3).child(stream, number as u64)).unwrap();
    simulate(&workload, &SimConfig::default(), policy)
        .unwrap()
        .metrics
        .avg_jct_s
}

#[test]
fn a_distilled_tree_has_the_nodes_it_had() {
    let teacher_s = jct_s("judge", 0, &mut Teacher);
    let config = DistillConfig {
        leaves: vec![4, 8],
        rounds: 1,
        episodes: 2,
        ..DistillConfig::default()
    };
    let label = Label {
        name: "golden".into(),
        ..Label::default()
    };
    let found = distill::<Infallible>(
        &mut Teacher,
        &config,
        &label,
        &mut |episode, policy| {
            jct_s("learn", episode.number, policy);
            Ok(())
        },
        &mut |tree: &TreePolicy| Ok(jct_s("judge", 0, &mut tree.clone()) / teacher_s),
    )
    .unwrap();
    let mut rows: Vec<Row> = Vec::new();
    let students = found.report.students.iter().zip(&found.students);
    for (number, (report, tree)) in students.chain([(&found.report.result, &found.tree)]).enumerate() {
        let mut digest = Digest::new();
        nodes(tree).iter().for_each(|node| digest.text(&node.to_string()));
        digest.f64s(&[report.fidelity.agreement, report.ratio.unwrap_or_default()]);
        let figures = format!(
            "{} leaves, agreement {:.4}, ratio {:.4?}",
            report.leaves, report.fidelity.agreement, report.ratio
        );
        let is_student = number < found.students.len();
        let name = if is_student {
            format!("student {number}")
        } else {
            "result".into()
        };
        rows.push(Row::new(name, digest, figures));
    }
    rows.extend(nodes(&found.tree).iter().enumerate().map(|(number, node)| Row {
        name: format!("node {number}"),
        result: node.to_string(),
    }));
    hold("trees", rows);
}

/// Of the policy file the nodes alone: the rest says where it is from.
fn nodes(tree: &Tree) -> Vec<Value> {
    let file: Value = serde_json::from_str(&tree.to_json()).unwrap();
    file["nodes"].as_array().unwrap().clone()
}
