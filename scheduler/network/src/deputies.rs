//! What decides in place of a network: a heuristic while the queue is short, and one where gangs are wide.

use pleach_scheduler::policy::Policy as _;
use pleach_scheduler::{Cluster, WideGangs};

use crate::Error;
use crate::contract::Contract;
use crate::error::refused;
use crate::prior::{Prior, PriorPolicy};

/// The heuristics of a contract, each with the bound up to which it decides, or above which.
#[derive(Clone, Debug)]
pub(crate) struct Deputies {
    /// Below so many times all GPUs asked for.
    standby: Option<(PriorPolicy, f64)>,
    /// With those that it names.
    wide_gangs: Option<(WideGangs, Vec<PriorPolicy>)>,
}

impl Deputies {
    /// Those of a contract.
    ///
    /// # Errors
    /// An [`Error`] for an unknown name or a bound out of its range.
    pub(crate) fn new(contract: &Contract) -> Result<Deputies, Error> {
        let standby = contract.standby.as_ref().map(|standby| {
            let ratio = standby.pending_gpus_ratio;
            checked("standby.pending_gpus_ratio", ratio, 100.0)?;
            Ok::<_, Error>((deputy(&standby.policy)?, ratio))
        });
        let wide_gangs = contract.wide_gangs.as_ref().map(|wide| {
            wide.check()?;
            let named: Result<_, Error> = wide.names().map(deputy).collect();
            Ok::<_, Error>((wide.clone(), named?))
        });
        Ok(Deputies {
            standby: standby.transpose()?,
            wide_gangs: wide_gangs.transpose()?,
        })
    }

    /// Whether the network decides always.
    pub(crate) fn is_none(&self) -> bool {
        self.standby.is_none() && self.wide_gangs.is_none()
    }

    /// What decides now, if not the network.
    pub(crate) fn of(&mut self, cluster: &Cluster) -> Option<&mut PriorPolicy> {
        let wide = self.wide_gangs.as_mut().and_then(|(wide, named)| {
            let name = wide.decider(cluster)?;
            named.iter_mut().find(|policy| policy.name() == name)
        });
        let standby = self.standby.as_mut().filter(|(_, ratio)| {
            (cluster.num_pending_gpus() as f64) < *ratio * f64::from(cluster.num_gpus())
        });
        wide.or(standby.map(|(policy, _)| policy))
    }
}

fn deputy(policy: &str) -> Result<PriorPolicy, Error> {
    let policy = policy.to_owned();
    PriorPolicy::new(&Prior { policy, weight: 1.0 })
}

/// Refuses a bound that is not above 0 and at most `most`.
fn checked(key: &'static str, value: f64, most: f64) -> Result<(), Error> {
    match value > 0.0 && value <= most {
        true => Ok(()),
        false => Err(refused(key, value, &format!("above 0 and at most {most}"))),
    }
}

#[cfg(test)]
mod tests {
    use pleach_scheduler::cluster_spec::{ClusterSpec, GpuTypeSpec, ModelClass, Resources};
    use pleach_scheduler::features::FeatureSchema;
    use pleach_scheduler::{Capabilities, ClassId, Estimate, Provenance, Submission, TenantId};

    use super::*;
    use crate::contract::Standby;
    use crate::fixtures::{PLAIN, trained};

    fn contract(standby: Option<(&str, f64)>, wide_gangs: Option<(&str, f64)>) -> Contract {
        let mut contract = trained(PLAIN, FeatureSchema::current().hash()).contract;
        contract.standby = standby.map(|(policy, pending_gpus_ratio)| Standby {
            policy: policy.into(),
            pending_gpus_ratio,
        });
        contract.wide_gangs = wide_gangs.map(|(policy, nodes_per_job)| WideGangs {
            policy: policy.into(),
            nodes_per_job,
            gpus_part: None,
            guessed: None,
            guessed_at_any_width: false,
        });
        contract
    }

    /// Four nodes of 8 GPUs with jobs that wait.
    fn cluster(num_types: usize, gangs: &[u32]) -> Cluster {
        cluster_told(num_types, gangs, Provenance::Oracle)
    }

    fn cluster_told(num_types: usize, gangs: &[u32], provenance: Provenance) -> Cluster {
        let mut spec = ClusterSpec::uniform(4, 8, 4);
        let kind = spec.gpu_types[0].name.clone();
        spec.gpu_types = (0..num_types)
            .map(|number| GpuTypeSpec {
                name: if number == 0 {
                    kind.clone()
                } else {
                    format!("other-{number}")
                },
                memory_gib: 16.0,
                mig: None,
            })
            .collect();
        let class = ModelClass {
            speed: vec![1.0; num_types],
            ..ModelClass::default()
        };
        let mut cluster = Cluster::new(&spec, &[class], Capabilities::DEFAULT).unwrap();
        for num_gpus in gangs {
            let request = Submission {
                tenant: TenantId(0),
                class: ClassId(0),
                num_gpus: *num_gpus,
                estimate_s: Estimate {
                    value: 100.0,
                    provenance,
                },
                resources: Resources::WHOLE_GPU,
            };
            cluster.submit(request).unwrap();
        }
        cluster
    }

