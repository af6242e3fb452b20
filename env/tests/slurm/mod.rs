//! The policy `slurm` held to schedules of a real Slurm 22.05.8: 24 lists with the plans of every backfill cycle.
//!
//! `given`: it gets the real state before each decision, so that no error can add up. `free`: it plays the lists by itself.
//! `made`: a list of our own, whose schedule is committed. The recordings lie in `shared/data/slurm-schedules`; where they are
//! missing the tests are noted as skipped.

pub(crate) mod free;
pub(crate) mod given;
mod made;
mod printed;
mod runs;
mod shares;

use std::collections::BTreeMap;
use std::path::Path;

use pleach_dealing::slurm::{
    Ask, Each, Limit, Nodes, Partition, Preempt, Priority, Qos, ROOT, Room, Scope, Share, SlurmConfig,
};
use pleach_scheduler::JobLabels;
use serde_json::Value;

/// A job of a recorded list; times in seconds after the list's beginning.
#[derive(Clone, Debug)]
struct Job {
    id: String,
    /// Number in Slurm, and task of an array.
    num: (u32, u32),
    submit_s: f64,
    /// When it was eligible; of a task when it was submitted, for Slurm prints when its turn came.
    eligible_s: f64,
    /// The same as Slurm prints it.
    turn_s: f64,
    ask: Ask,
    gpu_type: String,
    limit_s: i64,
    user: String,
    account: String,
    partition: String,
    qos: String,
    /// Tasks of its array at once; 0: no bound.
    throttle: u64,
    /// How often it ran.
    attempts: u32,
    start_s: f64,
    end_s: f64,
    nodes: String,
    priority: u32,
    by_backfill: bool,
    /// Whether it is a run that was preempted, of which times are known to the second alone.
    was_preempted: bool,
}

impl Job {
    fn labels(&self) -> JobLabels<'_> {
        JobLabels {
            user: &self.user,
            account: &self.account,
            partition: &self.partition,
            qos: &self.qos,
            ..JobLabels::default()
        }
    }
}

/// A recorded list.
struct Case {
    meta: Value,
    config: SlurmConfig,
    jobs: Vec<Job>,
    /// Names and GPU types of the nodes.
    names: Vec<String>,
    types: Vec<String>,
    nodes: Nodes,
}

impl Case {
    fn read(folder: &Path) -> Case {
        let meta: Value =
            serde_json::from_str(&std::fs::read_to_string(folder.join("meta.json")).unwrap()).unwrap();
        let rows = meta["nodes"].as_array().unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let names: Vec<String> = rows.iter().map(|row| text(&row[0])).collect();
        let mut types: Vec<String> = rows.iter().map(|row| text(&row[1])).collect();
        let kind_of: Vec<String> = types.clone();
        types.dedup();
        let all = rows.iter().map(|row| Room {
            gpus: row[2].as_u64().unwrap() as u32,
            cpu_milli: 64_000,
            memory_mib: 512_000,
        });
        let kind = |name: &String| types.iter().position(|of| of == name).unwrap() as u8;
        let nodes = Nodes::new(all.collect(), kind_of.iter().map(kind).collect());
        let config = config(&meta, &names);
        let jobs = jobs(folder, &types);
        Case {
            meta,
            config,
            jobs,
            names,
            types,
            nodes,
        }
    }

    fn number(&self, key: &str) -> f64 {
        self.meta[key].as_f64().unwrap()
    }

    fn on(&self, nodes: &str) -> Vec<usize> {
        let place = |name: &str| self.names.iter().position(|of| of == name).unwrap();
        nodes.split(' ').map(place).collect()
    }
}

