//! Leases where controllers are killed, requests fail, replicas end and budgets keep pods.

use crate::fake::owned;
use crate::leases::{Site, replica, world};
use crate::objects::{pod, uid};
use serde_json::{Value, json};

/// A gang of two, on a node each, is all that may be stopped. Whichever request of the round it is before which the controller is
/// killed, the next one goes on: the lease runs, and every pod of the gang is there, running or held.
#[tokio::test]
async fn a_controller_that_is_killed_between_eviction_and_release_loses_nothing_and_goes_on() {
    let mut is_over = false;
    for request in 1..60 {
        let mut site = Site::new(world(&[("n1", 2), ("n2", 2)]), "fifo", |_| ()).await;
        for rank in 0..2 {
            let mut pod = owned(pod(&format!("w-{rank}"), 2));
            pod["metadata"]["annotations"] = json!({ "pleach/gang": "g", "pleach/gang-size": "2" });
            site.add(pod);
        }
        site.round(0).await;
        site.tick();
        site.add(replica("chat", 1));
        let kill = site.fake.world.lock().unwrap().kill.clone();
        {
            let mut world = site.fake.world.lock().unwrap();
            world.kill_at = Some(world.num_requests + request);
        }
        // Two rounds with the end of the gang between them: the eviction and the release.
        let two = async {
            site.round(50).await;
            site.tick();
            site.round(2).await;
        };
        tokio::select! {
            biased;
            () = kill.notified() => {}
            () = two => is_over = true,
        }
        site.fake.world.lock().unwrap().kill_at = None;
        let mut site = site.restart();
        for _ in 0..6 {
            site.round(2).await;
            site.tick();
        }
        assert!(
            site.node_of("chat").is_some(),
            "killed at {request}: {:?}",
            site.controller.status()
        );
        let world = site.fake.world.lock().unwrap();
        let num_gang = world
            .pods
            .keys()
            .filter(|(_, name)| name.starts_with("w-"))
            .count();
        assert_eq!(num_gang, 2, "killed at {request}");
        // Half of it may have come back before the rest went.
        assert!(
            (2..=3).contains(&world.num_evicted),
            "killed at {request}: {}",
            world.num_evicted
        );
        if is_over {
            break;
        }
    }
    assert!(is_over, "more requests than there are");
}

/// Training that is stopped again and again, replicas that come and go, requests of which every 37th fails.
#[tokio::test]
async fn replicas_and_jobs_share_a_cluster_although_requests_fail_and_controllers_are_killed() {
    let mut site = Site::new(world(&[("n1", 4), ("n2", 4)]), "sjf", |settings| {
        settings.leases.checkpoint_s = Some(60.0);
        settings.request_limit_s = 0.3;
    })
    .await;
    for number in 0..10 {
        site.add(owned(pod(&format!("t{number}-"), 1 + number % 3)));
    }
    site.fake.world.lock().unwrap().fault_every = 37;
    for number in 0..60 {
        match number % 12 {
            1 | 3 | 4 | 5 => site.add(replica(&format!("chat-{number}-"), 1)),
            8 | 10 => {
                let mut world = site.fake.world.lock().unwrap();
                let first = world
                    .pods
                    .keys()
                    .find(|(namespace, _)| namespace == "serve")
                    .cloned();
                if let Some(key) = first {
                    world.pods.remove(&key);
                }
            }
            _ => {}
        }
        site.round(7).await;
        if number % 9 == 8 {
            site = site.restart();
        }
        site.tick();
        let world = site.fake.world.lock().unwrap();
        for name in ["n1", "n2"] {
            // Panics where a node has more pods than GPUs.
            let _ = world.free(name);
        }
        let of_lease = |(key, pod): (&(String, String), &Value)| {
            key.0 == "serve" && !pod["metadata"]["deletionTimestamp"].is_null()
        };
        assert!(!world.pods.iter().any(of_lease), "a lease was stopped");
        let num_jobs = world
            .pods
            .keys()
            .filter(|(namespace, _)| namespace == "team")
            .count();
        assert_eq!(num_jobs, 10, "a job was lost");
    }
    site.fake.world.lock().unwrap().fault_every = 0;
    for _ in 0..20 {
        site.round(7).await;
        site.tick();
    }
    let world = site.fake.world.lock().unwrap();
    let waits = |(key, pod): (&(String, String), &Value)| {
        (key.0 == "serve" && pod["spec"]["nodeName"].is_null()).then(|| key.1.clone())
    };
    let waiting: Vec<String> = world.pods.iter().filter_map(waits).collect();
    let num_leases = world
        .pods
        .keys()
        .filter(|(namespace, _)| namespace == "serve")
        .count();
    assert!(
        num_leases >= 8 && world.num_evicted > 3,
        "{num_leases} leases, {} pods evicted",
        world.num_evicted
    );
    // Eight GPUs, all of which leases may have.
    assert_eq!(num_leases - waiting.len(), 8, "{waiting:?} wait");
}

