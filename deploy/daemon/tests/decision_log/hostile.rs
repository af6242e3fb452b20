//! Files that are no logs, or not whole ones: each is refused by name and costs no more than its bound.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Instant;

use pleach_daemon::record::RoundRecord;
use pleach_daemon::replay::Replay;
use pleach_daemon::state::{State, log_path, rounds_of};
use pleach_scheduler::ExternalId;

use super::churn::Churn;
use super::{LARGE, write};

/// What is said of a place, and how many rounds are read before that.
fn said(place: &Path) -> (usize, String) {
    let began = Instant::now();
    let rounds: Vec<Result<RoundRecord, _>> = Replay::open(place).unwrap().collect();
    let num = rounds.iter().filter(|round| round.is_ok()).count();
    assert!(rounds.len() <= num + 1, "nothing is read behind an error");
    assert!(began.elapsed().as_secs() < 20);
    (num, rounds.into_iter().find_map(Result::err).unwrap().to_string())
}

/// A log of six rounds as text.
fn lines() -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut churn = Churn::new(10, 4, 4, 2);
    let records: Vec<_> = (0..6).map(|_| churn.step(2, (1, 1, 1))).collect();
    write(folder.path(), LARGE, &records);
    let text = fs::read_to_string(log_path(folder.path())).unwrap();
    text.lines().map(|line| line.to_owned() + "\n").collect()
}

#[test]
fn files_without_end_are_refused_by_their_first_byte() {
    let folder = tempfile::tempdir().unwrap();
    symlink("/dev/zero", log_path(folder.path())).unwrap();
    let (num, words) = said(folder.path());
    assert!(
        num == 0 && words.contains("decisions.jsonl") && words.contains("brace"),
        "{words}"
    );
    let words = rounds_of(folder.path(), ExternalId::number(7), 5)
        .unwrap_err()
        .to_string();
    assert!(
        words.contains("decisions.jsonl") && words.contains("brace"),
        "{words}"
    );
    let mut state = State::take(folder.path(), LARGE).unwrap();
    let record = Churn::new(11, 1, 1, 0).step(2, (0, 0, 0));
    let words = state.append(record).unwrap_err().to_string();
    assert!(
        words.contains("is no log of decisions") && words.contains("move it away"),
        "{words}"
    );
    fs::remove_file(log_path(folder.path())).unwrap();
    symlink("/dev/zero", folder.path().join("decisions-5.jsonl.zst")).unwrap();
    let (_, words) = said(folder.path());
    assert!(words.contains("decisions-5.jsonl.zst"), "{words}");
}

#[test]
fn notes_of_somebody_are_left_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let notes = "the only copy of somebody's notes";
    fs::write(log_path(folder.path()), notes).unwrap();
    let mut state = State::take(folder.path(), LARGE).unwrap();
    let record = Churn::new(12, 1, 1, 0).step(2, (0, 0, 0));
    let words = state.append(record).unwrap_err().to_string();
    assert!(words.contains("move it away"), "{words}");
    assert_eq!(fs::read_to_string(log_path(folder.path())).unwrap(), notes);
}

#[test]
fn a_bomb_is_refused_before_it_fills_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("decisions-5.jsonl.zst");
    // 4 GiB of one line in some hundred KiB.
    let mut encoder = zstd::stream::write::Encoder::new(fs::File::create(&path).unwrap(), 1).unwrap();
    encoder.write_all(b"{").unwrap();
    let zeros = vec![b' '; 16 << 20];
    for _ in 0..256 {
        encoder.write_all(&zeros).unwrap();
    }
    encoder.finish().unwrap();
    assert!(fs::metadata(&path).unwrap().len() < 1 << 20);
    let (num, words) = said(&path);
    assert!(
        num == 0 && words.contains("a line of more than 268435456 bytes"),
        "{words}"
    );
    // One that asks for more memory to look back than we ever write.
    let mut encoder = zstd::stream::write::Encoder::new(fs::File::create(&path).unwrap(), 1).unwrap();
    encoder.window_log(27).unwrap();
    encoder.write_all(&zeros).unwrap();
    encoder.write_all(&zeros).unwrap();
    encoder.finish().unwrap();
    let (num, words) = said(&path);
    assert!(num == 0 && words.contains("too much memory"), "{words}");
}

#[test]
fn a_compressed_file_that_was_cut_or_changed_is_read_up_to_there_and_then_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("decisions-5.jsonl.zst");
    let text = lines().concat();
    let whole = zstd::stream::encode_all(text.as_bytes(), 3).unwrap();
    fs::write(&path, &whole).unwrap();
    assert_eq!(Replay::open(&path).unwrap().count(), 6);
    for len in [0, 1, 5, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..len]).unwrap();
        let (num, words) = said(&path);
        assert!(
            num <= 6 && words.contains("decisions-5.jsonl.zst"),
            "{len}: {words}"
        );
    }
}

#[test]
fn a_line_that_is_missing_told_twice_or_changed_is_found_by_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let path = log_path(folder.path());
    let all = lines();
    let put = |lines: &[&str]| {
        fs::write(&path, lines.concat()).unwrap();
        said(&path)
    };
    let line: Vec<&str> = all.iter().map(String::as_str).collect();
    let (num, words) = put(&[line[1], line[2]]);
    assert!(
        num == 0 && words.contains("line 1: ") && words.contains("no whole round is before it"),
        "{words}"
    );
    let (num, words) = put(&[line[0], line[1], line[3]]);
    assert!(
        num == 2 && words.contains("line 3: ") && words.contains("lines are missing"),
        "{words}"
    );
    let (num, words) = put(&[line[0], line[1], line[1]]);
    assert!(num == 2 && words.contains("lines are missing"), "{words}");
    let changed = line[1].replace("\"num\":[4,", "\"num\":[5,");
    let (num, words) = put(&[line[0], &changed]);
    assert!(
        num == 1 && words.contains("makes 4 nodes") && words.contains("was changed"),
        "{words}"
    );
    let at = line[1].find("\"jobs\":").unwrap();
    let changed = line[1][..at].to_owned() + &line[1][at..].replacen("\"gone\":[", "\"gone\":[900,", 1);
    let (num, words) = put(&[line[0], &changed]);
    assert!(num == 1 && words.contains("names place 900"), "{words}");
    let (_, words) = put(&[line[0], "{\"delta\":{}}\n"]);
    assert!(
        words.contains("line 2") && words.contains("missing field"),
        "{words}"
    );
}

#[test]
fn a_folder_without_a_log_and_a_file_that_is_not_there_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let words = Replay::open(folder.path()).unwrap_err().to_string();
    assert!(words.contains("has no log"), "{words}");
    let words = Replay::open(&folder.path().join("x.jsonl"))
        .unwrap_err()
        .to_string();
    assert!(words.contains("x.jsonl"), "{words}");
}
