//! The event files, read back record by record by a reader that knows nothing of the writer.
//!
//! # Source
//! TensorFlow's `record_writer.h`, `event.proto`, `summary.proto`, `histogram.proto`; TensorBoard's
//! `plugins/hparams/plugin_data.proto`. That the real TensorBoard reads them is checked by `docs/check_tensorboard.py`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::tiny_run::{self, SETTINGS};

/// CRC-32C by table, rotated and offset as the format wants it.
fn masked_crc(data: &[u8]) -> u32 {
    let table: Vec<u32> = (0..256)
        .map(|byte| (0..8).fold(byte, |crc, _| (crc >> 1) ^ ((crc & 1) * 0x82f6_3b78)))
        .collect();
    let next = |crc: u32, byte: &u8| table[usize::from(crc as u8 ^ byte)] ^ (crc >> 8);
    let crc = !data.iter().fold(!0, next);
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// The records of a file; every checksum must agree, and the file must end with a record.
fn records(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut records = Vec::new();
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
    while !bytes.is_empty() {
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        assert_eq!(
            word(&bytes[8..12]),
            masked_crc(&bytes[..8]),
            "length of record {}",
            records.len()
        );
        let data = &bytes[12..12 + length];
        assert_eq!(
            word(&bytes[12 + length..16 + length]),
            masked_crc(data),
            "record {}",
            records.len()
        );
        records.push(data);
        bytes = &bytes[16 + length..];
    }
    records
}

/// A field of a message: its bytes, or its number as bits.
#[derive(Clone, Copy)]
enum Field<'a> {
    Bits(u64),
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    fn bytes(self) -> &'a [u8] {
        match self {
            Field::Bytes(bytes) => bytes,
            Field::Bits(bits) => panic!("a number, {bits}"),
        }
    }

    fn bits(self) -> u64 {
        match self {
            Field::Bits(bits) => bits,
            Field::Bytes(_) => panic!("no number"),
        }
    }

    fn double(self) -> f64 {
        f64::from_bits(self.bits())
    }

    fn text(self) -> String {
        String::from_utf8(self.bytes().to_vec()).unwrap()
    }
}

/// A message's fields by number, in their order.
struct Message<'a>(Vec<(u64, Field<'a>)>);

impl<'a> Message<'a> {
    fn new(mut bytes: &'a [u8]) -> Message<'a> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let field = match key & 7 {
                0 => Field::Bits(varint(&mut bytes)),
                1 => Field::Bits(u64::from_le_bytes(take(&mut bytes, 8).try_into().unwrap())),
                5 => Field::Bits(u32::from_le_bytes(take(&mut bytes, 4).try_into().unwrap()).into()),
                2 => {
                    let length = varint(&mut bytes) as usize;
                    Field::Bytes(take(&mut bytes, length))
                }
                kind => panic!("wire type {kind}"),
            };
            fields.push((key >> 3, field));
        }
        Message(fields)
    }

    fn all(&self, number: u64) -> impl Iterator<Item = Field<'a>> + '_ {
        self.0
            .iter()
            .filter(move |field| field.0 == number)
            .map(|field| field.1)
    }

    fn get(&self, number: u64) -> Option<Field<'a>> {
        self.all(number).last()
    }

    fn message(&self, number: u64) -> Option<Message<'a>> {
        self.get(number).map(|field| Message::new(field.bytes()))
    }

    fn doubles(&self, number: u64) -> Vec<f64> {
        let bytes = self.get(number).unwrap().bytes();
        bytes
            .chunks_exact(8)
            .map(|b| f64::from_le_bytes(b.try_into().unwrap()))
            .collect()
    }
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (head, tail) = bytes.split_at(length);
    *bytes = tail;
    head
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

/// What an event file says, by (step, tag).
#[derive(Default)]
struct Said {
    scalars: BTreeMap<(u64, String), f32>,
    histograms: BTreeMap<(u64, String), Value>,
    hyperparameters: BTreeMap<String, Value>,
    texts: BTreeMap<String, String>,
    session_starts: Vec<u64>,
    ended_well: bool,
}

