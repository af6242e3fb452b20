//! The controller and an API server in one process, without sockets and on a clock of their own, with faults at every request drawn
//! from a seed. Each world is some minutes of faults, users and operators, and then rest, in which every pod has to end: by the
//! controller, or without it after `hand-back`. The server's own rules (no gate is added, no pod is bound twice, every eviction has
//! a precondition) are those of the other tests.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, Response};
use pleach_daemon::RoundSettings;
use pleach_kubernetes::Settings;
use pleach_kubernetes::api::Cluster;
use pleach_kubernetes::controller::{Controller, Kubernetes, hand_back};
use pleach_kubernetes::leases::LeaseSettings;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::fake::{self, World, owned};
use crate::objects::{NOW_S, node, pod};

/// Rounds in which something may go wrong, for each seed.
const ROUNDS: u64 = 60;

/// Rounds of rest after which a pod that waits is taken for starved: forty pods of at most 300 s on ten GPUs, and pauses of 10 min.
const REST_MAX: u64 = 1500;

/// Rounds of the tests.
const ROUNDS_CHECKED: u64 = 2_000;

/// Most pods that come.
const PODS_MAX: usize = 40;

/// What of one request goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Nothing is done, and no answer comes.
    Lost,
    /// It is done, and no answer comes.
    Unanswered,
    /// It is done some requests later, and no answer comes.
    Late,
    /// It is done twice.
    Doubled,
    Refused,
    Garbage,
    HalfJson,
    KilledBefore,
    KilledAfter,
}

const FAULTS: [Fault; 9] = [
    Fault::Lost,
    Fault::Unanswered,
    Fault::Late,
    Fault::Doubled,
    Fault::Refused,
    Fault::Garbage,
    Fault::HalfJson,
    Fault::KilledBefore,
    Fault::KilledAfter,
];

/// What is beside the objects.
struct Fate {
    rng: ChaCha8Rng,
    rate: f64,
    activity: f64,
    is_quiet: bool,
    /// Whether every third pod is a lease, if it is alone.
    has_leases: bool,
    now_s: i64,
    num_requests: u64,
    num_faults: u64,
    num_kills: u64,
    num_pods: usize,
    late: Vec<(u64, Request<String>)>,
    broken: Option<String>,
    told: Vec<String>,
}

impl Fate {
    fn chance(&mut self, part: f64) -> bool {
        self.rng.random_bool(part)
    }

    fn draw(&mut self, num: usize) -> usize {
        self.rng.random_range(0..num)
    }
}

#[derive(Clone)]
struct Sim {
    fate: Arc<Mutex<Fate>>,
    world: Arc<Mutex<World>>,
    router: Router,
    kill: Arc<tokio::sync::Notify>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Never; the controller that waits for it is killed or gives up.
async fn no_answer() -> Response<Body> {
    std::future::pending().await
}

impl Sim {
    fn new(seed: u64, has_leases: bool) -> Sim {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let rate = [0.0, 0.02, 0.1, 0.25][rng.random_range(0..4)];
        let activity = [0.05, 0.15, 0.4][rng.random_range(0..3)];
        let mut world = World {
            life_ms: 60_000,
            now_s: Some(NOW_S),
            ..World::default()
        };
        for (name, gpus) in [("n1", 4), ("n2", 4), ("n3", 2)] {
            world.add_node(node(name, gpus));
        }
        let world = Arc::new(Mutex::new(world));
        Sim {
            fate: Arc::new(Mutex::new(Fate {
                rng,
                rate,
                activity,
                is_quiet: false,
                has_leases,
                now_s: NOW_S,
                num_requests: 0,
                num_faults: 0,
                num_kills: 0,
                num_pods: 0,
                late: Vec::new(),
                broken: None,
                told: Vec::new(),
            })),
            router: fake::router(Arc::clone(&world)),
            world,
            kill: Arc::default(),
        }
    }

