//! Lists of nodes as a site prints them: `scontrol show node` (also with `-o`), `sinfo` with a column `GRES`, `scontrol show nodes
//! --json`, `kubectl get nodes -o json`; and the cluster that they make.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::Path;

use pleach_scheduler::cluster_spec::{ClusterSpec, NodeGroup};
use pleach_tables::open_unpacked;
use pleach_tables::slurm::{devices, expand};
use serde::Deserialize;

use super::{kubernetes, kubernetes_nodes};
use crate::cluster::assume;
use crate::error::Error;
use crate::table::shorten;

/// Largest list, bytes: 100,000 nodes of `scontrol show node` have some 1 kB each.
const BYTES_MAX: u64 = 1 << 28;
/// Most nodes of a list.
const NODES_MAX: usize = 100_000;
/// MiB in a GiB.
const GIB_MIB: f64 = 1024.0;

/// What of a document tells whose it is, bytes.
const START_BYTES: usize = 4096;

const HOW: &str = "allowed is what `scontrol show node` prints, or `sinfo -N -o '%N|%G|%c|%m|%P'`";

/// A site's nodes with GPUs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeTable {
    nodes: Vec<Node>,
    /// What was left out or assumed.
    notes: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Node {
    name: String,
    gpu_type: String,
    num_gpus: u32,
    num_cpus: u32,
    memory_mib: f64,
    partitions: BTreeSet<String>,
}

impl NodeTable {
    /// Reads a list of nodes.
    ///
    /// # Errors
    /// A file that cannot be read or is no such list, or one without a node with GPUs.
    pub fn read(path: &Path) -> Result<NodeTable, Error> {
        let mut bytes = Vec::new();
        let read = open_unpacked(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes);
        read.map_err(|source| Error::Io {
            path: path.to_path_buf(),
            source,
        })?;
        let refused = |message: String| Error::Data {
            file: path.display().to_string(),
            line: 0,
            column: "-".into(),
            message,
        };
        if bytes.len() as u64 > BYTES_MAX {
            return Err(refused(format!(
                "the list is longer than {BYTES_MAX} bytes; {HOW}"
            )));
        }
        NodeTable::of_text(&String::from_utf8_lossy(&bytes)).map_err(refused)
    }

    /// Reads the text of a list, or says why it is none.
    pub(super) fn of_text(text: &str) -> Result<NodeTable, String> {
        let start = text.trim_start();
        let entries = if kubernetes::is_start(&start[..start.floor_char_boundary(START_BYTES)]) {
            of_kubernetes(text)?
        } else if start.starts_with('{') {
            of_json(text)?
        } else if text.contains("NodeName=") {
            of_blocks(text)
        } else {
            of_table(text)?
        };
        let mut table = NodeTable::default();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        let (mut num_without, mut num_mixed) = (BTreeSet::new(), BTreeSet::new());
        for entry in entries {
            for name in expand(&entry.names).map_err(|error| error.to_string())? {
                let partitions = entry
                    .partitions
                    .split(',')
                    .map(|name| name.trim_end_matches('*').to_owned());
                let partitions = partitions.filter(|name| !name.is_empty());
                if let Some(place) = places.get(&name) {
                    table.nodes[*place].partitions.extend(partitions);
                    continue;
                }
                let gpus: Vec<_> = devices(&entry.gres)
                    .into_iter()
                    .filter(|device| device.kind == "gpu")
                    .collect();
                let Some(most) = gpus
                    .iter()
                    .max_by_key(|device| device.num)
                    .filter(|device| device.num > 0)
                else {
                    num_without.insert(name);
                    continue;
                };
                if gpus.len() > 1 {
                    num_mixed.insert(name.clone());
                }
                if table.nodes.len() == NODES_MAX {
                    return Err(format!("more than {NODES_MAX} nodes with GPUs; cut the list"));
                }
                places.insert(name.clone(), table.nodes.len());
                table.nodes.push(Node {
                    name,
                    gpu_type: most.of_type.unwrap_or("gpu").to_owned(),
                    num_gpus: most.num.min(64),
                    num_cpus: entry.num_cpus,
                    memory_mib: entry.memory_mib,
                    partitions: partitions.collect(),
                });
            }
        }
        if table.nodes.is_empty() {
            return Err(format!("the list has no node with GPUs; {HOW}"));
        }
        for (names, words) in [
            (num_without, "nodes have no GPUs: left out"),
            (
                num_mixed,
                "nodes have GPUs of several types: those of the most are taken",
            ),
        ] {
            if !names.is_empty() {
                table.notes.push(format!("{} {words}", names.len()));
            }
        }
        Ok(table)
    }

