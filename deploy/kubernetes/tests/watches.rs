//! What watches keep is what lists show, whatever goes wrong with the watches; and where it is not, nothing is started.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use pleach_kubernetes::Settings;
use pleach_kubernetes::api::Cluster;
use pleach_kubernetes::controller::{Controller, Kubernetes};
use pleach_kubernetes::observe::Lists;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tower::ServiceExt;

use crate::fake::watches::WatchFault;
use crate::fake::{World, owned, router};
use crate::objects::{NOW_S, job, node, pod, time, uid};

const KINDS: [&str; 5] = ["Node", "Pod", "Job", "PersistentVolumeClaim", "PersistentVolume"];
/// What is read where objects wait suspended.
const KINDS_OF_SUSPENDED: [&str; 3] = ["jobsets", "PriorityClass", "ResourceQuota"];

/// A controller's settings: a watch lasts a second, and what is kept is too old after five.
pub fn settings(folder: &tempfile::TempDir) -> Settings {
    Settings {
        state_dir: folder.path().join("state"),
        namespaces: vec!["team".into()],
        request_limit_s: 2.0,
        bind_wait_s: 0.0,
        ..Settings::default()
    }
}

/// An API server without a network, so that seconds pass at once.
pub struct Site {
    world: Arc<Mutex<World>>,
    settings: Settings,
    pub changes: Arc<Notify>,
    pub kept: Cluster,
    folder: tempfile::TempDir,
}

impl Site {
    pub fn new(mut world: World) -> Site {
        world.journal.is_kept = true;
        let folder = tempfile::tempdir().unwrap();
        let (world, settings) = (Arc::new(Mutex::new(world)), settings(&folder));
        let site = Site {
            kept: client(&world, &settings),
            world,
            settings,
            changes: Arc::default(),
            folder,
        };
        site.kept.watch(&site.changes);
        site
    }

    pub fn world<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        change(&mut self.world.lock().unwrap())
    }

    pub fn controller(&self) -> Controller {
        assert!(self.folder.path().is_dir());
        Kubernetes::driver(self.settings.clone(), self.kept.clone(), "fifo", false).unwrap()
    }

    /// What is listed.
    async fn listed(&self) -> Lists {
        client(&self.world, &self.settings).lists().await.unwrap()
    }

    /// Waits until what is kept is what is listed.
    pub async fn agrees(&self, what: &str) {
        let began = Instant::now();
        loop {
            let kept = self.kept.lists().await;
            let listed = self.listed().await;
            match kept {
                Ok(kept) if told(&kept) == told(&listed) => return,
                kept if began.elapsed() > Duration::from_secs(60) => {
                    let kept = kept.map(|kept| told(&kept));
                    panic!("{what}: {kept:#?}\nis not\n{:#?}", told(&listed));
                }
                _ => sleep(Duration::from_millis(100)).await,
            }
        }
    }
}

fn client(world: &Arc<Mutex<World>>, settings: &Settings) -> Cluster {
    let router = router(Arc::clone(world));
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let router = router.clone();
        async move {
            let (head, body) = request.into_parts();
            let bytes = body.collect_bytes().await.unwrap();
            router.oneshot(Request::from_parts(head, Body::from(bytes))).await
        }
    });
    Cluster::by(kube::Client::new(service, "default"), settings)
}

/// Lists without what no round reads of them.
fn told(lists: &Lists) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    told.extend(lists.nodes.iter().map(|one| format!("{one:?}")));
    told.extend(lists.pods.iter().map(|one| format!("{one:?}")));
    told.extend(lists.claims.iter().map(|one| format!("{one:?}")));
    told.extend(lists.volumes.iter().map(|one| format!("{one:?}")));
    told.extend(lists.others.iter().map(|(_, one)| format!("{one:?}")));
    told.extend(lists.classes.iter().map(|one| format!("{one:?}")));
    told.extend(lists.quotas.iter().map(|one| format!("{one:?}")));
    let mut jobs: Vec<String> = lists.jobs.iter().map(|one| format!("{one:?}")).collect();
    jobs.sort();
    told.extend(jobs);
    told
}

/// A pod of a Job whose volume is bound.
fn bound_pod(name: &str) -> Value {
    let mut pod = owned(pod(name, 2));
    pod["metadata"]["labels"] = json!({ "batch.kubernetes.io/job-name": format!("job-{name}") });
    pod["spec"]["volumes"] = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": name } }]);
    pod
}

