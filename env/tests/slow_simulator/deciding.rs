//! The heuristics in words of the queue: sort everything, take the first that will do, begin again.

use super::placing::Part;
use super::{Slow, State};

/// Jobs at the head of the queue that a preemptive policy looks at.
const HEADS: usize = 8;

/// Nodes that are kept for one job.
struct Kept {
    job: usize,
    /// When it is believed to fit.
    shadow: f64,
    /// The nodes on which it starts then, with the GPUs of each that are free then and not needed by it.
    spare: Vec<Part>,
    /// What its tenant's quota leaves besides it.
    room: u32,
}

/// What a job puts up with before it starts on a loose placement.
#[derive(Clone, Copy)]
struct Patience {
    /// Jobs that run for less put up with nothing, s.
    short_s: f64,
    /// Parts of the run time.
    wait_ratio: f64,
}

/// The patience of a heuristic that waits: its own, or, after a colon, one that is so brief that short jobs have some.
fn patience_of(policy: &str) -> Patience {
    let short_s = if policy.ends_with(":brief") { 128.0 } else { 3600.0 };
    Patience {
        short_s,
        wait_ratio: 0.5,
    }
}

/// Tiresias' classes of attained service.
fn service_class(attained_gpu_s: f64) -> u32 {
    let passed = [3250.0, 7200.0, 18000.0]
        .into_iter()
        .filter(|bound| attained_gpu_s >= *bound);
    passed.count() as u32
}

impl Slow {
    pub(super) fn decide(&mut self, policy: &str) {
        match policy {
            "srtf" | "las" => while self.start_or_preempt(policy) {},
            "sjf-best-type" => while self.start_what_ends_first(0.0, None) {},
            "best-type-delay" | "best-type-delay:brief" => {
                while self.start_what_ends_first(0.1, Some(patience_of(policy))) {}
            }
            "sjf-delay" | "sjf-delay:brief" => self.delayed("sjf", patience_of(policy)),
            "gpu-time-delay" | "gpu-time-delay:brief" => self.delayed("gpu-time", patience_of(policy)),
            "easy" => self.backfill("fifo", "fifo"),
            "easy-sjf" => self.backfill("fifo", "sjf"),
            "sjf-reserve" => self.backfill("sjf", "sjf"),
            "gpu-time-reserve" => self.backfill("gpu-time", "gpu-time"),
            "fifo" => {
                while let Some(head) = self.head_by_tenant() {
                    if !self.start_if_it_fits(head) {
                        break;
                    }
                }
            }
            _ => {
                while self
                    .queue(policy)
                    .into_iter()
                    .any(|job| self.start_if_it_fits(job))
                {}
            }
        }
    }

    /// The waiting jobs in the order of a policy; equals by arrival.
    fn queue(&self, policy: &str) -> Vec<usize> {
        let key = |id: &usize| -> f64 {
            let job = &self.jobs[*id];
            match policy {
                "fifo" | "fifo-skip" => 0.0,
                // Where nothing can be shared, sharing changes nothing; nor do sizes and cores that no job can have.
                "sjf" | "srtf" | "sjf-share" | "sjf-moldable" | "sjf-tuned" | "sjf-resize" => {
                    job.believed_rest_s()
                }
                "gpu-time" => job.believed_rest_s() * f64::from(job.gang),
                "las" => f64::from(service_class(job.attained_gpu_s())),
                "packing" => -f64::from(job.gang),
                "fair-share" => {
                    let quota = f64::from(self.quotas[job.tenant].max(1));
                    // To the billionth.
                    (f64::from(self.used_by(job.tenant)) / quota * 1e9).floor()
                }
                other => panic!("there is no slow version of {other}"),
            }
        };
        let mut queue = self.those(State::Waiting);
        queue.sort_by(|one, other| key(one).total_cmp(&key(other)).then(one.cmp(other)));
        queue
    }

    /// The first of the queue whose tenant has room for it.
    fn head(&self, policy: &str) -> Option<usize> {
        self.queue(policy).into_iter().find(|job| self.has_room(*job))
    }

    /// The oldest job that has room and is the oldest of its tenant.
    fn head_by_tenant(&self) -> Option<usize> {
        let mut seen = Vec::new();
        for job in self.queue("fifo") {
            let tenant = self.jobs[job].tenant;
            if !seen.contains(&tenant) {
                if self.has_room(job) {
                    return Some(job);
                }
                seen.push(tenant);
            }
        }
        None
    }

