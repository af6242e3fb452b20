//! A description of a cluster in TOML or JSON. All its mistakes are reported at once.

use pleach_scheduler::cluster_spec::{ClusterSpec, GpuTypeSpec, NodeGroup, TenantSpec};
use pleach_scheduler::physics::interference::PairEntry;
use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::assume;
use crate::Error;
use crate::table::shorten;

/// Most mistakes that are reported; a file with more has another form altogether.
const FAULTS_MAX: usize = 40;
/// Entries of a list that are looked at. More make no cluster.
const ENTRIES_MAX: usize = 100_000;

/// The table of a JSON text.
///
/// # Errors
/// What is wrong with it, in words.
pub fn json_table(text: &str) -> Result<Table, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// A cluster from the text of a TOML file: the description itself, or under the key `cluster` as in `NAME.cluster.toml`. Holes
/// are filled in and reported ([`assume`]).
///
/// # Errors
/// `file` with all that is wrong in it.
pub fn read(file: &str, text: &str) -> Result<(ClusterSpec, Option<String>), Error> {
    let table: Table = toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        Error::at_byte(file, text, start, error.message())
    })?;
    read_table(file, &table)
}

/// As [`read`], from a table that is parsed.
///
/// # Errors
/// As [`read`].
pub fn read_table(file: &str, table: &Table) -> Result<(ClusterSpec, Option<String>), Error> {
    whole(table).map_err(|faults| told(file, &faults))
}

/// All that is wrong in the description under the key `cluster` of a file, where it is more than one thing; the text of the file has
/// the line of a single one.
///
/// # Errors
/// As [`read`].
pub(crate) fn check_several(file: &str, text: &str) -> Result<(), Error> {
    let table = toml::from_str::<Table>(text)
        .ok()
        .filter(|table| table.contains_key("cluster"));
    match table.as_ref().map(whole) {
        Some(Err(faults)) if faults.len() > 1 => Err(told(file, &faults)),
        _ => Ok(()),
    }
}

/// The cluster of a table, or all that is wrong in it.
fn whole(table: &Table) -> Result<(ClusterSpec, Option<String>), Vec<String>> {
    let (prefix, table) = match table.get("cluster") {
        Some(Value::Table(inner)) => ("cluster.", inner),
        _ => ("", table),
    };
    let mut faults = Vec::new();
    let mut rest = table.clone();
    let mut lists = Lists {
        prefix,
        rest: &mut rest,
        faults: &mut faults,
    };
    let gpu_types = lists.take("gpu_types", &sample_type());
    let node_groups = lists.take("node_groups", &sample_group());
    let tenants = lists.take("tenants", &sample_tenant());
    let pairs = lists.take::<PairEntry>("pairs", &Table::new());
    rest.insert("node_groups".into(), Value::Array(Vec::new()));
    let whole = piece::<ClusterSpec>(prefix.trim_end_matches('.'), rest, &Table::new(), &mut faults);
    let Some(whole) = whole.filter(|_| faults.is_empty()) else {
        return Err(faults);
    };
    let mut cluster = ClusterSpec {
        gpu_types,
        node_groups,
        tenants,
        pairs,
        ..whole
    };
    if cluster.node_groups.is_empty() {
        faults.push(format!(
            "{prefix}node_groups: missing; give at least count, gpus_per_node and gpu_type of a group of equal nodes"
        ));
        return Err(faults);
    }
    let assumed = assume(&mut cluster);
    let wrong = cluster.faults();
    if wrong.is_empty() {
        return Ok((cluster, assumed));
    }
    let words = |error: pleach_scheduler::Problem| {
        format!(
            "{prefix}{} = {}: allowed is {}; {}",
            error.key, error.value, error.allowed, error.hint
        )
    };
    Err(wrong.into_iter().map(words).collect())
}

fn told(file: &str, faults: &[String]) -> Error {
    let more = faults.len().saturating_sub(FAULTS_MAX);
    let shown = faults.iter().take(FAULTS_MAX).enumerate();
    let mut lines: Vec<String> = match faults {
        [only] => vec![only.clone()],
        _ => shown
            .map(|(number, fault)| format!("({}) {fault}", number + 1))
            .collect(),
    };
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    refused(
        file,
        format!(
            "{}; see docs/workload-file.md or pleach cluster init",
            lines.join("; ")
        ),
    )
}

fn refused(file: &str, message: String) -> Error {
    Error::data(file, message)
}

/// Lists of tables inside a description, taken out of it one after the other.
struct Lists<'a> {
    prefix: &'a str,
    rest: &'a mut Table,
    faults: &'a mut Vec<String>,
}

impl Lists<'_> {
    /// The entries of a list that can be read.
    fn take<T: DeserializeOwned>(&mut self, key: &str, sample: &Table) -> Vec<T> {
        let place = format!("{}{key}", self.prefix);
        match self.rest.remove(key) {
            None => Vec::new(),
            Some(Value::Array(entries)) => {
                let entries = entries.into_iter().take(ENTRIES_MAX).enumerate();
                let read = entries.filter_map(|(index, entry)| {
                    let place = format!("{place}[{index}]");
                    let Value::Table(entry) = entry else {
                        self.faults.push(format!("{place}: allowed is a table"));
                        return None;
                    };
                    piece(&place, entry, sample, self.faults)
                });
                read.collect()
            }
            Some(_) => {
                self.faults.push(format!(
                    "{place}: allowed is a list of tables, written [[{place}]]"
                ));
                Vec::new()
            }
        }
    }
}