    fn who(contract: &Contract, cluster: &Cluster) -> Option<String> {
        use pleach_scheduler::Policy;
        let mut deputies = Deputies::new(contract).unwrap();
        deputies.of(cluster).map(|policy| policy.name().to_owned())
    }

    #[test]
    fn wide_gangs_are_those_above_the_mean_width_and_only_where_jobs_have_no_choice() {
        let wide = contract(None, Some(("sjf-reserve", 2.0)));
        // Two nodes are 16 GPUs: 30 and 3 make 33 for two jobs, 30 and 2 make 32.
        assert_eq!(who(&wide, &cluster(1, &[30, 3])), Some("sjf-reserve".into()));
        assert_eq!(who(&wide, &cluster(1, &[30, 2])), None);
        assert_eq!(who(&wide, &cluster(1, &[])), None);
        assert_eq!(
            who(&wide, &cluster(2, &[30, 3])),
            None,
            "another type may be better"
        );
    }

    #[test]
    fn gangs_are_wide_on_a_small_cluster_too_and_where_run_times_are_guessed_another_one_decides() {
        let mut wide = contract(None, Some(("sjf-reserve", 8.0)));
        // Of 32 GPUs a quarter are 8; eight nodes there are none.
        assert_eq!(who(&wide, &cluster(1, &[32, 32])), None);
        let rule = wide.wide_gangs.as_mut().unwrap();
        (rule.gpus_part, rule.guessed) = (Some(0.25), Some("gpu-time".into()));
        assert_eq!(who(&wide, &cluster(1, &[8, 8])), None);
        assert_eq!(who(&wide, &cluster(1, &[8, 9])), Some("sjf-reserve".into()));
        let guessed = cluster_told(1, &[8, 9], Provenance::Predicted);
        assert_eq!(who(&wide, &guessed), Some("gpu-time".into()));
        assert_eq!(who(&wide, &cluster(2, &[8, 9])), None);
        let narrow = cluster_told(1, &[8, 8], Provenance::Predicted);
        assert_eq!(who(&wide, &narrow), None);
        wide.wide_gangs.as_mut().unwrap().guessed_at_any_width = true;
        assert_eq!(who(&wide, &narrow), Some("gpu-time".into()));
        assert_eq!(who(&wide, &cluster(1, &[8, 8])), None);
        wide.wide_gangs.as_mut().unwrap().gpus_part = Some(1.1);
        let said = Deputies::new(&wide).unwrap_err().to_string();
        assert!(
            said.contains("wide_gangs.gpus_part = 1.1") && said.contains("at most 1"),
            "{said}"
        );
    }

    #[test]
    fn running_jobs_count_as_waiting_ones_do() {
        let wide = contract(None, Some(("sjf-reserve", 2.0)));
        let mut cluster = cluster(1, &[30, 2]);
        let start = |cluster: &mut Cluster| {
            let mut sjf = pleach_scheduler::heuristics::by_name("sjf").unwrap();
            pleach_scheduler::pass::Pass::new()
                .run(cluster, sjf.as_mut())
                .unwrap();
        };
        start(&mut cluster);
        assert_eq!((cluster.num_running(), who(&wide, &cluster)), (2, None));
        let small = cluster
            .running()
            .find(|job| cluster.job(*job).num_held == 2)
            .unwrap();
        cluster.finish(small);
        assert_eq!(who(&wide, &cluster), Some("sjf-reserve".into()));
    }

    #[test]
    fn a_standby_decides_below_its_queue_unless_gangs_are_wide() {
        let both = contract(Some(("sjf", 0.5)), Some(("sjf-reserve", 2.0)));
        assert_eq!(who(&both, &cluster(1, &[15])), Some("sjf".into()));
        assert_eq!(who(&both, &cluster(1, &[8, 8])), None);
        assert_eq!(who(&both, &cluster(1, &[17])), Some("sjf-reserve".into()));
        assert!(Deputies::new(&contract(None, None)).unwrap().is_none());
        assert!(!Deputies::new(&both).unwrap().is_none());
    }

    #[test]
    fn bounds_out_of_their_range_and_unknown_names_are_refused() {
        for (bound, word) in [
            (("sjf", 0.0), "wide_gangs.nodes_per_job = 0"),
            (("sjf", f64::NAN), "wide_gangs.nodes_per_job = NaN"),
            (("sjf", 1000.1), "at most 1000"),
            (("sjff", 2.0), "sjff"),
        ] {
            let said = Deputies::new(&contract(None, Some(bound)))
                .unwrap_err()
                .to_string();
            assert!(said.contains(word), "{said}");
        }
    }
}
