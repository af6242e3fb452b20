//! Plans: how a training is cut over GPUs.

use pleach_scheduler::Problem;
use serde::{Deserialize, Serialize};

use super::model::Training;

/// What is computed anew on the way back instead of being kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recompute {
    /// Nothing: every activation is kept.
    #[default]
    None,
    /// Every layer: only what goes into it is kept. Costs a third more work.
    Full,
}

/// How a training is cut. Data parallel is what is left: GPUs over `tensor x pipeline x context`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Plan {
    /// GPUs that share each layer.
    pub tensor: u32,
    /// Stages of layers.
    pub pipeline: u32,
    /// Stages of each GPU (interleaved schedule); 1 = one.
    pub virtual_stages: u32,
    /// GPUs that share each sequence.
    pub context: u32,
    /// GPUs over which the experts of a layer are spread; 1 for models without.
    pub expert: u32,
    /// ZeRO: 0 nothing is divided among data parallel GPUs, 1 the optimiser's state, 2 gradients too, 3 weights too.
    pub zero: u32,
    /// Sequences of a micro batch.
    pub micro_batch: u32,
    /// What is computed anew.
    pub recompute: Recompute,
}

impl Default for Plan {
    /// Data parallel with a divided optimiser state.
    fn default() -> Plan {
        Plan {
            tensor: 1,
            pipeline: 1,
            virtual_stages: 1,
            context: 1,
            expert: 1,
            zero: 1,
            micro_batch: 1,
            recompute: Recompute::None,
        }
    }
}

impl Plan {
    /// GPUs that hold the model once.
    #[must_use]
    pub fn replica(&self) -> u32 {
        self.tensor.saturating_mul(self.pipeline)
    }

    /// Copies of the model that read other sequences.
    #[must_use]
    pub fn readers(&self, num_gpus: u32) -> u32 {
        num_gpus / (self.replica().saturating_mul(self.context)).max(1)
    }

    /// Micro batches that a copy passes in a step.
    #[must_use]
    pub fn micro_batches(&self, training: &Training, num_gpus: u32) -> f64 {
        f64::from(training.batch) / (f64::from(self.readers(num_gpus)) * f64::from(self.micro_batch))
    }

    /// Checks that a training can be cut so over so many GPUs.
    ///
    /// # Errors
    /// The first key that does not divide what it should.
    pub fn validate(&self, training: &Training, num_gpus: u32) -> Result<(), Problem> {
        let model = &training.model;
        let bad = |key: &str, value: u32, allowed: String, hint: &str| {
            Err(Problem::new(format!("plan.{key}"), value, allowed, hint))
        };
        let (tensor, stages) = (self.tensor, self.pipeline);
        if tensor == 0 || !model.heads.is_multiple_of(tensor) {
            let allowed = format!("a divisor of the {} heads of {}", model.heads, model.name);
            return bad("tensor", tensor, allowed, "1, 2, 4 and 8 are usual");
        }
        if stages == 0 || stages > model.layers {
            let allowed = format!("1 to {}, the layers of {}", model.layers, model.name);
            return bad("pipeline", stages, allowed, "1 = no stages");
        }
        let parts = self.virtual_stages;
        if parts == 0 || u64::from(parts) * u64::from(stages) > u64::from(model.layers) {
            let allowed = format!("1 to {}, the layers of a stage", model.layers / stages);
            return bad("virtual_stages", parts, allowed, "1 = each GPU has one stage");
        }
        if self.context == 0 || !training.sequence.is_multiple_of(self.context) {
            let allowed = format!("a divisor of the sequence of {} tokens", training.sequence);
            return bad(
                "context",
                self.context,
                allowed,
                "1 = each GPU has whole sequences",
            );
        }
        let replica = u64::from(tensor) * u64::from(stages) * u64::from(self.context);
        Problem::refuse_if(
            num_gpus == 0 || !u64::from(num_gpus).is_multiple_of(replica),
            "plan",
            replica,
            format_args!("a divisor of the {num_gpus} GPUs for tensor x pipeline x context"),
            "cut it into fewer or more parts",
        )?;
        let num_experts = model.experts.map_or(1, |experts| experts.num);
        let spread = num_gpus / stages;
        if self.expert == 0 || !num_experts.is_multiple_of(self.expert) || !spread.is_multiple_of(self.expert)
        {
            let allowed = format!("a divisor of {num_experts} experts and of {spread} GPUs of a stage");
            return bad(
                "expert",
                self.expert,
                allowed,
                "1 = every GPU has all experts of its layers",
            );
        }
        if self.zero > 3 {
            return bad(
                "zero",
                self.zero,
                "0 to 3".into(),
                "1 divides the optimiser's state",
            );
        }
        let together = u64::from(self.readers(num_gpus)) * u64::from(self.micro_batch);
        if together == 0 || !u64::from(training.batch).is_multiple_of(together) {
            let allowed = format!(
                "a divisor of a batch of {} sequences, once for each of {} copies",
                training.batch,
                self.readers(num_gpus)
            );
            return bad(
                "micro_batch",
                self.micro_batch,
                allowed,
                "take fewer copies, or another batch",
            );
        }
        Ok(())
    }
}