fn add(world: &mut World, name: &str) {
    world.add_pod(bound_pod(name));
    world.jobs.push(job(&format!("job-{name}"), 1, &json!({})));
    world
        .claims
        .push(json!({ "metadata": { "name": name, "namespace": "team" },
        "spec": { "volumeName": format!("v-{name}") } }));
    world
        .volumes
        .push(json!({ "metadata": { "name": format!("v-{name}") }, "spec": {} }));
}

/// A world with one of all.
fn one_of_all() -> World {
    let mut world = World {
        life_ms: 1_000_000,
        ..World::default()
    };
    world.add_node(node("n1", 8));
    add(&mut world, "a");
    world
}

/// Something of each kind comes, changes and goes.
fn stir(world: &mut World, number: usize) {
    let name = format!("x{number}");
    add(world, &name);
    world.add_node(node(&format!("m{number}"), 4));
    let cordoned = world.nodes["n1"]["spec"]["unschedulable"] != true;
    world.nodes.get_mut("n1").unwrap()["spec"]["unschedulable"] = json!(cordoned);
    if number > 0 {
        let before = format!("x{}", number - 1);
        // One ends, the other is deleted.
        match number % 2 {
            0 => world.end(&before),
            _ => drop(world.pods.remove(&("team".to_owned(), before.clone()))),
        }
        world.nodes.remove(&format!("m{}", number - 1));
        world
            .jobs
            .retain(|job| job["metadata"]["name"] != *format!("job-{before}"));
        world.claims.retain(|claim| claim["metadata"]["name"] != *before);
        world
            .volumes
            .retain(|volume| volume["metadata"]["name"] != *format!("v-{before}"));
    }
    let job = world.jobs.first_mut().unwrap();
    job["status"] = json!({ "succeeded": number });
}

/// A JobSet that is suspended.
fn set(name: &str) -> Value {
    json!({ "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": { "name": name, "namespace": "team",
        "uid": uid(name), "creationTimestamp": time(NOW_S), "annotations": { "pleach/suspended": "0" } },
        "spec": { "suspend": true, "replicatedJobs": [{ "name": "w", "replicas": 1, "template": { "spec": { "parallelism": 1,
            "template": { "spec": { "containers": [{ "name": "main", "image": "x",
                "resources": { "limits": { "nvidia.com/gpu": "8" } } }] } } } } }] } })
}

/// A world with a JobSet that waits, and what bounds it.
fn one_suspended() -> World {
    let mut world = World::default();
    world.add_node(node("n1", 4));
    world.others.insert("jobsets".into(), vec![set("first")]);
    stir_suspended(&mut world, 0);
    world
}

