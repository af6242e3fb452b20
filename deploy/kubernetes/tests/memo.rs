//! Looks that take over what has not changed, beside looks that read all anew, over random sequences of changes.

use std::sync::Arc;

use crate::fake::owned;
use crate::objects::{NOW_S, job, let_go, mark, node, pod, settings, time, uid};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node, Pod, ResourceQuota};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::core::DynamicObject;
use pleach_kubernetes::Settings;
use pleach_kubernetes::memo::Memo;
use pleach_kubernetes::observe::{Lists, Observed, observe_after};
use pleach_kubernetes::seats::Traces;
use pleach_kubernetes::suspended::maker::OTHERS;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Objects as the cache of the watches keeps them: one that changes is another one.
struct Kept<K>(Vec<(Value, Arc<K>)>);

impl<K: DeserializeOwned> Kept<K> {
    fn read(value: &Value) -> Arc<K> {
        Arc::new(serde_json::from_value(value.clone()).unwrap())
    }

    fn add(&mut self, value: Value) {
        let read = Kept::read(&value);
        self.0.push((value, read));
    }

    /// Changes one of them by chance; nothing where there is none.
    fn change(&mut self, rng: &mut ChaCha8Rng, change: impl FnOnce(&mut Value)) {
        if self.0.is_empty() {
            return;
        }
        let row = rng.random_range(0..self.0.len());
        let (value, read) = &mut self.0[row];
        change(value);
        *read = Kept::read(value);
    }

    fn remove(&mut self, rng: &mut ChaCha8Rng) {
        if !self.0.is_empty() {
            self.0.remove(rng.random_range(0..self.0.len()));
        }
    }

    /// All are read anew, as a list after a watch that fell behind does.
    fn relist(&mut self) {
        self.0
            .iter_mut()
            .for_each(|(value, read)| *read = Kept::read(value));
    }

    fn all(&self) -> Vec<Arc<K>> {
        self.0.iter().map(|(_, read)| Arc::clone(read)).collect()
    }
}

struct Site {
    rng: ChaCha8Rng,
    now_s: i64,
    number: u32,
    nodes: Kept<Node>,
    pods: Kept<Pod>,
    jobs: Kept<Job>,
    sets: Kept<DynamicObject>,
    classes: Kept<PriorityClass>,
    quotas: Kept<ResourceQuota>,
}

fn class(value: i32) -> Value {
    json!({ "metadata": { "name": "high", "uid": uid("high"), "resourceVersion": "1" }, "value": value })
}

fn quota(hard: u32) -> Value {
    json!({ "metadata": { "name": "q", "namespace": "team", "uid": uid("q"), "resourceVersion": "1" },
        "status": { "hard": { "requests.nvidia.com/gpu": hard.to_string() } } })
}

impl Site {
    fn new(seed: u64) -> Site {
        let mut site = Site {
            rng: ChaCha8Rng::seed_from_u64(seed),
            now_s: NOW_S,
            number: 0,
            nodes: Kept(Vec::new()),
            pods: Kept(Vec::new()),
            jobs: Kept(Vec::new()),
            sets: Kept(Vec::new()),
            classes: Kept(Vec::new()),
            quotas: Kept(Vec::new()),
        };
        for name in ["n1", "n2", "n3"] {
            site.nodes.add(node(name, 8));
        }
        site.classes.add(class(7));
        site
    }

    fn lists(&self) -> Lists {
        Lists {
            nodes: self.nodes.all(),
            pods: self.pods.all(),
            jobs: self.jobs.all(),
            others: self.sets.all().into_iter().map(|set| (&OTHERS[0], set)).collect(),
            classes: self.classes.all(),
            quotas: self.quotas.all(),
            ..Lists::default()
        }
    }

    fn name(&mut self) -> String {
        self.number += 1;
        format!("x{:03}", self.number)
    }

