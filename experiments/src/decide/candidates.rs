//! What may be deployed in place of the site's policy: heuristics, dealers with the index, and the shipped networks.
//!
//! A network plays from a file in the run's folder, so that what is chosen can be deployed from there. Networks that share GPUs
//! or resize jobs are not here: a batch system's jobs hold whole GPUs.

use std::path::PathBuf;

use pleach_env::workload::Workload;
use pleach_scheduler::cluster_spec::Seen;

use super::site::Site;
use crate::door::{DOOR, PolicySpec};
use crate::error::Error;
use crate::run_folder::atomic_file;
use crate::twin;

macro_rules! shipped {
    ($($name:literal),+) => {
        [$(($name, include_bytes!(concat!("../../networks/", $name, ".ckpt")).as_slice())),+]
    };
}

/// The shipped networks: for several GPU types, for gangs and for tenants, each with the one that was trained on long queues.
/// `networks` links to their files in `checkpoints/reference`; a crate that is published alone has them in place of the links.
const NETWORKS: [(&str, &[u8]); 7] = shipped!(
    "GavelMultiRealistic-v0",
    "GavelMultiRealistic-v0-longer",
    "PhillyGangRealistic-v0",
    "PhillyGang-v1-longer",
    "HeliosTenants-v1",
    "HeliosTenants-v1-longer",
    "SynergyRealistic-v0"
);

impl Site<'_> {
    fn network_file(&self, name: &str) -> PathBuf {
        self.file("networks").join(format!("{name}.ckpt"))
    }

    /// Where a candidate is opened: its name, or `NAME=FILE` of a network.
    pub(super) fn place_of(&self, name: &str) -> String {
        if let Some(place) = self.own_place(name) {
            return place;
        }
        match NETWORKS.iter().any(|(known, _)| *known == name) {
            true => format!("{name}={}", self.network_file(name).display()),
            false => name.to_owned(),
        }
    }

    /// The policies that the site's may be like.
    pub(super) fn own_policies(&self, seen: &Seen) -> Result<Vec<PolicySpec>, Error> {
        Ok(DOOR.open_all(&self.config.policies(seen))?)
    }

    /// The one of them of this name.
    pub(super) fn own_policy(&self, name: &str, seen: &Seen) -> Result<PolicySpec, Error> {
        let all = self.own_policies(seen)?;
        let found = all.into_iter().find(|policy| policy.name() == name);
        // A run of an older site.toml may have kept another one.
        found.map_or_else(|| Ok(DOOR.open_one(name)?), Ok)
    }

    /// What is deployed of a candidate: its name, or the file of a network.
    pub(super) fn deployed(&self, name: &str) -> String {
        let place = self.place_of(name);
        let file = place.split_once('=').map(|(_, file)| file.to_owned());
        file.unwrap_or(place)
    }

    /// The words of `--under` for all candidates.
    pub(super) fn all_candidates(&self) -> String {
        let networks = NETWORKS.iter().map(|(name, _)| self.place_of(name));
        std::iter::once("all".to_owned())
            .chain(networks)
            .chain(self.changes().iter().map(|change| self.place_of(&change.name)))
            .collect::<Vec<_>>()
            .join(",")
    }

    /// All candidates that this cluster admits.
    ///
    /// # Errors
    /// Files that cannot be written.
    pub(super) fn candidates(
        &self,
        workload: &Workload,
        sim: &pleach_env::SimConfig,
        policy: &PolicySpec,
    ) -> Result<Vec<PolicySpec>, Error> {
        let mut found = twin::candidates_beside(workload, sim, policy)?;
        self.write_changes()?;
        for change in self.changes() {
            found.push(DOOR.open_one(&self.place_of(&change.name))?);
        }
        for (name, bytes) in NETWORKS {
            // A file that is there may be an older program's.
            atomic_file::write(&self.network_file(name), bytes)?;
            let network = DOOR.open_one(&self.place_of(name))?;
            if network.check(sim.capabilities).is_ok() {
                found.push(network);
            }
        }
        Ok(found)
    }
}
