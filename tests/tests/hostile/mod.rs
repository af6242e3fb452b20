//! Inputs that were not meant: every reader of a file or a text ([`READERS`]) gets its seeds of `tests/hostile` as they are, and
//! spoilt in ways that a seed and a number name ([`mutate`]). No reader may panic, hang or take memory without bound, and where
//! it refuses it says something.
//!
//! A bounded number of each in a check; `PLEACH_HOSTILE_INPUTS=5000` spoils each seed so often, `PLEACH_HOSTILE_SEED=7` in other ways.
//! An input that was found goes into the reader's folder as `found-WHAT`, and is read ever after.

mod experiments;
mod jobs;
mod kubernetes;
mod mutate;
mod policies;
mod slurm;
mod sources;
mod words;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A reader of the product.
pub struct Reader {
    /// Its folder in `tests/hostile`: every file there is a seed, and read under the reader's name with the seed's endings.
    name: &'static str,
    /// Files beside it, which stay as they are: their names, and where they lie in `tests/hostile`.
    beside: &'static [(&'static str, &'static str)],
    /// Files of the product whose reads these are ([`sources`]).
    sources: &'static [&'static str],
    /// Reads a file; the words of a refusal.
    read: fn(&Path) -> Result<(), String>,
}

/// All readers; one that is missing is found by [`sources`].
const READERS: [&[Reader]; 6] = [
    &jobs::READERS,
    &policies::READERS,
    &experiments::READERS,
    &slurm::READERS,
    &kubernetes::READERS,
    &words::READERS,
];

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/hostile");
/// The input that is being read, so that one that ends the whole program (a stack that is full) is there to look at.
const CURRENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/hostile");

/// Spoilt inputs of each seed in a check.
const NUM_SPOILT: u64 = 300;
/// The longest that one input may take, on a machine that does other things too.
const TIME_MAX: Duration = Duration::from_secs(10);
/// The most memory that one input may take at once, bytes.
const BYTES_MAX: u64 = 400 << 20;

fn setting(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().expect("a whole number"))
}

/// What is read now: its name, and since when.
static READING: Mutex<BTreeMap<String, Instant>> = Mutex::new(BTreeMap::new());

/// Ends the program where an input takes too long: a test cannot stop a thread.
fn watch_over() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        std::thread::spawn(|| {
            loop {
                std::thread::sleep(Duration::from_millis(200));
                let reading = READING.lock().unwrap();
                let late = reading.iter().find(|(_, since)| since.elapsed() > 3 * TIME_MAX);
                if let Some((name, _)) = late {
                    eprintln!("{name} hangs; the input lies in {CURRENT}");
                    std::process::abort();
                }
            }
        });
    });
}

/// What is wrong with how an input is read, if anything.
fn fault(reader: &Reader, file: &Path, bytes: &[u8], number: &str) -> Option<String> {
    std::fs::write(file, bytes).unwrap();
    let current = Path::new(CURRENT).join(reader.name);
    std::fs::write(current, bytes).unwrap();
    let name = format!("{} {number}", reader.name);
    READING.lock().unwrap().insert(name.clone(), Instant::now());
    let mut read = None;
    let began = Instant::now();
    let measured = allocation_counter::measure(|| {
        read = Some(catch_unwind(AssertUnwindSafe(|| (reader.read)(file))));
    });
    READING.lock().unwrap().remove(&name);
    let took = began.elapsed();
    let words = match read? {
        Err(panic) => {
            let words = panic.downcast_ref::<String>().cloned();
            let words = words.or_else(|| panic.downcast_ref::<&str>().map(|words| (*words).to_owned()));
            format!("panics: {}", words.unwrap_or_default())
        }
        Ok(Err(words)) if words.trim().is_empty() => "refuses without a word".to_owned(),
        Ok(_) if took > TIME_MAX => format!("takes {took:?}"),
        Ok(_) if measured.bytes_max > BYTES_MAX => format!("takes {} MiB", measured.bytes_max >> 20),
        Ok(_) => return None,
    };
    Some(format!("{name}: {words}"))
}

fn seeds(reader: &Reader) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(Path::new(CORPUS).join(reader.name));
    let entries = entries.unwrap_or_else(|error| panic!("{} has no seeds: {error}", reader.name));
    let mut seeds: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    seeds.sort();
    assert!(!seeds.is_empty(), "{} has no seeds", reader.name);
    seeds
}

/// Everything after the first dot of a name, with it.
fn endings(path: &Path) -> String {
    let name = path.file_name().unwrap().to_str().unwrap();
    name.find('.').map_or(String::new(), |dot| name[dot..].to_owned())
}

