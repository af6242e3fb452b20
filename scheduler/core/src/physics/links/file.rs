//! A fabric as files say it: the name of a preset, a preset with some keys of one's own, or all keys.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{Between, Fabric, Inside, Switch};
use crate::problem::Problem;

/// Keys that a file may give; with a preset each stands for itself.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct FabricFile {
    preset: Option<String>,
    inside: Option<InsideFile>,
    between: Option<BetweenFile>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct InsideFile {
    ring_gb_per_s: Option<f64>,
    switch: Option<Switch>,
    islands_gb_per_s: Option<f64>,
    nodes_per_domain: Option<u32>,
    latency_us: Option<f64>,
    latency_per_gpu_us: Option<f64>,
    root_us: Option<f64>,
    root_per_gpu_us: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct BetweenFile {
    nics_per_node: Option<u32>,
    nic_gb_per_s: Option<f64>,
    ceiling_gb_per_s: Option<f64>,
    latency_us: Option<f64>,
    latency_per_domain_us: Option<f64>,
    root_us: Option<f64>,
    rack_oversubscription: Option<f64>,
    racks_per_pod: Option<u32>,
    pod_oversubscription: Option<f64>,
    tuned: Option<f64>,
    hash_loss: Option<f64>,
}

impl<'de> Deserialize<'de> for Fabric {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Fabric, D::Error> {
        struct NameOrTable;
        impl<'de> Visitor<'de> for NameOrTable {
            type Value = Fabric;

            fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
                out.write_str("the name of a fabric, or a table with preset, inside and between")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Fabric, E> {
                Fabric::from_name(name).map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Fabric, A::Error> {
                let file = FabricFile::deserialize(MapAccessDeserializer::new(map))?;
                let fabric = file.resolve().map_err(A::Error::custom)?;
                fabric.validate().map_err(A::Error::custom)?;
                Ok(fabric)
            }
        }
        from.deserialize_any(NameOrTable)
    }
}

impl FabricFile {
    fn resolve(self) -> Result<Fabric, Problem> {
        let base = self.preset.as_deref().map(Fabric::from_name).transpose()?;
        let table = |key: &str, is_there: bool| match is_there || base.is_some() {
            true => Ok(()),
            false => Err(missing(key)),
        };
        table("inside", self.inside.is_some())?;
        table("between", self.between.is_some())?;
        Ok(Fabric {
            inside: self
                .inside
                .unwrap_or_default()
                .over(base.map(|base| base.inside))?,
            between: self
                .between
                .unwrap_or_default()
                .over(base.map(|base| base.between))?,
        })
    }
}

impl InsideFile {
    fn over(self, base: Option<Inside>) -> Result<Inside, Problem> {
        let needed = |key: &str, own: Option<f64>, base: Option<f64>| {
            own.or(base).ok_or_else(|| missing(&format!("inside.{key}")))
        };
        Ok(Inside {
            latency_per_gpu_us: self
                .latency_per_gpu_us
                .or(base.map(|base| base.latency_per_gpu_us))
                .unwrap_or(0.0),
            root_per_gpu_us: self
                .root_per_gpu_us
                .or(base.map(|base| base.root_per_gpu_us))
                .unwrap_or(0.0),
            ring_gb_per_s: needed(
                "ring_gb_per_s",
                self.ring_gb_per_s,
                base.map(|base| base.ring_gb_per_s),
            )?,
            switch: self.switch.or(base.and_then(|base| base.switch)),
            islands_gb_per_s: self
                .islands_gb_per_s
                .or(base.and_then(|base| base.islands_gb_per_s)),
            nodes_per_domain: self
                .nodes_per_domain
                .or(base.map(|base| base.nodes_per_domain))
                .unwrap_or(1),
            latency_us: needed("latency_us", self.latency_us, base.map(|base| base.latency_us))?,
            root_us: self.root_us.or(base.map(|base| base.root_us)).unwrap_or(0.0),
        })
    }
}

impl BetweenFile {
    fn over(self, base: Option<Between>) -> Result<Between, Problem> {
        let needed = |key: &str, own: Option<f64>, base: Option<f64>| {
            own.or(base).ok_or_else(|| missing(&format!("between.{key}")))
        };
        let (nics, nic) = (self.nics_per_node, self.nic_gb_per_s);
        Ok(Between {
            nics_per_node: nics
                .or(base.map(|base| base.nics_per_node))
                .ok_or_else(|| missing("between.nics_per_node"))?,
            nic_gb_per_s: needed("nic_gb_per_s", nic, base.map(|base| base.nic_gb_per_s))?,
            ceiling_gb_per_s: self
                .ceiling_gb_per_s
                .or(base.and_then(|base| base.ceiling_gb_per_s)),
            latency_us: needed("latency_us", self.latency_us, base.map(|base| base.latency_us))?,
            latency_per_domain_us: self
                .latency_per_domain_us
                .or(base.map(|base| base.latency_per_domain_us))
                .unwrap_or(0.0),
            root_us: self.root_us.or(base.map(|base| base.root_us)).unwrap_or(0.0),
            rack_oversubscription: self
                .rack_oversubscription
                .or(base.map(|base| base.rack_oversubscription))
                .unwrap_or(1.0),
            racks_per_pod: self
                .racks_per_pod
                .or(base.map(|base| base.racks_per_pod))
                .unwrap_or(0),
            pod_oversubscription: self
                .pod_oversubscription
                .or(base.map(|base| base.pod_oversubscription))
                .unwrap_or(1.0),
            tuned: self.tuned.or(base.map(|base| base.tuned)).unwrap_or(1.0),
            hash_loss: self.hash_loss.or(base.map(|base| base.hash_loss)).unwrap_or(0.0),
        })
    }
}

fn missing(key: &str) -> Problem {
    let allowed = match key {
        "inside" => "a table with ring_gb_per_s and latency_us at least",
        "between" => "a table with nics_per_node, nic_gb_per_s and latency_us at least",
        _ => "a number",
    };
    let hint = "write it, or name a preset whose keys stand where none is written: preset = \"hgx-h100-ndr\"";
    Problem::new(format!("fabric.{key}"), "nothing", allowed, hint)
}
