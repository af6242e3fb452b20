//! A program that is killed in the middle of a write, wherever that is, and disks that are full: no whole round is lost.

use std::fs::{self, OpenOptions};
use std::io::Write;

use pleach_daemon::state::{State, log_path};

use super::churn::Churn;
use super::{LARGE, SMALL, names, read, segment, write};

#[test]
fn a_daemon_that_is_killed_at_any_byte_of_a_line_loses_that_line_alone() {
    let source = tempfile::tempdir().unwrap();
    let mut churn = Churn::new(5, 2, 2, 1);
    let records: Vec<_> = (0..4).map(|_| churn.step(2, (1, 1, 1))).collect();
    let next = churn.step(2, (1, 1, 1));
    write(source.path(), LARGE, &records);
    let text = fs::read(log_path(source.path())).unwrap();
    // Near each end of a line every byte, and between them one in 13.
    let ends: Vec<usize> = (0..text.len()).filter(|at| text[*at] == b'\n').collect();
    let is_near = |len: usize| ends.iter().any(|end| end.abs_diff(len) < 4);
    for len in (0..=text.len()).filter(|len| len % 13 == 0 || *len < 12 || is_near(*len)) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(log_path(folder.path()), &text[..len]).unwrap();
        let num_whole = text[..len].iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(read(folder.path()), records[..num_whole], "cut at {len}");
        write(folder.path(), LARGE, std::slice::from_ref(&next));
        let kept = read(folder.path());
        assert_eq!(kept[..num_whole], records[..num_whole], "cut at {len}");
        assert_eq!(&kept[num_whole..], std::slice::from_ref(&next), "cut at {len}");
    }
}

#[test]
fn a_daemon_that_is_killed_anywhere_while_a_file_is_put_aside_loses_nothing() {
    let source = tempfile::tempdir().unwrap();
    let mut churn = Churn::new(6, 4, 4, 2);
    let records: Vec<_> = (0..5).map(|_| churn.step(2, (1, 1, 1))).collect();
    let next = churn.step(2, (1, 1, 1));
    write(source.path(), LARGE, &records);
    let plain = fs::read(log_path(source.path())).unwrap();
    // As it is once it was compressed.
    let packed = tempfile::tempdir().unwrap();
    fs::write(packed.path().join("decisions-1794999000.jsonl"), &plain).unwrap();
    write(packed.path(), LARGE, std::slice::from_ref(&next));
    let packed = fs::read(segment(packed.path())).unwrap();
    let stages: [&[(&str, &[u8])]; 4] = [
        &[("decisions-1794999000.jsonl", &plain)],
        &[
            ("decisions-1794999000.jsonl", &plain),
            ("decisions-1794999000.jsonl.zst.part", &packed[..packed.len() / 2]),
        ],
        &[
            ("decisions-1794999000.jsonl", &plain),
            ("decisions-1794999000.jsonl.zst", &packed),
        ],
        &[("decisions-1794999000.jsonl.zst", &packed)],
    ];
    for (number, stage) in stages.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in stage {
            fs::write(folder.path().join(name), bytes).unwrap();
        }
        assert_eq!(read(folder.path()), records, "stage {number}");
        write(folder.path(), LARGE, std::slice::from_ref(&next));
        assert_eq!(
            names(folder.path()),
            ["decisions-1794999000.jsonl.zst", "decisions.jsonl"],
            "stage {number}"
        );
        assert_eq!(
            read(folder.path()),
            [&records[..], std::slice::from_ref(&next)].concat(),
            "stage {number}"
        );
    }
}

#[test]
fn a_file_that_cannot_be_compressed_stays_as_it_is_and_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut churn = Churn::new(7, 4, 4, 2);
    let records: Vec<_> = (0..5).map(|_| churn.step(2, (1, 1, 1))).collect();
    write(folder.path(), LARGE, &records[..4]);
    fs::rename(
        log_path(folder.path()),
        folder.path().join("decisions-1794999000.jsonl"),
    )
    .unwrap();
    // As on a full disk: nothing can be written there.
    fs::create_dir(folder.path().join("decisions-1794999000.jsonl.zst.part")).unwrap();
    write(folder.path(), LARGE, &records[4..]);
    assert!(folder.path().join("decisions-1794999000.jsonl").is_file());
    assert_eq!(read(folder.path()), records);
    fs::remove_dir(folder.path().join("decisions-1794999000.jsonl.zst.part")).unwrap();
    write(folder.path(), LARGE, &[]);
    assert!(
        folder.path().join("decisions-1794999000.jsonl").is_file(),
        "nothing is done before there is something to write"
    );
    let next = churn.step(2, (0, 0, 0));
    write(folder.path(), LARGE, std::slice::from_ref(&next));
    assert!(folder.path().join("decisions-1794999000.jsonl.zst").is_file());
    assert_eq!(read(folder.path()).len(), 6);
}

#[test]
fn a_line_that_could_not_be_written_is_lost_and_the_next_ones_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut churn = Churn::new(8, 4, 4, 2);
    let records: Vec<_> = (0..9).map(|_| churn.step(2, (1, 1, 1))).collect();
    let mut state = State::take(folder.path(), SMALL).unwrap();
    for record in &records[..3] {
        state.append(record.clone()).unwrap();
    }
    // Another thing lies in its place.
    fs::rename(log_path(folder.path()), folder.path().join("aside")).unwrap();
    fs::create_dir(log_path(folder.path())).unwrap();
    drop(state);
    let mut state = State::take(folder.path(), SMALL).unwrap();
    let said = state.append(records[3].clone()).unwrap_err().to_string();
    assert!(
        said.contains("decisions.jsonl") && said.contains("move it away"),
        "{said}"
    );
    fs::remove_dir(log_path(folder.path())).unwrap();
    fs::rename(folder.path().join("aside"), log_path(folder.path())).unwrap();
    for record in &records[4..] {
        state.append(record.clone()).unwrap();
    }
    drop(state);
    assert_eq!(read(folder.path()), [&records[..3], &records[4..]].concat());
}

#[test]
fn a_start_takes_no_longer_for_a_tail_without_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut churn = Churn::new(9, 4, 4, 2);
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(log_path(folder.path()))
        .unwrap();
    file.write_all(b"{\"round\":9").unwrap();
    // Sparse: nothing of it is on the disk, all of it would be read.
    file.set_len(200 << 30).unwrap();
    let record = churn.step(2, (1, 1, 1));
    let began = std::time::Instant::now();
    let mut state = State::take(folder.path(), LARGE).unwrap();
    state.append(record).unwrap();
    assert!(began.elapsed().as_secs() < 1, "{:?}", began.elapsed());
    drop(file);
    // It is being compressed, which would take minutes; no test reads it.
    for name in names(folder.path()).iter().filter(|name| name.contains('-')) {
        OpenOptions::new()
            .write(true)
            .open(folder.path().join(name))
            .unwrap()
            .set_len(10)
            .unwrap();
    }
}
