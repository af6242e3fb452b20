//! A tree as source code of other languages, and as pages for readers.
//!
//! Every form has two functions over the joined row of a candidate (the columns by their numbers, scaled as the schema
//! says): the score of its leaf, and its weighted key, 0 without one. The same answers bit for bit: thresholds and weights are 32-bit
//! floats and are written so that each language reads exactly them, and the products of the key are exact in 64 bits, so that it does
//! not matter whether a compiler fuses them with the sum, as Go's may. Rows are 32-bit floats; where a language has only 64 bits, they are the
//! same values in these. *Hold*, which is about no job, has no key and comes last of its tier: the caller's part, as is the tie key.
//!
//! # What is deliberately not here
//! Features: who runs an export fills the row as `docs/features.md` says.

use std::fmt::Write as _;

use super::reach::tier_of;
use super::text::condition;
use super::{Node, Tree};
use crate::features::FeatureSchema;

/// A form of export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Export {
    /// C99, one header.
    C,
    /// Rust, one file without dependencies.
    Rust,
    /// Go 1.17 and later, one file of a package `pleach`.
    Go,
    /// Python 3, one module without dependencies.
    Python,
    /// Lua 5.1 and later.
    Lua,
    /// One SQL expression each, over columns with the features' names, in 64-bit floats.
    Sql,
    /// A Mermaid flow chart.
    Mermaid,
    /// A table of paths, best tier first.
    Markdown,
}

impl Export {
    /// All forms.
    pub const ALL: [Export; 8] = [
        Export::C,
        Export::Rust,
        Export::Go,
        Export::Python,
        Export::Lua,
        Export::Sql,
        Export::Mermaid,
        Export::Markdown,
    ];

    /// Name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Export::C => "c",
            Export::Rust => "rust",
            Export::Go => "go",
            Export::Python => "python",
            Export::Lua => "lua",
            Export::Sql => "sql",
            Export::Mermaid => "mermaid",
            Export::Markdown => "markdown",
        }
    }

    /// Name of the file.
    #[must_use]
    pub fn file_name(self) -> &'static str {
        match self {
            Export::C => "tree.h",
            Export::Rust => "tree.rs",
            Export::Go => "tree.go",
            Export::Python => "tree.py",
            Export::Lua => "tree.lua",
            Export::Sql => "tree.sql",
            Export::Mermaid => "tree.mmd",
            Export::Markdown => "tree.md",
        }
    }
}

