//! What the commands of this Slurm print.

use std::collections::BTreeMap;

use super::job::{Hold, Job, State};
use super::slurm::{NodeState, World};

/// The text of a command that changes nothing; an error where there is no such command here.
pub fn say(world: &World, program: &str, args: &[&str]) -> Result<String, String> {
    let fields = |flag: &str| {
        let at = args.iter().position(|arg| *arg == flag)?;
        args.get(at + 1).copied()
    };
    match (program, args) {
        ("squeue", _) if fields("-o").is_some() => Ok(wishes(world)),
        ("scontrol", ["-a", "-o", "show", "partition"]) => {
            Ok("PartitionName=main MaxTime=UNLIMITED State=UP Nodes=g[1-5]\n".into())
        }
        // Asked for where an answer was cut in the middle of a line.
        ("scontrol", ["-o", "show", "licenses"]) => Ok("No licenses configured in Slurm.\n".into()),
        ("scontrol", ["-o", "show", "reservation"]) => Ok("No reservations in the system\n".into()),
        // Limits are not shown here: they are found out by the jobs that do not start.
        ("scontrol", ["-o", "show", "assoc_mgr", _]) => Ok("Current Association Manager state\n".into()),
        ("squeue", _) => queue(world, args, fields("-O").unwrap_or_default(), &fields),
        ("sprio", _) => Ok(factors(world)),
        ("sinfo", _) if args.contains(&"%P") => Ok("main*\nother\n".into()),
        ("sinfo", _) => nodes(world, fields("-O").unwrap_or_default()),
        ("sacct", _) => Err("Slurm accounting storage is disabled".into()),
        ("scontrol", ["show", "config"]) => Ok(config()),
        _ => Err(format!("this Slurm knows no {program} {}", args.join(" "))),
    }
}

fn config() -> String {
    "PriorityType            = priority/multifactor\nPrioritySiteFactorPlugin = (null)\nPriorityWeightAge       = 0\n".into()
}

/// Each field with what is printed behind it.
fn names(fields: &str) -> Vec<(&str, &str)> {
    fields
        .split(',')
        .map(|field| field.split_once(':').unwrap_or((field, "")))
        .collect()
}

fn queue<'a>(
    world: &World,
    args: &[&str],
    fields: &str,
    flag: &dyn Fn(&str) -> Option<&'a str>,
) -> Result<String, String> {
    let states = flag("-t").unwrap_or("PENDING,RUNNING");
    let is_asked = |job: &&Job| match job.state {
        State::Pending => states.contains("PENDING"),
        State::Running => states.contains("RUNNING"),
        State::Ended(_) => {
            states.contains("CD") && job.end_s.is_some_and(|end_s| end_s + 300 > world.shown_s())
        }
    };
    let of_partition =
        |job: &&Job| flag("-p").is_none_or(|asked| asked.split(',').any(|name| name == job.partition));
    let of_list = |job: &&Job| {
        flag("-j").is_none_or(|asked| {
            asked
                .split(',')
                .any(|name| job.is_called(name) || name == job.name())
        })
    };
    let splits = args.contains(&"-r");
    // Tasks that wait together are one line, unless each is asked for.
    let mut lines: BTreeMap<(u64, u64), (Vec<&Job>, &Job)> = BTreeMap::new();
    for job in world
        .jobs
        .values()
        .filter(is_asked)
        .filter(of_partition)
        .filter(of_list)
    {
        let key = match (job.array, splits || !job.is_whole) {
            (Some((array, _)), false) => (array, 0),
            _ => (job.number, 1),
        };
        lines.entry(key).or_insert((Vec::new(), job)).0.push(job);
    }
    let mut text = String::new();
    for (together, first) in lines.values() {
        for (name, end) in names(fields) {
            let value = match name {
                "JobArrayID" => called(together, first, splits),
                "JobID" => match (first.array, first.is_whole) {
                    (Some((array, _)), true) => array.to_string(),
                    _ => first.number.to_string(),
                },
                _ => of_job(first, name)?,
            };
            text += &value;
            // A field may have a width.
            text += end.trim_start_matches(|c: char| c.is_ascii_digit());
        }
        text.push('\n');
    }
    Ok(text)
}

/// Features of those that wait, with a separator that they cannot hold.
fn wishes(world: &World) -> String {
    let waits = world.jobs.values().filter(|job| job.is_pending());
    let line = |job: &Job| {
        format!(
            "{}\u{1f}{}\u{1f}(null)\u{1f}{}\n",
            job.name(),
            job.shuns,
            job.feature.unwrap_or("(null)")
        )
    };
    waits.map(line).collect()
}

fn called(together: &[&Job], first: &Job, splits: bool) -> String {
    let Some((array, _)) = first.array.filter(|_| first.is_whole && !splits) else {
        return first.name();
    };
    let tasks = together.iter().filter_map(|job| job.array);
    let tasks: Vec<String> = tasks.map(|(_, task)| task.to_string()).collect();
    format!("{array}_[{}]", tasks.join(","))
}

