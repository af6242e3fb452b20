//! Policies by name and by file.

use super::*;
use pleach_dealing::DEALS;
use pleach_scheduler::Capabilities;

#[test]
fn what_deals_is_made_of_what_chooses_among_candidates_and_of_no_planner() {
    let dealt = Door::CLUSTER.open("deal:sjf").unwrap().remove(0);
    assert_eq!((dealt.name(), dealt.is_planner()), ("deal:sjf", true));
    assert!(dealt.make_planner().is_ok() && dealt.policy().is_err());
    assert_eq!(dealt.asks().unwrap(), DEALS);
    assert!(dealt.check(Capabilities::DEFAULT).is_ok());
    let named = Door::CLUSTER.open("mine=deal:sjf").unwrap().remove(0);
    assert_eq!(named.name(), "mine");
    let tree = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/trees/PhillyShare-v1-tree.json"
    );
    let tree = Door::CLUSTER.open(&format!("deal:{tree}")).unwrap().remove(0);
    assert!(tree.name().starts_with(DEALT) && tree.text().unwrap().contains("tier 1"));
    let network = format!(
        "deal:{}/../../checkpoints/reference/PhillyGang-v1.ckpt",
        env!("CARGO_MANIFEST_DIR")
    );
    for (wrong, word) in [
        ("deal:las-deal", "chooses among candidates"),
        ("deal:deal:sjf", "chooses among candidates"),
        ("deal:sfj", "Did you mean sjf?"),
        (&network, "train one with --workload deals"),
    ] {
        let text = Door::CLUSTER.open(wrong).unwrap_err().to_string();
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn an_order_is_made_of_everything_that_has_one_and_of_nothing_else() {
    let reference = concat!(env!("CARGO_MANIFEST_DIR"), "/../../checkpoints/reference/");
    let tree = format!("order:{reference}../../tests/trees/PhillyGang-v1-tree.json");
    let network = format!("order:{reference}PhillyGang-v1.ckpt");
    for text in [
        "order:sjf",
        "order:srtf",
        "order:sjf-resize",
        "order:las-deal",
        "order:index",
        "order:deal:sjf",
        &tree,
        &network,
    ] {
        let ordered = Door::CLUSTER.open(text).unwrap().remove(0);
        assert!(
            ordered.name().starts_with("order:") && ordered.is_planner(),
            "{text}"
        );
        assert!(ordered.make_planner().is_ok() && ordered.policy().is_err());
        // Whatever the policy would do besides, a cluster need not be able to.
        assert!(ordered.asks().unwrap().is_empty() && ordered.check(Capabilities::DEFAULT).is_ok());
    }
    let lost = |text: &str| Door::CLUSTER.open_one(text).unwrap().lost_in_order().unwrap();
    assert!(lost("order:sjf").is_empty());
    assert!(lost("order:srtf").contains(pleach_scheduler::ActionKind::Preempt));
    assert_eq!(lost("order:las-deal"), DEALS);
    assert_eq!(Door::CLUSTER.open_one("mine=order:sjf").unwrap().name(), "mine");
    for (wrong, word) in [
        ("order:gavel-las", "in the simulator alone"),
        ("order:gittins-deal", "in the simulator alone"),
        ("order:order:sjf", "Once is enough"),
        ("deal:order:sjf", "leave `deal:` out"),
        ("order:sfj", "Did you mean sjf?"),
    ] {
        let text = Door::CLUSTER.open(wrong).unwrap_err().to_string();
        assert!(text.contains(word), "{wrong}: {text}");
    }
}

#[test]
fn an_unknown_policy_is_refused_with_the_allowed_set_and_a_guess() {
    let text = Door::CLUSTER.open("sfj").unwrap_err().to_string();
    assert!(
        text.contains("fair-share") && text.contains("Did you mean sjf?"),
        "{text}"
    );
}

#[test]
fn runs_of_the_same_kind_are_named_by_their_folders() {
    let tree = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/trees/PhillyShare-v1-tree.json"
    );
    let root = tempfile::tempdir().unwrap();
    let put = |place: &str| {
        let file = root.path().join(place);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::copy(tree, &file).unwrap();
    };
    let names = |specs: &[&str]| -> Vec<String> {
        let full = |spec: &&str| spec.replace('@', &root.path().display().to_string());
        let specs: Vec<String> = specs.iter().map(full).collect();
        let all = Door::CLUSTER.open_all(&specs).unwrap();
        all.iter().map(|policy| policy.name().to_string()).collect()
    };
    for place in ["a/tree.json", "b/tree.json", "b/small.json", "c/a/tree.json"] {
        put(place);
    }
    assert_eq!(names(&["@/a"]), ["tree"]);
    assert_eq!(
        names(&["fifo", "@/a", "@/b/tree.json", "@/b/small.json"]),
        ["fifo", "a", "b", "small"]
    );
    assert_eq!(
        names(&["deal:@/a", "order:@/b", "order:@/a"]),
        ["deal:tree", "order:b", "order:a"]
    );
    assert_eq!(
        names(&["deal:@/a", "deal:@/b", "mine=@/b"]),
        ["deal:a", "deal:b", "mine"]
    );
    // As many folders as it takes; all of them where the last ones are the same.
    let [one, other] = &names(&["@/a", "@/c/a"])[..] else {
        panic!("two policies");
    };
    assert!(one.ends_with("/a") && other == "c/a", "{one} {other}");
}

#[test]
fn no_policies_means_all_heuristics_and_names_stay_unique() {
    assert_eq!(
        Door::CLUSTER.open_all(&[]).unwrap().len(),
        heuristics::names().len()
    );
    let named = ["fifo", "fifo=sjf", "again=fifo"].map(str::to_string);
    let twice = Door::CLUSTER.open_all(&named).unwrap();
    let names: Vec<&str> = twice.iter().map(PolicySpec::name).collect();
    assert_eq!(names, ["fifo", "fifo-2", "again"]);
    let refused = Door::CLUSTER
        .open_all(&["sjf".into(), "fifo".into(), "sjf".into()])
        .unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("policy = sjf: allowed is each policy once"),
        "{refused}"
    );
}