/// A piece of a description. Each key that is wrong is noted and replaced by that of a sample, until the rest can be read.
fn piece<T: DeserializeOwned>(
    place: &str,
    mut table: Table,
    sample: &Table,
    faults: &mut Vec<String>,
) -> Option<T> {
    let read = |table: &Table| {
        Value::Table(table.clone())
            .try_into::<T>()
            .map_err(|error| error.message().to_owned())
    };
    let key_of = |key: &str| {
        if place.is_empty() {
            key.to_owned()
        } else {
            format!("{place}.{key}")
        }
    };
    let mut is_whole = true;
    for _ in 0..FAULTS_MAX {
        let message = match read(&table) {
            Ok(value) => return is_whole.then_some(value),
            Err(message) => message,
        };
        is_whole = false;
        let named = message.split('`').nth(1).unwrap_or_default().to_owned();
        if message.starts_with("unknown field") {
            table.remove(&named);
            let allowed = message.split_once(", ").map_or("", |(_, allowed)| allowed);
            faults.push(format!("{}: no such key, {allowed}", key_of(&named)));
        } else if message.starts_with("missing field") {
            faults.push(format!("{}: missing", key_of(&named)));
            table.insert(named.clone(), sample.get(&named)?.clone());
        } else {
            // Which key it is shows by what the message becomes without it.
            let keys: Vec<String> = table.keys().cloned().collect();
            let without = |key: &String| {
                let mut table = table.clone();
                table.remove(key);
                table.extend(sample.get(key).map(|value| (key.clone(), value.clone())));
                table
            };
            let culprit = keys
                .iter()
                .find(|key| read(&without(key)).err().as_ref() != Some(&message))?;
            let value = table.get(culprit).map(ToString::to_string).unwrap_or_default();
            faults.push(format!("{} = {}: {message}", key_of(culprit), shorten(&value)));
            table = without(culprit);
        }
    }
    None
}

fn table_of(value: &impl Serialize) -> Table {
    Table::try_from(value).unwrap_or_default()
}

fn sample_type() -> Table {
    table_of(&GpuTypeSpec {
        name: "V100".into(),
        memory_gib: 32.0,
        mig: None,
    })
}

fn sample_group() -> Table {
    table_of(&NodeGroup {
        count: 1,
        gpus_per_node: 1,
        gpu_type: "V100".into(),
        nodes_per_rack: 1,
        ..NodeGroup::default()
    })
}

fn sample_tenant() -> Table {
    table_of(&TenantSpec {
        name: "all".into(),
        quota_gpus: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_mistakes_are_told_at_once_with_their_places() {
        let text = "[cluster]\nborowing = true\n[[cluster.gpu_types]]\nname = \"V100\"\nmemory = 32\n\
            [[cluster.node_groups]]\ncount = \"two\"\ngpu_type = \"V100\"\nnodes_per_rak = 4\n\
            [[cluster.tenants]]\nname = \"a\"\n";
        let said = read("site.toml", text).unwrap_err().to_string();
        for words in [
            "site.toml",
            "cluster.borowing: no such key",
            "cluster.gpu_types[0].memory: no such key",
            "cluster.node_groups[0].count = \\\"two\\\"",
            "cluster.node_groups[0].gpus_per_node: missing",
            "cluster.node_groups[0].nodes_per_rak: no such key, expected one of",
            "cluster.tenants[0].quota_gpus: missing",
            "(6)",
        ] {
            assert!(said.contains(words), "{words}: {said}");
        }
        assert!(!said.contains("(7)"), "{said}");
        let ranges =
            "[[node_groups]]\ncount = 0\ngpus_per_node = 99\ngpu_type = \"V100\"\nnvlink_gpus = 100\n";
        let said = read("site.toml", ranges).unwrap_err().to_string();
        for words in [
            "count = 0",
            "gpus_per_node = 99",
            "nvlink_gpus = 100",
            "1 to 4,000,000 GPUs",
        ] {
            assert!(said.contains(words), "{words}: {said}");
        }
    }

    #[test]
    fn the_least_description_is_enough_and_says_what_was_assumed() {
        let text = "[[node_groups]]\ncount = 12\ngpus_per_node = 8\ngpu_type = \"A100-40GB\"\n";
        let (cluster, assumed) = read("site.toml", text).unwrap();
        assert_eq!((cluster.num_gpus(), cluster.gpu_types[0].memory_gib), (96, 40.0));
        assert!(assumed.unwrap().contains("A100-40GB has 40 GiB"));
        let json = r#"{"node_groups": [{"count": 12, "gpus_per_node": 8, "gpu_type": "A100-40GB"}]}"#;
        assert_eq!(
            read_table("site.json", &json_table(json).unwrap()).unwrap().0,
            cluster
        );
        let whole = toml::to_string(&cluster).unwrap();
        assert_eq!(read("site.toml", &whole).unwrap(), (cluster, None));
        let said = read("site.toml", "").unwrap_err().to_string();
        assert!(said.contains("node_groups: missing"), "{said}");
        assert!(read("site.toml", "[[").is_err() && read("site.toml", "node_groups = 3").is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "[\\[\\]a-z_= \"0-9\n.-]{0,120}") {
            let _ = read("x", &text);
            let _ = read("x", &format!("[[node_groups]]\n{text}"));
        }
    }
}
