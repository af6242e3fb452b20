//! Pods that yield to leases: which are waited for while they end, and for how long, and which are never stopped.

use std::collections::BTreeMap;

use crate::fake::owned;
use crate::leases::{Site, leases, replica, world};
use crate::objects::{NOW_S, let_go, lists, node, pod, settings as plain, time};
use pleach_kubernetes::Settings;
use pleach_kubernetes::observe::observe;
use serde_json::{Value, json};

/// A pod of a gang of two.
fn member(gang: &str, rank: u32) -> Value {
    let mut pod = pod(&format!("{gang}-{rank}"), 1);
    pod["metadata"]["annotations"] = json!({ "pleach/gang": gang, "pleach/gang-size": "2" });
    pod
}

/// A pod that began to end so many seconds ago, with so many to do it.
fn told_to_end(mut pod: Value, ago_s: i64, grace_s: i64) -> Value {
    pod["metadata"]["deletionTimestamp"] = json!(time(NOW_S - ago_s + grace_s));
    pod["metadata"]["deletionGracePeriodSeconds"] = json!(grace_s);
    pod
}

/// A pod that runs where it was let go to.
fn runs(pod: &Value, node: &str, seats: &[(&str, u32)]) -> Value {
    let mut pod = let_go(pod, node, seats);
    pod["spec"]["nodeName"] = json!(node);
    pod["status"] = json!({ "phase": "Running", "startTime": time(NOW_S - 50) });
    pod
}

/// GPUs that leases may wait for, by node, where these pods are.
fn leaving(pods: &[Value], settings: &Settings) -> BTreeMap<String, u32> {
    let nodes = [node("n1", 2), node("n2", 2)];
    observe(&lists(&nodes, pods, &[]), settings, NOW_S)
        .snapshot
        .site
        .leaving
}

fn with_leases() -> Settings {
    let mut settings = Settings {
        leases: leases(),
        ..plain()
    };
    settings.rounds.preemption = true;
    settings
}

fn of(list: &[(&str, u32)]) -> BTreeMap<String, u32> {
    list.iter()
        .map(|(node, num)| ((*node).to_owned(), *num))
        .collect()
}

#[tokio::test]
async fn a_gang_whose_pods_are_made_anew_before_the_old_ones_have_ended_is_stopped_alone() {
    let mut world = world(&[("n1", 2), ("n2", 2), ("n3", 2)]);
    world.makes_anew_at_once = true;
    let mut site = Site::new(world, "fifo", |_| ()).await;
    for gang in ["g1", "g2", "g3"] {
        site.add(owned(member(gang, 0)));
        site.add(owned(member(gang, 1)));
        site.round(20).await;
        site.tick();
    }
    assert_eq!(site.lifted().len(), 6);
    site.add(replica("chat", 1));
    for _ in 0..6 {
        site.round(2).await;
    }
    // All saved at the stop, so of equals the last one, and only that.
    assert_eq!(site.ending(), ["g3-0", "g3-1"]);
    assert_eq!((site.num_evicted(), site.node_of("chat")), (2, None));
    site.tick();
    site.round(2).await;
    site.tick();
    assert_eq!(site.node_of("chat").as_deref(), Some("n3"));
    assert_eq!(site.num_evicted(), 2);
}

