//! Whatever is reported: sections of tables, plots and text, as data, with three renderers.
//!
//! A [`Report`] is built by adding sections, and written by the ending of its file's name: `.json` is the data, `.txt` and `.md` the
//! words and tables, everything else one self-contained HTML page. A page needs no network, no script and no font, so it opens
//! from a mail attachment in ten years; it follows the reader's light or dark setting, fits 400 px and paper, and its size is
//! bounded. Templates that escape at compile time write all of it.
//!
//! ```
//! use pleach_experiments::plot::{Axis, Mark, Plot};
//! use pleach_experiments::report::Report;
//!
//! let waits = Plot::new("Waits by load", Axis::of("load"), Axis::of("wait").seconds());
//! let waits = waits.of_policies().with([Mark::line("sjf", [(0.5, 60.0), (0.9, 7200.0)])]);
//! let page = Report::new("Waits").section("By load", [waits.into()]).made_by("pleach evaluate ...", "");
//! assert!(page.html().contains("<figcaption>Waits by load</figcaption>"));
//! assert_eq!(page.json()["sections"][0]["blocks"][0]["plot"]["marks"][0]["name"], "sjf");
//! ```

mod comparison;
mod html;
pub(crate) mod outline;

use std::path::Path;

use maud::Markup;
use pleach_scheduler::tree::Tree;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::error::Error;
use crate::evaluate::table::Table;
use crate::plot::Plot;
use crate::run_folder::atomic_file;

pub(crate) use comparison::{about, plots};
pub use comparison::{against, compared, intervals};

/// Length of a text as it is, at most, bytes; longer ones are cut with a note.
const CODE_BYTES_MAX: usize = 256 << 10;

/// A report. Serialises as its JSON form.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Heading.
    pub title: String,
    /// A line below it.
    pub note: String,
    /// What is reported.
    pub sections: Vec<Section>,
    /// Seconds after which a page loads itself again; none where it is final.
    #[serde(skip)]
    pub refresh_s: Option<u32>,
    /// What makes a page live.
    #[serde(skip)]
    pub script: Option<Script>,
}

/// Blocks under a heading.
#[derive(Clone, Debug, Serialize)]
pub struct Section {
    /// The heading.
    pub heading: String,
    /// What stands under it.
    pub blocks: Vec<Block>,
}

/// A part of a section.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// A paragraph.
    Text(String),
    /// The one that matters.
    Verdict(String),
    /// A remark.
    Note(String),
    /// A heading below that of the section.
    Heading(String),
    /// Text as it is.
    Code(String),
    /// What a reader may run; one click selects it.
    Command(String),
    /// Rows and columns.
    Table(Table),
    /// A picture.
    Plot(Plot),
    /// A decision tree, to fold; in words elsewhere.
    #[serde(serialize_with = "tree_in_words")]
    Tree(Box<Tree>),
    /// HTML of the page's own, with words that stand for it elsewhere.
    Own {
        /// For text and JSON.
        words: String,
        /// For the page.
        #[serde(skip)]
        markup: Markup,
    },
}

/// Style, script and data of one page; nothing is loaded from elsewhere.
#[derive(Clone, Debug)]
pub struct Script {
    /// Rules after those of all pages.
    pub style: &'static str,
    /// The script.
    pub code: &'static str,
    /// Id of the element with the data.
    pub id: &'static str,
    /// What the script reads.
    pub data: Value,
}

fn tree_in_words<S: Serializer>(tree: &Tree, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&tree.to_text())
}

impl From<Table> for Block {
    fn from(table: Table) -> Block {
        Block::Table(table)
    }
}

impl From<Plot> for Block {
    fn from(plot: Plot) -> Block {
        Block::Plot(plot)
    }
}

impl From<&Tree> for Block {
    fn from(tree: &Tree) -> Block {
        Block::Tree(Box::new(tree.clone()))
    }
}

impl Report {
    /// An empty report of this program.
    #[must_use]
    pub fn new(title: impl Into<String>) -> Report {
        Report {
            title: title.into(),
            note: format!("Pleach {}", env!("CARGO_PKG_VERSION")),
            ..Report::default()
        }
    }

    /// The same with more in the line below its heading.
    #[must_use]
    pub fn note(self, more: &str) -> Report {
        let note = format!("{} · {more}", self.note);
        Report { note, ..self }
    }

    /// The same with a section; without one where there are no blocks.
    #[must_use]
    pub fn section(mut self, heading: &str, blocks: impl IntoIterator<Item = Block>) -> Report {
        let blocks: Vec<Block> = blocks.into_iter().collect();
        if !blocks.is_empty() {
            let heading = heading.to_string();
            self.sections.push(Section { heading, blocks });
        }
        self
    }

    /// The same with what made it: the command line, without paths of the machine, and the settings.
    #[must_use]
    pub fn made_by(self, command_line: &str, settings: &str) -> Report {
        let settings = Some(settings).filter(|text| !text.is_empty());
        let command = [Block::Command(command_line.to_string())];
        let settings = settings.map(|text| Block::Code(text.to_string()));
        self.section("How this was made", command.into_iter().chain(settings))
    }

    /// The data.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Words and tables for a terminal, each section under its heading; pictures are left out.
    #[must_use]
    pub fn text(&self) -> String {
        let sections = self.sections.iter().map(|section| {
            let blocks = section.blocks.iter().filter_map(Block::text);
            let blocks = blocks.map(|text| text.trim_end().to_string() + "\n");
            format!("{}\n{}", section.heading, blocks.collect::<Vec<_>>().join("\n"))
        });
        sections.collect::<Vec<_>>().join("\n")
    }

    /// Writes the form that the ending of the path names.
    ///
    /// # Errors
    /// A file that the system does not give.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("json") => atomic_file::write_json(path, self),
            Some("txt" | "md") => atomic_file::write(path, self.text().as_bytes()),
            _ => atomic_file::write(path, self.html().as_bytes()),
        }
    }
}

impl Block {
    /// Names of tables with their headings, as blocks.
    pub fn tables(tables: &[(String, Table)]) -> impl Iterator<Item = Block> + '_ {
        let both =
            |(heading, table): &(String, Table)| [Block::Heading(heading.clone()), table.clone().into()];
        tables.iter().flat_map(both)
    }

    fn text(&self) -> Option<String> {
        Some(match self {
            Block::Text(text) | Block::Verdict(text) | Block::Note(text) | Block::Heading(text) => {
                text.clone()
            }
            Block::Code(text) | Block::Command(text) | Block::Own { words: text, .. } => text.clone(),
            Block::Table(table) => table.to_terminal(),
            Block::Tree(tree) => tree.to_text(),
            Block::Plot(_) => return None,
        })
    }
}

#[cfg(test)]
mod tests;
