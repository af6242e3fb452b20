//! A site's `slurm.conf` as a policy: the settings of the policy `slurm`, from the file and from four that may lie beside it.
//!
//! `CLUSTER.cfg` is what `sacctmgr dump CLUSTER` writes (accounts, shares, their limits), `qos.txt` what `sacctmgr -P show qos`
//! prints (priorities and limits of qualities of service), `sshare.txt` what `sshare -a -l -P` printed when the list begins (use),
//! `sprio.txt` the weights that are in force (`slurm_conf.rs`). Nodes are numbered as the importer numbers those with GPUs: equal
//! ones together, in the order of the file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pleach_dealing::slurm::{
    Each, Limit, Partition, Preempt, Priority, Qos, ROOT, Scope, Share, SlurmConfig,
};
use pleach_policies::{Door, PolicySpec};
use pleach_scheduler::Problem;
use pleach_site::slurm::{Association, Conf, Row, associations, devices, expand, is_null, printed, span_s};
use serde_json::Value;

use crate::slurm_conf::{beside, conf_text, parsed};

/// The policy's name, and how such a file's name ends.
const NAME: &str = "slurm";
const ENDING: &str = "conf";
/// Use of accounts and users at the beginning.
pub(crate) const USE: &str = "sshare.txt";
/// From an event to the pass of the main scheduler, s, and the part of `batch_sched_delay` that comes on top. *Fitted* on two
/// recorded lists, one with `batch_sched_delay=0`, one with the default.
const LAG: (f64, f64) = (0.5, 0.5);

/// The policy of a `slurm.conf`; none where a path is no such file.
pub(crate) fn open(path: &Path) -> Option<Result<PolicySpec, Problem>> {
    (path.extension()? == ENDING).then(|| {
        let value = serde_json::to_value(read(path)?).unwrap_or(Value::Null);
        Door::SIMULATOR.planner(NAME, value)
    })
}

/// The settings of a `slurm.conf` and of what lies beside it.
///
/// # Errors
/// A file that cannot be read, is too long or is none; a value that is none, with its line or key.
pub fn read(path: &Path) -> Result<SlurmConfig, Problem> {
    let conf = parsed(path, &conf_text(path)?)?;
    let beside = |name: &str| beside(path, name);
    let dump = beside(&format!("{}.cfg", conf.value("ClusterName").unwrap_or("cluster")))?;
    let qos = beside("qos.txt")?;
    let dump = associations(&dump.unwrap_or_default());
    let dump =
        dump.ok_or_else(|| Problem::data(path, "the dump beside it has more than 100,000 associations"))?;
    let mut config = of(&conf, &dump, &printed(&qos.unwrap_or_default()))?;
    if let Some(text) = beside(USE)? {
        add_use(&mut config.shares, &text).map_err(|told| Problem::data(path.with_file_name(USE), told))?;
    }
    config.validate()?;
    Ok(config)
}

/// The settings that a `slurm.conf`, a dump of associations and a table of qualities of service mean.
///
/// # Errors
/// A value that is none.
pub fn of(
    conf: &Conf,
    dump: &[Association],
    qos: &[BTreeMap<String, String>],
) -> Result<SlurmConfig, Problem> {
    let own = SlurmConfig::default();
    let parameter = |word: &str, otherwise: f64| match conf.word("SchedulerParameters", word) {
        Some(text) => number(&format!("SchedulerParameters={word}"), text),
        None => Ok(otherwise),
    };
    let delay_s = parameter("batch_sched_delay", 3.0)?;
    let enforced = conf
        .value("AccountingStorageEnforce")
        .unwrap_or_default()
        .to_ascii_lowercase();
    let multifactor = conf
        .value("PriorityType")
        .is_none_or(|kind| kind.ends_with("multifactor"));
    Ok(SlurmConfig {
        backfill: conf
            .value("SchedulerType")
            .is_none_or(|kind| !kind.ends_with("builtin")),
        bf_interval_s: parameter("bf_interval", own.bf_interval_s)?,
        bf_resolution_s: parameter("bf_resolution", f64::from(own.bf_resolution_s))? as u32,
        bf_window_s: (parameter("bf_window", f64::from(own.bf_window_s) / 60.0)? * 60.0) as u32,
        bf_max_job_test: parameter("bf_max_job_test", f64::from(own.bf_max_job_test))? as u32,
        default_queue_depth: parameter("default_queue_depth", f64::from(own.default_queue_depth))? as u32,
        main_lag_s: LAG.0 + LAG.1 * delay_s,
        priority: multifactor.then(|| priority(conf)).transpose()?,
        enforce_limits: ["limits", "safe", "all"]
            .iter()
            .any(|word| enforced.contains(word)),
        preempt: match conf.value("PreemptType").unwrap_or_default() {
            kind if kind.ends_with("partition_prio") => Preempt::Partition,
            kind if kind.ends_with("qos") => Preempt::Qos,
            _ => Preempt::None,
        },
        partitions: partitions(conf)?,
        qos: qualities(conf, qos),
        shares: shares(dump),
        limits: limits(dump, qos),
        features: features(conf),
        licences: licences(conf)?,
        ..own
    })
}

