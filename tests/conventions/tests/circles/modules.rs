//! The modules of a crate, one a file, and the arrows between them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::graph::Arrows;
use super::imports::{Import, code_of, imports_of, paths_of};

/// How many re-exports are followed from one name.
const DOORS_MAX: usize = 16;

struct Module {
    file: String,
    imports: Vec<Import>,
    paths: Vec<Vec<String>>,
}

/// The modules by their path from the root of the crate.
pub struct Modules(BTreeMap<Vec<String>, Module>);

/// A name, behind the module whose file defines it.
type Definition = (Vec<String>, String);

impl Modules {
    /// Reads all files below a `src` folder but those of tests.
    pub fn read(src: &Path) -> Modules {
        let mut files = Vec::new();
        collect(src, src, &mut files);
        let borrowed: Vec<(&str, &str)> = files
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
            .collect();
        Modules::of(&borrowed)
    }

    /// From names relative to `src` and texts.
    pub fn of(files: &[(&str, &str)]) -> Modules {
        let mut tests: BTreeSet<Vec<String>> = BTreeSet::new();
        let mut modules = BTreeMap::new();
        for (file, text) in files {
            let module = module_of(file);
            for name in test_modules(text) {
                tests.insert([module.clone(), vec![name]].concat());
            }
            let (imports, left) = imports_of(&code_of(text));
            let paths = paths_of(&left);
            modules.insert(
                module,
                Module {
                    file: (*file).to_owned(),
                    imports,
                    paths,
                },
            );
        }
        modules.retain(|path, _| !tests.iter().any(|test| path.starts_with(test)));
        Modules(modules)
    }

    /// Which file needs which names of which other file.
    pub fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for (path, module) in &self.0 {
            let mut needs = Vec::new();
            for import in &module.imports {
                let own_door = import.is_public && self.is_below(path, &import.path);
                if !own_door {
                    needs.push(import.path.clone());
                }
            }
            for written in &module.paths {
                needs.push(self.with_import(module, written));
            }
            for need in needs {
                let Some((owner, name)) = self.resolve(path, &need, 0) else {
                    continue;
                };
                let to = &self.0[&owner].file;
                if *to != module.file {
                    arrows
                        .entry((module.file.clone(), to.clone()))
                        .or_default()
                        .insert(name);
                }
            }
        }
        arrows
    }

    /// Whether a path that a module writes leads into one of its children.
    fn is_below(&self, module: &[String], path: &[String]) -> bool {
        let first = path.iter().find(|segment| *segment != "self");
        first.is_some_and(|first| {
            self.0
                .contains_key(&[module, std::slice::from_ref(first)].concat())
        })
    }

    /// A path in the code whose first segment is an imported module.
    fn with_import(&self, module: &Module, path: &[String]) -> Vec<String> {
        let import = module.imports.iter().find(|import| import.name == path[0]);
        import.map_or_else(|| path.to_vec(), |import| [&import.path, &path[1..]].concat())
    }

    /// The definition that a path leads to; none for another crate's, and for a module as such.
    fn resolve(&self, from: &[String], path: &[String], depth: usize) -> Option<Definition> {
        let mut at = from.to_vec();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => {
                at.clear();
                rest = &path[1..];
            }
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|segment| segment == "super") {
                    at.pop()?;
                    rest = &rest[1..];
                }
            }
            first if !self.0.contains_key(&[from, &[first.to_owned()]].concat()) => return None,
            _ => {}
        }
        self.walk(at, rest, depth)
    }

    fn walk(&self, mut at: Vec<String>, path: &[String], depth: usize) -> Option<Definition> {
        for (index, segment) in path.iter().enumerate() {
            let child = [at.clone(), vec![segment.clone()]].concat();
            if self.0.contains_key(&child) {
                at = child;
                continue;
            }
            let module = self.0.get(&at)?;
            if depth < DOORS_MAX {
                let door = module.imports.iter().find(|import| import.name == *segment);
                if let Some(door) = door.filter(|door| door.path.last().is_some_and(|last| last != "*")) {
                    let onward = [&door.path, &path[index + 1..]].concat();
                    return self.resolve(&at, &onward, depth + 1);
                }
            }
            return Some((at, segment.clone()));
        }
        None
    }
}

fn collect(src: &Path, folder: &Path, files: &mut Vec<(String, String)>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(src, &path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(src).unwrap().to_string_lossy().into_owned();
            files.push((name, std::fs::read_to_string(&path).unwrap()));
        }
    }
}

/// `a/mod.rs` and `a.rs` are module `a`; `lib.rs` is the root; `main.rs` is a root of its own that no file imports.
fn module_of(file: &str) -> Vec<String> {
    let stem = file.trim_end_matches(".rs");
    let mut path: Vec<String> = stem.split('/').map(str::to_owned).collect();
    match path.last().map(String::as_str) {
        Some("mod") => {
            path.pop();
        }
        Some("lib") if path.len() == 1 => path.clear(),
        _ => {}
    }
    path
}

/// Names of modules in files of their own that only tests see.
fn test_modules(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("#[cfg(test)]") {
        let line = text[at + "#[cfg(test)]".len()..].trim_start();
        let declared = line.split_once(';').map_or("", |(head, _)| head);
        if let Some((_, name)) = declared
            .rsplit_once("mod ")
            .filter(|_| !declared.contains(['{', '(']) || declared.starts_with("pub("))
        {
            found.push(name.trim().to_owned());
        }
    }
    found
}
