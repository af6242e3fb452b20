//! Starts in place of running jobs: whom a pending job would stop, and whether that pays.

use super::enumerate::believed_end;
use super::known::{Ask, Known, Over};
use super::preempt::{Newcomer, Stoppable, find_victims};
use crate::candidate::{Candidate, CandidateKind, CandidateSet};
use crate::cluster::{Cluster, ShapeId, Template, service_class};
use crate::ids::{JobId, Time};
use crate::lens::{Lens, LensSet};
use crate::policy::Needs;

pub(super) fn push_preempts(
    cluster: &Cluster,
    needs: &Needs,
    job: JobId,
    heads: LensSet,
    (stoppable, known): (&mut Stoppable, &mut Known),
    set: &mut CandidateSet,
) {
    let (row, demand) = (cluster.job(job), cluster.demand(job));
    let class = row.request.class;
    let Some(kind) = cluster.preferred_type(Template::Fastest, class, demand.types) else {
        return;
    };
    if !cluster.has_room(demand) || demand.shape != ShapeId::PLAIN {
        return;
    }
    let (first, ask, now) = (set.rows.len(), Ask::of(cluster, job), cluster.now());
    let own_end_s = row.remaining_s_at(now) / cluster.class(class).speed[kind.index()];
    let served_class = service_class(row.attained_gpu_s_at(now));
    // Where all restarts cost the same, the jobs that end last are the same for whoever comes: they are looked for once,
    // and each newcomer need only ask whether it ends before the first of them.
    let uniform = cluster.restarts_cost_the_same();
    for (lens, newcomer) in [
        (
            Lens::Shortest,
            Newcomer::Shorter {
                own_end_s: (!uniform).then_some(own_end_s),
            },
        ),
        (Lens::LeastAttained, Newcomer::ServedLess { class: served_class }),
    ] {
        if !needs.lenses.contains(lens) {
            continue;
        }
        let key = (ask, newcomer);
        let place = known.overs.iter().position(|(other, _)| *other == key);
        let at = place.unwrap_or_else(|| {
            let start = set.victims.len();
            let gang = (kind, demand.num_gpus);
            let last = find_victims(cluster, gang, newcomer, stoppable, &mut set.victims);
            let over = last.map(|last_end| Over::new(start..set.victims.len(), last_end));
            known.overs.push((key, over));
            known.overs.len() - 1
        });
        let Some(over) = &mut known.overs[at].1 else {
            continue;
        };
        let least_s = own_end_s + cluster.restart_cost_s_min();
        if lens == Lens::Shortest && (over.last_end - now).as_secs_f64() <= least_s {
            continue;
        }
        let victims = over.victims.clone();
        let Some(place) = over.place(cluster, job, kind, set) else {
            continue;
        };
        // On a loose placement it may end too late; two jobs would then stop each other in turn.
        let pays = |end: Time| victims.is_empty() || end < place.end_max;
        if lens == Lens::Shortest && !pays(believed_end(cluster, job, place.facts.rate)) {
            continue;
        }
        let same = |row: &Candidate| {
            row.victims == victims || set.victims[row.victims.clone()] == set.victims[victims.clone()]
        };
        let mut rows = set.rows[first..].iter();
        if rows.any(|row| row.kind == CandidateKind::Preempt && same(row)) {
            continue;
        }
        let mut candidate = Candidate::new(CandidateKind::Preempt, Some(job));
        candidate.facts = Some(place.facts);
        candidate.heads = heads;
        candidate.placement = place.slices.clone();
        candidate.victims = victims;
        candidate.stopped = place.stopped;
        set.rows.push(candidate);
    }
}
