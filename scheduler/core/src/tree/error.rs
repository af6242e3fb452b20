//! Why a policy file or a tree is refused.

use thiserror::Error;

/// A tree that cannot be used, with the reason.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TreeError {
    /// The file cannot be read or written.
    #[error("policy file {path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file is larger than any policy needs.
    #[error("the policy file has {bytes} bytes or more; at most {max} are read")]
    TooLarge {
        /// Size of the file.
        bytes: u64,
        /// The bound.
        max: u64,
    },
    /// The text is not JSON, or a key is missing, unknown or of the wrong kind.
    #[error("the policy file is not of the expected form: {0}")]
    Json(String),
    /// The file is of another kind.
    #[error(
        "the file says format \"{found}\"; a policy file says \"{expected}\"{}",
        of_removed(found)
    )]
    Format {
        /// What the file says.
        found: String,
        /// What it should say.
        expected: &'static str,
    },
    /// The file has a version that this program does not know.
    #[error("the policy file has version {found}; this program reads versions 1 to {supported}")]
    Version {
        /// Version of the file.
        found: u64,
        /// Newest version of this program.
        supported: u64,
    },
    /// The tree was made for other features.
    #[error(
        "the policy was made for another feature schema\n  file:    {file}\n  program: {program}\n{differences}\
         distil the policy again with this program, or run it with the program that made it"
    )]
    Schema {
        /// Hash in the file.
        file: String,
        /// Hash of this program.
        program: String,
        /// Features that are in one of the two only, one line each.
        differences: String,
    },
    /// A key beside the nodes has a value that cannot be used.
    #[error("policy file: {key} = {value}: allowed is {allowed}")]
    Value {
        /// Path of the key.
        key: &'static str,
        /// The value found.
        value: String,
        /// What would be accepted.
        allowed: String,
    },
    /// The tree has no nodes or too many.
    #[error("the tree has {found} nodes; allowed are 1 to {max}")]
    NumNodes {
        /// Number of nodes.
        found: usize,
        /// The bound.
        max: usize,
    },
    /// A node that cannot be used.
    #[error("node {node}: {reason}")]
    Node {
        /// Its place in the list, from 0.
        node: usize,
        /// What is wrong.
        reason: NodeError,
    },
    /// A weight of the key that cannot be used.
    #[error("key_weights[{term}]: {reason}")]
    Key {
        /// Its place in the list, from 0.
        term: usize,
        /// What is wrong.
        reason: KeyError,
    },
    /// A certificate that is not one of this tree.
    #[error("certificates{place}: {reason}; make them anew with pleach distill seal FILE")]
    Certificate {
        /// Which, `[2]`; empty for all.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// The policy needs what the cluster cannot do.
    #[error("the policy \"{policy}\" needs {capability}, which this cluster does not offer")]
    Capability {
        /// Name of the policy.
        policy: String,
        /// What is missing.
        capability: &'static str,
    },
}

/// What is wrong with one weight of the key.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// More features than a key may weigh.
    #[error("there are {found} weights, and at most {max} features are weighed: leave the smallest out")]
    TooMany {
        /// Number of weights.
        found: usize,
        /// The bound.
        max: usize,
    },
    /// No such feature in the schema.
    #[error("there is no feature \"{name}\"; the features of a candidate are listed under schema")]
    Unknown {
        /// The name.
        name: String,
    },
    /// A feature of the cluster.
    #[error(
        "{name} is a feature of the cluster, the same for all candidates of a decision, and orders none of them: weigh a \
         feature of a candidate, or split on it"
    )]
    Global {
        /// The feature.
        name: &'static str,
    },
    /// A weight that is NaN or infinite.
    #[error("the weight of {name} is not a finite number: give one, or take the line out")]
    NotFinite {
        /// The feature.
        name: &'static str,
    },
    /// A weight of nothing.
    #[error("the weight of {name} is 0 and orders nothing: take the line out")]
    Zero {
        /// The feature.
        name: &'static str,
    },
    /// A feature that has a weight already.
    #[error("{name} has a weight already: add the two up in one line")]
    Repeated {
        /// The feature.
        name: &'static str,
    },
    /// A key in a file of a version that had none.
    #[error("a file of version 1 has no key_weights: say \"version\": 2")]
    Version,
}

/// What is wrong with one node.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum NodeError {
    /// Neither a split nor a leaf, or something of both.
    #[error(
        "a node has either feature, threshold, left and right, or leaf, score, samples and weight; {found}"
    )]
    Shape {
        /// What was found.
        found: String,
    },
    /// The stated place is not the place in the list.
    #[error("it calls itself node {stated}")]
    Place {
        /// The stated place.
        stated: usize,
    },
    /// No such feature in the schema.
    #[error("there is no feature \"{name}\"")]
    UnknownFeature {
        /// The name.
        name: String,
    },
    /// A number is NaN or infinite.
    #[error("its {what} is not a finite number")]
    NotFinite {
        /// Which number.
        what: &'static str,
    },
    /// A number of samples or a weight below zero.
    #[error("its weight {weight} is negative")]
    NegativeWeight {
        /// The weight.
        weight: f64,
    },
    /// One side could never be reached.
    #[error("its threshold {threshold} is outside [{min}, {max}), so one side could never be reached")]
    Range {
        /// The scaled threshold.
        threshold: f32,
        /// Least scaled value of the feature.
        min: f32,
        /// Largest scaled value of the feature.
        max: f32,
    },
    /// What a reader sees is not what would run.
    #[error(
        "it shows {shown} to its reader, but its threshold {threshold} means {meant}: make the two agree, or leave raw out"
    )]
    Raw {
        /// The raw value and unit in the file.
        shown: String,
        /// The scaled threshold.
        threshold: f32,
        /// The raw value and unit that the threshold stands for.
        meant: String,
    },
    /// A raw threshold that was changed to where one side could never be reached.
    #[error("its raw threshold is {raw} {unit}: allowed is {min} to {max}, the largest excluded")]
    RawRange {
        /// The raw value in the file.
        raw: f64,
        /// Least raw value of the feature.
        min: f32,
        /// Largest raw value of the feature.
        max: f32,
        /// Its unit.
        unit: &'static str,
    },
    /// A child that does not exist.
    #[error("its child {child} does not exist; there are {num_nodes} nodes")]
    Dangling {
        /// The child.
        child: usize,
        /// Number of nodes.
        num_nodes: usize,
    },
    /// The way down comes back to this node.
    #[error("its child {child} leads back to it: the nodes form a cycle")]
    Cycle {
        /// The child.
        child: usize,
    },
    /// Two nodes have the same child.
    #[error("its child {child} already has a parent")]
    Shared {
        /// The child.
        child: usize,
    },
    /// No way leads here.
    #[error("no path from node 0 leads to it")]
    Unreachable,
    /// The path to it is too long.
    #[error("it lies deeper than {max} splits")]
    TooDeep {
        /// The bound.
        max: usize,
    },
    /// Another leaf has the same id.
    #[error("another leaf also has the id {leaf}")]
    DuplicateLeaf {
        /// The id.
        leaf: u32,
    },
}

/// What to say besides of a format that earlier versions had.
fn of_removed(found: &str) -> &'static str {
    match found {
        "pleach-selector" => {
            ". Selectors are gone: a tree that was searched is ahead of them (pleach distill --search)"
        }
        _ => "",
    }
}