    /// The cluster of these nodes, equal ones in a row as a group, and what was assumed.
    ///
    /// # Errors
    /// More GPU types or GPUs than a cluster has.
    pub fn cluster(&self) -> Result<(ClusterSpec, Vec<String>), Error> {
        let mut cluster = ClusterSpec::default();
        for node in &self.nodes {
            let group = NodeGroup {
                count: 1,
                gpus_per_node: node.num_gpus,
                gpu_type: node.gpu_type.clone(),
                cpu_cores: f64::from(node.num_cpus),
                memory_gib: (node.memory_mib / GIB_MIB).floor(),
                ..NodeGroup::default()
            };
            match cluster.node_groups.iter_mut().find(|found| {
                NodeGroup {
                    count: 1,
                    ..(**found).clone()
                } == group
            }) {
                Some(found) => found.count += 1,
                None => cluster.node_groups.push(group),
            }
        }
        let mut notes = self.notes.clone();
        notes.extend(assume(&mut cluster));
        cluster.validate()?;
        Ok((cluster, notes))
    }

    /// The GPU type of a node by its name.
    pub(super) fn types(&self) -> BTreeMap<&str, &str> {
        self.nodes
            .iter()
            .map(|node| (node.name.as_str(), node.gpu_type.as_str()))
            .collect()
    }

    /// The GPU types of each partition.
    pub(super) fn partitions(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut partitions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for node in &self.nodes {
            for partition in &node.partitions {
                partitions.entry(partition).or_default().insert(&node.gpu_type);
            }
        }
        partitions
    }

    /// How many nodes have GPUs.
    #[must_use]
    pub fn num_nodes(&self) -> usize {
        self.nodes.len()
    }
}

/// A line, a block or an object of a list.
#[derive(Default)]
struct Entry {
    names: String,
    gres: String,
    num_cpus: u32,
    memory_mib: f64,
    partitions: String,
}

/// `NodeName=g1 Arch=x86_64 ... Gres=gpu:a100:8(S:0-1) ... Partitions=gpu`, over several lines or in one.
fn of_blocks(text: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for (key, value) in text.split_whitespace().filter_map(|word| word.split_once('=')) {
        if key == "NodeName" {
            entries.push(Entry {
                names: value.into(),
                ..Entry::default()
            });
        }
        let Some(entry) = entries.last_mut() else { continue };
        match key {
            "Gres" => entry.gres = value.into(),
            "CPUTot" => entry.num_cpus = value.parse().unwrap_or(0),
            "RealMemory" => entry.memory_mib = number(value),
            "Partitions" => entry.partitions = value.into(),
            _ => {}
        }
    }
    entries
}

/// Lines under a header, with bars or blanks between: `NODELIST|GRES|CPUS|MEMORY|PARTITION`.
fn of_table(text: &str) -> Result<Vec<Entry>, String> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let header = lines.next().unwrap_or_default();
    let between = ['|', '\t', ';', ',']
        .into_iter()
        .find(|sign| header.contains(*sign));
    let fields = |line: &str| -> Vec<String> {
        match between {
            Some(sign) => line.split(sign).map(|field| field.trim().to_owned()).collect(),
            None => line.split_whitespace().map(str::to_owned).collect(),
        }
    };
    let names: Vec<String> = fields(header)
        .iter()
        .map(|name| name.to_ascii_uppercase())
        .collect();
    let column = |known: &[&str]| names.iter().position(|name| known.contains(&name.as_str()));
    let (Some(nodes), Some(gres)) = (
        column(&["NODELIST", "NODE_LIST", "NODES", "NODE", "NAME", "HOSTNAMES"]),
        column(&["GRES", "GPUS"]),
    ) else {
        return Err(format!(
            "`{}` has no columns NODELIST and GRES; {HOW}",
            shorten(header)
        ));
    };
    let cpus = column(&["CPUS", "CPUS(A/I/O/T)", "CPU"]);
    let (memory, partition) = (
        column(&["MEMORY", "REAL_MEMORY"]),
        column(&["PARTITION", "PARTITIONS"]),
    );
    let entry = |line: &str| {
        let fields = fields(line);
        let text = |place: Option<usize>| {
            place
                .and_then(|place| fields.get(place))
                .map_or("", String::as_str)
        };
        let all = text(cpus).rsplit('/').next().unwrap_or_default();
        Entry {
            names: text(Some(nodes)).into(),
            gres: text(Some(gres)).into(),
            num_cpus: all.trim_end_matches('+').parse().unwrap_or(0),
            memory_mib: number(text(memory)),
            partitions: text(partition).into(),
        }
    };
    Ok(lines.map(entry).collect())
}

fn of_json(text: &str) -> Result<Vec<Entry>, String> {
    #[derive(Deserialize)]
    struct Document {
        nodes: Vec<Shown>,
    }
    #[derive(Deserialize)]
    struct Shown {
        name: String,
        #[serde(default)]
        gres: String,
        #[serde(default)]
        cpus: u32,
        #[serde(default)]
        real_memory: f64,
        #[serde(default)]
        partitions: Vec<String>,
    }
    let document: Document = serde_json::from_str(text)
        .map_err(|error| format!("{error}; {HOW}, or `scontrol show nodes --json`"))?;
    let entry = |shown: Shown| Entry {
        names: shown.name,
        gres: shown.gres,
        num_cpus: shown.cpus,
        memory_mib: shown.real_memory,
        partitions: shown.partitions.join(","),
    };
    Ok(document.nodes.into_iter().map(entry).collect())
}