    fn start_if_it_fits(&mut self, job: usize) -> bool {
        let Some(kind) = self.fastest(job, &self.fitting_kinds(job)) else {
            return false;
        };
        let placement = self.place(self.jobs[job].gang, kind);
        self.begin(job, &placement);
        true
    }

    /// Lets the first job of the order run that fits or for which, if it is one of the first few, others give way.
    fn start_or_preempt(&mut self, policy: &str) -> bool {
        let mut num_seen = 0;
        for job in self.queue(policy) {
            if self.start_if_it_fits(job) {
                return true;
            }
            if !self.has_room(job) {
                continue;
            }
            num_seen += 1;
            if self.preemption && num_seen <= HEADS && self.preempt_for(job, policy) {
                return true;
            }
        }
        false
    }

    fn preempt_for(&mut self, job: usize, policy: &str) -> bool {
        let row = &self.jobs[job];
        let usable: Vec<usize> = (0..self.num_kinds)
            .filter(|kind| row.can_use(*kind) && self.num_gpus(*kind) >= row.gang)
            .collect();
        let kind = self.fastest(job, &usable).unwrap();
        let Some(victims) = self.victims(job, kind, policy) else {
            return false;
        };
        let placement = self.place_over(row.gang, kind, &victims);
        if policy == "srtf" {
            // Each of them ends later than the newcomer, even if the restart comes on top.
            let end = self.believed_end(job, self.rate(job, &placement)) + self.restart_cost_s;
            if victims
                .iter()
                .any(|victim| self.jobs[*victim].believed_end <= end)
            {
                return false;
            }
        }
        for victim in victims {
            self.end(victim, State::Waiting);
        }
        self.begin(job, &placement);
        true
    }

    /// The fewest of the first running jobs that make room on a type, last to end or most served first.
    fn victims(&self, job: usize, kind: usize, policy: &str) -> Option<Vec<usize>> {
        let row = &self.jobs[job];
        let mut running = self.those(State::Running);
        running.retain(|other| self.kind_of(*other) == kind);
        if policy == "srtf" {
            let own_s = row.believed_rest_s() / row.class.speed[kind] + self.restart_cost_s;
            running.retain(|other| self.jobs[*other].believed_end - f64::from(self.now) > own_s);
            running.sort_by(|one, other| {
                let end = |job: &usize| self.jobs[*job].believed_end;
                end(other).total_cmp(&end(one)).then(other.cmp(one))
            });
        } else {
            let class = |job: usize| service_class(self.jobs[job].attained_gpu_s());
            running.retain(|other| class(*other) > class(job));
            running.sort_by(|one, other| {
                let attained = |job: &usize| self.jobs[*job].attained_gpu_s();
                attained(other).total_cmp(&attained(one)).then(one.cmp(other))
            });
        }
        running.retain(|other| self.jobs[*other].run_start < self.now);
        let mut free = self.num_free(kind);
        let mut victims = Vec::new();
        for other in running {
            if free < row.gang {
                free += self.jobs[other].gang;
                victims.push(other);
            }
        }
        if free < row.gang {
            return None;
        }
        // Victims that turn out not to be needed are spared, the last one first.
        for victim in victims.clone().into_iter().rev() {
            let gang = self.jobs[victim].gang;
            if free - gang >= row.gang {
                free -= gang;
                victims.retain(|other| *other != victim);
            }
        }
        Some(victims)
    }

    fn believed_end(&self, job: usize, rate: f64) -> f64 {
        f64::from(self.now) + self.startup_s(job) + self.jobs[job].believed_rest_s() / rate
    }

    /// Whether a job waits for a tighter placement.
    fn waits(&self, job: usize, placement: &[Part], patience: Patience) -> bool {
        let row = &self.jobs[job];
        let locality = self.rate(job, placement) / row.class.speed[self.nodes[placement[0].0].kind];
        locality <= 0.96 && self.has_patience(job, patience)
    }

    /// Whether a job is long enough to have patience and has not waited for too long.
    fn has_patience(&self, job: usize, patience: Patience) -> bool {
        let row = &self.jobs[job];
        let run_s = row.work_s + row.misbelief_s;
        let waited_s = f64::from(self.now - row.submit) - f64::from(row.held_s);
        run_s >= patience.short_s && waited_s < patience.wait_ratio * run_s
    }

