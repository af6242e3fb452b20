//! Jobs that have ended, from the pods that are still listed: hand-worked lists, and a controller that learns from them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pleach_daemon::config::EstimatesFrom;
use pleach_kubernetes::Settings;
use pleach_kubernetes::controller::Kubernetes;
use pleach_kubernetes::ended::{Ended, accounting, ended};
use pleach_scheduler::ExternalId;
use serde_json::{Value, json};

use crate::fake::{Fake, World, owned};
use crate::objects::{NOW_S, job, lists, node, pod, settings, time, uid};

/// A pod that ran from one time to another on a node, s from [`NOW_S`].
fn ran(name: &str, gpus: u32, (start_s, end_s): (i64, i64)) -> Value {
    let mut pod = pod(name, gpus);
    pod["spec"]["schedulingGates"] = json!([]);
    pod["spec"]["nodeName"] = json!("n1");
    pod["status"] = json!({ "phase": "Succeeded", "startTime": time(NOW_S + start_s), "containerStatuses": [
        { "name": "side", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
          "state": { "terminated": { "exitCode": 0, "finishedAt": time(NOW_S + (start_s + end_s) / 2) } } },
        { "name": "main", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
          "state": { "terminated": { "exitCode": 0, "finishedAt": time(NOW_S + end_s) } } }] });
    pod
}

fn read(pods: &[Value], jobs: &[Value], settings: &Settings) -> BTreeMap<ExternalId, Ended> {
    let lists = lists(&[], pods, jobs);
    let (pods, jobs) = (
        lists.pods.iter().map(Arc::as_ref),
        lists.jobs.iter().map(Arc::as_ref),
    );
    ended(pods, jobs, settings)
}

fn one(pods: &[Value]) -> Ended {
    let all = read(pods, &[], &settings());
    assert_eq!(all.len(), 1, "{all:?}");
    all.into_values().next().unwrap()
}

fn times(ended: &Ended) -> (i64, i64) {
    (ended.job.start_s - NOW_S, ended.job.end_s - NOW_S)
}

#[test]
fn a_pod_ends_with_its_last_container_and_keeps_the_id_that_it_had() {
    let all = read(&[ran("a", 4, (10, 70))], &[], &settings());
    let ended = &all[&uid("a").parse().unwrap()];
    assert_eq!(times(ended), (10, 70));
    let job = &ended.job;
    assert_eq!((job.num_gpus, job.account.as_str()), (4, "team"));
    assert_eq!(job.nodes, ["n1"]);
    assert!(!ended.is_cut && ended.end().start_s == Some(NOW_S + 10));
    let by_label = Settings {
        tenant_label: Some("owner".into()),
        ..settings()
    };
    let mut named = ran("a", 4, (10, 70));
    named["metadata"]["labels"] = json!({ "owner": "ann" });
    assert_eq!(
        read(&[named], &[], &by_label)
            .into_values()
            .next()
            .unwrap()
            .job
            .account,
        "ann"
    );
}

#[test]
fn what_the_cluster_ended_is_told_apart_and_what_nobody_tells_is_left_out() {
    let failed = |change: &dyn Fn(&mut Value)| {
        let mut pod = ran("a", 1, (0, 9));
        pod["status"]["phase"] = json!("Failed");
        change(&mut pod);
        pod
    };
    assert!(!one(&[failed(&|_| {})]).is_cut, "its own failure");
    assert!(one(&[failed(&|pod| pod["status"]["reason"] = json!("Evicted"))]).is_cut);
    // A pod that was cut short before its containers reported anything is recognised all the same.
    let silent = failed(&|pod| {
        pod["status"]["reason"] = json!("NodeShutdown");
        pod["status"]["containerStatuses"] = json!([]);
    });
    assert!(one(&[silent]).is_cut);
    let target = json!([{ "type": "DisruptionTarget", "status": "True" }]);
    assert!(one(&[failed(&|pod| pod["status"]["conditions"] = target.clone())]).is_cut);
    let cases: [&dyn Fn(&mut Value); 4] = [
        &|pod| pod["status"]["containerStatuses"] = json!([]),
        &|pod| pod["status"]["startTime"] = Value::Null,
        &|pod| pod["status"]["phase"] = json!("Running"),
        &|pod| pod["metadata"]["labels"] = json!({ "pleach/drive": "false" }),
    ];
    for change in cases {
        assert!(read(&[failed(change)], &[], &settings()).is_empty());
    }
    let elsewhere = Settings {
        namespaces: vec!["others".into()],
        ..settings()
    };
    assert!(read(&[ran("a", 1, (0, 9))], &[], &elsewhere).is_empty());
}