    fn cluster(&self, settings: &Settings) -> Cluster {
        let sim = self.clone();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let sim = sim.clone();
            async move {
                let (head, body) = request.into_parts();
                let bytes = body.collect_bytes().await.unwrap();
                let body = String::from_utf8(bytes.to_vec()).unwrap();
                Ok::<_, Infallible>(sim.answer(Request::from_parts(head, body)).await)
            }
        });
        Cluster::by(kube::Client::new(service, "default"), settings)
    }

    async fn serve(&self, request: Request<String>) -> Response<Body> {
        let answer = self.router.clone().oneshot(request.map(Body::from)).await;
        answer.unwrap_or_else(|never| match never {})
    }

    /// The controller may not change objects of other namespaces.
    fn judge(&self, request: &Request<String>) {
        let path = request.uri().path();
        let is_change = request.method() != Method::GET && !path.contains("/leases");
        if is_change && !path.contains("/namespaces/team/") {
            let mut fate = lock(&self.fate);
            let what = format!("{} {path}", request.method());
            fate.broken.get_or_insert(what);
        }
    }

    async fn answer(&self, request: Request<String>) -> Response<Body> {
        self.judge(&request);
        let (fault, due) = self.begin(&request);
        for late in due {
            self.serve(late).await;
        }
        let is_change = request.method() != Method::GET;
        match fault {
            None => self.serve(request).await,
            Some(Fault::Lost) => no_answer().await,
            Some(Fault::Late) if is_change => {
                self.delay(request);
                no_answer().await
            }
            Some(Fault::Unanswered | Fault::Late) => {
                self.serve(request).await;
                no_answer().await
            }
            Some(Fault::Doubled) => {
                self.serve(request.clone()).await;
                self.serve(request).await
            }
            Some(Fault::Refused) => fake::status(409, "Conflict", "on purpose"),
            Some(Fault::Garbage) => Response::new(Body::from("<html>502 Bad Gateway</html>")),
            Some(Fault::HalfJson) => {
                Response::new(Body::from("{\"kind\":\"List\",\"items\":[{\"metadata\":"))
            }
            Some(Fault::KilledBefore) => {
                self.kill.notify_one();
                no_answer().await
            }
            Some(Fault::KilledAfter) => {
                self.serve(request).await;
                self.kill.notify_one();
                no_answer().await
            }
        }
    }

    fn delay(&self, request: Request<String>) {
        let mut fate = lock(&self.fate);
        let at = fate.num_requests + 1 + fate.draw(10) as u64;
        fate.late.push((at, request));
    }

    /// Others do what they do, and it is drawn what goes wrong; late changes whose time has come.
    fn begin(&self, request: &Request<String>) -> (Option<Fault>, Vec<Request<String>>) {
        let mut fate = lock(&self.fate);
        fate.num_requests += 1;
        lock(&self.world).tick();
        let number = fate.num_requests;
        let (due, later) = fate.late.drain(..).partition(|(at, _)| *at <= number);
        fate.late = later;
        let due: Vec<_> = due.into_iter().map(|(_, request)| request).collect();
        if fate.is_quiet {
            return (None, due);
        }
        let activity = fate.activity;
        if fate.chance(activity) {
            meddle(&mut fate, &mut lock(&self.world));
        }
        let rate = fate.rate;
        if !fate.chance(rate) {
            return (None, due);
        }
        let fault = FAULTS[fate.draw(FAULTS.len())];
        fate.num_faults += 1;
        if matches!(fault, Fault::KilledBefore | Fault::KilledAfter) {
            fate.num_kills += 1;
        }
        let what = format!("{number} {fault:?} {} {}", request.method(), request.uri().path());
        fate.told.push(what);
        (Some(fault), due)
    }

    /// So many seconds pass.
    async fn pass(&self, seconds: i64) {
        let pause = Duration::from_secs(seconds as u64);
        let is_watched = lock(&self.world).journal.is_kept;
        match is_watched {
            // Watches go on meanwhile.
            true => tokio::time::sleep(pause).await,
            false => tokio::time::advance(pause).await,
        }
        let mut fate = lock(&self.fate);
        fate.now_s += seconds;
        let mut world = lock(&self.world);
        world.now_s = Some(fate.now_s);
        world.tick();
    }
}

/// What users and operators do.
fn meddle(fate: &mut Fate, world: &mut World) {
    match fate.draw(12) {
        0..5 => submit(fate, world),
        5 => delete(fate, world),
        6 | 7 => {
            let name = ["n1", "n2", "n3"][fate.draw(3)];
            let is_cordoned = world.nodes[name]["spec"]["unschedulable"] == true;
            world.nodes.get_mut(name).unwrap()["spec"]["unschedulable"] = json!(!is_cordoned);
            fate.told.push(format!("{name} is cordoned: {}", !is_cordoned));
        }
        8 => {
            let name = ["n1", "n2", "n3"][fate.draw(3)];
            let status = ["True", "Unknown"][fate.draw(2)];
            world.nodes.get_mut(name).unwrap()["status"]["conditions"] =
                json!([{ "type": "Ready", "status": status }]);
            fate.told.push(format!("{name} is ready: {status}"));
        }
        9 => annotate(fate, world, "pleach/decided"),
        10 => annotate(fate, world, "pleach/estimate-s"),
        _ => {
            let jump_s = fate.rng.random_range(-40..40);
            fate.now_s += jump_s;
            fate.told.push(format!("clocks jump by {jump_s} s"));
        }
    }
}

