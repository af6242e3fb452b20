//! How gangs lie on the links of a cluster, and what those make of their rates.

use smallvec::SmallVec;

use crate::cluster::Cluster;
use crate::cluster::places::links::{Links, Want, part};
use crate::cluster::rates::speed::FACTOR_MIN;
use crate::cluster::tables::{JobState, Slice};
use crate::cluster_spec::Tasks;
use crate::ids::{ClassId, JobId};
use crate::physics::links::{Fabric, Spread, StepCost};
use crate::physics::pace::Pace;

/// How a gang lies, without what others leave it.
pub(in crate::cluster) struct Lay {
    /// With the share that it has by itself.
    pub(in crate::cluster) alone: Spread,
    wants: SmallVec<[Want; 8]>,
}

/// What a gang has in one domain, rack or pod.
struct Part {
    at: u32,
    num_domains: u32,
    num_gpus: u32,
    num_nics: u32,
}

impl Cluster {
    /// What links make of a placement for a class alone; none where they have no say.
    pub(in crate::cluster) fn locality_by_links(
        &self,
        class: ClassId,
        placement: &[Slice],
        num_racks: u32,
        (num_gpus, tasks): (u32, Tasks),
    ) -> Option<f64> {
        let (links, step) = (
            self.places.links.as_ref()?,
            self.facts.classes[class.index()].step?,
        );
        if let [only] = placement {
            let island = self.places.nodes[only.node.index()].nvlink_gpus;
            let (first, last) = (only.gpus.trailing_zeros(), 63 - only.gpus.leading_zeros());
            if first / island == last / island {
                return Some(1.0);
            }
        }
        let spread = self.lay(links, placement, num_racks, num_gpus).alone;
        let types = self.facts.class_types[class.index()];
        let tightest = self.tightest_spread(links, types, placement, (num_gpus, tasks));
        Some(locality(&links.fabric, step, spread, tightest))
    }

    /// Whether links decide what a placement of a class is worth.
    pub(in crate::cluster) fn is_by_links(&self, class: ClassId) -> bool {
        self.places.links.is_some() && self.facts.classes[class.index()].step.is_some()
    }

    /// Speed of a running gang among the others on its links, as a part of its speed with its links to itself. (0, 1]
    pub(in crate::cluster) fn link_speed(&self, id: JobId) -> f64 {
        let Some((links, step)) = self.links_of(id) else {
            return 1.0;
        };
        let job = &self.jobs.rows[id.index()];
        let lay = self.lay_of(links, &job.placement);
        among(&links.fabric, step, lay.alone, links.share(&lay.wants))
    }

    /// The same on a placement that it may get, beside the other gangs that use its links now.
    pub(in crate::cluster) fn link_speed_at(&self, id: JobId, placement: &[Slice]) -> f64 {
        let Some((links, step)) = self.links_of_placed(id, placement) else {
            return 1.0;
        };
        let at = self.lay_of(links, placement);
        let own = match self.links_of(id) {
            Some(_) => self.lay_of(links, &self.jobs.rows[id.index()].placement).wants,
            None => SmallVec::new(),
        };
        let shares = at.wants.iter().map(|(number, want)| {
            let own = own.iter().find(|(other, _)| other == number);
            let link = &links.links[*number as usize];
            part(link.has, link.wanted - own.map_or(0, |(_, want)| *want) + want)
        });
        among(&links.fabric, step, at.alone, shares.fold(1.0, f64::min))
    }

    /// Adds a gang to its links, or removes it. Writes to `touched` the other gangs whose share of a link has changed.
    pub(in crate::cluster) fn load_links(
        &mut self,
        id: JobId,
        placement: &[Slice],
        comes: bool,
        touched: &mut Vec<JobId>,
    ) {
        let Some((links, _)) = self.links_of_placed(id, placement) else {
            return;
        };
        let wants = self.lay_of(links, placement).wants;
        let Some(links) = &mut self.places.links else {
            return;
        };
        for (number, wanted) in wants {
            let link = &mut links.links[number as usize];
            let before = link.share();
            if comes {
                link.wanted += wanted;
                link.gangs.push(id);
            } else {
                link.wanted -= wanted;
                link.gangs.retain(|other| *other != id);
            }
            if link.share() != before {
                touched.extend(link.gangs.iter().filter(|other| **other != id));
            }
        }
    }

