//! Bodies of the webhook: what kube-apiserver sends, and what nothing should.

use crate::objects::settings;
use k8s_openapi::ByteString;
use pleach_daemon::policy::{Decider, Loaded};
use pleach_kubernetes::let_go::LetGo;
use pleach_kubernetes::webhook;
use serde_json::{Value, json};

const REVIEW: &str = include_str!("golden/admission_review.json");

/// The operations of the answer's patch.
fn patch(review: &Value) -> Vec<Value> {
    let body = review.to_string();
    let answer = webhook::review(body.as_bytes(), &settings(), true, &LetGo::default()).unwrap();
    assert_eq!(answer["response"]["allowed"], json!(true));
    assert_eq!(answer["response"]["uid"], review["request"]["uid"]);
    match crate::fake::patch_of(&answer) {
        Value::Array(patch) => patch,
        _ => Vec::new(),
    }
}

#[test]
fn a_pod_with_gpus_gets_the_gate_and_the_answer_is_the_apis_own() {
    let answer = webhook::review(REVIEW.as_bytes(), &settings(), true, &LetGo::default()).unwrap();
    let expected = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "allowed": true, "patchType": "JSONPatch",
        // [{"op":"add","path":"/spec/schedulingGates","value":[{"name":"pleach/hold"}]}] in base64.
        "patch": "W3sib3AiOiJhZGQiLCJwYXRoIjoiL3NwZWMvc2NoZWR1bGluZ0dhdGVzIiwidmFsdWUiOlt7Im5hbWUiOiJwbGVhY2gvaG9sZCJ9XX1d" } });
    assert_eq!(answer, expected);
}

#[test]
fn only_new_pods_with_gpus_for_our_scheduler_are_held_and_marks_of_users_are_taken_off() {
    let review: Value = serde_json::from_str(REVIEW).unwrap();
    let with = |change: &dyn Fn(&mut Value)| {
        let mut review = review.clone();
        change(&mut review["request"]);
        patch(&review)
    };
    assert_eq!(with(&|_| ()).len(), 1);
    let quiet: [&dyn Fn(&mut Value); 8] = [
        &|request| request["operation"] = json!("UPDATE"),
        &|request| request["operation"] = json!("DELETE"),
        &|request| request["subResource"] = json!("eviction"),
        &|request| request["object"] = json!(null),
        &|request| request["object"]["metadata"]["labels"]["pleach/drive"] = json!("false"),
        &|request| request["object"]["spec"]["schedulerName"] = json!("volcano"),
        &|request| request["object"]["spec"]["nodeName"] = json!("n1"),
        &|request| {
            request["object"]["spec"]["containers"][0]["resources"] = json!({ "limits": { "cpu": "1" } })
        },
    ];
    for (number, change) in quiet.iter().enumerate() {
        assert_eq!(with(change), Vec::<Value>::new(), "case {number}");
    }
    let gates = with(&|request| {
        request["object"]["spec"]["schedulingGates"] = json!([{ "name": "kueue.x-k8s.io/admission" }])
    });
    assert_eq!(gates[0]["path"], "/spec/schedulingGates/-");
    let held =
        with(&|request| request["object"]["spec"]["schedulingGates"] = json!([{ "name": "pleach/hold" }]));
    assert_eq!(held, Vec::<Value>::new());
    let forged =
        with(&|request| request["object"]["metadata"]["annotations"]["pleach/decided"] = json!("{}"));
    assert_eq!(
        forged[0],
        json!({ "op": "remove", "path": "/metadata/annotations/pleach~1decided" })
    );
    let body = review.to_string();
    let silent = webhook::review(body.as_bytes(), &settings(), false, &LetGo::default()).unwrap();
    assert_eq!(
        silent["response"]["patch"],
        Value::Null,
        "a silent controller holds nobody"
    );
}

