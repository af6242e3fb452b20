//! Contracts of the whole workspace: see `tests/`. Here is the one way in which tests of all crates come by published lists and
//! recorded runs, which are not part of the project, and golden files ([`golden`]).
//!
//! They lie in `shared/data` beside the repository. Where one is missing, the test that asks for it fails under
//! `PLEACH_REQUIRE_DATA=1`; otherwise it passes, and stands in `target/skipped-for-missing-data.txt`, which `./check.sh`
//! prints in its last lines.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes missing data an error.
const REQUIRE: &str = "PLEACH_REQUIRE_DATA";
const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data");
const SKIPPED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../target/skipped-for-missing-data.txt"
);

const SKIPPED_PROGRAMS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../target/skipped-for-missing-programs.txt"
);

/// A file or folder of published data by its path in `shared/data`; none where it is missing, and the running test is then
/// noted as skipped.
///
/// # Panics
/// Where it is missing and `PLEACH_REQUIRE_DATA` is 1.
#[must_use]
pub fn data(path: &str) -> Option<PathBuf> {
    let is_required = std::env::var(REQUIRE).is_ok_and(|value| value == "1");
    find(Path::new(DATA), path, is_required, Path::new(SKIPPED))
}

/// A program of the machine that a test runs, by the first of its names that is there; none where there is none, and the running
/// test is then noted as skipped in `target/skipped-for-missing-programs.txt`, which `./check.sh` prints too.
///
/// # Panics
/// Where the note cannot be written.
#[must_use]
pub fn program(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    find_program(&folders, names, Path::new(SKIPPED_PROGRAMS))
}

/// What a browser makes of a page at `#address`, after its scripts; none where no browser is here, as of [`program`].
///
/// # Panics
/// Where the page cannot be written or the browser does not start.
#[must_use]
pub fn browser_dom(folder: &Path, page: &str, address: &str) -> Option<String> {
    let place = folder.join("page.html");
    fs::write(&place, page).expect("a page that can be written");
    dumped(folder, &place, address, false)
}

/// What is wrong with pages, each with its name, on a phone (400 px) and a screen (1,280 px), in light and dark. Faults are a
/// page that scrolls sideways, text that is cut, text on other text in a picture, and text that does not stand out from its
/// background. None where no browser is here, as of [`program`].
///
/// # Panics
/// Where a page cannot be written, the browser does not start, or a page does not load.
#[must_use]
pub fn browser_faults(folder: &Path, pages: &[(&str, &str)]) -> Option<Vec<String>> {
    const LOOK: &str = include_str!("faults.js");
    const WIDTHS: [u32; 2] = [400, 1280];
    // A frame is as narrow as it is asked to be; a window is not.
    let mut frames = String::new();
    for (number, (name, page)) in pages.iter().enumerate() {
        // A page without a script of its own forbids scripts.
        let looked_at = page
            .replace("script-src 'none'", "script-src 'unsafe-inline'")
            .replace("</body>", &format!("<script>{LOOK}</script></body>"));
        fs::write(folder.join(format!("{number}.html")), looked_at).expect("a page that can be written");
        for width in WIDTHS {
            frames.push_str(&format!(
                "<iframe name=\"{name}, {width} px\" src=\"{number}.html\" style=\"width:{width}px;height:6000px;border:0\"></iframe>"
            ));
        }
    }
    let around = format!(
        "<!DOCTYPE html><html><body><ol id=\"faults\"></ol><script>addEventListener('message', (event) => {{\
         const [name, ...faults] = event.data; for (const fault of [...faults, 'that is all']) {{\
         const item = document.createElement('li'); item.textContent = `${{name}}: ${{fault}}`;\
         document.getElementById('faults').append(item); }} }});</script>{frames}</body></html>"
    );
    let place = folder.join("pages.html");
    fs::write(&place, around).expect("a page that can be written");
    let mut faults = Vec::new();
    for is_dark in [false, true] {
        let dom = dumped(folder, &place, "", is_dark)?;
        let list = dom.split("<ol id=\"faults\">").nth(1);
        let list = list.and_then(|rest| rest.split("</ol>").next());
        let items = list.unwrap_or_default().split("<li>").skip(1);
        let (ends, found): (Vec<&str>, Vec<&str>) = items
            .map(|item| item.trim_end_matches("</li>"))
            .partition(|item| item.ends_with(": that is all"));
        assert_eq!(ends.len(), pages.len() * WIDTHS.len(), "{dom}");
        let scheme = if is_dark { "dark" } else { "light" };
        faults.extend(found.iter().map(|fault| format!("{scheme}, {fault}")));
    }
    Some(faults)
}

