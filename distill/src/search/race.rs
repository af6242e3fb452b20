//! The race of a batch: all children on a few lists, the better ones on more, the best on all.

use super::archive::Entry;
use super::config::Outcome;
use super::field::{Caller, Child, Field, SearchState};
use crate::error::Error;

/// A child on its way.
struct Runner {
    child: Child,
    outcomes: Vec<Outcome>,
}

/// Runs a race and offers those that reach the end to the archive.
pub(super) fn race<E>(
    field: &Field<'_>,
    children: Vec<Child>,
    state: &mut SearchState,
    caller: &mut Caller<'_, E>,
) -> Result<(), Error<E>> {
    let config = field.config;
    for name in children.iter().flat_map(|child| &child.moves) {
        state.moves.entry(*name).or_insert([0; 2])[0] += 1;
    }
    let mut runners: Vec<Runner> = children
        .into_iter()
        .map(|child| Runner {
            child,
            outcomes: Vec::new(),
        })
        .collect();
    let mut done = 0;
    for (rung, num_lists) in config.rungs.iter().enumerate() {
        let drafts: Vec<_> = runners.iter().map(|runner| &runner.child.draft).collect();
        let new = field.judged(&drafts, done..*num_lists, caller)?;
        state.simulations += (runners.len() * (num_lists - done)) as u64;
        for (runner, new) in runners.iter_mut().zip(new) {
            runner.outcomes.extend(new);
        }
        done = *num_lists;
        let Some(survivors) = config.survivors.get(rung) else {
            break;
        };
        let mut places: Vec<(f64, Runner)> = Vec::new();
        for runner in std::mem::take(&mut runners) {
            let is_alone = places.iter().all(|(_, other)| other.outcomes != runner.outcomes);
            if let Some(lead) = lead(field, &runner, state)
                && is_alone
            {
                places.push((lead, runner));
            }
        }
        // Stable: among equals the first child.
        places.sort_by(|a, b| a.0.total_cmp(&b.0));
        places.truncate(*survivors);
        runners = places.into_iter().map(|(_, runner)| runner).collect();
    }
    for Runner { child, outcomes } in runners {
        let objective = config.objective(&outcomes);
        let entry = Entry {
            draft: child.draft,
            origin: child.origin,
            outcomes,
            objective,
        };
        if state.archive.offer(entry, config.of_each_size) {
            for name in child.moves {
                state.moves.entry(name).or_insert([0; 2])[1] += 1;
            }
        }
    }
    Ok(())
}

/// How far a runner is behind the tree that it would have to replace, on the lists that it has run: below 0 it leads. Where there is
/// room in its size, that is the best of its size and below. None for one
/// that does what a kept tree does, and for one that is behind by more than one standard error of the paired difference.
fn lead(field: &Field<'_>, runner: &Runner, state: &SearchState) -> Option<f64> {
    let (config, own) = (field.config, &runner.outcomes);
    let size = runner.child.draft.size();
    if state.archive.has_done(own, size) {
        return None;
    }
    let kept = state.archive.of_size(size);
    let opponent = match kept.get(config.of_each_size - 1) {
        Some(last) => last,
        // There is room; but what is behind smaller trees is worth none.
        None => state.archive.best_up_to(size).or_else(|| state.archive.best())?,
    };
    let theirs = &opponent.outcomes[..own.len()];
    let behind = config.objective(own) - config.objective(theirs);
    (behind <= standard_error(own, theirs)).then_some(behind)
}

/// Standard error of the mean paired difference of the logarithms of average JCT.
fn standard_error(own: &[Outcome], theirs: &[Outcome]) -> f64 {
    let differences: Vec<f64> = own
        .iter()
        .zip(theirs)
        .map(|(own, theirs)| own.ln_jct - theirs.ln_jct)
        .collect();
    let num = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / num;
    let square: f64 = differences.iter().map(|value| (value - mean).powi(2)).sum();
    (square / (num - 1.0).max(1.0) / num).sqrt()
}
