//! Settings of a search for a formula.

use pleach_scheduler::settings;

settings! {
    /// How a formula is searched for.
    #[derive(Clone, Debug, PartialEq)]
    pub struct FormulaSearch {
        /// Lists to be simulated in the race at least, starts included.
        pub simulations: u64 = 30_000;
        /// Most symbols: numbers, columns, operations and conditions. 3 to 256
        pub symbols_max: usize = 40, in 3..=256;
        /// Children of a generation. 4 to 1,024
        pub children: usize = 24, in 4..=1024;
        /// Share of the simulations that tunes constants. 0 to 1
        pub constants: f64 = 0.25, in 0.0..=1.0;
        /// Lists of each part for acceptance and report.
        pub accept_lists: usize = 40, in 2..;
    }
}
