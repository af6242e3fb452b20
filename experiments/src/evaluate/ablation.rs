//! Where a gain comes from: the same comparison with one thing of the cluster, of its jobs or of what is known taken away.
//!
//! A policy that is ahead as the cluster is, and no longer once a loose placement costs nothing, gained by waiting for tight ones.
//! Nothing is trained or tuned anew. What a workload does not have is not taken away: there is no row then.

use std::sync::Arc;

use pleach_env::SimConfig;
use pleach_env::workload::Workload;
use pleach_env::workload::estimates::EstimateModel;
use pleach_scheduler::cluster::Sharing;
use pleach_scheduler::cluster_spec::{ClusterSpec, LocalityFactors, ModelClass};
use pleach_scheduler::{ActionKind, ActionSet};

use super::estimate_source::EstimateSource;
use super::instances::Instance;

/// What can be taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ablation {
    /// A loose placement costs nothing.
    Locality,
    /// Each class is equally fast on all types that it can use: at its mean speed over the cluster's GPUs.
    Types,
    /// No two jobs have the same GPUs.
    Sharing,
    /// No job is stopped.
    Preemption,
    /// Run times that were guessed are known, and those that were known are guessed from ended jobs.
    Estimates,
    /// Starting and stopping cost nothing.
    Restarts,
    /// No job can have another number of GPUs than it asked for.
    Sizes,
    /// CPU and host memory do not matter.
    Cores,
}

impl Ablation {
    /// All of them.
    pub const ALL: [Ablation; 8] = [
        Ablation::Locality,
        Ablation::Types,
        Ablation::Sharing,
        Ablation::Preemption,
        Ablation::Estimates,
        Ablation::Restarts,
        Ablation::Sizes,
        Ablation::Cores,
    ];

    pub(crate) fn words(self, sim: &SimConfig) -> &'static str {
        match self {
            Ablation::Locality => "loose placements cost nothing",
            Ablation::Types => "GPU types are equal",
            Ablation::Sharing => "no sharing",
            Ablation::Preemption => "no preemption",
            Ablation::Estimates if sim.estimates == EstimateModel::Oracle => {
                "run times guessed from ended jobs"
            }
            Ablation::Estimates => "run times known",
            Ablation::Restarts => "restarts cost nothing",
            Ablation::Sizes => "jobs of fixed size",
            Ablation::Cores => "cores and memory do not matter",
        }
    }

    /// Takes it away from a simulation; whether there was any.
    fn leave_out_of_sim(self, sim: &mut SimConfig) -> bool {
        let before = sim.clone();
        let can = &mut sim.capabilities;
        match self {
            Ablation::Sharing => can.sharing = Sharing::Off,
            Ablation::Preemption => can.grant(ActionKind::Preempt, false),
            Ablation::Estimates => {
                sim.estimates = match sim.estimates {
                    EstimateModel::Oracle => EstimateSource::History.model(),
                    _ => EstimateModel::Oracle,
                };
            }
            Ablation::Restarts => {
                (can.start_cost_s, can.restart_cost_s, can.mig_create_s) = (0.0, 0.0, 0.0);
                can.overheads = None;
            }
            Ablation::Locality | Ablation::Types | Ablation::Sizes | Ablation::Cores => {}
        }
        *sim != before
    }

    /// Takes it away from a workload; whether there was any.
    fn leave_out_of_workload(self, workload: &mut Workload) -> bool {
        let Workload { cluster, classes, .. } = workload;
        let mut changed = false;
        for class in classes {
            let before = class.clone();
            match self {
                Ablation::Locality => (class.locality, class.step) = (LocalityFactors::NONE, None),
                Ablation::Types => equalise(class, cluster),
                Ablation::Restarts => (class.restart_cost_s, class.state_gib) = (None, 0.0),
                Ablation::Sizes => class.elastic = None,
                Ablation::Cores => class.sensitivity = None,
                Ablation::Sharing | Ablation::Preemption | Ablation::Estimates => {}
            }
            changed |= *class != before;
        }
        changed
    }

    /// The simulation and the lists without it; none where there is nothing to take away.
    pub(crate) fn of(self, sim: &SimConfig, instances: &[Instance]) -> Option<(SimConfig, Vec<Instance>)> {
        let (mut sim, mut instances) = (sim.clone(), instances.to_vec());
        let mut changed = self.leave_out_of_sim(&mut sim);
        // On a cluster without preemption restarts cost nothing already.
        let stopping = sim.capabilities.actions().intersection(ActionSet::STOPPING);
        changed &= self != Ablation::Restarts || !stopping.is_empty();
        for instance in &mut instances {
            changed |= self.leave_out_of_workload(Arc::make_mut(&mut instance.workload));
        }
        changed.then_some((sim, instances))
    }
}

