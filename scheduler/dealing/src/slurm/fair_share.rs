//! Fair-share factors by a tree of accounts: Slurm's fair tree, and the classic formula.
//!
//! # Source
//! fair_tree.html and classic_fair_share.html of Slurm's documentation, and `plugins/priority/multifactor/fair_tree.c`: accounts
//! whose levels are equal are merged, and users of equal levels share a rank.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The account at the top of every tree.
pub const ROOT: &str = "root";

/// Most accounts above one another, *ours*; a deeper one hangs from the root.
const DEPTH_MAX: usize = 100;

/// An account, or a user in one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// The account; of a user the one that it uses.
    pub account: String,
    /// The user; empty: the account itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// The account above it; empty for [`ROOT`], and for users.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub parent: String,
    /// Its shares beside its siblings'.
    pub shares: u32,
    /// What it has used at the beginning, billing units times seconds (`RawUsage` of `sshare`).
    #[serde(default)]
    pub usage: u64,
}

/// An account or a user of the tree.
#[derive(Clone, Debug, Default)]
struct Member {
    is_user: bool,
    shares: f64,
    children: Vec<usize>,
    parent: usize,
    usage: f64,
    level: f64,
    factor: f64,
}

/// The tree with its use. Member 0 is the root.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    members: Vec<Member>,
    /// By account and user; an account has no user.
    places: BTreeMap<String, BTreeMap<String, usize>>,
    num_users: u32,
}

impl Tree {
    /// A tree of these; an account whose parent is not among them hangs from the root.
    #[must_use]
    pub fn of(shares: &[Share]) -> Tree {
        let mut tree = Tree {
            members: vec![Member::default()],
            places: BTreeMap::from([(ROOT.into(), BTreeMap::from([(String::new(), 0)]))]),
            num_users: 0,
        };
        let is_top = |share: &&Share| share.account == ROOT && share.user.is_empty();
        tree.members[0].usage = shares.iter().find(is_top).map_or(0.0, |top| top.usage as f64);
        let mut above = vec![""];
        // Accounts first, so that a parent may stand behind its children.
        for share in shares
            .iter()
            .filter(|share| share.user.is_empty() && share.account != ROOT)
        {
            tree.push(share);
            above.push(&share.parent);
        }
        for share in shares.iter().filter(|share| !share.user.is_empty()) {
            tree.push(share);
            above.push(&share.account);
        }
        let own = above.into_iter().enumerate();
        let mut parents: Vec<usize> = own
            .map(|(place, above)| {
                tree.find(above, "")
                    .filter(|parent| *parent != place)
                    .unwrap_or(0)
            })
            .collect();
        for place in 1..parents.len() {
            let up = std::iter::successors(Some(place), |at| Some(parents[*at]));
            // A circle of accounts would never end, and an endless chain is a stack that overflows.
            if !up.take(DEPTH_MAX).any(|at| at == 0) {
                parents[place] = 0;
            }
            tree.members[place].parent = parents[place];
            tree.members[parents[place]].children.push(place);
        }
        tree
    }

    fn push(&mut self, share: &Share) -> usize {
        let is_user = !share.user.is_empty();
        let users = self.places.entry(share.account.clone()).or_default();
        // Of two of a name the first is found.
        users.entry(share.user.clone()).or_insert(self.members.len());
        self.members.push(Member {
            is_user,
            shares: f64::from(share.shares),
            usage: share.usage as f64,
            factor: 1.0,
            ..Member::default()
        });
        self.num_users += u32::from(is_user);
        self.members.len() - 1
    }

    fn find(&self, account: &str, user: &str) -> Option<usize> {
        self.places.get(account)?.get(user).copied()
    }

    /// The member of a user in an account; a user that the tree does not have is added below its account, or below the root, with
    /// one share.
    pub fn member(&mut self, account: &str, user: &str) -> usize {
        if let Some(place) = self.find(account, user) {
            return place;
        }
        let place = self.push(&Share {
            account: account.into(),
            user: user.into(),
            parent: String::new(),
            shares: 1,
            usage: 0,
        });
        let parent = self.find(account, "").unwrap_or(0);
        self.members[place].parent = parent;
        self.members[parent].children.push(place);
        place
    }

    /// Adds use, in billing units times seconds, to a user and to all accounts above it.
    pub fn add(&mut self, mut place: usize, usage: f64) {
        loop {
            self.members[place].usage += usage;
            if place == 0 {
                return;
            }
            place = self.members[place].parent;
        }
    }

    /// Lets all use fade to a part of it.
    pub fn fade(&mut self, left: f64) {
        self.members.iter_mut().for_each(|member| member.usage *= left);
    }

    /// What a user has used.
    #[must_use]
    pub fn usage(&self, place: usize) -> f64 {
        self.members[place].usage
    }

    /// The factor of a user, 0 to 1, as of the last [`Tree::rank`].
    #[must_use]
    pub fn factor(&self, place: usize) -> f64 {
        self.members[place].factor
    }

    /// Computes the factors from the use so far.
    pub fn rank(&mut self, is_fair_tree: bool) {
        if !is_fair_tree {
            self.classic(0, (1.0, 1.0));
            return;
        }
        for place in 0..self.members.len() {
            let siblings_shares = self.shares_below(place);
            let above = self.members[place].usage;
            for child in self.members[place].children.clone() {
                let member = &mut self.members[child];
                member.level = match (member.shares > 0.0, member.usage > 0.0) {
                    (false, _) => 0.0,
                    (true, false) => f64::INFINITY,
                    (true, true) => (member.shares / siblings_shares) / (member.usage / above),
                };
            }
        }
        let mut ranks = (self.num_users, self.num_users);
        let top = self.members[0].children.clone();
        self.rank_siblings(top, &mut ranks, false);
    }

