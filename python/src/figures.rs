//! What a step leaves behind, and what the numbers of an observation mean, as Python sees them.

use numpy::{PyArray1, PyArrayMethods};
use pleach_env::world::TenantIntegrals;
use pleach_env::{Batch, Metrics, Spaces, VecEnv};
use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::features::{Feature, FeatureSchema, Group, View};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Name, unit, least and largest encoded value of a feature.
pub(crate) type FeatureRow = (&'static str, &'static str, f32, f32);

/// What the last step added to the integrals that rewards are made of: `[N]`, and of tenants, where they are kept, `[N, T]`.
pub(crate) fn gained<'py>(py: Python<'py>, envs: &VecEnv, batch: &Batch) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    let names = batch
        .gained
        .first()
        .map_or([""; 4], |one| one.fields().map(|(name, _)| name));
    for (place, name) in names.into_iter().enumerate() {
        let values = batch.gained.iter().map(|one| one.fields()[place].1);
        columns.set_item(name, PyArray1::from_vec(py, values.collect()))?;
    }
    let by_tenant: Vec<&TenantIntegrals> = envs.by_tenant().flatten().collect();
    let num_tenants = by_tenant.iter().map(|one| one.waiting_s.len()).max().unwrap_or(0);
    for (place, (name, _)) in by_tenant
        .first()
        .into_iter()
        .flat_map(|one| one.fields())
        .enumerate()
    {
        let mut values = vec![0.0; by_tenant.len() * num_tenants];
        for (row, one) in values.chunks_mut(num_tenants.max(1)).zip(&by_tenant) {
            let found = one.fields()[place].1;
            row[..found.len()].copy_from_slice(found);
        }
        let values = PyArray1::from_vec(py, values).reshape([by_tenant.len(), num_tenants])?;
        columns.set_item(name, values)?;
    }
    Ok(columns)
}

/// Figures of one episode by name.
pub(crate) fn episode<'py>(py: Python<'py>, metrics: &Metrics) -> PyResult<Bound<'py, PyDict>> {
    let figures = PyDict::new(py);
    for (key, value) in metrics.fields() {
        figures.set_item(key, value)?;
    }
    Ok(figures)
}

/// The last observation of the episode that environment `index` has ended, flat.
pub(crate) fn last_observation<'py>(
    py: Python<'py>,
    spaces: Spaces,
    batch: &Batch,
    index: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let Spaces {
        num_global,
        num_candidates,
        num_features,
    } = spaces;
    let cells = num_candidates * num_features;
    let last = PyDict::new(py);
    let global = &batch.final_global[index * num_global..][..num_global];
    let candidates = &batch.final_candidates[index * cells..][..cells];
    let mask = &batch.final_mask[index * num_candidates..][..num_candidates];
    last.set_item("global", PyArray1::from_slice(py, global))?;
    last.set_item("candidates", PyArray1::from_slice(py, candidates))?;
    let mask = mask.iter().map(|admissible| i8::from(*admissible));
    last.set_item("mask", PyArray1::from_vec(py, mask.collect()))?;
    Ok(last)
}

/// A cluster in one line.
pub(crate) fn line(cluster: &Cluster) -> String {
    format!(
        "t = {:.0} s: {} jobs wait, {} run, {} of {} GPUs are free",
        cluster.now().as_secs_f64(),
        cluster.num_pending(),
        cluster.num_running(),
        cluster.num_free(),
        cluster.num_gpus()
    )
}

/// Features of an observation that shows a view: global ones, then those of a candidate.
pub(crate) fn features(schema: &FeatureSchema, view: &View) -> [Vec<FeatureRow>; 2] {
    let row = |feature: &Feature| {
        let (low, high) = (feature.encode(feature.min), feature.encode(feature.max));
        (feature.name, feature.unit, low, high)
    };
    let of_view = &schema.features[..view.len];
    [Group::Context, Group::Row].map(|group| {
        let of_group = of_view.iter().filter(|feature| feature.group == group);
        of_group.map(row).collect()
    })
}
