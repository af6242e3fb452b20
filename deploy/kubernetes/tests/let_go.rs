//! The pod of a Job that was let go comes with its node and its mark; whatever else asks for that place gets the gate.

use std::time::{Duration, Instant};

use crate::driven::Driven;
use crate::fake::jobs::JOBS;
use crate::fake::patch_of;
use crate::objects::{NOW_S, settings};
use crate::suspended::{is_suspended, job, open};
use k8s_openapi::api::core::v1::Pod;
use pleach_kubernetes::let_go::{LetGo, Place};
use pleach_kubernetes::mark::{Decided, Key};
use pleach_kubernetes::{Settings, pod, webhook};
use serde_json::{Value, json};

/// Jobs on one node of 8 GPUs, whose webhook knows what the controller lets go.
async fn known(jobs: &[Value]) -> Driven {
    let driven = open(&["n1"], jobs, |_| ()).await;
    let let_go = driven.controller.system().view().let_go;
    driven.fake.world.lock().unwrap().let_go = let_go;
    driven
}

/// A round, and then a look of the Job controller alone; the pods that are there.
async fn pods(driven: &mut Driven, now_s: i64) -> Vec<Value> {
    let settings = driven.settings.clone();
    driven.fake.world.lock().unwrap().now_s = Some(now_s);
    driven.controller.round(now_s).await;
    let mut world = driven.fake.world.lock().unwrap();
    world.run_jobs(&settings);
    world.pods.values().cloned().collect()
}

fn is_held(pod: &Value) -> bool {
    let gates = pod["spec"]["schedulingGates"].as_array();
    gates.is_some_and(|gates| gates.iter().any(|gate| gate["name"] == "pleach/hold"))
}

#[tokio::test]
async fn the_pod_of_a_job_comes_with_its_node_and_the_pods_of_a_gang_with_the_gate() {
    let jobs = [job("one", 1, 2), job("gang", 2, 2), job("late", 1, 8)];
    let mut driven = known(&jobs).await;
    let made = pods(&mut driven, NOW_S).await;
    let of = |name: &str| -> Vec<&Value> {
        let is_its = |pod: &&Value| pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] == name;
        made.iter().filter(is_its).collect()
    };
    let [one] = of("one")[..] else { panic!("{made:?}") };
    assert!(!is_held(one));
    assert_eq!(one["spec"]["nodeSelector"]["kubernetes.io/hostname"], "n1");
    assert!(one["metadata"]["annotations"]["pleach/decided"].is_string());
    assert_eq!(
        of("gang").iter().map(|pod| is_held(pod)).collect::<Vec<_>>(),
        [true, true]
    );
    assert!(of("late").is_empty() && is_suspended(&driven, 2));
    // It is bound before the next round, which counts it as ours and gives its GPUs to no other pod.
    driven.fake.world.lock().unwrap().tick();
    pods(&mut driven, NOW_S + 2).await;
    driven.fake.world.lock().unwrap().tick();
    pods(&mut driven, NOW_S + 4).await;
    let status = driven.controller.status();
    assert_eq!(
        (status.num_waiting, driven.fake.world.lock().unwrap().binds.len()),
        (1, 3)
    );
    // So does a controller that begins anew.
    let mut driven = driven.begun_again("fifo");
    pods(&mut driven, NOW_S + 6).await;
    assert_eq!(driven.controller.status().num_waiting, 1);
    assert!(is_suspended(&driven, 2));
}

#[tokio::test]
async fn a_second_pod_of_a_job_and_one_of_a_job_that_could_not_be_let_go_are_held() {
    let mut driven = known(&[job("one", 1, 2)]).await;
    let [first] = &pods(&mut driven, NOW_S).await[..] else {
        panic!("no pod")
    };
    assert!(!is_held(first));
    // It is lost before it began; the mark that its user copies to the next one is no decision about that.
    driven.fake.world.lock().unwrap().pods.clear();
    let [mut second] = <[Value; 1]>::try_from(pods(&mut driven, NOW_S + 1).await).unwrap();
    assert!(is_held(&second));
    second["metadata"]["annotations"]["pleach/decided"] =
        first["metadata"]["annotations"]["pleach/decided"].clone();
    let read = |pod: &Value| {
        let pod: Pod = serde_json::from_value(pod.clone()).unwrap();
        pod::read(&pod, driven.controller.system().settings()).unwrap()
    };
    assert_eq!(read(&second).decided, None);
    assert_eq!(
        read(first).decided.clone().map(|mark| mark.seats),
        Some(vec![("n1".to_owned(), 1)])
    );
    // The Job changed just before: it is not let go, and nothing is kept of it.
    let mut driven = known(&[job("one", 1, 2)]).await;
    let let_go = driven.controller.system().view().let_go;
    driven.fake.world.lock().unwrap().fault_every = 1;
    driven.controller.round(NOW_S).await;
    driven.fake.world.lock().unwrap().fault_every = 0;
    let forged = pod_of("one", 2);
    assert!(let_go.place(&forged, Some(JOBS), &driven.settings).is_none());
}

