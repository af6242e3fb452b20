//! Profiles by name: those of this crate, in the folder `profiles`, and files of a site's own.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::{Arc, LazyLock, OnceLock};

use serde_json::Map;

use super::profile::Profile;
use super::profile_config::ProfileConfig;
use super::profile_faults::faults;
use crate::Error;

/// Profiles of the crate by name, with their texts.
pub(super) const PROFILES: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/profiles.rs"));
/// Longest file, bytes.
const BYTES_MAX: u64 = 1 << 20;

impl Profile {
    /// The profile of a name of this crate, or of a file that ends in `.toml`; none where it is neither.
    ///
    /// # Errors
    /// A file that cannot be read or is no profile.
    pub fn named(name: &str) -> Result<Option<Arc<Profile>>, Error> {
        static READ: LazyLock<Vec<OnceLock<Arc<Profile>>>> =
            LazyLock::new(|| PROFILES.iter().map(|_| OnceLock::new()).collect());
        if let Some(at) = PROFILES.iter().position(|(known, _)| *known == name) {
            let read = || Profile::of_text(name, PROFILES[at].1).map(Arc::new);
            let profile = READ[at].get_or_init(|| read().unwrap_or_else(|fault| panic!("{fault}")));
            return Ok(Some(profile.clone()));
        }
        let path = Path::new(name);
        if path.extension().is_none_or(|extension| extension != "toml") || !path.is_file() {
            return Ok(None);
        }
        let text = read(path).map_err(Error::unread(path))?;
        Ok(Some(Arc::new(Profile::of_text(name, &text)?)))
    }

    /// Whether a file looks like a profile, be it right or not.
    #[must_use]
    pub fn is_file(path: &Path) -> bool {
        let is_toml = path.extension().is_some_and(|extension| extension == "toml");
        let text = is_toml.then(|| read(path).ok()).flatten().unwrap_or_default();
        text.lines().any(|line| line.trim() == "[[works]]")
    }

    /// A profile from the text of a file.
    ///
    /// # Errors
    /// `file` with everything that is wrong in it.
    pub fn of_text(file: &str, text: &str) -> Result<Profile, Error> {
        let see = "see docs/workloads.md, A profile of your own";
        let refused = |fault: String| Error::data(file, format!("{fault}; {see}"));
        let mut profile: Profile = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            Error::at_byte(file, text, start, format!("{}; {see}", error.message()))
        })?;
        file.clone_into(&mut profile.name);
        let faults = faults(&profile);
        if !faults.is_empty() {
            return Err(refused(faults.join("; ")));
        }
        let defaults = ProfileConfig::of(Arc::new(profile.clone()), &Map::new());
        let checked = defaults.and_then(|config| config.validate().map_err(|error| error.to_string()));
        checked.map_err(|fault| refused(format!("defaults: {fault}")))?;
        Ok(profile)
    }
}

impl Default for ProfileConfig {
    /// That of `philly-like`.
    fn default() -> ProfileConfig {
        ProfileConfig::named("philly-like")
    }
}

impl ProfileConfig {
    /// A profile of this crate with its defaults.
    ///
    /// # Panics
    /// Where the crate has no such profile.
    #[must_use]
    pub fn named(name: &str) -> ProfileConfig {
        let profile = Profile::named(name).ok().flatten();
        let config = profile.and_then(|profile| ProfileConfig::of(profile, &Map::new()).ok());
        config.unwrap_or_else(|| panic!("{name} is no profile of this crate"))
    }
}

/// The text of a file that is no longer than a profile may be.
fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = File::open(path)?.take(BYTES_MAX + 1).read_to_string(&mut text)?;
    if read as u64 > BYTES_MAX {
        return Err(io::Error::other("longer than 1 MiB"));
    }
    Ok(text)
}

#[cfg(test)]
#[path = "profile_tests.rs"]
mod tests;
