//! Which jobs could run on the nodes that are driven, whatever partition they name, and which of those nodes are set aside.
//!
//! A partition beside the driven one holds some of its nodes with GPUs. Where it holds no other nodes with GPUs its jobs are decided
//! about like all others, on the nodes that it has; where it reaches further they are kept off the driven nodes.

use std::collections::{BTreeMap, BTreeSet};

use super::command::Commands;
use super::rules::{Partition, partitions};
use crate::error::Error;
use pleach_scheduler::Problem;

/// What the settings say of the scope.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// The partition that is driven.
    pub partition: &'a str,
    /// Partitions on the same nodes whose jobs are left to Slurm.
    pub left_partitions: &'a [String],
    /// Nodes that the policy does not use: for jobs that the tables cannot say.
    pub spare_nodes: &'a [String],
}

impl<'a> Scope<'a> {
    /// One partition, of which all nodes are used.
    #[must_use]
    pub fn only(partition: &'a str) -> Scope<'a> {
        Scope {
            partition,
            left_partitions: &[],
            spare_nodes: &[],
        }
    }
}

impl Scope<'_> {
    /// All partitions whose jobs are in scope, as Slurm has them now, the driven one first.
    ///
    /// # Errors
    /// A command that fails or takes too long.
    pub fn partitions(&self, commands: &Commands) -> Result<Vec<String>, Error> {
        let text = commands.run("scontrol", &SHOW_PARTITIONS)?;
        Ok(beside(self, &text).0.into_iter().map(str::to_owned).collect())
    }
}

/// What tells of all partitions.
pub(super) const SHOW_PARTITIONS: [&str; 4] = ["-a", "-o", "show", "partition"];

/// The scope as Slurm has it at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Reach {
    /// The partition that is driven.
    pub(super) name: String,
    pub(super) own: Option<Partition>,
    /// Others that hold some of its nodes with GPUs, but for those that are left to Slurm.
    beside: BTreeMap<String, Beside>,
    /// Nodes with GPUs of the driven partition, those that are set aside among them.
    pub(super) nodes: BTreeSet<String>,
    /// Those of them that are set aside.
    pub(super) spare: BTreeSet<String>,
}

#[derive(Clone, Debug)]
struct Beside {
    limits: Partition,
    /// Its nodes among the driven ones.
    nodes: BTreeSet<String>,
    /// Others of its nodes that have GPUs.
    further: BTreeSet<String>,
}

/// Where a job may run, by the partitions that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// On driven nodes alone, or on those of the driven partition too.
    Here,
    /// On driven nodes and on others, by another partition.
    Further,
    Elsewhere,
}

impl Reach {
    /// The driven partition alone.
    pub(super) fn only(name: &str) -> Reach {
        Reach {
            name: name.to_owned(),
            ..Reach::default()
        }
    }

