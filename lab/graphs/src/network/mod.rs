//! A network that passes messages along the edges of graphs, as Decima's: from the last stages of a job to its first ones, from stages
//! to jobs, from jobs to all; what a row gets is added to a rule by hand.
//!
//! ```text
//! own(v)   = prepare(x_v) + update(sum of message(own(u)) over the stages u that wait for v)
//! job(j)   = sum of gather([x_v, own(v)]) over the stages v of j that have not ended
//! all      = sum of join(job(j)) over the jobs in the system
//! z(row)   = hand(row) + score([row, context, own(v), job(j), all])
//! ```
//!
//! All six are perceptrons of one hidden layer. `module` is the same as a module of Burn, which takes gradients.
//!
//! # Source
//! Mao et al., SIGCOMM'19, with embeddings of 8 numbers and hidden layers of 16, as in decima-sim c010dd7. Other than there, one
//! softmax is over stages and executors at once, of the rows of [`crate::board`].

mod look;
mod mlp;
mod module;

use std::path::Path;

use pleach_scheduler::Problem;
use pleach_tables::open_unpacked;
use serde::{Deserialize, Serialize};

use self::mlp::{LEAK, Mlp, add};
use crate::board::{Board, Offers};
use crate::columns::{CONTEXT_WIDTH, ROW_WIDTH};
use crate::engine::{Engine, StageId};
use crate::rules::Rule;

pub use look::{Look, NODE_WIDTH};

/// Numbers of an embedding.
const E: usize = 8;
/// Hidden layers of messages, and of scores.
const H: usize = 16;
const S: usize = 32;
/// Numbers of a row with the context, and with the embeddings.
const SEEN: usize = ROW_WIDTH + CONTEXT_WIDTH;
const JOINED: usize = SEEN + 3 * E;
const FILE_BYTES_MAX: u64 = 1 << 20;

const PREPARE: Mlp = Mlp {
    at: 0,
    sizes: [NODE_WIDTH, H, E],
};
const MESSAGE: Mlp = Mlp {
    at: PREPARE.end(),
    sizes: [E, H, E],
};
const UPDATE: Mlp = Mlp {
    at: MESSAGE.end(),
    sizes: [E, H, E],
};
const GATHER: Mlp = Mlp {
    at: UPDATE.end(),
    sizes: [NODE_WIDTH + E, H, E],
};
const JOIN: Mlp = Mlp {
    at: GATHER.end(),
    sizes: [E, H, E],
};
const SCORE: Mlp = Mlp {
    at: JOIN.end(),
    sizes: [JOINED, S, 1],
};
/// Numbers of a network.
pub const NUM_PARAMETERS: usize = SCORE.end();

/// A network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Whether messages are passed; otherwise all embeddings are 0, and rows are all that it sees.
    pub messages: bool,
    /// Which rows it chooses among.
    pub offers: Offers,
    /// Weights and biases, perceptron after perceptron.
    pub parameters: Vec<f32>,
}

/// Room for a pass, and what it came to.
#[derive(Clone, Debug, Default)]
pub struct Pass {
    /// What each stage is, and what it says to those that it waits for.
    nodes: Vec<[[f32; E]; 2]>,
    jobs: Vec<[f32; E]>,
    /// A score of each row.
    pub scores: Vec<f32>,
}

/// What a rule by hand gives a row: its own job, little work left and few executors, with a cap by the root of the work.
///
/// # Source
/// The tree of five leaves that was searched for (lab/notes/graphs.md), its key a fourth: *assumed*, so that learning can move it.
fn hand(row: &[f32], offers: Offers) -> f32 {
    let [is_none, is_own, runnable, sent, cap, supply, work] = [1, 2, 3, 4, 8, 9, 15].map(|place| row[place]);
    // A cap of 0.92 on the column's scale, which is linear over 4.
    let within = if is_own > 0.5 || cap <= 0.23 || offers == Offers::Groups {
        16.0
    } else {
        0.0
    };
    if is_none > 0.5 {
        return -40.0;
    }
    within + 0.25 * (3.27 * is_own + 2.0 * runnable - 6.0 * supply - 97.8 * work) + 0.5 * sent
}

