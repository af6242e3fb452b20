//! A-SRPT: jobs are dispatched in the order in which one imagined machine would complete them.
//!
//! The whole cluster is imagined as a single machine on which a job takes its share of the GPUs times its predicted run
//! time, and which runs the job with the shortest rest, preemptively: the best that one machine can do. A job that has
//! completed there joins a queue. In the order of that queue jobs get GPUs of the nodes with most of them free, their
//! members where they talk least across nodes, and run to completion. A job that would suffer much from the placement that
//! is there waits a while for a better one.
//!
//! # Source
//! Luo, Liu, Lee and Shroff, "Prediction-Assisted Online Distributed Deep Learning Workload Scheduling in GPU Clusters",
//! INFOCOM'25 (arXiv 2501.05563). Its random forest is the simulator's model of estimates here.
//!
//! # Deviations
//! - The paper's cluster has one GPU type. Here the processing time is that on the job's fastest type, and a job takes the
//!   fastest type with room; only locality, not the type, makes it wait.
//! - How much is much, and how long a while is, are assumed.
//! - A job that waits for a better placement lets others pass; one that does not fit does not, unless its tenant's quota
//!   or nodes that are away keep it out.
//! - Where the whole cluster stands idle, the job that would complete first on the imagined machine starts at once
//!   (`start_when_idle`; the paper lets it wait for its imagined completion).
//! - Jobs that ask for parts of GPUs, and clusters that only place gangs whole, use the cluster's own placement.

use pleach_scheduler::cluster::{Cluster, JobState};
use pleach_scheduler::{ConfigError, JobId, Planner, PolicyError, Time};
use serde::{Deserialize, Serialize};

use super::roomiest::place;
use super::virtual_machine::VirtualMachine;
use crate::shared::allocate_by_priority::tightest;
use crate::shared::settings::check;
use crate::shared::what_if::{FreeResources, is_whole_gpu_job};

/// Settings of [`ASrpt`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ASrptConfig {
    /// A job waits for a better placement where an iteration takes more than so many times what it takes on the tightest.
    /// 1 or more. *Assumed.*
    pub heavy_above: f64,
    /// Longest wait for a better placement, from the first one that was refused, s. 0 = never. *Assumed.*
    pub wait_s: f64,
    /// Whether an idle cluster starts a job before the imagined machine has completed it. *Ours.*
    pub start_when_idle: bool,
}

impl Default for ASrptConfig {
    fn default() -> ASrptConfig {
        ASrptConfig {
            heavy_above: 1.1,
            wait_s: 600.0,
            start_when_idle: true,
        }
    }
}

/// The planner.
#[derive(Clone, Debug)]
pub struct ASrpt {
    config: ASrptConfig,
    machine: VirtualMachine,
    /// Position of each job in the order of imagined completions. `[job]`
    rank: Vec<Option<u32>>,
    num_completed: u32,
    /// When a placement was first refused to each job as too loose. `[job]`
    refused: Vec<Option<Time>>,
    /// When the next job stops waiting for a better placement.
    patience_ends: Option<Time>,
}

/// What became of a job's turn.
enum Turn {
    Started,
    DoesNotFit,
    WaitsForBetter,
}

impl ASrpt {
    /// From its settings.
    ///
    /// # Errors
    /// A setting out of its range.
    pub fn new(config: ASrptConfig) -> Result<ASrpt, ConfigError> {
        let ASrptConfig {
            heavy_above, wait_s, ..
        } = config;
        let ok = (1.0..=1e9).contains(&heavy_above);
        check("a-srpt", "heavy_above", heavy_above, ok, "1 to 1e9")?;
        let ok = (0.0..=1e9).contains(&wait_s);
        check("a-srpt", "wait_s", wait_s, ok, "0 to 1e9 s")?;
        Ok(ASrpt {
            config,
            machine: VirtualMachine::default(),
            rank: Vec::new(),
            num_completed: 0,
            refused: Vec::new(),
            patience_ends: None,
        })
    }