/// Speed on all types becomes the mean over the GPUs that the class can use.
fn equalise(class: &mut ModelClass, cluster: &ClusterSpec) {
    let mut speeds = class.speed.iter().filter(|speed| **speed > 0.0);
    let first = speeds.next();
    if speeds.all(|speed| Some(speed) == first) {
        return;
    }
    let num_of = |name: &str| -> f64 {
        let groups = cluster.node_groups.iter().filter(|group| group.gpu_type == name);
        groups
            .map(|group| f64::from(group.count) * f64::from(group.gpus_per_node))
            .sum()
    };
    let usable = cluster
        .gpu_types
        .iter()
        .zip(&class.speed)
        .filter(|(_, speed)| **speed > 0.0);
    let (sum, num) = usable.fold((0.0, 0.0), |(sum, num), (gpu_type, speed)| {
        (sum + num_of(&gpu_type.name) * speed, num + num_of(&gpu_type.name))
    });
    if num > 0.0
        && class
            .speed
            .iter()
            .any(|speed| *speed > 0.0 && *speed != sum / num)
    {
        class
            .speed
            .iter_mut()
            .filter(|speed| **speed > 0.0)
            .for_each(|speed| *speed = sum / num);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::evaluation::EvaluationConfig;
    use crate::evaluate::table::Table;
    use crate::progress::Watcher;
    use crate::worlds::jobs::JobsWorld;
    use crate::worlds::{Comparing, compare};

    fn table(text: &str) -> Table {
        let config: EvaluationConfig = toml::from_str(text).unwrap();
        let asked = Comparing {
            ablated: true,
            ..Comparing::default()
        };
        let mut found = compare(&JobsWorld::open(&config).unwrap(), &asked, &Watcher::silent()).unwrap();
        found.at.remove(0).beside.tables.remove(0).2
    }

    fn rows(table: &Table) -> Vec<&str> {
        table.rows.iter().map(|row| row[0].as_str()).collect()
    }

    #[test]
    fn what_a_workload_does_not_have_is_not_taken_away() {
        let gangs = table(
            "policy = ['sjf', 'srtf']\nseeds = 2\n[workload]\nworkload = ['Pleach/PhillyGang-v1']\nnum_jobs = 40",
        );
        assert_eq!(
            rows(&gangs),
            [
                "nothing: as it is",
                "loose placements cost nothing",
                "run times known"
            ]
        );
        let types = table(
            "policy = ['las-deal', 'srtf']\nseeds = 2\n[workload]\nworkload = ['gavel-multi']\nnum_jobs = 30\nload = 2.0\n\
             [scheduling]\npreemption = true\nsharing = 'mps'\nestimates = 'history'",
        );
        let found = rows(&types);
        for wanted in [
            "GPU types are equal",
            "no sharing",
            "no preemption",
            "run times known",
            "restarts cost nothing",
        ] {
            assert!(found.contains(&wanted), "{found:?}");
        }
        assert!(!found.contains(&"jobs of fixed size"), "{found:?}");
    }

    /// `best-type-delay` differs from `sjf-delay` in refusing slow types alone.
    #[test]
    fn a_gain_that_comes_from_types_is_gone_where_they_are_equal() {
        let table = table(
            "policy = ['sjf-delay', 'best-type-delay']\nseeds = 3\n[workload]\nworkload = ['Pleach/GavelMulti-v1']\nnum_jobs = 150",
        );
        let cell = |words: &str| table.rows.iter().find(|row| row[0] == words).unwrap()[2].clone();
        assert_eq!(&cell("GPU types are equal")[..5], "1.000");
        assert!(
            &cell("nothing: as it is")[..5] < "0.950",
            "{}",
            cell("nothing: as it is")
        );
    }

    #[test]
    fn equal_types_keep_what_the_cluster_can_do() {
        let source = crate::evaluate::workload_source::WorkloadSource::default();
        let (mut workload, _) = source.workload("gavel-multi", pleach_env::Seed(1)).unwrap();
        let before = workload.clone();
        assert!(Ablation::Types.leave_out_of_workload(&mut workload));
        assert!(
            !Ablation::Types.leave_out_of_workload(&mut workload.clone()),
            "once is enough"
        );
        let power = |workload: &Workload, class: usize| -> f64 {
            let groups = &workload.cluster.node_groups;
            let of = |name: &str| {
                workload
                    .cluster
                    .gpu_types
                    .iter()
                    .position(|kind| kind.name == name)
                    .unwrap()
            };
            let terms = groups.iter().map(|group| {
                f64::from(group.count * group.gpus_per_node)
                    * workload.classes[class].speed[of(&group.gpu_type)]
            });
            terms.sum()
        };
        for class in 0..workload.classes.len() {
            let (own, was) = (power(&workload, class), power(&before, class));
            assert!((own / was - 1.0).abs() < 1e-9, "{class}: {own} {was}");
        }
    }
}
