//! The admission policy of `guarded`: the controller changes nothing of a pod that the policy forbids, and the policy binds it alone. Its
//! expressions the API server compiles, in the step `guarded` of `deploy/kubernetes/tests/real`.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use pleach_kubernetes::controller::hand_back;
use pleach_kubernetes::names;
use pleach_kubernetes::suspended::maker::OTHERS;
use serde_json::{Value, json};

use crate::driven::Driven;
use crate::fake::{Fake, World, owned};
use crate::objects::{NOW_S, node, pod};

fn documents() -> Vec<Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/guarded/admission.yaml");
    serde_saphyr::from_multiple(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn policies() -> Vec<ValidatingAdmissionPolicy> {
    let all = documents().into_iter();
    let all = all.filter(|document| document["kind"] == "ValidatingAdmissionPolicy");
    all.map(|document| serde_json::from_value(document).unwrap())
        .collect()
}

/// What a pod has beside what the policy lets the controller change.
fn rest(pod: &Value) -> Value {
    let mut pod = pod.clone();
    pod["metadata"]["resourceVersion"] = json!("");
    let without = |map: &mut Value, names: &[&str]| {
        let left = map
            .as_object_mut()
            .map(|map| map.retain(|name, _| !names.contains(&name.as_str())));
        if left.is_none() || map.as_object().unwrap().is_empty() {
            *map = Value::Null;
        }
    };
    without(
        &mut pod["metadata"]["annotations"],
        &[names::DECIDED, names::LEFT],
    );
    without(&mut pod["spec"]["nodeSelector"], &[names::HOSTNAME]);
    let gates = pod["spec"]["schedulingGates"].take();
    let others = gates
        .as_array()
        .into_iter()
        .flatten()
        .filter(|gate| gate["name"] != names::GATE);
    pod["spec"]["schedulingGates"] = others.cloned().collect();
    pod
}

static NUM_JUDGED: AtomicUsize = AtomicUsize::new(0);

fn judge(old: &Value, new: &Value) {
    NUM_JUDGED.fetch_add(1, Ordering::Relaxed);
    assert_eq!(rest(old), rest(new));
}

#[tokio::test]
async fn every_patch_of_the_controller_stays_within_the_policy() {
    let mut world = World {
        life_ms: 1_000_000,
        judge: Some(judge),
        ..World::default()
    };
    world.add_node(node("n1", 8));
    world.add_node(node("n2", 8));
    for rank in 0..2 {
        let mut pod = owned(pod(&format!("w-{rank}"), 4));
        pod["metadata"]["annotations"] = json!({ "pleach/gang": "g", "pleach/gang-size": "2" });
        world.add_pod(pod);
    }
    let mut chosen = pod("chosen", 1);
    chosen["spec"]["nodeSelector"] = json!({ "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB" });
    chosen["metadata"]["labels"] = json!({ "app": "train" });
    world.add_pod(chosen);
    let mut odd = pod("odd", 1);
    odd["spec"]["resourceClaims"] = json!([{ "name": "gpu" }]);
    world.add_pod(odd);
    let mut queued = pod("queued", 1);
    queued["spec"]["schedulingGates"] = json!([{ "name": "other/gate" }, { "name": "pleach/hold" }]);
    world.add_pod(queued);
    for number in 0..3 {
        world.add_pod(pod(&format!("wide-{number}"), 8));
    }
    let mut driven = Driven::new(Fake::still(world).await, "fifo", |_| ());
    for after_s in 0..4 {
        driven.controller.round(NOW_S + 2 * after_s).await;
        driven.fake.world.lock().unwrap().tick();
    }
    let cluster = driven.fake.cluster(&driven.settings);
    let (num, refused) = hand_back(&cluster, &driven.settings).await.unwrap();
    assert!(num > 0 && refused.is_empty(), "{num}, {refused:?}");
    // Two marks and two releases of the gang, the single ones, what is left, and what is handed back.
    assert!(NUM_JUDGED.load(Ordering::Relaxed) >= 8);
}

#[test]
fn it_binds_the_controller_alone_and_lets_it_touch_nothing_elsewhere() {
    let policies = policies();
    assert_eq!(policies.len(), 3);
    for policy in &policies {
        let spec = policy.spec.as_ref().unwrap();
        assert_eq!(spec.failure_policy.as_deref(), Some("Fail"));
        let conditions = spec.match_conditions.as_ref().unwrap();
        assert_eq!(
            conditions[0].expression,
            "request.userInfo.username == 'system:serviceaccount:pleach:pleach'"
        );
        let name = policy.metadata.name.as_deref().unwrap();
        let mut bindings = documents().into_iter().filter_map(|document| {
            let binding: ValidatingAdmissionPolicyBinding = serde_json::from_value(document).ok()?;
            Some(binding.spec).filter(|spec| spec.policy_name == name)
        });
        assert_eq!(bindings.next().unwrap().validation_actions, ["Deny"]);
    }
    let elsewhere = policies[0].spec.as_ref().unwrap();
    assert_eq!(elsewhere.validations.as_ref().unwrap()[0].expression, "false");
    let constraints = elsewhere.match_constraints.as_ref().unwrap();
    let selector = constraints.namespace_selector.as_ref().unwrap();
    let selector = &selector.match_expressions.as_ref().unwrap()[0];
    assert_eq!(
        (
            selector.key.as_str(),
            selector.operator.as_str(),
            selector.values.as_deref()
        ),
        (names::DRIVE, "NotIn", Some(&["true".to_owned()][..]))
    );
    let of_pods = policies[1].spec.as_ref().unwrap();
    let variables = of_pods.variables.iter().flatten().map(|one| &one.expression);
    let validations = of_pods.validations.iter().flatten().map(|one| &one.expression);
    let all: String = variables.chain(validations).map(String::as_str).collect();
    for name in [names::GATE, names::DECIDED, names::LEFT, names::HOSTNAME] {
        assert!(all.contains(&format!("'{name}'")), "{name}: {all}");
    }
    let rules = constraints.resource_rules.as_ref().unwrap();
    let resources: Vec<&String> = rules
        .iter()
        .flat_map(|rule| rule.resources.iter().flatten())
        .collect();
    assert_eq!(resources[..3], ["pods", "pods/eviction", "jobs"]);
    let others: BTreeSet<&str> = resources[3..].iter().map(|one| one.as_str()).collect();
    assert_eq!(others, OTHERS.iter().map(|kind| kind.plural).collect());
    let of_jobs = policies[2].spec.as_ref().unwrap();
    let own = of_jobs.variables.iter().flatten().find(|one| one.name == "own");
    let own = &own.unwrap().expression;
    assert_eq!(*own, format!("['{}', '{}']", names::DECIDED, names::SUSPENDED));
}