/// A pod of a Job, as the Job controller makes it.
fn pod_of(name: &str, gpus: u32) -> Pod {
    let job = job(name, 1, gpus);
    let mut pod = json!({ "metadata": { "namespace": "team" }, "spec": job["spec"]["template"]["spec"] });
    pod["metadata"]["ownerReferences"] = json!([{ "apiVersion": "batch/v1", "kind": "Job", "name": name,
        "uid": job["metadata"]["uid"], "controller": true }]);
    serde_json::from_value(pod).unwrap()
}

/// What the webhook answers to a user that makes a pod.
fn answered(pod: &Pod, user: &str, is_dry: bool, let_go: &LetGo, settings: &Settings) -> Value {
    let review = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "1", "kind": { "group": "", "version": "v1", "kind": "Pod" },
        "resource": { "group": "", "version": "v1", "resource": "pods" }, "operation": "CREATE",
        "userInfo": { "username": user }, "dryRun": is_dry, "name": "", "namespace": "team", "object": pod } });
    patch_of(&webhook::review(review.to_string().as_bytes(), settings, true, let_go).unwrap())
}

#[test]
fn a_place_is_for_the_very_pod_that_was_decided_about() {
    let settings = Settings {
        marks: Key::of(&[7; 32]),
        ..settings()
    };
    let right = pod_of("one", 2);
    let uid = right.metadata.owner_references.as_ref().unwrap()[0].uid.clone();
    let expected = |until: Instant| {
        let mark = Decided {
            at_s: NOW_S,
            seat: "n1".into(),
            seats: vec![("n1".into(), 1)],
            by: "fifo".into(),
        };
        let let_go = LetGo::default();
        let place = Place {
            hostname: "n1".into(),
            mark: mark.text(&Decided::any_of(&uid), &settings.marks),
            gpus: [("nvidia.com/gpu".to_owned(), 2)].into(),
            until,
        };
        let_go.expect(&uid, place);
        let_go
    };
    let soon = || expected(Instant::now() + Duration::from_secs(600));
    let is_gated = |patch: &Value| patch.to_string().contains("pleach/hold");
    let mut pinned = right.clone();
    let selector = [("kubernetes.io/hostname".to_owned(), "n2".to_owned())];
    pinned.spec.as_mut().unwrap().node_selector = Some(selector.into());
    let cases = [
        ("a user's", &right, "bert", false, soon()),
        ("a trial", &right, JOBS, true, soon()),
        ("too late", &right, JOBS, false, expected(Instant::now())),
        ("of another Job", &pod_of("other", 2), JOBS, false, soon()),
        ("of more GPUs", &pod_of("one", 4), JOBS, false, soon()),
        ("of a node", &pinned, JOBS, false, soon()),
    ];
    for (what, pod, user, is_dry, let_go) in cases {
        assert!(
            is_gated(&answered(pod, user, is_dry, &let_go, &settings)),
            "{what}"
        );
    }
    // Asked again about the pod that it has answered, it says the same; about another one, no more.
    let let_go = soon();
    let patch = answered(&right, JOBS, false, &let_go, &settings);
    assert!(!is_gated(&patch), "{patch}");
    let mut again = right.clone();
    let notes = [(
        "pleach/decided".to_owned(),
        patch[1]["value"].as_str().unwrap().to_owned(),
    )];
    again.metadata.annotations = Some(notes.into());
    let selector = [("kubernetes.io/hostname".to_owned(), "n1".to_owned())];
    again.spec.as_mut().unwrap().node_selector = Some(selector.into());
    assert!(!is_gated(&answered(&again, JOBS, false, &let_go, &settings)));
    assert!(is_gated(&answered(&right, JOBS, false, &let_go, &settings)));
}