    /// A pod of some kind: alone, of a gang of a known or an unknown size, of a Job, a replica that may be a lease.
    fn add_pod(&mut self) {
        let name = self.name();
        let gpus = self.rng.random_range(0..4_u32);
        let mut one = pod(&name, gpus);
        one["metadata"]["creationTimestamp"] = json!(time(self.now_s - self.rng.random_range(0..20_i64)));
        match self.rng.random_range(0..6) {
            0 => one["metadata"]["annotations"] = json!({ "pleach/gang": "g", "pleach/gang-size": "3" }),
            1 => one["metadata"]["labels"] = json!({ "ray.io/cluster": "r" }),
            2 if !self.jobs.0.is_empty() => {
                let row = self.rng.random_range(0..self.jobs.0.len());
                let of = &self.jobs.0[row].0["metadata"];
                one["metadata"]["labels"] = json!({ "batch.kubernetes.io/job-name": of["name"] });
                one["metadata"]["ownerReferences"] = json!([{ "apiVersion": "batch/v1", "kind": "Job",
                    "name": of["name"], "uid": of["uid"], "controller": true }]);
            }
            3 => {
                one = owned(one);
                one["metadata"]["namespace"] = json!("serve");
            }
            4 => one["spec"]["tolerations"] = json!([{ "key": "repair", "operator": "Exists" }]),
            _ => one = owned(one),
        }
        self.pods.add(one);
    }

    fn add_job(&mut self) {
        let name = self.name();
        let mut one = job(&name, self.rng.random_range(1..3), &json!({}));
        one["metadata"]["resourceVersion"] = json!("1");
        one["spec"]["suspend"] = json!(true);
        one["metadata"]["annotations"] = json!({ "pleach/suspended": "0" });
        if self.rng.random_bool(0.3) {
            one["spec"]["template"]["spec"]["priorityClassName"] = json!("high");
        }
        self.jobs.add(one);
    }

    fn add_set(&mut self) {
        let name = self.name();
        let template = job(&name, 1, &json!({}))["spec"].clone();
        self.sets.add(json!({ "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {
            "name": name, "namespace": "team", "uid": uid(&name), "resourceVersion": "1",
            "creationTimestamp": time(NOW_S - 50), "annotations": { "pleach/suspended": "0" } },
            "spec": { "suspend": true, "replicatedJobs": [{ "name": "w", "replicas": 2, "template": { "spec": template } }] } }));
    }

    fn change_pod(&mut self) {
        let (now_s, what) = (self.now_s, self.rng.random_range(0..6));
        let seat = ["n1", "n2"][self.rng.random_range(0..2)];
        let age_s = self.rng.random_range(0..100_i64);
        self.pods.change(&mut self.rng, |pod| match what {
            0 => *pod = let_go(pod, seat, &[(seat, 1)]),
            1 => {
                pod["metadata"]["annotations"]["pleach/decided"] =
                    json!(mark(pod, now_s - age_s, seat, &[("n1", 2), ("n2", 1)]));
            }
            2 => {
                pod["spec"]["nodeName"] = json!(seat);
                pod["spec"]["schedulingGates"] = json!([]);
                pod["status"] = json!({ "phase": "Running", "conditions": [{ "type": "PodScheduled",
                    "status": "True", "lastTransitionTime": time(now_s - age_s) }] });
            }
            3 => {
                pod["metadata"]["deletionTimestamp"] = json!(time(now_s + 30));
                pod["metadata"]["deletionGracePeriodSeconds"] = json!(age_s);
            }
            4 => pod["status"]["phase"] = json!("Succeeded"),
            _ => pod["metadata"]["resourceVersion"] = json!("2"),
        });
    }

    fn change_job(&mut self) {
        let (at_s, what) = (
            self.now_s - self.rng.random_range(0..70_i64),
            self.rng.random_range(0..3),
        );
        self.jobs.change(&mut self.rng, |job| match what {
            0 => {
                let mark = mark(job, at_s, "n1", &[("n1", 1)]);
                job["spec"]["suspend"] = json!(false);
                job["metadata"]["annotations"] = json!({ "pleach/decided": mark });
            }
            1 => {
                job["spec"]["suspend"] = json!(true);
                job["metadata"]["annotations"] = json!({ "pleach/suspended": at_s.to_string() });
            }
            _ => job["status"] = json!({ "succeeded": 1 }),
        });
    }

    fn change_node(&mut self) {
        let what = self.rng.random_range(0..4);
        self.nodes.change(&mut self.rng, |node| match what {
            0 => node["spec"]["unschedulable"] = json!(true),
            1 => node["spec"] = json!({ "taints": [{ "key": "repair", "effect": "NoSchedule" }] }),
            2 => node["spec"] = json!({}),
            // A heartbeat.
            _ => node["metadata"]["resourceVersion"] = json!("2"),
        });
    }

    fn happen(&mut self) {
        match self.rng.random_range(0..20) {
            0..=3 => self.add_pod(),
            4..=7 => self.change_pod(),
            8 => self.pods.remove(&mut self.rng),
            9 => self.add_job(),
            10..=11 => self.change_job(),
            12 => self.jobs.remove(&mut self.rng),
            13 => self.change_node(),
            14 => self.add_set(),
            15 => self.sets.remove(&mut self.rng),
            16 => {
                let value = self.rng.random_range(0..9);
                self.classes.change(&mut self.rng, |of| *of = class(value));
            }
            17 => {
                self.quotas.remove(&mut self.rng);
                let hard = self.rng.random_range(0..9);
                self.quotas.add(quota(hard));
            }
            18 => self.pods.relist(),
            _ => self.jobs.relist(),
        }
    }
}

