//! What a fabric and a step may say.

use super::{Between, Fabric, Inside, StepCost};
use crate::problem::Problem;

impl Fabric {
    /// Checks that every link moves something, and that nothing is faster than what it is made of.
    ///
    /// # Errors
    /// The first value that is wrong.
    pub fn validate(&self) -> Result<(), Problem> {
        self.inside.validate()?;
        self.between.validate()
    }
}

impl Inside {
    fn validate(&self) -> Result<(), Problem> {
        let inside = self;
        bandwidth("inside.ring_gb_per_s", inside.ring_gb_per_s)?;
        if let Some(islands) = inside.islands_gb_per_s {
            bandwidth("inside.islands_gb_per_s", islands)?;
            let allowed = format!("at most ring_gb_per_s, {}", inside.ring_gb_per_s);
            let hint = "islands are joined by slower links; leave it out where NVLink joins the whole node";
            is(
                islands <= inside.ring_gb_per_s,
                "inside.islands_gb_per_s",
                islands,
                allowed,
                hint,
            )?;
        }
        if let Some(switch) = inside.switch {
            bandwidth("inside.switch.gb_per_s", switch.gb_per_s)?;
            let allowed = format!("at least ring_gb_per_s, {}", inside.ring_gb_per_s);
            let hint = "leave switch out where the ring is as fast";
            let is_faster = switch.gb_per_s >= inside.ring_gb_per_s;
            is(
                is_faster,
                "inside.switch.gb_per_s",
                switch.gb_per_s,
                allowed,
                hint,
            )?;
            let (from, full) = (switch.from_gpus, switch.full_gpus);
            let hint = "GPUs of the domain, for example 5 and 8";
            is(
                (2..=4096).contains(&from),
                "inside.switch.from_gpus",
                from,
                "2 to 4096",
                hint,
            )?;
            let allowed = format!("from_gpus, {from}, to 4096");
            is(
                (from..=4096).contains(&full),
                "inside.switch.full_gpus",
                full,
                allowed,
                hint,
            )?;
        }
        let (nodes, hint) = (inside.nodes_per_domain, "1 where NVLink ends at the node");
        is(
            (1..=64).contains(&nodes),
            "inside.nodes_per_domain",
            nodes,
            "1 to 64",
            hint,
        )?;
        times(&[
            ("inside.latency_us", inside.latency_us),
            ("inside.latency_per_gpu_us", inside.latency_per_gpu_us),
            ("inside.root_us", inside.root_us),
            ("inside.root_per_gpu_us", inside.root_per_gpu_us),
        ])
    }
}

impl Between {
    fn validate(&self) -> Result<(), Problem> {
        let between = self;
        let (nics, hint) = (between.nics_per_node, "nodes of today have one NIC for each GPU");
        is(
            (1..=64).contains(&nics),
            "between.nics_per_node",
            nics,
            "1 to 64, and at most the GPUs of a node",
            hint,
        )?;
        bandwidth("between.nic_gb_per_s", between.nic_gb_per_s)?;
        if let Some(ceiling) = between.ceiling_gb_per_s {
            bandwidth("between.ceiling_gb_per_s", ceiling)?;
        }
        times(&[
            ("between.latency_us", between.latency_us),
            ("between.latency_per_domain_us", between.latency_per_domain_us),
            ("between.root_us", between.root_us),
        ])?;
        for (key, value) in [
            ("between.rack_oversubscription", between.rack_oversubscription),
            ("between.pod_oversubscription", between.pod_oversubscription),
        ] {
            let hint = "bandwidth of the NICs below over that of the uplinks; 1 = not over-subscribed";
            is((1.0..=1000.0).contains(&value), key, value, "1 to 1000", hint)?;
        }
        let (tuned, loss) = (between.tuned, between.hash_loss);
        let hint = "1 = as measured on tuned clusters, 0.6 = untuned";
        is(
            (0.01..=1.0).contains(&tuned),
            "between.tuned",
            tuned,
            "0.01 to 1",
            hint,
        )?;
        let hint = "0 with adaptive routing, up to 0.3 on plain Ethernet";
        is(
            (0.0..=0.9).contains(&loss),
            "between.hash_loss",
            loss,
            "0 to 0.9",
            hint,
        )
    }
}

fn times(values: &[(&str, f64)]) -> Result<(), Problem> {
    for (key, value) in values {
        let is_good = (0.0..=1e9).contains(value);
        is(is_good, key, value, "0 to 1e9", "in millionths of a second")?;
    }
    Ok(())
}

fn bandwidth(key: &str, value: f64) -> Result<(), Problem> {
    let hint = "in 10^9 bytes a second and direction; 100 Gb/s is 12.5";
    let is_good = (Fabric::GB_PER_S_MIN..=Fabric::GB_PER_S_MAX).contains(&value);
    is(is_good, key, value, "0.001 to 100000 GB/s", hint)
}

fn is(
    is_good: bool,
    key: &str,
    value: impl ToString,
    allowed: impl ToString,
    hint: &str,
) -> Result<(), Problem> {
    if is_good {
        return Ok(());
    }
    Err(Problem::new(format!("fabric.{key}"), value, allowed, hint))
}

impl StepCost {
    /// Checks the ranges.
    ///
    /// # Errors
    /// The first value out of range.
    pub fn validate(&self) -> Result<(), Problem> {
        let checks = [
            (
                "compute_s",
                self.compute_s,
                (1e-12..=1e6).contains(&self.compute_s),
                "1e-12 to 1e6",
            ),
            (
                "gradient_bytes",
                self.gradient_bytes,
                (0.0..=1e18).contains(&self.gradient_bytes),
                "0 to 1e18",
            ),
            ("gamma", self.gamma, (1.0..=10.0).contains(&self.gamma), "1 to 10"),
        ];
        for (key, value, good, allowed) in checks {
            if !good {
                return Err(Problem::new(
                    format!("step.{key}"),
                    value,
                    allowed,
                    "gamma 1 = no overlap of compute and all-reduce",
                ));
            }
        }
        Ok(())
    }
}
