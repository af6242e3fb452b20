//! Which candidates a tree chooses among: its needs, as text that fits into a file.
//!
//! A tree is only meaningful over the candidates that it was fitted on. What is offered at run time is therefore part of
//! the policy and not of the program's configuration.

use serde::{Deserialize, Serialize};

use super::error::TreeError;
use crate::candidate::MAX_CANDIDATES;
use crate::cluster::{Capabilities, Sharing, Template};
use crate::ids::Time;
use crate::lens::{Lens, LensSet};
use crate::policy::Needs;

/// The written form of [`Needs`]. The observation is always filled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TreeNeeds {
    /// Chooses to stop running jobs where the cluster can.
    pub preemption: bool,
    /// Chooses to hold GPUs back where the cluster can.
    pub reservation: bool,
    /// Names of the orders to look under, at least one.
    pub lenses: Vec<LensName>,
    /// First jobs of each order, fitting or not; 0 to 64.
    pub heads: usize,
    /// Where quotas bind, a tenant whose first job of an order has no room has no heads under it; absent = false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tenants_in_order: bool,
    /// First jobs of each order that fit; 0 to 64.
    pub fitting: usize,
    /// Placements to try, in this order, without repetition; at least one.
    pub templates: Vec<TemplateName>,
    /// Chooses sizes of elastic jobs; absent = false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sizes: bool,
    /// Chooses shares of CPU and memory; absent = false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cores: bool,
    /// Chooses to hold GPUs back on a faster type than a job could have now; absent = false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wait_for_type: bool,
    /// Longest time between two passes, s; none = events only.
    pub tick_s: Option<f64>,
}