fn submit(fate: &mut Fate, world: &mut World) {
    let size = [1, 1, 1, 2, 3][fate.draw(5)];
    if fate.num_pods + size > PODS_MAX {
        return;
    }
    let gpus = [1, 1, 2, 4][fate.draw(4)].min(if size == 3 { 2 } else { 4 });
    let gang = fate.num_pods;
    let life_ms = fate.rng.random_range(2_000..300_000);
    let is_other = fate.chance(0.1);
    for rank in 0..size {
        let mut new = pod(&format!("p{gang}-{rank}"), gpus);
        new["metadata"]["creationTimestamp"] = json!(crate::objects::time(fate.now_s));
        if fate.has_leases && size == 1 && gang.is_multiple_of(3) {
            new["spec"]["priorityClassName"] = json!("serving");
        }
        let mut annotations = json!({ "life-ms": life_ms.to_string() });
        if size > 1 {
            annotations["pleach/gang"] = json!(format!("g{gang}"));
            annotations["pleach/gang-size"] = json!(size.to_string());
        }
        new["metadata"]["annotations"] = annotations;
        if is_other {
            new["metadata"]["namespace"] = json!("other");
            new["spec"]["schedulingGates"] = json!([]);
        }
        world.add_pod(owned(new));
    }
    fate.num_pods += size;
    fate.told
        .push(format!("p{gang} comes: {size} pods of {gpus} GPUs, {life_ms} ms"));
}

fn picked(fate: &mut Fate, world: &World) -> Option<(String, String)> {
    let is_alive = |pod: &Value| !matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    let names: Vec<_> = world
        .pods
        .iter()
        .filter(|(_, pod)| is_alive(pod))
        .map(|(key, _)| key.clone())
        .collect();
    (!names.is_empty()).then(|| names[fate.draw(names.len())].clone())
}