    /// As EASY's relatives, but a job that waits for a tighter placement is passed over.
    fn delayed(&mut self, order: &str, patience: Patience) {
        while let Some(head) = self.head(order) {
            if self.fitting_kinds(head).is_empty() {
                if self.reservation {
                    let mut kept = self.keep_for(head);
                    while self.start_beside(&mut kept, order, order, Some(patience)) {}
                }
                return;
            }
            let mut queue = vec![head];
            if self.reservation {
                queue.extend(self.queue(order));
            }
            let is_ready = |job: &usize| {
                let kind = self.fastest(*job, &self.fitting_kinds(*job));
                kind.is_some_and(|kind| {
                    let placement = self.place(self.jobs[*job].gang, kind);
                    !self.any(State::Running) || !self.waits(*job, &placement, patience)
                })
            };
            let Some(next) = queue.into_iter().find(is_ready) else {
                return;
            };
            self.start_if_it_fits(next);
        }
    }

    /// Starts the job that would end first, on the fastest type that is free for it, unless it would end sooner by more than a
    /// margin, in parts of its time here, on a type for which it has to wait, or waits for a tighter placement.
    fn start_what_ends_first(&mut self, margin: f64, patience: Option<Patience>) -> bool {
        let mut starts = Vec::new();
        // Where no job runs one must start.
        let patience = patience.filter(|_| self.any(State::Running));
        let margin = if patience.is_some() || margin == 0.0 {
            margin
        } else {
            f64::INFINITY
        };
        for job in self.those(State::Waiting) {
            let Some(kind) = self.fastest(job, &self.fitting_kinds(job)) else {
                continue;
            };
            let row = &self.jobs[job];
            let placement = self.place(row.gang, kind);
            let end = self.believed_end(job, self.rate(job, &placement));
            let others = (0..self.num_kinds)
                .filter(|other| *other != kind && row.can_use(*other) && self.num_gpus(*other) >= row.gang);
            // (end, wait) on each other type; of equal ends the lower type.
            let mut best: Option<(f64, f64)> = None;
            for other in others {
                let wait_s = self.wait_s(job, other);
                let end = self.believed_end(job, row.class.speed[other]) + wait_s;
                if best.is_none_or(|(known, _)| end < known) {
                    best = Some((end, wait_s));
                }
            }
            let duration_s = end - f64::from(self.now);
            let stays = best.is_none_or(|(other, wait_s)| {
                (end - other) / duration_s <= margin
                    || (wait_s == 0.0 && patience.is_none())
                    || (patience.is_some() && !self.may_be_better(job, kind))
            });
            if stays && !patience.is_some_and(|patience| self.waits(job, &placement, patience)) {
                starts.push((end, job, placement));
            }
        }
        let first = starts.into_iter().min_by(|one, other| one.0.total_cmp(&other.0));
        match first {
            Some((_, job, placement)) => self.begin(job, &placement),
            None => return false,
        }
        true
    }

    /// Whether a job that waits on a type can be offered something faster: a faster type, or this one in fewer nodes than it needs here.
    fn may_be_better(&self, job: usize, kind: usize) -> bool {
        let row = &self.jobs[job];
        let usable = || {
            let kinds = 0..self.num_kinds;
            kinds.filter(|other| row.can_use(*other) && self.num_gpus(*other) >= row.gang)
        };
        let fewest = |kind: usize| row.gang.div_ceil(self.widest(kind));
        let speed = &row.class.speed;
        usable().any(|other| speed[other] > speed[kind])
            || usable().all(|other| fewest(kind) <= fewest(other))
    }

    /// Believed time until enough GPUs of a type are free for a job.
    fn wait_s(&self, job: usize, kind: usize) -> f64 {
        let mut free = self.num_free(kind);
        let mut running = self.those(State::Running);
        running.retain(|other| self.kind_of(*other) == kind);
        let end = |other: &usize| self.jobs[*other].believed_end.max(f64::from(self.now + 1));
        running.sort_by(|one, other| end(one).total_cmp(&end(other)));
        let mut wait_s = 0.0;
        for other in running {
            if free < self.jobs[job].gang {
                wait_s = end(&other) - f64::from(self.now);
                free += self.jobs[other].gang;
            }
        }
        wait_s
    }

