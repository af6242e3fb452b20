//! The tenants of the jobs of a list, and how the cluster is shared out among them.

use pleach_scheduler::cluster_spec::{ClusterSpec, LocalityFactors, ModelClass, TenantSpec};

use super::draft::{Draft, RawRow, Site, Tenancy};
use crate::Error;
use crate::table::shorten;

/// Tenant of jobs for which a list names none.
pub(crate) const UNASSIGNED: &str = "unassigned";

/// The tenant that owns a whole cluster.
pub(super) fn single_tenant(quota_gpus: u32) -> TenantSpec {
    TenantSpec {
        name: "all".into(),
        quota_gpus,
    }
}

/// The one class of a list that does not say what its jobs compute: equal speed on every type, Philly's locality.
pub(super) fn any_class(cluster: &ClusterSpec) -> ModelClass {
    ModelClass {
        name: "any".into(),
        speed: vec![1.0; cluster.gpu_types.len()],
        locality: LocalityFactors::PHILLY,
        ..ModelClass::default()
    }
}

/// Tenants by name where the caller gave a cluster with several, else shared out among the list's.
pub(super) fn tenancy_for(cluster: &ClusterSpec, is_given: bool, weights: &[(String, u32)]) -> Tenancy {
    if is_given && cluster.tenants.len() > 1 {
        Tenancy::ByName
    } else {
        Tenancy::Shared(weights.to_vec())
    }
}

/// Settles the cluster's tenants; gives each of the list's its index, `None` where it has no place. Entry 0 is for rows
/// without a tenant, entry `i + 1` for tenant `i` of the list.
pub(super) fn assign_tenants(
    site: &mut Site,
    draft: &Draft,
    rows: &[RawRow],
    is_walled: bool,
) -> Result<Vec<Option<u16>>, Error> {
    let mut tenant_of = vec![None; draft.tenants.len() + 1];
    let weights = match &site.tenancy {
        Tenancy::Single => {
            let (key, hint) = ("import.virtual_clusters", "use false: this list names none");
            Error::refuse_if(is_walled, key, true, "false", hint)?;
            tenant_of.fill(Some(0));
            return Ok(tenant_of);
        }
        Tenancy::ByName => {
            let tenants = &site.cluster.tenants;
            let find = |name: &str| tenants.iter().position(|tenant| tenant.name == name);
            for (index, name) in draft.tenants.iter().enumerate() {
                tenant_of[index + 1] = find(name).map(|index| index as u16);
            }
            let only = (tenants.len() == 1).then_some(0);
            tenant_of[0] = find(UNASSIGNED).or(only).map(|index| index as u16);
            site.cluster.borrowing &= !is_walled;
            return Ok(tenant_of);
        }
        Tenancy::Shared(weights) => weights,
    };
    let mut work = vec![0.0; draft.tenants.len() + 1];
    for row in rows {
        work[row.tenant.map_or(0, |index| index as usize + 1)] += f64::from(row.num_gpus) * row.run_time_s;
    }
    let total: f64 = work.iter().sum();
    // Tenants of known size, then (only where nothing is walled) the rest, which gets its share of the work.
    let mut names: Vec<(String, f64)> = Vec::new();
    let known: f64 = weights.iter().map(|(_, gpus)| f64::from(*gpus)).sum();
    let mut order: Vec<usize> = (0..draft.tenants.len()).collect();
    order.sort_by(|a, b| draft.tenants[*a].cmp(&draft.tenants[*b]));
    let listed = |name: &str| weights.iter().find(|(listed, _)| *listed == name);
    let has_rows = |index: usize| work[index + 1] > 0.0;
    let rest: f64 = order
        .iter()
        .filter(|index| listed(&draft.tenants[**index]).is_none())
        .map(|index| work[*index + 1])
        .sum::<f64>()
        + work[0];
    let rest_share = if is_walled || total == 0.0 {
        0.0
    } else if known == 0.0 {
        1.0
    } else {
        rest / total
    };
    for (name, gpus) in weights {
        names.push((
            name.clone(),
            (1.0 - rest_share) * f64::from(*gpus) / known.max(1.0),
        ));
    }
    if !is_walled {
        for index in order {
            let name = &draft.tenants[index];
            if listed(name).is_none() && has_rows(index) {
                names.push((
                    name.clone(),
                    rest_share * work[index + 1] / rest.max(f64::MIN_POSITIVE),
                ));
            }
        }
        if work[0] > 0.0 {
            names.push((
                UNASSIGNED.into(),
                rest_share * work[0] / rest.max(f64::MIN_POSITIVE),
            ));
        }
    }
    if names.is_empty() {
        tenant_of.fill(Some(0));
        return Ok(tenant_of);
    }
    let capacity = u32::try_from(site.cluster.num_gpus()).unwrap_or(u32::MAX);
    let shares: Vec<f64> = names.iter().map(|(_, share)| *share).collect();
    let quotas = share_out(&shares, capacity);
    site.cluster.tenants = names
        .into_iter()
        .zip(quotas)
        .map(|((name, _), quota_gpus)| TenantSpec { name, quota_gpus })
        .collect();
    site.cluster.borrowing = !is_walled;
    let find = |name: &str| {
        let found = site.cluster.tenants.iter().position(|tenant| tenant.name == name);
        found.map(|index| index as u16)
    };
    for (index, name) in draft.tenants.iter().enumerate() {
        tenant_of[index + 1] = find(name);
    }
    tenant_of[0] = find(UNASSIGNED);
    Ok(tenant_of)
}

/// Splits `total` by `shares` (each 0 or more) with largest remainders; ties go to the first.
pub(crate) fn share_out(shares: &[f64], total: u32) -> Vec<u32> {
    let sum: f64 = shares.iter().sum();
    if sum <= 0.0 {
        return vec![0; shares.len()];
    }
    let exact: Vec<f64> = shares
        .iter()
        .map(|share| share / sum * f64::from(total))
        .collect();
    let mut parts: Vec<u32> = exact.iter().map(|part| part.floor() as u32).collect();
    let given: u32 = parts.iter().sum();
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by(|a, b| exact[*b].fract().total_cmp(&exact[*a].fract()).then(a.cmp(b)));
    for index in order.into_iter().take(total.saturating_sub(given) as usize) {
        parts[index] += 1;
    }
    parts
}

pub(super) fn unknown_tenant(file: &str, row: &RawRow, names: &[String], cluster: &ClusterSpec) -> Error {
    let name = row.tenant.map_or("", |index| names[index as usize].as_str());
    let allowed: Vec<_> = cluster
        .tenants
        .iter()
        .map(|tenant| tenant.name.as_str())
        .collect();
    Error::at(
        file,
        row.line,
        "tenant",
        format!(
            "`{}` is not allowed here: allowed is one of {}; declare the tenant in the cluster",
            shorten(name),
            shorten(&allowed.join(", "))
        ),
    )
}
