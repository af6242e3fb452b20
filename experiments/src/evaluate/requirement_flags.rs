//! What a planner requires of a cluster, as flags of the command line.

use pleach_baselines::Requirements;

/// The flags that give what is required, in the order in which `pleach evaluate --help` lists them.
#[must_use]
pub fn requirement_flags(required: Requirements) -> Vec<&'static str> {
    let flags = [
        (required.preemption, "--preemption"),
        (required.sharing, "--sharing mps"),
        (required.mixed_types, "--mixed-types"),
    ];
    let given = flags.iter().filter(|(required, _)| *required);
    given.map(|(_, flag)| *flag).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_requirement_has_its_flag_and_nothing_has_none() {
        let all = Requirements {
            preemption: true,
            sharing: true,
            mixed_types: true,
        };
        let flags = ["--preemption", "--sharing mps", "--mixed-types"];
        assert_eq!(requirement_flags(all), flags);
        assert!(requirement_flags(Requirements::NOTHING).is_empty());
    }
}
