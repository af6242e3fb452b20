//! The parameters of a network as one flat list of `f32`, in a fixed and documented order.
//!
//! Everything that stores, compares or optimises parameters works on the flat list: files, optimisers, the forward pass
//! and the gradient. Weights are row-major `[inputs, outputs]`. The built-in network has these:
//!
//! | name | shape | |
//! |---|---|---|
//! | `encoder.0.weight`, `encoder.0.bias` | `[F, H]`, `[H]` | shared over candidates |
//! | `encoder.1.weight`, `encoder.1.bias` | `[H, H]`, `[H]` | |
//! | `attention.query.weight` | `[H, A]` | one query for each head; nothing where A = 0 |
//! | `context.0.weight`, `context.0.bias` | `[(2 + A) H + G, K]`, `[K]` | input: mean, max and attended means of candidates, global features |
//! | `context.1.weight`, `context.1.bias` | `[K, K]`, `[K]` | |
//! | `pointer.candidate.weight` | `[H, H]` | the candidate's part of the pointer's hidden layer |
//! | `pointer.context.weight`, `pointer.context.bias` | `[K, H]`, `[H]` | the context's part, once per decision |
//! | `pointer.out.weight` | `[H, 1]` | no bias: a shift of all logits changes nothing |
//! | `value.0.weight`, `value.0.bias` | `[K, K]`, `[K]` | |
//! | `value.out.weight`, `value.out.bias` | `[K, 1]`, `[1]` | |

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use arrayvec::ArrayString;
use pleach_scheduler::observation::Spaces;
use pleach_scheduler::settings;
use pleach_scheduler::settings::Settings as _;

use crate::Error;
use crate::error::{SEE, graph, refused};
use crate::graph::Graph;

/// Widths that the plain inference works on at once; layer widths are multiples of it.
pub(crate) const LANES: usize = 8;

/// Features of a candidate, and global ones, at most: with the widest layers a network then has 64 million
/// parameters or fewer, so no file can ask for all memory. *Assumed.*
const MAX_FEATURES: usize = 1 << 13;

/// Name of the built-in network: the set network of the table above.
pub const SET: &str = "set";

settings! {
    /// A network's architecture and sizes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct NetworkConfig {
        /// Name of the architecture, up to 24 characters: the built-in [`SET`], or one that learners know. What the sizes below are
        /// to another architecture, its own page says.
        #[serde(skip_serializing_if = "is_set")]
        pub architecture: ArrayString<24> = ArrayString::from(SET).unwrap_or_default();
        /// Width of a candidate's code, H; of the built-in network a multiple of 8.
        pub hidden: usize = 32, in 1..=1024;
        /// Width of the context, K; of the built-in network a multiple of 8.
        pub context: usize = 32, in 1..=1024;
        /// Heads of attention that pool the candidates besides mean and maximum, A.
        pub heads: usize = 0, in 0..=8;
    }
}

fn is_set(architecture: &ArrayString<24>) -> bool {
    architecture.as_str() == SET
}

impl NetworkConfig {
    /// Checks the sizes.
    ///
    /// # Errors
    /// An [`Error`] for a width that is not a multiple of 8 from 8 to 1024, or more than 8 heads.
    pub fn check(&self) -> Result<(), Error> {
        for (key, value) in [("network.hidden", self.hidden), ("network.context", self.context)] {
            if is_set(&self.architecture) && value % LANES != 0 {
                return Err(refused(key, value, "a multiple of 8, 8 to 1024"));
            }
        }
        self.check_at("network", SEE)
    }
}

/// One array of parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its name, as in the table above.
    pub name: Cow<'static, str>,
    /// `[inputs, outputs]`; a bias has one input, the constant 1. What has more axes has all but the last joined.
    pub shape: [usize; 2],
    /// Where it lies in the flat list.
    pub range: Range<usize>,
}

impl Entry {
    /// Whether it is a bias.
    #[must_use]
    pub fn is_bias(&self) -> bool {
        self.name.ends_with("bias")
    }
}

