//! Replicas of services as pods: before all jobs, on GPUs of those that lose least, whatever users write and whatever fails.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};

use crate::driven::Driven;
use crate::fake::{Fake, World, owned};
use crate::objects::{NOW_S, lists, node, pod, settings as plain, time, uid};
use pleach_kubernetes::Settings;
use pleach_kubernetes::leases::LeaseSettings;
use pleach_kubernetes::observe::observe;
use serde_json::{Value, json};

/// Leases are in namespace `serve`.
pub fn leases() -> LeaseSettings {
    LeaseSettings {
        namespaces: vec!["serve".into()],
        ..LeaseSettings::default()
    }
}

/// A replica that its Deployment's ReplicaSet has made.
pub fn replica(name: &str, gpus: u32) -> Value {
    let mut pod = owned(pod(name, gpus));
    pod["metadata"]["namespace"] = json!("serve");
    pod["metadata"]["creationTimestamp"] = json!(time(NOW_S));
    pod
}

pub fn world(nodes: &[(&str, u32)]) -> World {
    let mut world = World {
        life_ms: 1_000_000_000,
        now_s: Some(NOW_S),
        ..World::default()
    };
    for (name, gpus) in nodes {
        world.add_node(node(name, *gpus));
    }
    world
}

/// A cluster whose clock the test has, and its controller.
pub struct Site {
    driven: Driven,
    now_s: i64,
}

impl Deref for Site {
    type Target = Driven;

    fn deref(&self) -> &Driven {
        &self.driven
    }
}

impl DerefMut for Site {
    fn deref_mut(&mut self) -> &mut Driven {
        &mut self.driven
    }
}

impl Site {
    pub async fn new(world: World, policy: &str, change: impl FnOnce(&mut Settings)) -> Site {
        let driven = Driven::new(Fake::still(world).await, policy, |settings| {
            settings.leases = leases();
            settings.rounds.preemption = true;
            change(settings);
        });
        Site { driven, now_s: NOW_S }
    }

    /// A round, so many seconds later.
    pub async fn round(&mut self, after_s: i64) -> Vec<String> {
        self.now_s += after_s;
        let now_s = self.now_s;
        self.fake.world.lock().unwrap().now_s = Some(now_s);
        self.controller.round(now_s).await
    }

    /// Schedulers, kubelets and controllers look once.
    pub fn tick(&self) {
        self.fake.world.lock().unwrap().tick();
    }

    pub fn add(&self, pod: Value) {
        self.fake.world.lock().unwrap().add_pod(pod);
    }

    /// Jobs that start one after the other, each so many seconds after the one before, and run.
    pub async fn run(&mut self, jobs: &[(&str, u32, i64)]) {
        for (name, gpus, after_s) in jobs {
            self.add(owned(pod(name, *gpus)));
            self.round(*after_s).await;
            self.tick();
            assert!(
                self.node_of(name).is_some(),
                "{name}: {:?}",
                self.controller.status()
            );
        }
    }

    /// A pod ends well.
    pub fn end(&self, start: &str) {
        self.fake.world.lock().unwrap().end(start);
    }

    pub fn node_of(&self, start: &str) -> Option<String> {
        self.fake.world.lock().unwrap().node_of(start).map(str::to_owned)
    }

    pub fn num_evicted(&self) -> u64 {
        self.fake.world.lock().unwrap().num_evicted
    }

    pub fn lifted(&self) -> Vec<String> {
        self.fake.world.lock().unwrap().lifted.clone()
    }

    /// Pods that are being stopped, by name.
    pub fn ending(&self) -> Vec<String> {
        let world = self.fake.world.lock().unwrap();
        let ending = world.pods.iter();
        let ending = ending.filter(|(_, pod)| !pod["metadata"]["deletionTimestamp"].is_null());
        ending.map(|((_, name), _)| name.clone()).collect()
    }

    /// Another process goes on where the last one was killed.
    pub fn restart(self) -> Site {
        let policy = self.controller.status().policy.clone();
        Site {
            driven: self.driven.begun_again(&policy),
            ..self
        }
    }
}

#[tokio::test]
async fn a_lease_goes_before_older_jobs_and_the_rest_of_the_gpus_is_theirs() {
    let mut site = Site::new(world(&[("n1", 2)]), "fifo", |_| ()).await;
    for name in ["a", "b"] {
        site.add(owned(pod(name, 1)));
    }
    site.add(replica("chat", 1));
    site.round(0).await;
    // Side by side, so in any order.
    assert_eq!(BTreeSet::from_iter(site.lifted()), [uid("chat"), uid("a")].into());
    site.tick();
    site.round(5).await;
    let status = site.controller.status();
    // Of jobs there are one that runs and one that waits.
    assert_eq!(
        (status.num_placed, status.num_waiting, status.num_starts),
        (1, 1, 1)
    );
    let told = status.told(
        site.now_s,
        &<pleach_kubernetes::controller::Kubernetes as pleach_daemon::BatchSystem>::WORDS,
    );
    assert!(
        told.contains("\nleases: 1 hold 1 GPU(s), 0 wait; 0 job(s) were stopped for leases"),
        "{told}"
    );
    let log = std::fs::read_to_string(site.settings.state_dir.join("decisions.jsonl")).unwrap();
    assert!(log.contains("a lease, before all jobs, on free GPUs"), "{log}");
    // Scaling down: a replica that its Deployment deletes gives its GPU to the pod that waits.
    site.fake
        .world
        .lock()
        .unwrap()
        .pods
        .remove(&("serve".to_owned(), "chat".to_owned()));
    site.round(5).await;
    assert_eq!(site.lifted()[2..], [uid("b")]);
}

