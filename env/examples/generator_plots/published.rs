//! Published figures for the plots, and the configuration that has the size and load of each list.

/// A published list of jobs.
pub struct List {
    /// Preset that follows it.
    pub preset: &'static str,
    /// Parameters that give the list's size.
    pub config: &'static str,
    /// (run time s, share of jobs that ended within it).
    pub run_times: &'static [(f64, f64)],
    /// Gang sizes whose run times are drawn.
    pub gangs_shown: &'static [u32],
    /// Shares by gang size.
    pub shares: &'static [Share],
}

/// Share of the jobs and of the GPU time of some gang sizes.
pub struct Share {
    pub label: &'static str,
    /// Smallest and largest size, GPUs.
    pub from: f64,
    pub to: f64,
    pub jobs: f64,
    pub gpu_time: f64,
}

const fn share(label: &'static str, from: f64, to: f64, jobs: f64, gpu_time: f64) -> Share {
    Share {
        label,
        from,
        to,
        jobs,
        gpu_time,
    }
}

/// The lists, in the order of docs/generators.md.
pub const LISTS: [List; 6] = [
    // Philly, 111,549 jobs (Jeon et al., ATC 2019).
    List {
        preset: "philly-like",
        config: "preset = \"philly-like\"\nnum_jobs = 40000\nnum_nodes = 311\nload = 0.64\nnum_tenants = 11\n",
        run_times: &[
            (56.0, 0.1),
            (140.0, 0.25),
            (1322.0, 0.5),
            (5363.0, 0.75),
            (33477.0, 0.9),
            (123925.0, 0.95),
            (755731.0, 0.99),
        ],
        gangs_shown: &[1, 4, 8, 16],
        shares: &[
            share("1", 1.0, 1.0, 0.8665, 0.18),
            share("2", 2.0, 2.0, 0.0226, 0.026),
            share("4", 4.0, 4.0, 0.0492, 0.172),
            share("8", 8.0, 8.0, 0.0512, 0.487),
            share("16", 16.0, 16.0, 0.0076, 0.102),
            share("17+", 17.0, 1e6, 0.0027, 0.034),
        ],
    },
    // Helios Venus, 125,303 jobs (Hu et al., SC 2021).
    List {
        preset: "helios-like",
        config: "preset = \"helios-like\"\nnum_jobs = 40000\nnum_nodes = 133\nload = 0.78\nnum_tenants = 15\n",
        run_times: &[
            (17.0, 0.1),
            (73.0, 0.25),
            (203.0, 0.5),
            (1233.0, 0.75),
            (13983.0, 0.9),
            (57376.0, 0.95),
            (257781.0, 0.99),
        ],
        gangs_shown: &[1, 8, 16, 32],
        shares: &[
            share("1", 1.0, 1.0, 0.5184, 0.044),
            share("2-3", 2.0, 3.0, 0.0571, 0.032),
            share("4-7", 4.0, 7.0, 0.077, 0.053),
            share("8-15", 8.0, 15.0, 0.2474, 0.289),
            share("16-31", 16.0, 31.0, 0.0506, 0.184),
            share("32-63", 32.0, 63.0, 0.0344, 0.273),
            share("64-127", 64.0, 127.0, 0.0079, 0.042),
            share("128+", 128.0, 1e6, 0.0074, 0.084),
        ],
    },
    // nine ITP clusters, 56,652 jobs (Gu et al., ASPLOS 2023).
    List {
        preset: "itp-like",
        config: "preset = \"itp-like\"\nnum_jobs = 40000\nnum_nodes = 154\nload = 0.7\n",
        run_times: &[
            (1212.0, 0.1),
            (4372.0, 0.25),
            (11183.0, 0.5),
            (16421.0, 0.75),
            (28650.0, 0.9),
            (48740.0, 0.95),
            (142743.0, 0.99),
        ],
        gangs_shown: &[1, 4, 8, 32],
        shares: &[
            share("1", 1.0, 1.0, 0.8442, 0.132),
            share("2", 2.0, 2.0, 0.0114, 0.005),
            share("4", 4.0, 4.0, 0.0229, 0.042),
            share("8", 8.0, 8.0, 0.1072, 0.434),
            share("16", 16.0, 16.0, 0.0067, 0.088),
            share("32", 32.0, 32.0, 0.0062, 0.223),
            share("64", 64.0, 64.0, 0.0013, 0.076),
        ],
    },
    // PAI 2020, 1,037,085 jobs, as compared in Hu et al., NSDI 2024.
    List {
        preset: "pai-share",
        config: "preset = \"pai-share\"\nnum_jobs = 40000\nload = 0.33\n",
        run_times: &[
            (16.0, 0.03),
            (32.0, 0.119),
            (64.0, 0.211),
            (128.0, 0.289),
            (256.0, 0.396),
            (512.0, 0.509),
            (1024.0, 0.608),
            (2048.0, 0.698),
            (4096.0, 0.785),
            (8192.0, 0.871),
            (16384.0, 0.932),
            (32768.0, 0.971),
            (65536.0, 0.99),
            (131072.0, 0.997),
        ],
        gangs_shown: &[1, 2, 8],
        shares: &[
            share("up to 1", 0.0, 1.0, 0.971, 0.681),
            share("2", 2.0, 2.0, 0.015, 0.048),
            share("3-4", 3.0, 4.0, 0.005, 0.058),
            share("5-8", 5.0, 8.0, 0.009, 0.213),
        ],
    },
    // openb, 7,064 GPU pods (Weng et al., ATC 2023).
    List {
        preset: "openb-like",
        config: "preset = \"openb-like\"\nnum_jobs = 20000\nnum_nodes = 1213\nload = 0.021\nrun_time_s_max = 12600000.0\n",
        run_times: &[
            (74.0, 0.1),
            (175.0, 0.25),
            (545.0, 0.5),
            (1990.0, 0.75),
            (6257.0, 0.9),
            (14700.0, 0.95),
            (113373.0, 0.99),
        ],
        gangs_shown: &[1, 8],
        shares: &[
            share("<1", 0.0, 0.999, 0.4357, 0.138),
            share("1", 1.0, 1.0, 0.5537, 0.714),
            share("2", 2.0, 2.0, 0.0023, 0.011),
            share("4", 4.0, 4.0, 0.0021, 0.002),
            share("8", 8.0, 8.0, 0.0062, 0.135),
        ],
    },
    // Acme Seren, 663,813 jobs (Hu et al., NSDI 2024).
    List {
        preset: "acme-like",
        config: "preset = \"acme-like\"\nnum_jobs = 100000\nnum_nodes = 286\n",
        run_times: &[
            (4.0, 0.056),
            (16.0, 0.234),
            (32.0, 0.317),
            (64.0, 0.371),
            (128.0, 0.489),
            (256.0, 0.656),
            (512.0, 0.792),
            (1024.0, 0.88),
            (2048.0, 0.929),
            (4096.0, 0.96),
            (8192.0, 0.975),
            (16384.0, 0.984),
            (32768.0, 0.992),
            (65536.0, 0.996),
            (131072.0, 0.998),
        ],
        gangs_shown: &[1, 8, 32, 256],
        shares: &[
            share("1", 1.0, 1.0, 0.54, 0.013),
            share("2", 2.0, 2.0, 0.114, 0.005),
            share("4", 3.0, 4.0, 0.025, 0.006),
            share("8", 5.0, 8.0, 0.288, 0.095),
            share("16", 9.0, 16.0, 0.012, 0.013),
            share("32", 17.0, 32.0, 0.009, 0.059),
            share("64", 33.0, 64.0, 0.005, 0.085),
            share("128", 65.0, 128.0, 0.003, 0.141),
            share("256", 129.0, 256.0, 0.001, 0.146),
            share(">256", 257.0, 1e6, 0.003, 0.437),
        ],
    },
];
