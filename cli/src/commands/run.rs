//! `pleach run`: from a site's files to a decision.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pleach_env::workload::import::Format;
use pleach_env::workload::import::site::NodeTable;
use pleach_experiments::decide::{Site, SiteConfig, decide};
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::cluster_flag::cluster_of;
use pleach_experiments::file_kind::FileKind;
use pleach_experiments::run_folder::{Existing, RunFolder, atomic_file, is_finished, sha256_of};
use serde::Serialize;

use crate::commands::Context;
use crate::flags::{ForceFlag, SiteArgs};
use crate::progress::bars;

/// Which run it is: another file with other jobs is another run.
#[derive(Serialize)]
struct Identity<'a> {
    config: SiteConfig,
    sha256: BTreeMap<&'a str, String>,
}

/// Writes `site.toml`, or does all steps.
///
/// # Errors
/// Files that cannot be used, a folder in the way, a step that fails.
pub fn run(args: &SiteArgs, context: &mut Context<'_>) -> Result<(), Error> {
    if let Some(jobs) = &args.init {
        return init(args, jobs, context);
    }
    let config = SiteConfig::read(&args.site)?;
    let out = args.out.clone().unwrap_or_else(|| folder_of(&args.site));
    let mut sha256 = BTreeMap::new();
    for (key, path) in config.files() {
        sha256.insert(key, sha256_of(path)?);
    }
    let identity = Identity {
        config: config.without_folders(),
        sha256,
    };
    let existing = match (args.force, is_finished(&out)) {
        (true, _) => Existing::Replace,
        (false, true) => Existing::Resume,
        (false, false) => Existing::Refuse,
    };
    let folder = RunFolder::open("run", &identity, config.seed, Some(&out), existing)?;
    let (quiet, start_s) = (args.machine.words.quiet, (context.clock)());
    let watcher = bars(quiet);
    let decided = {
        let site = Site::new(&config, &out, &watcher);
        decide(&site, &mut |line| if quiet { Ok(()) } else { context.say(line) })?
    };
    folder.finish()?;
    if let Some(path) = &args.data.json {
        context.write_json(path, &decided)?;
    }
    if quiet {
        return Ok(());
    }
    let place = out.display();
    context.say(&format!(
        "\n{}\n\nwritten to {place} in {:.0} s: open {place}/report.html",
        decided.verdict.line(),
        (context.clock)() - start_s
    ))?;
    match &decided.shadow {
        Some(lines) if lines.starts_with('#') => {
            context.say(&format!("the change, also a file in {place}:\n{lines}"))
        }
        Some(command) => context.say(&format!("first as a shadow, which touches nothing: {command}")),
        None => Ok(()),
    }
}

/// `NAME-run` beside `NAME.toml`.
fn folder_of(site: &Path) -> PathBuf {
    let stem = site.file_stem().unwrap_or_default().to_string_lossy();
    site.with_file_name(format!("{stem}-run"))
}

fn init(args: &SiteArgs, jobs: &Path, context: &mut Context<'_>) -> Result<(), Error> {
    ForceFlag { force: args.force }.check("site", &args.site)?;
    let folder = args.site.parent().filter(|folder| !folder.as_os_str().is_empty());
    for (key, path) in [("init", Some(jobs)), ("nodes", args.nodes.as_deref())] {
        if let Some(path) = path.filter(|path| !path.is_file()) {
            let hint = "Give the file itself.";
            let what = if path.is_dir() {
                "is a folder"
            } else {
                "there is no such file"
            };
            let value = format!("{} ({what})", path.display());
            return Err(Error::config(key, value, "a file that is there", hint));
        }
    }
    // Files that cannot be read are refused now and not at the first run.
    Format::of_file(jobs).map_err(|error| FileKind::Jobs.or_other(jobs, error))?;
    if let Some(nodes) = &args.nodes {
        NodeTable::read(nodes).map_err(|error| FileKind::Nodes.or_other(nodes, error))?;
    }
    if let Some(cluster) = &args.cluster {
        cluster_of(cluster)?;
    }
    // In the file paths are relative to its folder.
    let seen = |path: &Path| match folder {
        None => Ok(path.to_path_buf()),
        Some(folder) => path.strip_prefix(folder).map(Path::to_path_buf).or_else(|_| {
            let whole = path.canonicalize();
            whole.map_err(|source| Error::io("read", path, source))
        }),
    };
    let nodes = args.nodes.as_deref().map(seen).transpose()?;
    let text = SiteConfig::template(&seen(jobs)?, nodes.as_deref(), args.cluster.as_deref());
    atomic_file::write(&args.site, text.as_bytes())?;
    let site = args.site.display();
    context.say(&format!(
        "{site} is written: read it, and then: pleach run {site}"
    ))
}