/// By hand, at 110 s: `a` has 110 s of work on 1 GPU, `c` 90 s on 1, `b` 50 s on 2; a restart costs 30 s.
#[tokio::test]
async fn who_loses_least_yields_and_the_lease_is_let_go_once_the_gpus_are_free() {
    let cases = [
        // Nothing is written before the end: 140, 120, 160 GPU s.
        (Some(1e9), "c"),
        // A checkpoint every 100 s: 40, 120, 160.
        (Some(100.0), "a"),
        // All is saved at the stop: 30, 30, 60; of equals the last one.
        (None, "c"),
    ];
    for (checkpoint_s, victim) in cases {
        let mut site = Site::new(world(&[("n1", 4)]), "fifo", |settings| {
            settings.leases.checkpoint_s = checkpoint_s;
        })
        .await;
        site.run(&[("a", 1, 0), ("c", 1, 20), ("b", 2, 40)]).await;
        site.add(replica("chat", 1));
        site.round(50).await;
        assert_eq!(site.ending(), [victim], "with {checkpoint_s:?}");
        // It ends in its own time: no other pod is stopped meanwhile, and the lease is not pinned to a full node.
        for _ in 0..3 {
            site.round(2).await;
        }
        assert_eq!((site.num_evicted(), site.lifted().len()), (1, 3));
        site.tick();
        site.round(1).await;
        site.tick();
        assert_eq!(site.node_of("chat").as_deref(), Some("n1"));
        // The pod that yielded is made anew, held, and waits: no job stops a lease.
        for _ in 0..3 {
            site.round(100).await;
            site.tick();
        }
        assert_eq!(
            (site.node_of(&format!("{victim}x")), site.num_evicted()),
            (None, 1)
        );
        let leases = site.controller.status().leases.clone().unwrap();
        assert_eq!(
            (leases.num_placed, leases.num_waiting, leases.num_stopped),
            (1, 0, 1)
        );
    }
}

#[tokio::test]
async fn a_disruption_budget_that_forbids_it_leaves_everything_and_others_are_asked_next() {
    let mut site = Site::new(world(&[("n1", 2)]), "fifo", |_| ()).await;
    site.run(&[("a", 1, 0), ("b", 1, 50)]).await;
    site.fake
        .world
        .lock()
        .unwrap()
        .budgeted
        .extend(["a".to_owned(), "b".to_owned()]);
    site.add(replica("chat", 1));
    let notes = site.round(50).await;
    assert!(
        notes.iter().any(|note| note.contains("disruption budget")),
        "{notes:?}"
    );
    site.round(2).await;
    let writes = site.fake.world.lock().unwrap().num_writes;
    // Both have refused: no pod is asked again for a minute.
    for _ in 0..3 {
        site.round(2).await;
    }
    assert_eq!(site.fake.world.lock().unwrap().num_writes, writes);
    assert_eq!((site.num_evicted(), site.lifted().len()), (0, 2));
    site.fake.world.lock().unwrap().budgeted.remove("a");
    site.round(60).await;
    site.round(2).await;
    assert_eq!(site.ending(), ["a"]);
}

/// What any user may write, and what is not believed: labels, annotations, a priority class.
fn enemy(name: &str) -> Value {
    let mut enemy = owned(pod(name, 1));
    let words = json!({ "pleach/lease": "true", "pleach/leases": "true", "lease": "true", "namespace": "serve",
        "pleach/drive": "true", "app": "chat" });
    enemy["metadata"]["labels"] = words.clone();
    enemy["metadata"]["annotations"] = words;
    enemy["spec"]["priorityClassName"] = json!("serving");
    enemy
}

