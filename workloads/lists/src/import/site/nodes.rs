//! Lists of nodes as a site prints them: `scontrol show node` (also with `-o`), `sinfo` with a column `GRES`, `scontrol show nodes
//! --json`, `kubectl get nodes -o json`; and the cluster that they make.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pleach_scheduler::cluster_spec::{ClusterSpec, NodeGroup};
use pleach_scheduler::problem::files;
use pleach_site::slurm::{devices, expand, is_null};
use pleach_tables::{Account, open_unpacked};
use serde::Deserialize;

use super::node_state::Out;
use super::{kubernetes, kubernetes_nodes};
use crate::Error;
use crate::cluster::assume;
use crate::table::shorten;

/// Largest list, bytes: 100,000 nodes of `scontrol show node` have some 1 kB each.
const BYTES_MAX: u64 = 1 << 28;
/// Most nodes of a list.
const NODES_MAX: usize = 100_000;
/// Most GPUs of a node.
const GPUS_MAX: u32 = 64;
/// MiB in a GiB.
const GIB_MIB: f64 = 1024.0;

/// What of a document tells whose it is, bytes.
const START_BYTES: usize = 4096;

const NAME_UNREAD: &str = "its name is not understood";
const GPUS_UNREAD: &str = "its GPUs are not understood";
const CORES_UNREAD: &str = "its cores are not understood: not modelled";
const MEMORY_UNREAD: &str = "its memory is not understood: not modelled";

const HOW: &str = "allowed is what `scontrol show node` prints, or `sinfo -N -o '%N|%G|%c|%m|%P|%T'`";

/// A site's nodes with GPUs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeTable {
    nodes: Vec<Node>,
    /// Nodes read, and those that were left out.
    account: Account,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Node {
    name: String,
    gpu_type: String,
    num_gpus: u32,
    num_cpus: f64,
    memory_mib: f64,
    partitions: BTreeSet<String>,
    /// Why it runs no jobs now.
    out: Option<Out>,
    /// Nodes with the same one share the fast network; empty where it is not given.
    rack: String,
}

impl NodeTable {
    /// Reads a list of nodes.
    ///
    /// # Errors
    /// A file that cannot be read or is no such list, or one without a node with GPUs.
    pub fn read(path: &Path) -> Result<NodeTable, Error> {
        let read = files::at_most(open_unpacked(path)?, BYTES_MAX);
        let refused = |message: String| Error::data(path, message);
        let bytes = read
            .map_err(|source| Error::io("read", path, source))?
            .ok_or_else(|| refused(format!("the list is longer than {BYTES_MAX} bytes; {HOW}")))?;
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
        let mut places: BTreeMap<String, Option<usize>> = BTreeMap::new();
        for entry in entries {
            let Ok(names) = expand(&entry.names) else {
                table.account.rows_read += 1;
                table.account.leave_out_for(NAME_UNREAD, &entry.names);
                continue;
            };
            for name in names {
                if let Some(place) = places.get(&name) {
                    let known = place.and_then(|place| table.nodes.get_mut(place));
                    known
                        .into_iter()
                        .for_each(|node| node.partitions.extend(entry.partitions()));
                    continue;
                }
                if places.len() == NODES_MAX {
                    return Err(format!("more than {NODES_MAX} nodes; cut the list"));
                }
                let node = table.node(&name, &entry);
                places.insert(name, node.is_some().then_some(table.nodes.len()));
                table.nodes.extend(node);
            }
        }
        if table.nodes.is_empty() {
            let lines: Vec<String> = table.account.lines("nodes").collect();
            let told = if lines.is_empty() {
                String::new()
            } else {
                format!(" ({})", lines.join("; "))
            };
            return Err(format!("the list has no node with GPUs{told}; {HOW}"));
        }
        Ok(table)
    }

