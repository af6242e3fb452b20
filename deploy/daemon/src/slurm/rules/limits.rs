//! Limits of accounts, users and QOS in force, and what of them is left: `scontrol show assoc_mgr`, which asks no database.
//!
//! # Source
//! Lines of Slurm 22.05: `GrpTRES=gres/gpu=2(1)` is a limit and what is used of it, `N(1)` no limit. An account's limits hold for all
//! accounts below it.

use std::collections::BTreeMap;

use super::book::Book;
use pleach_site::slurm::{sums, values};

/// Accounts above one another; a longer chain is a circle.
const DEPTH_MAX: usize = 64;

/// Limits of what jobs take together, and of each of them.
const SUMS: [&str; 6] = [
    "GrpTRES",
    "GrpJobs",
    "MaxJobs",
    "GrpTRESRunMins",
    "GrpTRESMins",
    "GrpWall",
];
const OF_A_JOB: [&str; 3] = ["MaxTRESPJ", "MaxTRESPN", "MaxTRESMinsPJ"];
const WALL: &str = "MaxWallPJ";

/// What of a line is a limit that bounds something.
fn in_force<'a>(mut values: BTreeMap<&'a str, &'a str>) -> BTreeMap<&'a str, &'a str> {
    let bounds = |entry: &str| {
        let value = entry.rsplit('=').next().unwrap_or_default();
        !value.is_empty() && !value.starts_with('N')
    };
    values.retain(|key, text| {
        let is_one = *key == WALL || SUMS.contains(key) || OF_A_JOB.contains(key);
        is_one && text.split(',').any(bounds)
    });
    values
}

/// What a job is charged to, and what it takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Payer<'a> {
    pub(crate) user: &'a str,
    pub(crate) account: &'a str,
    pub(crate) partition: &'a str,
    pub(crate) qos: &'a str,
    /// CPUs, memory in MiB, nodes, GPUs, by Slurm's names.
    pub(crate) takes: BTreeMap<&'a str, u64>,
    pub(crate) limit_s: Option<i64>,
}

impl Payer<'_> {
    /// The time limit, min.
    fn minutes(&self) -> u64 {
        self.limit_s
            .map_or(u64::from(u32::MAX), |limit_s| limit_s.max(0) as u64 / 60)
    }
}

/// Limits by what they hold for.
#[derive(Debug, Default)]
pub(crate) struct Limits<'a> {
    /// By account, user and partition, the latter two empty where they hold for all.
    associations: BTreeMap<(&'a str, &'a str, &'a str), Association<'a>>,
    qos: BTreeMap<&'a str, Qos<'a>>,
    /// Numbers of users by name: limits of a QOS have them by number.
    numbers: BTreeMap<&'a str, &'a str>,
    /// Whether any association has one.
    has_any: bool,
}

#[derive(Debug)]
struct Association<'a> {
    parent: &'a str,
    values: BTreeMap<&'a str, &'a str>,
}

#[derive(Debug)]
struct Qos<'a> {
    values: BTreeMap<&'a str, &'a str>,
    /// What each account and each user has in use, by name.
    of_accounts: BTreeMap<&'a str, BTreeMap<&'a str, &'a str>>,
    of_users: BTreeMap<&'a str, BTreeMap<&'a str, &'a str>>,
}

