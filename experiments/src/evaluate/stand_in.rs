//! Heuristics that are another one where the cluster or the jobs lack what sets them apart: `srtf` that may stop nobody is `sjf`.
//!
//! They run all the same, for a heuristic does without what it cannot have, and tables say whose decisions theirs are.

use std::collections::BTreeMap;

use pleach_env::SimConfig;
use pleach_env::workload::Workload;
use pleach_scheduler::ActionKind;
use pleach_scheduler::cluster::Sharing;

use super::instances::Instance;
use crate::door::PolicySpec;

/// By the names of the policies that decide as another heuristic on every instance: which one, and what is missing.
#[must_use]
pub fn stand_ins(
    policies: &[PolicySpec],
    instances: &[Instance],
    sim: &SimConfig,
) -> BTreeMap<String, String> {
    let found = policies.iter().filter_map(|one| {
        let (other, missing) = stand_in(one.heuristic_name()?, instances, sim)?;
        Some((one.name().to_string(), format!("as {other}: {missing}")))
    });
    found.collect()
}

fn stand_in(name: &str, instances: &[Instance], sim: &SimConfig) -> Option<(&'static str, &'static str)> {
    let capabilities = &sim.capabilities;
    let in_all =
        |lacks: &dyn Fn(&Workload) -> bool| instances.iter().all(|instance| lacks(&instance.workload));
    let (other, missing, is_missing) = match name {
        "srtf" => ("sjf", "no preemption", !capabilities.can(ActionKind::Preempt)),
        "las" => (
            "fifo-skip",
            "no preemption",
            !capabilities.can(ActionKind::Preempt),
        ),
        "sjf-share" => ("sjf", "no sharing", capabilities.sharing == Sharing::Off),
        "fair-share" => (
            "fifo-skip",
            "one tenant",
            in_all(&|workload| workload.cluster.tenants.len() < 2),
        ),
        "sjf-moldable" => (
            "sjf",
            "no elastic jobs",
            in_all(&|workload| workload.classes.iter().all(|class| class.elastic.is_none())),
        ),
        "sjf-tuned" => (
            "sjf",
            "no jobs that CPU or memory slow down",
            in_all(&|workload| workload.classes.iter().all(|class| class.sensitivity.is_none())),
        ),
        "sjf-best-type" => (
            "sjf",
            "one GPU type",
            in_all(&|workload| workload.cluster.gpu_types.len() < 2),
        ),
        _ => return None,
    };
    is_missing.then_some((other, missing))
}

#[cfg(test)]
mod tests {
    use pleach_env::EnvConfig;

    use super::*;
    use crate::door::DOOR;
    use crate::evaluate::instances::{episodes, seeds};
    use crate::evaluate::results::Results;
    use crate::evaluate::run::Runner;
    use crate::evaluate::table::Table;

    fn played(id: &str, preemption: bool) -> (Results, BTreeMap<String, String>) {
        let mut env = EnvConfig::registered(id).unwrap();
        env.sim.capabilities.grant(ActionKind::Preempt, preemption);
        let instances = episodes(&env, &seeds(0, "test", 2)).unwrap();
        let policies = DOOR.open_all(&[]).unwrap();
        let runs = Runner::new(&env.sim).run(&instances, &policies).unwrap();
        let said = stand_ins(&policies, &instances, &env.sim);
        let results = Results::new("evaluate", runs, Some("sjf")).unwrap();
        for (name, said) in &said {
            let other = said.strip_prefix("as ").and_then(|said| said.split_once(':'));
            assert_eq!(
                jct_of(&results, name),
                jct_of(&results, other.unwrap().0),
                "{name} {said}"
            );
        }
        (results.with_stand_ins(said.clone()), said)
    }

    fn jct_of(results: &Results, policy: &str) -> Vec<Vec<f64>> {
        let runs = results.runs().iter().filter(|run| run.policy == policy);
        runs.map(|run| run.jct_s.clone()).collect()
    }

    /// Equal runs are said to be equal, and only those.
    #[test]
    fn a_table_says_who_decides_as_another_and_why() {
        let (results, said) = played("Pleach/GavelMulti-v1", false);
        let names: Vec<&str> = said.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "fair-share",
                "las",
                "sjf-moldable",
                "sjf-share",
                "sjf-tuned",
                "srtf"
            ]
        );
        assert_ne!(jct_of(&results, "sjf-best-type"), jct_of(&results, "sjf"));
        let table = Table::compare(&results, &["avg_jct_s"]).to_markdown();
        let folded = "not shown, for they decided alike: ";
        assert!(
            table.contains(folded) && table.contains("srtf as sjf (no preemption)"),
            "{table}"
        );
        let json = serde_json::to_string(&results).unwrap();
        assert!(json.contains("\"srtf\":\"as sjf: no preemption\""), "{json}");
    }

    #[test]
    fn who_may_stop_jobs_is_nobodys_stand_in() {
        let (results, said) = played("Pleach/Philly-v0", true);
        assert!(
            !said.contains_key("srtf") && !said.contains_key("las"),
            "{said:?}"
        );
        assert_eq!(said["sjf-best-type"], "as sjf: one GPU type");
        let table = Table::compare(&results, &["avg_jct_s"]).to_markdown();
        assert!(table.contains("| srtf |"), "{table}");
    }
}
