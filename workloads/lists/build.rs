//! Lists the data files that the crate embeds, so that a new profile or mapping is a file and nothing else.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?);
    let out = PathBuf::from(env::var("OUT_DIR").map_err(io::Error::other)?);
    for folder in ["mappings", "profiles"] {
        println!("cargo::rerun-if-changed={folder}");
        let entries = fs::read_dir(root.join(folder))?.map(|entry| entry.map(|entry| entry.path()));
        let mut files: Vec<PathBuf> = entries.collect::<Result<_, _>>()?;
        files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
        files.sort();
        let mut text = String::from("[\n");
        for file in files {
            let name = file.file_stem().unwrap_or_default();
            writeln!(text, "({name:?}, include_str!({file:?})),").map_err(io::Error::other)?;
        }
        fs::write(out.join(format!("{folder}.rs")), text + "]\n")?;
    }
    Ok(())
}