    /// Time of a job on the imagined machine: its part of the GPUs times its predicted run time at its tightest.
    fn processing(cluster: &Cluster, id: JobId) -> Time {
        let job = cluster.job(id);
        let speeds = &cluster.class(job.request.class).speed;
        let types = cluster.types_in(job.types).map(|kind| speeds[kind.index()]);
        let speed = types.fold(1e-6, f64::max);
        let part = job.request.gpus() / f64::from(cluster.num_gpus());
        Time::from_secs_f64(part * job.request.estimate_s.value / speed)
    }

    /// Lets the imagined machine catch up, and submits the jobs that came to it.
    fn look(&mut self, cluster: &Cluster) {
        let mut completed = Vec::new();
        self.machine.run_until(cluster.now(), &mut completed);
        for (_, id) in completed {
            self.dispatch(id);
        }
        for index in self.rank.len()..cluster.jobs().len() {
            let id = JobId(index as u32);
            self.rank.push(None);
            self.refused.push(None);
            self.machine.submit(id, ASrpt::processing(cluster, id));
        }
    }

    fn dispatch(&mut self, id: JobId) {
        self.rank[id.index()] = Some(self.num_completed);
        self.num_completed += 1;
    }

    /// The jobs that wait and have completed on the imagined machine, in that order.
    fn queue(&self, cluster: &Cluster) -> Vec<JobId> {
        let waiting = cluster
            .pending()
            .filter_map(|id| Some((self.rank[id.index()]?, id)));
        let mut queue: Vec<(u32, JobId)> = waiting.collect();
        queue.sort_unstable();
        queue.into_iter().map(|(_, id)| id).collect()
    }

    /// Starts a job if there is a place that is good enough for it.
    fn try_start(&mut self, cluster: &mut Cluster, free: &mut FreeResources, id: JobId) -> Turn {
        let job = cluster.job(id);
        let (class, shape) = (job.request.class, cluster.shape(job.shape));
        let whole_gpus = is_whole_gpu_job(job) && !cluster.capabilities().consolidated;
        let placement = if whole_gpus {
            place(cluster, free, id)
        } else {
            tightest(cluster, id, &mut Vec::new())
        };
        let Some(placement) = placement else {
            return Turn::DoesNotFit;
        };
        let times_tightest = 1.0 / cluster.facts(class, shape.tasks, &placement).locality;
        if times_tightest > self.config.heavy_above && cluster.num_running() > 0 {
            let now = cluster.now();
            let first = *self.refused[id.index()].get_or_insert(now);
            let until = first + Time::from_secs_f64(self.config.wait_s);
            if now < until {
                let sooner = self.patience_ends.map_or(until, |other| other.min(until));
                self.patience_ends = Some(sooner);
                return Turn::WaitsForBetter;
            }
        }
        if whole_gpus {
            free.take(&placement, shape);
        }
        cluster.start(id, placement);
        if !whole_gpus {
            *free = FreeResources::as_is(cluster);
        }
        Turn::Started
    }
}

impl Planner for ASrpt {
    fn name(&self) -> &str {
        "a-srpt"
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        self.look(cluster);
        self.patience_ends = None;
        if cluster.num_pending() == 0 {
            return Ok(());
        }
        let mut free = FreeResources::as_is(cluster);
        for id in self.queue(cluster) {
            if !cluster.has_room(cluster.demand(id)) {
                continue;
            }
            if let Turn::DoesNotFit = self.try_start(cluster, &mut free, id)
                && cluster.num_running() > 0
                && cluster.could_run(&cluster.job(id).request)
            {
                break;
            }
        }
        if self.config.start_when_idle && cluster.num_running() == 0 {
            let waiting: Vec<JobId> = self.machine.jobs().collect();
            for id in waiting {
                let is_pending = cluster.job(id).state == JobState::Pending;
                if is_pending && let Turn::Started = self.try_start(cluster, &mut free, id) {
                    self.machine.withdraw(id);
                    self.dispatch(id);
                    break;
                }
            }
        }
        Ok(())
    }

