//! What is kept of steps beside the arrays: planners that are asked, decisions, pictures.

use std::sync::PoisonError;

use pleach_env::AutoresetMode;

use super::Envs;
use crate::candidates::{NOTHING, of_action};

impl Envs {
    /// Whether the episode of an environment is over, and the buffers hold its last observation.
    pub(super) fn is_over(&self, index: usize) -> bool {
        let batch = &self.batch;
        self.mode != AutoresetMode::SameStep && (batch.terminated[index] || batch.truncated[index])
    }

    /// Planners keep a state from instant to instant: with an episode they end too. Whether some episode ended.
    pub(super) fn forget_experts(&mut self) -> bool {
        let batch = &self.batch;
        let mut ended = false;
        for (index, expert) in self.experts.iter_mut().enumerate() {
            if batch.terminated[index] || batch.truncated[index] {
                ended = true;
                expert.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
            }
        }
        ended
    }

    /// Notes what is about to be decided; nothing where a step only begins an episode.
    pub(super) fn note_decided(&mut self, actions: &[usize]) {
        let Some(mut decided) = self.decided.take() else {
            return;
        };
        for (index, (env, action)) in self.envs.envs().zip(actions).enumerate() {
            let begins = self.is_over(index);
            decided[index] = if begins { NOTHING } else { of_action(env, *action) };
        }
        self.decided = Some(decided);
    }

    pub(super) fn note(&mut self) {
        let cluster = self.envs.envs().next().and_then(|env| env.cluster());
        if let (Some(strip), Some(cluster)) = (&mut self.strip, cluster) {
            strip.note(cluster);
        }
    }
}
