//! What was decided about a pod, as its annotation keeps it: all that a controller which begins anew has to know.
//!
//! Users who may patch pods may write annotations. So a mark is signed, for this very pod, with a key that only controllers have,
//! and what is not signed so counts as not there.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use pleach_daemon::{Error as DaemonError, files};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::error::Error;

/// Longest text that is read, bytes: what the API server allows for all annotations of an object.
pub const TEXT_MAX: usize = 256 << 10;

/// Most pods of one gang: more than any list of pods has.
const PODS_MAX: u64 = 1 << 17;

/// Longest key that is read, bytes.
const KEY_MAX: u64 = 1024;

/// Shortest key, letters.
const KEY_MIN: usize = 32;

/// Block of SHA-256, bytes.
const BLOCK: usize = 64;

/// What marks are signed with; none: nothing is signed, and no mark is believed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Key(Option<Vec<u8>>);

impl Debug for Key {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Key").finish_non_exhaustive()
    }
}

impl Key {
    /// A key of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Key {
        Key(Some(bytes.to_vec()))
    }

    /// The key of the settings: the file `mark_key`, else the one that a controller left in `state_dir`; none where there is no
    /// such file.
    ///
    /// # Errors
    /// A file that cannot be read, a key that is too short.
    pub fn find((mark_key, state_dir): (Option<&Path>, &Path)) -> Result<Key, Error> {
        let (path, is_own) = match mark_key {
            Some(path) => (path.to_owned(), false),
            None => (own_path(state_dir), true),
        };
        let text = match files::text(&path, KEY_MAX) {
            Err(DaemonError::File { source, .. }) if is_own && source.kind() == ErrorKind::NotFound => {
                return Ok(Key::default());
            }
            text => text?,
        };
        match text.trim() {
            key if key.len() >= KEY_MIN => Ok(Key::of(key.as_bytes())),
            _ => Err(Error::Text {
                path,
                reason: format!(
                    "a key of marks has {KEY_MIN} letters or more; for example of `openssl rand -hex 32`"
                ),
            }),
        }
    }

    /// As [`Key::find`]; where there is no key in `state_dir`, one is made there. For the one controller that has the folder.
    ///
    /// # Errors
    /// As [`Key::find`]; a key that cannot be made or written.
    pub fn take(place: (Option<&Path>, &Path)) -> Result<Key, Error> {
        let found = Key::find(place)?;
        if found != Key::default() {
            return Ok(found);
        }
        let path = own_path(place.1);
        let make = || {
            let mut bytes = [0_u8; 32];
            let random = rustls::crypto::ring::default_provider().secure_random;
            let filled = random.fill(&mut bytes);
            filled.map_err(|_| std::io::Error::other("the system gives no random numbers"))?;
            let text = hex(&bytes);
            write(&path, &text).map(|()| Key::of(text.as_bytes()))
        };
        make().map_err(|source| Error::File {
            path: path.clone(),
            source,
        })
    }

    /// HMAC-SHA-256.
    ///
    /// # Source
    /// RFC 2104.
    fn sign(&self, text: &[u8]) -> Option<[u8; 32]> {
        let key = self.0.as_deref()?;
        let mut block = [0_u8; BLOCK];
        match key.len() {
            0..=BLOCK => block[..key.len()].copy_from_slice(key),
            _ => block[..32].copy_from_slice(&Sha256::digest(key)),
        }
        let inner = Sha256::new().chain_update(block.map(|byte| byte ^ 0x36));
        let inner = inner.chain_update(text).finalize();
        let outer = Sha256::new().chain_update(block.map(|byte| byte ^ 0x5c));
        Some(outer.chain_update(inner).finalize().into())
    }
}

/// Where a controller without `mark_key` keeps its key.
fn own_path(state_dir: &Path) -> PathBuf {
    state_dir.join("marks.key")
}

/// Writes a file as a whole that no other user may read.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let part = path.with_extension("part");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file: File = options.open(&part)?;
    file.write_all(text.as_bytes())?;
    file.sync_data()?;
    fs::rename(&part, path)?;
    // Where folders can be synced, the key outlives a power cut as the marks do.
    if let Some(folder) = path.parent().and_then(|folder| File::open(folder).ok()) {
        let _ = folder.sync_all();
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The annotation [`crate::names::DECIDED`], JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// When the pod was let go, Unix time, s.
    pub at_s: i64,
    /// Where it goes: a unit of [`crate::node::Unit`].
    pub seat: String,
    /// Where its whole gang goes: units, and pods on each. A release that was cut short is finished with it.
    pub seats: Vec<(String, u32)>,
    /// Name of the policy.
    #[serde(default)]
    pub by: String,
}