impl<'a> Limits<'a> {
    /// From what `scontrol -o show assoc_mgr flags=assoc,qos` printed. What is no limit is left out: Slurm refuses, and is heard.
    pub(crate) fn read(text: &'a str) -> Limits<'a> {
        let mut limits = Limits::default();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("QOS=") {
                let name = rest.split(['(', ' ']).next().unwrap_or_default();
                let (front, accounts) = line.split_once("Account Limits=").unwrap_or((line, ""));
                let (accounts, users) = accounts.split_once("User Limits=").unwrap_or((accounts, ""));
                let qos = Qos {
                    values: in_force(values(front)),
                    of_accounts: braces(accounts),
                    of_users: braces(users),
                };
                limits.qos.insert(name, qos);
                continue;
            }
            let values = values(line);
            let of = |key: &str| values.get(key).copied().unwrap_or_default();
            if line.starts_with("ClusterName=") && !of("Account").is_empty() {
                let bare = |text: &'a str| text.split('(').next().unwrap_or_default();
                if let Some((name, number)) = of("UserName").split_once('(') {
                    limits.numbers.insert(name, number.trim_end_matches(')'));
                }
                let key = (of("Account"), bare(of("UserName")), of("Partition"));
                let parent = bare(of("ParentAccount"));
                let values = in_force(values);
                limits.has_any |= !values.is_empty();
                limits.associations.insert(key, Association { parent, values });
            }
        }
        limits
    }

    /// The associations above a job of which some limit is in force, its user's own first.
    fn above<'p>(&'p self, payer: &'p Payer<'_>) -> impl Iterator<Item = (String, &'p Association<'a>)> {
        let of_user = [payer.partition, ""]
            .into_iter()
            .find_map(|partition| self.associations.get(&(payer.account, payer.user, partition)));
        let mut next = payer.account;
        let accounts = std::iter::from_fn(move || {
            let (account, found) = (next, self.associations.get(&(next, "", ""))?);
            next = found.parent;
            Some((account, found))
        });
        let bounds = |association: &Association<'_>| !association.values.is_empty();
        let of_user = of_user.filter(|association| bounds(association)).into_iter();
        let of_user = of_user.map(|own| (format!("user {} in account {}", payer.user, payer.account), own));
        let accounts = accounts
            .take(DEPTH_MAX)
            .filter(move |(_, association)| bounds(association));
        of_user.chain(accounts.map(|(name, association)| (format!("account {name}"), association)))
    }

    /// Whether any limit may hold for a job.
    pub(crate) fn bind(&self, payer: &Payer<'_>) -> bool {
        let is_bound =
            |qos: &Qos<'_>| !(qos.values.is_empty() && qos.of_accounts.is_empty() && qos.of_users.is_empty());
        self.qos.get(payer.qos).is_some_and(is_bound) || self.has_any && self.above(payer).next().is_some()
    }

    /// Notes in the book what a job takes of the limits that hold for it; why it can never start, if so, as what "it" does.
    pub(crate) fn note(&self, payer: &Payer<'_>, book: &mut Book) -> Option<String> {
        let mut never = None;
        for (whose, association) in self.above(payer) {
            never = never.or(charge(&association.values, &whose, payer, book));
        }
        let Some(qos) = self.qos.get(payer.qos) else {
            return never;
        };
        let whose = format!("QOS {}", payer.qos);
        never = never.or(charge(&qos.values, &whose, payer, book));
        for (of, name, suffix) in [
            (&qos.of_accounts, payer.account, "PA"),
            (&qos.of_users, payer.user, "PU"),
        ] {
            // The limit is the same for all of them; those with nothing in use are not listed.
            let number = self.numbers.get(name).filter(|_| suffix == "PU");
            let own = of.get(name).or_else(|| of.get(*number?));
            let Some(any) = own.or_else(|| of.values().next()) else {
                continue;
            };
            let whose = format!("{name} in {whose}");
            for key in ["MaxTRES", "MaxJobs"] {
                let key = format!("{key}{suffix}");
                let text = any.get(key.as_str()).copied().unwrap_or_default();
                charge_sums(&key, text, own.is_some(), &whose, payer, book);
            }
        }
        never
    }
}