#[tokio::test]
async fn leases_that_end_teach_nobody_how_long_jobs_run() {
    let mut site = Site::new(world(&[("n1", 4)]), "sjf", |settings| {
        settings.rounds.estimates.from = pleach_daemon::config::EstimatesFrom::History;
    })
    .await;
    let mut chat = replica("chat", 1);
    chat["metadata"]["annotations"] = json!({ "pleach/estimate-s": "5" });
    site.add(chat);
    site.round(0).await;
    site.tick();
    site.round(500).await;
    site.fake.world.lock().unwrap().end("chat");
    // A job of the same namespace that is none, of as many GPUs.
    site.settings.leases.priority_classes = vec!["serving".into()];
    let mut site = site.restart();
    let mut batch = replica("batch", 1);
    batch["metadata"]["annotations"] = json!({ "pleach/estimate-s": "5" });
    site.add(batch);
    site.round(10).await;
    let log = pleach_daemon::replay::Replay::open(&site.settings.state_dir.join("decisions.jsonl")).unwrap();
    let told = log.flat_map(|record| record.unwrap().decisions).last().unwrap();
    assert_eq!(told.job().to_string(), uid("batch"));
    let estimate_s = told.estimate_s.unwrap();
    assert_eq!(
        (estimate_s.value, estimate_s.provenance),
        (5.0, pleach_scheduler::Provenance::UserLimit)
    );
}

/// A budget that allows one of two ranks to go. A dry run of each passes, and one rank alone would be of no use.
#[tokio::test]
async fn all_ranks_of_a_gang_yield_to_a_lease_or_none() {
    for (allowed, num_evicted) in [(0, 0), (1, 0), (2, 2)] {
        let mut world = world(&[("n1", 8)]);
        world.budgets = vec![json!({ "metadata": { "name": "keep", "namespace": "team" },
            "spec": { "selector": { "matchLabels": { "app": "train" } } },
            "status": { "disruptionsAllowed": allowed, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2 } })];
        let mut site = Site::new(world, "fifo", |_| ()).await;
        for rank in 0..2 {
            let mut pod = owned(pod(&format!("w{rank}"), 4));
            pod["metadata"]["labels"] = json!({ "app": "train" });
            pod["metadata"]["annotations"] = json!({ "pleach/gang": "g", "pleach/gang-size": "2" });
            site.add(pod);
        }
        site.round(2).await;
        site.tick();
        assert!(site.node_of("w0").is_some() && site.node_of("w1").is_some());
        site.add(replica("chat", 1));
        let mut notes = site.round(10).await;
        // It is not asked again within a minute, nor stopped by halves then.
        notes.extend(site.round(70).await);
        assert_eq!(site.num_evicted(), num_evicted, "{allowed} allowed: {notes:?}");
        let is_told = notes
            .iter()
            .any(|note| note.contains("the disruption budget keep allows"));
        assert_eq!(is_told, num_evicted == 0, "{notes:?}");
    }
}
