//! The candidates that a tree chooses among: its needs, as text that fits into a file.
//!
//! A tree is only meaningful over the candidates that it was fitted on. What is offered at run time is therefore part of
//! the policy and not of the program's configuration.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::error::TreeError;
use crate::actions::{ActionKind, ActionSet};
use crate::candidate::MAX_CANDIDATES;
use crate::cluster::{Capabilities, Template};
use crate::features::ColumnSet;
use crate::ids::Time;
use crate::lens::{Lens, LensSet};
use crate::policy::Needs;

/// The written form of [`Needs`], each kind of action a key of its own. The observation is always filled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenNeeds {
    /// Chooses to stop running jobs where the cluster can.
    preemption: bool,
    /// Chooses to hold GPUs back where the cluster can.
    reservation: bool,
    /// Names of the orders to look under, at least one.
    lenses: Vec<LensName>,
    /// First jobs of each order, fitting or not; 0 to 64.
    heads: usize,
    /// Where quotas bind, a tenant whose first job of an order has no room has no heads under it; absent = false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    tenants_in_order: bool,
    /// First jobs of each order that fit; 0 to 64.
    fitting: usize,
    /// Placements to try, in this order, without repetition; at least one. Sharing comes last.
    templates: Vec<TemplateName>,
    /// Chooses sizes of elastic jobs; absent = false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    sizes: bool,
    /// Chooses shares of CPU and memory; absent = false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    cores: bool,
    /// Chooses to hold GPUs back on a faster type than a job could have now; absent = false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    wait_for_type: bool,
    /// Longest time between two passes, s; none = events only.
    tick_s: Option<f64>,
    /// What else it chooses among, of the kinds of actions without a key of their own; absent = none.
    #[serde(default, skip_serializing_if = "ActionSet::is_empty")]
    actions: ActionSet,
}

/// The kinds that have keys of their own, or a place among the templates.
const KEYS: ActionSet = ActionSet::of(ActionKind::Preempt)
    .with(ActionKind::Reserve)
    .with(ActionKind::Share)
    .with(ActionKind::Sizes)
    .with(ActionKind::GrantCores)
    .with(ActionKind::WaitForType);

/// A [`Lens`] by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum LensName {
    Arrival,
    Shortest,
    SmallestGpuTime,
    LeastAttained,
    WaitRatio,
    TenantDeficit,
    LargestGang,
}

/// The name of each lens, in the order of [`Lens::ALL`].
const LENS_NAMES: [LensName; 7] = [
    LensName::Arrival,
    LensName::Shortest,
    LensName::SmallestGpuTime,
    LensName::LeastAttained,
    LensName::WaitRatio,
    LensName::TenantDeficit,
    LensName::LargestGang,
];

/// A [`Template`] by name, or sharing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum TemplateName {
    Fastest,
    BestValue,
    Fragments,
    Beside,
}

use Template::{BestValue as V, Fastest as F, Fragments as G};

/// Every order of templates that a file may ask for; [`Needs`] borrows one of them for ever.
const ORDERS: [&[Template]; 16] = [
    &[],
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
];

impl From<&Needs> for WrittenNeeds {
    fn from(needs: &Needs) -> WrittenNeeds {
        let has = |kind| needs.actions.contains(kind);
        let lenses = Lens::ALL.into_iter().zip(LENS_NAMES);
        let templates = needs.templates.iter().map(|template| match template {
            Template::Fastest => TemplateName::Fastest,
            Template::BestValue => TemplateName::BestValue,
            Template::Fragments => TemplateName::Fragments,
        });
        WrittenNeeds {
            preemption: has(ActionKind::Preempt),
            reservation: has(ActionKind::Reserve),
            lenses: lenses
                .filter(|(lens, _)| needs.lenses.contains(*lens))
                .map(|(_, name)| name)
                .collect(),
            heads: needs.heads,
            tenants_in_order: needs.tenants_in_order,
            fitting: needs.fitting,
            templates: templates
                .chain(has(ActionKind::Share).then_some(TemplateName::Beside))
                .collect(),
            sizes: has(ActionKind::Sizes),
            cores: has(ActionKind::GrantCores),
            wait_for_type: has(ActionKind::WaitForType),
            tick_s: needs.tick.map(Time::as_secs_f64),
            actions: needs.actions.intersection(ActionSet::OFFERED).difference(KEYS),
        }
    }
}

impl Serialize for Needs {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        WrittenNeeds::from(self).serialize(to)
    }
}

impl<'de> Deserialize<'de> for Needs {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Needs, D::Error> {
        WrittenNeeds::deserialize(from)?.read().map_err(D::Error::custom)
    }
}

