//! What is known of a tree for certain: properties with their verdicts.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Something that can be said of every decision that a tree will ever take.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Property {
    /// A job that waits longer, all else equal, never comes later: neither in a worse tier nor, within a tier, by a larger key.
    /// What grows with waiting moves together: its waiting time, its response ratio, the longest waiting time of the queue.
    MonotoneInWaiting,
    /// A job with a shorter estimate, all else equal, never comes in a worse tier. What follows from the estimate moves together:
    /// rest, duration and GPU time, its ranks, the response ratio, the drain time and the least GPU time of the queue.
    MonotoneInEstimate,
    /// What a row would use, a replica or a machine, has less to do, all else equal: then the row never comes later, neither in a
    /// worse tier nor, within a tier, by a larger key. Which columns move then, the schema says.
    MonotoneInRelief,
    /// Of two jobs that could start, one that waited at least so long is in a better tier than one that waited at most so long.
    WaitingOutranks {
        /// s
        at_least_s: f32,
        /// s
        at_most_s: f32,
    },
    /// Starting a job is never in a worse tier than holding, so no job that could start waits for nothing.
    StartsBeforeHolding,
    /// Scores of candidates lie between the least and the largest of the leaves that one can come to.
    ScoresWithin {
        /// The least.
        min: f32,
        /// The largest.
        max: f32,
    },
    /// Some candidate can come to the leaf with this id.
    LeafIsReached {
        /// Id of the leaf.
        leaf: u32,
    },
}

/// Two candidates that show that a property does not hold: scaled values of the features that the tree reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Witness {
    /// The first: that waited less, has the longer estimate, should have come first.
    pub first: BTreeMap<String, f32>,
    /// The other one.
    pub second: BTreeMap<String, f32>,
    /// Ids of the leaves in which they end.
    pub leaves: (u32, u32),
}

/// Whether a property holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Verdict {
    /// For every candidate.
    Proved,
    /// Here is where it does not.
    Refuted(Witness),
    /// Neither, for this reason.
    Open(String),
}

/// A property of one tree and whether it holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// What is said.
    pub property: Property,
    /// Whether it is true.
    pub verdict: Verdict,
}

impl fmt::Display for Property {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Property::MonotoneInWaiting => {
                write!(out, "a job that waits longer, all else equal, never comes later")
            }
            Property::MonotoneInEstimate => {
                write!(
                    out,
                    "a job with a shorter estimate, all else equal, never comes in a worse tier"
                )
            }
            Property::MonotoneInRelief => {
                write!(out, "what has less to do, all else equal, never comes later")
            }
            Property::WaitingOutranks {
                at_least_s,
                at_most_s,
            } => write!(
                out,
                "a start of a job that waited {} h or more is in a better tier than every start of one that waited {} h or less",
                at_least_s / 3600.0,
                at_most_s / 3600.0
            ),
            Property::StartsBeforeHolding => write!(out, "no start is in a worse tier than holding"),
            Property::ScoresWithin { min, max } => write!(out, "every score lies between {min} and {max}"),
            Property::LeafIsReached { leaf } => write!(out, "some candidate can come to leaf {leaf}"),
        }
    }
}
