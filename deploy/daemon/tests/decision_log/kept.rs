//! What is kept is what was written, for as long and as much as the settings say.

use std::fs;

use pleach_daemon::config::LogSettings;
use pleach_daemon::state::{State, log_path, rounds_of};
use proptest::prelude::*;

use super::churn::{Churn, EPOCH_S};
use super::{LARGE, SMALL, names, read, write};

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn rounds_in_which_anything_happened_are_read_as_they_were_written(seed in any::<u64>(), num in 1_usize..40) {
        let folder = tempfile::tempdir().unwrap();
        let mut churn = Churn::new(seed, 6, 8, 4);
        let records: Vec<_> = (0..num).map(|_| churn.anything()).collect();
        // In files of several sizes, and by several processes one after the other.
        let settings = LogSettings { bytes_max: (1 << 16) | (seed % (1 << 20)), days: 3660 };
        let (first, rest) = records.split_at(num / 2);
        write(folder.path(), settings, first);
        write(folder.path(), settings, rest);
        let kept = read(folder.path());
        // The oldest may have left.
        prop_assert!(kept.len() <= num && (kept.len() == num || names(folder.path()).len() > 1));
        prop_assert_eq!(&records[num - kept.len()..], &kept[..]);
    }
}

#[test]
fn what_changed_is_a_small_part_of_a_round_and_a_compressed_file_of_the_text() {
    let folder = tempfile::tempdir().unwrap();
    let mut churn = Churn::new(1, 100, 400, 200);
    let records: Vec<_> = (0..100).map(|_| churn.step(2, (3, 3, 3))).collect();
    write(folder.path(), LARGE, &records);
    let text = fs::read_to_string(log_path(folder.path())).unwrap();
    let lines: Vec<usize> = text.lines().map(str::len).collect();
    assert!(lines[1..].iter().all(|num| num * 20 < lines[0]), "{lines:?}");
    // A year later it is full by age.
    let mut later = churn.step(365 * 86_400, (0, 0, 0));
    write(folder.path(), LARGE, std::slice::from_ref(&later));
    assert_eq!(
        names(folder.path()),
        ["decisions.jsonl"],
        "a new process does not know how old it is"
    );
    let mut state = State::take(folder.path(), LARGE).unwrap();
    state.append(later.clone()).unwrap();
    later.snapshot.taken_s += 86_400;
    state.append(later.clone()).unwrap();
    drop(state);
    let until_s = later.snapshot.taken_s;
    assert_eq!(
        names(folder.path()),
        [
            format!("decisions-{until_s}.jsonl.zst"),
            "decisions.jsonl".to_owned()
        ]
    );
    let packed = fs::metadata(folder.path().join(&names(folder.path())[0]))
        .unwrap()
        .len();
    assert!(packed * 4 < text.len() as u64, "{packed} of {}", text.len());
    assert_eq!(read(folder.path()).len(), 103);
}

#[test]
fn a_log_is_bounded_by_size_and_by_days_and_the_oldest_leave() {
    let folder = tempfile::tempdir().unwrap();
    let mut churn = Churn::new(2, 10, 10, 10);
    let bytes = || -> u64 {
        let sizes = names(folder.path())
            .into_iter()
            .map(|name| fs::metadata(folder.path().join(name)).unwrap().len());
        sizes.sum()
    };
    let records: Vec<_> = (0..3000).map(|_| churn.step(2, (1, 1, 1))).collect();
    write(folder.path(), SMALL, &records);
    assert!(
        bytes() <= SMALL.bytes_max && names(folder.path()).len() > 3,
        "{:?}",
        names(folder.path())
    );
    let kept = read(folder.path());
    assert!(kept.len() < 3000);
    assert_eq!(kept, records[3000 - kept.len()..]);

    // By days: a round every six hours, files by the day.
    let folder = tempfile::tempdir().unwrap();
    let records: Vec<_> = (0..100).map(|_| churn.step(6 * 3600, (1, 1, 1))).collect();
    write(folder.path(), LogSettings { days: 7, ..LARGE }, &records);
    let kept = read(folder.path());
    let oldest_s = records[99].snapshot.taken_s - kept[0].snapshot.taken_s;
    assert!((7 * 86_400..=9 * 86_400).contains(&oldest_s), "{oldest_s}");
    assert_eq!(kept, records[100 - kept.len()..]);
}

#[test]
fn a_job_is_looked_up_from_the_newest_file_back_to_where_it_came() {
    let folder = tempfile::tempdir().unwrap();
    let mut churn = Churn::new(3, 20, 30, 0);
    let records: Vec<_> = (0..300).map(|_| churn.step(2, (1, 1, 1))).collect();
    write(
        folder.path(),
        LogSettings {
            bytes_max: 1 << 18,
            days: 3660,
        },
        &records,
    );
    assert!(names(folder.path()).len() > 3);
    let kept = read(folder.path());
    let decided =
        |round: &pleach_daemon::record::RoundRecord| round.decisions.first().map(|planned| planned.job());
    for at in [kept.len() - 1, kept.len() / 2, 0] {
        let job = decided(&kept[at]).unwrap();
        let found = rounds_of(folder.path(), job, 5).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].round, found[0].taken_s),
            (kept[at].round, kept[at].snapshot.taken_s)
        );
        assert_eq!(found[0].decisions, kept[at].decisions);
    }
    assert_eq!(
        rounds_of(folder.path(), pleach_scheduler::ExternalId::number(1), 5).unwrap(),
        []
    );
    assert_eq!(
        rounds_of(
            &folder.path().join("none"),
            pleach_scheduler::ExternalId::number(1),
            5
        )
        .unwrap(),
        []
    );
    // The oldest file is not opened for a job that came after it.
    fs::write(folder.path().join(&names(folder.path())[0]), "no log").unwrap();
    let job = decided(kept.last().unwrap()).unwrap();
    assert_eq!(rounds_of(folder.path(), job, 5).unwrap().len(), 1);
}

#[test]
fn the_log_of_an_earlier_version_is_read_and_kept_as_the_oldest() {
    let folder = tempfile::tempdir().unwrap();
    let mut churn = Churn::new(4, 4, 4, 2);
    let records: Vec<_> = (0..9).map(|_| churn.anything()).collect();
    let text = |records: &[_]| -> String {
        let line = |record| serde_json::to_string(record).unwrap() + "\n";
        records.iter().map(line).collect()
    };
    fs::write(folder.path().join("decisions.jsonl.1"), text(&records[..3])).unwrap();
    fs::write(log_path(folder.path()), text(&records[3..6])).unwrap();
    assert_eq!(read(folder.path()), records[..6]);
    write(folder.path(), LARGE, &records[6..]);
    assert_eq!(read(folder.path()), records);
    assert_eq!(names(folder.path()).len(), 2, "{:?}", names(folder.path()));
    assert!(names(folder.path())[0].ends_with(".jsonl.zst"));
    assert!(records[6].snapshot.taken_s > EPOCH_S - 1000);
}