#[test]
fn what_pods_hold_that_were_made_anew_is_coming_free_and_a_place_of_a_gang_that_runs_on_is_not() {
    let settings = with_leases();
    let seats = [("n1", 1), ("n2", 1)];
    let [first, second] = [0, 1].map(|rank| owned(member("g", rank)));
    let anew = |pod: &Value, name: &str| {
        let mut anew = pod.clone();
        anew["metadata"]["name"] = json!(name);
        anew["metadata"]["uid"] = json!(crate::objects::uid(name));
        anew["metadata"]["creationTimestamp"] = json!(time(NOW_S - 3));
        anew
    };
    let gone = |pod: &Value, node: &str| told_to_end(runs(pod, node, &seats), 5, 30);
    let both = [gone(&first, "n1"), gone(&second, "n2")];
    // No pod is made anew yet, one is, both are.
    assert_eq!(leaving(&both, &settings), of(&seats));
    let [one, other] = both;
    let one_anew = [one.clone(), other.clone(), anew(&first, "g-0x")];
    assert_eq!(leaving(&one_anew, &settings), of(&seats));
    let both_anew = [one.clone(), other, anew(&first, "g-0x"), anew(&second, "g-1x")];
    assert_eq!(leaving(&both_anew, &settings), of(&seats));
    // One that was lost of a gang that runs: its place is that of the one which comes.
    let lost = [one.clone(), runs(&second, "n2", &seats)];
    assert_eq!(leaving(&lost, &settings), of(&[]));
    let back = [one, runs(&second, "n2", &seats), anew(&first, "g-0x")];
    assert_eq!(leaving(&back, &settings), of(&[]));
    assert_eq!(leaving(&both_anew, &plain()), of(&[]));
}

#[tokio::test]
async fn who_gives_his_pod_a_year_to_end_keeps_no_lease_waiting_for_longer_than_the_operator_allows() {
    let mut site = Site::new(world(&[("n1", 1), ("n2", 1)]), "fifo", |settings| {
        settings.leases.grace_max_s = 100;
    })
    .await;
    site.run(&[("b", 1, 0)]).await;
    let mut slow = owned(pod("slow", 1));
    slow["spec"]["terminationGracePeriodSeconds"] = json!(31_536_000);
    site.add(slow);
    site.round(20).await;
    site.tick();
    site.add(replica("chat", 1));
    for _ in 0..8 {
        site.round(20).await;
    }
    // It began to end 140 s ago: 100 s and `release_limit_s` are not over.
    assert_eq!(site.ending(), ["slow"]);
    site.round(20).await;
    site.round(20).await;
    assert_eq!(site.ending(), ["b", "slow"]);
}

#[test]
fn a_pod_that_ends_is_waited_for_within_its_own_time_the_operators_and_what_requests_take() {
    let mut settings = with_leases();
    let waits = |settings: &Settings, ago_s: i64, grace_s: i64| {
        let pod = runs(&owned(pod("a", 2)), "n1", &[("n1", 1)]);
        !leaving(&[told_to_end(pod, ago_s, grace_s)], settings).is_empty()
    };
    // 600 s and 60 s.
    assert!(waits(&settings, 660, 1_000_000) && !waits(&settings, 661, 1_000_000));
    assert!(waits(&settings, 90, 30) && !waits(&settings, 91, 30));
    settings.leases.grace_max_s = 0;
    assert!(waits(&settings, 60, 30) && !waits(&settings, 61, 30));
}

/// A gang of two that no controller owns runs, and one of its pods is made anew by hand: until that one is bound the gang counts
/// as running, and may be chosen.
#[tokio::test]
async fn a_gang_that_nobody_would_make_anew_is_chosen_and_not_stopped() {
    let mut site = Site::new(world(&[("n1", 2)]), "fifo", |_| ()).await;
    site.add(member("g", 0));
    site.add(member("g", 1));
    site.round(20).await;
    site.tick();
    assert_eq!(site.lifted().len(), 2);
    {
        let mut world = site.fake.world.lock().unwrap();
        world.pods.remove(&("team".to_owned(), "g-1".to_owned())).unwrap();
    }
    let mut again = member("g", 2);
    again["metadata"]["creationTimestamp"] = json!(time(NOW_S + 30));
    site.add(again);
    site.add(replica("chat", 1));
    let notes = site.round(20).await;
    assert!(
        notes
            .iter()
            .any(|note| note.contains("no controller would make g-0 anew")),
        "{notes:?}"
    );
    site.round(2).await;
    assert_eq!((site.num_evicted(), site.ending()), (0, Vec::new()));
}