    /// EASY and its relatives: the head starts or GPUs are kept for it; then jobs that do not delay it.
    fn backfill(&mut self, head_order: &str, fill_order: &str) {
        while let Some(head) = self.head(head_order) {
            if !self.start_if_it_fits(head) {
                if self.reservation {
                    let mut kept = self.keep_for(head);
                    while self.start_beside(&mut kept, head_order, fill_order, None) {}
                }
                return;
            }
        }
    }

    /// The earliest believed fit over the types; the first among equals.
    fn keep_for(&self, job: usize) -> Kept {
        let row = &self.jobs[job];
        let mut best: Option<Kept> = None;
        for kind in (0..self.num_kinds).filter(|kind| row.can_use(*kind) && self.num_gpus(*kind) >= row.gang)
        {
            let mut running = self.those(State::Running);
            running.retain(|other| self.kind_of(*other) == kind);
            let end = |other: &usize| self.jobs[*other].believed_end.max(f64::from(self.now + 1));
            let free_at = |time: f64| -> u32 {
                let gone = running.iter().filter(|other| end(other) <= time);
                self.num_free(kind) + gone.map(|other| self.jobs[*other].gang).sum::<u32>()
            };
            let enough = running.iter().map(end).filter(|time| free_at(*time) >= row.gang);
            let shadow = enough.min_by(f64::total_cmp).unwrap();
            if best.as_ref().is_none_or(|other| shadow < other.shadow) {
                let gone = |node: usize| -> u32 {
                    let gone = running.iter().filter(|other| end(other) <= shadow);
                    gone.map(|other| self.held_on(node, *other)).sum()
                };
                let free_then = |node: usize| self.nodes[node].num_free() + gone(node);
                let place = self.place_among(row.gang, kind, free_then);
                let spare = place
                    .into_iter()
                    .map(|(node, need)| (node, free_then(node) - need));
                best = Some(Kept {
                    job,
                    shadow,
                    spare: spare.collect(),
                    room: self.room_of(row.tenant).saturating_sub(row.gang),
                });
            }
        }
        best.unwrap()
    }

    fn start_beside(
        &mut self,
        kept: &mut Kept,
        head_order: &str,
        fill_order: &str,
        patience: Option<Patience>,
    ) -> bool {
        // The job that has become the head meanwhile comes first.
        let mut queue: Vec<usize> = self.head(head_order).into_iter().collect();
        queue.extend(self.queue(fill_order));
        queue.retain(|job| *job != kept.job);
        for job in queue {
            if let Some(placement) = self.place_beside(kept, job) {
                if patience.is_some_and(|patience| self.waits(job, &placement, patience)) {
                    continue;
                }
                let end = self.believed_end(job, self.rate(job, &placement));
                let row = &self.jobs[job];
                if end > kept.shadow {
                    for (node, spare) in &mut kept.spare {
                        *spare -= placement
                            .iter()
                            .filter(|part| part.0 == *node)
                            .map(|part| part.1)
                            .sum::<u32>();
                    }
                    if row.tenant == self.jobs[kept.job].tenant {
                        kept.room = kept.room.saturating_sub(row.gang);
                    }
                }
                self.begin(job, &placement);
                return true;
            }
        }
        false
    }

    /// Where it would go anyway, if it is in time there; else where it leaves the kept nodes what is needed.
    fn place_beside(&self, kept: &Kept, job: usize) -> Option<Vec<Part>> {
        let row = &self.jobs[job];
        let in_time = |rate: f64| self.believed_end(job, rate) <= kept.shadow;
        let other_quota = row.tenant != self.jobs[kept.job].tenant || row.gang <= kept.room;
        let open = |node: usize| {
            let spare = kept.spare.iter().find(|part| part.0 == node);
            spare
                .map_or(u32::MAX, |part| part.1)
                .min(self.nodes[node].num_free())
        };
        let beside = |kind: usize| {
            let free: u32 = self.nodes_of(kind).map(open).sum();
            (other_quota && free >= row.gang).then(|| self.place_among(row.gang, kind, open))
        };
        let mut kinds = self.fitting_kinds(job);
        kinds.retain(|kind| in_time(row.class.speed[*kind]) || beside(*kind).is_some());
        let kind = self.fastest(job, &kinds)?;
        let placement = self.place(row.gang, kind);
        let is_open = |part: &Part| part.1 <= open(part.0);
        let harmless = in_time(self.rate(job, &placement)) || (other_quota && placement.iter().all(is_open));
        if harmless {
            return Some(placement);
        }
        beside(kind)
    }
}
