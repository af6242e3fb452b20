//! A JSON document of which one list matters: its elements are given on one by one, so that its size is no matter.

use std::fmt;
use std::io::Read;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Largest document, bytes: ten million jobs have some 4 kB each with their steps, and no site exports as many at once.
pub(super) const BYTES_MAX: u64 = 1 << 34;

/// Gives the elements of the list `key` to `take`, which says whether to go on.
///
/// # Errors
/// What is no object with this list, an element of another form, or that `take` has enough.
pub(super) fn in_list<T>(
    bytes: impl Read,
    key: &'static str,
    take: &mut dyn FnMut(&T) -> bool,
) -> Result<(), serde_json::Error>
where
    T: for<'de> Deserialize<'de>,
{
    let mut from = serde_json::Deserializer::from_reader(bytes);
    from.deserialize_map(Document {
        key,
        take,
        of: PhantomData,
    })
}

struct Document<'a, T> {
    key: &'static str,
    take: &'a mut dyn FnMut(&T) -> bool,
    of: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Document<'_, T> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "an object with the key `{}`", self.key)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut has_list = false;
        while let Some(key) = map.next_key::<String>()? {
            if key == self.key {
                has_list = true;
                map.next_value_seed(Elements {
                    take: &mut *self.take,
                    of: PhantomData,
                })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        match has_list {
            true => Ok(()),
            false => Err(serde::de::Error::custom(format!(
                "the document has no key `{}`",
                self.key
            ))),
        }
    }
}

struct Elements<'a, T> {
    take: &'a mut dyn FnMut(&T) -> bool,
    of: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for Elements<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Elements<'_, T> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(element) = list.next_element::<T>()? {
            if !(self.take)(&element) {
                return Err(serde::de::Error::custom("the list is too long"));
            }
        }
        Ok(())
    }
}