/// Settings in which all that time changes is changed within a minute or two.
fn hasty(rng: &mut impl Rng) -> Settings {
    let mut settings = Settings {
        namespaces: vec!["*".into()],
        settle_s: rng.random_range(0..15),
        gang_limit_s: 60,
        release_limit_s: 40,
        seat_limit_s: 30,
        ..settings()
    };
    settings.rounds.preemption = rng.random_bool(0.5);
    if rng.random_bool(0.5) {
        settings.leases.namespaces = vec!["serve".into()];
    }
    settings
}

fn text(observed: &Observed) -> String {
    format!("{observed:#?}")
}

#[test]
fn a_look_that_takes_over_what_has_not_changed_sees_what_a_look_at_all_anew_sees() {
    let (mut num_same, mut num_looks) = (0, 0);
    for seed in 0..40 {
        let mut site = Site::new(seed);
        let settings = hasty(&mut site.rng);
        let (mut memo, mut traces, mut anew) = (Memo::default(), Traces::default(), Traces::default());
        let mut last: Option<Observed> = None;
        for step in 0..60 {
            for _ in 0..[0, 0, 1, 4][site.rng.random_range(0..4)] {
                site.happen();
            }
            // Now and then the clock is set back.
            site.now_s += [0, 1, 2, 2, 9, 31, -5][site.rng.random_range(0..7)];
            let lists = site.lists();
            let seen = memo.observe(&traces, &lists, &settings, site.now_s);
            let fresh = observe_after(&anew, &lists, &settings, site.now_s);
            let (own, other) = (text(&seen), text(&fresh));
            let parts = own.lines().zip(other.lines()).find(|(a, b)| a != b);
            assert_eq!(parts, None, "seed {seed}, step {step}");
            assert_eq!(own.len(), other.len(), "seed {seed}, step {step}");
            let is_taken_over = |last: &Observed| {
                let mut jobs = seen.jobs.iter();
                jobs.any(|(id, job)| last.jobs.get(id).is_some_and(|known| Arc::ptr_eq(job, known)))
            };
            num_looks += 1;
            num_same += usize::from(last.as_ref().is_some_and(is_taken_over));
            (traces, anew) = (seen.traces.clone(), fresh.traces);
            last = Some(seen);
        }
    }
    // Half of the steps change nothing, and time something in many of these.
    println!("{num_same} of {num_looks} looks were taken over whole");
    assert!(num_same * 5 > num_looks, "{num_same} of {num_looks}");
}
