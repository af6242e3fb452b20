//! Runs the missing units of a sweep on the threads of this machine.
//!
//! Workers take the next index from a channel that holds all of them, so units start in order and a failing one does not stop the
//! others. They send how it ended through another, of bounded length, to the one thread that counts. Plain threads and not a
//! work-stealing pool: a unit may itself run in parallel on the global pool, and a worker that waits there must not pick up a
//! second whole unit on the same stack.
//!
//! Several processes may work on one sweep. A unit that another one is at work on is left to it, and looked at again until it has
//! ended there or is free: so each of them ends when the sweep is done, and what one leaves that was killed is run by another.

use std::collections::BTreeSet;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::manifest::Manifest;
use super::page;
use super::status::Status;
use super::unit::{Ending, Work, run_unit};
use super::unit_error::UnitError;
use crate::error::Error;
use crate::progress::{Progress, Watcher};

/// Threads, at most.
const THREADS_MAX: usize = 1024;

/// Time between two looks at units that other processes are at work on.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How often the page is written anew in a round of units, about.
const REWRITES: usize = 50;

/// How to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// Units at a time; 1 to 1024.
    pub num_threads: usize,
    /// How often a unit that asks for another try is run again; 0 to 100.
    pub num_retries: usize,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunReport {
    /// Units that were run to their result.
    pub num_done: usize,
    /// Units whose result was there before.
    pub num_skipped: usize,
    /// Units that another process was at work on and brought to their result.
    pub num_elsewhere: usize,
    /// Units that failed, by index, with the reason.
    pub failed: Vec<(usize, UnitError)>,
}

/// Runs every unit without a result; with `only`, those of them.
///
/// # Errors
/// [`Error::Problem`] where a setting or index cannot be used, [`Error::Problem`] where results cannot be written: then no
/// further unit is started. A failing unit is no error; it is in the report and in its error file.
pub fn run(
    manifest: &Manifest,
    out: &Path,
    config: EngineConfig,
    only: Option<&[usize]>,
    work: &Work<'_>,
    watcher: &Watcher,
) -> Result<RunReport, Error> {
    Error::refuse_if(
        !(1..=THREADS_MAX).contains(&config.num_threads),
        "threads",
        config.num_threads,
        format_args!("1 to {THREADS_MAX}"),
        "Leave it out to use every core.",
    )?;
    Error::refuse_if(
        config.num_retries > 100,
        "retries",
        config.num_retries,
        "0 to 100",
        "Two is usual.",
    )?;
    let (mut report, mut tried) = (RunReport::default(), BTreeSet::new());
    let (mut is_first, mut elsewhere) = (true, BTreeSet::new());
    // Once, or a rung after the other: when one has ended it is known which configurations run on the next.
    loop {
        let status = Status::of(manifest, out);
        let mut todo = status.to_run();
        if let Some(only) = only {
            todo.retain(|index| only.contains(index));
        }
        report.num_elsewhere = elsewhere
            .intersection(&status.done.iter().copied().collect())
            .count();
        if std::mem::take(&mut is_first) {
            report.num_skipped = only.map_or(status.done.len(), |only| only.len().saturating_sub(todo.len()));
        }
        todo.retain(|index| tried.insert(*index));
        if todo.is_empty() {
            page::rewrite((manifest, out), false);
            return Ok(report);
        }
        let busy;
        (report, busy) = run_all(manifest, out, (config, &todo), work, (report, watcher))?;
        for index in &busy {
            tried.remove(index);
        }
        elsewhere.retain(|index| !todo.contains(index));
        elsewhere.extend(&busy);
        if busy.len() == todo.len() {
            thread::sleep(LOOK_EVERY);
        }
    }
}

