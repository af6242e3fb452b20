//! Constants of the law by GPU type, and levels of engines.
//!
//! # Source
//! `constants.csv`, fitted to published measurements by `pleach reproduce replicas-fit --data DIR`: InferenceX by way of
//! ai-dynamo/aiconfigurator, TensorRT-LLM's performance pages, dstackai/benchmarks; rows marked to fit by, never those to judge by.
//! A set is used whole: its members trade.

use std::sync::LazyLock;

/// Numbers of a set of constants, in the order of the file's columns.
pub const NUM_CONSTANTS: usize = 13;
/// Numbers of an engine's levels, in the order of the file's columns.
pub const NUM_LEVELS: usize = 5;

/// Constants of a GPU type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constants {
    /// Of each layer, s.
    pub layer_s: f64,
    /// More of each layer with experts, s.
    pub expert_layer_s: f64,
    /// Of each all-reduce between GPUs, two a layer, s.
    pub reduce_s: f64,
    /// Of each exchange between GPUs in a layer with experts, s.
    pub exchange_s: f64,
    /// Of each request in the batch, s.
    pub request_s: f64,
    /// Of each byte of an all-reduce, s.
    pub reduce_byte_s: f64,
    /// Of each byte of an exchange, s.
    pub exchange_byte_s: f64,
    /// Share of the memory's bandwidth at which weights are read, and those of experts, and keys and values.
    pub weights: f64,
    /// Of experts.
    pub experts: f64,
    /// Of keys and values.
    pub kv: f64,
    /// Share of the peak of a dense model's operations, of a mixture's, and of attention's.
    pub dense: f64,
    /// Of a mixture's.
    pub mixture: f64,
    /// Of attention's.
    pub attention: f64,
}

/// Levels of an engine of some year: factors on the constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Levels {
    /// On times of layers.
    pub overhead: f64,
    /// On times of requests.
    pub request: f64,
    /// On shares of bandwidth and peak.
    pub efficiency: f64,
    /// From a request's arrival to its first step, in steps of one request without a context.
    pub before_queue_steps: f64,
    /// More for each token of its prompt, s.
    pub before_queue_token_s: f64,
}

impl Constants {
    /// From the numbers of a row.
    #[must_use]
    pub fn of(row: [f64; NUM_CONSTANTS]) -> Constants {
        Constants {
            layer_s: row[0],
            expert_layer_s: row[1],
            reduce_s: row[2],
            exchange_s: row[3],
            request_s: row[4],
            reduce_byte_s: row[5],
            exchange_byte_s: row[6],
            weights: row[7],
            experts: row[8],
            kv: row[9],
            dense: row[10],
            mixture: row[11],
            attention: row[12],
        }
    }

    /// Of a family of GPU types; one set for all where it has none of its own.
    #[must_use]
    pub fn of_family(family: &str) -> &'static Constants {
        let of = |name: &str| TABLE.iter().find(|(known, _)| *known == name);
        let (_, constants) = of(family).or_else(|| of("all")).expect("a set for all");
        constants
    }
}

/// Rows of the file that stand for GPU types.
static TABLE: LazyLock<Vec<(&str, Constants)>> = LazyLock::new(|| {
    rows("gpu")
        .map(|(name, row)| (name, Constants::of(row)))
        .collect()
});
/// Rows of the file that stand for engines.
static LEVELS: LazyLock<Vec<(&str, Levels)>> = LazyLock::new(|| {
    rows("engine")
        .map(|(name, row)| (name, Levels::of(row)))
        .collect()
});

impl Levels {
    /// From the numbers of a row.
    #[must_use]
    pub fn of(row: [f64; NUM_LEVELS]) -> Levels {
        Levels {
            overhead: row[0],
            request: row[1],
            efficiency: row[2],
            before_queue_steps: row[3],
            before_queue_token_s: row[4],
        }
    }

    /// Of an engine by name.
    #[must_use]
    pub fn of_engine(engine: &str) -> Levels {
        let found = LEVELS.iter().find(|(known, _)| *known == engine);
        found.map(|(_, levels)| *levels).expect("each engine has a row")
    }

    /// The same with factors on overhead and efficiency.
    pub(super) fn times(self, [overhead, efficiency]: [f64; 2]) -> Levels {
        Levels {
            overhead: self.overhead * overhead,
            efficiency: self.efficiency * efficiency,
            ..self
        }
    }
}

fn rows<const N: usize>(kind: &'static str) -> impl Iterator<Item = (&'static str, [f64; N])> {
    let lines = include_str!("constants.csv").lines();
    lines.filter_map(move |line| {
        let mut fields = line.split(',').map(str::trim);
        (fields.next() == Some(kind)).then(|| {
            let name = fields.next().expect("a name");
            let mut number = |_| {
                fields
                    .next()
                    .and_then(|field| field.parse().ok())
                    .expect("a number")
            };
            (name, std::array::from_fn(&mut number))
        })
    })
}