impl WrittenNeeds {
    /// What to ask the enumeration for.
    ///
    /// # Errors
    /// [`TreeError::Value`] with the key that cannot be used.
    pub(super) fn read(&self) -> Result<Needs, TreeError> {
        if let Some(tick_s) = self.tick_s {
            check_tick(tick_s)?;
        }
        let (whole, shares) = match self.templates.split_last() {
            Some((TemplateName::Beside, whole)) => (whole, true),
            _ => (self.templates.as_slice(), false),
        };
        let is_order = |order: &&[Template]| {
            let names = order.iter().map(|template| match template {
                Template::Fastest => TemplateName::Fastest,
                Template::BestValue => TemplateName::BestValue,
                Template::Fragments => TemplateName::Fragments,
            });
            names.eq(whole.iter().copied()) && (shares || !order.is_empty())
        };
        let Some(templates) = ORDERS.into_iter().find(is_order) else {
            return Err(TreeError::Value {
                key: "needs.templates",
                value: format!("{:?}", self.templates),
                allowed: "one to four placements, none twice, beside last".into(),
            });
        };
        let named = Lens::ALL.into_iter().zip(LENS_NAMES);
        let others = self.actions.within("needs.actions", ActionSet::OFFERED);
        let others = others.map_err(|_| TreeError::Value {
            key: "needs.actions",
            value: self.actions.names(),
            allowed: ActionSet::OFFERED.names(),
        })?;
        let needs = Needs {
            lenses: named
                .filter(|(_, name)| self.lenses.contains(name))
                .fold(LensSet::NONE, |set, (lens, _)| set.with(lens)),
            heads: self.heads,
            tenants_in_order: self.tenants_in_order,
            fitting: self.fitting,
            templates,
            actions: others.union(ActionSet::where_true([
                (ActionKind::Preempt, self.preemption),
                (ActionKind::Reserve, self.reservation),
                (ActionKind::Share, shares),
                (ActionKind::Sizes, self.sizes),
                (ActionKind::GrantCores, self.cores),
                (ActionKind::WaitForType, self.wait_for_type),
            ])),
            observation: true,
            columns: ColumnSet::ALL,
            tick: self.tick_s.map(Time::from_secs_f64),
        };
        check(&needs)?;
        Ok(needs)
    }
}

/// Whether a tree can be written that chooses among these candidates.
///
/// # Errors
/// [`TreeError::Value`] with the key that cannot be used.
pub(crate) fn check(needs: &Needs) -> Result<(), TreeError> {
    let fail = |key, value: String, allowed: String| Err(TreeError::Value { key, value, allowed });
    if needs.lenses == LensSet::NONE {
        return fail("needs.lenses", "[]".into(), "at least one order".into());
    }
    if needs.heads.max(needs.fitting) == 0 || needs.heads.max(needs.fitting) > MAX_CANDIDATES {
        let value = format!("heads {} and fitting {}", needs.heads, needs.fitting);
        let allowed = format!("0 to {MAX_CANDIDATES}, one of the two above 0");
        return fail("needs.heads, needs.fitting", value, allowed);
    }
    needs.tick.map_or(Ok(()), |tick| check_tick(tick.as_secs_f64()))
}

fn check_tick(tick_s: f64) -> Result<(), TreeError> {
    if (0.001..=1e9).contains(&tick_s) {
        return Ok(());
    }
    Err(TreeError::Value {
        key: "needs.tick_s",
        value: tick_s.to_string(),
        allowed: "0.001 to 1e9, or null".into(),
    })
}

/// Whether the cluster can do what the policy may choose. Sizes, shares of cores and waiting for a type need nothing of it.
///
/// # Errors
/// [`TreeError::Capability`] with the first capability that is missing.
pub(crate) fn check_against(
    needs: &Needs,
    policy: &str,
    capabilities: Capabilities,
) -> Result<(), TreeError> {
    match needs.actions.difference(capabilities.actions()).iter().next() {
        None => Ok(()),
        Some(missing) => Err(TreeError::Capability {
            policy: policy.into(),
            capability: missing.phrase(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written_and_read(needs: &Needs) -> Needs {
        let text = serde_json::to_string(&WrittenNeeds::from(needs)).unwrap();
        serde_json::from_str::<WrittenNeeds>(&text)
            .unwrap()
            .read()
            .unwrap()
    }

    #[test]
    fn needs_survive_the_way_through_their_written_form() {
        let kinds = ActionKind::ALL
            .into_iter()
            .filter(|kind| *kind != ActionKind::MixTypes);
        let kinds: Vec<ActionKind> = kinds.collect();
        for templates in ORDERS {
            for number in 0..1_usize << kinds.len() {
                let chosen = (0..kinds.len()).filter(|place| number >> place & 1 == 1);
                let actions: ActionSet = chosen.map(|place| kinds[place]).collect();
                if templates.is_empty() && !actions.contains(ActionKind::Share) {
                    continue;
                }
                let needs = Needs {
                    templates,
                    actions,
                    tick: Some(Time::from_secs_f64(2.0)),
                    ..Needs::full()
                };
                assert_eq!(written_and_read(&needs), needs);
            }
        }
        for lens in Lens::ALL {
            let few = Needs::first_fitting(LensSet::of(lens));
            let observed = Needs {
                observation: true,
                ..few
            };
            assert_eq!(written_and_read(&few), observed, "a tree reads features");
        }
    }

    #[test]
    fn the_needs_of_every_heuristic_can_be_written() {
        for name in crate::heuristics::names() {
            let needs = crate::heuristics::by_name(name).unwrap().needs();
            let observed = Needs {
                observation: true,
                ..needs
            };
            assert_eq!(written_and_read(&needs), observed, "{name}");
        }
    }

    #[test]
    fn impossible_needs_are_refused_with_their_key() {
        let good = WrittenNeeds::from(&Needs::full());
        type Spoil = fn(&mut WrittenNeeds);
        let cases: [(Spoil, &str); 6] = [
            (|needs| needs.lenses.clear(), "needs.lenses"),
            (|needs| needs.heads = 65, "needs.heads"),
            (
                |needs| needs.templates.push(TemplateName::Fastest),
                "needs.templates",
            ),
            (|needs| needs.templates.clear(), "needs.templates"),
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
            let text = needs.read().unwrap_err().to_string();
            assert!(text.contains(key), "{text}");
        }
    }

    #[test]
    fn a_policy_that_preempts_is_refused_where_nothing_can_be_preempted() {
        let needs = Needs::full();
        let bare = Capabilities::default();
        let text = check_against(&needs, "tree", bare).unwrap_err().to_string();
        assert!(text.contains("needs preemption"), "{text}");
        let able = bare.with_actions(needs.actions);
        assert!(check_against(&needs, "tree", able).is_ok());
    }
}