    /// A node of an entry; none where it is left out.
    fn node(&mut self, name: &str, entry: &Entry) -> Option<Node> {
        let account = &mut self.account;
        account.rows_read += 1;
        let all = devices(&entry.gres);
        let gpus: Vec<_> = all.iter().filter(|device| device.kind == "gpu").collect();
        let Some(most) = gpus
            .iter()
            .max_by_key(|device| device.num)
            .filter(|most| most.num > 0)
        else {
            let is_unread =
                gpus.is_empty() && !is_null(&entry.gres) && (all.is_empty() || entry.gres.contains("gpu:"));
            match is_unread && entry.gres.parse() != Ok(0_u32) {
                true => account.leave_out_for(GPUS_UNREAD, &entry.gres),
                false => account.leave_out("no GPUs", 1),
            }
            return None;
        };
        if entry.out == Some(Out::Future) {
            account.leave_out_for("FUTURE: they do not exist yet", name);
            return None;
        }
        if gpus.len() > 1 {
            account.mend("GPUs of several types: those of the most are taken", 1);
        }
        account.mend(CORES_UNREAD, u64::from(entry.num_cpus.is_none()));
        account.mend(MEMORY_UNREAD, u64::from(entry.memory_mib.is_none()));
        if most.num > GPUS_MAX {
            account.mend("more GPUs than 64: 64 are taken", 1);
        }
        Some(Node {
            name: name.to_owned(),
            gpu_type: most.of_type.unwrap_or("gpu").to_owned(),
            num_gpus: most.num.min(GPUS_MAX),
            num_cpus: entry.num_cpus.unwrap_or(0.0),
            memory_mib: entry.memory_mib.unwrap_or(0.0),
            partitions: entry.partitions().collect(),
            out: entry.out,
            rack: entry.rack.clone(),
        })
    }

    /// The nodes that were there while a list lasted: one that is out of service now counts if a job of the list ran on it. Where the
    /// list names no nodes at all, every node counts.
    #[must_use]
    pub fn in_service(&self, ran_on: &BTreeSet<String>) -> NodeTable {
        let mut table = self.clone();
        let account = &mut table.account;
        table.nodes.retain(|node| {
            let Some(out) = node.out else { return true };
            let is_kept = ran_on.is_empty() || ran_on.contains(&node.name);
            let word = out.word();
            match is_kept {
                true => account.mend(
                    &format!("{word} now: kept, for it may have run jobs of the list"),
                    1,
                ),
                false => account.leave_out_for(
                    &format!("{word} now, and no job of the list ran on it"),
                    &node.name,
                ),
            }
            is_kept
        });
        // Nothing is left where all nodes are out and the list is of others.
        match table.nodes.is_empty() {
            true => self.in_service(&BTreeSet::new()),
            false => table,
        }
    }

    /// The cluster of these nodes, equal ones in a row as a group, and what was assumed.
    ///
    /// # Errors
    /// More GPU types or GPUs than a cluster has.
    pub fn cluster(&self) -> Result<(ClusterSpec, Vec<String>), Error> {
        let mut cluster = ClusterSpec::default();
        let mut racks: Vec<BTreeMap<&str, u32>> = Vec::new();
        for node in &self.nodes {
            let group = NodeGroup {
                count: 1,
                gpus_per_node: node.num_gpus,
                gpu_type: node.gpu_type.clone(),
                cpu_cores: node.num_cpus,
                memory_gib: (node.memory_mib / GIB_MIB).floor(),
                ..NodeGroup::default()
            };
            let is_like = |found: &NodeGroup| {
                let one = NodeGroup {
                    count: 1,
                    ..found.clone()
                };
                one == group
            };
            let at = cluster.node_groups.iter().position(is_like);
            let at = at.unwrap_or_else(|| {
                cluster.node_groups.push(NodeGroup { count: 0, ..group });
                racks.push(BTreeMap::new());
                racks.len() - 1
            });
            cluster.node_groups[at].count += 1;
            *racks[at].entry(&node.rack).or_default() += 1;
        }
        for (group, racks) in cluster.node_groups.iter_mut().zip(&racks) {
            if !racks.contains_key("") {
                group.nodes_per_rack = racks.values().copied().max().unwrap_or(0);
            }
        }
        let mut notes = vec![self.account.sums("nodes")];
        notes.extend(self.account.lines("nodes"));
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

    /// Names of the nodes.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|node| node.name.as_str())
    }

