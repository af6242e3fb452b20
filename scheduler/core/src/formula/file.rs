//! The policy file of a formula: JSON that a person writes in a minute and a seal makes safe to deploy. `docs/formulas.md` describes it.
//!
//! Only `format`, `version` and `score` must be there. Written files also list the columns that are read with their definitions, and
//! sealed ones hold a hash over all that decides, certificates and a hash over scores; every reader checks all three anew.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::policy::FormulaPolicy;
use super::{ScoreFormula, parse, refused};
use crate::estimate::Provenance;
use crate::features::{CONTEXT_WIDTH, FeatureSchema, ROW_WIDTH};
use crate::guards::Guards;
use crate::policy::{Needs, TieKey};
use crate::problem::Problem;
use crate::tree::file::{checked_version, disk, hex, json, lines, syntax};
use crate::tree::{Certificate, TreeError};

/// What the key `format` says.
pub const FORMULA_FORMAT: &str = "pleach-formula";
const VERSION: u64 = 1;
/// Rows over whose scores a sealed file has a hash. *Assumed*, as the fewest of a tree.
const GOLDEN_ROWS: usize = 1_000;
const SEAL_ANEW: &str = "Seal it anew: pleach distill seal FILE.";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(rename = "format")]
    _format: String,
    #[serde(rename = "version")]
    _version: u64,
    name: Option<String>,
    score: String,
    tie_key: Option<TieKey>,
    needs: Option<Needs>,
    guards: Option<Guards>,
    #[serde(default)]
    estimates: Vec<Provenance>,
    #[serde(default)]
    trained_by: BTreeMap<String, serde_json::Value>,
    reads: Option<Vec<String>>,
    seal: Option<Seal>,
}

#[derive(Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Seal {
    formula_hash: String,
    certificates: Vec<Certificate>,
    golden_sha256: String,
}

