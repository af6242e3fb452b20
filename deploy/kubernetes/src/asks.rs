//! What a pod asks of a node beside GPUs: CPUs, host memory, all other resources by name, ports of the host.
//!
//! The tables know none of it but CPUs. A node that lacks something is closed to the pod before the policy is asked, and what is left
//! is counted again before a pod is let go.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use pleach_site::quantity;

use crate::config::Settings;

/// The resource that counts pods: each pod takes one, where a node says how many it takes.
pub const PODS: &str = "pods";

/// Amounts by resource, in thousandths: of CPUs, bytes, devices.
pub type Amounts = BTreeMap<String, u64>;

/// A port of the host: protocol, address (empty: all), number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPort {
    protocol: String,
    address: String,
    number: i32,
}

impl HostPort {
    /// Whether one keeps the other from a node.
    ///
    /// # Source
    /// `CheckConflict` of kube-scheduler's `framework.HostPortInfo`: an address beside all of them.
    #[must_use]
    pub fn meets(&self, other: &HostPort) -> bool {
        let is_same = self.number == other.number && self.protocol == other.protocol;
        is_same && (self.address.is_empty() || other.address.is_empty() || self.address == other.address)
    }
}

/// The ports of the host that a pod takes.
#[must_use]
pub fn ports(spec: &PodSpec) -> Vec<HostPort> {
    let sidecars = spec.init_containers.iter().flatten();
    let sidecars = sidecars.filter(|container| is_sidecar(container));
    let all = spec.containers.iter().chain(sidecars);
    let all = all.flat_map(|container| container.ports.iter().flatten());
    let mut ports: Vec<HostPort> = all
        .filter_map(|port| {
            let address = port.host_ip.clone().unwrap_or_default();
            Some(HostPort {
                number: port.host_port.filter(|number| *number > 0)?,
                protocol: port.protocol.clone().unwrap_or_else(|| "TCP".into()),
                address: if address == "0.0.0.0" {
                    String::new()
                } else {
                    address
                },
            })
        })
        .collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// Whether an init container runs beside the others.
fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

/// What containers ask for of a resource: a request, else the limit.
pub fn asked<'a>(resources: &'a ResourceRequirements, name: &str) -> Option<&'a Quantity> {
    let of = |map: &'a Option<BTreeMap<String, _>>| map.as_ref().and_then(|map| map.get(name));
    of(&resources.requests).or_else(|| of(&resources.limits))
}

/// What the containers of a pod hold of something.
pub fn of_containers(spec: &PodSpec, of: &dyn Fn(&ResourceRequirements) -> u64) -> u64 {
    let each = |container: &Container| container.resources.as_ref().map_or(0, of);
    let inits = spec.init_containers.iter().flatten();
    pleach_site::held(
        inits.map(|container| (is_sidecar(container), each(container))),
        spec.containers.iter().map(each),
    )
}

/// A quantity in thousandths.
pub fn milli(quantity: &Quantity) -> u64 {
    quantity::milli(&quantity.0)
}

/// What a pod asks for of a resource, in thousandths, with its overhead. What it says as a whole counts in the place of what its
/// containers say.
///
/// # Source
/// `PodRequests` of Kubernetes' `k8s.io/component-helpers/resource` (pod-level resources, by default since 1.34).
#[must_use]
pub fn of(spec: &PodSpec, name: &str) -> u64 {
    let of_containers = of_containers(spec, &|resources| asked(resources, name).map_or(0, milli));
    let whole = |map: &Option<BTreeMap<String, _>>| map.as_ref()?.get(name).map(milli);
    let whole = spec.resources.as_ref().and_then(|resources| {
        let is_said = of_containers > 0;
        whole(&resources.requests).or_else(|| whole(&resources.limits).filter(|_| !is_said))
    });
    let overhead = spec.overhead.as_ref().and_then(|all| all.get(name));
    let sum = whole.unwrap_or(of_containers);
    sum.saturating_add(overhead.map_or(0, milli))
}

/// Names of the resources that a pod asks for, each once.
pub fn names(spec: &PodSpec) -> Vec<&String> {
    let containers = spec
        .containers
        .iter()
        .chain(spec.init_containers.iter().flatten());
    let all = containers.filter_map(|container| container.resources.as_ref());
    let mut names: Vec<&String> = Vec::new();
    for resources in all.chain(spec.resources.as_ref()) {
        names.extend(resources.limits.iter().flatten().map(|(name, _)| name));
        names.extend(resources.requests.iter().flatten().map(|(name, _)| name));
    }
    names.extend(spec.overhead.iter().flatten().map(|(name, _)| name));
    names.sort_unstable();
    names.dedup();
    names
}

/// All that a pod asks of a node beside GPUs.
#[must_use]
pub fn amounts(spec: &PodSpec, settings: &Settings) -> Amounts {
    let names = names(spec).into_iter().filter(|name| !settings.is_gpu(name));
    let mut amounts: Amounts = names.map(|name| (name.clone(), of(spec, name))).collect();
    amounts.retain(|_, amount| *amount > 0);
    amounts.insert(PODS.to_owned(), 1000);
    amounts
}

/// The first resource of which `free` has less than `asked`, and both amounts. A node that does not say how many pods it takes
/// takes any number.
#[must_use]
pub fn lacking<'a>(free: &Amounts, asked: &'a Amounts) -> Option<(&'a str, u64, u64)> {
    let mut short = asked.iter().filter_map(|(name, amount)| {
        let has = match free.get(name) {
            None if name == PODS => return None,
            has => has.copied().unwrap_or(0),
        };
        (has < *amount).then_some((name.as_str(), has, *amount))
    });
    short.next()
}

/// An amount of a resource in words.
#[must_use]
pub fn words(name: &str, milli: u64) -> String {
    match name {
        "cpu" => format!("{} CPUs", milli as f64 / 1000.0),
        "memory" => format!("{} bytes of memory", milli / 1000),
        _ => format!("{} of {name}", milli / 1000),
    }
}

/// A node as the controller has to know it beside its units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Its label [`crate::names::HOSTNAME`].
    pub hostname: String,
    /// What it has for pods.
    pub has: Amounts,
    /// What of that no pod asked for.
    pub free: Amounts,
    /// Ports that pods have taken.
    pub ports: Vec<HostPort>,
}

impl Host {
    /// A pod with these asks takes its part.
    pub fn take(&mut self, asks: &Amounts, ports: &[HostPort]) {
        for (name, amount) in asks {
            if let Some(free) = self.free.get_mut(name) {
                *free = free.saturating_sub(*amount);
            }
        }
        self.ports.extend_from_slice(ports);
    }
}
