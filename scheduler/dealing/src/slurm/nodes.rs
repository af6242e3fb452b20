//! Nodes as Slurm's schedulers count them: sets of nodes, what is free on each, and which of those that fit a job gets.

/// A set of nodes by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSet(Vec<u64>);

impl NodeSet {
    /// The set of some nodes.
    #[must_use]
    pub fn of(nodes: impl IntoIterator<Item = usize>) -> NodeSet {
        let mut set = NodeSet::default();
        for node in nodes {
            if set.0.len() <= node / 64 {
                set.0.resize(node / 64 + 1, 0);
            }
            set.0[node / 64] |= 1 << (node % 64);
        }
        set
    }

    /// How many nodes are in it.
    #[must_use]
    pub fn num(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Its nodes, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        let words = self.0.iter().enumerate();
        words.flat_map(|(at, word)| {
            (0..64)
                .filter(move |bit| word >> bit & 1 == 1)
                .map(move |bit| at * 64 + bit)
        })
    }

    fn word(&self, at: usize) -> u64 {
        self.0.get(at).copied().unwrap_or(0)
    }

    /// Keeps what is in another one too.
    pub fn keep(&mut self, other: &NodeSet) {
        for (at, word) in self.0.iter_mut().enumerate() {
            *word &= other.word(at);
        }
    }

    /// Takes out what is in another one.
    pub fn remove(&mut self, other: &NodeSet) {
        for (at, word) in self.0.iter_mut().enumerate() {
            *word &= !other.word(at);
        }
    }

    /// The nodes in both.
    #[must_use]
    pub fn and(&self, other: &NodeSet) -> NodeSet {
        let mut both = self.clone();
        both.keep(other);
        both
    }

    /// Whether all its nodes are in another one.
    #[must_use]
    pub fn is_in(&self, other: &NodeSet) -> bool {
        let mut words = self.0.iter().enumerate();
        words.all(|(at, word)| word & !other.word(at) == 0)
    }

    /// Whether a node is in both.
    #[must_use]
    pub fn meets(&self, other: &NodeSet) -> bool {
        let mut words = self.0.iter().enumerate();
        words.any(|(at, word)| word & other.word(at) != 0)
    }
}

/// What a node has, or has free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Room {
    /// GPUs.
    pub gpus: u32,
    /// CPU, thousandths of a core.
    pub cpu_milli: u64,
    /// Host memory, MiB.
    pub memory_mib: u64,
}

impl Room {
    pub(crate) fn holds(self, asked: Room) -> bool {
        self.gpus >= asked.gpus && self.cpu_milli >= asked.cpu_milli && self.memory_mib >= asked.memory_mib
    }

    /// How many of these it holds.
    pub(crate) fn times(self, asked: Room) -> usize {
        let gpus = self.gpus.checked_div(asked.gpus).map_or(u64::MAX, u64::from);
        let of = |all: u64, each: u64| all.checked_div(each).unwrap_or(u64::MAX);
        let cpu = of(self.cpu_milli, asked.cpu_milli);
        gpus.min(cpu).min(of(self.memory_mib, asked.memory_mib)) as usize
    }

    pub(crate) fn less(&mut self, asked: Room) {
        self.gpus = self.gpus.saturating_sub(asked.gpus);
        self.cpu_milli = self.cpu_milli.saturating_sub(asked.cpu_milli);
        self.memory_mib = self.memory_mib.saturating_sub(asked.memory_mib);
    }

    pub(crate) fn more(&mut self, asked: Room, most: Room) {
        self.gpus = (self.gpus + asked.gpus).min(most.gpus);
        self.cpu_milli = (self.cpu_milli + asked.cpu_milli).min(most.cpu_milli);
        self.memory_mib = (self.memory_mib + asked.memory_mib).min(most.memory_mib);
    }
}

/// What a job asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Nodes, at least 1.
    pub nodes: u32,
    /// What it takes of each of them.
    pub of_each: Room,
    /// Whether it takes nodes whole, and empty ones alone (`--exclusive`).
    pub whole: bool,
    /// The kinds of nodes that it may have, as a bit mask.
    pub kinds: u64,
    /// Whether its nodes may be of different kinds.
    pub mixes: bool,
}

/// Nodes, what is free on them, and kinds of nodes that a gang may not mix.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    /// What each has. `[num_nodes]`
    pub all: Vec<Room>,
    /// What is free on each; nothing on one that is away. `[num_nodes]`
    pub free: Vec<Room>,
    /// Its kind. `[num_nodes]`
    pub kinds: Vec<u8>,
}

impl Nodes {
    /// Empty nodes.
    #[must_use]
    pub fn new(all: Vec<Room>, kinds: Vec<u8>) -> Nodes {
        Nodes {
            free: all.clone(),
            all,
            kinds,
        }
    }

    /// Whether a job fits on a node.
    fn fits(&self, ask: &Ask, node: usize) -> bool {
        let free = self.free[node];
        ask.kinds >> self.kinds[node] & 1 == 1
            && free.holds(ask.of_each)
            && (!ask.whole || free == self.all[node])
    }

