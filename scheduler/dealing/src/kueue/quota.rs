//! Quotas of ClusterQueues and cohorts as a tree: what is used, what is borrowed and what is still to be had.
//!
//! Amounts are of a flavour and a resource, a *place* in a list of all pairs. A node lends to its parent what its lending limit
//! leaves it to lend, and counts there what its children use beyond what is theirs alone.
//!
//! # Source
//! `pkg/cache/scheduler/resource_node.go` and `fair_sharing.go` of Kueue 0.17.

use std::cmp::Ordering;

/// Resources that are counted: GPUs, CPU and host memory.
pub(super) const RESOURCES: usize = 3;

/// Amounts by place, each above 0.
pub(super) type Amounts = Vec<(usize, i64)>;

/// What a node has of a flavour's resource by itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Quota {
    pub(super) nominal: i64,
    /// Most that it borrows, and most that it lends; none: all that there is.
    pub(super) borrowing: Option<i64>,
    pub(super) lending: Option<i64>,
}

/// A ClusterQueue or a cohort.
#[derive(Clone, Debug)]
struct Node {
    parent: Option<usize>,
    children: Vec<usize>,
    quotas: Vec<Quota>,
    subtree: Vec<i64>,
    usage: Vec<i64>,
    weight: f64,
}

/// What a node uses beyond its quota, of what may be lent: its dominant resource share, in thousandths.
#[derive(Clone, Debug)]
pub(super) struct Share {
    ratio: f64,
    weight: f64,
    /// Places of which it borrows.
    pub(super) borrowed: Vec<usize>,
}

impl Share {
    /// Below every other one.
    pub(super) const LOWEST: Share = Share {
        ratio: -1.0,
        weight: 1.0,
        borrowed: Vec::new(),
    };

    /// Borrowing without a weight is above all that has one.
    pub(super) fn cmp(&self, other: &Share) -> Ordering {
        let key = |share: &Share| match share.weight == 0.0 && share.ratio != 0.0 {
            true => (true, share.ratio),
            false if share.ratio == 0.0 => (false, 0.0),
            false => (false, share.ratio / share.weight),
        };
        let (one, two) = (key(self), key(other));
        one.0.cmp(&two.0).then(one.1.total_cmp(&two.1))
    }
}

/// All ClusterQueues, then all cohorts.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree(Vec<Node>);

impl Tree {
    /// Adds a node; parents may be added later.
    pub(super) fn push(&mut self, parent: Option<usize>, quotas: Vec<Quota>, weight: f64) {
        self.0.push(Node {
            parent,
            children: Vec::new(),
            subtree: quotas.iter().map(|quota| quota.nominal).collect(),
            usage: vec![0; quotas.len()],
            quotas,
            weight,
        });
    }

    /// Ties parents and children, which must not be in a circle, and sums their quotas up.
    pub(super) fn tie(&mut self) {
        for node in 0..self.0.len() {
            if let Some(parent) = self.0[node].parent {
                self.0[parent].children.push(node);
            }
        }
        for node in 0..self.0.len() {
            if self.0[node].parent.is_none() {
                self.sum(node);
            }
        }
    }

    fn sum(&mut self, node: usize) {
        for child in self.0[node].children.clone() {
            self.sum(child);
            for place in 0..self.0[node].quotas.len() {
                self.0[node].subtree[place] += self.0[child].subtree[place] - self.local(child, place);
            }
        }
    }

    pub(super) fn children(&self, node: usize) -> &[usize] {
        &self.0[node].children
    }

