//! Gandiva's migration: gangs that lie on more nodes than they need move where that pays for the restart.

use pleach_scheduler::cluster::{Cluster, Placement};
use pleach_scheduler::{ActionKind, JobId};

use super::gandiva_config::GandivaConfig;
use crate::shared::what_if::{FreeResources, is_whole_gpu_job};

/// Draws gangs together that lie on more nodes than they need, those that gain most first.
pub(super) fn draw_together(cluster: &mut Cluster, config: &GandivaConfig) {
    if !cluster.capabilities().can(ActionKind::Preempt) {
        return;
    }
    let mut moves: Vec<(f64, JobId)> = Vec::new();
    for id in cluster.running() {
        let job = cluster.job(id);
        let spread = job.placement.len() > 1 && !job.is_sharing && !job.is_forked;
        if let Some(gain) = better(cluster, config, id).filter(|_| spread) {
            moves.push((gain.0, id));
        }
    }
    moves.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    for (_, id) in moves.into_iter().take(config.moves_max) {
        // Those before it may have taken its place.
        if let Some((_, placement)) = better(cluster, config, id) {
            let granted = cluster.job(id).granted;
            cluster.preempt(id);
            cluster.start_with(id, placement, granted);
        }
    }
}

/// A tighter placement for a running gang, if it pays for the restart, and how much faster it is.
fn better(cluster: &Cluster, config: &GandivaConfig, id: JobId) -> Option<(f64, Placement)> {
    let job = cluster.job(id);
    if job.placement.len() < 2 || !is_whole_gpu_job(job) {
        return None;
    }
    let free = FreeResources::without(cluster, [id]);
    let placement = free.tightest(job.gpu_type, job.num_held, cluster.shape(job.granted))?;
    if placement.len() >= job.placement.len() {
        return None;
    }
    let rate = cluster.facts_with(id, &placement, job.granted).rate;
    let rest_s = job.remaining_s_at(cluster.now());
    let saved_s = rest_s / job.rate - rest_s / rate;
    let pays = rate >= config.move_gain * job.rate && saved_s > cluster.restart_cost_s(id);
    pays.then_some((rate / job.rate, placement))
}
