//! The registry: names, descriptions, errors.

use crate::heuristics::{by_name, infos, names};

#[test]
fn every_name_makes_the_policy_of_that_name_and_none_of_them_reads_the_observation() {
    assert_eq!(infos().len(), names().len());
    for (name, info) in names().iter().zip(infos()) {
        let policy = by_name(name).unwrap();
        assert_eq!((policy.name(), info.name), (*name, *name));
        assert!(!policy.needs().observation);
    }
}

#[test]
fn an_unknown_name_is_refused_with_all_names_and_the_nearest_one() {
    let text = |name| by_name(name).err().unwrap().to_string();
    assert!(text("SJF").ends_with("did you mean sjf?"), "{}", text("SJF"));
    assert!(text("fairshare").ends_with("did you mean fair-share?"));
    assert!(text("easy_sjf").ends_with("did you mean easy-sjf?"));
    assert!(text("x").contains("one of fifo, fifo-skip, sjf, srtf"));
    assert!(text(&"x".repeat(10_000)).contains("did you mean"));
}
