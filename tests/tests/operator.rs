//! What `pleach run` writes for a shadow is a configuration that `pleach-scheduler` takes.

use std::collections::BTreeMap;

use pleach_daemon::Settings;
use pleach_env::workload::import::site::{SiteOptions, import_site};
use pleach_experiments::decide::scheduler_config;
use pleach_experiments::evaluate::estimate_source::EstimateSource;

const ACCOUNTING: &str = "JobID|Account|Partition|Submit|Start|End|Timelimit|State|ReqTRES|AllocTRES|NodeList\n\
    1|vision|gpu|2026-03-01T08:00:00|2026-03-01T08:00:05|2026-03-01T09:00:05|02:00:00|COMPLETED|gres/gpu=2|gres/gpu=2,gres/gpu:a100=2|a1\n\
    2|vision|gpu|2026-03-01T08:10:00|2026-03-01T08:20:00|2026-03-01T09:00:00|02:00:00|COMPLETED|gres/gpu=1|gres/gpu=1,gres/gpu:v100=1|v1\n\
    3|speech|fast|2026-03-01T08:10:00|2026-03-01T08:20:00|2026-03-01T09:00:00|02:00:00|COMPLETED|gres/gpu=1|gres/gpu=1,gres/gpu:a100=1|a1\n";

#[test]
fn the_configuration_of_a_shadow_is_one_of_the_scheduler() {
    let folder = std::env::temp_dir().join(format!("pleach-operator-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (list, path) = (folder.join("sacct.txt"), folder.join("pleach-scheduler.toml"));
    std::fs::write(&list, ACCOUNTING).unwrap();
    let workload = import_site(&list, &SiteOptions::default()).unwrap().workload;
    let names = BTreeMap::from([("a100".to_owned(), "nvidia_a100".to_owned())]);
    for (estimates, preemption) in [(EstimateSource::User, false), (EstimateSource::History, true)] {
        let promise = preemption.then(|| folder.join("promise.json"));
        let text = scheduler_config(&workload, estimates, preemption, &names, promise.as_deref());
        std::fs::write(&path, &text).unwrap();
        let settings = Settings::load(&path).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(settings.partition.as_deref(), Some("gpu"));
        assert_eq!(settings.preemption, preemption);
        let types: Vec<&str> = settings.gpu_types.keys().map(String::as_str).collect();
        assert_eq!(types, ["nvidia_a100", "v100"]);
        assert_eq!(text.contains("history"), estimates == EstimateSource::History);
        assert_eq!(settings.promise, None, "a shadow keeps no promise");
        std::fs::write(
            &path,
            text.replace("# promise", "promise").replace("# margin", "margin"),
        )
        .unwrap();
        assert_eq!(Settings::load(&path).unwrap().promise, promise);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
