//! Which actions can be taken, looked up before any environment moves.

use std::fmt;

use pleach_env::{AutoresetMode, Batch};

/// An action that cannot be taken, and why.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Refusal {
    Length {
        found: usize,
        expected: usize,
    },
    Ended {
        env: usize,
    },
    Inadmissible {
        env: usize,
        action: i64,
        num_candidates: usize,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Refusal::Length { found, expected } => {
                write!(
                    out,
                    "{found} actions: allowed is one for each of {expected} environments"
                )
            }
            Refusal::Ended { env } => write!(
                out,
                "environment {env}: the episode is over: call reset (with reset_mask to begin only some)"
            ),
            Refusal::Inadmissible {
                env,
                action,
                num_candidates,
            } => {
                let why = if action == 0 {
                    "no job runs and one could start, so holding would stop the cluster".to_owned()
                } else {
                    format!("there are {num_candidates} candidates at this decision point")
                };
                write!(
                    out,
                    "environment {env}: action {action} is not admissible, for {why}. Draw where the mask is 1"
                )
            }
        }
    }
}

/// The actions as indices if all of them can be taken; `takes_first` puts the first admissible one in the place of one that
/// is masked.
pub(crate) fn admissible(
    actions: &[i64],
    batch: &Batch,
    num_candidates: usize,
    mode: AutoresetMode,
    takes_first: bool,
) -> Result<Vec<usize>, Refusal> {
    let (found, expected) = (actions.len(), batch.reward.len());
    if found != expected {
        return Err(Refusal::Length { found, expected });
    }
    let masks = batch.mask.chunks_exact(num_candidates);
    let rows = actions.iter().zip(masks).enumerate();
    rows.map(|(env, (action, mask))| {
        if batch.terminated[env] || batch.truncated[env] {
            match mode {
                AutoresetMode::NextStep => return Ok(0),
                AutoresetMode::Disabled => return Err(Refusal::Ended { env }),
                AutoresetMode::SameStep => {}
            }
        }
        let index = usize::try_from(*action).unwrap_or(usize::MAX);
        if mask.get(index).copied().unwrap_or(false) {
            return Ok(index);
        }
        let first = mask.iter().position(|admissible| *admissible);
        let last = mask.iter().rposition(|admissible| *admissible);
        match first.filter(|_| takes_first && index < num_candidates) {
            Some(first) => Ok(first),
            None => Err(Refusal::Inadmissible {
                env,
                action: *action,
                num_candidates: last.map_or(0, |last| last + 1),
            }),
        }
    })
    .collect()
}
