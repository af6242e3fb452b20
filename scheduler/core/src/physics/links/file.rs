//! A fabric as files say it: the name of a preset, a preset with some keys of one's own, or all keys.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{BetweenFile, Fabric, InsideFile};
use crate::problem::Problem;

/// A table of links with its ranges, and the same as files give it: a key that is left out is that of the preset, where there is one,
/// else it is `needed`, what stands in `or(...)`, or `optional` none.
macro_rules! links {
    (
        $table:literal as $file:ident,
        $(#[$($of:tt)*])*
        pub struct $name:ident {
            $( $(#[$($at:tt)*])* $field:ident : $kind:ty = $form:ident $(($default:expr))? $(, in $range:expr)?; )*
        }
    ) => {
        $crate::settings! {
            $(#[$($of)*])*
            #[derive(Clone, Copy, Debug, PartialEq)]
            pub struct $name: required {
                $( $(#[$($at)*])* pub $field: $kind $(, in $range)?; )*
            }
        }

        #[derive(Default, ::serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        struct $file {
            $( $field: links!(@kind $form $kind), )*
        }

        impl $file {
            fn over(self, base: Option<$name>) -> Result<$name, $crate::Problem> {
                let missing = |key| file::missing(&format!("{}.{key}", $table));
                Ok($name {
                    $( $field: links!(@value $form (self.$field, base, missing) $field $($default)?), )*
                })
            }
        }
    };
    (@kind optional $kind:ty) => { $kind };
    (@kind $form:ident $kind:ty) => { Option<$kind> };
    (@value optional ($own:expr, $base:ident, $missing:ident) $field:ident) => {
        $own.or($base.and_then(|base| base.$field))
    };
    (@value needed ($own:expr, $base:ident, $missing:ident) $field:ident) => {
        $own.or($base.map(|base| base.$field)).ok_or_else(|| $missing(stringify!($field)))?
    };
    (@value or ($own:expr, $base:ident, $missing:ident) $field:ident $default:expr) => {
        $own.or($base.map(|base| base.$field)).unwrap_or($default)
    };
}

/// Keys that a file may give; with a preset each stands for itself.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct FabricFile {
    preset: Option<String>,
    inside: Option<InsideFile>,
    between: Option<BetweenFile>,
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

pub(super) fn missing(key: &str) -> Problem {
    let allowed = match key {
        "inside" => "a table with ring_gb_per_s and latency_us at least",
        "between" => "a table with nics_per_node, nic_gb_per_s and latency_us at least",
        _ => "a number",
    };
    let hint = "write it, or name a preset whose keys stand where none is written: preset = \"hgx-h100-ndr\"";
    Problem::new(format!("fabric.{key}"), "nothing", allowed, hint)
}