/// Runs these units; says which of them other processes are at work on.
fn run_all(
    manifest: &Manifest,
    out: &Path,
    (config, todo): (EngineConfig, &[usize]),
    work: &Work<'_>,
    (report, watcher): (RunReport, &Watcher),
) -> Result<(RunReport, Vec<usize>), Error> {
    let num_threads = config.num_threads.min(todo.len());
    let (indexes, tasks) = bounded(todo.len());
    for index in todo {
        // There is room for all of them, and the receiver lives.
        let _ = indexes.send(*index);
    }
    drop(indexes);
    let (endings, results) = bounded(num_threads);
    watcher.part("sweep", todo.len(), || {
        thread::scope(|scope| {
            for _ in 0..num_threads {
                let (tasks, endings) = (tasks.clone(), endings.clone());
                scope.spawn(move || {
                    work_off(&tasks, &endings, |index| {
                        run_with_retries(manifest, index, out, config.num_retries, work)
                    });
                });
            }
            drop(endings);
            let every = todo.len().div_ceil(REWRITES).max(1) as u64;
            collect(results, (report, every), (manifest, out), watcher)
        })
    })
}

/// How a unit ended, by its index.
type Ended = (usize, Result<Ending, Error>);

/// Runs one unit after the other until there are no more, or until endings are no longer counted.
fn work_off(tasks: &Receiver<usize>, endings: &Sender<Ended>, run: impl Fn(usize) -> Result<Ending, Error>) {
    for index in tasks {
        if endings.send((index, run(index))).is_err() {
            return;
        }
    }
}

/// Counts how the units end. After an error the channel is closed, so that workers begin no further unit.
fn collect(
    results: Receiver<Ended>,
    (mut report, every): (RunReport, u64),
    place: (&Manifest, &Path),
    watcher: &Watcher,
) -> Result<(RunReport, Vec<usize>), Error> {
    let (mut num_ended, mut busy) = (0, Vec::new());
    let mut message = String::new();
    for (index, ending) in &results {
        match ending? {
            Ending::Done => report.num_done += 1,
            Ending::Skipped => report.num_skipped += 1,
            Ending::Busy => busy.push(index),
            Ending::Failed(error) => {
                report.failed.push((index, error));
                message = format!("{} failed", report.failed.len());
            }
        }
        num_ended += 1;
        watcher.tell(Progress::At(num_ended, &message));
        if num_ended.is_multiple_of(every) {
            page::rewrite(place, true);
        }
    }
    report.failed.sort_by_key(|(index, _)| *index);
    Ok((report, busy))
}

