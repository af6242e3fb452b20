//! Architectures of networks: a module of Burn each, the same on every backend, and the list of operators that deploys it.
//!
//! Learners see a flat list of parameters, outputs, and a gradient; nothing else of a network. So PPO, imitation and evolution
//! train every architecture of [`ARCHITECTURES`] on every device, and checkpoints, Adam and seeds are the same for all.
//!
//! # An architecture of one's own
//! One file as `attention.rs`, which is the example, and one line in [`ARCHITECTURES`], or in a program of one's own
//! [`register_architectures`]. The module says how a gradient is to be taken; no gradient is written by hand. The operators say
//! how rollouts and daemons compute the same in plain Rust. Before a training begins both are held to each other ([`check`]).

mod architecture;
mod attention;
mod on_burn;
mod set;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use pleach_env::{Seed, Spaces};
use pleach_network::graph::Graph;
use pleach_network::{DecisionBatch, Inference, Layout, NetworkConfig};

use crate::device::Device;
use crate::error::Error;
use crate::random::{initial_parameters, uniform};

pub use architecture::{Architecture, RowNetwork, Rows, Scored, linear};
pub(crate) use on_burn::{OutputGradients, Outputs, PartGradient};

/// A registered architecture.
#[derive(Clone, Copy, Debug)]
pub struct Registered {
    /// `network.architecture`
    pub name: &'static str,
    /// What it is, in a few words.
    pub doc: &'static str,
    /// Its list of operators; the built-in network's is `pleach_network`'s own code. Parameters come in the order in which the
    /// module declares them, weights `[inputs, outputs]`. The value's last layer is named `value.out`, the other parameters of
    /// the value begin with `value.`, and the scores' last layer without a bias, if there is one, is `pointer.out`.
    operators: Option<fn(NetworkConfig, Spaces) -> Graph>,
    gradient: fn(Device) -> Option<PartGradient>,
}

/// All architectures. *One line each.*
pub const ARCHITECTURES: [Registered; 2] = [
    registered::<set::SetNetwork>(
        "set",
        "encodes each candidate, pools them, scores by a pointer",
        None,
    ),
    registered::<attention::Family>(
        "attention",
        "candidates attend to each other",
        Some(attention::operators),
    ),
];

/// An architecture of a program's own, to be registered.
#[must_use]
pub const fn architecture<A: Architecture>(
    name: &'static str,
    doc: &'static str,
    operators: fn(NetworkConfig, Spaces) -> Graph,
) -> Registered {
    registered::<A>(name, doc, Some(operators))
}

static OWN: OnceLock<Vec<Registered>> = OnceLock::new();

/// Says which architectures a program has beside ours; once, before anything is read. They never change after that: so they are a
/// part of the program as its code is.
///
/// # Errors
/// A name that is taken, or longer than 24 characters; a second call.
pub fn register_architectures(architectures: Vec<Registered>) -> Result<(), Error> {
    for (place, one) in architectures.iter().enumerate() {
        let is_taken = ARCHITECTURES
            .iter()
            .chain(&architectures[..place])
            .any(|other| other.name == one.name);
        if is_taken || !(1..=24).contains(&one.name.len()) {
            let allowed = "a name of up to 24 characters that nothing else has";
            return Err(Error::config("network.architecture", one.name, allowed));
        }
    }
    OWN.set(architectures)
        .map_err(|_| Error::config("network.architecture", "registered again", "once in a program"))
}

/// All architectures, ours first.
fn all() -> impl Iterator<Item = &'static Registered> {
    static OURS: [Registered; 2] = ARCHITECTURES;
    OURS.iter().chain(OWN.get().into_iter().flatten())
}

const fn registered<A: Architecture>(
    name: &'static str,
    doc: &'static str,
    operators: Option<fn(NetworkConfig, Spaces) -> Graph>,
) -> Registered {
    Registered {
        name,
        doc,
        operators,
        gradient: on_burn::gradient_on::<A>,
    }
}

/// The architecture that a configuration names.
///
/// # Errors
/// [`Error::Problem`] with all names.
pub fn find(config: &NetworkConfig) -> Result<&'static Registered, Error> {
    let name = config.architecture.as_str();
    let names = || all().map(|own| own.name).collect::<Vec<_>>().join(", ");
    let found = all().find(|own| own.name == name);
    found.ok_or_else(|| Error::config("network.architecture", name, &names()))
}

/// Names, shapes and places of the parameters of a network.
///
/// # Errors
/// [`Error::Problem`] for an architecture that is not registered or a size that is out of its range.
pub fn layout(config: NetworkConfig, spaces: Spaces) -> Result<Layout, Error> {
    let layout = match find(&config)?.operators {
        None => Layout::new(config, spaces)?,
        Some(operators) => {
            config.check()?;
            let layout = Layout::of_graph(config, operators(config, spaces))?;
            layout.check_learnable()?;
            layout
        }
    };
    Ok(layout)
}

/// The gradient of a list of decisions in Burn, where this build has the device.
pub(crate) fn part_gradient(config: &NetworkConfig, device: Device) -> Result<PartGradient, Error> {
    (find(config)?.gradient)(device).ok_or_else(|| device.missing())
}

/// Holds an architecture's operators to its module: some random decisions of 1 to 5 candidates, scores and values.
///
/// # Errors
/// [`Error::Problem`] where they differ by more than 1e-3 of the largest score, which is rounding and a bit.
pub fn check(layout: &Layout, spaces: Spaces, seed: Seed) -> Result<(), Error> {
    if layout.graph.is_none() {
        return Ok(());
    }
    let parameters = initial_parameters(layout, seed);
    let inference = Inference::new(layout, &parameters)?;
    let mut random = seed.stream("network/check", 0);
    let mut draw = |num: usize| -> Vec<f32> {
        (0..num)
            .map(|_| 2.0 * uniform(&mut random) as f32 - 1.0)
            .collect()
    };
    let mut rows = DecisionBatch::new(spaces);
    for num in 1..=5 {
        let candidates = draw(num * spaces.num_features);
        rows.push(&draw(spaces.num_global), &candidates, &vec![true; num]);
    }
    let mut difference = None;
    let mut compare = |outputs: &Outputs| {
        let mut scratch = inference.scratch(5);
        for decision in 0..rows.len() {
            let span = rows.span(decision);
            let mut scores = vec![0.0; span.len()];
            let value = inference.forward(rows.get(decision), &mut scratch, &mut scores);
            let theirs = outputs.logits[span].iter().chain([&outputs.values[decision]]);
            for (ours, theirs) in scores.iter().chain([&value]).zip(theirs) {
                let apart = (ours - theirs).abs();
                if apart.is_nan() || apart > 1e-3 * theirs.abs().max(1.0) {
                    difference.get_or_insert((*ours, *theirs));
                }
            }
        }
        OutputGradients {
            logits: vec![0.0; outputs.logits.len()],
            values: vec![0.0; outputs.values.len()],
        }
    };
    let module = part_gradient(&layout.config, Device::Cpu)?;
    module(layout, &parameters, &rows, &mut compare).map_err(|reason| Device::Cpu.failed(&reason))?;
    match difference {
        None => Ok(()),
        Some((ours, theirs)) => Err(Error::contract(
            "scores of an architecture's module and of its operators",
            theirs,
            ours,
        )),
    }
}