    /// Of the nodes with GPUs of the driven partition, from what Slurm told of partitions (`scontrol -o show partition`) and of nodes
    /// with GPUs everywhere (`sinfo -N -o '%N|%G'`; asked for where a partition reaches further).
    pub(super) fn read<'n>(
        scope: &Scope<'_>,
        nodes: impl Iterator<Item = &'n str>,
        (text, gpu_nodes): (&str, &str),
    ) -> Reach {
        let nodes: BTreeSet<String> = nodes.map(str::to_owned).collect();
        let mut reach = Reach {
            name: scope.partition.to_owned(),
            spare: scope
                .spare_nodes
                .iter()
                .filter(|name| nodes.contains(*name))
                .cloned()
                .collect(),
            nodes,
            ..Reach::default()
        };
        let gpu_nodes: BTreeSet<&str> = gpu_nodes
            .lines()
            .filter_map(|line| line.split_once('|'))
            .filter(|(_, gres)| gres.split(',').any(|part| part.starts_with("gpu")))
            .map(|(name, _)| name)
            .collect();
        for (name, (limits, nodes)) in partitions(text) {
            if name == scope.partition {
                reach.own = Some(limits);
                continue;
            }
            // Of which the nodes cannot be read all jobs are left to Slurm.
            let Ok(nodes) = nodes else { continue };
            let (here, others): (BTreeSet<String>, BTreeSet<String>) =
                nodes.into_iter().partition(|node| reach.nodes.contains(node));
            let is_left = scope.left_partitions.iter().any(|left| left == name);
            if here.is_empty() || is_left {
                continue;
            }
            let further = others
                .into_iter()
                .filter(|node| gpu_nodes.contains(node.as_str()))
                .collect();
            let beside = Beside {
                limits,
                nodes: here,
                further,
            };
            reach.beside.insert(name.to_owned(), beside);
        }
        reach
    }

    /// Where a job of these partitions may run.
    pub(super) fn place(&self, partitions: &str) -> Place {
        let mut found = Place::Elsewhere;
        for name in partitions.split(',') {
            match self.beside.get(name) {
                _ if name == self.name => return Place::Here,
                Some(beside) if beside.further.is_empty() => return Place::Here,
                Some(_) => found = Place::Further,
                None => {}
            }
        }
        found
    }

    /// The partition of a job whose place is here: its name, its limits, and its nodes where those are not all.
    pub(super) fn of(&self, partitions: &str) -> (&str, Partition, Option<&BTreeSet<String>>) {
        let own = self.own.unwrap_or(Partition::UNLIMITED);
        let is_own = partitions.split(',').any(|name| name == self.name);
        let mut named = partitions
            .split(',')
            .filter_map(|name| self.beside.get_key_value(name));
        match named.find(|(_, beside)| beside.further.is_empty()) {
            Some((name, beside)) if !is_own => (name, beside.limits, Some(&beside.nodes)),
            _ => (&self.name, own, None),
        }
    }

    /// Driven nodes that a job of these partitions must not get where it is kept to others; none where those are all that it may have.
    ///
    /// `wish` are the nodes that it names, `num_nodes` how many it asks for.
    pub(super) fn kept_off(
        &self,
        partitions: &str,
        wish: &[String],
        num_nodes: usize,
    ) -> Option<BTreeSet<String>> {
        let off: BTreeSet<String> = self.nodes.difference(&self.spare).cloned().collect();
        let named = || partitions.split(',').filter_map(|name| self.beside.get(name));
        let is_own = partitions.split(',').any(|name| name == self.name);
        let own = self.spare.iter().filter(|_| is_own);
        let others = named().flat_map(|beside| beside.nodes.intersection(&self.spare).chain(&beside.further));
        let open: BTreeSet<&String> = own.chain(others).collect();
        let is_enough = !open.is_empty() && open.len() >= num_nodes;
        (is_enough && wish.iter().all(|node| !off.contains(node))).then_some(off)
    }
}

/// Partitions that hold nodes of the driven one, as Slurm tells of them, itself first; and whether one of the others holds further
/// nodes, of which has to be asked which have GPUs.
pub(super) fn beside<'t>(scope: &Scope<'t>, text: &'t str) -> (Vec<&'t str>, bool) {
    let all: BTreeMap<&str, Vec<String>> = partitions(text)
        .into_iter()
        .filter_map(|(name, (_, nodes))| Some((name, nodes.ok()?)))
        .collect();
    let own: BTreeSet<&String> = all.get(scope.partition).into_iter().flatten().collect();
    let (mut names, mut reaches) = (vec![scope.partition], false);
    for (name, nodes) in &all {
        let num_here = nodes.iter().filter(|node| own.contains(node)).count();
        let is_left = scope.left_partitions.iter().any(|left| left == name);
        if *name != scope.partition && num_here > 0 && !is_left {
            names.push(name);
            reaches |= num_here < nodes.len();
        }
    }
    (names, reaches)
}