/// Whether jobs of such a `PreemptMode` go for others; where it says nothing, that of the cluster counts.
fn is_preemptable(conf: &Conf, own: &str) -> bool {
    let mode = match own {
        "" | "cluster" => conf.value("PreemptMode").unwrap_or_default(),
        own => own,
    };
    let mode = mode.to_ascii_lowercase();
    mode.contains("requeue") || mode.contains("cancel")
}

fn qualities(conf: &Conf, rows: &[BTreeMap<String, String>]) -> Vec<Qos> {
    let named = |name: &&str| rows.iter().find(|row| cell(row, "name") == *name);
    let goes = |name: &&str| named(name).is_some_and(|row| is_preemptable(conf, cell(row, "preemptmode")));
    rows.iter()
        .map(|row| Qos {
            name: cell(row, "name").to_owned(),
            priority: whole(row, "priority").unwrap_or(0),
            preempts: cell(row, "preempt")
                .split(',')
                .filter(goes)
                .map(str::to_owned)
                .collect(),
        })
        .collect()
}

fn number(key: &str, text: &str) -> Result<f64, Problem> {
    let value = text
        .parse::<f64>()
        .ok()
        .filter(|value| (0.0..=1e10).contains(value));
    value.ok_or_else(|| Problem::new(key, text, "a number from 0 to 1e10", "as slurm.conf(5) has it"))
}

/// A span in seconds; a bare number is minutes.
fn span(conf: &Conf, key: &str, otherwise_s: f64) -> Result<f64, Problem> {
    let Some(text) = conf.value(key) else {
        return Ok(otherwise_s);
    };
    let minutes = text.parse::<u32>().ok().map(|minutes| f64::from(minutes) * 60.0);
    let span_s = minutes.or_else(|| span_s(text));
    span_s.ok_or_else(|| {
        Problem::new(
            key,
            text,
            "minutes, or [DAYS-]HH:MM:SS",
            "as slurm.conf(5) has it",
        )
    })
}

fn priority(conf: &Conf) -> Result<Priority, Problem> {
    let own = Priority::default();
    let weight = |name: &str| {
        let key = format!("PriorityWeight{name}");
        conf.value(&key)
            .map_or(Ok(0.0), |text| number(&key, text))
            .map(|weight| weight as u32)
    };
    let of_tres = |name: &str| match conf.word("PriorityWeightTRES", name) {
        Some(text) => number("PriorityWeightTRES", text).map(|weight| weight as u32),
        None => Ok(0),
    };
    Ok(Priority {
        age: weight("Age")?,
        fair_share: weight("Fairshare")?,
        size: weight("JobSize")?,
        partition: weight("Partition")?,
        qos: weight("QOS")?,
        gpu: of_tres("GRES/gpu")?,
        cpu: of_tres("CPU")?,
        max_age_s: span(conf, "PriorityMaxAge", own.max_age_s)?,
        calc_period_s: span(conf, "PriorityCalcPeriod", own.calc_period_s)?,
        half_life_s: span(conf, "PriorityDecayHalfLife", own.half_life_s)?,
        favor_small: conf
            .value("PriorityFavorSmall")
            .is_some_and(|word| word.eq_ignore_ascii_case("yes")),
        fair_tree: conf.word("PriorityFlags", "NO_FAIR_TREE").is_none(),
        ..own
    })
}

/// The names of the nodes with GPUs in the order in which the importer numbers them.
fn names(conf: &Conf) -> Vec<&str> {
    let key = |key: &str, row: &Row| row.get(key).cloned().unwrap_or_default();
    let mut groups: Vec<([String; 3], Vec<&str>)> = Vec::new();
    for (name, row) in &conf.nodes {
        let gres = key("gres", row);
        if !devices(&gres)
            .iter()
            .any(|device| device.kind == "gpu" && device.num > 0)
        {
            continue;
        }
        let like = [gres, key("cpus", row), key("realmemory", row)];
        match groups.iter_mut().find(|(found, _)| *found == like) {
            Some((_, names)) => names.push(name),
            None => groups.push((like, vec![name])),
        }
    }
    groups.into_iter().flat_map(|(_, names)| names).collect()
}