/// Index of each array in [`Layout::entries`].
#[allow(missing_docs, reason = "named as the arrays of the table above")]
pub mod at {
    pub const ENCODER_0: usize = 0;
    pub const ENCODER_0_BIAS: usize = 1;
    pub const ENCODER_1: usize = 2;
    pub const ENCODER_1_BIAS: usize = 3;
    pub const QUERY: usize = 4;
    pub const CONTEXT_0: usize = 5;
    pub const CONTEXT_0_BIAS: usize = 6;
    pub const CONTEXT_1: usize = 7;
    pub const CONTEXT_1_BIAS: usize = 8;
    pub const POINTER_CANDIDATE: usize = 9;
    pub const POINTER_CONTEXT: usize = 10;
    pub const POINTER_BIAS: usize = 11;
    pub const POINTER_OUT: usize = 12;
    pub const VALUE_0: usize = 13;
    pub const VALUE_0_BIAS: usize = 14;
    pub const VALUE_OUT: usize = 15;
    pub const VALUE_OUT_BIAS: usize = 16;
}

/// Names, shapes and places of all parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// F
    pub num_features: usize,
    /// G
    pub num_global: usize,
    /// Widths.
    pub config: NetworkConfig,
    /// All arrays in flat order.
    pub entries: Vec<Entry>,
    /// What computes an architecture that is not [`SET`].
    pub graph: Option<Arc<Graph>>,
}

