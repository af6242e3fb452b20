//! Settings: structs of plain data that state words, default and range of each field once, on the field.
//!
//! ```
//! use pleach_scheduler::settings::{Above, Settings as _};
//!
//! pleach_scheduler::settings! {
//!     /// How a learner steps.
//!     #[derive(Clone, Debug, PartialEq)]
//!     pub struct Steps {
//!         /// Passes over a rollout.
//!         pub num_epochs: u32 = 3, in 1..=100;
//!         /// Clip range of the ratio.
//!         pub clip: f64 = 0.2, in Above(0.0, 1e12);
//!     }
//! }
//!
//! let steps = Steps { num_epochs: 0, ..Steps::default() };
//! let said = steps.check_at("ppo", "See docs/learning.md.").unwrap_err().to_string();
//! assert_eq!(said, "config: ppo.num_epochs = 0: allowed is 1 to 100. See docs/learning.md.");
//! assert_eq!(Steps::fields("ppo")[1].allowed, "above 0 and at most 1e12");
//! ```
//!
//! Unknown keys are refused by serde; [`with_nearest`] adds the known one that is nearest.

use std::fmt::{self, Display};
use std::ops::{Range, RangeFrom, RangeInclusive, RangeToInclusive};

use pleach_problem::{Problem, nearest_of};