/// How a language writes what a tree is made of.
struct Language {
    comment: &'static str,
    /// One step of indentation.
    indent: &'static str,
    /// Before the condition, after it, between the sides, at the end.
    branch: [&'static str; 4],
    /// Around a score.
    leaf: [&'static str; 2],
    number: fn(f32) -> String,
    feature: fn(&FeatureSchema, u16) -> String,
}

/// The shortest decimal that 32 bits read as exactly this.
fn single(value: f32) -> String {
    format!("{value:?}")
}

/// The shortest decimal that 64 bits read as exactly this.
fn double(value: f32) -> String {
    format!("{:?}", f64::from(value))
}

/// A quotient of two whole numbers as floats of 64 bits, which hold them exactly: databases read decimals in their own ways, and
/// divide those without an exponent in decimal. Held to SQLite.
fn quotient(value: f32) -> String {
    let (mut numerator, mut denominator) = (f64::from(value), 1.0);
    while numerator.fract() != 0.0 && denominator < 9e15 {
        (numerator, denominator) = (numerator * 2.0, denominator * 2.0);
    }
    if numerator.fract() != 0.0 || numerator.abs() > 9e15 {
        return double(value);
    }
    format!("({numerator:.0}e0 / {denominator:.0}e0)")
}

const C: Language = Language {
    comment: "//",
    indent: "    ",
    branch: ["if (", ") {\n", "} else {\n", "}\n"],
    leaf: ["return ", ";\n"],
    number: |value| single(value) + "f",
    feature: |_, index| format!("row[{index}]"),
};
const RUST: Language = Language {
    comment: "//",
    indent: "    ",
    branch: ["if ", " {\n", "} else {\n", "}\n"],
    leaf: ["", "\n"],
    number: |value| single(value) + "_f32",
    feature: |_, index| format!("row[{index}]"),
};
/// Laid out as gofmt does it. A constant without a type would be of 64 bits in a product.
const GO: Language = Language {
    comment: "//",
    indent: "\t",
    branch: ["if ", " {\n", "} else {\n", "}\n"],
    leaf: ["return ", "\n"],
    number: |value| format!("float32({})", single(value)),
    feature: |_, index| format!("row[{index}]"),
};
const PYTHON: Language = Language {
    comment: "#",
    indent: "    ",
    branch: ["if ", ":\n", "else:\n", ""],
    leaf: ["return ", "\n"],
    number: double,
    feature: |_, index| format!("row[{index}]"),
};
const LUA: Language = Language {
    comment: "--",
    indent: "    ",
    branch: ["if ", " then\n", "else\n", "end\n"],
    leaf: ["return ", "\n"],
    number: double,
    // Tables of Lua begin at 1.
    feature: |_, index| format!("row[{}]", index + 1),
};
const SQL: Language = Language {
    comment: "--",
    indent: "    ",
    branch: ["CASE WHEN ", " THEN\n", "ELSE\n", "END\n"],
    leaf: ["", "\n"],
    number: quotient,
    feature: |schema, index| format!("\"{}\"", schema.joined_name(index.into())),
};

impl Tree {
    /// The tree in another form.
    #[must_use]
    pub fn export(&self, to: Export) -> String {
        match to {
            Export::C => self.functions(&C, [
                "#include <stddef.h>\n\nstatic inline float pleach_score(const float *row) {\n",
                "}\n\nstatic inline double pleach_key(const float *row) {\n    (void)row;\n    double sum = 0.0;\n",
                "    sum += (double)WEIGHT * (double)FEATURE;\n",
                "    return sum;\n}\n",
            ]),
            Export::Rust => self.functions(&RUST, [
                "pub fn score(row: &[f32]) -> f32 {\n",
                "}\n\n#[allow(unused_mut, unused_variables)]\npub fn key(row: &[f32]) -> f64 {\n    let mut sum = 0.0_f64;\n",
                "    sum += f64::from(WEIGHT) * f64::from(FEATURE);\n",
                "    sum\n}\n",
            ]),
            Export::Go => self.functions(&GO, [
                "// Code generated by pleach export; DO NOT EDIT.\n\npackage pleach\n\nfunc Score(row []float32) float32 {\n",
                "}\n\nfunc Key(row []float32) float64 {\n\tsum := 0.0\n",
                "\tsum += float64(WEIGHT) * float64(FEATURE)\n",
                "\treturn sum\n}\n",
            ]),
            Export::Python => self.functions(&PYTHON, [
                "def score(row):\n",
                "\n\ndef key(row):\n    total = 0.0\n",
                "    total += WEIGHT * FEATURE\n",
                "    return total\n",
            ]),
            Export::Lua => self.functions(&LUA, [
                "local tree = {}\n\nfunction tree.score(row)\n",
                "end\n\nfunction tree.key(row)\n    local total = 0.0\n",
                "    total = total + WEIGHT * FEATURE\n",
                "    return total\nend\n\nreturn tree\n",
            ]),
            Export::Sql => self.functions(&SQL, ["-- score\n", "-- key\n0.0\n", "+ WEIGHT * FEATURE\n", ""]),
            Export::Mermaid => self.to_mermaid(),
            Export::Markdown => self.to_markdown(),
        }
    }

    /// Code of a language: what begins the score, what ends it and begins the key, a term of the key, what ends all.
    fn functions(&self, language: &Language, [score, key, term, end]: [&str; 4]) -> String {
        let mut text = String::new();
        let comment = language.comment;
        for line in self.to_text().lines() {
            let _ = writeln!(text, "{comment} {line}");
        }
        let _ = writeln!(text, "{comment} features: {}\n", self.features_hash());
        text.push_str(score);
        self.write_branch(language, 0, 1, &mut text);
        text.push_str(key);
        for own in &self.meta().key_weights {
            let weight = (language.number)(own.weight);
            let feature = (language.feature)(self.schema(), own.feature);
            text.push_str(&term.replace("WEIGHT", &weight).replace("FEATURE", &feature));
        }
        text.push_str(end);
        text
    }

    fn write_branch(&self, language: &Language, place: usize, depth: usize, text: &mut String) {
        let indent = language.indent.repeat(depth);
        match self.nodes()[place] {
            Node::Leaf { score, .. } => {
                let [before, after] = language.leaf;
                text.push_str(&format!("{indent}{before}{}{after}", (language.number)(score)));
            }
            Node::Split {
                feature,
                threshold,
                left,
                right,
            } => {
                let [open, then, otherwise, close] = language.branch;
                let (name, bound) = (
                    (language.feature)(self.schema(), feature),
                    (language.number)(threshold),
                );
                text.push_str(&format!("{indent}{open}{name} <= {bound}{then}"));
                self.write_branch(language, left as usize, depth + 1, text);
                text.push_str(&format!("{indent}{otherwise}"));
                self.write_branch(language, right as usize, depth + 1, text);
                if !close.is_empty() {
                    text.push_str(&format!("{indent}{close}"));
                }
            }
        }
    }

    fn to_mermaid(&self) -> String {
        let tiers = self.tiers();
        let mut text = String::from("flowchart TD\n");
        for (place, node) in self.nodes().iter().enumerate() {
            match *node {
                Node::Leaf { id, score, .. } => {
                    let tier = tier_of(score, &tiers);
                    let _ = writeln!(text, "    n{place}([\"tier {tier} (leaf {id})\"])");
                }
                Node::Split {
                    feature,
                    threshold,
                    left,
                    right,
                } => {
                    // The two signs are of the language's own.
                    let words = condition(self.feature(feature), threshold, true).replace("<=", "≤");
                    let _ = writeln!(text, "    n{place}{{\"{words}\"}}");
                    let _ = writeln!(
                        text,
                        "    n{place} -->|yes| n{left}\n    n{place} -->|no| n{right}"
                    );
                }
            }
        }
        text
    }

    /// Rules, the best tier first: a candidate is in the tier of the rule whose conditions it meets.
    fn to_markdown(&self) -> String {
        let mut text = format!(
            "# {}\n\n| tier | a candidate with | leaf |\n|---:|---|---:|\n",
            self.meta().name
        );
        for rule in self.rules() {
            let words = match rule.conditions.is_empty() {
                true => "always".to_string(),
                false => rule.conditions.join(" and "),
            };
            let _ = writeln!(text, "| {} | {words} | {} |", rule.tier, rule.leaf);
        }
        if let Some(key) = self.key_line() {
            let _ = writeln!(text, "\n{key}");
        }
        for guard in self.guard_lines() {
            let _ = writeln!(text, "\n{guard}");
        }
        text
    }
}

#[cfg(test)]
mod tests;