#[tokio::test]
async fn a_users_pod_outside_of_the_named_namespaces_is_a_job_like_any_other_whatever_it_says() {
    let mut site = Site::new(world(&[("n1", 2)]), "fifo", |settings| {
        settings.leases.priority_classes = vec!["serving".into()];
    })
    .await;
    site.run(&[("a", 1, 0), ("b", 1, 50)]).await;
    let mut late = enemy("enemy");
    late["metadata"]["creationTimestamp"] = json!(time(NOW_S + 60));
    site.add(late);
    site.add(owned(pod("honest", 1)));
    for _ in 0..3 {
        site.round(50).await;
        site.tick();
    }
    assert_eq!((site.num_evicted(), site.lifted().len()), (0, 2));
    assert_eq!(site.controller.status().leases, None);
    // And when a GPU is free, the pod that came first has it.
    site.fake
        .world
        .lock()
        .unwrap()
        .pods
        .remove(&("team".to_owned(), "a".to_owned()));
    site.round(5).await;
    assert_eq!(site.lifted().last(), Some(&uid("honest")));
    // In the named namespace the class narrows: one without it is a job too, and one with it a lease.
    site.add(replica("other", 1));
    site.round(5).await;
    assert_eq!(site.num_evicted(), 0);
    let mut chat = replica("chat", 1);
    chat["spec"]["priorityClassName"] = json!("serving");
    site.add(chat);
    site.round(5).await;
    assert_eq!(site.num_evicted(), 1);
}

#[test]
fn only_single_pods_of_the_named_namespaces_are_leases_and_nothing_is_without_the_setting() {
    let mut settings = Settings {
        leases: leases(),
        ..plain()
    };
    let mut gang = replica("gang", 1);
    gang["metadata"]["annotations"] = json!({ "pleach/gang": "g", "pleach/gang-size": "1" });
    let mut beside = replica("beside", 1);
    beside["metadata"]["annotations"] = json!({ "pleach/gang": "h", "pleach/gang-size": "2" });
    let mut other = replica("other", 1);
    other["metadata"]["namespace"] = json!("serve-2");
    let pods = [replica("chat", 1), gang, beside, other, enemy("enemy")];
    let seen = |settings: &Settings| {
        let observed = observe(&lists(&[node("n1", 8)], &pods, &[]), settings, NOW_S);
        let named = observed.snapshot.jobs.iter();
        named
            .map(|job| (observed.jobs[&job.id].name.clone(), job.terms.is_lease))
            .collect::<BTreeMap<String, bool>>()
    };
    let told = [
        ("serve-2/other", false),
        ("serve/chat", true),
        ("serve/g", true),
        ("serve/h", false),
        ("team/enemy", false),
    ];
    assert_eq!(
        seen(&settings),
        told.map(|(name, is)| (name.to_owned(), is)).into()
    );
    settings.leases = LeaseSettings::default();
    assert!(seen(&settings).values().all(|is_lease| !is_lease));
}

#[tokio::test]
async fn without_preemption_leases_wait_first_and_what_is_free_is_kept_for_them() {
    let mut site = Site::new(world(&[("n1", 4)]), "fifo-skip", |settings| {
        settings.rounds.preemption = false;
    })
    .await;
    site.run(&[("a", 2, 0), ("b", 1, 20)]).await;
    site.add(replica("chat", 2));
    site.add(owned(pod("small", 1)));
    for _ in 0..3 {
        site.round(50).await;
        site.tick();
    }
    assert_eq!((site.num_evicted(), site.lifted().len()), (0, 2));
    // With its key of marks.
    let settings = site.controller.system().settings().clone();
    let lists = site.fake.cluster(&settings).lists().await.unwrap();
    let observed = observe(&lists, &settings, site.now_s);
    let chat = observed
        .snapshot
        .jobs
        .iter()
        .find(|job| job.terms.is_lease)
        .unwrap()
        .id;
    let mut fifo = pleach_daemon::policy::Loaded::heuristic("fifo").unwrap();
    let memory = pleach_daemon::memory::Memory::default();
    let rounds = settings.rounds();
    let told = pleach_daemon::why_not::answer(&observed.snapshot, &memory, &mut fifo, &rounds, chat).unwrap();
    assert!(
        told.contains("it is a lease") && told.contains("kept for it"),
        "{told}"
    );
    site.fake
        .world
        .lock()
        .unwrap()
        .pods
        .remove(&("team".to_owned(), "b".to_owned()));
    site.round(5).await;
    assert_eq!(site.lifted().last(), Some(&uid("chat")));
}

#[tokio::test]
async fn pods_that_nobody_owns_and_pods_that_the_policy_did_not_start_are_never_stopped_for_a_lease() {
    let mut world = world(&[("n1", 1), ("n2", 1)]);
    world.add_pod(pod("bare", 1));
    let mut others = owned(pod("others", 1));
    others["spec"]["schedulingGates"] = json!([]);
    others["spec"]["nodeName"] = json!("n2");
    others["status"] = json!({ "phase": "Running" });
    world.runs(&others, "n2");
    world.add_pod(others);
    let mut site = Site::new(world, "fifo", |_| ()).await;
    site.round(0).await;
    // Let go, and not bound yet: neither then.
    site.add(replica("chat", 1));
    site.round(20).await;
    site.tick();
    assert_eq!(site.node_of("bare").as_deref(), Some("n1"));
    for _ in 0..3 {
        site.round(20).await;
        site.tick();
    }
    assert_eq!((site.num_evicted(), site.lifted().len()), (0, 1));
    assert_eq!(site.controller.status().leases.as_ref().unwrap().num_waiting, 1);
}