fn of_kubernetes(text: &str) -> Result<Vec<Entry>, String> {
    let nodes = kubernetes_nodes::nodes(text)
        .map_err(|error| format!("{error}; {HOW}, or `kubectl get nodes -o json`"))?;
    let entry = |node: kubernetes_nodes::KubernetesNode| Entry {
        gres: match (node.num_gpus, node.gpu_type.as_str()) {
            (0, _) => String::new(),
            (num, "") => format!("gpu:{num}"),
            (num, of_type) => format!("gpu:{of_type}:{num}"),
        },
        names: node.name,
        num_cpus: node.num_cpus,
        memory_mib: node.memory_mib,
        partitions: String::new(),
    };
    Ok(nodes.into_iter().map(entry).collect())
}

/// A number of MiB; 0 where it is none that a node has.
fn number(text: &str) -> f64 {
    let number = text.trim_end_matches('+').parse::<f64>().unwrap_or(0.0);
    if (0.0..=1e9).contains(&number) {
        number
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS: &str = "NodeName=g1 Arch=x86_64 CoresPerSocket=32\n   CPUAlloc=0 CPUTot=128 CPULoad=0.01\n   \
        Gres=gpu:a100:8(S:0-1)\n   RealMemory=1030000 AllocMem=0 State=IDLE\n   Partitions=gpu,debug\n\n\
        NodeName=g2 Arch=x86_64\n   CPUTot=128 Gres=gpu:a100:8(S:0-1) RealMemory=1030000 Partitions=gpu\n\n\
        NodeName=v1 CPUTot=64 Gres=gpu:v100:4 RealMemory=500000 Partitions=old\nNodeName=c1 CPUTot=64 Gres=(null)\n";
    const TABLE: &str = "NODELIST|GRES|CPUS|MEMORY|PARTITION\ng1|gpu:a100:8(S:0-1)|128|1030000|gpu*\n\
        g1|gpu:a100:8(S:0-1)|128|1030000|debug\ng2|gpu:a100:8(S:0-1)|128|1030000|gpu*\nv1|gpu:v100:4|64|500000|old\n\
        c1|(null)|64|1000|gpu*\n";

    #[test]
    fn blocks_tables_and_json_tell_of_the_same_nodes() {
        let blocks = NodeTable::of_text(BLOCKS).unwrap();
        assert_eq!(NodeTable::of_text(TABLE).unwrap(), blocks);
        assert_eq!(NodeTable::of_text(&BLOCKS.replace("\n   ", " ")).unwrap(), blocks);
        let json = r#"{"nodes": [
            {"name": "g1", "gres": "gpu:a100:8(S:0-1)", "cpus": 128, "real_memory": 1030000, "partitions": ["gpu", "debug"]},
            {"name": "g2", "gres": "gpu:a100:8(S:0-1)", "cpus": 128, "real_memory": 1030000, "partitions": ["gpu"]},
            {"name": "v1", "gres": "gpu:v100:4", "cpus": 64, "real_memory": 500000, "partitions": ["old"]},
            {"name": "c1", "gres": ""}]}"#;
        assert_eq!(NodeTable::of_text(json).unwrap(), blocks);
        let (cluster, notes) = blocks.cluster().unwrap();
        let groups: Vec<_> = cluster
            .node_groups
            .iter()
            .map(|group| {
                (
                    group.count,
                    group.gpus_per_node,
                    group.gpu_type.as_str(),
                    group.cpu_cores,
                    group.memory_gib,
                )
            })
            .collect();
        assert_eq!(
            groups,
            [(2, 8, "a100", 128.0, 1005.0), (1, 4, "v100", 64.0, 488.0)]
        );
        assert!(notes[0].starts_with("1 nodes have no GPUs"), "{notes:?}");
        assert_eq!(blocks.partitions()["debug"], BTreeSet::from(["a100"]));
    }

    #[test]
    fn compressed_lists_are_expanded_and_other_texts_refused_with_a_command() {
        let table = NodeTable::of_text("NODELIST  GRES  CPUS\ng[01-12]  gpu:a100:8  128\n").unwrap();
        assert_eq!(table.num_nodes(), 12);
        for text in [
            "",
            "hello\n",
            "{}",
            "NODELIST|STATE\ng1|idle\n",
            "NODELIST|GRES\ng1|(null)\n",
        ] {
            assert!(
                NodeTable::of_text(text)
                    .unwrap_err()
                    .contains("scontrol show node"),
                "{text}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "[Nodeame=grsgpu:|()\\[\\],0-9\n A-Z{}\"é]{0,200}") {
            if let Ok(table) = NodeTable::of_text(&text) {
                let _ = table.cluster();
            }
        }
    }
}
