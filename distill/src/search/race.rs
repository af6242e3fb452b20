//! The race of a batch: all children on a few lists, the better ones on more, the best on all.

use super::archive::Entry;
use super::config::Outcome;
use super::field::{Caller, Child, Field, SearchState};
use super::standing::{Standing, behind, standard_error};
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
        // In the last rung all are run to the end: each may take the place of another one.
        let standing = config.survivors.get(rung).map(|_| {
            let mut standing = Standing::new(config);
            for runner in &runners {
                let opponent = opponent(field, runner, state);
                standing.push(
                    opponent.map(|entry| &entry.outcomes[..*num_lists]),
                    &runner.outcomes,
                );
            }
            standing
        });
        let new = field.judged(&drafts, done..*num_lists, standing.as_ref(), caller)?;
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
    let own = &runner.outcomes;
    if own.contains(&Outcome::BROKEN_OFF) || state.archive.has_done(own, runner.child.draft.size()) {
        return None;
    }
    let theirs = &opponent(field, runner, state)?.outcomes[..own.len()];
    let behind = behind(field.config, own, theirs);
    (behind <= standard_error(own, theirs)).then_some(behind)
}

/// The tree that a runner would have to replace, or where there is room the best of its size and below: what is behind smaller trees
/// is worth no place.
fn opponent<'a>(field: &Field<'_>, runner: &Runner, state: &'a SearchState) -> Option<&'a Entry> {
    let size = runner.child.draft.size();
    let last = state.archive.of_size(size).get(field.config.of_each_size - 1);
    let best = || state.archive.best_up_to(size).or_else(|| state.archive.best());
    last.or_else(best)
}