    fn wake_at(&self, _cluster: &Cluster) -> Option<Time> {
        self.machine
            .next_completion()
            .into_iter()
            .chain(self.patience_ends)
            .min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_clusters::{cluster_of, submit};
    use crate::test_clusters::{place as start, running};
    use pleach_scheduler::NodeId;
    use pleach_scheduler::cluster::{Capabilities, Placement, Slice};
    use pleach_scheduler::cluster_spec::{ClusterSpec, LocalityFactors, ModelClass};

    fn at(planner: &mut ASrpt, cluster: &mut Cluster, now_s: f64) -> Vec<u32> {
        cluster.advance(Time::from_secs_f64(now_s));
        planner.plan(cluster).unwrap();
        cluster.check();
        running(cluster)
    }

    fn a_srpt(config: ASrptConfig) -> ASrpt {
        ASrpt::new(config).unwrap()
    }

    #[test]
    fn jobs_start_in_the_order_in_which_the_imagined_machine_completes_them() {
        // 4 GPUs. Times on the machine: job 0 has 4 of 4 GPUs for 100 s: 100 s; job 1 has 2 for 100 s: 50 s; job 2 has 1 for
        // 40 s: 10 s. It completes them at 10 (job 2), 60 (job 1) and 160 s (job 0).
        let mut cluster = cluster_of(&ClusterSpec::uniform(1, 4, 1));
        let config = ASrptConfig {
            start_when_idle: false,
            ..ASrptConfig::default()
        };
        let mut planner = a_srpt(config);
        for (num_gpus, work_s) in [(4, 100.0), (2, 100.0), (1, 40.0)] {
            submit(&mut cluster, num_gpus, work_s);
        }
        let none: [u32; 0] = [];
        assert_eq!(at(&mut planner, &mut cluster, 0.0), none);
        assert_eq!(planner.wake_at(&cluster), Some(Time::from_secs_f64(10.0)));
        assert_eq!(at(&mut planner, &mut cluster, 10.0), [2]);
        assert_eq!(planner.wake_at(&cluster), Some(Time::from_secs_f64(60.0)));
        cluster.advance(Time::from_secs_f64(50.0));
        cluster.finish(JobId(2));
        assert_eq!(at(&mut planner, &mut cluster, 60.0), [1]);
        // Job 0 joins the queue at 160 s; until then no job takes its place.
        cluster.advance(Time::from_secs_f64(160.0));
        cluster.finish(JobId(1));
        assert_eq!(at(&mut planner, &mut cluster, 160.0), [0]);
        assert_eq!(planner.wake_at(&cluster), None);
    }

    #[test]
    fn who_completed_first_and_does_not_fit_is_not_passed_over() {
        let mut cluster = cluster_of(&ClusterSpec::uniform(1, 4, 1));
        let mut planner = a_srpt(ASrptConfig::default());
        let long = submit(&mut cluster, 3, 1e4);
        start(&mut cluster, long);
        // 2 GPUs for 20 s: 10 s on the machine. 1 GPU for 80 s: 20 s.
        submit(&mut cluster, 2, 20.0);
        submit(&mut cluster, 1, 80.0);
        assert_eq!(at(&mut planner, &mut cluster, 0.0), [0]);
        assert_eq!(
            at(&mut planner, &mut cluster, 30.0),
            [0],
            "job 1 waits, and so does job 2"
        );
        cluster.advance(Time::from_secs_f64(40.0));
        cluster.finish(long);
        assert_eq!(at(&mut planner, &mut cluster, 40.0), [1, 2]);
    }

    #[test]
    fn an_idle_cluster_starts_the_shortest_at_once() {
        let mut cluster = cluster_of(&ClusterSpec::uniform(1, 4, 1));
        let mut planner = a_srpt(ASrptConfig::default());
        submit(&mut cluster, 1, 100.0);
        submit(&mut cluster, 1, 50.0);
        assert_eq!(at(&mut planner, &mut cluster, 0.0), [1]);
        // Job 0 completes on the machine after 25 s, job 1 having left it.
        assert_eq!(planner.wake_at(&cluster), Some(Time::from_secs_f64(25.0)));
        assert_eq!(at(&mut planner, &mut cluster, 25.0), [0, 1]);
    }

    /// Two nodes of 2 GPUs, each with one taken for long; spread gangs run at this factor. Then a gang of 2, 100 s.
    fn loose(more_nodes: f64) -> Cluster {
        let class = ModelClass {
            locality: LocalityFactors {
                more_nodes,
                cross_rack: more_nodes,
            },
            ..ModelClass::default()
        };
        let mut cluster =
            Cluster::new(&ClusterSpec::uniform(2, 2, 2), &[class], Capabilities::DEFAULT).unwrap();
        for node in 0..2 {
            let id = submit(&mut cluster, 1, 1e4);
            let gpus = Slice {
                node: NodeId(node),
                gpus: 1,
            };
            cluster.start(id, Placement::from_slice(&[gpus]));
        }
        submit(&mut cluster, 2, 100.0);
        cluster
    }

    #[test]
    fn a_job_that_would_suffer_waits_a_while_for_a_better_place() {
        // 2 of 4 GPUs for 100 s: completed at 50 s. At half speed the spread place is refused for 600 s.
        let mut cluster = loose(0.5);
        let mut planner = a_srpt(ASrptConfig::default());
        assert_eq!(at(&mut planner, &mut cluster, 0.0), [0, 1]);
        assert_eq!(at(&mut planner, &mut cluster, 2600.0), [0, 1]);
        assert_eq!(planner.wake_at(&cluster), Some(Time::from_secs_f64(3200.0)));
        assert_eq!(at(&mut planner, &mut cluster, 3200.0), [0, 1, 2]);
        // A better place in time is taken.
        let mut cluster = loose(0.5);
        let mut planner = a_srpt(ASrptConfig::default());
        at(&mut planner, &mut cluster, 2600.0);
        cluster.advance(Time::from_secs_f64(2700.0));
        cluster.finish(JobId(1));
        assert_eq!(at(&mut planner, &mut cluster, 2700.0), [0, 2]);
        assert_eq!(cluster.job(JobId(2)).placement.len(), 1);
        // A job that loses little speed does not wait.
        let mut cluster = loose(0.95);
        let mut planner = a_srpt(ASrptConfig::default());
        assert_eq!(at(&mut planner, &mut cluster, 0.0), [0, 1]);
        assert_eq!(at(&mut planner, &mut cluster, 2600.0), [0, 1, 2]);
    }

    #[test]
    fn gangs_go_to_the_nodes_with_most_gpus_free() {
        // Free GPUs: 1, 3, 4. A gang of 2 goes to the node with 4; a gang of 5 then to 3 + 2.
        let mut cluster = cluster_of(&ClusterSpec::uniform(3, 4, 3));
        for (node, gpus) in [(0, 0b111), (1, 0b1)] {
            let id = submit(&mut cluster, u64::count_ones(gpus), 1e5);
            let gpus = Slice {
                node: NodeId(node),
                gpus,
            };
            cluster.start(id, Placement::from_slice(&[gpus]));
        }
        submit(&mut cluster, 2, 10.0);
        submit(&mut cluster, 5, 10.0);
        let mut planner = a_srpt(ASrptConfig::default());
        at(&mut planner, &mut cluster, 0.0);
        // Forget the two long ones: they run before the machine has completed them.
        assert_eq!(at(&mut planner, &mut cluster, 1e3), [0, 1, 2, 3]);
        let sizes = |id: u32| -> Vec<(u32, u32)> {
            let slices = cluster.job(JobId(id)).placement.iter();
            slices.map(|slice| (slice.node.0, slice.num_gpus())).collect()
        };
        assert_eq!(sizes(2), [(2, 2)]);
        assert_eq!(sizes(3), [(1, 3), (2, 2)]);
    }

    #[test]
    fn settings_out_of_range_are_refused_by_name() {
        let config = ASrptConfig {
            heavy_above: 0.5,
            ..ASrptConfig::default()
        };
        let text = ASrpt::new(config).unwrap_err().to_string();
        assert!(text.contains("a-srpt.heavy_above"), "{text}");
    }
}