impl Layout {
    /// The layout of the built-in network for observations of `spaces`. The number of candidates does not matter to it.
    ///
    /// # Errors
    /// As [`NetworkConfig::check`], and An [`Error`] for another architecture or an observation without candidate features.
    pub fn new(config: NetworkConfig, spaces: Spaces) -> Result<Layout, Error> {
        config.check()?;
        if !is_set(&config.architecture) {
            let allowed = "set: another architecture comes with its operators";
            return Err(refused("network.architecture", config.architecture, allowed));
        }
        let (f, g) = (spaces.num_features, spaces.num_global);
        let (h, k, a) = (config.hidden, config.context, config.heads);
        if f == 0 || f > MAX_FEATURES {
            return Err(refused(
                "num_features",
                f,
                "an observation has 1 to 8192 features of a candidate",
            ));
        }
        if g > MAX_FEATURES {
            let allowed = "an observation has at most 8192 global features";
            return Err(refused("num_global", g, allowed));
        }
        let arrays: [(&'static str, [usize; 2]); 17] = [
            ("encoder.0.weight", [f, h]),
            ("encoder.0.bias", [1, h]),
            ("encoder.1.weight", [h, h]),
            ("encoder.1.bias", [1, h]),
            ("attention.query.weight", [h, a]),
            ("context.0.weight", [(2 + a) * h + g, k]),
            ("context.0.bias", [1, k]),
            ("context.1.weight", [k, k]),
            ("context.1.bias", [1, k]),
            ("pointer.candidate.weight", [h, h]),
            ("pointer.context.weight", [k, h]),
            ("pointer.context.bias", [1, h]),
            ("pointer.out.weight", [h, 1]),
            ("value.0.weight", [k, k]),
            ("value.0.bias", [1, k]),
            ("value.out.weight", [k, 1]),
            ("value.out.bias", [1, 1]),
        ];
        let mut entries = Vec::with_capacity(arrays.len());
        let mut start = 0;
        for (name, shape) in arrays {
            let end = start + shape[0] * shape[1];
            entries.push(Entry {
                name: name.into(),
                shape,
                range: start..end,
            });
            start = end;
        }
        Ok(Layout {
            num_features: f,
            num_global: g,
            config,
            entries,
            graph: None,
        })
    }

    /// The layout of a network of operators.
    ///
    /// # Errors
    /// As [`Graph::check`].
    pub fn of_graph(config: NetworkConfig, graph: Graph) -> Result<Layout, Error> {
        graph.check()?;
        let mut start = 0;
        let entries = graph.parameters.iter().map(|parameter| {
            let end = start + parameter.len();
            let outputs = parameter.shape.last().copied().unwrap_or(1);
            let entry = Entry {
                name: parameter.name.clone().into(),
                shape: [parameter.len() / outputs.max(1), outputs],
                range: start..end,
            };
            start = end;
            entry
        });
        Ok(Layout {
            num_features: graph.num_features,
            num_global: graph.num_context,
            config,
            entries: entries.collect(),
            graph: Some(Arc::new(graph)),
        })
    }

    /// Refuses a network of operators that learners cannot train: they scale the value's last layer, and leave its arrays alone
    /// where the value decides nothing.
    ///
    /// # Errors
    /// An [`Error`] where the value's arrays, named `value.*`, do not lie together or do not end in `value.out.weight` `[K, 1]`
    /// and `value.out.bias` `[1]`.
    pub fn check_learnable(&self) -> Result<(), Error> {
        let is_value = |entry: &Entry| entry.name.starts_with("value.");
        let first = self.entries.iter().position(is_value).unwrap_or(0);
        let own: Vec<&Entry> = self.entries[first..]
            .iter()
            .take_while(|entry| is_value(entry))
            .collect();
        let all = self.entries.iter().filter(|entry| is_value(entry)).count();
        let ends_so = match own[..] {
            [.., weight, bias] => {
                weight.name == "value.out.weight" && weight.shape[1] == 1 && bias.name == "value.out.bias"
            }
            _ => false,
        };
        if own.len() != all || !ends_so {
            let reason = "the arrays of the value are to lie together and to end in value.out.weight [K, 1] and value.out.bias [1]";
            return Err(graph(reason));
        }
        Ok(())
    }

    /// The array of that name.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// What is pooled of candidates: mean, maximum and attended means; global features follow them in the context's input.
    #[must_use]
    pub(crate) fn num_codes(&self) -> usize {
        (2 + self.config.heads) * self.config.hidden
    }

    /// Length of the flat list.
    #[must_use]
    pub fn num_parameters(&self) -> usize {
        self.entries.last().map_or(0, |entry| entry.range.end)
    }

    /// Where the value head lies: what decides nothing. Arrays of the policy are before and behind it.
    #[must_use]
    pub fn value_head(&self) -> Range<usize> {
        let mut own = self
            .entries
            .iter()
            .filter(|entry| entry.name.starts_with("value."));
        let start = own.next().map_or(0, |entry| entry.range.start);
        start
            ..self
                .entry("value.out.bias")
                .map_or(start, |entry| entry.range.end)
    }

    /// The array at `index` of a flat list.
    pub(crate) fn slice<'a>(&self, parameters: &'a [f32], index: usize) -> &'a [f32] {
        &parameters[self.entries[index].range.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACES: Spaces = Spaces::new(3, 4, 5);

    #[test]
    fn arrays_lie_one_after_another_without_gaps() {
        let layout = Layout::new(
            NetworkConfig {
                hidden: 8,
                context: 16,
                ..NetworkConfig::default()
            },
            SPACES,
        )
        .unwrap();
        let mut next = 0;
        for entry in &layout.entries {
            assert_eq!(entry.range.start, next, "{}", entry.name);
            assert_eq!(entry.range.len(), entry.shape[0] * entry.shape[1]);
            next = entry.range.end;
        }
        // 5*8+8 + 8*8+8 + (16+3)*16+16 + 16*16+16 + 8*8 + 16*8+8 + 8 + 16*16+16 + 16+1
        assert_eq!(
            layout.num_parameters(),
            48 + 72 + 320 + 272 + 64 + 136 + 8 + 272 + 17
        );
        assert_eq!(next, layout.num_parameters());
    }

    #[test]
    fn widths_that_the_inference_cannot_block_are_refused() {
        let error = NetworkConfig {
            hidden: 20,
            ..NetworkConfig::default()
        }
        .check()
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "config: network.hidden = 20: allowed is a multiple of 8, 8 to 1024. See docs/learning.md."
        );
    }
}