/// What a browser makes of a file.
fn dumped(folder: &Path, place: &Path, address: &str, is_dark: bool) -> Option<String> {
    let browser = program(&["chromium", "chromium-browser", "google-chrome"])?;
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
        ])
        .arg(format!(
            "--blink-settings=preferredColorScheme={}",
            u8::from(!is_dark)
        ))
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .args(["--virtual-time-budget=5000", "--dump-dom"])
        .arg(format!("file://{}#{address}", place.display()))
        .output()
        .expect("a browser that starts");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn find_program(folders: &[PathBuf], names: &[&str], skipped: &Path) -> Option<PathBuf> {
    let mut places = names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    if let Some(found) = places.find(|place| place.is_file()) {
        return Some(found);
    }
    let test = format!("{} ({})", running_test(), names.join(" or "));
    eprintln!("skipped {test}: not here");
    if let Err(error) = note(skipped, &test) {
        panic!("{}: {error}", skipped.display());
    }
    None
}

fn find(folder: &Path, path: &str, is_required: bool, skipped: &Path) -> Option<PathBuf> {
    let found = folder.join(path);
    if found.exists() {
        return Some(found);
    }
    assert!(!is_required, "{} is missing, and {REQUIRE} is 1", found.display());
    let test = running_test();
    eprintln!("skipped {test}: {} is missing", found.display());
    if let Err(error) = note(skipped, &test) {
        panic!("{}: {error}", skipped.display());
    }
    None
}

/// Appends a line in one write, so that tests of several threads and programs do not mix theirs.
fn note(skipped: &Path, test: &str) -> std::io::Result<()> {
    skipped.parent().map_or(Ok(()), fs::create_dir_all)?;
    let mut file = OpenOptions::new().create(true).append(true).open(skipped)?;
    file.write_all(format!("{test}\n").as_bytes())
}

/// The program without the hash that Cargo appends, and the test, which is the name of its thread.
fn running_test() -> String {
    let program = std::env::current_exe().unwrap_or_default();
    let stem = program.file_stem().unwrap_or_default().to_string_lossy();
    let program = stem.rsplit_once('-').map_or(&*stem, |(name, _)| name);
    let thread = std::thread::current();
    format!("{program}::{}", thread.name().unwrap_or("unnamed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_without_its_program_is_noted_with_the_names_of_the_program() {
        let folder = std::env::temp_dir().join(format!("pleach-program-{}", std::process::id()));
        let skipped = folder.join("skipped.txt");
        let folders = [folder.clone()];
        assert_eq!(find_program(&folders, &["chromium", "chrome"], &skipped), None);
        let noted = fs::read_to_string(&skipped).unwrap_or_default();
        fs::write(folder.join("chrome"), "").unwrap_or_default();
        let found = find_program(&folders, &["chromium", "chrome"], &skipped);
        fs::remove_dir_all(&folder).unwrap_or_default();
        assert_eq!(found, Some(folder.join("chrome")));
        assert!(
            noted.ends_with("_of_the_program (chromium or chrome)\n"),
            "{noted}"
        );
    }

    #[test]
    fn a_test_without_its_data_is_noted_or_fails_where_data_is_required() {
        let folder = std::env::temp_dir().join(format!("pleach-data-{}", std::process::id()));
        let skipped = folder.join("skipped.txt");
        assert_eq!(find(&folder, "no-such-list.csv", false, &skipped), None);
        assert_eq!(
            find(&folder, "skipped.txt", true, &skipped),
            Some(skipped.clone())
        );
        let required = std::panic::catch_unwind(|| find(&folder, "no-such-list.csv", true, &skipped));
        let noted = fs::read_to_string(&skipped);
        fs::remove_dir_all(&folder).unwrap_or_default();
        assert!(required.is_err());
        assert_eq!(
            noted.unwrap_or_default(),
            "pleach_tests::tests::a_test_without_its_data_is_noted_or_fails_where_data_is_required\n"
        );
    }
}

pub mod golden;
mod markup;

pub use markup::assert_well_formed;
