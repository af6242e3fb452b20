//! What `scontrol` does to jobs.

use super::job::{Hold, Job};
use super::rules::Change;
use super::slurm::World;

/// Verbs that change something.
pub const VERBS: [&str; 3] = ["update", "release", "requeue"];

/// Carries one command of the daemon's out; an answer that came late, or a second time, is none that it could have thought of
/// (`is_meant`).
pub fn carry_out(world: &mut World, words: &[String], is_meant: bool) -> Result<(), String> {
    let (verb, rest) = words.split_first().ok_or("nothing to do")?;
    let value = |key: &str| {
        rest.iter()
            .find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    };
    let name = match verb.as_str() {
        "update" => value("jobid").unwrap_or_default(),
        "requeue" => rest.get(1).map_or("", String::as_str),
        _ => rest.first().map_or("", String::as_str),
    };
    if is_meant && value("sitefactor").is_some() {
        world.rules.count_factor();
    }
    // A list of jobs is one command; each of its jobs may fail for itself, and the others go on.
    let mut said: Vec<String> = Vec::new();
    for name in name.split(',') {
        said.extend(one(world, verb, name, rest, is_meant).err());
    }
    match said.is_empty() {
        true => Ok(()),
        false => Err(said.join("\n")),
    }
}

fn one(world: &mut World, verb: &str, name: &str, words: &[String], is_meant: bool) -> Result<(), String> {
    let called = world.jobs.values().filter(|job| job.is_called(name));
    let called: Vec<u64> = called.map(|job| job.number).collect();
    if called.is_empty() {
        return Err(format!("Invalid job id specified for job {name}"));
    }
    if called.iter().all(|number| world.jobs[number].has_ended()) {
        return Err(format!("Job has already finished for job {name}"));
    }
    for number in called {
        if world.jobs[&number].has_ended() {
            continue;
        }
        match verb {
            "update" => update(world, number, words, is_meant)?,
            "requeue" => requeue(world, number, is_meant)?,
            _ => release(world, number, is_meant)?,
        }
    }
    Ok(())
}

/// Whether the daemon knows of all that was done to a job.
fn judge(world: &mut World, number: u64, change: Change<'_>, is_meant: bool) {
    let job = &world.jobs[&number];
    if is_meant && job.touched <= world.fate.known {
        let job = job.clone();
        world.rules.judge(&job, change);
    }
}

fn update(world: &mut World, number: u64, words: &[String], is_meant: bool) -> Result<(), String> {
    let name = world.jobs[&number].name();
    for word in words {
        let Some((key, value)) = word.split_once('=') else {
            return Err(format!("invalid option: {word}"));
        };
        let is_pending = world.jobs[&number].is_pending();
        let change = match key {
            "jobid" => continue,
            "sitefactor" => Change::Factor,
            "admincomment" => Change::Mark,
            "reqnodelist" | "excnodelist" if !is_pending => {
                return Err(format!("Job is no longer pending execution for job {name}"));
            }
            "reqnodelist" => Change::Nodes(value),
            "excnodelist" => Change::Closed,
            _ => {
                world.rules.break_with(format!("{key} of job {name} was changed"));
                continue;
            }
        };
        // A write that changes nothing breaks no rule: after an old answer a job is given back twice.
        let job = &world.jobs[&number];
        let is_so = match key {
            "admincomment" => job.mark == value,
            "reqnodelist" => job.nodes_asked.join(",") == value,
            _ => false,
        };
        if matches!(key, "reqnodelist" | "sitefactor" | "admincomment") && !is_so {
            judge(world, number, change, is_meant);
        }
        let Some(job) = world.jobs.get_mut(&number) else {
            continue;
        };
        match key {
            "sitefactor" => job.factor = value.parse().map_err(|_| format!("bad factor {value}"))?,
            "admincomment" => value.clone_into(&mut job.mark),
            "reqnodelist" => {
                job.nodes_asked = value
                    .split(',')
                    .filter(|node| !node.is_empty())
                    .map(str::to_owned)
                    .collect();
            }
            // A list of names in brackets closes each of them.
            "excnodelist" => job.shuns = pleach_site::slurm::expand(value).unwrap_or_default().join(","),
            _ => {}
        }
    }
    Ok(())
}

fn requeue(world: &mut World, number: u64, is_meant: bool) -> Result<(), String> {
    let job = &world.jobs[&number];
    let name = job.name();
    if !job.may_be_requeued() {
        return Err(format!(
            "Requested operation is presently disabled for job {name}"
        ));
    }
    if job.is_running() {
        judge(world, number, Change::Requeue, is_meant);
        world.tell(format!("{name} is requeued for others"));
        world.rules.num_requeued += 1;
        world.stop(number, None, Hold::Nobody);
    }
    Ok(())
}

fn release(world: &mut World, number: u64, is_meant: bool) -> Result<(), String> {
    if world.jobs.get(&number).is_some_and(Job::is_pending) {
        judge(world, number, Change::Release, is_meant);
    }
    world.next_place += 1;
    let place = world.next_place;
    let Some(job) = world.jobs.get_mut(&number) else {
        return Ok(());
    };
    if !job.is_pending() {
        let name = job.name();
        return Err(format!("Job is no longer pending execution for job {name}"));
    }
    (job.hold, job.place) = (Hold::Nobody, place);
    job.is_held_by_script = false;
    Ok(())
}