#[test]
fn the_last_run_of_a_gang_goes_back_as_far_as_one_of_its_pods_ran_without_a_gap() {
    let rank = |name: &str, rank: u32, span| {
        let mut pod = ran(name, 2, span);
        pod["metadata"]["labels"] = json!({ "batch.kubernetes.io/job-name": "g" });
        pod["metadata"]["annotations"] =
            json!({ "batch.kubernetes.io/job-completion-index": rank.to_string() });
        pod
    };
    let pods = [
        // An attempt before a pause.
        rank("g-0-a", 0, (0, 50)),
        // Rank 1 failed and came back while rank 0 went on.
        rank("g-0-b", 0, (100, 400)),
        rank("g-1-b", 1, (101, 200)),
        rank("g-1-c", 1, (230, 390)),
    ];
    // The Job has no pods left to run.
    let mut done = job("g", 2, &json!({}));
    done["spec"]["completions"] = json!(2);
    done["status"] = json!({ "succeeded": 2 });
    let all = read(&pods, &[done], &settings());
    assert_eq!(all.len(), 1);
    let ended = all.values().next().unwrap();
    assert_eq!(times(ended), (100, 400));
    assert_eq!(ended.job.num_gpus, 4, "two ranks, whatever pods they had");
}

#[test]
fn accounting_is_what_ended_on_its_own_lately_and_lives_no_more() {
    let mut cut = ran("c", 1, (0, 60));
    cut["status"]["reason"] = json!("Evicted");
    let pods = [
        ran("a", 1, (0, 50)),
        ran("b", 1, (-900, -800)),
        cut,
        ran("d", 1, (0, 70)),
    ];
    let live: BTreeSet<ExternalId> = [uid("d").parse().unwrap()].into();
    let jobs = accounting(read(&pods, &[], &settings()), &live, NOW_S - 500);
    let ends: Vec<i64> = jobs.iter().map(|job| job.end_s - NOW_S).collect();
    assert_eq!(ends, [50]);
}

#[tokio::test]
async fn a_controller_begins_with_what_is_still_listed_and_learns_when_jobs_ended() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = Settings {
        state_dir: folder.path().join("state"),
        request_limit_s: 20.0,
        namespaces: vec!["*".into()],
        ..Settings::default()
    };
    settings.rounds.estimates.from = EstimatesFrom::History;
    settings.rounds.estimates.seed_days = 1;
    let mut world = World {
        life_ms: 1_000_000,
        ..World::default()
    };
    world.add_node(node("n1", 4));
    world.add_pod(ran("old", 4, (-600, -530)));
    world.add_pod(pod("a", 4));
    let fake = Fake::still(world).await;
    let mut driver = Kubernetes::driver(settings.clone(), fake.cluster(&settings), "sjf", false).unwrap();
    let told = |driver: &pleach_kubernetes::controller::Controller| {
        let look = driver
            .system()
            .view()
            .last(std::time::Duration::from_secs(600))
            .unwrap();
        look.snapshot.jobs.last().unwrap().predicted_s.unwrap().round()
    };
    driver.round(NOW_S).await;
    assert_eq!(told(&driver), 70.0, "of the pod that had ended before");
    let tick = |after_s| {
        let mut world = fake.world.lock().unwrap();
        world.now_s = Some(NOW_S + after_s);
        world.tick();
    };
    tick(5);
    driver.round(NOW_S + 6).await;
    tick(25);
    fake.world.lock().unwrap().end("a");
    fake.world.lock().unwrap().add_pod(pod("b", 4));
    // The end would lie between two looks, 6 s and 86 s: it was at 25 s, after 20 s.
    driver.round(NOW_S + 66).await;
    let history = std::fs::read_to_string(settings.state_dir.join("history.json")).unwrap();
    // The logarithm of 20.
    assert!(history.contains("2.99573227"), "{history}");
    assert_eq!(driver.status().num_failed, 0, "{}", driver.status().last_error);
}

#[tokio::test]
async fn a_pod_that_was_stopped_for_another_one_teaches_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = Settings {
        state_dir: folder.path().join("state"),
        request_limit_s: 20.0,
        namespaces: vec!["*".into()],
        ..Settings::default()
    };
    settings.rounds.estimates.from = EstimatesFrom::History;
    settings.rounds.preemption = true;
    let mut world = World {
        life_ms: 1_000_000,
        ..World::default()
    };
    world.add_node(node("n1", 4));
    world.add_pod(owned(pod("a", 4)));
    let fake = Fake::still(world).await;
    let mut driver =
        Kubernetes::driver(settings.clone(), fake.cluster(&settings), "las-deal", false).unwrap();
    let tick = |after_s| {
        let mut world = fake.world.lock().unwrap();
        world.now_s = Some(NOW_S + after_s);
        world.tick();
    };
    driver.round(NOW_S).await;
    tick(1);
    driver.round(NOW_S + 2).await;
    fake.world.lock().unwrap().add_pod(owned(pod("b", 4)));
    driver.round(NOW_S + 4000).await;
    // The pod is gone at once, and another one stands for it: an end between two looks, were it one.
    tick(4001);
    driver.round(NOW_S + 4002).await;
    assert_eq!(fake.world.lock().unwrap().num_evicted, 1);
    let history = std::fs::read_to_string(settings.state_dir.join("history.json")).unwrap();
    assert!(history.contains("\"all\":[]"), "{history}");
}