macro_rules! names {
    ($(#[$doc:meta])* $name:ident of $target:ident: $($variant:ident),*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[allow(missing_docs)]
        pub enum $name { $($variant),* }

        impl From<$target> for $name {
            fn from(value: $target) -> $name {
                match value { $($target::$variant => $name::$variant),* }
            }
        }
        impl From<$name> for $target {
            fn from(name: $name) -> $target {
                match name { $($name::$variant => $target::$variant),* }
            }
        }
    };
}

names! {
    /// A [`Lens`] by name.
    LensName of Lens: Arrival, Shortest, SmallestGpuTime, LeastAttained, WaitRatio, TenantDeficit, LargestGang
}
names! {
    /// A [`Template`] by name.
    TemplateName of Template: Fastest, BestValue, Fragments, Beside
}

use Template::{Beside as B, BestValue as V, Fastest as F, Fragments as G};

/// Every order of templates that a file may ask for; [`Needs`] borrows one of them for ever. Sharing comes last.
const ORDERS: [&[Template]; 31] = [
    &[B],
    &[F],
    &[V],
    &[G],
    &[F, V],
    &[F, G],
    &[V, F],
    &[V, G],
    &[G, F],
    &[G, V],
    &[F, V, G],
    &[F, G, V],
    &[V, F, G],
    &[V, G, F],
    &[G, F, V],
    &[G, V, F],
    &[F, B],
    &[V, B],
    &[G, B],
    &[F, V, B],
    &[F, G, B],
    &[V, F, B],
    &[V, G, B],
    &[G, F, B],
    &[G, V, B],
    &[F, V, G, B],
    &[F, G, V, B],
    &[V, F, G, B],
    &[V, G, F, B],
    &[G, F, V, B],
    &[G, V, F, B],
];

impl TreeNeeds {
    /// The written form.
    #[must_use]
    pub fn of(needs: &Needs) -> TreeNeeds {
        let lenses = Lens::ALL.into_iter().filter(|lens| needs.lenses.contains(*lens));
        TreeNeeds {
            preemption: needs.preempt,
            reservation: needs.reserve,
            lenses: lenses.map(LensName::from).collect(),
            heads: needs.heads,
            tenants_in_order: needs.tenants_in_order,
            fitting: needs.fitting,
            templates: needs.templates.iter().copied().map(TemplateName::from).collect(),
            sizes: needs.sizes,
            cores: needs.cores,
            wait_for_type: needs.wait_for_type,
            tick_s: needs.tick.map(Time::as_secs_f64),
        }
    }

    /// What to ask the enumeration for.
    ///
    /// # Errors
    /// [`TreeError::Value`] with the key that cannot be used.
    pub fn resolve(&self) -> Result<Needs, TreeError> {
        let fail = |key, value: String, allowed: String| Err(TreeError::Value { key, value, allowed });
        if self.lenses.is_empty() {
            return fail("needs.lenses", "[]".into(), "at least one order".into());
        }
        if self.heads.max(self.fitting) == 0 || self.heads.max(self.fitting) > MAX_CANDIDATES {
            let value = format!("heads {} and fitting {}", self.heads, self.fitting);
            let allowed = format!("0 to {MAX_CANDIDATES}, one of the two above 0");
            return fail("needs.heads, needs.fitting", value, allowed);
        }
        let wanted: Vec<Template> = self.templates.iter().copied().map(Template::from).collect();
        let Some(templates) = ORDERS.into_iter().find(|order| *order == wanted) else {
            let value = format!("{wanted:?}");
            return fail(
                "needs.templates",
                value,
                "one to four placements, none twice, beside last".into(),
            );
        };
        if let Some(tick_s) = self.tick_s
            && !(0.001..=1e9).contains(&tick_s)
        {
            return fail("needs.tick_s", tick_s.to_string(), "0.001 to 1e9, or null".into());
        }
        Ok(Needs {
            lenses: self
                .lenses
                .iter()
                .fold(LensSet::NONE, |set, name| set.with((*name).into())),
            heads: self.heads,
            tenants_in_order: self.tenants_in_order,
            fitting: self.fitting,
            templates,
            reserve: self.reservation,
            preempt: self.preemption,
            sizes: self.sizes,
            cores: self.cores,
            wait_for_type: self.wait_for_type,
            observation: true,
            entities: false,
            tick: self.tick_s.map(Time::from_secs_f64),
        })
    }

    /// Whether the cluster can do what the policy may choose.
    ///
    /// # Errors
    /// [`TreeError::Capability`] with the first capability that is missing.
    pub fn check_against(&self, policy: &str, capabilities: Capabilities) -> Result<(), TreeError> {
        for (needed, offered, capability) in [
            (self.preemption, capabilities.preemption, "preemption"),
            (self.reservation, capabilities.reservation, "reservation"),
            (
                self.templates.contains(&TemplateName::Beside),
                capabilities.sharing != Sharing::Off,
                "sharing",
            ),
        ] {
            if needed && !offered {
                return Err(TreeError::Capability {
                    policy: policy.into(),
                    capability,
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_survive_the_way_through_their_written_form() {
        for templates in ORDERS {
            let needs = Needs {
                templates,
                sizes: true,
                cores: templates.len() > 1,
                wait_for_type: templates.len() > 2,
                tick: Some(Time::from_secs_f64(2.0)),
                ..Needs::full()
            };
            assert_eq!(TreeNeeds::of(&needs).resolve().unwrap(), needs);
        }
        let few = Needs::first_fitting(LensSet::of(Lens::Shortest).with(Lens::Arrival));
        let back = TreeNeeds::of(&few).resolve().unwrap();
        assert!(back.observation, "a tree reads features");
        assert_eq!(
            back,
            Needs {
                observation: true,
                ..few
            }
        );
    }

    #[test]
    fn the_needs_of_every_heuristic_can_be_written() {
        for name in crate::heuristics::names() {
            let needs = crate::heuristics::by_name(name).unwrap().needs();
            let back = TreeNeeds::of(&needs).resolve().unwrap();
            let observed = Needs {
                observation: true,
                ..needs
            };
            assert_eq!(back, observed, "{name}");
        }
    }

    #[test]
    fn impossible_needs_are_refused_with_their_key() {
        let good = TreeNeeds::of(&Needs::full());
        type Spoil = fn(&mut TreeNeeds);
        let cases: [(Spoil, &str); 5] = [
            (|needs| needs.lenses.clear(), "needs.lenses"),
            (|needs| needs.heads = 65, "needs.heads"),
            (
                |needs| needs.templates.push(TemplateName::Fastest),
                "needs.templates",
            ),
            (|needs| needs.tick_s = Some(f64::NAN), "needs.tick_s"),
            (
                |needs| {
                    needs.heads = 0;
                    needs.fitting = 0;
                },
                "needs.heads",
            ),
        ];
        for (spoil, key) in cases {
            let mut needs = good.clone();
            spoil(&mut needs);
            let text = needs.resolve().unwrap_err().to_string();
            assert!(text.contains(key), "{text}");
        }
    }

    #[test]
    fn a_policy_that_preempts_is_refused_where_nothing_can_be_preempted() {
        let needs = TreeNeeds::of(&Needs::full());
        let text = needs
            .check_against("tree", Capabilities::default())
            .unwrap_err()
            .to_string();
        assert!(text.contains("needs preemption"), "{text}");
    }
}
