//! What a week of a large cluster takes on the disk. `cargo test -p pleach-daemon --test daemon a_week -- --ignored --nocapture`.

use std::fs;
use std::time::{Duration, Instant};

use pleach_daemon::config::LogSettings;
use pleach_daemon::replay::Replay;
use pleach_daemon::state::State;

use super::churn::Churn;
use super::{names, segment};

/// 5,000 nodes, 20,000 jobs that wait and 10,000 that run; a round every two seconds, in each of which ten jobs come, ten start
/// and ten end: 302,400 rounds and 3 million jobs in a week. Played until a file is full; the week is as many files as it takes.
#[test]
#[ignore = "minutes: the figures of lab/notes/slurm-measured.md"]
fn a_week_of_5000_nodes_and_20000_waiting_jobs_takes_less_than_a_gigabyte() {
    let folder = tempfile::tempdir().unwrap();
    let mut churn = Churn::new(33, 5000, 20_000, 10_000);
    let mut state = State::take(folder.path(), LogSettings::default()).unwrap();
    let (mut num, mut slowest, mut writing) = (0_u64, Duration::ZERO, Duration::ZERO);
    while names(folder.path()).len() < 2 {
        let record = churn.step(2, (10, 10, 10));
        if num == 0 {
            println!(
                "a whole round: {} bytes",
                serde_json::to_vec(&record).unwrap().len()
            );
        }
        let began = Instant::now();
        state.append(record).unwrap();
        slowest = slowest.max(began.elapsed());
        writing += began.elapsed();
        num += 1;
    }
    drop(state);
    let file = segment(folder.path());
    let packed = fs::metadata(&file).unwrap().len();
    let began = Instant::now();
    let mut log = Replay::open(&file).unwrap();
    let mut num_read = 0_u64;
    while log.next_round().unwrap().is_some() {
        num_read += 1;
    }
    let reading = began.elapsed();
    let week = 302_400.0 * packed as f64 / num_read as f64;
    println!(
        "{num} rounds, {:.1} ms each to write, {slowest:?} the slowest; a file of {num_read} rounds has {packed} bytes, \
         read again in {reading:?}; a week: {:.0} MB",
        writing.as_secs_f64() * 1e3 / num as f64,
        week / 1e6
    );
    assert!(week < 1e9);
}