/// Pods of a driven namespace are updated by their users too: by a patch that takes our gate off, or writes a mark.
#[test]
fn nobody_but_the_controller_takes_the_gate_off_or_changes_a_mark() {
    let review: Value = serde_json::from_str(REVIEW).unwrap();
    let ask = |user: &str, change: &dyn Fn(&mut Value)| {
        let mut review = review.clone();
        let request = &mut review["request"];
        request["operation"] = json!("UPDATE");
        request["object"]["spec"]["schedulingGates"] = json!([{ "name": "pleach/hold" }]);
        request["object"]["metadata"]["annotations"]["pleach/decided"] = json!("ours");
        request["oldObject"] = request["object"].clone();
        request["userInfo"] = json!({ "username": user, "groups": ["system:authenticated"] });
        change(request);
        webhook::review(
            review.to_string().as_bytes(),
            &settings(),
            true,
            &LetGo::default(),
        )
        .unwrap()["response"]
            .clone()
    };
    let lifts = |request: &mut Value| request["object"]["spec"]["schedulingGates"] = json!([]);
    let refused = ask("eve", &lifts);
    assert_eq!(
        (&refused["allowed"], &refused["status"]["code"]),
        (&json!(false), &json!(403))
    );
    assert!(
        refused["status"]["message"]
            .as_str()
            .unwrap()
            .contains("pleach/hold")
    );
    let controller = "system:serviceaccount:pleach:pleach";
    assert_eq!(ask(controller, &lifts)["allowed"], json!(true));
    let as_operator = |request: &mut Value| {
        lifts(request);
        request["userInfo"]["groups"] = json!(["system:masters"]);
    };
    assert_eq!(ask("admin", &as_operator)["allowed"], json!(true));
    // What else users change is theirs.
    let other = |request: &mut Value| request["object"]["metadata"]["annotations"]["note"] = json!("x");
    assert_eq!(
        (&ask("eve", &other)["allowed"], &ask("eve", &other)["patch"]),
        (&json!(true), &Value::Null)
    );
    let operations = |change: &dyn Fn(&mut Value)| -> Vec<Value> {
        let bytes: ByteString = serde_json::from_value(ask("eve", change)["patch"].clone()).unwrap();
        serde_json::from_slice(&bytes.0).unwrap()
    };
    let path = "/metadata/annotations/pleach~1decided";
    let back = json!({ "op": "add", "path": path, "value": "ours" });
    let forges = |request: &mut Value| {
        request["object"]["metadata"]["annotations"]["pleach/decided"] = json!("forged");
    };
    assert_eq!(operations(&forges), std::slice::from_ref(&back));
    let strips = |request: &mut Value| request["object"]["metadata"]["annotations"] = json!(null);
    let empty = json!({ "op": "add", "path": "/metadata/annotations", "value": {} });
    assert_eq!(operations(&strips), [empty, back]);
    let adds = |request: &mut Value| {
        request["oldObject"]["metadata"]["annotations"] = json!({});
        request["object"]["metadata"]["annotations"] = json!({ "pleach/decided": "forged" });
    };
    assert_eq!(operations(&adds), [json!({ "op": "remove", "path": path })]);
    // In a namespace that is not driven nothing is refused.
    let mut others = settings();
    others.namespaces = vec!["others".into()];
    let mut review = review.clone();
    review["request"]["operation"] = json!("UPDATE");
    review["request"]["oldObject"] = review["request"]["object"].clone();
    review["request"]["oldObject"]["spec"]["schedulingGates"] = json!([{ "name": "pleach/hold" }]);
    let answer = webhook::review(review.to_string().as_bytes(), &others, true, &LetGo::default()).unwrap();
    assert_eq!(answer["response"]["allowed"], json!(true));
}

/// Where users are hostile the label that keeps a pod out does not count.
#[test]
fn the_label_that_keeps_a_pod_out_counts_where_it_may() {
    let mut review: Value = serde_json::from_str(REVIEW).unwrap();
    review["request"]["object"]["metadata"]["labels"]["pleach/drive"] = json!("false");
    let mut settings = settings();
    for (opt_out, is_held) in [(true, false), (false, true)] {
        settings.opt_out = opt_out;
        let answer =
            webhook::review(review.to_string().as_bytes(), &settings, true, &LetGo::default()).unwrap();
        assert_eq!(answer["response"]["patch"].is_string(), is_held);
    }
}