    /// Writes the other gangs that use a link of this running gang.
    pub(in crate::cluster) fn on_links_of(&self, id: JobId, others: &mut Vec<JobId>) {
        let Some((links, _)) = self.links_of(id) else {
            return;
        };
        let job = &self.jobs.rows[id.index()];
        let lay = self.lay_of(links, &job.placement);
        let gangs = lay
            .wants
            .iter()
            .flat_map(|(link, _)| &links.links[*link as usize].gangs);
        others.extend(gangs.filter(|other| **other != id));
    }

    fn links_of(&self, id: JobId) -> Option<(&Links, StepCost)> {
        self.links_of_placed(id, &self.jobs.rows[id.index()].placement)
    }

    /// The links that could slow a job on a placement. Goodput and copies have their own cost of being spread.
    fn links_of_placed(&self, id: JobId, placement: &[Slice]) -> Option<(&Links, StepCost)> {
        let links = self
            .places
            .links
            .as_ref()
            .filter(|links| !links.links.is_empty())?;
        let job = &self.jobs.rows[id.index()];
        let class = &self.facts.classes[job.request.class.index()];
        let is_goodput = class
            .elastic
            .is_some_and(|elastic| matches!(elastic.profile, Pace::Goodput(_)));
        let is_apart = placement.len() < 2 || job.is_forked || is_goodput;
        class.step.filter(|_| !is_apart).map(|step| (links, step))
    }

    pub(in crate::cluster) fn lay_of(&self, links: &Links, placement: &[Slice]) -> Lay {
        self.lay(links, placement, self.num_racks(placement), num_gpus(placement))
    }

    fn lay(&self, links: &Links, placement: &[Slice], num_racks: u32, num_gpus: u32) -> Lay {
        let nics_per_node = links.fabric.between.nics_per_node;
        let mut wants: SmallVec<[Want; 8]> = SmallVec::new();
        let mut parts: SmallVec<[Part; 8]> = SmallVec::new();
        let mut is_one_island = true;
        let per_domain = links.fabric.inside.nodes_per_domain;
        for slice in placement {
            let node = &self.places.nodes[slice.node.index()];
            let (first, last) = (slice.gpus.trailing_zeros(), 63 - slice.gpus.leading_zeros());
            is_one_island &= first / node.nvlink_gpus == last / node.nvlink_gpus;
            let rack = &self.places.racks[node.rack.index()];
            let number = (slice.node.0 - rack.first_node.0) / per_domain;
            let num_gpus = slice.num_gpus();
            parts.push(Part {
                at: rack.first_node.0 + number * per_domain,
                num_domains: 1,
                num_gpus,
                num_nics: num_gpus.min(nics_per_node),
            });
        }
        if per_domain > 1 {
            merge(&mut parts, false);
        }
        let num_domains = parts.len() as u32;
        let least = |of: fn(&Part) -> u32| parts.iter().map(of).min().unwrap_or(1);
        let mut alone = Spread {
            num_gpus,
            num_domains,
            domain_gpus_min: least(|part| part.num_gpus),
            domain_nics_min: least(|part| part.num_nics),
            is_one_island,
            is_one_rack: num_racks <= 1,
            share: 1.0,
        };
        if num_domains < 2 || links.links.is_empty() {
            return Lay { alone, wants };
        }
        if links.can_nodes {
            let nics = |slice: &Slice| u64::from(slice.num_gpus().min(nics_per_node)) * 1000;
            wants.extend(placement.iter().map(|slice| (slice.node.0, nics(slice))));
        }
        let beyond = |part: &Part| {
            let elsewhere = u64::from(num_domains - part.num_domains);
            u64::from(part.num_nics) * 1000 * elsewhere / u64::from(num_domains - 1)
        };
        if num_racks > 1 && (links.can_racks || links.can_pods) {
            for part in &mut parts {
                part.at = self.places.nodes[part.at as usize].rack.0;
            }
            merge(&mut parts, true);
            if links.can_racks {
                let racks = parts
                    .iter()
                    .map(|part| (links.first_rack + part.at, beyond(part)));
                wants.extend(racks);
            }
            if links.can_pods {
                let per_pod = links.fabric.between.racks_per_pod;
                parts.iter_mut().for_each(|part| part.at /= per_pod);
                merge(&mut parts, true);
                if parts.len() > 1 {
                    let pods = parts.iter().map(|part| (links.first_pod + part.at, beyond(part)));
                    wants.extend(pods);
                }
            }
        }
        alone.share = links.share_alone(&wants);
        Lay { alone, wants }
    }

