//! The only ways to change a cluster: submit, start, preempt, finish.

use super::queue::QueueKeys;
use super::tables::{Decision, Job, JobState, Placement, Slice, Submission};
use super::{Cluster, bits, service_class};
use crate::error::ConfigError;
use crate::ids::{JobId, Time};

impl Cluster {
    /// Adds a pending job at the present time.
    ///
    /// # Errors
    /// A request that can never be met: no GPUs, more than the cluster or the quota holds, an estimate that is no
    /// positive number, an unknown tenant or class.
    pub fn submit(&mut self, request: Submission) -> Result<JobId, ConfigError> {
        self.validate_request(&request)?;
        let id = JobId(self.jobs.len() as u32);
        self.jobs.push(Job {
            submit: self.now,
            request,
            state: JobState::Pending,
            attained_gpu_s: 0.0,
            executed_s: 0.0,
            run_start: Time::ZERO,
            first_start: None,
            rate: 0.0,
            run_cost_s: 0.0,
            expected_finish: Time::MAX,
            num_preemptions: 0,
            placement: Placement::new(),
        });
        self.enqueue(id);
        Ok(id)
    }

    fn validate_request(&self, request: &Submission) -> Result<(), ConfigError> {
        let bad = |key: &str, value: String, allowed: String, hint: &str| {
            Err(ConfigError {
                key: format!("job.{key}"),
                value,
                allowed,
                hint: hint.into(),
            })
        };
        let Some(tenant) = self.tenants.get(request.tenant.index()) else {
            let allowed = format!("0 to {}", self.tenants.len() - 1);
            return bad(
                "tenant",
                request.tenant.0.to_string(),
                allowed,
                "declare the tenant in the cluster",
            );
        };
        let Some(types) = self.class_types.get(request.class.index()) else {
            let allowed = format!("0 to {}", self.classes.len() - 1);
            return bad(
                "class",
                request.class.0.to_string(),
                allowed,
                "declare the model class",
            );
        };
        let most = self
            .types_in(*types)
            .map(|kind| self.free.num_gpus[kind.index()])
            .max()
            .unwrap_or(0);
        let most = if self.borrowing {
            most
        } else {
            most.min(tenant.quota_gpus)
        };
        if request.num_gpus == 0 || request.num_gpus > most {
            let hint = "a gang runs on one GPU type and, without borrowing, within its tenant's quota";
            return bad(
                "num_gpus",
                request.num_gpus.to_string(),
                format!("1 to {most}"),
                hint,
            );
        }
        let estimate_s = request.estimate_s.value;
        if !(estimate_s > 0.0 && estimate_s <= 1e10) {
            return bad(
                "estimate_s",
                estimate_s.to_string(),
                "above 0 and at most 1e10".into(),
                "in seconds",
            );
        }
        Ok(())
    }

    /// Gives a pending job its gang, all at once.
    ///
    /// # Panics
    /// If the job is not pending, a GPU is not free, or the placement is not exactly the gang on one type: a caller
    /// that does this is broken, and going on would oversubscribe GPUs.
    pub fn start(&mut self, id: JobId, placement: Placement) {
        let facts = self.facts(self.jobs[id.index()].request.class, &placement);
        let job = &self.jobs[id.index()];
        assert_eq!(job.state, JobState::Pending, "{id:?} must be pending to start");
        assert_eq!(
            facts.num_gpus, job.request.num_gpus,
            "{id:?} must get its whole gang"
        );
        assert!(facts.rate > 0.0, "{id:?} cannot run on {:?}", facts.gpu_type);
        assert!(
            self.has_room(self.demand(id)),
            "{id:?} would exceed its tenant's quota"
        );
        self.dequeue(id);
        for slice in &placement {
            self.take(id, *slice);
        }
        let (now, restart_cost_s) = (self.now, self.capabilities.restart_cost_s);
        let job = &mut self.jobs[id.index()];
        job.state = JobState::Running;
        job.run_cost_s = if job.num_preemptions > 0 {
            restart_cost_s
        } else {
            0.0
        };
        job.run_start = now;
        job.first_start.get_or_insert(now);
        job.rate = facts.rate;
        let rest_s = (job.request.estimate_s.value - job.executed_s).max(1.0);
        job.expected_finish = now + Time::from_secs_f64(job.run_cost_s + rest_s / facts.rate);
        job.placement = placement.clone();
        let (tenant, num_gpus, finish) = (job.request.tenant, job.request.num_gpus, job.expected_finish);
        self.tenants[tenant.index()].used_gpus += num_gpus;
        self.running[facts.gpu_type.index()].insert((finish, id));
        self.num_running += 1;
        self.decisions.push(Decision::Start { job: id, placement });
    }