#[test]
fn files_that_are_no_policies_are_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in [
        ("a.json", "{\"format\": 1}"),
        ("b.ckpt", "not a checkpoint"),
        ("c", ""),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        let error = Door::CLUSTER.open(path.to_str().unwrap()).unwrap_err();
        assert!(
            error.family == pleach_scheduler::Family::Contract,
            "{name}: {error}"
        );
    }
    assert!(
        Door::CLUSTER
            .open(folder.path().to_str().unwrap())
            .unwrap_err()
            .to_string()
            .contains("tree.json")
    );
}

#[test]
fn a_folder_of_two_is_no_place_of_one_and_takes_no_label() {
    let reference = concat!(env!("CARGO_MANIFEST_DIR"), "/../../checkpoints/reference/");
    let root = tempfile::tempdir().unwrap();
    for (file, name) in [
        ("../../tests/trees/PhillyShare-v1-tree.json", "tree.json"),
        ("PhillyShare-v1.ckpt", "network.ckpt"),
    ] {
        std::fs::copy(format!("{reference}{file}"), root.path().join(name)).unwrap();
    }
    let place = root.path().display().to_string();
    assert_eq!(Door::CLUSTER.open(&place).unwrap().len(), 2);
    let refused = [
        Door::CLUSTER.open_one(&place).err(),
        Door::CLUSTER.open(&format!("mine={place}")).err(),
        Door::CLUSTER.open(&format!("mine=deal:{place}")).err(),
    ];
    for refused in refused {
        let text = refused.unwrap().to_string();
        assert!(text.contains("allowed is a place of one policy"), "{text}");
    }
}

#[test]
fn settings_are_for_planners_and_change_them() {
    let mut all = Door::CLUSTER
        .open_all(&["index".to_string(), "mine=deal:sjf".to_string()])
        .unwrap();
    let before = all[0].text();
    let weights = serde_json::json!({ "index": { "weights": { "gang": -1.0 } } });
    PolicySpec::configure(&mut all, &weights).unwrap();
    assert_ne!(all[0].text(), before);
    let refused = PolicySpec::configure(&mut all, &serde_json::json!({ "mine": {} })).unwrap_err();
    assert!(refused.to_string().contains("policy-config = mine"), "{refused}");
}

#[test]
fn a_name_that_is_taken_or_could_not_be_given_is_refused() {
    let own = |name: &'static str| OwnPolicy {
        info: pleach_scheduler::heuristics::Info {
            name,
            family: "",
            citation: "",
            knows: "",
            decides: "",
        },
        make: || {
            Box::new(pleach_scheduler::heuristics::head_of_line(
                "mine",
                pleach_scheduler::Lens::Arrival,
            ))
        },
    };
    for names in [
        vec!["sjf"],
        vec!["las-deal"],
        vec!["conservative"],
        vec!["mine", "mine"],
        vec!["a,b"],
        vec!["pipe:x"],
        vec![""],
    ] {
        let policies = names.iter().map(|name| own(name)).collect();
        let said = register(policies, Vec::new()).unwrap_err().to_string();
        assert!(said.contains("that no other policy has"), "{names:?}: {said}");
    }
    assert!(own_policies().is_empty() && own_planners().is_empty());
}

#[test]
fn named_rivals_open_by_name_as_their_files_do() {
    for rival in RIVALS {
        let name = rival.info.name;
        assert!(Door::CLUSTER.names().contains(&name));
        let opened = Door::CLUSTER.open_one(name).unwrap();
        assert_eq!((opened.name(), opened.own_name()), (name, name));
        let file = format!("{}/src/rivals/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let of_file = Door::CLUSTER.open_one(&format!("{name}={file}")).unwrap();
        assert_eq!(opened.text(), of_file.text(), "{name}");
        let labelled = Door::CLUSTER.open_one(&format!("mine={name}")).unwrap();
        assert_eq!(labelled.name(), "mine");
    }
    let of = |name: &str| Door::CLUSTER.open_one(name).unwrap();
    assert!(of("index-mix").is_planner() && of("index-mix").round_dealer().is_ok());
    assert!(!of("best-gavel-multi").is_planner() && of("deal:best-gavel-multi").is_planner());
    let refused = Door::CLUSTER.open("best-gavel-mult").unwrap_err().to_string();
    assert!(refused.contains("Did you mean best-gavel-multi?"), "{refused}");
}

#[test]
fn a_process_over_a_pipe_is_answered_with_what_does_the_same() {
    for place in ["pipe:python3 my_policy.py", "pipe@2.5:./mine", "mine=deal:pipe:x"] {
        let said = Door::CLUSTER.open(place).unwrap_err().to_string();
        assert!(said.contains("Policies over a pipe are gone"), "{said}");
    }
}

#[test]
fn a_planner_of_the_laboratory_is_refused_where_it_is_not_registered_and_the_words_say_where_it_plans() {
    for (door, words) in [
        (Door::CLUSTER, "in the simulator alone"),
        (Door::SIMULATOR, "feature `lab`"),
    ] {
        for name in LABORATORY {
            let said = door.open(name).unwrap_err().to_string();
            assert!(said.contains(words), "{name}: {said}");
        }
    }
    assert!(Door::SIMULATOR.open_one("conservative").unwrap().is_planner());
    let said = Door::CLUSTER.open("conservative").unwrap_err().to_string();
    assert!(said.contains("in the simulator alone"), "{said}");
}
