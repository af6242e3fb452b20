//! Words: of flags, of settings on a command line, and of cells. Each line of a seed is one.

use std::path::Path;

use pleach_env::Expression;
use pleach_experiments::evaluate::{cluster_flag::cluster_of, day, day::Day, estimate_source, flag_values};
use pleach_experiments::sweep::index_list;
use pleach_experiments::train::{objective, overrides, settings_file};
use pleach_experiments::worlds::requests::RequestsSettings;
use pleach_experiments::{DOOR, TrainSettings, worlds};
use pleach_scheduler::ExternalId;
use pleach_site::slurm;
use pleach_tables::clock::{self, TimeFormat};
use pleach_tables::split;

use super::Reader;

/// A file's lines, each given to a reader of one; what is refused has words.
fn each(path: &Path, read: impl Fn(&str) -> Result<(), String>) -> Result<(), String> {
    let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    for line in text.split('\n') {
        if read(line).is_err_and(|words| words.trim().is_empty()) {
            return Err(String::new());
        }
    }
    Ok(())
}

fn is_well<T, E: ToString>(read: Result<T, E>) -> Result<(), String> {
    read.map(drop).map_err(|error| error.to_string())
}

type ReadNumber = fn(&str) -> Result<f64, String>;

pub const READERS: [Reader; 10] = [
    Reader {
        name: "words-numbers",
        beside: &[],
        sources: &[],
        read: |path| {
            let numbers: [ReadNumber; 6] = [
                flag_values::positive,
                flag_values::not_negative,
                flag_values::load,
                flag_values::step,
                flag_values::share,
                day::days,
            ];
            each(path, |word| {
                let read = numbers.iter().map(|number| is_well(number(word)));
                let read = read.chain([is_well(Day::read(word))]);
                let refused: Vec<String> = read.filter_map(Result::err).collect();
                match refused.iter().any(String::is_empty) {
                    true => Err(String::new()),
                    false => Ok(()),
                }
            })
        },
    },
    Reader {
        name: "words-cells",
        beside: &[],
        sources: &[],
        read: |path| {
            each(path, |word| {
                let _ = slurm::devices(word);
                let _ = slurm::tres_of(word, "gres/gpu");
                let _ = slurm::gpus_of_tres(word);
                let _ = slurm::job_id(word);
                let _ = (slurm::span_s(word), slurm::limit_s(word), slurm::sums(word));
                let _ = clock::words_s(word);
                let _ = clock::guess(&[word]);
                if let (Some(format), Some(zone)) = (TimeFormat::of(word), clock::zone("Europe/Berlin")) {
                    let _ = format.read(word, &zone);
                }
                let _ = clock::zone(word);
                let _ = split(word, '|', &mut Vec::new());
                is_well(word.parse::<ExternalId>())
            })
        },
    },
    Reader {
        name: "words-hosts",
        beside: &[],
        sources: &[],
        read: |path| {
            each(path, |word| {
                let num = slurm::num_nodes(word);
                let names = slurm::expand(word);
                if let Ok(names) = &names {
                    assert_eq!(num.ok(), Some(names.len()), "{word}");
                    let _ = slurm::fold(names.iter().map(String::as_str));
                }
                is_well(names)
            })
        },
    },
    Reader {
        name: "words-rewards",
        beside: &[],
        sources: &[],
        read: |path| {
            each(path, |word| {
                is_well(Expression::parse(word))?;
                Ok(())
            })
        },
    },
    Reader {
        name: "words-clusters",
        beside: &[],
        sources: &[],
        read: |path| each(path, |word| is_well(cluster_of(Path::new(word)))),
    },
    Reader {
        name: "words-estimates",
        beside: &[],
        sources: &["experiments/src/evaluate/estimate_source.rs"],
        read: |path| {
            each(path, |word| {
                is_well(word.parse::<estimate_source::EstimateSource>())
            })
        },
    },
    Reader {
        name: "words-settings",
        beside: &[],
        sources: &["experiments/src/train/overrides.rs"],
        read: |path| {
            let settings: TrainSettings = settings_file::built_in().unwrap();
            each(path, |word| {
                is_well(objective::parse(&[word.to_owned()]))?;
                is_well(overrides::apply(&settings, &[word.to_owned()]))
            })
        },
    },
    Reader {
        name: "words-policies",
        beside: &[],
        sources: &["scheduler/policies/src/rivals.rs"],
        read: |path| {
            each(path, |word| {
                is_well(DOOR.open(word)).and(is_well(pleach_serving::llm::by_name(word, 0)))
            })
        },
    },
    Reader {
        name: "words-worlds",
        beside: &[],
        sources: &["experiments/src/worlds/settings.rs"],
        read: |path| {
            each(path, |word| {
                let settings = worlds::of_pairs(&[word.to_string()]);
                is_well(settings.and_then(|settings| worlds::read::<RequestsSettings>(&settings)))
            })
        },
    },
    Reader {
        name: "words-units",
        beside: &[],
        sources: &[],
        read: |path| each(path, |word| is_well(index_list::expand(word, 1000))),
    },
];