impl Network {
    /// One that decides as the rule by hand: hidden layers are drawn by `uniform`, from 0 to 1, and last weights are 0.
    pub fn new(messages: bool, offers: Offers, mut uniform: impl FnMut() -> f64) -> Network {
        let mut parameters = vec![0.0; NUM_PARAMETERS];
        for mlp in [PREPARE, MESSAGE, UPDATE, GATHER, JOIN, SCORE] {
            let [inputs, hidden, outputs] = mlp.sizes;
            let last = if outputs == 1 { 0.0 } else { 1.0 };
            for (start, inputs, outputs, gain) in [
                (mlp.at, inputs, hidden, 1.4),
                (mlp.second(), hidden, outputs, last),
            ] {
                let bound = gain * (3.0 / inputs as f64).sqrt();
                for weight in &mut parameters[start..start + inputs * outputs] {
                    *weight = ((2.0 * uniform() - 1.0) * bound) as f32;
                }
            }
        }
        Network {
            messages,
            offers,
            parameters,
        }
    }

    /// Of a file.
    ///
    /// # Errors
    /// A file that cannot be read, or is of another network.
    pub fn read(path: &Path) -> Result<Network, Problem> {
        let reader = std::io::Read::take(open_unpacked(path)?, FILE_BYTES_MAX);
        let network: Network = serde_json::from_reader(reader).map_err(|error| Problem::json(path, error))?;
        let num = network.parameters.len();
        if num != NUM_PARAMETERS || !network.parameters.iter().all(|number| number.is_finite()) {
            let message = format!("{num} parameters, not {NUM_PARAMETERS} finite ones");
            return Err(Problem::data(path, message));
        }
        Ok(network)
    }

    /// Scores the rows of a decision.
    pub fn forward(&self, look: &Look, pass: &mut Pass) {
        let all = &self.parameters;
        let num_nodes = if self.messages { look.nodes.len() } else { 0 };
        pass.nodes.clear();
        for node in 0..num_nodes {
            let [mut own, mut said, mut heard] = [[0.0; E]; 3];
            PREPARE.add::<H>(all, &look.nodes[node], &mut own);
            for &child in look.children(node) {
                add(1.0, &pass.nodes[child as usize][1], &mut heard);
            }
            if !look.children(node).is_empty() {
                UPDATE.add::<H>(all, &heard, &mut own);
            }
            MESSAGE.add::<H>(all, &own, &mut said);
            pass.nodes.push([own, said]);
        }
        pass.jobs.clear();
        let mut joined = [0.0; E];
        let num_jobs = if self.messages { look.jobs.len() - 1 } else { 0 };
        for job in 0..num_jobs {
            let mut own = [0.0; E];
            for node in look.nodes_of(job) {
                let mut seen = [0.0; NODE_WIDTH + E];
                seen[..NODE_WIDTH].copy_from_slice(&look.nodes[node]);
                seen[NODE_WIDTH..].copy_from_slice(&pass.nodes[node][0]);
                GATHER.add::<H>(all, &seen, &mut own);
            }
            JOIN.add::<H>(all, &own, &mut joined);
            pass.jobs.push(own);
        }
        pass.scores.clear();
        for (number, of_row) in look.of_row.iter().enumerate() {
            let row = look.row(number);
            let mut input = [0.0; JOINED];
            input[..ROW_WIDTH].copy_from_slice(row);
            input[ROW_WIDTH..SEEN].copy_from_slice(&look.context);
            if let Some((node, job)) = of_row.filter(|_| self.messages) {
                input[SEEN..SEEN + E].copy_from_slice(&pass.nodes[node as usize][0]);
                input[SEEN + E..SEEN + 2 * E].copy_from_slice(&pass.jobs[job as usize]);
            }
            input[SEEN + 2 * E..].copy_from_slice(&joined);
            let mut score = [hand(row, self.offers)];
            SCORE.add::<S>(all, &input, &mut score);
            pass.scores.push(score[0]);
        }
    }
}

/// A network that decides, with what it saw last.
#[derive(Clone, Debug)]
pub struct Deciding {
    /// The network.
    pub network: Network,
    board: Board,
    /// The decision.
    pub look: Look,
    /// Its scores.
    pub pass: Pass,
}

impl Deciding {
    /// Of a network.
    #[must_use]
    pub fn new(network: Network) -> Deciding {
        Deciding {
            board: Board::of(network.offers),
            network,
            look: Look::default(),
            pass: Pass::default(),
        }
    }

    /// Scores the rows of a decision; what each of them does.
    pub fn see(&mut self, engine: &Engine) -> &[Option<(StageId, u32)>] {
        self.board.look(engine);
        self.look.look(engine, &self.board);
        self.network.forward(&self.look, &mut self.pass);
        self.board.choices()
    }
}

/// The first of the largest.
#[must_use]
pub fn best(scores: &[f32]) -> usize {
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    scores.iter().position(|score| *score == largest).unwrap_or(0)
}

impl Rule for Deciding {
    fn choose(&mut self, engine: &Engine) -> Option<(StageId, u32)> {
        self.see(engine);
        self.board.choices()[best(&self.pass.scores)]
    }
}