    /// GPUs of the nodes of a partition.
    pub(super) fn gpus_of(&self, partition: &str) -> u64 {
        let nodes = self
            .nodes
            .iter()
            .filter(|node| node.partitions.contains(partition));
        nodes.map(|node| u64::from(node.num_gpus)).sum()
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

/// A line, a block or an object of a list. Cores and memory are 0 where it does not tell them, and none where it does in a way that
/// is not understood.
struct Entry {
    names: String,
    gres: String,
    num_cpus: Option<f64>,
    memory_mib: Option<f64>,
    partitions: String,
    out: Option<Out>,
    rack: String,
}

impl Entry {
    fn of(names: &str) -> Entry {
        Entry {
            names: names.into(),
            gres: String::new(),
            num_cpus: Some(0.0),
            memory_mib: Some(0.0),
            partitions: String::new(),
            out: None,
            rack: String::new(),
        }
    }

    fn partitions(&self) -> impl Iterator<Item = String> {
        let names = self.partitions.split(',');
        let names = names.map(|name| name.trim_end_matches('*').to_owned());
        names.filter(|name| !name.is_empty())
    }
}

/// `NodeName=g1 Arch=x86_64 ... Gres=gpu:a100:8(S:0-1) ... Partitions=gpu`, over several lines or in one.
fn of_blocks(text: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for (key, value) in text.split_whitespace().filter_map(|word| word.split_once('=')) {
        if key == "NodeName" {
            entries.push(Entry::of(value));
        }
        let Some(entry) = entries.last_mut() else { continue };
        match key {
            "Gres" => entry.gres = value.into(),
            "CPUTot" => entry.num_cpus = value.parse::<u32>().ok().map(f64::from),
            "RealMemory" => entry.memory_mib = number(value),
            "State" => entry.out = Out::of_slurm(value),
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
    let [memory, partition, state] = [
        column(&["MEMORY", "REAL_MEMORY"]),
        column(&["PARTITION", "PARTITIONS"]),
        column(&["STATE", "STATELONG", "STATECOMPACT", "STATECOMPLETE"]),
    ];
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
            gres: gres_of(text(Some(gres))),
            num_cpus: match all.trim_end_matches('+') {
                "" => Some(0.0),
                all => all.parse::<u32>().ok().map(f64::from),
            },
            memory_mib: number(text(memory)),
            partitions: text(partition).into(),
            out: Out::of_slurm(text(state)),
            rack: String::new(),
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
        #[serde(default)]
        state: Words,
        #[serde(default)]
        state_flags: Words,
    }
    /// A word, or several.
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Words {
        One(String),
        Many(Vec<String>),
    }
    impl Default for Words {
        fn default() -> Words {
            Words::Many(Vec::new())
        }
    }
    impl Words {
        fn text(self) -> String {
            match self {
                Words::One(word) => word,
                Words::Many(words) => words.join("+"),
            }
        }
    }
    let document: Document = serde_json::from_str(text)
        .map_err(|error| format!("{error}; {HOW}, or `scontrol show nodes --json`"))?;
    let entry = |shown: Shown| Entry {
        gres: shown.gres,
        num_cpus: Some(f64::from(shown.cpus)),
        memory_mib: Some(shown.real_memory),
        partitions: shown.partitions.join(","),
        out: Out::of_slurm(&format!("{}+{}", shown.state.text(), shown.state_flags.text())),
        names: shown.name,
        rack: String::new(),
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
        out: node.out,
        rack: node.rack,
    };
    Ok(nodes.into_iter().map(entry).collect())
}

/// A column of devices; where it is a plain number, so many GPUs.
fn gres_of(text: &str) -> String {
    match text.parse::<u32>() {
        Ok(num) if num > 0 => format!("gpu:{num}"),
        _ => text.to_owned(),
    }
}

/// A number of MiB, 0 where it is not given; none where it is none that a node has.
fn number(text: &str) -> Option<f64> {
    if is_null(text) {
        return Some(0.0);
    }
    let number = text.trim_end_matches('+').parse::<f64>().ok();
    number.filter(|number| (0.0..=1e9).contains(number))
}
