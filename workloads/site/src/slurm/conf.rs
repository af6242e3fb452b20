//! `slurm.conf` as text: settings, and lines of nodes and partitions with their defaults.
//!
//! # What is deliberately not here
//! Files that it includes: their lines are not known.

use std::collections::BTreeMap;
use std::fmt;

use super::{expand, num_nodes};

/// Most lines, and most nodes of all lines together, *ours*.
const LINES_MAX: usize = 200_000;
const NODES_MAX: usize = 100_000;
/// Characters of a line that an error shows.
const SHOWN_MAX: usize = 60;

/// Why a text is no `slurm.conf`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfError {
    /// From 1; 0: the whole text.
    pub line: usize,
    reason: String,
}

impl fmt::Display for ConfError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.reason)
    }
}

impl std::error::Error for ConfError {}

/// Keys and values of a line; keys in small letters.
pub type Row = BTreeMap<String, String>;

/// What a `slurm.conf` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conf {
    values: Row,
    /// Each node with the keys of its line, in the order of the file.
    pub nodes: Vec<(String, Row)>,
    /// Each partition with the keys of its line.
    pub partitions: Vec<(String, Row)>,
}

impl Conf {
    /// Reads a text.
    ///
    /// # Errors
    /// A line without a key, a list of nodes that is none, more lines or nodes than are read; a text without nodes or partitions.
    pub fn of_text(text: &str) -> Result<Conf, ConfError> {
        let mut conf = Conf::default();
        let mut defaults: [Row; 2] = Default::default();
        let mut whole = String::new();
        let mut num_nodes_in_all = 0;
        for (number, line) in text.lines().enumerate() {
            let refused = |reason: String| ConfError {
                line: number + 1,
                reason,
            };
            if number >= LINES_MAX {
                return Err(refused(format!("more than {LINES_MAX} lines")));
            }
            let line = line.split('#').next().unwrap_or_default().trim();
            if let Some(part) = line.strip_suffix('\\') {
                whole.push_str(part);
                whole.push(' ');
                continue;
            }
            whole.push_str(line);
            let line = std::mem::take(&mut whole);
            let first = line.split_whitespace().next().unwrap_or_default();
            if first.is_empty() || first.eq_ignore_ascii_case("include") {
                continue;
            }
            let Some((key, value)) = line.split_once('=') else {
                let shown: String = line.chars().take(SHOWN_MAX).collect();
                return Err(refused(format!("{shown:?} is no Key=Value of slurm.conf")));
            };
            let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
            let kind = match key.as_str() {
                "nodename" => 0,
                "partitionname" => 1,
                _ => {
                    conf.values.insert(key, unquoted(value).to_owned());
                    continue;
                }
            };
            let mut row = row(&line);
            let name = row.remove(&key).unwrap_or_default();
            if name.eq_ignore_ascii_case("default") {
                defaults[kind].extend(row);
                continue;
            }
            for (key, value) in &defaults[kind] {
                row.entry(key.clone()).or_insert_with(|| value.clone());
            }
            if kind == 1 {
                conf.partitions.push((name, row));
                continue;
            }
            num_nodes_in_all += num_nodes(&name).map_err(|error| refused(error.to_string()))?;
            if num_nodes_in_all > NODES_MAX {
                return Err(refused(format!("more than {NODES_MAX} nodes")));
            }
            let names = expand(&name).map_err(|error| refused(error.to_string()))?;
            conf.nodes
                .extend(names.into_iter().map(|name| (name, row.clone())));
        }
        match conf.nodes.is_empty() || conf.partitions.is_empty() {
            true => Err(ConfError {
                line: 0,
                reason: "it has no NodeName= or no PartitionName= line: give the slurm.conf with both, included files written into it"
                    .into(),
            }),
            false => Ok(conf),
        }
    }

    /// The value of a key; none where it is not set.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&str> {
        self.values.get(&key.to_ascii_lowercase()).map(String::as_str)
    }

    /// One of the words of a list, `bf_interval` of `SchedulerParameters=bf_interval=30,bf_continue`: what stands behind its `=`,
    /// nothing where it has none.
    #[must_use]
    pub fn word(&self, key: &str, word: &str) -> Option<&str> {
        let words = self.value(key)?.split(',').map(str::trim);
        let mut pairs = words.map(|text| text.split_once('=').unwrap_or((text, "")));
        pairs
            .find(|(name, _)| name.eq_ignore_ascii_case(word))
            .map(|(_, value)| value)
    }
}

fn unquoted(text: &str) -> &str {
    text.trim_matches(['"', '\''])
}

/// Words of a line; a value in quotes may hold blanks.
fn row(line: &str) -> Row {
    let mut row = Row::new();
    let (mut word, mut is_quoted) = (String::new(), false);
    for letter in line.chars().chain([' ']) {
        is_quoted ^= letter == '"';
        if letter.is_whitespace() && !is_quoted {
            if let Some((key, value)) = word.split_once('=') {
                row.insert(key.to_ascii_lowercase(), unquoted(value).to_owned());
            }
            word.clear();
        } else {
            word.push(letter);
        }
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# A site.\nClusterName=site\nSchedulerParameters=bf_interval=2,bf_continue \\\n  # more\n\
        NodeName=DEFAULT CPUs=64 RealMemory=512000\nNodeName=n[1-2] Gres=gpu:a100:8\nnodename=x CPUs=4\n\
        PartitionName=main Nodes=ALL Default=YES TRESBillingWeights=\"CPU=0,GRES/gpu=1.0\"\n";

    #[test]
    fn keys_words_and_lines_of_nodes_and_partitions_are_read_with_their_defaults() {
        let conf = Conf::of_text(TEXT).unwrap();
        assert_eq!(conf.value("clustername"), Some("site"));
        assert_eq!(conf.word("SchedulerParameters", "bf_interval"), Some("2"));
        assert_eq!(conf.word("SchedulerParameters", "bf_continue"), Some(""));
        assert_eq!(conf.word("SchedulerParameters", "bf_window"), None);
        let names: Vec<&str> = conf.nodes.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["n1", "n2", "x"]);
        assert_eq!(
            (conf.nodes[0].1["cpus"].as_str(), conf.nodes[2].1["cpus"].as_str()),
            ("64", "4")
        );
        assert_eq!(conf.partitions[0].1["tresbillingweights"], "CPU=0,GRES/gpu=1.0");
    }

    #[test]
    fn a_text_that_is_none_is_refused_with_its_line() {
        for (text, line, words) in [
            ("ClusterName=x\nhello\n", 2, "no Key=Value"),
            ("NodeName=n[1\nPartitionName=p\n", 1, "no list of nodes"),
            ("ClusterName=x\n", 0, "no NodeName="),
            (
                "NodeName=n[1-9],m[1-99999]\nNodeName=k[1-99999]\n",
                1,
                "more than 100,000",
            ),
        ] {
            let error = Conf::of_text(text).unwrap_err();
            assert_eq!(error.line, line, "{text}");
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