/// Features of the nodes with GPUs.
fn features(conf: &Conf) -> Vec<Vec<String>> {
    let rows: BTreeMap<&str, &Row> = conf
        .nodes
        .iter()
        .map(|(name, row)| (name.as_str(), row))
        .collect();
    let of = |name: &str| {
        let row = rows.get(name);
        let text = row.and_then(|row| row.get("features").or_else(|| row.get("feature")));
        text.map_or(Vec::new(), |text| text.split(',').map(str::to_owned).collect())
    };
    names(conf).into_iter().map(of).collect()
}

/// How many there are of each licence of the cluster.
fn licences(conf: &Conf) -> Result<BTreeMap<String, u64>, Problem> {
    let text = conf.value("Licenses").unwrap_or_default();
    let all = pleach_dealing::slurm::licences(text)
        .ok_or_else(|| Problem::new("Licenses", text, "NAME:NUMBER,...", "as slurm.conf(5) has it"))?;
    Ok(all
        .into_iter()
        .map(|(name, num)| (name.to_owned(), num))
        .collect())
}

fn partitions(conf: &Conf) -> Result<Vec<Partition>, Problem> {
    let names = names(conf);
    let numbers: BTreeMap<&str, u32> = names
        .iter()
        .zip(0..)
        .map(|(name, number)| (*name, number))
        .collect();
    let mut found = Vec::new();
    for (name, row) in &conf.partitions {
        let cell = |key: &str| row.get(key).map_or("", String::as_str);
        let listed = match cell("nodes") {
            all if all.eq_ignore_ascii_case("all") || all.is_empty() => {
                names.iter().map(|name| (*name).to_owned()).collect()
            }
            list => expand(list).map_err(|error| {
                Problem::new(
                    format!("PartitionName={name}"),
                    list,
                    "a list of nodes",
                    error.to_string(),
                )
            })?,
        };
        let nodes: Vec<u32> = listed
            .iter()
            .filter_map(|name| numbers.get(name.as_str()).copied())
            .collect();
        if nodes.is_empty() {
            // It has no GPU: no job of a list of jobs with GPUs is in it.
            continue;
        }
        let whole = |key: &str, otherwise: u32| cell(key).parse().unwrap_or(otherwise);
        let partition = Partition {
            name: name.clone(),
            nodes,
            tier: whole("prioritytier", 1),
            job_factor: whole("priorityjobfactor", 1),
            preemptable: is_preemptable(conf, cell("preemptmode")),
            billing: billing(cell("tresbillingweights"))?,
        };
        // The default one is that of jobs which name none.
        match cell("default").eq_ignore_ascii_case("yes") {
            true => found.insert(0, partition),
            false => found.push(partition),
        }
    }
    Ok(found)
}

/// What a core, a GPU and a GiB cost: `CPU=1.0,Mem=0.25G,GRES/gpu=2.0`.
fn billing(text: &str) -> Result<[f64; 3], Problem> {
    if text.is_empty() {
        return Ok([1.0, 0.0, 0.0]);
    }
    let mut weights = [0.0; 3];
    for (name, weight) in text.split(',').filter_map(|part| part.split_once('=')) {
        let digits = weight.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let per_gib = match &weight[digits.len()..] {
            "" | "M" | "m" if name.eq_ignore_ascii_case("mem") => 1024.0,
            "T" | "t" => 1.0 / 1024.0,
            _ => 1.0,
        };
        let place = match name.to_ascii_lowercase().as_str() {
            "cpu" => 0,
            "gres/gpu" => 1,
            "mem" => 2,
            _ => continue,
        };
        weights[place] = number("TRESBillingWeights", digits)? * per_gib;
    }
    Ok(weights)
}

fn shares(dump: &[Association]) -> Vec<Share> {
    let share = |one: &Association| {
        let (account, user, parent) = match one.is_user {
            true => (&one.parent, one.name.clone(), String::new()),
            false => (&one.name, String::new(), one.parent.clone()),
        };
        Share {
            account: account.clone(),
            user,
            parent,
            shares: one
                .values
                .get("fairshare")
                .and_then(|text| text.parse().ok())
                .unwrap_or(1),
            usage: 0,
        }
    };
    dump.iter().map(share).collect()
}

