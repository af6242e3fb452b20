//! What a partition allows its jobs, and reservations of nodes, now and to come.

use std::collections::BTreeMap;

use pleach_site::slurm::{ListError, expand, limit_s, values};

/// A partition's limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Partition {
    /// Longest time limit, s.
    pub(crate) limit_s_max: Option<i64>,
    pub(crate) nodes_max: Option<u32>,
    pub(crate) cpus_per_node_max: Option<u32>,
    /// Slurm looks at the jobs of a higher one first.
    pub(crate) tier: u32,
}

/// Partitions by their names, each with its nodes or why they cannot be read.
pub(crate) type Partitions<'a> = BTreeMap<&'a str, (Partition, Result<Vec<String>, ListError>)>;

/// From what `scontrol -o show partition` printed.
pub(crate) fn partitions(text: &str) -> Partitions<'_> {
    let one = |line| {
        let values = values(line);
        let nodes = values.get("Nodes").filter(|nodes| !nodes.starts_with('('));
        let nodes = expand(nodes.copied().unwrap_or_default());
        Some((*values.get("PartitionName")?, (Partition::of(&values), nodes)))
    };
    text.lines().filter_map(one).collect()
}

impl Partition {
    /// Of which nothing is known.
    pub(crate) const UNLIMITED: Partition = Partition {
        limit_s_max: None,
        nodes_max: None,
        cpus_per_node_max: None,
        tier: 1,
    };

    /// No limits of what is not there.
    fn of(values: &BTreeMap<&str, &str>) -> Partition {
        let of = |key: &str| values.get(key).copied();
        Partition {
            limit_s_max: of("MaxTime")
                .and_then(|text| limit_s(text).ok()?)
                .map(|limit_s| limit_s as i64),
            nodes_max: of("MaxNodes").and_then(|text| text.parse().ok()),
            cpus_per_node_max: of("MaxCPUsPerNode").and_then(|text| text.parse().ok()),
            tier: of("PriorityTier").and_then(|text| text.parse().ok()).unwrap_or(1),
        }
    }

    /// Why a job of so many nodes with such a limit never starts there, as what "it" does; none where it may.
    pub(crate) fn forbids(&self, limit_s: Option<i64>, num_nodes: u32, cpus_per_node: u32) -> Option<String> {
        if let Some(most) = self.limit_s_max
            && limit_s.is_none_or(|limit_s| limit_s > most)
        {
            let asked = limit_s.map_or("no limit".into(), |limit_s| format!("a limit of {limit_s} s"));
            return Some(format!("has {asked}, and the partition allows {most} s"));
        }
        let over = |most: Option<u32>, asked: u32, what: &str| {
            let most = most.filter(|most| asked > *most)?;
            Some(format!(
                "asks for {asked} {what}, and the partition allows {most}"
            ))
        };
        over(self.nodes_max, num_nodes, "nodes")
            .or_else(|| over(self.cpus_per_node_max, cpus_per_node, "CPUs on a node"))
    }
}

/// What cannot be read of the nodes of partitions and reservations, and what follows from that.
pub(crate) fn unread(all: &Partitions<'_>, reservations_text: &str) -> Vec<String> {
    let unread = all.iter().filter_map(|(name, (_, nodes))| {
        let error = nodes.as_ref().err()?;
        Some(format!("partition {name}: {error}; its jobs are left to Slurm"))
    });
    let all = reservations(reservations_text).into_iter();
    let reserved = all.filter_map(|Reservation { name, nodes, .. }| {
        let error = expand(&nodes).err()?;
        Some(format!("reservation {name}: {error}; Slurm keeps it alone"))
    });
    unread.chain(reserved).collect()
}

/// Nodes that are set apart for a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reservation {
    pub(crate) name: String,
    /// Unix time, s.
    pub(crate) start_s: i64,
    /// Unix time, s.
    pub(crate) end_s: i64,
    /// As Slurm writes lists.
    pub(crate) nodes: String,
    pub(crate) num_cores: u64,
}

