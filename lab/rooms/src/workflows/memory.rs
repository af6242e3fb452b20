//! Which models a GPU keeps: what is loaded ahead, and what gives way.

use std::collections::VecDeque;

/// Rules of a worker's GPU memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The model whose next use in the worker's queue is furthest gives way (Belady, 1966, as far as the queue tells); else
    /// the one used longest ago.
    pub looks_ahead: bool,
    /// The next model of the queue that is not there is loaded while a task runs.
    pub prefetches: bool,
}

/// A model in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub model: usize,
    pub size_mib: u64,
    /// Number of the use or load that was last.
    pub last: u64,
}

/// What to load for a queue: the model, and those that give way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    pub model: usize,
    pub victims: Vec<usize>,
}

impl Memory {
    /// What to load next, if anything. `queue` are models in the order of their use, `running` is the one in use now. A model
    /// gives way only if it is not needed sooner: where the best victim is needed sooner, nothing is loaded yet.
    pub(crate) fn next(
        self,
        held: &[Held],
        queue: &VecDeque<usize>,
        running: Option<usize>,
        free_mib: u64,
        size_mib: impl Fn(usize) -> u64,
    ) -> Option<Load> {
        let is_held = |model: &usize| held.iter().any(|held| held.model == *model);
        let place = queue.iter().position(|model| !is_held(model))?;
        if !self.prefetches && (place > 0 || running.is_some()) {
            return None;
        }
        let model = queue[place];
        let mut candidates: Vec<(usize, u64, &Held)> = held
            .iter()
            .map(|held| {
                let later = queue.iter().skip(place).position(|next| *next == held.model);
                let next = if self.looks_ahead {
                    later.unwrap_or(usize::MAX)
                } else {
                    0
                };
                (next, held.last, held)
            })
            .collect();
        // The furthest first; of those that the queue does not need, the one used longest ago.
        candidates.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(&other.1)));
        let mut free_mib = free_mib;
        let mut victims = Vec::new();
        for (_, _, held) in candidates {
            if free_mib >= size_mib(model) {
                break;
            }
            let is_needed_sooner =
                running == Some(held.model) || queue.iter().take(place).any(|next| *next == held.model);
            if is_needed_sooner {
                return None;
            }
            free_mib += held.size_mib;
            victims.push(held.model);
        }
        (free_mib >= size_mib(model)).then_some(Load { model, victims })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(memory: Memory, held: &[usize], queue: &[usize], running: Option<usize>) -> Option<Load> {
        let held: Vec<Held> = held
            .iter()
            .zip(0..)
            .map(|(model, last)| Held {
                model: *model,
                size_mib: 1,
                last,
            })
            .collect();
        memory.next(&held, &queue.iter().copied().collect(), running, 0, |_| 1)
    }

    const AHEAD: Memory = Memory {
        looks_ahead: true,
        prefetches: true,
    };

    #[test]
    fn the_furthest_use_gives_way_or_the_oldest() {
        let load = |model, victim| {
            Some(Load {
                model,
                victims: vec![victim],
            })
        };
        assert_eq!(next(AHEAD, &[0, 1], &[2, 0, 1], None), load(2, 1));
        assert_eq!(next(AHEAD, &[0, 1], &[2, 1, 0], None), load(2, 0));
        let lru = Memory {
            looks_ahead: false,
            ..AHEAD
        };
        assert_eq!(next(lru, &[0, 1], &[2, 0, 1], None), load(2, 0));
        assert_eq!(
            next(AHEAD, &[0, 1], &[2], None),
            load(2, 0),
            "no job needs either: the oldest"
        );
    }

    /// Model 0 is used before model 2 and never again, so it is the best victim, once its task ran.
    #[test]
    fn who_is_needed_sooner_is_waited_for() {
        assert_eq!(next(AHEAD, &[0, 1], &[0, 2, 1], None), None);
        assert_eq!(next(AHEAD, &[0, 1], &[2, 1], Some(0)), None);
        assert_eq!(
            next(AHEAD, &[0, 1], &[0, 2, 0], None),
            Some(Load {
                model: 2,
                victims: vec![1]
            })
        );
        let waits = Memory {
            prefetches: false,
            ..AHEAD
        };
        assert_eq!(next(waits, &[0, 1], &[0, 2, 0], None), None);
        assert_eq!(next(AHEAD, &[0, 1], &[0, 1], None), None, "all there");
    }
}