    /// How the gang would lie at its tightest: as few nodes, racks and pods as it can, all but the last of them full.
    pub(in crate::cluster) fn tightest_spread(
        &self,
        links: &Links,
        types: u64,
        placement: &[Slice],
        (num_gpus, tasks): (u32, Tasks),
    ) -> Spread {
        let (inside, between) = (&links.fabric.inside, &links.fabric.between);
        let mut best = (u32::MAX, 1, 1);
        for kind in self.types_in(types) {
            let room = self.type_room(kind, tasks);
            if room.all >= num_gpus && room.node > 0 {
                let num_racks = num_gpus.div_ceil(room.rack);
                best = best.min((num_gpus.div_ceil(room.node) + num_racks - 1, room.node, room.rack));
            }
        }
        let (_, in_node, in_rack) = best;
        let in_domain = (in_node * inside.nodes_per_domain).min(in_rack.max(in_node));
        let num_domains = num_gpus.div_ceil(in_domain);
        let rest = num_gpus - (num_domains - 1) * in_domain;
        let nvlink = self.places.nodes[placement[0].node.index()].nvlink_gpus;
        // Tasks may leave GPUs of a full node, and their NICs, to others.
        let nics_in_node = match tasks.is_any() {
            true => between.nics_per_node,
            false => between.nics_per_node.min(in_node),
        };
        let num_racks = num_gpus.div_ceil(in_rack);
        // A part that fills its rack (or pod) wants most of its uplinks, beside what the links of the rest carry.
        let share = |full: u32, over: f64| {
            let beyond = f64::from(num_domains.saturating_sub(full)) / f64::from(num_domains.max(2) - 1);
            1.0 / (over * beyond).max(1.0)
        };
        let rack_domains = in_rack.div_ceil(in_domain);
        let pod_domains = match between.racks_per_pod {
            0 => num_domains,
            racks => rack_domains.saturating_mul(racks),
        };
        let share_racks = share(rack_domains, between.rack_oversubscription);
        Spread {
            num_gpus,
            num_domains,
            domain_gpus_min: rest,
            domain_nics_min: rest / in_node * nics_in_node + (rest % in_node).min(nics_in_node),
            is_one_island: num_gpus.min(in_node) <= nvlink,
            is_one_rack: num_racks == 1,
            share: share_racks.min(share(pod_domains, between.pod_oversubscription)),
        }
    }

    /// Checks that links carry what the running gangs want of them, counted anew.
    pub(in crate::cluster) fn check_links(&self) {
        let Some(links) = &self.places.links else { return };
        let mut wanted = vec![(0, Vec::new()); links.links.len()];
        for (row, job) in self.jobs.rows.iter().enumerate() {
            let id = JobId(row as u32);
            if job.state != JobState::Running || self.links_of(id).is_none() {
                continue;
            }
            let lay = self.lay_of(links, &job.placement);
            for (link, want) in lay.wants {
                wanted[link as usize].0 += want;
                wanted[link as usize].1.push(id);
            }
        }
        for (number, (link, wanted)) in links.links.iter().zip(wanted).enumerate() {
            let mut gangs = link.gangs.to_vec();
            gangs.sort_unstable();
            assert_eq!((link.wanted, gangs), wanted, "what is wanted of link {number}");
        }
    }
}

fn num_gpus(placement: &[Slice]) -> u32 {
    placement.iter().map(|slice| slice.num_gpus()).sum()
}

/// Speed with a share of the links relative to that with the share that a gang has by itself, (0, 1].
fn among(fabric: &Fabric, step: StepCost, alone: Spread, share: f64) -> f64 {
    if share == alone.share {
        return 1.0;
    }
    let now = Spread { share, ..alone };
    (fabric.step_s(step, alone) / fabric.step_s(step, now)).max(FACTOR_MIN)
}

/// Speed at a spread relative to the tightest, (0, 1].
fn locality(fabric: &Fabric, step: StepCost, spread: Spread, tightest: Spread) -> f64 {
    let factor = fabric.step_s(step, tightest) / fabric.step_s(step, spread);
    factor.clamp(FACTOR_MIN, 1.0)
}

/// Adds up what lies at the same place: slices of a domain are one domain, domains of a rack are several.
fn merge(parts: &mut SmallVec<[Part; 8]>, are_domains: bool) {
    parts.sort_unstable_by_key(|part| part.at);
    parts.dedup_by(|part, kept| {
        let is_same = part.at == kept.at;
        if is_same {
            kept.num_gpus += part.num_gpus;
            kept.num_nics += part.num_nics;
            kept.num_domains += if are_domains { part.num_domains } else { 0 };
        }
        is_same
    });
}
