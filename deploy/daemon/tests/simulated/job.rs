//! A job as the Slurm of this process has it.

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Pending,
    Running,
    /// With Slurm's word for how.
    Ended(&'static str),
}

/// Whose hold keeps a job from starting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    Nobody,
    User,
    Admin,
}

/// A job, a task of an array or a part of a heterogeneous job.
#[derive(Clone, Debug)]
pub struct Job {
    pub number: u64,
    /// The array that it is of, and its place there.
    pub array: Option<(u64, u32)>,
    /// Whether the array still has it in one record with others.
    pub is_whole: bool,
    pub part_of: Option<(u64, u32)>,
    pub user: &'static str,
    pub partition: &'static str,
    pub gpu_type: Option<&'static str>,
    pub gpus_per_node: u32,
    pub num_nodes: u32,
    pub cpus_per_node: u32,
    pub feature: Option<&'static str>,
    /// Nodes that its user has named.
    pub own_nodes: Vec<String>,
    /// Nodes that it has to have now.
    pub nodes_asked: Vec<String>,
    /// Nodes that it must not have, as a list with commas.
    pub shuns: String,
    pub limit_s: i64,
    /// How long it really runs.
    pub run_s: i64,
    pub state: State,
    pub hold: Hold,
    /// Held by the script as it came, which Slurm calls its user's hold.
    pub is_held_by_script: bool,
    pub factor: i64,
    pub nice: i64,
    pub mark: String,
    pub begin_s: i64,
    pub submit_s: i64,
    pub start_s: Option<i64>,
    pub end_s: Option<i64>,
    pub nodes: Vec<String>,
    pub num_restarts: u32,
    /// Under `priority/basic`, its place in the order of release.
    pub place: u64,
    /// The call of the daemon's after which its user or an operator touched it last.
    pub touched: u64,
    pub reason: String,
}

impl Job {
    pub fn name(&self) -> String {
        match (self.array, self.part_of) {
            (Some((array, task)), _) => format!("{array}_{task}"),
            (None, Some((leader, part))) => format!("{leader}+{part}"),
            (None, None) => self.number.to_string(),
        }
    }

    /// Whether `scontrol` means it, alone or with others.
    pub fn is_called(&self, name: &str) -> bool {
        let is_of_array = self
            .array
            .is_some_and(|(array, _)| array.to_string() == name && self.is_whole);
        self.name() == name || is_of_array
    }

    pub fn is_pending(&self) -> bool {
        self.state == State::Pending
    }

    pub fn is_running(&self) -> bool {
        self.state == State::Running
    }

    pub fn has_ended(&self) -> bool {
        matches!(self.state, State::Ended(_))
    }

    /// Whether it is one that the daemon has put a mark on.
    pub fn is_marked(&self) -> bool {
        self.mark.starts_with("pleach:held") || self.mark.starts_with("pleach:decided")
    }

    pub fn num_gpus(&self) -> u32 {
        self.gpus_per_node * self.num_nodes
    }

    /// Whether its user lets it be requeued.
    pub fn may_be_requeued(&self) -> bool {
        !self.number.is_multiple_of(4)
    }

    /// What `squeue` shows as its priority.
    pub fn priority(&self) -> i64 {
        match self.hold {
            Hold::Nobody => (1000 + self.factor - self.nice).max(1),
            _ => 0,
        }
    }
}