    fn shares_below(&self, place: usize) -> f64 {
        self.members[place]
            .children
            .iter()
            .map(|child| self.members[*child].shares)
            .sum()
    }

    /// Ranks users in the order of their levels: (rank of the last one, next rank).
    fn rank_siblings(&mut self, mut siblings: Vec<usize>, ranks: &mut (u32, u32), mut is_account_tied: bool) {
        let key = |place: &usize| (self.members[*place].level, self.members[*place].is_user);
        siblings.sort_by(|one, other| {
            let (one, other) = (key(one), key(other));
            other.0.total_cmp(&one.0).then(other.1.cmp(&one.1))
        });
        let (mut before, mut at) = (None, 0);
        while at < siblings.len() {
            let place = siblings[at];
            let level = self.members[place].level;
            let is_tied = is_account_tied || before == Some(level);
            is_account_tied = false;
            at += 1;
            if self.members[place].is_user {
                if !is_tied {
                    ranks.0 = ranks.1;
                }
                self.members[place].factor = f64::from(ranks.0) / f64::from(self.num_users.max(1));
                ranks.1 = ranks.1.saturating_sub(1);
            } else {
                let mut below = self.members[place].children.clone();
                while let Some(next) = siblings
                    .get(at)
                    .filter(|next| self.members[**next].level == level)
                {
                    below.extend(&self.members[*next].children);
                    at += 1;
                }
                self.rank_siblings(below, ranks, is_tied);
            }
            before = Some(level);
        }
    }

    /// The classic formula, 2^-(effective use / normalised shares), below a member of this normalised share and effective use.
    fn classic(&mut self, place: usize, (share, used): (f64, f64)) {
        let all = self.members[0].usage;
        let siblings_shares = self.shares_below(place).max(f64::MIN_POSITIVE);
        for child in self.members[place].children.clone() {
            let part = self.members[child].shares / siblings_shares;
            let own = if all > 0.0 {
                self.members[child].usage / all
            } else {
                0.0
            };
            let own = if place == 0 {
                own
            } else {
                own + (used - own).max(0.0) * part
            };
            let share = share * part;
            let ratio = if share > 0.0 { own / share } else { f64::INFINITY };
            self.members[child].factor = pleach_scheduler::portable_math::pow(2.0, -ratio.min(1000.0));
            self.classic(child, (share, own));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(account: &str, user: &str, shares: u32) -> Share {
        let parent = if user.is_empty() { ROOT } else { "" };
        Share {
            account: account.into(),
            user: user.into(),
            parent: parent.into(),
            shares,
            usage: 0,
        }
    }

    #[test]
    fn a_fair_tree_ranks_accounts_before_users_and_equal_users_share_a_rank() {
        // Shares 60:40.
        let mut tree = Tree::of(&[
            share("a", "", 60),
            share("b", "", 40),
            share("a", "x", 1),
            share("a", "y", 1),
            share("b", "z", 1),
        ]);
        let [x, y, z] =
            [("a", "x"), ("a", "y"), ("b", "z")].map(|(account, user)| tree.member(account, user));
        tree.rank(true);
        assert_eq!(
            [x, y, z].map(|user| tree.factor(user)),
            [1.0; 3],
            "nothing is used: all are first"
        );
        tree.add(x, 60.0);
        tree.add(z, 20.0);
        tree.rank(true);
        // Of 80 a has used 60, all by x, and b 20. b has a level of .4 / .25 = 1.6, a .6 / .75 = .8: z is first, then y, x last.
        assert_eq!(
            [x, y, z].map(|user| tree.factor(user)),
            [1.0 / 3.0, 2.0 / 3.0, 1.0]
        );
        tree.fade(0.5);
        assert_eq!((tree.usage(x), tree.usage(0)), (30.0, 40.0));
    }

    #[test]
    fn classic_shares_halve_where_use_is_the_share() {
        let mut tree = Tree::of(&[
            share("a", "", 1),
            share("b", "", 1),
            share("a", "x", 1),
            share("b", "y", 1),
        ]);
        let (x, y) = (tree.member("a", "x"), tree.member("b", "y"));
        tree.add(x, 50.0);
        tree.add(y, 50.0);
        tree.rank(false);
        assert_eq!((tree.factor(x), tree.factor(y)), (0.5, 0.5));
    }

    #[test]
    fn accounts_in_a_circle_or_a_long_chain_and_unknown_users_hang_from_the_root() {
        let circle = |account: &str, parent: &str| Share {
            parent: parent.into(),
            ..share(account, "", 1)
        };
        let chain = (0..50_000).map(|number| circle(&format!("c{number}"), &format!("c{}", number + 1)));
        let accounts = [circle("a", "b"), circle("b", "a")].into_iter().chain(chain);
        let mut tree = Tree::of(&accounts.collect::<Vec<_>>());
        let user = tree.member("nowhere", "x");
        tree.add(user, 1.0);
        for is_fair_tree in [true, false] {
            tree.rank(is_fair_tree);
            assert!((0.0..=1.0).contains(&tree.factor(user)));
        }
    }
}
