//! Runs of a function that scores the decisions of many lists at once. Each list has a thread of its own, and all wait until
//! every list that still plays has a decision. Which lists are asked together depends on the lists alone, so the answers do too.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use pleach_env::SimConfig;
use pleach_experiments::{Error, Instance, PolicyRun, PolicySpec, Runner, Watcher};
use pleach_scheduler::PolicyError;
use pyo3::prelude::*;

use crate::callable::{Callable, Seat, Seen};

/// Lists that play at once: as many threads, and as many rows of a question. Assumed: larger ones gain little.
const AT_ONCE: usize = 64;

/// What a list tells those that it plays beside.
enum Word {
    /// It has a decision, and waits.
    Asks(Seen, Sender<Vec<f32>>),
    /// It plays no more.
    Leaves,
}

/// The place of one list among those that play at once: a list with a decision waits there until all others have one too.
fn seat(place: usize, words: Sender<(usize, Word)>) -> Seat {
    Arc::new(move |seen| {
        let (send, answer) = channel();
        let sent = words.send((place, Word::Asks(seen, send)));
        sent.map_err(|_| PolicyError::Stopped)?;
        answer.recv().map_err(|_| PolicyError::Stopped)
    })
}

/// Says at its end that a list plays no more, be it by a panic.
struct Leaving(usize, Sender<(usize, Word)>);

impl Drop for Leaving {
    fn drop(&mut self) {
        let _ = self.1.send((self.0, Word::Leaves));
    }
}

/// The runs of a function on these lists, in their order.
///
/// # Errors
/// As [`Runner::run`]; threads that cannot be had.
pub(crate) fn play(
    function: &Callable,
    name: &str,
    instances: &[Instance],
    sim: &SimConfig,
    watcher: &Watcher,
) -> Result<Vec<PolicyRun>, Error> {
    let mut all = Vec::with_capacity(instances.len());
    for part in instances.chunks(AT_ONCE) {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(part.len()).build();
        let pool = pool.map_err(|error| Error::Failed(format!("no threads: {error}")))?;
        let (words, heard) = channel();
        let mut runs: Vec<Result<Vec<PolicyRun>, Error>> = part.iter().map(|_| Ok(Vec::new())).collect();
        pool.in_place_scope(|scope| {
            for (place, (instance, run)) in part.iter().zip(&mut runs).enumerate() {
                let mut seated = function.clone();
                seated.seat = Some(seat(place, words.clone()));
                let leaving = Leaving(place, words.clone());
                scope.spawn(move |_| {
                    let _leaving = leaving;
                    let spec = PolicySpec::made(name, move || Box::new(seated.clone()));
                    let one = std::slice::from_ref(instance);
                    *run = Runner::new(sim).watched("evaluate", watcher).run(one, &[spec]);
                });
            }
            drop(words);
            answer(function, part.len(), &heard);
        });
        for run in runs {
            all.extend(run?);
        }
    }
    Ok(all)
}

/// Answers until all lists have left; once the function has failed, no list gets an answer.
fn answer(function: &Callable, mut playing: usize, heard: &Receiver<(usize, Word)>) {
    let mut waiting = BTreeMap::new();
    while playing > 0 {
        match heard.recv() {
            Ok((place, Word::Asks(seen, answer))) => {
                waiting.insert(place, (seen, answer));
            }
            Ok((_, Word::Leaves)) => playing -= 1,
            Err(_) => return,
        }
        if playing > 0 && waiting.len() == playing {
            let (seen, answers): (Vec<_>, Vec<_>) = std::mem::take(&mut waiting).into_values().unzip();
            let asked = function.on_the_callers_thread(move |own, py: Python<'_>| own.ask_all(py, seen));
            // A list without an answer learns by the end of its channel that none will come.
            for (scores, answer) in asked
                .ok()
                .and_then(Result::ok)
                .unwrap_or_default()
                .into_iter()
                .zip(answers)
            {
                let _ = answer.send(scores);
            }
        }
    }
}