fn read(path: &Path) -> Said {
    let bytes = fs::read(path).unwrap();
    let mut said = Said::default();
    for (index, record) in records(&bytes).into_iter().enumerate() {
        let event = Message::new(record);
        assert!(event.get(1).unwrap().double() > 1.6e9, "wall time");
        assert_eq!(
            index == 0,
            event.get(3).is_some(),
            "the version is in the first record"
        );
        if let Some(version) = event.get(3) {
            assert_eq!(version.text(), "brain.Event:2");
        }
        let step = event.get(2).map_or(0, Field::bits);
        if let Some(session) = event.message(7) {
            assert_eq!(session.get(1).unwrap().bits(), 1, "SessionLog.START");
            said.session_starts.push(step);
        }
        for value in event.message(5).iter().flat_map(|summary| summary.all(1)) {
            said.note(step, &Message::new(value.bytes()));
        }
    }
    said
}

impl Said {
    fn note(&mut self, step: u64, value: &Message<'_>) {
        let tag = value.get(1).unwrap().text();
        if let Some(scalar) = value.get(2) {
            let number = f32::from_bits(scalar.bits() as u32);
            assert_eq!(self.scalars.insert((step, tag), number), None, "written twice");
        } else if let Some(histogram) = value.message(5) {
            let histogram = histogram_json(&histogram);
            assert_eq!(
                self.histograms.insert((step, tag), histogram),
                None,
                "written twice"
            );
        } else {
            // Metadata, its plugin, the plugin's name and content.
            let plugin = value.message(9).unwrap().message(1).unwrap();
            // What is empty or zero is left out of a message.
            let content = plugin.message(2).unwrap_or(Message(Vec::new()));
            match plugin.get(1).unwrap().text().as_str() {
                "text" => {
                    let text = value.message(8).unwrap().get(8).unwrap().text();
                    self.texts.insert(tag, text);
                }
                "hparams" if tag == "_hparams_/session_start_info" => {
                    self.hyperparameters = hyperparameters(&content.message(3).unwrap());
                }
                "hparams" if tag == "_hparams_/session_end_info" => {
                    self.ended_well = content.message(4).unwrap().get(1).unwrap().bits() == 1;
                }
                other => panic!("{other} {tag}"),
            }
        }
    }
}

/// A `HistogramProto` as `histograms.jsonl` has it.
fn histogram_json(histogram: &Message<'_>) -> Value {
    let number = |field| histogram.get(field).map_or(0.0, Field::double);
    let (limits, counts) = (histogram.doubles(6), histogram.doubles(7));
    assert!(limits.len() == counts.len() && limits.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(limits.last(), Some(&number(2)));
    assert_eq!(counts.iter().sum::<f64>(), number(3));
    let counts: Vec<u64> = counts.into_iter().map(|count| count as u64).collect();
    serde_json::json!({
        "min": number(1), "max": number(2), "num": number(3) as u64, "sum": number(4),
        "sum_squares": number(5), "counts": counts,
    })
}

/// The map of a `SessionStartInfo`; each value is a number, a text or a truth.
fn hyperparameters(info: &Message<'_>) -> BTreeMap<String, Value> {
    let entry = |entry: Field<'_>| {
        let entry = Message::new(entry.bytes());
        let (key, value) = (entry.get(1).unwrap().text(), entry.message(2).unwrap());
        let value = match value.0[0] {
            (2, number) => number.double().into(),
            (3, text) => text.text().into(),
            (4, truth) => (truth.bits() == 1).into(),
            (field, _) => panic!("{key}: field {field}"),
        };
        (key, value)
    };
    info.all(1).map(entry).collect()
}

/// Lines of a JSONL file without their step, by (step, tag).
fn lines(path: &Path) -> BTreeMap<(u64, String), Value> {
    let text = fs::read_to_string(path).unwrap();
    let mut values = BTreeMap::new();
    for line in text.lines() {
        let line: BTreeMap<String, Value> = serde_json::from_str(line).unwrap();
        let step = line["step"].as_u64().unwrap();
        let tags = line.into_iter().filter(|(tag, _)| tag != "step");
        values.extend(tags.map(|(tag, value)| ((step, tag), value)));
    }
    values
}

