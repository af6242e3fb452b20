//! Every reader of `tests/tests/hostile` under libFuzzer, which goes where new code is reached. `tests/fuzz/run.sh` builds and runs it.
//!
//! `PLEACH_FUZZ=lists.csv` chooses the reader by its name, and the ending of the file that it is given.

#![no_main]
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

#[path = "../tests/hostile/experiments.rs"]
mod experiments;
#[path = "../tests/hostile/jobs.rs"]
mod jobs;
#[path = "../tests/hostile/kubernetes.rs"]
mod kubernetes;
#[path = "../tests/hostile/policies.rs"]
mod policies;
#[path = "../tests/hostile/slurm.rs"]
mod slurm;
#[path = "../tests/hostile/words.rs"]
mod words;

/// A reader, as `tests/tests/hostile` has it.
pub struct Reader {
    name: &'static str,
    beside: &'static [(&'static str, &'static str)],
    #[allow(dead_code, reason = "of the tests")]
    sources: &'static [&'static str],
    read: fn(&Path) -> Result<(), String>,
}

const READERS: [&[Reader]; 6] = [
    &jobs::READERS,
    &policies::READERS,
    &experiments::READERS,
    &slurm::READERS,
    &kubernetes::READERS,
    &words::READERS,
];
const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../hostile");

/// The reader that is tried, and the file that it is given, in a folder with what lies beside it.
static TARGET: OnceLock<(&Reader, PathBuf)> = OnceLock::new();

fn target() -> (&'static Reader, PathBuf) {
    let wanted = std::env::var("PLEACH_FUZZ").expect("PLEACH_FUZZ=READER.ENDING");
    let name = wanted.split('.').next().unwrap();
    let mut all = READERS.into_iter().flatten();
    let reader = all
        .find(|reader| reader.name == name)
        .expect("the name of a reader");
    // Not removed: libFuzzer ends the process.
    let folder = tempfile::tempdir().unwrap().keep();
    for (beside, from) in reader.beside {
        std::fs::copy(Path::new(CORPUS).join(from), folder.join(beside)).unwrap();
    }
    (reader, folder.join(wanted))
}

fuzz_target!(|bytes: &[u8]| {
    let (reader, file) = TARGET.get_or_init(target);
    std::fs::write(file, bytes).unwrap();
    let refused = (reader.read)(file).err();
    assert!(
        refused.is_none_or(|words| !words.trim().is_empty()),
        "refused without a word"
    );
});