/// `name={Key=value Key=value} other={...}`, by name.
fn braces(text: &str) -> BTreeMap<&str, BTreeMap<&str, &str>> {
    let parts = text.split('}').filter_map(|part| part.split_once("={"));
    let bare = |name: &'_ str| name.trim().split('(').next().unwrap_or_default().len();
    parts
        .map(|(name, inside)| (&name.trim()[..bare(name)], values(inside)))
        .collect()
}

/// Notes the sums of one line; why a job can never start under it.
fn charge(values: &BTreeMap<&str, &str>, whose: &str, payer: &Payer<'_>, book: &mut Book) -> Option<String> {
    for key in SUMS {
        let text = values.get(key).copied().unwrap_or_default();
        charge_sums(key, text, true, whose, payer, book);
    }
    for key in OF_A_JOB {
        for (name, most) in sums(values.get(key).copied().unwrap_or_default()) {
            let asked = payer.takes.get(name).copied().unwrap_or(0);
            let takes = match key {
                "MaxTRESPN" => asked.div_ceil(payer.takes.get("node").copied().unwrap_or(1).max(1)),
                "MaxTRESMinsPJ" => asked.saturating_mul(payer.minutes()),
                _ => asked,
            };
            if takes > most {
                return Some(format!("asks for {name}={takes}, and {key} of {whose} is {most}"));
            }
        }
    }
    let wall = values.get(WALL).and_then(|text| text.parse::<i64>().ok());
    if let Some(most) = wall
        && payer
            .limit_s
            .is_none_or(|limit_s| limit_s > most.saturating_mul(60))
    {
        return Some(format!(
            "has a longer limit than MaxWallPJ of {whose}, {most} min"
        ));
    }
    None
}

/// Notes `limit(used)` of a key, or a list of them by name.
fn charge_sums(key: &str, text: &str, is_own: bool, whose: &str, payer: &Payer<'_>, book: &mut Book) {
    for entry in text.split(',').filter(|entry| !entry.is_empty()) {
        let (name, sum) = match entry.rsplit_once('=') {
            Some((name, sum)) => (name, sum),
            None => ("", entry),
        };
        let (limit, used) = sum.split_once('(').unwrap_or((sum, "0)"));
        let (Ok(limit), Ok(used)) = (limit.parse::<f64>(), used.trim_end_matches(')').parse::<f64>()) else {
            continue;
        };
        let left = (limit - if is_own { used } else { 0.0 }).max(0.0) as u64;
        let takes = match name {
            "" => 1,
            name => payer.takes.get(name).copied().unwrap_or(0),
        };
        let takes = match key {
            "GrpTRESRunMins" => takes.saturating_mul(payer.minutes()),
            // Only where accounting is "safe" Slurm wants enough for the whole job to be left; some is wanted always.
            "GrpTRESMins" => takes.min(1),
            _ => takes,
        };
        let name = if name.is_empty() {
            String::new()
        } else {
            format!("={name}")
        };
        book.takes(&format!("{key}{name} of {whose}"), left, takes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Current Association Manager state\n\
        ClusterName=c Account=root UserName= Partition= ParentAccount= GrpJobs=N(2) GrpTRES=cpu=N(19),gres/gpu=N(5) MaxJobs=\n\
        ClusterName=c Account=dept UserName= Partition= ParentAccount=root(1) GrpTRES=cpu=N(1),mem=N(0),gres/gpu=8(5) MaxJobs=\n\
        ClusterName=c Account=a1 UserName= Partition= ParentAccount=dept(2) GrpTRES=gres/gpu=N(2) GrpJobs=4(4) MaxJobs=\n\
        ClusterName=c Account=a1 UserName=ann(1001) Partition= ParentAccount= GrpTRES=gres/gpu=4(1) MaxJobs=3(2) MaxTRESPJ=gres/gpu=2\n\
        QOS=hi(2) GrpJobs=N(0) MaxWallPJ=60 Account Limits=No Accounts User Limits= 1002={MaxJobsPU=N(2) MaxTRESPU=cpu=N(1),gres/gpu=2(2)}\n";

    fn of<'a>(account: &'a str, gpus: u64, qos: &'a str) -> Payer<'a> {
        Payer {
            user: "ann",
            account,
            partition: "main",
            qos,
            takes: [("gres/gpu", gpus), ("cpu", 1)].into(),
            limit_s: Some(600),
        }
    }

    fn noted(payer: &Payer<'_>) -> (Vec<(String, u64, u64)>, Option<String>) {
        let (limits, mut book) = (Limits::read(TEXT), Book::default());
        let never = limits.note(payer, &mut book);
        let terms = book.terms();
        let site = book.site();
        let told = |(row, takes): &(u32, u64)| {
            let allowance = &site.allowances[*row as usize];
            (allowance.what.clone(), allowance.left, *takes)
        };
        (terms.takes.iter().map(told).collect(), never)
    }

    #[test]
    fn what_is_left_is_told_of_user_account_and_all_above() {
        let (takes, never) = noted(&of("a1", 1, "normal"));
        let told: Vec<(&str, u64, u64)> = takes
            .iter()
            .map(|(what, left, takes)| (what.as_str(), *left, *takes))
            .collect();
        assert_eq!(
            told,
            [
                ("GrpTRES=gres/gpu of user ann in account a1", 3, 1),
                ("MaxJobs of user ann in account a1", 1, 1),
                ("GrpJobs of account a1", 0, 1),
                ("GrpTRES=gres/gpu of account dept", 3, 1),
            ]
        );
        assert_eq!(never, None);
        assert!(noted(&of("other", 1, "normal")).0.is_empty());
    }

    #[test]
    fn a_job_that_asks_for_more_than_it_may_never_starts_and_its_user_is_told_so() {
        let never = noted(&of("a1", 3, "normal")).1.unwrap();
        assert!(never.contains("gres/gpu=3") && never.contains("is 2"), "{never}");
        let long = Payer {
            limit_s: Some(3601),
            ..of("x", 1, "hi")
        };
        assert!(noted(&long).1.unwrap().contains("60 min"));
    }

    #[test]
    fn budgets_of_time_and_limits_of_nodes_and_of_minutes_are_read() {
        let look = |limits: &str| {
            let text = format!("ClusterName=c Account=a1 UserName= Partition= ParentAccount= {limits}\n");
            let (limits, mut book) = (Limits::read(&text), Book::default());
            let payer = Payer {
                takes: [("gres/gpu", 4), ("node", 2)].into(),
                ..of("a1", 4, "normal")
            };
            let never = limits.note(&payer, &mut book);
            let terms = book.terms();
            let left: Vec<u64> = book.site().allowances.iter().map(|one| one.left).collect();
            (terms.lacking(&left).is_some(), never.is_some())
        };
        for (limits, found) in [
            ("GrpTRESMins=cpu=N(9),gres/gpu=0(0)", (true, false)),
            ("GrpTRESMins=gres/gpu=100(100)", (true, false)),
            ("GrpTRESMins=gres/gpu=100(20)", (false, false)),
            ("GrpWall=60(60.50)", (true, false)),
            ("GrpWall=N(60.50)", (false, false)),
            ("MaxTRESMinsPJ=gres/gpu=39", (false, true)),
            ("MaxTRESMinsPJ=gres/gpu=40", (false, false)),
            ("MaxTRESPN=gres/gpu=1", (false, true)),
            ("MaxTRESPN=gres/gpu=2", (false, false)),
        ] {
            assert_eq!(look(limits), found, "{limits}");
        }
    }

    #[test]
    fn limits_of_each_user_in_a_qos_are_known_from_any_of_them() {
        let (takes, _) = noted(&of("x", 1, "hi"));
        assert_eq!(takes, [("MaxTRESPU=gres/gpu of ann in QOS hi".to_owned(), 2, 1)]);
        let with_use = TEXT.replace("1002=", "1001=");
        let (limits, mut book) = (Limits::read(&with_use), Book::default());
        limits.note(&of("x", 1, "hi"), &mut book);
        assert_eq!(book.site().allowances[0].left, 0, "of whom numbers are used");
    }

    #[test]
    fn whatever_is_printed_nothing_fails() {
        for text in [
            "",
            "QOS=",
            "QOS=x User Limits={={}}",
            "ClusterName=c Account=a ParentAccount=a(1) GrpTRES=gpu=x(y),=(,",
        ] {
            let limits = Limits::read(text);
            limits.note(&of("a", 1, "x"), &mut Book::default());
        }
    }
}