/// A stream of numbers from one seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % most.max(1) as u64) as usize
    }
}

/// Words that break things where they stand in a place of others.
const WORDS: [&str; 20] = [
    "null",
    "-1",
    "1e999",
    "18446744073709551616",
    "\"\"",
    "[]",
    "{}",
    "[[[[[[[[",
    "{\"a\":",
    "\"\\ud800\"",
    "\u{0}",
    "\"8Gi\"",
    "true",
    "\"nvidia.com/gpu\"",
    "\"4000000000\"",
    "\"-5\"",
    "0.5",
    "\"pleach/decided\"",
    ",",
    "\"1e400\"",
];

fn mutate(body: &str, numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = body.as_bytes().to_vec();
    for _ in 0..=numbers.below(3) {
        let at = numbers.below(bytes.len());
        match numbers.below(6) {
            0 => bytes.truncate(at),
            1 => bytes
                .get_mut(at)
                .into_iter()
                .for_each(|byte| *byte ^= 1 << (at % 8)),
            2 => {
                let word = WORDS[numbers.below(WORDS.len())];
                bytes.splice(at..at, word.bytes());
            }
            3 => {
                // A value in the place of another.
                let end = (at + numbers.below(40)).min(bytes.len());
                let word = WORDS[numbers.below(WORDS.len())];
                bytes.splice(at..end, word.bytes());
            }
            4 => {
                let end = (at + numbers.below(200)).min(bytes.len());
                let part = bytes[at..end].to_vec();
                let to = numbers.below(bytes.len());
                bytes.splice(to..to, part);
            }
            _ => {
                let depth = numbers.below(3000);
                bytes.splice(at..at, std::iter::repeat_n(b'[', depth));
            }
        }
    }
    bytes
}

/// Highest memory of this process so far, KiB; 0 where the system does not tell.
fn memory_peak_kib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
        .unwrap_or(0)
}

/// 3,000 bodies, or as many as `PLEACH_FUZZ_BODIES` says.
#[test]
fn mutated_bodies_are_answered_or_refused_and_never_more() {
    let num = std::env::var("PLEACH_FUZZ_BODIES").map_or(3000, |text| text.parse().unwrap());
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let settings = settings();
    let mut num_reviewed = 0_u64;
    let before = memory_peak_kib();
    for _ in 0..num {
        let body = mutate(REVIEW, &mut numbers);
        if let Ok(answer) = webhook::review(&body, &settings, true, &LetGo::default()) {
            num_reviewed += 1;
            assert_eq!(answer["response"]["allowed"], json!(true));
        }
    }
    assert!(num_reviewed > num / 50, "{num_reviewed} of {num} could be read");
    let grown = memory_peak_kib().saturating_sub(before);
    assert!(grown < 64 << 10, "{grown} KiB more");
    println!("{num} bodies: {num_reviewed} reviews could be read, {grown} KiB more at the most");
}

#[test]
fn a_policy_is_opened_by_the_door_of_the_daemons_and_refused_in_its_words() {
    let settings = settings();
    let capabilities = pleach_daemon::fleet::capabilities(&settings.rounds);
    for (place, words) in [
        ("sfj", "Did you mean sjf?"),
        ("tiresias", "in the simulator alone"),
        ("no/such/tree.json", "there is no such file"),
    ] {
        let said = Loaded::driving(place, &settings.rounds).unwrap_err().to_string();
        assert!(said.contains(words), "{said}");
        assert_eq!(said, Loaded::of(place, capabilities).unwrap_err().to_string());
    }
    assert_eq!(
        Loaded::driving("mine=deal:sjf", &settings.rounds).unwrap().name,
        "mine"
    );
    let network = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/networks/pytorch.onnx");
    assert!(matches!(
        Loaded::driving(network, &settings.rounds).unwrap().decider,
        Decider::Policy(_)
    ));
}