    /// Its parent, the parent's, and so on to the root.
    pub(super) fn above(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.0[node].parent, |node| self.0[*node].parent)
    }

    pub(super) fn root(&self, node: usize) -> usize {
        self.above(node).last().unwrap_or(node)
    }

    /// What is its own alone: lending limits keep it from the parent.
    fn local(&self, node: usize, place: usize) -> i64 {
        let limit = self.0[node].quotas[place].lending;
        limit.map_or(0, |limit| (self.0[node].subtree[place] - limit).max(0))
    }

    fn local_left(&self, node: usize, place: usize) -> i64 {
        (self.local(node, place) - self.0[node].usage[place]).max(0)
    }

    fn left_of(&self, node: usize, place: usize) -> i64 {
        let of = &self.0[node];
        let Some(parent) = of.parent else {
            return of.subtree[place] - of.usage[place];
        };
        let mut above = self.left_of(parent, place);
        if let Some(limit) = of.quotas[place].borrowing {
            let local = self.local(node, place);
            let stored = of.subtree[place] - local - (of.usage[place] - local).max(0);
            above = above.min(stored.saturating_add(limit));
        }
        self.local_left(node, place) + above
    }

    /// What a node may still take, borrowed or not.
    pub(super) fn left(&self, node: usize, place: usize) -> i64 {
        self.left_of(node, place).max(0)
    }

    /// What it could take if nothing were used.
    pub(super) fn most(&self, node: usize, place: usize) -> i64 {
        let of = &self.0[node];
        let Some(parent) = of.parent else {
            return of.subtree[place];
        };
        let most = self.local(node, place) + self.most(parent, place);
        let limit = of.quotas[place].borrowing;
        limit.map_or(most, |limit| most.min(of.subtree[place].saturating_add(limit)))
    }

    pub(super) fn quota(&self, node: usize, place: usize) -> Quota {
        self.0[node].quotas[place]
    }

    pub(super) fn usage(&self, node: usize, place: usize) -> i64 {
        self.0[node].usage[place]
    }

    /// Whether it borrows when it uses so much more.
    pub(super) fn borrows(&self, node: usize, place: usize, more: i64) -> bool {
        self.0[node].usage[place] + more > self.0[node].subtree[place]
    }

    /// Whether it uses no more than its own of all these places.
    pub(super) fn is_within(&self, node: usize, places: &[usize]) -> bool {
        places.iter().all(|place| !self.borrows(node, *place, 0))
    }

    pub(super) fn add(&mut self, node: usize, amounts: &[(usize, i64)]) {
        for (place, amount) in amounts {
            let (mut node, mut more) = (Some(node), *amount);
            while let Some(at) = node.filter(|_| more > 0) {
                let beyond = more - self.local_left(at, *place);
                self.0[at].usage[*place] += more;
                (node, more) = (self.0[at].parent, beyond);
            }
        }
    }

    pub(super) fn remove(&mut self, node: usize, amounts: &[(usize, i64)]) {
        for (place, amount) in amounts {
            let (mut node, mut less) = (Some(node), *amount);
            while let Some(at) = node.filter(|_| less > 0) {
                let above = self.0[at].usage[*place] - self.local(at, *place);
                self.0[at].usage[*place] -= less;
                (node, less) = (self.0[at].parent, less.min(above));
            }
        }
    }

    /// Whether amounts fit a node; without borrowing, within its own.
    pub(super) fn fits(&self, node: usize, amounts: &[(usize, i64)], borrowing: bool) -> bool {
        amounts.iter().all(|(place, amount)| {
            (borrowing || !self.borrows(node, *place, *amount)) && *amount <= self.left(node, *place)
        })
    }

    /// Whether amounts are within a node's quota, and what of them its parent would have to give.
    pub(super) fn within(&self, node: usize, amounts: &[(usize, i64)]) -> (bool, Amounts) {
        let fit = amounts
            .iter()
            .all(|(place, amount)| !self.borrows(node, *place, *amount));
        let rest = |(place, amount): &(usize, i64)| (*place, (amount - self.local_left(node, *place)).max(0));
        (fit, amounts.iter().map(rest).collect())
    }

    fn height(&self, node: usize, num_queues: usize) -> u32 {
        let children = self.0[node].children.iter();
        let heights = children.map(|child| match *child < num_queues {
            true => 1,
            false => self.height(*child, num_queues) + 1,
        });
        heights.max().unwrap_or(0)
    }

    /// How far up a ClusterQueue has to borrow an amount, 0: not at all; and whether there are queues beyond that it might be
    /// taken from.
    pub(super) fn borrowing_height(
        &self,
        queue: usize,
        num_queues: usize,
        (place, amount): (usize, i64),
    ) -> (u32, bool) {
        if !self.borrows(queue, place, amount) || self.0[queue].parent.is_none() {
            return (0, self.0[queue].parent.is_some());
        }
        let mut rest = amount - self.local_left(queue, place);
        let mut top = queue;
        for node in self.above(queue) {
            if !self.borrows(node, place, rest) {
                return (self.height(node, num_queues), self.0[node].parent.is_some());
            }
            rest -= self.local_left(node, place);
            top = node;
        }
        (self.height(top, num_queues), false)
    }

    /// Its dominant resource share.
    pub(super) fn share(&self, node: usize) -> Share {
        let of = &self.0[node];
        let mut share = Share {
            ratio: 0.0,
            weight: of.weight,
            borrowed: Vec::new(),
        };
        let Some(parent) = of.parent else {
            return share;
        };
        for resource in 0..RESOURCES {
            let (mut borrowed, mut lendable) = (0, 0);
            for place in (resource..of.quotas.len()).step_by(RESOURCES) {
                let beyond = of.usage[place] - of.subtree[place];
                if beyond > 0 {
                    borrowed += beyond;
                    share.borrowed.push(place);
                }
                lendable += self.most(parent, place);
            }
            if borrowed > 0 && lendable > 0 {
                share.ratio = share.ratio.max(borrowed as f64 * 1000.0 / lendable as f64);
            }
        }
        share
    }
}
