//! A batch system apart from Pleach: first come, first served with EASY backfill. It shares no line with the simulator, so that a twin
//! of what it prints is held against something else than itself.
//!
//! One reservation, on given nodes: the first job that does not fit gets the nodes that come free soonest by time limits. Others start
//! before it where they end by their limits before it begins, or use GPUs that it does not need then.

use std::ops::Range;

/// A job as it is submitted, with its true run time.
#[derive(Clone, Debug)]
pub struct Asked {
    pub submit_s: f64,
    pub num_gpus: u32,
    pub run_s: f64,
    /// At least the run time.
    pub limit_s: f64,
    /// Nodes that it may use, by GPU type: no job is on two types.
    pub pools: Vec<Range<usize>>,
}

/// Where and when a job ran.
#[derive(Clone, Debug, Default)]
pub struct Ran {
    pub start_s: f64,
    /// `(node, GPUs)`.
    pub held: Vec<(usize, u32)>,
}

/// All jobs, in the order of their submissions, on `num_nodes` nodes; the batch system looks each `tick_s`.
pub fn play(jobs: &[Asked], num_nodes: usize, gpus_per_node: u32, tick_s: f64) -> Vec<Ran> {
    let mut ran = vec![Ran::default(); jobs.len()];
    let mut nodes = Nodes {
        size: gpus_per_node,
        free: vec![gpus_per_node; num_nodes],
    };
    let (mut queue, mut running): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut next = 0;
    loop {
        let ends = running.iter().map(|job| ran[*job].start_s + jobs[*job].run_s);
        let comes = jobs.get(next).map(|job| job.submit_s);
        let event_s = ends.chain(comes).fold(f64::INFINITY, f64::min);
        if event_s.is_infinite() {
            return ran;
        }
        let now_s = (event_s / tick_s).ceil() * tick_s;
        running.retain(|job| {
            let has_ended = ran[*job].start_s + jobs[*job].run_s <= now_s;
            if has_ended {
                nodes.give_back(&ran[*job].held);
            }
            !has_ended
        });
        while jobs.get(next).is_some_and(|job| job.submit_s <= now_s) {
            queue.push(next);
            next += 1;
        }
        let started = pass(jobs, &ran, &mut nodes, (&queue, &running), now_s);
        for (job, held) in started {
            ran[job] = Ran { start_s: now_s, held };
            running.push(job);
        }
        queue.retain(|job| !running.contains(job));
    }
}

/// What starts now.
fn pass(
    jobs: &[Asked],
    ran: &[Ran],
    nodes: &mut Nodes,
    (queue, running): (&[usize], &[usize]),
    now_s: f64,
) -> Vec<(usize, Vec<(usize, u32)>)> {
    let mut started: Vec<(usize, Vec<(usize, u32)>)> = Vec::new();
    let mut waiting = queue.iter().copied();
    let head = loop {
        let Some(job) = waiting.next() else {
            return started;
        };
        match nodes.place(&jobs[job]) {
            Some(held) => started.push((job, nodes.take(held))),
            None => break job,
        }
    };
    // When and where the head begins at the latest, by time limits.
    let old = running
        .iter()
        .map(|job| (ran[*job].start_s + jobs[*job].limit_s, ran[*job].held.clone()));
    let new = started
        .iter()
        .map(|(job, held)| (now_s + jobs[*job].limit_s, held.clone()));
    let mut ends: Vec<(f64, Vec<(usize, u32)>)> = old.chain(new).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut later = nodes.clone();
    let mut shadow_s = f64::INFINITY;
    for (end_s, held) in ends {
        later.give_back(&held);
        if let Some(held) = later.place(&jobs[head]) {
            later.take(held);
            shadow_s = end_s;
            break;
        }
    }
    for job in waiting {
        let asked = &jobs[job];
        let ends_before = now_s + asked.limit_s <= shadow_s;
        let spare = match ends_before {
            true => nodes.clone(),
            false => nodes.least(&later),
        };
        if let Some(held) = spare.place(asked) {
            if !ends_before {
                later.take(held.clone());
            }
            started.push((job, nodes.take(held)));
        }
    }
    started
}

/// Free GPUs of each node.
#[derive(Clone)]
struct Nodes {
    size: u32,
    free: Vec<u32>,
}

impl Nodes {
    /// The fullest node that holds a job, or as many empty ones as it needs.
    fn place(&self, job: &Asked) -> Option<Vec<(usize, u32)>> {
        if job.num_gpus <= self.size {
            let nodes = job.pools.iter().cloned().flatten();
            let fits = nodes.filter(|node| self.free[*node] >= job.num_gpus);
            let fullest = fits.min_by_key(|node| self.free[*node])?;
            return Some(vec![(fullest, job.num_gpus)]);
        }
        let wanted = job.num_gpus.div_ceil(self.size) as usize;
        job.pools.iter().cloned().find_map(|pool| {
            let empty = pool.filter(|node| self.free[*node] == self.size);
            let held: Vec<(usize, u32)> = empty.take(wanted).map(|node| (node, self.size)).collect();
            (held.len() == wanted).then_some(held)
        })
    }

    fn take(&mut self, held: Vec<(usize, u32)>) -> Vec<(usize, u32)> {
        for (node, gpus) in &held {
            self.free[*node] -= gpus;
        }
        held
    }

    fn give_back(&mut self, held: &[(usize, u32)]) {
        for (node, gpus) in held {
            self.free[*node] += gpus;
        }
    }

    /// What is free in both.
    fn least(&self, other: &Nodes) -> Nodes {
        let pairs = self.free.iter().zip(&other.free);
        Nodes {
            size: self.size,
            free: pairs.map(|(one, other)| *one.min(other)).collect(),
        }
    }
}