/// Adds to accounts and users what `sshare` says that they have used; why it cannot be read, if so.
fn add_use(shares: &mut Vec<Share>, text: &str) -> Result<(), String> {
    let mut used = BTreeMap::new();
    for row in printed(text) {
        let usage = row.get("rawusage").map(|usage| usage.trim().parse::<u64>());
        let Some(Ok(usage)) = usage else {
            return Err("it has no whole number as RawUsage: print it by `sshare -a -l -P`".into());
        };
        used.insert(
            (
                cell(&row, "account").trim().to_owned(),
                cell(&row, "user").to_owned(),
            ),
            usage,
        );
    }
    if !shares
        .iter()
        .any(|share| share.account == ROOT && share.user.is_empty())
    {
        shares.push(Share {
            account: ROOT.to_owned(),
            user: String::new(),
            parent: String::new(),
            shares: 1,
            usage: 0,
        });
    }
    for share in shares {
        let of = used.get(&(share.account.clone(), share.user.clone()));
        share.usage = of.copied().unwrap_or(0);
    }
    Ok(())
}

fn cell<'a>(row: &'a BTreeMap<String, String>, key: &str) -> &'a str {
    row.get(key).map_or("", String::as_str)
}

fn whole(row: &BTreeMap<String, String>, key: &str) -> Option<u32> {
    cell(row, key).parse().ok()
}

/// A limit of these resources and jobs; none where it bounds nothing.
fn limit(tres: &str, jobs: Option<u32>) -> Option<Limit> {
    let of = |name: &str| {
        let mut parts = tres.split(',').filter_map(|part| part.split_once('='));
        parts
            .find(|(found, _)| *found == name)
            .and_then(|(_, most)| most.parse().ok())
    };
    let limit = Limit {
        gpus: of("gres/gpu"),
        cpus: of("cpu"),
        nodes: of("node"),
        jobs,
        ..Limit::default()
    };
    (limit != Limit::default()).then_some(limit)
}

/// Limits of accounts, users and qualities of service. What a quality of service limits at once hides the account's limit of the
/// same.
fn limits(dump: &[Association], qos: &[BTreeMap<String, String>]) -> Vec<Limit> {
    let mut found = Vec::new();
    for row in qos {
        let scope = Scope {
            qos: vec![cell(row, "name").to_owned()],
            ..Scope::default()
        };
        let of = |limit: Option<Limit>, each: Vec<Each>| {
            limit.map(|limit| Limit {
                bounds: scope.clone(),
                counts: scope.clone(),
                each,
                ..limit
            })
        };
        found.extend(of(limit(cell(row, "grptres"), whole(row, "grpjobs")), Vec::new()));
        found.extend(of(
            limit(cell(row, "maxtrespu"), whole(row, "maxjobspu")),
            vec![Each::User],
        ));
        found.extend(of(
            limit(cell(row, "maxtrespa"), whole(row, "maxjobspa")),
            vec![Each::Account],
        ));
    }
    let open: Vec<String> = qos
        .iter()
        .filter(|row| is_null(cell(row, "grptres")) && is_null(cell(row, "grpjobs")))
        .map(|row| cell(row, "name").to_owned())
        .collect();
    let mut children: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in dump.iter().filter(|one| !one.is_user) {
        children.entry(&one.parent).or_default().push(&one.name);
    }
    let below = |account: &str| {
        let (mut all, mut next) = (BTreeSet::new(), vec![account]);
        while let Some(account) = next.pop() {
            if all.insert(account.to_owned()) {
                next.extend(children.get(account).into_iter().flatten());
            }
        }
        all.into_iter().collect()
    };
    for one in dump.iter().filter(|one| one.name != ROOT) {
        let [together, each] = [("grptres", "grpjobs"), ("-", "maxjobs")]
            .map(|(tres, jobs)| limit(cell(&one.values, tres), whole(&one.values, jobs)));
        if together.is_none() && each.is_none() {
            continue;
        }
        let counts = Scope {
            users: if one.is_user {
                vec![one.name.clone()]
            } else {
                Vec::new()
            },
            accounts: if one.is_user {
                vec![one.parent.clone()]
            } else {
                below(&one.name)
            },
            qos: Vec::new(),
        };
        let bounds = Scope {
            qos: open.clone(),
            ..counts.clone()
        };
        let of = |limit: Option<Limit>, each: &[Each]| {
            Some(Limit {
                bounds: bounds.clone(),
                counts: counts.clone(),
                each: each.to_vec(),
                ..limit?
            })
        };
        found.extend(of(together, &[]));
        found.extend(of(each, &[Each::User]));
    }
    found
}