fn of_job(job: &Job, field: &str) -> Result<String, String> {
    let time = |time: Option<i64>| time.map_or("N/A".to_owned(), |time| time.to_string());
    Ok(match field {
        "State" => match job.state {
            State::Pending => "PENDING".into(),
            State::Running => "RUNNING".into(),
            State::Ended(word) => word.into(),
        },
        "PriorityLong" => job.priority().to_string(),
        "tres-per-node" => match (job.gpus_per_node, job.gpu_type) {
            (0, _) => "N/A".into(),
            (gpus, None) => format!("gres:gpu:{gpus}"),
            (gpus, Some(kind)) => format!("gres:gpu:{kind}:{gpus}"),
        },
        "tres-per-job" | "tres-per-task" | "tres-per-socket" => "N/A".into(),
        "tres-alloc" => format!(
            "cpu={},mem=0,node={},gres/gpu={}",
            job.num_nodes * job.cpus_per_node,
            job.num_nodes,
            job.num_gpus()
        ),
        "BatchFlag" => "1".into(),
        "Requeue" => u8::from(job.may_be_requeued()).to_string(),
        "QOS" => "normal".into(),
        "cpus-per-tres" => "N/A".into(),
        "EligibleTime" => job.submit_s.max(job.begin_s).to_string(),
        "NumNodes" => job.num_nodes.to_string(),
        "NumCPUs" => (job.num_nodes * job.cpus_per_node).to_string(),
        "NodeList" => job.nodes.join(","),
        "ReqNodes" => job.nodes_asked.join(","),
        "admin_comment" if job.mark.is_empty() => "(null)".into(),
        "admin_comment" => job.mark.clone(),
        "Reason" => match (job.state, job.hold) {
            (State::Pending, Hold::User) => "JobHeldUser".into(),
            (State::Pending, Hold::Admin) if job.is_held_by_script => "JobHeldUser".into(),
            (State::Pending, Hold::Admin) => "JobHeldAdmin".into(),
            _ => job.reason.clone(),
        },
        "TimeLimit" => format!("{}:{:02}", job.limit_s / 60, job.limit_s % 60),
        "SubmitTime" => job.submit_s.to_string(),
        "StartTime" => time(job.start_s),
        "EndTime" => time(job.end_s),
        "RestartCnt" => job.num_restarts.to_string(),
        "OverSubscribe" => "OK".into(),
        "Contiguous" => "0".into(),
        "Feature" => job.feature.unwrap_or("(null)").into(),
        "Dependency" | "Reservation" | "Licenses" => "(null)".into(),
        "Partition" => job.partition.into(),
        "UserName" => job.user.into(),
        // What a user may say where accounts are not enforced.
        "Account" if job.user == "cleo" => "all|\n7|PENDING|0|".into(),
        "Account" => "all".into(),
        _ => return Err(format!("this Slurm prints no {field} of jobs")),
    })
}

fn factors(world: &World) -> String {
    let mut lines = BTreeMap::new();
    for job in world.jobs.values().filter(|job| job.is_pending()) {
        let number = match (job.array, job.is_whole) {
            (Some((array, _)), true) => array,
            _ => job.number,
        };
        lines.insert(number, (job.factor, job.partition));
    }
    lines
        .iter()
        .map(|(number, (factor, partition))| format!("{number}|{factor}|{partition}|\n"))
        .collect()
}

fn nodes(world: &World, fields: &str) -> Result<String, String> {
    let mut text = String::new();
    for node in &world.nodes {
        let (gpus, cpus) = world.used(&node.name);
        let gres = |num: u32, end: &str| match node.num_gpus {
            0 => "(null)".to_owned(),
            _ => format!("gpu:{}:{num}{end}", node.gpu_type),
        };
        for (name, end) in names(fields) {
            text += &match name {
                "NodeList" => node.name.clone(),
                "StateLong" => match (node.state, gpus + cpus) {
                    (NodeState::Up, 0) => "idle".into(),
                    (NodeState::Up, _) => "mixed".into(),
                    (NodeState::Drained, 0) => "drained".into(),
                    (NodeState::Drained, _) => "draining".into(),
                    (NodeState::Down, _) => "down*".into(),
                },
                "Gres" => gres(node.num_gpus, ""),
                "GresUsed" => gres(gpus, "(IDX:N/A)"),
                "CPUsState" => format!(
                    "{cpus}/{}/0/{}",
                    node.num_cpus.saturating_sub(cpus),
                    node.num_cpus
                ),
                "Partition" => "main*".into(),
                "Memory" => "64000".into(),
                "AllocMem" => "0".into(),
                "Weight" => "1".into(),
                "features_act" if node.feature.is_empty() => "(null)".into(),
                "features_act" => node.feature.into(),
                _ => return Err(format!("this Slurm prints no {name} of nodes")),
            };
            text += end;
        }
        text.push('\n');
    }
    Ok(text)
}