    /// Takes what a job holds.
    pub fn take(&mut self, ask: &Ask, on: &[usize]) {
        for &node in on {
            match ask.whole {
                true => self.free[node] = Room::default(),
                false => self.free[node].less(ask.of_each),
            }
        }
    }

    /// Gives it back.
    pub fn give_back(&mut self, ask: &Ask, on: &[usize]) {
        for &node in on {
            match ask.whole {
                true => self.free[node] = self.all[node],
                false => self.free[node].more(ask.of_each, self.all[node]),
            }
        }
    }

    /// The nodes that a job gets of some, ascending; none where too few fit.
    #[must_use]
    pub fn choose(&self, ask: &Ask, among: &NodeSet) -> Option<Vec<usize>> {
        let fitting: Vec<usize> = among.iter().filter(|node| self.fits(ask, *node)).collect();
        if ask.mixes || ask.nodes == 1 {
            return of_runs(&fitting, ask.nodes as usize);
        }
        let mut kinds: Vec<u8> = fitting.iter().map(|node| self.kinds[*node]).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let of_kind = |kind: u8| {
            fitting
                .iter()
                .copied()
                .filter(move |node| self.kinds[*node] == kind)
        };
        kinds
            .into_iter()
            .find_map(|kind| of_runs(&of_kind(kind).collect::<Vec<_>>(), ask.nodes as usize))
    }
}

/// So many of some ascending nodes: of the runs of neighbours the shortest that is long enough, its first ones; where none is,
/// the longest, and what is left from the others in the same way.
fn of_runs(fitting: &[usize], num: usize) -> Option<Vec<usize>> {
    if fitting.len() < num {
        return None;
    }
    let mut runs: Vec<&[usize]> = fitting.chunk_by(|one, next| one + 1 == *next).collect();
    let mut chosen = Vec::with_capacity(num);
    while chosen.len() < num {
        let rest = num - chosen.len();
        let long_enough = runs.iter().enumerate().filter(|(_, run)| run.len() >= rest);
        let shortest = long_enough.min_by_key(|(at, run)| (run.len(), *at));
        let longest = || {
            runs.iter()
                .enumerate()
                .max_by_key(|(at, run)| (run.len(), std::cmp::Reverse(*at)))
        };
        let (at, run) = shortest.or_else(longest)?;
        chosen.extend(run.iter().take(rest));
        runs.remove(at);
    }
    chosen.sort_unstable();
    Some(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_gets_the_first_nodes_of_the_shortest_run_that_is_long_enough() {
        let fitting = [0, 1, 2, 4, 5, 7];
        assert_eq!(of_runs(&fitting, 1), Some(vec![7]));
        assert_eq!(of_runs(&fitting, 2), Some(vec![4, 5]));
        assert_eq!(of_runs(&fitting, 3), Some(vec![0, 1, 2]));
        // The longest run, then the shortest that has the rest.
        assert_eq!(of_runs(&fitting, 4), Some(vec![0, 1, 2, 7]));
        assert_eq!(of_runs(&fitting, 5), Some(vec![0, 1, 2, 4, 5]));
        assert_eq!(of_runs(&fitting, 7), None);
    }

    #[test]
    fn sets_hold_nodes_beyond_one_word() {
        let (one, other) = (NodeSet::of([1, 70]), NodeSet::of([1, 2]));
        assert_eq!((one.num(), one.iter().collect::<Vec<_>>()), (2, vec![1, 70]));
        assert_eq!(one.and(&other).iter().collect::<Vec<_>>(), [1]);
        assert!(one.meets(&other) && !one.is_in(&other) && NodeSet::of([70]).is_in(&one));
        let mut rest = one.clone();
        rest.remove(&other);
        assert_eq!(rest.iter().collect::<Vec<_>>(), [70]);
    }

    #[test]
    fn a_job_that_takes_nodes_whole_needs_an_empty_one_and_gangs_do_not_mix_kinds() {
        let room = Room {
            gpus: 8,
            cpu_milli: 64_000,
            memory_mib: 1000,
        };
        let mut nodes = Nodes::new(vec![room; 4], vec![0, 1, 1, 0]);
        let one = Ask {
            nodes: 1,
            of_each: Room {
                gpus: 1,
                ..Room::default()
            },
            whole: false,
            kinds: 3,
            mixes: false,
        };
        nodes.take(&one, &[0]);
        let whole = Ask { whole: true, ..one };
        assert_eq!(nodes.choose(&whole, &NodeSet::of([0, 1])), Some(vec![1]));
        let gang = Ask { nodes: 2, ..one };
        assert_eq!(nodes.choose(&gang, &NodeSet::of(0..4)), Some(vec![0, 3]));
        assert_eq!(
            nodes.choose(&Ask { mixes: true, ..gang }, &NodeSet::of(0..2)),
            Some(vec![0, 1])
        );
        nodes.give_back(&one, &[0]);
        assert_eq!(nodes.free, nodes.all);
    }
}
