//! Plays a list of jobs through the daemon's own rounds on a Slurm without delays: each submission and each end is a round,
//! and what it decides runs at once. One CSV row for each job, as `compare_slurm.py rows` prints them.
//!
//! `simulate_rounds LIST ARM POLICY NODES`: LIST is a canonical CSV, NODES as in `slurm_cluster.sh` (`g1:a100:8 g2:a100:8`).

use std::error::Error;

use pleach_daemon::Settings;
use pleach_daemon::memory::Memory;
use pleach_daemon::policy::Loaded;
use pleach_daemon::round::{self, Deciders};
use pleach_daemon::snapshot::{JobSeen, NodeSeen, Phase, Snapshot, VERSION};
use pleach_scheduler::cluster::NodeState;

const EPOCH_S: i64 = 1_795_000_000;

struct Job {
    row: Vec<String>,
    submit_s: f64,
    run_time_s: f64,
    /// When it started and on which nodes.
    run: Option<(f64, Vec<String>)>,
    seen: JobSeen,
}

impl Job {
    fn end_s(&self) -> Option<f64> {
        self.run.as_ref().map(|(start_s, _)| start_s + self.run_time_s)
    }
}

fn nodes(text: &str) -> Result<Vec<NodeSeen>, Box<dyn Error>> {
    let node = |word: &str| {
        let parts: Vec<&str> = word.split(':').collect();
        let [name, gpu_type, num_gpus] = parts[..] else {
            return Err(format!("{word} is not NAME:GPU_TYPE:NUM_GPUS").into());
        };
        Ok(NodeSeen {
            name: name.into(),
            gpu_type: gpu_type.into(),
            num_gpus: num_gpus.parse()?,
            num_gpus_used: 0,
            num_cpus_free: 1000,
            shared: None,
            state: NodeState::Up,
        })
    };
    text.split_whitespace().map(node).collect()
}

/// Columns by name: `job_id`, `submit_s`, `num_gpus`, `run_time_s`, `estimate_s`.
fn jobs(path: &str, gpus_per_node: u32) -> Result<Vec<Job>, Box<dyn Error>> {
    let text = std::fs::read_to_string(path)?;
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().ok_or("the list is empty")?;
    let at = |name: &str| {
        head.iter()
            .position(|column| *column == name)
            .ok_or(format!("no column {name}"))
    };
    let (id, submit, size) = (at("job_id")?, at("submit_s")?, at("num_gpus")?);
    let (run_time, limit) = (at("run_time_s")?, at("estimate_s")?);
    let mut jobs = Vec::new();
    for line in lines {
        let (submit_s, num_gpus): (f64, u32) = (line[submit].parse()?, line[size].parse()?);
        jobs.push(Job {
            row: [id, size, run_time, limit]
                .iter()
                .map(|column| line[*column].to_owned())
                .collect(),
            submit_s,
            run_time_s: line[run_time].parse()?,
            run: None,
            seen: JobSeen {
                id: line[id].parse()?,
                phase: Phase::Waiting,
                account: String::new(),
                user: String::new(),
                submit_s: EPOCH_S + submit_s as i64,
                start_s: None,
                limit_s: Some(line[limit].parse::<f64>()? as i64),
                num_nodes: num_gpus.div_ceil(gpus_per_node),
                gpus_per_node: num_gpus.min(gpus_per_node),
                is_packed: false,
                share: None,
                gpu_types: Vec::new(),
                gpu_type: None,
                num_cpus: 1,
                nodes: Vec::new(),
                num_restarts: 0,
                num_tries: 0,
                not_before_s: 0,
                predicted_s: None,
            },
        });
    }
    Ok(jobs)
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, list, arm, policy, cluster] = &args[..] else {
        return Err("simulate_rounds LIST ARM POLICY NODES".into());
    };
    let settings = Settings::default().rounds();
    let mut loaded = Loaded::of(policy, pleach_daemon::fleet::capabilities(&settings))?;
    let mut fallback = Loaded::heuristic("easy")?;
    let empty = nodes(cluster)?;
    let mut jobs = jobs(list, empty.first().ok_or("no nodes")?.num_gpus)?;
    let mut memory = Memory::default();
    let mut now_s = 0.0_f64;
    loop {
        let mut snapshot = Snapshot {
            version: VERSION,
            taken_s: EPOCH_S + now_s as i64,
            nodes: empty.clone(),
            jobs: Vec::new(),
        };
        for job in &jobs {
            if job.submit_s > now_s || job.end_s().is_some_and(|end_s| end_s <= now_s) {
                continue;
            }
            for node in snapshot
                .nodes
                .iter_mut()
                .filter(|node| job.seen.nodes.contains(&node.name))
            {
                node.num_gpus_used += job.seen.gpus_per_node;
            }
            snapshot.jobs.push(job.seen.clone());
        }
        memory.observe(&snapshot);
        let mut deciders = Deciders {
            policy: &mut loaded,
            fallback: &mut fallback,
        };
        let plan = round::plan(&snapshot, &memory, &mut deciders, &settings, false, &mut || false)?;
        if let Some(reason) = plan.fallback {
            return Err(reason.into());
        }
        for planned in plan
            .decisions
            .iter()
            .filter(|planned| round::is_carried_out(planned))
        {
            memory.started(planned.job(), &planned.nodes, &planned.decision.placement);
            let job = jobs
                .iter_mut()
                .find(|job| job.seen.id == planned.job())
                .ok_or("an unknown job")?;
            job.run = Some((now_s, planned.nodes.clone()));
            job.seen.phase = Phase::Running;
            job.seen.start_s = Some(snapshot.taken_s);
            job.seen.nodes.clone_from(&planned.nodes);
        }
        let times = jobs.iter().flat_map(|job| [Some(job.submit_s), job.end_s()]);
        let next = times
            .flatten()
            .filter(|time_s| *time_s > now_s)
            .min_by(f64::total_cmp);
        let Some(next_s) = next else { break };
        now_s = next_s;
    }
    for job in &jobs {
        let (Some((start_s, nodes)), Some(end_s)) = (&job.run, job.end_s()) else {
            return Err(format!("job {} never started", job.seen.id).into());
        };
        let [id, size, run_time, limit] = &job.row[..] else {
            continue;
        };
        let submit_s = job.submit_s;
        let nodes = nodes.join(" ");
        println!("{list},{arm},{id},,{size},{run_time},{limit},{submit_s},{start_s:.2},{end_s:.2},{nodes}");
    }
    Ok(())
}