/// Settings as they were, in the words of the list's own description.
fn config(meta: &Value, names: &[String]) -> SlurmConfig {
    let number = |key: &str| meta[key].as_f64().unwrap_or(0.0);
    let strings = |value: &Value| -> Vec<String> {
        let all = value.as_array().into_iter().flatten();
        all.map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    let object = |key: &str| meta[key].as_object().cloned().unwrap_or_default();
    let partitions = object("partitions").into_iter().map(|(name, nodes)| Partition {
        nodes: strings(&nodes)
            .iter()
            .map(|node| names.iter().position(|of| of == node).unwrap() as u32)
            .collect(),
        tier: meta["tiers"][&name].as_u64().unwrap_or(1) as u32,
        billing: match meta["billing"] == "gpu" {
            true => [0.0, meta["billing_of"][&name].as_f64().unwrap_or(1.0), 0.0],
            false => [meta["billing_of"][&name].as_f64().unwrap_or(1.0), 0.0, 0.0],
        },
        name,
        ..Partition::default()
    });
    let share = |account: &str, user: &str, parent: &str, shares: u32| Share {
        account: account.into(),
        user: user.into(),
        parent: parent.into(),
        shares,
        usage: 0,
    };
    let mut shares = vec![share(ROOT, ROOT, "", 1)];
    for (account, of) in object("shares") {
        shares.push(share(&account, "", ROOT, of.as_u64().unwrap() as u32));
        for user in strings(&meta["users"][&account]) {
            shares.push(share(&account, &user, "", 1));
        }
    }
    let qos = object("qos");
    let scope = |value: &Value| Scope {
        users: strings(&value["user"]),
        accounts: strings(&value["acct"]),
        qos: strings(&value["qos"]),
    };
    let limits = meta["limits"].as_array().into_iter().flatten().map(|row| {
        let of = |place: usize| {
            row[place]
                .as_u64()
                .filter(|most| *most > 0)
                .map(|most| most as u32)
        };
        Limit {
            bounds: scope(&row[0]),
            counts: scope(&row[1]),
            each: strings(&row[2]).iter().map(|_| Each::User).collect(),
            gpus: of(3),
            jobs: of(4),
            ..Limit::default()
        }
    });
    SlurmConfig {
        preempt: match meta["case"] == "h1_preempt_requeue" {
            true => Preempt::Partition,
            false => Preempt::None,
        },
        backfill: meta["backfill"].as_bool().unwrap(),
        bf_interval_s: number("bf_interval_s"),
        bf_resolution_s: number("bf_resolution") as u32,
        bf_window_s: number("bf_window_s") as u32,
        bf_max_job_test: number("bf_max_job_test") as u32,
        default_queue_depth: number("default_queue_depth") as u32,
        main_lag_s: number("main_lag_s"),
        priority: meta["multifactor"].as_bool().unwrap().then(|| Priority {
            age: number("age") as u32,
            fair_share: number("fairshare") as u32,
            size: number("size") as u32,
            qos: qos.values().filter_map(Value::as_u64).max().unwrap_or(0) as u32,
            gpu: number("tres_gpu") as u32,
            max_age_s: number("max_age_s"),
            calc_period_s: number("calc_period_s"),
            calc_phase_s: (number("t0_s") + number("calc_phase_s")).rem_euclid(number("calc_period_s")),
            half_life_s: number("half_life_s"),
            favor_small: meta["favor_small"].as_bool().unwrap(),
            fair_tree: meta["fair_tree"].as_bool().unwrap(),
            ..Priority::default()
        }),
        enforce_limits: meta["enforce_limits"].as_bool().unwrap(),
        partitions: partitions.collect(),
        qos: qos
            .into_iter()
            .map(|(name, priority)| Qos {
                name,
                priority: priority.as_u64().unwrap() as u32,
                preempts: Vec::new(),
            })
            .collect(),
        shares,
        limits: limits.collect(),
        ..SlurmConfig::default()
    }
}

fn jobs(folder: &Path, types: &[String]) -> Vec<Job> {
    let mut reader = csv::Reader::from_path(folder.join("jobs.csv")).unwrap();
    let rows = reader.deserialize::<BTreeMap<String, String>>();
    let job = |row: BTreeMap<String, String>| {
        let text = |key: &str| row[key].clone();
        let number = |key: &str| row[key].parse::<f64>().unwrap_or(0.0);
        let logged = |key: &str, other: &str| {
            if row[key].is_empty() {
                number(other)
            } else {
                number(key)
            }
        };
        let submit_s = logged("log_submit_s", "submitted_s");
        let array = text("array");
        Job {
            id: text("id"),
            num: (number("job_id") as u32, number("task") as u32),
            submit_s,
            eligible_s: match array.is_empty() {
                true => row["eligible_s"].parse().unwrap_or(1e12),
                false => submit_s,
            },
            turn_s: row["eligible_s"]
                .parse()
                .map_or(submit_s, |at: f64| at.max(submit_s)),
            ask: Ask {
                nodes: number("num_nodes") as u32,
                of_each: Room {
                    gpus: number("gpus_per_node") as u32,
                    cpu_milli: number("cpus_per_node") as u64 * 1000,
                    memory_mib: number("mem_mib_per_node") as u64,
                },
                whole: row["exclusive"] == "1",
                kinds: match types.iter().position(|of| *of == row["gpu_type"]) {
                    Some(kind) => 1 << kind,
                    None => u64::MAX,
                },
                mixes: true,
            },
            gpu_type: text("gpu_type"),
            limit_s: number("limit_s") as i64,
            user: text("user"),
            account: text("account"),
            partition: text("partition"),
            qos: text("qos"),
            throttle: array.split_once('%').map_or(0, |(_, most)| most.parse().unwrap()),
            attempts: number("attempts") as u32,
            start_s: logged("log_start_s", "start_s"),
            end_s: logged("log_end_s", "end_s"),
            nodes: text("nodes"),
            priority: number("priority") as u32,
            by_backfill: row["started_by"] == "backfill",
            was_preempted: false,
        }
    };
    let all = rows
        .map(|row| row.unwrap())
        .filter(|row| !row["start_s"].is_empty());
    all.map(job).collect()
}

/// All recorded lists by name; none where they are not here.
fn cases() -> Vec<(String, Case)> {
    let Some(folder) = pleach_tests::data("slurm-schedules") else {
        return Vec::new();
    };
    let folders = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut folders: Vec<_> = folders.filter(|path| path.join("meta.json").exists()).collect();
    folders.sort();
    let name = |path: &std::path::PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    folders
        .iter()
        .map(|path| (name(path), Case::read(path)))
        .collect()
}
