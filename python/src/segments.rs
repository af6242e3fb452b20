//! The record of a schedule as columns.

use numpy::{IntoPyArray, PyArray1};
use pleach_env::schedule::{Run, Segment};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The segments of a run, column by column, as a file has them but for the names of the run.
pub(crate) fn columns<'py>(py: Python<'py>, run: &Run) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    let segments = &run.segments;
    let words = |word: &dyn Fn(&Segment) -> String| segments.iter().map(word).collect::<Vec<String>>();
    let count = |value: fn(&Segment) -> u32| -> Bound<'py, PyArray1<u32>> {
        segments.iter().map(value).collect::<Vec<u32>>().into_pyarray(py)
    };
    let number = |value: fn(&Segment) -> f64| -> Bound<'py, PyArray1<f64>> {
        segments.iter().map(value).collect::<Vec<f64>>().into_pyarray(py)
    };
    columns.set_item("job_id", words(&|segment| run.jobs[segment.job as usize].clone()))?;
    columns.set_item("attempt", count(|segment| segment.attempt))?;
    columns.set_item("nodes", words(&|segment| run.nodes_text(segment)))?;
    // A cluster has at most four million GPUs.
    columns.set_item("num_gpus", count(|segment| segment.num_gpus() as u32))?;
    columns.set_item("gpu_milli", count(|segment| u32::from(segment.gpu_milli)))?;
    columns.set_item("gpu_memory_gib", number(|segment| segment.gpu_memory_gib))?;
    columns.set_item("cpu_cores", number(|segment| segment.cpu_cores))?;
    columns.set_item("memory_gib", number(|segment| segment.memory_gib))?;
    columns.set_item("copies", count(|segment| segment.copies))?;
    columns.set_item("from_s", number(|segment| segment.from_s))?;
    columns.set_item("to_s", number(|segment| segment.to_s))?;
    columns.set_item("rate", number(|segment| segment.rate))?;
    columns.set_item("lost_s", number(|segment| segment.lost_s))?;
    columns.set_item("ended", words(&|segment| segment.ended.word().to_owned()))?;
    Ok(columns)
}

/// Nodes of the last attempt of each job in words: `3:8 4:8` for eight GPUs on each of the nodes 3 and 4, counted from 0 over the groups
/// of the cluster; empty for a job that never ran. `[num_jobs]`
pub(crate) fn last_nodes(run: &Run) -> Vec<String> {
    let mut last: Vec<Option<&Segment>> = vec![None; run.jobs.len()];
    for segment in &run.segments {
        last[segment.job as usize] = Some(segment);
    }
    let words = |segment: &Segment| {
        let each = segment.slices.iter().flat_map(|slice| {
            let nodes = slice.node..slice.node + slice.num_nodes;
            nodes.map(|node| format!("{node}:{}", slice.gpus.num()))
        });
        each.collect::<Vec<String>>().join(" ")
    };
    last.into_iter()
        .map(|segment| segment.map(words).unwrap_or_default())
        .collect()
}