/// Reads all seeds of readers, as they are and spoilt; faults come once for each kind.
fn read_all(readers: &[Reader]) {
    watch_over();
    std::fs::create_dir_all(CURRENT).unwrap();
    let (num, first) = (
        setting("PLEACH_HOSTILE_INPUTS", NUM_SPOILT),
        setting("PLEACH_HOSTILE_SEED", 0) << 32,
    );
    let mut faults = BTreeMap::new();
    for reader in readers {
        let began = Instant::now();
        for seed in seeds(reader) {
            let whole = std::fs::read(&seed).unwrap();
            let name = seed.file_name().unwrap().to_str().unwrap();
            let folder = tempfile::tempdir().unwrap();
            for (beside, from) in reader.beside {
                std::fs::copy(Path::new(CORPUS).join(from), folder.path().join(beside)).unwrap();
            }
            let file = folder.path().join(format!("{}{}", reader.name, endings(&seed)));
            let mut read = |bytes: &[u8], number: &str| {
                let Some(fault) = fault(reader, &file, bytes, number) else {
                    return;
                };
                // Of one kind: what it says without numbers.
                let kind: String = fault.split(": ").skip(1).flat_map(str::chars).collect();
                let kind: String = kind
                    .chars()
                    .filter(|letter| !letter.is_ascii_digit())
                    .take(80)
                    .collect();
                let kept = Path::new(CURRENT).join(format!("fault-{}", faults.len()));
                faults.entry((reader.name, kind)).or_insert_with(|| {
                    std::fs::write(&kept, bytes).unwrap();
                    format!("{fault}\n    {}", kept.display())
                });
            };
            read(&whole, name);
            for number in first..first + num {
                let stream = format!("{} {name}", reader.name);
                read(
                    &mutate::spoilt(&whole, &stream, number),
                    &format!("{name} {number}"),
                );
            }
        }
        eprintln!("{}: {:.1} s", reader.name, began.elapsed().as_secs_f64());
    }
    let found: Vec<&String> = faults.values().collect();
    let found: String = found.iter().map(|fault| format!("{fault}\n")).collect();
    assert!(faults.is_empty(), "{} kinds of faults:\n{found}", faults.len());
}

#[test]
fn a_reader_that_panics_or_says_nothing_or_takes_memory_is_at_fault() {
    std::fs::create_dir_all(CURRENT).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let said = |read: fn(&Path) -> Result<(), String>| {
        let reader = Reader {
            name: "faulty",
            beside: &[],
            sources: &[],
            read,
        };
        fault(&reader, &folder.path().join("input"), b"x", "7").unwrap_or_default()
    };
    assert_eq!(said(|_| Ok(())), "");
    assert_eq!(said(|_| Err("no such list".into())), "");
    assert_eq!(
        said(|path| panic!("at {}", path.exists())),
        "faulty 7: panics: at true"
    );
    assert_eq!(said(|_| Err(" ".into())), "faulty 7: refuses without a word");
    let taken = said(|_| {
        drop(vec![0_u8; 500 << 20]);
        Ok(())
    });
    assert_eq!(taken, "faulty 7: takes 500 MiB");
}

/// A seed that is refused reaches little of its reader; those of `found-WHAT` may be.
#[test]
fn every_reader_reads_its_seeds() {
    let mut refused = Vec::new();
    for reader in READERS.into_iter().flatten() {
        for seed in seeds(reader) {
            let folder = tempfile::tempdir().unwrap();
            for (beside, from) in reader.beside {
                std::fs::copy(Path::new(CORPUS).join(from), folder.path().join(beside)).unwrap();
            }
            let file = folder.path().join(format!("{}{}", reader.name, endings(&seed)));
            std::fs::copy(&seed, &file).unwrap();
            let is_found = seed.file_name().unwrap().to_string_lossy().starts_with("found-");
            match (reader.read)(&file) {
                Err(words) if !is_found => refused.push(format!("{}: {words}", seed.display())),
                _ => {}
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn lists_of_jobs_and_clusters_are_read_or_refused() {
    read_all(&jobs::READERS);
}

#[test]
fn policies_and_networks_are_read_or_refused() {
    read_all(&policies::READERS);
}

#[test]
fn settings_and_results_are_read_or_refused() {
    read_all(&experiments::READERS);
}

#[test]
fn what_slurm_prints_and_the_daemon_keeps_is_read_or_refused() {
    read_all(&slurm::READERS);
}

#[test]
fn what_kubernetes_sends_is_read_or_refused() {
    read_all(&kubernetes::READERS);
}

#[test]
fn words_of_flags_and_cells_are_read_or_refused() {
    read_all(&words::READERS);
}
