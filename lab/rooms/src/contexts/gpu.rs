//! A GPU and the contexts that it is parted into.

use pleach_scheduler::Problem;

use super::{Capacity, FS_PER_US, Network};

/// Most contexts of a GPU: those of CUDA's MPS since Volta.
const CONTEXTS_MAX: usize = 48;
/// Most SMs of a GPU.
const SMS_MAX: u32 = 1_024;

/// A context: part of a GPU's SMs, not necessarily its own alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// SMs that its stages may use.
    pub sms: u32,
    /// Stages that may run in it at once.
    pub streams: u32,
}

/// A GPU with its contexts.
#[derive(Clone, Debug, PartialEq)]
pub struct Gpu {
    sms: u32,
    contexts: Vec<Context>,
    capacity: Capacity,
}

impl Gpu {
    /// A GPU with contexts whose SMs may sum to more than it has.
    ///
    /// # Errors
    /// No context, too many; SMs or streams out of range.
    pub fn new(sms: u32, contexts: Vec<Context>, capacity: Capacity) -> Result<Gpu, Problem> {
        if !(1..=SMS_MAX).contains(&sms) {
            let allowed = format!("1 to {SMS_MAX}");
            return Err(Problem::new("sms", sms, allowed, "An RTX 2080 Ti has 68."));
        }
        if !(1..=CONTEXTS_MAX).contains(&contexts.len()) {
            let allowed = format!("1 to {CONTEXTS_MAX}");
            let hint = "MPS has 48 at most.";
            return Err(Problem::new("contexts", contexts.len(), allowed, hint));
        }
        for (place, context) in contexts.iter().enumerate() {
            let named = |what: &str| format!("contexts[{place}]: {what}");
            if !(1..=sms).contains(&context.sms) {
                let hint = "A context cannot have more SMs than the GPU.";
                return Err(Problem::new(
                    named("sms"),
                    context.sms,
                    format!("1 to {sms}"),
                    hint,
                ));
            }
            if context.streams == 0 {
                return Err(Problem::new(
                    named("streams"),
                    0,
                    "at least 1",
                    "Leave the context out.",
                ));
            }
        }
        Ok(Gpu {
            sms,
            contexts,
            capacity,
        })
    }

    /// Equal contexts whose SMs sum to about `oversubscription` times the GPU's: each has that part rounded up to an even number,
    /// and at most the GPU's own (SGPRS's released code).
    ///
    /// # Errors
    /// As [`Gpu::new`]; an over-subscription that is below 1 or above the number of contexts.
    pub fn equal(
        sms: u32,
        num: usize,
        oversubscription: f64,
        streams: u32,
        capacity: Capacity,
    ) -> Result<Gpu, Problem> {
        if !(1.0..=num.max(1) as f64).contains(&oversubscription) {
            let allowed = format!("1 to the number of contexts, {num}");
            let hint = "1 parts the GPU, and as much as contexts gives each all of it.";
            return Err(Problem::new("oversubscription", oversubscription, allowed, hint));
        }
        let part = (f64::from(sms) * oversubscription / num as f64).ceil() as u32;
        let context = Context {
            sms: part.next_multiple_of(2).min(sms),
            streams,
        };
        Gpu::new(sms, vec![context; num], capacity)
    }

    /// The contexts.
    #[must_use]
    pub fn contexts(&self) -> &[Context] {
        &self.contexts
    }

    /// Throughput by stages in flight.
    #[must_use]
    pub fn capacity(&self) -> &Capacity {
        &self.capacity
    }

    /// Time of a network alone on the whole GPU, which is the unit of its work, fs.
    pub(super) fn work(&self, network: &Network) -> u64 {
        network.alone_fs(self.sms)
    }

    /// Greatest speed of a network's stages in a context, fs of work per µs.
    pub(super) fn speed_max(&self, network: &Network, context: usize) -> u64 {
        let (all, own) = (self.work(network), network.alone_fs(self.contexts[context].sms));
        (u128::from(all) * u128::from(FS_PER_US) / u128::from(own)) as u64
    }

    /// Time of so much work in a context while every stream of the GPU is busy, or so many as there are tasks, µs.
    pub(super) fn occupied_us(&self, network: &Network, context: usize, work: u64, num_tasks: usize) -> u64 {
        let streams = self
            .contexts
            .iter()
            .map(|context| u64::from(context.streams))
            .sum::<u64>();
        let num = streams.min(num_tasks as u64).max(1) as u32;
        let speed = self.capacity.speed(num).min(self.speed_max(network, context));
        work.div_ceil(speed.max(1))
    }
}
