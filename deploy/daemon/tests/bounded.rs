//! What the daemon keeps is bounded by the jobs that wait and run and by its settings, not by the jobs that have passed.

use std::collections::BTreeMap;
use std::path::Path;

use crate::passing::{Passing, Stream};
use pleach_daemon::config::EstimateSettings;
use pleach_daemon::memory::Memory;
use pleach_daemon::state::read_history;

/// Jobs that are remembered; run times that are kept, and jobs that are watched.
fn kept(folder: &Path, num_users: u32) -> (usize, usize, usize) {
    let state = folder.join("state");
    let memory = std::fs::read_to_string(state.join("memory.json")).unwrap();
    let memory: Memory = serde_json::from_str(&memory).unwrap();
    let settings = EstimateSettings {
        num_users,
        ..EstimateSettings::default()
    };
    let (history, complaint) = read_history(&state, &settings);
    assert_eq!(complaint, None);
    let (num_times, num_watched) = history.num_kept();
    (memory.len(), num_times, num_watched)
}

#[test]
fn what_is_kept_does_not_grow_with_the_jobs_that_have_ended() {
    let folder = tempfile::tempdir().unwrap();
    let stream = Stream {
        num_nodes: 10,
        num_users: 50,
        num_users_kept: 20,
    };
    let mut passing = Passing::new(folder.path(), stream, "sjf").unwrap();
    let mut at: BTreeMap<u64, (usize, usize, usize)> = BTreeMap::new();
    for _ in 0..62 {
        let num_ended = passing.round().unwrap();
        at.insert(num_ended, kept(folder.path(), stream.num_users_kept));
    }
    // 36 jobs a round: those of 60 rounds are over. At most ten run times in each of 20 users' two groups, their gang's, and all.
    let num = stream.num_jobs() as usize;
    let (num_ended, (num_remembered, num_times, num_watched)) = at.last_key_value().unwrap();
    assert_eq!(
        (*num_ended, *num_remembered, *num_watched),
        (60 * 36, num, 2 * num)
    );
    assert!((100..=(20 * 2 + 2) * 10).contains(num_times), "{num_times}");
    let (remembered, times, watched) = at[&(20 * 36)];
    assert!(remembered == *num_remembered && watched == *num_watched && times.abs_diff(*num_times) < 20);
    let status = passing.driver.status();
    assert!(
        status.truth.num_started > 100 && status.warnings.is_empty(),
        "{status:?}"
    );
}
