//! Heuristics that are another one where the cluster or the jobs lack what sets them apart: `srtf` without preemption is `sjf`.
//!
//! Tables say whose decisions theirs are, and their runs are the other's: nothing is simulated twice.

use std::collections::BTreeMap;

use pleach_env::SimConfig;
use pleach_env::availability::AvailabilityConfig;
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
    let workloads: Vec<&Workload> = instances
        .iter()
        .map(|instance| instance.workload.as_ref())
        .collect();
    let found = policies.iter().filter_map(|one| {
        let (other, missing) = stand_in(one.heuristic_name()?, &workloads, sim)?;
        Some((one.name().to_string(), format!("as {other}: {missing}")))
    });
    found.collect()
}

/// For each policy the place of the one whose runs are its own to the last bit: mostly its own place. One that is another's stand-in
/// need not be simulated. Where jobs fail or nodes go, a job may come back with service behind it, and all are run.
pub(crate) fn doubles(policies: &[PolicySpec], workloads: &[&Workload], sim: &SimConfig) -> Vec<usize> {
    let comes_back =
        sim.outcomes.is_some() || sim.capacity != AvailabilityConfig::default() || sim.batch_system.is_some();
    let place_of = |name: &str| {
        policies
            .iter()
            .position(|policy| policy.heuristic_name() == Some(name))
    };
    let double = |place: usize| {
        let (other, _) = stand_in(policies[place].heuristic_name()?, workloads, sim)?;
        place_of(other).filter(|_| !comes_back)
    };
    (0..policies.len())
        .map(|place| double(place).unwrap_or(place))
        .collect()
}

fn stand_in(name: &str, workloads: &[&Workload], sim: &SimConfig) -> Option<(&'static str, &'static str)> {
    let capabilities = &sim.capabilities;
    let in_all = |lacks: &dyn Fn(&Workload) -> bool| workloads.iter().all(|workload| lacks(workload));
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
    use std::time::Duration;

    use pleach_env::EnvConfig;

    use super::*;
    use crate::door::DOOR;
    use crate::evaluate::instances::{episodes, seeds};
    use crate::evaluate::results::Results;
    use crate::evaluate::run::Runner;
    use crate::evaluate::table::Table;
    use crate::progress::{Progress, Watcher};

    fn played(id: &str, preemption: bool) -> (Results, BTreeMap<String, String>) {
        let mut env = EnvConfig::registered(id).unwrap();
        env.sim.capabilities.grant(ActionKind::Preempt, preemption);
        let instances = episodes(&env, &seeds(0, "test", 2)).unwrap();
        let policies = DOOR.open_all(&[]).unwrap();
        // Timed runs are all played.
        let runs = Runner::new(&env.sim)
            .run_timed(&instances, &policies, &|| Duration::ZERO)
            .unwrap();
        let runs: Vec<_> = runs.into_iter().map(|timed| timed.run).collect();
        assert_eq!(Runner::new(&env.sim).run(&instances, &policies).unwrap(), runs);
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
    fn nothing_is_simulated_twice_unless_jobs_may_come_back() {
        let mut env = EnvConfig::registered("Pleach/GavelMulti-v1").unwrap();
        let instances = episodes(&env, &seeds(0, "test", 2)).unwrap();
        let policies = DOOR.open_all(&[]).unwrap();
        let simulated = |sim: &SimConfig| {
            let (sender, told) = std::sync::mpsc::channel();
            let watcher = Watcher::new(move |progress| {
                if let Progress::Step = progress {
                    sender.send(()).unwrap();
                }
            });
            let runs = Runner::new(sim).watched("all", &watcher);
            let runs = runs.run(&instances, &policies).unwrap();
            assert_eq!(runs.len(), 2 * policies.len());
            told.try_iter().count()
        };
        assert_eq!(simulated(&env.sim), 2 * (policies.len() - 6));
        env.sim.capacity.node_mtbf_s = Some(30.0 * 86_400.0);
        assert_eq!(simulated(&env.sim), 2 * policies.len());
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
