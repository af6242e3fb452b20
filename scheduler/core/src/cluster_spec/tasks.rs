//! How a gang is cut into tasks: a batch system starts tasks of some GPUs each, and a task lies on one node.
//!
//! Kubernetes calls them pods, Slurm nodes or tasks, PyTorch's operator replicas. A gang without tasks may be cut GPU by GPU.

use serde::{Deserialize, Serialize};

use crate::problem::Problem;

/// How a gang is cut: its GPUs are those of all its tasks, so the number of tasks is that of the GPUs over [`Tasks::gpus_per_task`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tasks {
    /// GPUs of each task, all on one node. 1 to 64
    pub gpus_per_task: u8,
    /// Most tasks of the gang on one node; 0 = as many as it has room for. 0 to 64
    pub tasks_per_node_max: u8,
    /// Most nodes of the gang; 0 = as many as it takes.
    pub nodes_max: u16,
}

impl Tasks {
    /// Tasks of one GPU each, anywhere: a gang that may be cut as one likes.
    pub const ANY: Tasks = Tasks {
        gpus_per_task: 1,
        tasks_per_node_max: 0,
        nodes_max: 0,
    };

    /// Tasks of so many GPUs each, as many on a node as it has room for.
    #[must_use]
    pub const fn of(gpus_per_task: u8) -> Tasks {
        Tasks {
            gpus_per_task,
            ..Tasks::ANY
        }
    }

    /// Whether the gang may be cut as one likes.
    #[must_use]
    #[inline]
    pub fn is_any(&self) -> bool {
        *self == Tasks::ANY
    }

    /// GPUs that tasks can take of a node which has so many for them: those of whole tasks.
    #[must_use]
    #[inline]
    pub fn num_on(self, num_gpus: u32) -> u32 {
        let (each, most) = (
            u32::from(self.gpus_per_task).max(1),
            u32::from(self.tasks_per_node_max),
        );
        if each == 1 && most == 0 {
            return num_gpus;
        }
        let num = num_gpus / each;
        each * if most == 0 { num } else { num.min(most) }
    }

    /// Most nodes that the gang may have.
    #[must_use]
    #[inline]
    pub fn most_nodes(self) -> usize {
        match self.nodes_max {
            0 => usize::MAX,
            most => usize::from(most),
        }
    }

    /// Whether a gang with so many GPUs on each of its nodes is cut so.
    #[must_use]
    pub fn allow(self, mut gpus_of_nodes: impl ExactSizeIterator<Item = u32>) -> bool {
        gpus_of_nodes.len() <= self.most_nodes()
            && gpus_of_nodes.all(|num_gpus| self.num_on(num_gpus) == num_gpus)
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// The first key out of its range, named `PREFIX.key`.
    pub fn validate(self, prefix: impl std::fmt::Display) -> Result<(), Problem> {
        let keys = [
            ("gpus_per_task", self.gpus_per_task, 1, "1 to 64"),
            ("tasks_per_node_max", self.tasks_per_node_max, 0, "0 to 64"),
        ];
        for (key, value, least, allowed) in keys {
            Problem::refuse_if(
                !(least..=64).contains(&value),
                format_args!("{prefix}.{key}"),
                value,
                allowed,
                "a task lies on one node, which has at most 64 GPUs",
            )?;
        }
        Ok(())
    }

    /// Checks that so many GPUs are those of whole tasks.
    ///
    /// # Errors
    /// The number of GPUs, named `PREFIX.num_gpus`.
    pub fn validate_gang(self, prefix: impl std::fmt::Display, num_gpus: u32) -> Result<(), Problem> {
        let each = u32::from(self.gpus_per_task).max(1);
        Problem::refuse_if(
            !num_gpus.is_multiple_of(each),
            format_args!("{prefix}.num_gpus"),
            num_gpus,
            format_args!("a multiple of gpus_per_task, {each}"),
            "a gang is made of whole tasks",
        )
    }
}

impl Default for Tasks {
    fn default() -> Tasks {
        Tasks::ANY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_gives_the_gpus_of_whole_tasks() {
        assert_eq!(
            [0, 4, 5, 8, 10].map(|free| Tasks::of(5).num_on(free)),
            [0, 0, 5, 5, 10]
        );
        let one = Tasks {
            tasks_per_node_max: 1,
            ..Tasks::of(2)
        };
        assert_eq!([1, 2, 8].map(|free| one.num_on(free)), [0, 2, 2]);
        assert_eq!(Tasks::ANY.num_on(7), 7);
    }

    #[test]
    fn a_gang_is_cut_into_whole_tasks_on_no_more_nodes_than_it_may_have() {
        let two = Tasks {
            nodes_max: 2,
            ..Tasks::of(4)
        };
        let allow = |gpus: &[u32]| two.allow(gpus.iter().copied());
        assert!(allow(&[4, 4]) && allow(&[8]) && allow(&[8, 4]));
        assert!(!allow(&[6, 2]) && !allow(&[4, 4, 4]));
        assert!(Tasks::ANY.allow([1, 7, 3].into_iter()));
    }

    #[test]
    fn what_is_out_of_range_is_refused_by_its_key() {
        let said = |tasks: Tasks| tasks.validate("job.tasks").unwrap_err().to_string();
        assert!(said(Tasks::of(0)).contains("job.tasks.gpus_per_task = 0: allowed is 1 to 64"));
        let many = Tasks {
            tasks_per_node_max: 65,
            ..Tasks::ANY
        };
        assert!(said(many).contains("tasks_per_node_max = 65"));
        let gang = Tasks::of(5).validate_gang("job", 12).unwrap_err().to_string();
        assert!(
            gang.contains("job.num_gpus = 12: allowed is a multiple of gpus_per_task, 5"),
            "{gang}"
        );
        assert!(Tasks::of(5).validate_gang("job", 10).is_ok() && Tasks::ANY.validate("").is_ok());
    }
}