fn event_files(run: &Path) -> Vec<std::path::PathBuf> {
    tiny_run::files(&run.join("tensorboard"))
}

#[test]
fn event_files_say_what_the_json_lines_say_record_by_record() {
    // "123456789" is the usual check string of CRC-32C; unmasked it gives e3069283.
    assert_eq!(
        masked_crc(b"123456789"),
        0xe306_9283_u32.rotate_right(15).wrapping_add(0xa282_ead8)
    );
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    tiny_run::succeed(&mut tiny_run::train(folder.path(), "run", SETTINGS));
    let files = event_files(&run);
    assert_eq!(files.len(), 1);
    let said = read(&files[0]);

    let (settings, mut scalars): (BTreeMap<_, _>, BTreeMap<_, _>) = lines(&run.join("metrics.jsonl"))
        .into_iter()
        .partition(|((_, tag), _)| tag.starts_with("hparams/"));
    scalars.extend(lines(&run.join("timing.jsonl")));
    let scalars: BTreeMap<_, _> = scalars
        .into_iter()
        .map(|(key, value)| (key, value.as_f64().unwrap() as f32))
        .collect();
    assert_eq!(said.scalars, scalars);
    assert_eq!(said.histograms, lines(&run.join("histograms.jsonl")));

    let last = 20 * 4 * 64;
    for tag in [
        "charts/episodic_return",
        "charts/episodic_length",
        "charts/learning_rate",
        "charts/SPS",
        "losses/policy_loss",
        "losses/value_loss",
        "losses/entropy",
        "losses/approx_kl",
        "losses/clipfrac",
        "losses/explained_variance",
        "train/avg_jct_s",
        "eval/ratio_to_best_heuristic",
        "eval/avg_jct_s",
        "eval/p99_jct_s",
    ] {
        assert!(said.scalars.contains_key(&(last, tag.to_owned())), "{tag}");
    }
    for tag in [
        "parameters/encoder",
        "parameters/value",
        "rollout/advantage",
        "rollout/logit",
    ] {
        assert!(said.histograms.contains_key(&(last, tag.to_owned())), "{tag}");
    }

    assert_eq!(settings.len(), said.hyperparameters.len());
    for ((step, tag), value) in &settings {
        let key = tag.strip_prefix("hparams/").unwrap();
        let expected = match value {
            Value::Number(number) => number.as_f64().unwrap().into(),
            Value::Bool(_) | Value::String(_) => value.clone(),
            other => other.to_string().into(),
        };
        assert_eq!((*step, &said.hyperparameters[key]), (0, &expected), "{key}");
    }
    for (key, value) in [("seed", 0.0), ("train.num_steps", 64.0), ("train.ppo.clip", 0.2)] {
        assert_eq!(said.hyperparameters[key], value, "{key}");
    }
    let table = &said.texts["hyperparameters"];
    assert!(table.contains("\n| train.num_steps | 64 |\n"), "{table}");
    assert!(said.ended_well && said.session_starts.is_empty());
}

#[test]
fn a_run_that_goes_on_begins_a_new_file_that_takes_back_what_will_be_done_again() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    tiny_run::succeed(&mut tiny_run::train(folder.path(), "run", SETTINGS));
    // As if killed after its 19th update.
    fs::remove_file(run.join("checkpoints/update-00000020.ckpt")).unwrap();
    tiny_run::succeed(&mut tiny_run::train(folder.path(), "run", SETTINGS));
    let files = event_files(&run);
    let [first, second] = [0, 1].map(|index| read(&files[index]));
    assert_eq!(second.session_starts, [19 * 4 * 64 + 1]);
    assert!(second.scalars.keys().all(|(step, _)| *step == 20 * 4 * 64));
    for (key, value) in second.scalars.iter().filter(|((_, tag), _)| tag != "charts/SPS") {
        assert_eq!(first.scalars[key], *value, "{key:?}");
    }
    assert_eq!(first.hyperparameters, second.hyperparameters);
}
