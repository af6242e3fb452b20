//! Results that may not change by accident: `tests/goldens` holds a digest and a few plain figures for each.
//!
//! Where a change of results is meant, mint them anew and say why; the reason goes into the files and, word for word, into
//! CHANGELOG.md under *Changes results*:
//!
//! ```text
//! PLEACH_MINT_GOLDENS='generators use portable functions' cargo test --workspace goldens
//! ```
//!
//! The run that mints prints what moved and fails; the next one passes. The files are minted on x86-64 with AVX2 and FMA: another
//! processor may round networks otherwise.

mod columns;
mod environments;
mod evaluation;
mod learning;
mod networks;
mod schedulers;
mod trees;

mod minting;