/// Refuses nodes set aside that are no nodes with GPUs of the partition.
pub(super) fn check_spare<'n>(
    scope: &Scope<'_>,
    nodes: impl Iterator<Item = &'n str>,
) -> Result<(), Problem> {
    let nodes: BTreeSet<&str> = nodes.collect();
    let stranger = scope
        .spare_nodes
        .iter()
        .find(|name| !nodes.contains(name.as_str()));
    let Some(name) = stranger else { return Ok(()) };
    let hint = "name nodes of the driven partition that the policy is not to use";
    Err(Problem::new(
        "spare_nodes",
        name.clone(),
        "nodes with GPUs of the partition",
        hint,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "PartitionName=main Nodes=g[1-3],c1 State=UP\nPartitionName=side Nodes=g1,c9 MaxTime=01:00:00 State=UP\n\
                        PartitionName=all Nodes=g[1-3],h[1-2],c1 State=UP\nPartitionName=other Nodes=h1 State=UP\n\
                        PartitionName=debug Nodes=g2 State=UP\nPartitionName=none Nodes=(null) State=UP\n";
    const GPUS: &str = "g1|gpu:4\ng2|gpu:4\ng3|gpu:4\nh1|gpu:8\nh2|gpu:8\nc1|(null)\nc9|(null)\n";

    fn nodes() -> impl Iterator<Item = &'static str> {
        ["g1", "g2", "g3"].into_iter()
    }

    #[test]
    fn a_partition_is_in_scope_by_its_nodes_and_not_by_its_name() {
        let (left, spare) = (["debug".to_owned()], ["g3".to_owned()]);
        let scope = Scope {
            partition: "main",
            left_partitions: &left,
            spare_nodes: &spare,
        };
        assert_eq!(beside(&scope, TEXT), (vec!["main", "all", "side"], true));
        let reach = Reach::read(&scope, nodes(), (TEXT, GPUS));
        for (partitions, place) in [
            ("main", Place::Here),
            ("other,main", Place::Here),
            // Its other node has no GPUs.
            ("side", Place::Here),
            ("all", Place::Further),
            ("other,all", Place::Further),
            ("other", Place::Elsewhere),
            ("debug", Place::Elsewhere),
            ("none", Place::Elsewhere),
        ] {
            assert_eq!(reach.place(partitions), place, "{partitions}");
        }
        let (name, limits, nodes_of) = reach.of("other,side");
        assert_eq!((name, limits.limit_s_max), ("side", Some(3600)));
        assert!(nodes_of.is_some_and(|nodes| nodes.len() == 1 && nodes.contains("g1")));
        assert!(reach.of("side,main").2.is_none());
        let off = |partitions, wish: &[&str], num| {
            let wish: Vec<String> = wish.iter().map(|name| (*name).to_owned()).collect();
            let off = reach.kept_off(partitions, &wish, num);
            off.map(|off| off.into_iter().collect::<Vec<_>>().join(","))
        };
        assert_eq!(off("main", &[], 1).as_deref(), Some("g1,g2"));
        assert_eq!(off("all", &[], 3).as_deref(), Some("g1,g2"));
        assert_eq!(off("main", &[], 2), None, "one node is set aside");
        assert_eq!(off("main", &["g1"], 1), None, "it names another");
        assert_eq!(off("side", &[], 1), None, "nothing of it is set aside");
        assert!(check_spare(&scope, nodes()).is_ok());
        assert!(check_spare(&scope, ["g1"].into_iter()).is_err());
    }

    #[test]
    fn one_partition_alone_has_no_neighbours_and_asks_for_nothing_more() {
        let scope = Scope::only("main");
        let text = "PartitionName=main Nodes=g[1-3] State=UP\nPartitionName=other Nodes=h1 State=UP\n";
        assert_eq!(beside(&scope, text), (vec!["main"], false));
        assert_eq!(beside(&scope, ""), (vec!["main"], false));
        for text in [text, ""] {
            let reach = Reach::read(&scope, nodes(), (text, ""));
            assert_eq!(
                (reach.place("main"), reach.place("other")),
                (Place::Here, Place::Elsewhere)
            );
            assert_eq!(reach.kept_off("main", &[], 1), None);
        }
    }
}