/// Makes a struct of settings: the struct with serde, its `Default`, and [`Settings`]. A field without `= DEFAULT` has the default
/// of its type; one without `, in RANGE` takes all values of its type. A range is one of std's, [`Above`], [`OneOf`], or [`Own`] for
/// a field that is such a struct itself, [`OwnOrNone`] where it may be left out; it holds for what an `Option` or `Vec` has in it. `struct Name: default PRESET` has a constant
/// of its own as default, `struct Name: required` none: all its fields must be given.
#[macro_export]
macro_rules! settings {
    (
        $(#[$($of:tt)*])*
        $vis:vis struct $name:ident $(: $form:ident $($preset:ident)?)? {
            $(
                $(#[$($at:tt)*])*
                $own:vis $field:ident : $kind:ty $(= $default:expr)? $(, in $range:expr)? ;
            )*
        }
    ) => {
        $crate::settings!(@struct [$($form)?]
            [$(#[$($of)*])* #[derive(::serde::Serialize, ::serde::Deserialize)]]
            $vis struct $name {
                $( $(#[$($at)*])* $own $field: $kind, )*
            }
        );
        $crate::settings!(@default_of $name [$($form $($preset)?)?] $( $field [$($default)?] )*);

        impl $crate::settings::Settings for $name {
            fn check_at(&self, prefix: &str, hint: &str) -> ::core::result::Result<(), $crate::Problem> {
                let _ = (prefix, hint);
                $( $crate::settings!(
                    @check (self.$field, prefix, hint, stringify!($field)) [$(#[$($at)*])*] $($range)?
                ); )*
                Ok(())
            }

            fn fields(prefix: &str) -> ::std::vec::Vec<$crate::settings::Field> {
                let mut fields = ::std::vec::Vec::new();
                let own = $crate::settings!(@own $name [$($form)?]);
                $(
                    let words = $crate::settings!(@words [] $(#[$($at)*])*);
                    let of = $crate::settings::Field::of(prefix, stringify!($field), words, &own);
                    $crate::settings!(@list fields, of, $kind $(, $range)?);
                )*
                fields
            }
        }
    };
    (@struct [required] [$($of:tt)*] $($item:tt)*) => { $($of)* #[serde(deny_unknown_fields)] $($item)* };
    (@struct [$($form:ident)?] [$($of:tt)*] $($item:tt)*) => {
        $($of)* #[serde(deny_unknown_fields, default)] $($item)*
    };
    (@own $name:ident [required]) => { "" };
    (@own $name:ident [$($form:ident)?]) => { <$name as ::core::default::Default>::default() };
    (@default_of $name:ident [required] $($fields:tt)*) => {};
    (@default_of $name:ident [default $preset:ident] $($fields:tt)*) => {
        impl ::core::default::Default for $name {
            fn default() -> Self {
                $name::$preset
            }
        }
    };
    (@default_of $name:ident [] $($field:ident [$($default:expr)?])*) => {
        impl ::core::default::Default for $name {
            fn default() -> Self {
                $name { $( $field: $crate::settings!(@default $($default)?), )* }
            }
        }
    };
    (@check $of:tt [$($at:tt)*]) => {};
    (@check ($value:expr, $prefix:ident, $hint:ident, $name:expr) [$($at:tt)*] $range:expr) => {
        let words = $crate::settings!(@words [] $($at)*);
        $crate::settings::check(&$value, &($range), ($prefix, $name), ($hint, words))?;
    };
    (@default $default:expr) => { $default };
    (@default) => { ::core::default::Default::default() };
    (@list $fields:ident, $of:ident, $kind:ty) => { $fields.push($of) };
    (@list $fields:ident, $of:ident, $kind:ty, $range:expr) => {
        $crate::settings::list::<_, $kind, _>(&mut $fields, $of, &($range))
    };
    (@words [$($words:literal)*]) => { concat!($($words),*) };
    (@words [$($words:literal)*] #[doc = $more:literal] $($rest:tt)*) => {
        $crate::settings!(@words [$($words)* $more] $($rest)*)
    };
    (@words [$($words:literal)*] #[$($other:tt)*] $($rest:tt)*) => {
        $crate::settings!(@words [$($words)*] $($rest)*)
    };
}

/// A struct that [`settings!`](crate::settings!) made.
pub trait Settings: Sized {
    /// Checks all ranges; `prefix` is the path of the struct, empty at the top. `hint` stands behind each refusal, where it is empty
    /// what the field means.
    ///
    /// # Errors
    /// The first value that is out of its range.
    fn check_at(&self, prefix: &str, hint: &str) -> Result<(), Problem>;

    /// Its fields and those of the structs in it, with their paths.
    fn fields(prefix: &str) -> Vec<Field>;
}

/// One setting, for readers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its path.
    pub key: String,
    /// What it means.
    pub words: String,
    /// Its default, as JSON.
    pub default: String,
    /// Its range in words; empty where it takes all of its type.
    pub allowed: String,
}

impl Field {
    /// A field of a struct at `prefix`, whose default is as in `own`.
    pub fn of(prefix: &str, name: &str, words: &str, own: &impl serde::Serialize) -> Field {
        let own = serde_json::to_value(own).unwrap_or_default();
        Field {
            key: Key(prefix, name).to_string(),
            words: words.trim().to_owned(),
            default: own.get(name).map(ToString::to_string).unwrap_or_default(),
            allowed: String::new(),
        }
    }
}

/// The path of a setting: where its struct stands, and its name there.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a>(&'a str, &'a str);

impl Display for Key<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.is_empty() {
            true => out.write_str(self.1),
            false => write!(out, "{}.{}", self.0, self.1),
        }
    }
}

/// What values a field takes.
pub trait Allowed<T> {
    /// Refuses a value. The second of `hint` is what the field means.
    ///
    /// # Errors
    /// It is out of the range.
    fn check(&self, value: &T, key: Key<'_>, hint: (&str, &str)) -> Result<(), Problem>;

    /// The range in words.
    fn words(&self) -> String;

    /// The fields in it, where it is a struct.
    fn fields(&self, _prefix: &str) -> Vec<Field> {
        Vec::new()
    }
}

/// What a field has in it: itself, what may be there, or several.
pub trait Each<T> {
    /// The first refusal.
    ///
    /// # Errors
    /// As `check`.
    fn each(&self, check: impl FnMut(&T) -> Result<(), Problem>) -> Result<(), Problem>;
}

impl<T> Each<T> for T {
    fn each(&self, mut check: impl FnMut(&T) -> Result<(), Problem>) -> Result<(), Problem> {
        check(self)
    }
}

impl<T> Each<T> for Option<T> {
    fn each(&self, check: impl FnMut(&T) -> Result<(), Problem>) -> Result<(), Problem> {
        self.iter().try_for_each(check)
    }
}

impl<T> Each<T> for Vec<T> {
    fn each(&self, check: impl FnMut(&T) -> Result<(), Problem>) -> Result<(), Problem> {
        self.iter().try_for_each(check)
    }
}

/// Checks one field. For [`settings!`](crate::settings!).
///
/// # Errors
/// A value out of its range.
pub fn check<T, V: Each<T>>(
    value: &V,
    range: &impl Allowed<T>,
    (prefix, name): (&str, &str),
    (hint, words): (&str, &str),
) -> Result<(), Problem> {
    value.each(|one| range.check(one, Key(prefix, name), (hint, words)))
}

/// Lists one field with a range. For [`settings!`](crate::settings!).
pub fn list<T, V: Each<T>, R: Allowed<T>>(fields: &mut Vec<Field>, mut field: Field, range: &R) {
    let inner = range.fields(&field.key);
    if inner.is_empty() {
        field.allowed = range.words();
        fields.push(field);
    }
    fields.extend(inner);
}

/// Numbers above the first and at most the second.
#[derive(Clone, Copy, Debug)]
pub struct Above<T>(pub T, pub T);

/// One of these texts.
#[derive(Clone, Copy, Debug)]
pub struct OneOf(pub &'static [&'static str]);

/// A struct of settings with ranges of its own.
#[derive(Clone, Copy, Debug)]
pub struct Own;

/// The same where it may be left out.
#[derive(Clone, Copy, Debug)]
pub struct OwnOrNone;

/// A number as people write it: `1e12`, not a one with twelve zeros.
fn short(number: &impl Display) -> String {
    let text = number.to_string();
    let digits = text.trim_end_matches('0');
    match text.len() - digits.len() {
        zeros if zeros >= 7 && !digits.is_empty() && !digits.contains('.') => format!("{digits}e{zeros}"),
        _ => text,
    }
}

/// What stands behind a refusal: the hint, or else what the field means.
fn mend<'a>((hint, words): (&'a str, &'a str)) -> &'a str {
    if hint.is_empty() { words.trim() } else { hint }
}

macro_rules! allowed {
    ($range:ty, |$of:ident, $value:ident| $holds:expr, $words:expr) => {
        impl<T: PartialOrd + Display> Allowed<T> for $range {
            fn check(&self, $value: &T, key: Key<'_>, hint: (&str, &str)) -> Result<(), Problem> {
                let $of = self;
                match $holds {
                    true => Ok(()),
                    false => Err(Problem::new(
                        key.to_string(),
                        $value,
                        self.words(),
                        mend(hint),
                    )),
                }
            }

            fn words(&self) -> String {
                let $of = self;
                $words
            }
        }
    };
}

allowed!(
    RangeInclusive<T>,
    |range, value| range.contains(value),
    format!("{} to {}", short(range.start()), short(range.end()))
);
allowed!(
    Range<T>,
    |range, value| range.contains(value),
    format!("{} to below {}", short(&range.start), short(&range.end))
);
allowed!(
    RangeFrom<T>,
    |range, value| range.contains(value),
    format!("at least {}", short(&range.start))
);
allowed!(
    RangeToInclusive<T>,
    |range, value| range.contains(value),
    format!("at most {}", short(&range.end))
);
allowed!(
    Above<T>,
    |range, value| *value > range.0 && *value <= range.1,
    format!("above {} and at most {}", short(&range.0), short(&range.1))
);

impl<T: AsRef<str>> Allowed<T> for OneOf {
    fn check(&self, value: &T, key: Key<'_>, hint: (&str, &str)) -> Result<(), Problem> {
        let value = value.as_ref();
        if self.0.contains(&value) {
            return Ok(());
        }
        let nearest = nearest_of(self.0, value).map(|nearest| format!("Did you mean {nearest}?"));
        let hint = nearest.unwrap_or_else(|| mend(hint).to_owned());
        Err(Problem::new(key.to_string(), value, self.0.join(", "), hint))
    }

    fn words(&self) -> String {
        self.0.join(", ")
    }
}

impl<T: Settings> Allowed<T> for Own {
    fn check(&self, value: &T, key: Key<'_>, hint: (&str, &str)) -> Result<(), Problem> {
        value.check_at(&key.to_string(), hint.0)
    }

    fn words(&self) -> String {
        String::new()
    }

    fn fields(&self, prefix: &str) -> Vec<Field> {
        T::fields(prefix)
    }
}

impl<T: Settings> Allowed<Option<T>> for OwnOrNone {
    fn check(&self, value: &Option<T>, key: Key<'_>, hint: (&str, &str)) -> Result<(), Problem> {
        value.iter().try_for_each(|own| Own.check(own, key, hint))
    }

    fn words(&self) -> String {
        String::new()
    }

    fn fields(&self, prefix: &str) -> Vec<Field> {
        T::fields(prefix)
    }
}

/// Of an unknown key and those that there are, as serde names them, the nearest.
#[must_use]
pub fn nearest_key(message: &str) -> Option<&str> {
    let (unknown, known) = message.split_once("unknown field `")?.1.split_once('`')?;
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    nearest_of(&known, unknown)
}

/// What serde says, and after an unknown key the known one that is nearest.
#[must_use]
pub fn with_nearest(message: &str) -> String {
    match nearest_key(message) {
        Some(nearest) => format!("{message}. Did you mean {nearest}?"),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    settings! {
        /// Inside another.
        #[derive(Clone, Debug, PartialEq)]
        struct Inner {
            /// A share.
            pub share: f64 = 0.5, in 0.0..1.0;
        }
    }

    settings! {
        /// Of every kind.
        #[derive(Clone, Debug, PartialEq)]
        struct Outer {
            /// Leaves,
            /// of the tree.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub leaves: Vec<u32> = vec![4, 8], in 2..=256;
            /// Where it is given.
            pub horizon_s: Option<f64>, in Above(0.0, 1e12);
            /// How.
            pub mode: String = "fast".into(), in OneOf(&["fast", "exact"]);
            /// Inner ones.
            pub inner: Inner, in Own;
            /// Free.
            pub name: String;
        }
    }

    fn refused(change: impl FnOnce(&mut Outer)) -> String {
        let mut outer = Outer::default();
        change(&mut outer);
        outer
            .check_at("", "Mend it.")
            .map_or_else(|problem| format!("{problem:#}"), |()| String::new())
    }

    #[test]
    fn each_value_is_held_to_the_range_of_its_field() {
        assert_eq!(refused(|_| ()), "");
        assert_eq!(
            refused(|own| own.leaves.push(1)),
            "leaves = 1: allowed is 2 to 256. Mend it."
        );
        let said = "horizon_s = 0: allowed is above 0 and at most 1e12. Mend it.";
        assert_eq!(refused(|own| own.horizon_s = Some(0.0)), said);
        assert!(refused(|own| own.horizon_s = Some(f64::NAN)).contains("horizon_s = NaN"));
        let said = "inner.share = 1: allowed is 0 to below 1. Mend it.";
        assert_eq!(refused(|own| own.inner.share = 1.0), said);
        let said = "mode = fsat: Did you mean fast? Allowed is fast, exact.";
        assert_eq!(refused(|own| own.mode = "fsat".into()), said);
    }

    #[test]
    fn fields_are_listed_with_words_default_and_range() {
        let fields = Outer::fields("a");
        let keys: Vec<&str> = fields.iter().map(|field| field.key.as_str()).collect();
        assert_eq!(
            keys,
            ["a.leaves", "a.horizon_s", "a.mode", "a.inner.share", "a.name"]
        );
        let leaves = &fields[0];
        assert_eq!(
            (
                leaves.words.as_str(),
                leaves.default.as_str(),
                leaves.allowed.as_str()
            ),
            ("Leaves, of the tree.", "[4,8]", "2 to 256")
        );
    }

    #[test]
    fn an_unknown_key_is_answered_with_the_nearest() {
        let said = serde_json::from_str::<Outer>(r#"{"leavs": []}"#)
            .unwrap_err()
            .to_string();
        assert_eq!(nearest_key(&said), Some("leaves"));
        assert!(with_nearest(&said).ends_with("Did you mean leaves?"), "{said}");
        assert_eq!(with_nearest("no number"), "no number");
    }
}