impl ScoreFormula {
    /// The policy file. The same formula always gives the same bytes.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = String::from("{\n");
        let mut put = |key: &str, value: String| text.push_str(&format!("  \"{key}\": {value},\n"));
        put("format", json(&FORMULA_FORMAT));
        put("version", json(&VERSION));
        put("name", json(&self.name));
        put("score", json(&self.text()));
        put("tie_key", json(&self.tie_key));
        put("needs", json(&self.needs));
        if !self.guards.is_none() {
            put("guards", json(&self.guards));
        }
        put("estimates", json(&self.estimates));
        put("trained_by", json(&self.trained_by));
        if self.is_sealed {
            put("seal", json(&self.seal()));
        }
        text.push_str(&format!(
            "  \"reads\": {}\n}}\n",
            lines(self.lines_read().iter().map(json))
        ));
        text
    }

    /// Definitions of the columns that it reads.
    fn lines_read(&self) -> Vec<String> {
        let features = FeatureSchema::current().features;
        let reads = self.expression.reads().into_iter();
        reads.map(|number| features[usize::from(number)].line()).collect()
    }

    /// Hex SHA-256 over what decides: the score, the tie key, candidates, guards and the definitions of columns.
    #[must_use]
    pub fn hash(&self) -> String {
        let mut digest = Sha256::new();
        digest.update(self.text());
        digest.update(json(&self.tie_key));
        digest.update(json(&self.needs));
        digest.update(json(&self.guards));
        digest.update(self.lines_read().join("\n"));
        hex(digest)
    }

    fn seal(&self) -> Seal {
        Seal {
            formula_hash: self.hash(),
            certificates: self.certify(),
            golden_sha256: self.golden_sha256(),
        }
    }

    /// Rows on which an export is held to the formula: scaled, row and context, from -1 to 3 in steps of 2^-22.
    #[must_use]
    pub fn golden_rows(&self) -> Vec<(Vec<f32>, Vec<f32>)> {
        // The generator of Numerical Recipes (Press et al., 1992, `ranqd1`), its upper 24 bits.
        let mut state = 1_u32;
        let mut draw = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (f64::from(state >> 8) / 4_194_304.0 - 1.0) as f32
        };
        let mut row = |width: usize| (0..width).map(|_| draw()).collect::<Vec<f32>>();
        (0..GOLDEN_ROWS)
            .map(|_| (row(ROW_WIDTH), row(CONTEXT_WIDTH)))
            .collect()
    }

    /// Hex SHA-256 over the scores of the golden rows, four bytes each, little-endian.
    #[must_use]
    pub fn golden_sha256(&self) -> String {
        let policy = FormulaPolicy::new(self.clone());
        let mut digest = Sha256::new();
        for (row, context) in self.golden_rows() {
            digest.update(policy.score_of(&row, &context).to_le_bytes());
        }
        hex(digest)
    }

    /// Reads a policy file.
    ///
    /// # Errors
    /// What is no such file of this version; an expression or needs that cannot be used; columns of another definition; a seal that is
    /// not of this formula.
    pub fn from_json(text: &str) -> Result<ScoreFormula, Problem> {
        let (formula, seal) = ScoreFormula::read(text)?;
        let Some(seal) = seal else { return Ok(formula) };
        let hash = formula.hash();
        if seal.formula_hash != hash {
            let stated: String = seal.formula_hash.chars().take(64).collect();
            return Err(Problem::new(
                "seal.formula_hash",
                stated,
                format!("{hash}, that of this formula"),
                SEAL_ANEW,
            ));
        }
        Problem::refuse_if(
            seal != formula.seal(),
            "seal",
            "certificates or golden_sha256",
            "what this formula's certificates and golden rows are",
            SEAL_ANEW,
        )?;
        Ok(formula.sealed())
    }

    /// The same without its seal, to make it anew.
    ///
    /// # Errors
    /// As [`ScoreFormula::from_json`].
    pub fn from_json_unsealed(text: &str) -> Result<ScoreFormula, Problem> {
        ScoreFormula::read(text).map(|(formula, _)| formula)
    }

    fn read(text: &str) -> Result<(ScoreFormula, Option<Seal>), Problem> {
        checked_version(text, FORMULA_FORMAT, VERSION).map_err(refused)?;
        let found: Document = serde_json::from_str(text).map_err(|error| refused(syntax(error)))?;
        let expression = parse(FeatureSchema::current(), &found.score)?;
        let name = found.name.as_deref().unwrap_or("formula");
        let needs = found.needs.unwrap_or_else(ScoreFormula::needs_by_default);
        let mut formula = ScoreFormula::new(name, expression, needs)?;
        formula.tie_key = found.tie_key.unwrap_or(formula.tie_key);
        formula.estimates = found.estimates;
        formula.trained_by = found.trained_by;
        let formula = formula.with_guards(found.guards.unwrap_or_default())?;
        let own = formula.lines_read();
        if let Some(other) = found.reads.iter().flatten().find(|line| !own.contains(line)) {
            let other: String = other.chars().take(120).collect();
            let hint = "Take `reads` out if the score means this program's columns.";
            let allowed = format!(
                "the columns that it reads as this program has them: {}",
                own.join("; ")
            );
            return Err(Problem::new("reads", other, allowed, hint));
        }
        Ok((formula, found.seal))
    }

    /// Reads a policy file from disk; none where it is another kind's.
    ///
    /// # Errors
    /// A file that cannot be read; inside as [`ScoreFormula::from_json`].
    pub fn load(path: &Path) -> Result<Option<Result<ScoreFormula, Problem>>, TreeError> {
        let text = disk::read(path)?;
        Ok(ScoreFormula::is_in(&text).then(|| ScoreFormula::from_json(&text)))
    }

    /// Whether a text is such a file: an object with its `format`.
    #[must_use]
    pub fn is_in(text: &str) -> bool {
        #[derive(Deserialize)]
        struct Header {
            format: String,
        }
        serde_json::from_str(text).is_ok_and(|header: Header| header.format == FORMULA_FORMAT)
    }

    /// Writes the policy file, as a whole or not at all.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn save(&self, path: &Path) -> Result<(), TreeError> {
        disk::write(path, &self.to_json())
    }
}