/// A pod is deleted, and its Job makes another one.
fn delete(fate: &mut Fate, world: &mut World) {
    if let Some(key) = picked(fate, world).filter(|(namespace, _)| namespace == "team") {
        fate.told.push(format!("{} is deleted", key.1));
        world.pods.get_mut(&key).unwrap()["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
}

/// A user writes an annotation of ours: a lie, or the mark of another pod.
fn annotate(fate: &mut Fate, world: &mut World, name: &str) {
    let Some(key) = picked(fate, world) else { return };
    let others = world.pods.values();
    let marks: Vec<String> = others
        .filter_map(|pod| pod["metadata"]["annotations"]["pleach/decided"].as_str())
        .map(str::to_owned)
        .collect();
    let text = match (name, marks.is_empty()) {
        ("pleach/decided", false) => marks[fate.draw(marks.len())].clone(),
        ("pleach/decided", true) => "{\"at\":1,\"seats\":[[\"n2\",4]],\"seat\":\"n2\"}".to_owned(),
        _ => ["1", "-5", "x", "86400"][fate.draw(4)].to_owned(),
    };
    fate.told.push(format!("{} gets {name}: {text}", key.1));
    let pod = world.pods.get_mut(&key).unwrap();
    // The mark of a pod that was let go stays: a user who overwrites it harms only that pod; other tests try it.
    let is_gated = !pod["spec"]["schedulingGates"].as_array().unwrap().is_empty();
    if name != "pleach/decided" || is_gated {
        pod["metadata"]["annotations"][name] = json!(text);
    }
}

struct Play {
    sim: Sim,
    settings: Settings,
    policy: &'static str,
    /// Whether what is seen comes by watches.
    is_watched: bool,
    controller: Option<Controller>,
    num_rounds: u64,
}

impl Play {
    async fn round(&mut self) -> Result<(), String> {
        self.num_rounds += 1;
        let seconds = lock(&self.sim.fate).rng.random_range(1..8);
        self.sim.pass(seconds).await;
        if self.controller.is_none() {
            let cluster = self.sim.cluster(&self.settings);
            if self.is_watched {
                cluster.watch(&Arc::default());
            }
            let driver = Kubernetes::driver(self.settings.clone(), cluster, self.policy, false);
            self.controller = Some(driver.map_err(|error| error.to_string())?);
        }
        let now_s = lock(&self.sim.fate).now_s;
        let controller = self.controller.as_mut().unwrap();
        let is_killed = tokio::select! {
            biased;
            () = self.sim.kill.notified() => true,
            notes = controller.round(now_s) => {
                let mut fate = lock(&self.sim.fate);
                fate.told.extend(notes.into_iter().map(|note| format!("{now_s} says: {note}")));
                false
            }
        };
        if is_killed {
            self.controller = None;
        }
        lock(&self.sim.fate).broken.take().map_or(Ok(()), Err)
    }

    async fn rest(&mut self, hands_back: bool) -> Result<(), String> {
        lock(&self.sim.fate).is_quiet = true;
        {
            let mut world = lock(&self.sim.world);
            for node in world.nodes.values_mut() {
                node["spec"]["unschedulable"] = json!(false);
                node["status"]["conditions"] = json!([{ "type": "Ready", "status": "True" }]);
            }
        }
        if hands_back {
            self.controller = None;
            let cluster = self.sim.cluster(&self.settings);
            let (_, refused) = hand_back(&cluster, &self.settings)
                .await
                .map_err(|error| error.to_string())?;
            if !refused.is_empty() {
                return Err(format!("handing back: {refused:?}"));
            }
        }
        for _ in 0..REST_MAX {
            if lock(&self.sim.world).num_left() == 0 {
                return Ok(());
            }
            match hands_back {
                // A pod that a controller had pinned to a node waits for that node's pods; nothing evicts it.
                true => {
                    self.sim.pass(5).await;
                    self.free_made_anew();
                }
                false => self.round().await?,
            }
        }
        let world = lock(&self.sim.world);
        let left = world
            .pods
            .values()
            .filter(|pod| pod["status"]["phase"] != "Succeeded");
        Err(format!(
            "pods have not ended: {:#}",
            left.cloned().collect::<Value>()
        ))
    }

    /// Pods that are made after the webhook has left have no gate.
    fn free_made_anew(&self) {
        for pod in lock(&self.sim.world).pods.values_mut() {
            pod["spec"]["schedulingGates"] = json!([]);
        }
    }
}

async fn play(seed: u64, has_leases: bool, is_watched: bool) -> Result<(u64, u64, u64), String> {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        state_dir: folder.path().join("state"),
        namespaces: vec!["team".into()],
        request_limit_s: 2.0,
        bind_wait_s: 0.0,
        page: 7,
        rounds: RoundSettings {
            deadline_s: 600.0,
            preemption: seed.is_multiple_of(5) || has_leases && seed.is_multiple_of(2),
            ..RoundSettings::default()
        },
        leases: match has_leases {
            true => LeaseSettings {
                namespaces: vec!["team".into()],
                priority_classes: vec!["serving".into()],
                checkpoint_s: Some(60.0),
                ..LeaseSettings::default()
            },
            false => LeaseSettings::default(),
        },
        ..Settings::default()
    };
    let mut play = Play {
        sim: Sim::new(seed, has_leases),
        settings,
        policy: ["sjf", "fifo", "easy", "las-deal"][(seed % 4) as usize],
        is_watched,
        controller: None,
        num_rounds: 0,
    };
    {
        let journal = &mut lock(&play.sim.world).journal;
        (journal.is_kept, journal.look) = (is_watched, Some(Duration::from_millis(500)));
    }
    let result = async {
        for _ in 0..ROUNDS {
            play.round().await?;
        }
        play.rest(seed.is_multiple_of(3)).await
    }
    .await;
    let fate = lock(&play.sim.fate);
    let last = fate.told.len().saturating_sub(80);
    result.map_err(|why| {
        format!(
            "seed {seed} by {}: {why}\n{}",
            play.policy,
            fate.told[last..].join("\n")
        )
    })?;
    Ok((play.num_rounds, fate.num_faults, fate.num_kills))
}

#[test]
fn whatever_goes_wrong_every_pod_ends_once_and_nothing_of_others_is_touched() {
    play_all((false, false), ROUNDS_CHECKED, (100, 20));
}

#[test]
fn so_it_is_where_some_pods_are_leases_for_which_others_are_stopped() {
    play_all((true, false), ROUNDS_CHECKED / 2, (30, 5));
}

#[test]
fn so_it_is_where_what_is_seen_comes_by_watches() {
    play_all((true, true), ROUNDS_CHECKED / 8, (15, 2));
}

/// Worlds until so many rounds are over, with more than so many faults and kills.
fn play_all((has_leases, is_watched): (bool, bool), rounds_checked: u64, least: (u64, u64)) {
    let first: u64 = std::env::var("PLEACH_SEED").map_or(0, |seed| seed.parse().unwrap());
    let rounds_max: u64 = std::env::var("PLEACH_ROUNDS").map_or(rounds_checked, |num| num.parse().unwrap());
    let (mut num_rounds, mut num_faults, mut num_kills) = (0, 0, 0);
    for seed in first.. {
        if num_rounds >= rounds_max {
            break;
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let (rounds, faults, kills) = runtime
            .block_on(play(seed, has_leases, is_watched))
            .unwrap_or_else(|why| panic!("{why}"));
        num_rounds += rounds;
        num_faults += faults;
        num_kills += kills;
    }
    println!("{num_rounds} rounds, {num_faults} faults, {num_kills} kills");
    assert!(rounds_max < rounds_checked || (num_faults > least.0 && num_kills > least.1));
}
