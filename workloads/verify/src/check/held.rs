//! What is held at every instant: GPUs, cores, memory and quotas. Whatever ends at an instant has ended when another begins there.

use pleach_tables::schedule::{Gpus, Segment};

use super::node::{Clash, Here};
use super::{Checker, us};
use crate::Rule;

impl<'a> Checker<'a> {
    pub(super) fn check_held(&mut self) {
        let segments = &self.run.segments;
        let mut events: Vec<(i64, bool, u32)> = Vec::with_capacity(segments.len() * 2);
        for (index, segment) in segments.iter().enumerate() {
            if us(segment.to_s) <= us(segment.from_s) {
                continue;
            }
            events.push((us(segment.from_s), true, index as u32));
            events.push((us(segment.to_s), false, index as u32));
        }
        events.sort_unstable();
        let mut here: Vec<Here> = vec![Here::default(); self.facts.nodes.len()];
        let mut tenants = vec![0_u64; self.facts.tenants.len()];
        // The attempt of each job that began last.
        let mut attempts = vec![0_u32; self.jobs.len()];
        let mut closed: Vec<Vec<usize>> = vec![Vec::new(); self.facts.nodes.len()];
        for (index, time) in self.conditions.closed.iter().enumerate() {
            if let Some(times) = closed.get_mut(time.node as usize) {
                times.push(index);
            }
        }
        for (_, begins, index) in events {
            let segment = &segments[index as usize];
            let places: Vec<(u32, Gpus)> = self.places(segment).collect();
            let (tenant, milli) = (
                self.job(segment).tenant,
                segment.num_gpus() * u64::from(segment.gpu_milli),
            );
            let job = segment.job as usize;
            if begins {
                let goes_on = attempts[job] == segment.attempt;
                attempts[job] = segment.attempt;
                for (node, gpus) in &places {
                    self.begin_on(*node, *gpus, index, &mut here[*node as usize]);
                    for time in &closed[*node as usize] {
                        self.check_closed(*time, *node, index, goes_on);
                    }
                }
                tenants[tenant] += milli;
                self.check_quota(tenant, tenants[tenant], segment);
            } else {
                for (node, gpus) in &places {
                    here[*node as usize].end(*gpus, index, segment);
                }
                tenants[tenant] -= milli;
            }
        }
    }

    fn begin_on(&mut self, node: u32, gpus: Gpus, index: u32, here: &mut Here) {
        let (run, of) = (self.run, self.facts.nodes[node as usize]);
        let segment = &run.segments[index as usize];
        if let Gpus::Which(mask) = gpus
            && u64::BITS - mask.leading_zeros() > of.num_gpus
        {
            let what = format!("holds GPU {} of {}", 63 - mask.leading_zeros(), of.num_gpus);
            self.fault(Rule::Gpus, segment.from_s, Some(node), (segment, None), what);
        }
        here.begin(gpus, index, segment);
        let mut clashes = Vec::new();
        here.clashes(&of, gpus, self.conditions.sharing, &mut clashes);
        self.clashes_of_gpus(node, gpus, index, here, &mut clashes);
        for Clash { rule, other, what } in clashes {
            let other = other.map(|other| &run.segments[other as usize]);
            self.fault(rule, segment.from_s, Some(node), (segment, other), what);
        }
    }

    /// Clashes of a segment that begins with the segments on its GPUs: at most one for each rule.
    fn clashes_of_gpus(&self, node: u32, gpus: Gpus, index: u32, here: &Here, clashes: &mut Vec<Clash>) {
        let Gpus::Which(mask) = gpus else { return };
        let segments = &self.run.segments;
        let has_mib = self.facts.gpu_types[self.facts.nodes[node as usize].gpu_type].1;
        for gpu in (0..64).filter(|gpu| mask >> gpu & 1 == 1) {
            let on: Vec<&Segment> = here.on(gpu).map(|other| &segments[other as usize]).collect();
            let Some(other) = here.on(gpu).find(|other| *other != index) else {
                continue;
            };
            let clash = |rule, what| Clash {
                rule,
                other: Some(other),
                what,
            };
            let milli: u64 = on.iter().map(|segment| u64::from(segment.gpu_milli)).sum();
            let fused_mib = self.fused_mib(&on);
            let is_whole = |segment: &&Segment| segment.gpu_milli == 1000;
            let found = if on.iter().all(is_whole) {
                match self.conditions.sharing {
                    true if fused_mib.is_some_and(|mib| mib <= has_mib) => continue,
                    true if on.len() <= 2 => {
                        let mib: u64 = on.iter().map(|segment| self.job(segment).gpu_memory_mib).sum();
                        (mib > has_mib).then(|| {
                            clash(
                                Rule::GpuMemory,
                                format!("needs with others {mib} of {has_mib} MiB of GPU {gpu}"),
                            )
                        })
                    }
                    _ => Some(clash(
                        Rule::Gpus,
                        format!("holds GPU {gpu}, which another one holds"),
                    )),
                }
            } else if milli > 1000 {
                Some(clash(
                    Rule::Shares,
                    format!("makes {milli} of 1000 thousandths of GPU {gpu}"),
                ))
            } else {
                let mib = on
                    .iter()
                    .map(|segment| crate::facts::demand(segment.gpu_memory_gib, 1024.0));
                let mib: u64 = mib.sum();
                (mib > has_mib).then(|| {
                    clash(
                        Rule::GpuMemory,
                        format!("needs with others {mib} of {has_mib} MiB of GPU {gpu}"),
                    )
                })
            };
            if let Some(found) = found
                && !clashes.iter().any(|clash| clash.rule == found.rule)
            {
                clashes.push(found);
            }
        }
    }

    /// GPU memory of a program that these are fused into; none: they cannot be.
    fn fused_mib(&self, on: &[&Segment]) -> Option<u64> {
        let first = self.job(on[0]);
        let (framework_mib, job_mib) = first.fused_mib?;
        let is_alike = |segment: &&Segment| {
            let job = self.job(segment);
            job.class == first.class && job.num_gpus == 1
        };
        on.iter()
            .all(is_alike)
            .then(|| framework_mib + job_mib * on.len() as u64)
    }

    fn check_closed(&mut self, time: usize, node: u32, index: u32, goes_on: bool) {
        let segment = &self.run.segments[index as usize];
        let closed = &self.conditions.closed[time];
        let (from, to) = (us(closed.from_s), us(closed.to_s));
        let (begin, end) = (us(segment.from_s), us(segment.to_s));
        let is_inside = (from..to).contains(&begin);
        let is_wrong = match closed.is_down {
            true => is_inside || (begin < from && end > from),
            // What goes on was there before.
            false => is_inside && !goes_on,
        };
        if is_wrong {
            let (state, at_s) = (
                if closed.is_down { "down" } else { "drained" },
                segment.from_s.max(closed.from_s),
            );
            let what = format!(
                "is on a node that is {state} from {} s to {} s",
                closed.from_s, closed.to_s
            );
            self.fault(Rule::Availability, at_s, Some(node), (segment, None), what);
        }
    }

    fn check_quota(&mut self, tenant: usize, milli: u64, segment: &Segment) {
        let Some(of) = self.facts.tenants.get(tenant).filter(|_| !self.facts.borrowing) else {
            return;
        };
        if milli > u64::from(of.quota_gpus) * 1000 {
            let held = milli as f64 / 1000.0;
            let what = format!(
                "makes {held} GPUs of tenant {}, whose quota is {}",
                of.name, of.quota_gpus
            );
            self.fault(Rule::Quota, segment.from_s, None, (segment, None), what);
        }
    }
}