/// A mark as it stands in the annotation.
#[derive(Serialize, Deserialize)]
struct Signed {
    #[serde(flatten)]
    mark: Decided,
    /// [`Key::sign`] of the pod's UID and the mark, in hexadecimal digits.
    signed: String,
}

impl Decided {
    /// Reads the annotation of the pod with that UID; none where no controller wrote it.
    #[must_use]
    pub fn read(text: &str, uid: &str, key: &Key) -> Option<Decided> {
        if text.len() > TEXT_MAX {
            return None;
        }
        let Signed { mark, signed } = serde_json::from_str(text).ok()?;
        let right = mark.signature(uid, key)?;
        let is_ours = bool::from(right.as_bytes().ct_eq(signed.as_bytes()));
        (is_ours && mark.num_pods() <= PODS_MAX).then_some(mark)
    }

    /// Pods that the seats are for.
    #[must_use]
    pub fn num_pods(&self) -> u64 {
        self.seats.iter().map(|(_, num)| u64::from(*num)).sum()
    }

    /// What a mark is signed for that a pod has from its beginning, when it has no UID yet: a pod of the owner with that UID.
    #[must_use]
    pub fn any_of(owner: &str) -> String {
        format!("a pod of {owner}")
    }

    /// The text of the annotation for the pod with that UID.
    #[must_use]
    pub fn text(&self, uid: &str, key: &Key) -> String {
        let signed = Signed {
            mark: self.clone(),
            signed: self.signature(uid, key).unwrap_or_default(),
        };
        // Strings and numbers always have a JSON text.
        serde_json::to_string(&signed).unwrap_or_default()
    }

    fn signature(&self, uid: &str, key: &Key) -> Option<String> {
        let text = serde_json::to_string(&("pleach/decided", uid, self)).ok()?;
        key.sign(text.as_bytes()).map(|bytes| hex(&bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark() -> Decided {
        Decided {
            at_s: 7,
            seat: "n1".into(),
            seats: vec![("n1".into(), 2), ("n2".into(), 1)],
            by: "tree".into(),
        }
    }

    #[test]
    fn a_mark_survives_its_text_and_what_others_wrote_is_none() {
        let key = Key::of(b"0123456789abcdef0123456789abcdef");
        let text = mark().text("u1", &key);
        assert_eq!(Decided::read(&text, "u1", &key), Some(mark()));
        // Of another pod, by another key, without any, without a signature, changed.
        assert_eq!(Decided::read(&text, "u2", &key), None);
        assert_eq!(Decided::read(&text, "u1", &Key::of(b"another key")), None);
        assert_eq!(Decided::read(&text, "u1", &Key::default()), None);
        let bare = mark().text("u1", &Key::default());
        assert_eq!(Decided::read(&bare, "u1", &Key::default()), None);
        let plain = serde_json::to_string(&mark()).unwrap();
        let changed = text.replace("\"n1\",2", "\"n1\",3");
        assert_ne!(changed, text);
        let mut huge = mark();
        huge.seats[0].1 = 4_000_000_000;
        let long = " ".repeat(TEXT_MAX) + &text;
        for text in ["", "{}", "[]", &plain, &changed, &huge.text("u1", &key), &long] {
            assert_eq!(
                Decided::read(text, "u1", &key),
                None,
                "{}",
                &text[..text.len().min(80)]
            );
        }
    }

    /// Cases 1, 2 and 6 of RFC 4231.
    #[test]
    fn signatures_are_those_of_the_standard() {
        let sign = |key: &[u8], text: &[u8]| hex(&Key::of(key).sign(text).unwrap());
        assert_eq!(
            sign(&[0x0b; 20], b"Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        );
        assert_eq!(
            sign(b"Jefe", b"what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert_eq!(
            sign(
                &[0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First"
            ),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }

    #[test]
    fn a_key_is_made_once_for_its_owner_alone_and_short_ones_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let place = (None, folder.path());
        assert_eq!(Key::find(place).unwrap(), Key::default());
        let key = Key::take(place).unwrap();
        assert_ne!(key, Key::default());
        assert_eq!(Key::take(place).unwrap(), key);
        assert_eq!(Key::find(place).unwrap(), key);
        #[cfg(unix)]
        {
            let rights = fs::metadata(own_path(folder.path())).unwrap().permissions();
            assert_eq!(std::os::unix::fs::PermissionsExt::mode(&rights) & 0o777, 0o600);
        }
        let path = folder.path().join("short");
        fs::write(&path, "short").unwrap();
        let place = (Some(path.as_path()), folder.path());
        assert!(Key::take(place).unwrap_err().to_string().contains("32 letters"));
        fs::remove_file(&path).unwrap();
        // A key that is named has to be there: another one would not know the marks.
        assert!(Key::take(place).is_err());
    }
}
