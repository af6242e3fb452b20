//! What a learned router has to beat: every rule by name, with each bound beyond which it may refuse, chosen on lists of its own.

use pleach_scheduler::heuristics::Info;
use pleach_serving::llm::POLICIES;

/// Bounds of the believed TTFT over its target beyond which a request is refused, and of TPOT. *Ours*, as wide as pays anywhere.
const TTFT_BOUNDS: [f64; 6] = [0.4, 0.6, 0.7, 0.8, 0.9, 1.0];
const TPOT_BOUNDS: [f64; 7] = [0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 1.0];

/// All of them: each rule that counts its own requests alone, with each bound, and with each pair of bounds.
pub(super) fn rivals(may_refuse: bool) -> Vec<String> {
    let mut names = Vec::new();
    for Info { name: rule, .. } in POLICIES {
        names.push(rule.to_string());
        if may_refuse {
            names.extend(TPOT_BOUNDS.iter().map(|tpot| format!("{rule}:tpot={tpot}")));
            for ttft in TTFT_BOUNDS {
                names.push(format!("{rule}:ttft={ttft}"));
                names.extend(
                    TPOT_BOUNDS
                        .iter()
                        .map(|tpot| format!("{rule}:ttft={ttft}:tpot={tpot}")),
                );
            }
        }
    }
    names
}
