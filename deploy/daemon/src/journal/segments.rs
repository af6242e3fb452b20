//! The files of a log: the running one is plain text, those that are full are compressed, and the oldest leave.
//!
//! `decisions.jsonl` is written to. When it is full it becomes `decisions-UNIXTIME.jsonl`, and then `decisions-UNIXTIME.jsonl.zst`
//! under a name of its own that is renamed into place once it is on the disk. So wherever a program is killed, each round is in a
//! file that is read; where a segment is there in both forms, the compressed one is whole. UNIXTIME is when it was put aside, or
//! a second more than that of the one before, so names are in the order of the rounds.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use zstd::stream::read::Decoder;
use zstd::stream::write::Encoder;

use crate::config::LogSettings;

/// Compression level. *Ours*: measured on a synthetic week (`deploy/daemon/tests/decision_log/week.rs`):
/// lab/notes/slurm-measured.md.
const LEVEL: i32 = 9;
/// Logarithm of the bytes that the compressor looks back, and the most that a reader allows a file to ask for: 8 MiB.
const WINDOW_LOG: u32 = 23;
/// Most names of a folder that are looked at.
const NAMES_MAX: usize = 1_000_000;
/// A day, s.
const DAY_S: i64 = 86_400;

/// The running log of a folder.
#[must_use]
pub fn log_path(folder: &Path) -> PathBuf {
    folder.join("decisions.jsonl")
}

/// A part of a log that is written to no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) path: PathBuf,
    /// All its rounds are of before this Unix time, s, where clocks did not jump.
    pub(crate) until_s: i64,
}

/// When a segment was put aside, by its name, and whether it is compressed.
fn named(name: &str) -> Option<(i64, bool)> {
    let rest = name.strip_prefix("decisions-")?;
    let (digits, is_packed) = match rest.strip_suffix(".jsonl.zst") {
        Some(digits) => (digits, true),
        None => (rest.strip_suffix(".jsonl")?, false),
    };
    let is_number = digits.len() <= 15 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let until_s = digits.parse().ok().filter(|_| is_number)?;
    Some((until_s, is_packed))
}

fn plain_path(folder: &Path, until_s: i64) -> PathBuf {
    folder.join(format!("decisions-{until_s}.jsonl"))
}

/// The segments of a folder, in the order in which they were written. One that is there in both forms is there once.
pub(crate) fn segments(folder: &Path) -> io::Result<Vec<Segment>> {
    let mut found: BTreeMap<i64, (bool, PathBuf)> = BTreeMap::new();
    for entry in fs::read_dir(folder)?.take(NAMES_MAX) {
        let entry = entry?;
        let Some((until_s, is_packed)) = entry.file_name().to_str().and_then(named) else {
            continue;
        };
        let known = found.entry(until_s).or_insert((false, entry.path()));
        if is_packed {
            *known = (true, entry.path());
        }
    }
    let segment = |(until_s, (_, path))| Segment { path, until_s };
    Ok(found.into_iter().map(segment).collect())
}

/// The whole log of a folder, in the order in which it was written: what an earlier version put aside, the segments, the running
/// file.
pub(crate) fn files(folder: &Path) -> io::Result<Vec<Segment>> {
    let old = log_path(folder).with_extension("jsonl.1");
    let whole = |path: PathBuf| Segment {
        path,
        until_s: i64::MAX,
    };
    let mut found = Vec::new();
    found.extend(old.exists().then(|| whole(old)));
    found.extend(segments(folder)?);
    let running = log_path(folder);
    found.extend(running.exists().then(|| whole(running)));
    Ok(found)
}

/// Opens a file of a log, compressed or not. One that was compressed since its name was read is opened in that form.
pub(crate) fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let packed = path.with_added_extension("zst");
            return if packed.exists() {
                open(&packed)
            } else {
                Err(error)
            };
        }
        file => file?,
    };
    if path.extension().is_none_or(|extension| extension != "zst") {
        return Ok(Box::new(BufReader::new(file)));
    }
    let mut decoder = Decoder::new(file)?;
    decoder.window_log_max(WINDOW_LOG)?;
    Ok(Box::new(BufReader::with_capacity(1 << 20, decoder)))
}

/// Puts a file of a log aside at Unix time `now_s`, behind all others.
pub(crate) fn put_aside(folder: &Path, path: &Path, now_s: i64) -> io::Result<()> {
    let last = segments(folder)?.last().map(|segment| segment.until_s);
    let until_s = last
        .map_or(now_s, |last| now_s.max(last.saturating_add(1)))
        .max(0);
    fs::rename(path, plain_path(folder, until_s))
}

/// Compresses what was put aside and removes what is too old or too much. What goes wrong costs that file's compression, or lets
/// it stay, until this is called again.
pub(crate) fn tidy(folder: &Path, settings: LogSettings, now_s: i64) -> io::Result<()> {
    let mut first = Ok(());
    for segment in segments(folder)? {
        let packed = pack(folder, segment.until_s);
        first = first.and(packed);
    }
    first.and(prune(folder, settings, now_s))
}

/// Compresses a segment, if it is not yet.
fn pack(folder: &Path, until_s: i64) -> io::Result<()> {
    let plain = plain_path(folder, until_s);
    if !plain.is_file() {
        return Ok(());
    }
    let packed = plain.with_added_extension("zst");
    if !packed.is_file() {
        let part = packed.with_added_extension("part");
        let written = write_packed(&plain, &part).and_then(|()| fs::rename(&part, &packed));
        if let Err(error) = written {
            // A full disk has room again without it.
            let _ = fs::remove_file(&part);
            let words = format!("{} stays uncompressed: {error}", plain.display());
            return Err(io::Error::new(error.kind(), words));
        }
        // Makes the rename durable where folders can be synced, before the other form leaves.
        if let Ok(folder) = File::open(folder) {
            let _ = folder.sync_all();
        }
    }
    fs::remove_file(plain)
}

fn write_packed(plain: &Path, part: &Path) -> io::Result<()> {
    let mut from = File::open(plain)?;
    let mut encoder = Encoder::new(File::create(part)?, LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.window_log(WINDOW_LOG)?;
    io::copy(&mut from, &mut encoder)?;
    encoder.finish()?.sync_data()
}

/// Removes segments that are too old, and the oldest ones while all are too much. The running file stays.
fn prune(folder: &Path, settings: LogSettings, now_s: i64) -> io::Result<()> {
    let bytes = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
    let found = segments(folder)?;
    let mut total = bytes(&log_path(folder));
    total += found.iter().map(|segment| bytes(&segment.path)).sum::<u64>();
    let oldest_s = now_s.saturating_sub(i64::from(settings.days) * DAY_S);
    for segment in found {
        if segment.until_s >= oldest_s && total <= settings.bytes_max {
            break;
        }
        total -= bytes(&segment.path);
        fs::remove_file(&segment.path)?;
    }
    Ok(())
}