/// From what `scontrol -o show reservation` printed: those of nodes. What is none is left out: Slurm refuses, and is remembered.
pub(crate) fn reservations(text: &str) -> Vec<Reservation> {
    let one = |line: &str| {
        let values = values(line);
        Some(Reservation {
            name: (*values.get("ReservationName")?).to_owned(),
            start_s: values.get("StartTime")?.parse().ok()?,
            end_s: values.get("EndTime")?.parse().ok()?,
            nodes: values
                .get("Nodes")
                .filter(|nodes| **nodes != "(null)")?
                .to_string(),
            num_cores: values.get("CoreCnt")?.parse().ok()?,
        })
    };
    text.lines().filter_map(one).collect()
}

impl Reservation {
    /// Whether a job that starts now with such a limit would run into it.
    pub(crate) fn meets(&self, now_s: i64, limit_s: Option<i64>) -> bool {
        let ends_s = limit_s.map_or(i64::MAX, |limit_s| now_s.saturating_add(limit_s));
        self.start_s < ends_s && now_s < self.end_s
    }

    /// What is said of its nodes.
    pub(crate) fn told(&self, now_s: i64) -> String {
        match self.start_s <= now_s {
            true => format!("is in the reservation {} until {}", self.name, self.end_s),
            false => format!(
                "is in the reservation {} from {} on, before the job's limit",
                self.name, self.start_s
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_a_partition_are_read_and_said() {
        let text = "PartitionName=main MaxNodes=2 MaxTime=1-00:00:00 MaxCPUsPerNode=UNLIMITED State=UP Nodes=g[1-2]\n\
                    PartitionName=low State=DOWN Nodes=(null)\n";
        let all = partitions(text);
        assert_eq!(all["main"].1.as_ref().unwrap(), &["g1", "g2"]);
        assert!(all["low"].1.as_ref().unwrap().is_empty());
        let found = all["main"].0;
        assert_eq!((found.limit_s_max, found.nodes_max), (Some(86_400), Some(2)));
        assert!(found.forbids(Some(86_400), 2, 99).is_none());
        assert!(found.forbids(None, 1, 1).unwrap().contains("no limit"));
        assert!(found.forbids(Some(86_401), 1, 1).unwrap().contains("86400 s"));
        assert!(found.forbids(Some(1), 3, 1).unwrap().contains("3 nodes"));
        assert!(partitions("slurm_load_partitions error").is_empty());
        let nothing = Partition::UNLIMITED;
        assert!(nothing.forbids(None, 1000, 1000).is_none());
    }

    #[test]
    fn lists_of_nodes_that_cannot_be_read_are_told_and_lists_of_several_brackets_are_read() {
        let reserved = |nodes| {
            format!(
                "ReservationName=maint StartTime=1000 EndTime=2000 Nodes={nodes} CoreCnt=16 State=INACTIVE\n"
            )
        };
        let racks = "PartitionName=main State=UP Nodes=rack[0-1]_blade[0-1]\nPartitionName=low State=UP Nodes=n[1-2]-ib\n";
        let all = partitions(racks);
        assert_eq!(all["main"].1.as_ref().map(Vec::len), Ok(4));
        assert_eq!(all["low"].1.as_ref().unwrap(), &["n1-ib", "n2-ib"]);
        assert!(unread(&partitions(racks), &reserved("g[1-2]x")).is_empty());
        let told = unread(
            &partitions("PartitionName=main State=UP Nodes=g[1\n"),
            &reserved("g[2-1]"),
        );
        assert!(
            told[0].starts_with("partition main: ") && told[1].starts_with("reservation maint: "),
            "{told:?}"
        );
    }

    #[test]
    fn a_job_meets_a_reservation_that_begins_before_its_limit() {
        let text = "ReservationName=maint StartTime=1000 EndTime=2000 Nodes=g3 CoreCnt=16 State=INACTIVE\n\
                    ReservationName=lic StartTime=1000 EndTime=2000 Nodes=(null) CoreCnt=0\nNo reservations in the system\n";
        let found = reservations(text);
        assert_eq!(found.len(), 1);
        let meets = |now_s, limit_s| found[0].meets(now_s, limit_s);
        assert!(meets(900, Some(101)) && meets(1500, Some(1)) && meets(0, None));
        assert!(!meets(900, Some(100)) && !meets(2000, None));
    }
}