/// A JobSet, a class and a quota come, and those before go.
fn stir_suspended(world: &mut World, number: usize) {
    let sets = world.others.get_mut("jobsets").unwrap();
    sets.truncate(1);
    sets.push(set(&format!("set-{number}")));
    let classes = vec![json!({ "metadata": { "name": format!("class-{number}") }, "value": number })];
    world.of_kueue.insert("priorityclasses".into(), classes);
    let hard = json!({ "pods": number.to_string() });
    world.quotas =
        vec![json!({ "metadata": { "name": "quota", "namespace": "team" }, "status": { "hard": hard } })];
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_is_what_is_listed_after_every_fault_of_every_watch() {
    agree_after_faults(one_of_all(), &KINDS, stir).await;
}

#[tokio::test(start_paused = true)]
async fn so_it_is_of_what_waits_suspended() {
    agree_after_faults(one_suspended(), &KINDS_OF_SUSPENDED, stir_suspended).await;
}

#[tokio::test(start_paused = true)]
async fn kinds_that_are_there_are_listed_once_and_those_that_are_not_are_not_asked_for_in_each_round() {
    let site = Site::new(one_suspended());
    let mut controller = site.controller();
    for round in 0..10 {
        controller.round(NOW_S + 2 * round).await;
        sleep(Duration::from_millis(500)).await;
    }
    assert_eq!(controller.status().num_failed, 0);
    // Nodes, pods and quotas; JobSets once more for the watch. Lists of classes are not counted.
    assert_eq!(site.world(|world| world.num_lists), 5);
    // One that comes later is seen.
    let is_seen = |lists: &Lists| {
        let mut names = lists.others.iter().map(|(_, one)| one.metadata.name.as_deref());
        names.any(|name| name == Some("later"))
    };
    site.world(|world| world.others.get_mut("jobsets").unwrap().push(set("later")));
    sleep(Duration::from_secs(2)).await;
    assert!(is_seen(&site.kept.lists().await.unwrap()));
}

async fn agree_after_faults(world: World, kinds: &[&'static str], stir: fn(&mut World, usize)) {
    let site = Site::new(world);
    site.agrees("at first").await;
    let mut number = 0;
    for fault in [
        WatchFault::Cut,
        WatchFault::Gone,
        WatchFault::GoneStatus,
        WatchFault::Error,
        WatchFault::Garbage,
        WatchFault::Half,
        WatchFault::Break,
        WatchFault::Replay,
        WatchFault::Nameless,
        WatchFault::Bookmarks,
        WatchFault::Silent,
        WatchFault::Late(3),
        WatchFault::Forbidden,
    ] {
        for kind in kinds.iter().copied() {
            site.world(|world| world.journal.faults.push_back((kind, fault)));
            let began = Instant::now();
            while site.world(|world| !world.journal.faults.is_empty()) {
                assert!(
                    began.elapsed() < Duration::from_secs(60),
                    "{fault:?} of {kind} did not happen"
                );
                site.world(|world| stir(world, number));
                number += 1;
                sleep(Duration::from_millis(700)).await;
            }
            site.world(|world| stir(world, number));
            number += 1;
            site.agrees(&format!("{fault:?} of {kind}")).await;
        }
    }
    // Versions that are forgotten while nothing listens.
    for kind in kinds.iter().copied() {
        let silent = [(kind, WatchFault::Error), (kind, WatchFault::Error)];
        site.world(|world| world.journal.faults.extend(silent));
        sleep(Duration::from_millis(1500)).await;
        site.world(|world| {
            stir(world, number);
            world.compact();
        });
        number += 1;
        site.agrees(&format!("{kind} after a compaction")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn rounds_list_once_and_see_the_end_of_what_they_did() {
    let mut world = one_of_all();
    for number in 0..6 {
        world.add_pod(owned(pod(&format!("p{number}"), 4)));
    }
    let site = Site::new(world);
    let mut controller = site.controller();
    for round in 0..20 {
        controller.round(NOW_S + 2 * round).await;
        site.world(|world| {
            world.now_s = Some(NOW_S + 2 * round + 1);
            world.tick();
            if round % 3 == 2 {
                let running = world.binds.len();
                let (uid, _) = world.binds[running - 1].clone();
                world.ends.insert(uid, Instant::now());
                world.tick();
            }
        });
        sleep(Duration::from_millis(500)).await;
    }
    let status = controller.status();
    assert_eq!(status.num_failed, 0, "{}", status.last_error);
    let (lists, job_lists, lifted) =
        site.world(|world| (world.num_lists, world.num_job_lists, world.lifted.len()));
    // Nodes, pods, claims and volumes.
    assert_eq!((lists, job_lists), (4, 1));
    assert_eq!(lifted, 7, "all were let go, once each");
}

/// The round after a start must not start the same pod again while the watch is behind.
#[tokio::test(start_paused = true)]
async fn what_was_let_go_is_let_go_once_though_the_watch_falls_behind() {
    let mut world = World::default();
    world.add_node(node("n1", 8));
    for name in ["a", "b"] {
        let mut gang = owned(pod(name, 2));
        gang["metadata"]["annotations"] = json!({ "pleach/gang": "g", "pleach/gang-size": "2" });
        world.add_pod(gang);
    }
    world.add_pod(pod("c", 2));
    let site = Site::new(world);
    site.agrees("at first").await;
    let late = [("Pod", WatchFault::Late(4))];
    site.world(|world| world.journal.faults.extend(late));
    // The watch that is late has begun.
    sleep(Duration::from_millis(1500)).await;
    let mut controller = site.controller();
    let mut notes = controller.round(NOW_S).await;
    let before = site.world(|world| world.num_writes);
    assert_eq!(site.world(|world| world.lifted.len()), 3, "{notes:?}");
    for after_s in 1..4 {
        notes.extend(controller.round(NOW_S + after_s).await);
    }
    assert_eq!(notes, Vec::<String>::new());
    assert_eq!(site.world(|world| world.num_writes), before);
    assert_eq!(controller.status().num_starts, 2);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_started_by_what_is_too_old_and_all_goes_on_once_it_is_new() {
    let site = Site::new(one_of_all());
    let mut controller = site.controller();
    assert!(controller.round(NOW_S).await.is_empty());
    assert_eq!(site.world(|world| world.lifted.len()), 1);
    // Nodes alone are not shown any more, and the API server takes what it is sent.
    let errors = std::iter::repeat_n(("Node", WatchFault::Error), 50);
    site.world(|world| {
        world.journal.faults.extend(errors);
        world.list_pause = Duration::from_secs(100);
        world.add_pod(pod("late", 2));
    });
    sleep(Duration::from_secs(10)).await;
    let notes = controller.round(NOW_S + 10).await;
    let is_stale = |note: &String| note.contains("the watch of nodes has shown nothing");
    assert!(notes.iter().any(is_stale), "{notes:?}");
    assert_eq!(
        (
            site.world(|world| world.lifted.len()),
            controller.status().num_failed
        ),
        (1, 1)
    );
    site.world(|world| {
        world.journal.faults.clear();
        world.list_pause = Duration::ZERO;
    });
    sleep(Duration::from_secs(15)).await;
    assert_eq!(controller.round(NOW_S + 25).await, Vec::<String>::new());
    assert_eq!(site.world(|world| world.lifted.clone()), [uid("a"), uid("late")]);
}

#[tokio::test(start_paused = true)]
async fn without_the_right_to_watch_each_round_lists_and_says_why() {
    let site = Site::new(one_of_all());
    for _ in 0..2 {
        site.world(|world| world.journal.faults.push_back(("Node", WatchFault::Forbidden)));
    }
    let mut controller = site.controller();
    controller.round(NOW_S).await;
    site.world(World::tick);
    sleep(Duration::from_secs(5)).await;
    site.world(|world| world.add_node(node("n2", 8)));
    for after_s in [5, 6] {
        let notes = controller.round(NOW_S + after_s).await;
        let why = "nodes are listed in each round, for they may not be watched";
        assert!(notes.iter().any(|note| note.starts_with(why)), "{notes:?}");
    }
    assert_eq!(controller.status().num_failed, 0);
    assert_eq!(site.kept.lists().await.unwrap().nodes.len(), 2);
    // Once the right is there the watch goes on.
    sleep(Duration::from_secs(70)).await;
    assert_eq!(controller.round(NOW_S + 80).await, Vec::<String>::new());
}

/// One that has just begun has read no roles yet.
#[tokio::test(start_paused = true)]
async fn an_api_server_that_refuses_all_for_a_moment_is_watched_again_and_nothing_is_listed() {
    let site = Site::new(one_of_all());
    site.agrees("at first").await;
    let mut controller = site.controller();
    assert!(controller.round(NOW_S).await.is_empty());
    // All are watched by now.
    sleep(Duration::from_secs(2)).await;
    let before = site.world(|world| {
        let kinds = ["Node", "Pod", "Job"].into_iter();
        world
            .journal
            .faults
            .extend(kinds.map(|kind| (kind, WatchFault::Forbidden)));
        world.num_lists + world.num_job_lists
    });
    for after_s in 1..8 {
        sleep(Duration::from_secs(1)).await;
        assert_eq!(controller.round(NOW_S + after_s).await, Vec::<String>::new());
    }
    site.world(|world| world.add_node(node("n2", 8)));
    sleep(Duration::from_secs(3)).await;
    assert_eq!(site.kept.lists().await.unwrap().nodes.len(), 2);
    assert_eq!(
        site.world(|world| (world.journal.faults.len(), world.num_lists + world.num_job_lists)),
        (0, before)
    );
}

#[tokio::test(start_paused = true)]
async fn a_first_list_that_fails_fails_the_round_with_its_words_and_the_next_ones_go_on() {
    let mut world = one_of_all();
    world.fault_every = 1;
    let site = Site::new(world);
    let mut controller = site.controller();
    let notes = controller.round(NOW_S).await;
    assert_eq!(controller.status().num_failed, 1);
    assert!(
        notes.iter().any(|note| note.contains("list of nodes")),
        "{notes:?}"
    );
    site.world(|world| world.fault_every = 0);
    sleep(Duration::from_secs(20)).await;
    assert_eq!(controller.round(NOW_S + 20).await, Vec::<String>::new());
    assert_eq!(controller.status().num_starts, 1);
}

#[tokio::test(start_paused = true)]
async fn watches_that_are_cut_at_once_are_asked_for_once_a_second() {
    let site = Site::new(one_of_all());
    let cut = std::iter::repeat_n(("Pod", WatchFault::Cut), 100);
    site.world(|world| world.journal.faults.extend(cut));
    site.kept.lists().await.unwrap();
    sleep(Duration::from_millis(10_500)).await;
    let of_pods = |world: &mut World| {
        world
            .journal
            .watches
            .iter()
            .filter(|(kind, _)| *kind == "Pod")
            .count()
    };
    let num = site.world(of_pods);
    assert!((9..=11).contains(&num), "{num} watches in ten seconds and a half");
    // Nor is anything listed again.
    assert_eq!(site.world(|world| world.num_lists), 4);
}
