//! Which pods are leases: replicas of services, which go before all jobs. An operator says so, in the settings; nothing that a user
//! may write into a pod makes it one.
//!
//! The namespace is what is trusted: which users may make pods in it is for the API server's rights, and how many for its quotas.
//! A priority class only narrows that, for any user may name one. So there is no way to say leases without namespaces.
//!
//! # What is deliberately not here
//! How many replicas there are: that is for the Deployment, and for what scales it. Gangs as leases: a replica is one pod.

use k8s_openapi::api::core::v1::Pod;
use pleach_daemon::Drive;
use pleach_scheduler::{Problem, settings};

settings! {
    /// What makes a pod a lease.
    #[derive(Clone, Debug, PartialEq)]
    pub struct LeaseSettings {
        /// Namespaces whose pods are leases, by name; none: nothing is. They are driven too.
        pub namespaces: Vec<String>;
        /// Of these, only pods with one of these priority classes; empty: all.
        pub priority_classes: Vec<String>;
        /// Work after which training jobs are believed to have written a checkpoint, s of their run time, 1 to 1e9: a job that is
        /// stopped loses what was done since. None: they save all when they are stopped.
        pub checkpoint_s: Option<f64>, in 1.0..=1e9;
        /// Longest time for which a lease waits for GPUs of a pod that is being stopped, s from when it was asked to, 0 to 86,400, with
        /// `release_limit_s` beside; then others yield. A pod's `terminationGracePeriodSeconds` is its user's to write.
        // For so long the cluster autoscaler waits for pods of a node that it takes away (`--max-graceful-termination-sec`).
        pub grace_max_s: i64 = 600, in 0..=86_400;
    }
}

impl LeaseSettings {
    /// Whether there are none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.namespaces.is_empty()
    }

    /// Whether a pod is one.
    #[must_use]
    pub fn has(&self, pod: &Pod) -> bool {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let class = || {
            pod.spec
                .as_ref()
                .and_then(|spec| spec.priority_class_name.as_deref())
        };
        let is_named = |class: &str| self.priority_classes.iter().any(|name| name == class);
        self.namespaces.iter().any(|name| name == namespace)
            && (self.priority_classes.is_empty() || class().is_some_and(is_named))
    }

    /// Checks them beside the namespaces that are driven and the way of driving.
    ///
    /// # Errors
    /// Leases without namespaces, of all namespaces, of one that is not driven, beside `drive = "order"`.
    pub fn validate(&self, drives: &dyn Fn(&str) -> bool, drive: Drive) -> Result<(), Problem> {
        Problem::refuse_if(
            self.is_none() && *self != LeaseSettings::default(),
            "leases.namespaces",
            "[]",
            "names of namespaces, at least one",
            "any user may name a priority class: say in which namespaces leases are",
        )?;
        let is_name = |name: &String| !name.is_empty() && name != "*";
        let is_driven = |name: &String| is_name(name) && drives(name);
        if let Some(name) = self.namespaces.iter().find(|name| !is_driven(name)) {
            let value = format!("{name:?}");
            let allowed = "names of namespaces that are driven, one by one";
            let hint = "whoever may make pods there goes before all jobs; name it in `namespaces` too";
            return Err(Problem::new("leases.namespaces", value, allowed, hint));
        }
        Problem::refuse_if(
            !self.is_none() && drive.is_order(),
            "leases",
            "given",
            "none beside drive = \"order\"",
            "leases are pods that are held: `drive = \"hold\"`",
        )?;
        Ok(())
    }
}