    /// Takes a running job's gang away and puts it back into the queue with its progress.
    ///
    /// # Panics
    /// If the job does not run.
    pub fn preempt(&mut self, id: JobId) {
        self.stop(id);
        let job = &mut self.jobs[id.index()];
        job.state = JobState::Pending;
        job.num_preemptions += 1;
        self.enqueue(id);
        self.decisions.push(Decision::Preempt { job: id });
    }

    /// A running job has left of its own accord (done, failed or killed).
    ///
    /// # Panics
    /// If the job does not run.
    pub fn finish(&mut self, id: JobId) {
        self.stop(id);
        self.jobs[id.index()].state = JobState::Finished;
    }

    /// A running job says how far it has come: `executed_s` seconds of the reference run. Beliefs about its progress and
    /// its end follow from this report.
    ///
    /// # Panics
    /// If the job does not run.
    pub fn report_progress(&mut self, id: JobId, executed_s: f64) {
        let now = self.now;
        let job = &mut self.jobs[id.index()];
        assert_eq!(job.state, JobState::Running, "{id:?} must run to report");
        // The present run keeps its beginning; what it is believed to have done is shifted.
        job.executed_s += executed_s - job.executed_s_at(now);
        let cost_left_s = (job.run_cost_s - (now - job.run_start).as_secs_f64()).max(0.0);
        let finish = now + Time::from_secs_f64(cost_left_s + job.remaining_s_at(now) / job.rate);
        let before = std::mem::replace(&mut job.expected_finish, finish);
        let kind = self.nodes[job.placement[0].node.index()].gpu_type;
        let running = &mut self.running[kind.index()];
        assert!(running.remove(&(before, id)), "{id:?} is not among the running");
        running.insert((finish, id));
    }

    fn stop(&mut self, id: JobId) {
        let now = self.now;
        let job = &mut self.jobs[id.index()];
        assert_eq!(job.state, JobState::Running, "{id:?} must run to stop");
        job.attained_gpu_s = job.attained_gpu_s_at(now);
        job.executed_s = job.executed_s_at(now);
        let placement = std::mem::take(&mut job.placement);
        let (tenant, num_gpus, finish) = (job.request.tenant, job.request.num_gpus, job.expected_finish);
        job.expected_finish = Time::MAX;
        let kind = self.nodes[placement[0].node.index()].gpu_type;
        assert!(
            self.running[kind.index()].remove(&(finish, id)),
            "{id:?} is not among the running"
        );
        self.num_running -= 1;
        self.tenants[tenant.index()].used_gpus -= num_gpus;
        for slice in &placement {
            self.give_back(id, *slice);
        }
    }

    fn take(&mut self, id: JobId, slice: Slice) {
        let node = &mut self.nodes[slice.node.index()];
        assert!(
            slice.gpus != 0 && slice.gpus & !node.free == 0,
            "{slice:?} is not free for {id:?}"
        );
        let before = node.num_free();
        node.free &= !slice.gpus;
        self.racks[node.rack.index()].num_free -= slice.num_gpus();
        let first = node.first_gpu;
        self.free.moved(slice.node, node, before);
        for gpu in bits(slice.gpus) {
            self.gpus[(first + gpu) as usize] = Some(id);
        }
    }

    fn give_back(&mut self, id: JobId, slice: Slice) {
        let node = &mut self.nodes[slice.node.index()];
        let before = node.num_free();
        node.free |= slice.gpus;
        self.racks[node.rack.index()].num_free += slice.num_gpus();
        let first = node.first_gpu;
        self.free.moved(slice.node, node, before);
        for gpu in bits(slice.gpus) {
            let owner = self.gpus[(first + gpu) as usize].take();
            debug_assert_eq!(
                owner,
                Some(id),
                "GPU {gpu} of {:?} belongs to another job",
                slice.node
            );
        }
    }

    fn enqueue(&mut self, id: JobId) {
        let (demand, keys) = (self.demand(id), self.queue_keys(id));
        self.tenants[demand.tenant.index()].pending_gpus += u64::from(demand.num_gpus);
        self.queue.insert(demand, id, keys);
    }

    fn dequeue(&mut self, id: JobId) {
        let (demand, keys) = (self.demand(id), self.queue_keys(id));
        self.tenants[demand.tenant.index()].pending_gpus -= u64::from(demand.num_gpus);
        self.queue.remove(demand, id, keys);
    }

    pub(super) fn queue_keys(&self, id: JobId) -> QueueKeys {
        let job = &self.jobs[id.index()];
        // Neither changes while the job waits, so the keys at removal equal those at insertion.
        let rest_s = (job.request.estimate_s.value - job.executed_s).max(1.0);
        QueueKeys {
            remaining: Time::from_secs_f64(rest_s),
            service_class: service_class(job.attained_gpu_s),
        }
    }
}