fn run_with_retries(
    manifest: &Manifest,
    index: usize,
    out: &Path,
    num_retries: usize,
    work: &Work<'_>,
) -> Result<Ending, Error> {
    let spec = manifest.unit(index)?;
    let mut ending = run_unit(&spec, out, work)?;
    for _ in 0..num_retries {
        if !matches!(ending, Ending::Failed(UnitError::Temporary(_))) {
            break;
        }
        ending = run_unit(&spec, out, work)?;
    }
    Ok(ending)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::grid::Grid;
    use crate::sweep::manifest::UnitSpec;
    use crate::sweep::manifest::tests::small;
    use serde_json::{Value, json};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const QUIET: EngineConfig = EngineConfig {
        num_threads: 2,
        num_retries: 1,
    };

    #[test]
    fn failing_and_panicking_units_do_not_stop_the_others() {
        let out = tempfile::tempdir().unwrap();
        let work = |spec: &UnitSpec| match spec.index {
            1 => Err(UnitError::Failed("bad luck".into())),
            4 => panic!("bug"),
            _ => Ok(json!(spec.index)),
        };
        let report = run(&small(), out.path(), QUIET, None, &work, &Watcher::silent()).unwrap();
        assert_eq!(report.num_done, 4);
        let failed: Vec<usize> = report.failed.iter().map(|(index, _)| *index).collect();
        assert_eq!(failed, [1, 4]);
        assert!(out.path().join("units/1/error.json").exists());
    }

    #[test]
    fn a_resumed_sweep_runs_only_what_is_missing() {
        let out = tempfile::tempdir().unwrap();
        let ran = Mutex::new(Vec::new());
        let work = |spec: &UnitSpec| -> Result<Value, UnitError> {
            ran.lock().unwrap().push(spec.index);
            Ok(json!(1))
        };
        run(
            &small(),
            out.path(),
            QUIET,
            Some(&[0, 3]),
            &work,
            &Watcher::silent(),
        )
        .unwrap();
        std::fs::remove_file(out.path().join("units/3/result.json")).unwrap();
        ran.lock().unwrap().clear();
        let report = run(&small(), out.path(), QUIET, None, &work, &Watcher::silent()).unwrap();
        let mut indexes = ran.lock().unwrap().clone();
        indexes.sort_unstable();
        assert_eq!(indexes, [1, 2, 3, 4, 5]);
        assert_eq!((report.num_done, report.num_skipped), (5, 1));
    }

    #[test]
    fn two_workers_share_a_sweep_with_rungs_and_both_end_with_all_of_it_done() {
        let text = "name = 'x'\n[grid]\nquality = [4, 2, 3, 1]\n[halving]\nsetting = 'n'\nvalues = [1, 2, 4]\nkeep = 2";
        let manifest = toml::from_str::<Grid>(text).unwrap().plan().unwrap();
        let out = tempfile::tempdir().unwrap();
        let ran = Mutex::new(Vec::new());
        let work = |spec: &UnitSpec| -> Result<Value, UnitError> {
            thread::sleep(Duration::from_millis(30));
            ran.lock().unwrap().push(spec.index);
            Ok(json!({"avg_jct_s": spec.config["quality"]}))
        };
        let one = EngineConfig {
            num_threads: 1,
            num_retries: 0,
        };
        let worker = || run(&manifest, out.path(), one, None, &work, &Watcher::silent()).unwrap();
        let reports = thread::scope(|scope| {
            let both = [scope.spawn(worker), scope.spawn(worker)];
            both.map(|worker| worker.join().unwrap())
        });
        for report in &reports {
            assert_eq!(
                report.failed,
                [],
                "a unit that another worker has is not a failed one"
            );
        }
        assert_eq!(reports[0].num_done + reports[1].num_done, 4 + 2 + 1);
        let mut indexes = ran.into_inner().unwrap();
        indexes.sort_unstable();
        indexes.dedup();
        assert_eq!(indexes.len(), 7, "each unit was run once");
        let status = Status::of(&manifest, out.path());
        assert!(
            status.to_run().is_empty() && status.waiting.is_empty(),
            "{status}"
        );
    }

    #[test]
    fn a_unit_that_asks_for_another_try_gets_it() {
        let out = tempfile::tempdir().unwrap();
        let tries = AtomicUsize::new(0);
        let work = |spec: &UnitSpec| match spec.index {
            2 if tries.fetch_add(1, Ordering::Relaxed) == 0 => Err(UnitError::Temporary("busy".into())),
            5 => Err(UnitError::Temporary("always busy".into())),
            _ => Ok(json!(1)),
        };
        let report = run(&small(), out.path(), QUIET, None, &work, &Watcher::silent()).unwrap();
        assert_eq!(tries.load(Ordering::Relaxed), 2);
        assert_eq!(report.failed, [(5, UnitError::Temporary("always busy".into()))]);
    }

    #[test]
    fn settings_out_of_range_and_a_folder_that_cannot_be_written_are_errors() {
        let out = tempfile::tempdir().unwrap();
        let none = EngineConfig {
            num_threads: 0,
            ..QUIET
        };
        assert!(matches!(
            run(
                &small(),
                out.path(),
                none,
                None,
                &|_| Ok(json!(1)),
                &Watcher::silent()
            ),
            Err(Error::Problem(_))
        ));
        let file = out.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(matches!(
            run(
                &small(),
                &file,
                QUIET,
                None,
                &|_| Ok(json!(1)),
                &Watcher::silent()
            ),
            Err(Error::Problem(_))
        ));
    }
}
