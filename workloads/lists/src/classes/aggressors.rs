//! Pairs of which no utilisation tells how they fare: beside a large image model nearly everything falls to a quarter.
//!
//! ```text
//! speed of a victim = 1 / (1 + v a)
//! ```
//!
//! # Source
//! `v` and `a` fitted to Gavel's 636 pairs on one V100 under MPS (OSDI'20; RMS error of a speed 0.14, the rule by utilisation has
//! 0.18). Of the aggressors in that fit only ResNet-50 has an `a` above 3 (3.5 to 5.0 by batch; 4 stands for all); all else is left to
//! the rule. The victims' are means over batches. That other GPU types fare alike is *assumed*.

use std::collections::BTreeSet;

use pleach_scheduler::cluster_spec::{ClusterSpec, ModelClass};
use pleach_scheduler::physics::interference::{PairEntry, family};

use super::table::facts_of;

/// The row that slows all others, and by how much.
const AGGRESSOR: (&str, f64) = ("resnet50-imagenet", 4.0);

/// Rows, the model of Gavel's that stands for each, and how it suffers.
const VICTIMS: [(&str, &str, f64); 10] = [
    ("resnet18-cifar", "ResNet-18", 0.15),
    ("resnet50-imagenet", "ResNet-50", 0.94),
    ("vgg16", "ResNet-50", 0.94),
    ("yolov3", "CycleGAN", 0.76),
    ("bert-base", "Transformer", 0.55),
    ("bert-large", "Transformer", 0.55),
    ("deepspeech2-asr", "LM", 0.51),
    ("ncf-recsys", "Recommendation", 0.92),
    ("a2c-atari", "A3C", 0.75),
    ("dqn-atari", "A3C", 0.75),
];

/// The pairs of a list's classes that the law above decides, by family, on every GPU type of the cluster.
pub(super) fn pairs_of(classes: &[ModelClass], cluster: &ClusterSpec) -> Vec<PairEntry> {
    let families: BTreeSet<&str> = classes.iter().map(|class| family(&class.name)).collect();
    let row_of = |name: &str| facts_of(name).map(|facts| facts.name);
    let aggressors = families.iter().filter(|name| row_of(name) == Some(AGGRESSOR.0));
    let aggressors: Vec<&str> = aggressors.copied().collect();
    let mut pairs = Vec::new();
    for victim in families {
        let row = row_of(victim);
        let Some((.., suffers)) = VICTIMS.iter().find(|(name, ..)| Some(*name) == row) else {
            continue;
        };
        for neighbour in &aggressors {
            pairs.extend(cluster.gpu_types.iter().map(|gpu| PairEntry {
                gpu_type: gpu.name.clone(),
                victim: victim.into(),
                neighbour: (*neighbour).into(),
                speed: 1.0 / (1.0 + suffers * AGGRESSOR.1),
            }));
        }
    }
    pairs
}
