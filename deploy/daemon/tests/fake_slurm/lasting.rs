//! A log in several files, compressed or not, as the program reads it.

use std::fs;
use std::time::Duration;

use super::fake::{Fake, QUEUE, out};

/// Two files of two daemons, the older one compressed, and what the newer one has as text.
fn with_two_files() -> Fake {
    let fake = Fake::new(&QUEUE);
    fake.played("sjf", 1);
    fake.end(3);
    fake.come(5, 4, "3:00", "");
    fake.played("sjf", 1);
    let log = fake.at("state/decisions.jsonl");
    let packed = zstd::stream::encode_all(fs::read(&log).unwrap().as_slice(), 3).unwrap();
    fs::write(fake.at("state/decisions-1795000100.jsonl.zst"), packed).unwrap();
    fs::remove_file(&log).unwrap();
    // A job that ends within the second in which it started did not run.
    std::thread::sleep(Duration::from_millis(1100));
    fake.come(6, 4, "2:00", "");
    fake.end(2);
    fake.end(4);
    fake.played("sjf", 1);
    assert_eq!(fake.order(), [4, 2, 3, 5, 6]);
    fake
}

#[test]
fn a_log_in_compressed_files_is_decided_alike_explained_and_captured_by_folder_or_by_file() {
    let fake = with_two_files();
    let place = |name: &str| fake.at(name).display().to_string();
    let state = place("state");
    let files = [
        place("state/decisions-1795000100.jsonl.zst"),
        place("state/decisions.jsonl"),
    ];
    let replayed = out(&fake.scheduler(&["replay", &state, "--policy", "sjf"]));
    assert!(replayed.contains("3 of 3 rounds are decided alike"), "{replayed}");
    let by_file = out(&fake.scheduler(&["replay", &files[0], &files[1], "--policy", "sjf"]));
    assert_eq!(by_file, replayed);
    let one = out(&fake.scheduler(&["replay", &files[0], "--policy", "sjf"]));
    assert!(one.contains("2 of 2 rounds are decided alike"), "{one}");
    let other = out(&fake.scheduler(&["replay", &state, "--policy", "fifo"]));
    assert!(other.contains("is decided otherwise"), "{other}");
    for job in ["4", "5", "6"] {
        let told = out(&fake.scheduler(&["explain", job]));
        assert!(
            told.contains(&format!("job {job} is number 1 of")) && told.contains("by sjf"),
            "{told}"
        );
    }
    let list = |name: &str, places: &[&str]| {
        let to = place(name);
        let told = fake.scheduler(&[&["capture"], places, &["--to", &to]].concat());
        assert!(told.status.success(), "{told:?}");
        fake.read(name)
    };
    let captured = list("folder.csv", &[&state]);
    assert_eq!(captured, list("files.csv", &[&files[0], &files[1]]));
    assert!(captured.lines().count() > 1, "{captured}");
}
