//! The laboratory: what compares and reproduces, and what no scheduler in production needs. It comes into a program by the door for
//! plug-ins, in one line, and nothing else names it.
//!
//! # What is deliberately not here
//! What a site's own scheduler needs: `pleach_scheduler::heuristics`, `pleach_dealing`.

use pleach_bench::{BenchArgs, SuiteArgs, TournamentArgs};
use pleach_experiments::Plugins;
use pleach_reproduce::ReproduceArgs;

/// The same with published planners and the commands of the laboratory.
#[must_use]
pub fn added_to(plugins: Plugins) -> Plugins {
    let planners = pleach_baselines::entries().copied();
    planners
        .fold(plugins, Plugins::planner)
        .command::<SuiteArgs>()
        .command::<TournamentArgs>()
        .command::<ReproduceArgs>()
        .command::<BenchArgs>()
        .room(pleach_rooms::ROOM)
        .room(pleach_graphs::ROOM)
        .world(pleach_graphs::KIND)
}

#[cfg(test)]
mod tests {
    use pleach_policies::{Door, LABORATORY};

    use super::*;

    #[test]
    fn every_door_knows_the_planners_by_name_and_one_with_them_opens_all() {
        assert!(pleach_baselines::names().eq(LABORATORY));
        let taken = added_to(Plugins::new()).planner(*pleach_baselines::find("gavel-las").unwrap());
        let said = taken.register().unwrap_err().to_string();
        assert!(
            said.contains("gavel-las") && said.contains("that no other policy has"),
            "{said}"
        );
        added_to(Plugins::new()).register().unwrap();
        for name in LABORATORY {
            assert!(Door::SIMULATOR.open_one(name).unwrap().is_planner(), "{name}");
        }
    }
}
