//! Processes that answer, that do not, and that lie.

use pleach_scheduler::cluster::{Capabilities, Cluster, Submission};
use pleach_scheduler::cluster_spec::{ClusterSpec, ModelClass, Resources};
use pleach_scheduler::{ClassId, Estimate, Planner as _, PolicyPlanner, Provenance, TenantId};

use super::*;

/// A process that greets and then answers every line with this text.
fn answering(text: &str) -> String {
    format!(
        "pipe@20:sh -c 'read -r hello; echo \"{{\\\"pleach\\\": 1}}\"; while read -r line; do echo \"{text}\"; done'"
    )
}

/// Plans once for two jobs on four GPUs; what came of it.
fn planned(place: &str) -> Result<usize, String> {
    let spec = ClusterSpec::uniform(1, 4, 1);
    let class = ModelClass {
        name: "any".into(),
        speed: vec![1.0],
        ..ModelClass::default()
    };
    let mut cluster = Cluster::new(&spec, &[class], Capabilities::DEFAULT).unwrap();
    for num_gpus in [1, 2] {
        let request = Submission {
            tenant: TenantId(0),
            class: ClassId(0),
            num_gpus,
            estimate_s: Estimate {
                value: 100.0,
                provenance: Provenance::Oracle,
            },
            resources: Resources::WHOLE_GPU,
        };
        cluster.submit(request).unwrap();
    }
    let pipe = Pipe::of(place).unwrap().unwrap();
    let mut planner = PolicyPlanner::new(pipe.policy());
    planner.plan(&mut cluster).map_err(|error| error.to_string())?;
    Ok(cluster.num_running())
}

#[test]
fn a_command_is_words_with_a_deadline_and_has_the_name_of_its_last_file() {
    let pipe = Pipe::of("pipe@2.5:python3 'my folder/shortest first.py' --fast")
        .unwrap()
        .unwrap();
    assert_eq!(pipe.words, ["python3", "my folder/shortest first.py", "--fast"]);
    assert_eq!(
        (pipe.name(), pipe.deadline),
        ("shortest first", Duration::from_millis(2500))
    );
    assert_eq!(
        Pipe::of("pipe:x").unwrap().unwrap().deadline,
        Duration::from_secs(10)
    );
    for place in ["sjf", "deal:sjf", "pipes:x", "pipe"] {
        assert_eq!(Pipe::of(place).unwrap(), None, "{place}");
    }
    for place in [
        "pipe:",
        "pipe: --only",
        "pipe:a 'b",
        "pipe@0:x",
        "pipe@soon:x",
        "pipe@1e9:x",
    ] {
        assert!(Pipe::of(place).is_err(), "{place}");
    }
}

#[test]
#[cfg(unix)]
fn a_process_chooses_by_index_and_by_scores() {
    assert_eq!(planned(&answering(r#"{\"index\": 1}"#)), Ok(2));
    // An idle cluster may not hold.
    let said = planned(&answering(r#"{\"index\": 0}"#)).unwrap_err();
    assert!(said.contains("allowed is {\"index\": 1 to"), "{said}");
}

#[test]
#[cfg(unix)]
fn a_dead_a_slow_and_a_lying_process_are_told_with_command_and_line() {
    for (place, words) in [
        (
            "pipe:/nowhere/policy".to_string(),
            vec!["/nowhere/policy", "cannot be started"],
        ),
        (
            "pipe:sh -c 'exit 3'".to_string(),
            vec!["sh -c 'exit 3'", "has ended (exit status: 3)"],
        ),
        (
            "pipe:echo hello".to_string(),
            vec!["its first line is `hello`", "{\"pleach\": 1}"],
        ),
        (
            "pipe:echo '{\"pleach\": 2}'".to_string(),
            vec!["version 2", "allowed is 1"],
        ),
        (
            answering("maybe"),
            vec!["decision 1", "answered `maybe`", "finite numbers"],
        ),
        (
            answering(r#"{\"index\": 77}"#),
            vec!["{\"index\": 77}", "allowed is"],
        ),
        (
            answering(r#"{\"scores\": [1]}"#),
            vec!["decision 1", "finite numbers"],
        ),
        (
            answering(r#"{\"index\": 1, \"decision\": 9}"#),
            vec!["answered decision 9"],
        ),
        (answering(r#"{\"indx\": 1}"#), vec!["answered `{\"indx\": 1}`"]),
        (
            "pipe@0.3:sh -c 'read -r hello; echo \"{\\\"pleach\\\": 1}\"; sleep 60'".to_string(),
            vec!["decision 1", "no answer within 0.3 s"],
        ),
        (
            "pipe:sh -c 'read -r hello; echo \"{\\\"pleach\\\": 1}\"; read -r line; exit 1'".to_string(),
            vec!["decision 1", "exit status: 1"],
        ),
    ] {
        let said = planned(&place).unwrap_err();
        assert!(words.iter().all(|word| said.contains(word)), "{place}: {said}");
    }
    let refused = Pipe::of("pipe:sh -c 'exit 3'")
        .unwrap()
        .unwrap()
        .check()
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("exit status: 3") && refused.contains("docs/policy-file.md"),
        "{refused}"
    );
}
