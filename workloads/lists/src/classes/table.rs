//! Published model sizes, and what follows from them for memory, checkpoints and starts: one row a model.
//!
//! # Source
//! Parameters: the papers named in each row. Bytes a parameter: SGD with momentum 12 on the GPU and 8 in a file; Adam 16 and 12;
//! Adam in mixed precision 18 and 14 (weight 2, gradient 4, master copy 4, moments 8; ZeRO, SC'20); a frozen base 2, its adapters
//! alone in the file; a model that is only used 2 and 2. `gpu_memory_gb` adds the activations of the usual batch on
//! `num_gpus` and a context of 1.5 GB, after which everything is divided as the usual plan does (ZeRO stage, tensor and pipeline
//! parallel); activations, `host_memory_gb` (loaders, caches, copies of the state) and `warm_up_s` are *assumed*, within a half; that of 405B is the
//! median of NVIDIA's own starts in MLPerf training 5.0 and 5.1. `interval_s`: Meta's RSC (arXiv 2410.21680) assumes an
//! hour and recommends 5 minutes, BLOOM's logbook has 3 hours, VAST's large runs 15 to 40 minutes; small models 10 to 30 minutes.
//! `restart_s`, where it is given, was measured whole and counts instead: the constants of Sia's (SOSP'23) and Muri's
//! (SIGCOMM'22) released simulators. `utilisation`: Lucid (ASPLOS'23), by its nearest model; of large models *assumed*.
//! `step_s`: the usual batch of a
//! GPU over published throughputs of one V100, of models above 1.6 billion parameters 6 x active parameters x tokens at half of an
//! A100's peak (a third for experts, Llama 3's 43 % of an H100 for 405B); *assumed*, within a factor of 2. `sent_gb`: what is
//! all-reduced in a step: gradients of 4 bytes, in mixed precision 2; sharded states (ZeRO 3) gather twice and scatter once, half
//! as much again; of a pipeline each stage sends its own part.

use std::sync::LazyLock;

use pleach_scheduler::physics::links::StepCost;

use crate::embedded::{number, rows};

/// What is published of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassFacts {
    /// Its name here.
    pub name: &'static str,
    /// Parameters, millions.
    pub parameters_m: f64,
    /// Bytes of a checkpoint for each parameter.
    pub file_bytes: f64,
    /// GPUs for which the memory holds.
    pub num_gpus: u32,
    /// Memory on each of them, GB.
    pub gpu_memory_gb: f64,
    /// Host memory for each of its GPUs, GB.
    pub host_memory_gb: f64,
    /// Time between two checkpoints, s; 0: it writes none.
    pub interval_s: f64,
    /// Data pipeline, compilation and first steps, s.
    pub warm_up_s: f64,
    /// A whole restart as it was measured, s.
    pub restart_s: Option<f64>,
    /// Part of the time in which it keeps a GPU busy, (0, 1].
    pub utilisation: f64,
    /// Compute of a step on one GPU, s.
    pub step_s: f64,
    /// What a step sends, as the content of one all-reduce over the gang, GB; 0: nothing.
    pub sent_gb: f64,
    /// Where the number of parameters and a measured restart come from.
    pub source: &'static str,
}

impl ClassFacts {
    /// What a step computes and sends; none where it sends nothing. Small models send when all is computed, as Gavel's spread gangs
    /// show; large ones beside it (*assumed*).
    #[must_use]
    pub fn step(&self) -> Option<StepCost> {
        let gamma = if self.parameters_m < 1000.0 { 1.0 } else { 2.0 };
        (self.sent_gb > 0.0).then_some(StepCost {
            compute_s: self.step_s,
            gradient_bytes: self.sent_gb * 1e9,
            gamma,
        })
    }

    /// Size of a checkpoint, GB.
    #[must_use]
    pub fn state_gb(&self) -> f64 {
        self.parameters_m * 1e6 * self.file_bytes / 1e9
    }
}

/// All models.
pub static CLASSES: LazyLock<Vec<ClassFacts>> = LazyLock::new(|| {
    let rows = rows(include_str!("../../data/classes.csv"));
    let read = rows.map(|row: [&'static str; 13]| ClassFacts {
        name: row[0],
        parameters_m: number(row[1]),
        file_bytes: number(row[2]),
        num_gpus: number(row[3]) as u32,
        gpu_memory_gb: number(row[4]),
        host_memory_gb: number(row[5]),
        interval_s: number(row[6]),
        warm_up_s: number(row[7]),
        restart_s: (!row[8].is_empty()).then(|| number(row[8])),
        utilisation: number(row[9]),
        step_s: number(row[10]),
        sent_gb: number(row[11]),
        source: row[12],
    });
    read.collect()
});

/// Beginnings of names, and the row that stands for them.
pub(super) static NAMES: LazyLock<Vec<[&str; 2]>> =
    LazyLock::new(|| rows(include_str!("../../data/class_names.csv")).collect());

/// What jobs of a kind train: the kind, the largest gang, and models with equal chances.
pub(super) type Mix = (&'static str, u32, Vec<&'static str>);

/// The kinds, by gang.
pub(super) static MIXES: LazyLock<Vec<Mix>> = LazyLock::new(|| {
    let rows = rows(include_str!("../../data/class_mixes.csv"));
    let read = rows.map(|[kind, up_to, models]: [&'static str; 3]| {
        (
            kind,
            up_to.parse().unwrap_or(u32::MAX),
            models.split(' ').collect(),
        )
    });
    read.collect()
});

/// What is published of a class of this name, or of the model that stands behind `: ` in it.
#[must_use]
pub fn facts_of(name: &str) -> Option<&'static ClassFacts> {
    let name = name.rsplit_once(": ").map_or(name, |(_, model)| model);
    if let Some(facts) = CLASSES.iter().find(|facts| facts.name == name) {
        return Some(facts);
    }
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    let letters: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
    let found = NAMES.iter().find(|[beginning, _]| letters.starts_with(beginning));
    found.map(|[_, row]| row_of(row))
}

/// The row of a name that stands in the table.
pub(super) fn row_of(name: &str) -> &'static ClassFacts {
    let found = CLASSES.iter().find(|facts| facts.name == name);
    found.unwrap_or(&CLASSES[0])
}
