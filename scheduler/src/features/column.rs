//! The columns themselves.

use super::feature::Feature;
use super::feature::Scale::{Linear, Log};

macro_rules! features {
    ($table:ident, $columns:ident: $($column:ident $name:literal [$unit:literal] $min:literal .. $max:literal, $scale:expr, $doc:literal;)*) => {
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum $columns { $($column),* }
        pub(crate) const $table: &[Feature] =
            &[$(Feature { name: $name, unit: $unit, min: $min, max: $max, scale: $scale, doc: $doc }),*];
    };
}

features! { CANDIDATE, Candidate:
    IsHold "is_hold" [""] 0.0..1.0, Linear(1.0), "1 if the candidate ends the pass.";
    IsStart "is_start" [""] 0.0..1.0, Linear(1.0), "1 if it starts a job on free GPUs.";
    IsReserve "is_reserve" [""] 0.0..1.0, Linear(1.0), "1 if it holds GPUs back for a job that does not fit yet.";
    IsPreempt "is_preempt" [""] 0.0..1.0, Linear(1.0), "1 if it stops running jobs to start one.";
    NumGpus "num_gpus" [""] 0.0..1e4, Log(2.0), "Size of the gang.";
    GpuFraction "gpu_fraction" [""] 0.0..1.0, Linear(1.0), "Size of the gang over all GPUs of the cluster.";
    RemainingS "remaining_s" ["s"] 0.0..1e8, Log(6.0), "Believed rest of the job on the reference type.";
    DurationS "duration_s" ["s"] 0.0..1e8, Log(6.0), "Believed time that it would hold these GPUs, restart included.";
    GpuTime "gpu_time_gpu_s" ["GPU s"] 0.0..1e10, Log(8.0), "Believed rest times the size of the gang.";
    WaitS "wait_s" ["s"] 0.0..1e8, Log(6.0), "Time since submission.";
    WaitRatio "wait_ratio" [""] 1.0..1e6, Log(3.0), "(time since submission + believed rest) / believed rest.";
    Attained "attained_gpu_s" ["GPU s"] 0.0..1e10, Log(8.0), "GPU time received so far.";
    NumPreemptions "num_preemptions" [""] 0.0..16.0, Linear(4.0), "How often the job was preempted.";
    TenantUse "tenant_use_ratio" [""] 0.0..8.0, Linear(2.0), "GPUs that the tenant holds over its quota.";
    Speed "speed_ratio" [""] 0.0..1.0, Linear(1.0), "Rate at this placement over the best rate that the job could have.";
    Locality "locality" [""] 0.0..1.0, Linear(1.0), "Locality factor of the placement; 1 is the tightest.";
    NodesRatio "num_nodes_ratio" [""] 0.0..16.0, Linear(4.0), "Nodes touched over the fewest that could hold the gang.";
    NumLeft "num_left" [""] 0.0..64.0, Linear(8.0), "GPUs that stay free in the touched nodes.";
    Leftover "leftover_fraction" [""] 0.0..1.0, Linear(1.0), "Free GPUs of the cluster after it, over all GPUs.";
    OldestSlack "oldest_slack" [""] -1.0..1.0, Linear(1.0), "Free GPUs after it less the gang of the oldest other pending job, over all GPUs.";
    WaitToFitS "wait_to_fit_s" ["s"] 0.0..1e8, Log(6.0), "Believed time until a reserved gang is free.";
    NumVictims "num_victims" [""] 0.0..1e3, Log(2.0), "Running jobs that it stops.";
    VictimsRemainingS "victims_remaining_s" ["s"] 0.0..1e8, Log(6.0), "Shortest believed rest among the jobs that it stops.";
    RankRemaining "rank_remaining" [""] 0.0..1.0, Linear(1.0), "Share of the offered jobs with a shorter believed rest.";
    RankGpuTime "rank_gpu_time" [""] 0.0..1.0, Linear(1.0), "Share of the offered jobs with less believed GPU time.";
    RankArrival "rank_arrival" [""] 0.0..1.0, Linear(1.0), "Share of the offered jobs that came earlier.";
    RankAttained "rank_attained" [""] 0.0..1.0, Linear(1.0), "Share of the offered jobs that received less.";
    RankNumGpus "rank_num_gpus" [""] 0.0..1.0, Linear(1.0), "Share of the offered jobs with smaller gangs.";
    HeadArrival "is_oldest" [""] 0.0..1.0, Linear(1.0), "1 if the job is the first of the whole queue by arrival.";
    HeadShortest "is_shortest" [""] 0.0..1.0, Linear(1.0), "1 if it is the first of the whole queue by believed rest.";
    HeadGpuTime "is_smallest" [""] 0.0..1.0, Linear(1.0), "1 if it is the first of the whole queue by believed GPU time.";
    Deficit "tenant_deficit_rank" [""] 0.0..1.0, Linear(1.0), "Share of the offered jobs whose tenants hold less of their quota.";
    IsBeside "is_beside" [""] 0.0..1.0, Linear(1.0), "1 if it puts the job beside a running one, on its GPUs.";
    PartnerRate "partner_rate_ratio" [""] 0.0..1.0, Linear(1.0), "Rate of the running job beside which it is put, after over before; 1 without one.";
    PartnerRemainingS "partner_remaining_s" ["s"] 0.0..1e8, Log(6.0), "Believed rest of that running job; 0 without one.";
    BestTypeWaitS "best_type_wait_s" ["s"] 0.0..1e8, Log(6.0), "Believed time until the gang fits on the GPU type where the job is fastest; 0 if this is on it.";
    EndGain "end_gain" [""] -1.0..1.0, Linear(1.0), "How much sooner the job is believed to end if it waits for the best of the other GPU types, over duration_s; negative if later.";
    TypeAdvantage "type_advantage" [""] 0.0..4.0, Linear(2.0), "Speed of the job's class on this GPU type over its mean on all types, over the same of the average class; 1 with one type.";
    SizeRatio "size_ratio" [""] 0.0..16.0, Linear(4.0), "GPUs of this start over what the job asked for; 1 unless it is elastic.";
    GpuEfficiency "gpu_efficiency" [""] 0.0..1.0, Linear(1.0), "Progress per GPU here over that at the job's most efficient size; 1 unless it is elastic.";
    CoresRatio "cores_ratio" [""] 0.0..8.0, Linear(2.0), "CPU cores that come with it over the share of the node that is proportional to its GPUs; 1 where CPU is not modelled.";
    DemandRate "demand_rate_ratio" [""] 0.0..1.0, Linear(1.0), "Rate with these cores and this memory over the rate with all that the class can use.";
}

features! { GLOBAL, Global:
    Free "free_fraction" [""] 0.0..1.0, Linear(1.0), "Free GPUs over all GPUs.";
    LargestFree "largest_free_fraction" [""] 0.0..1.0, Linear(1.0), "Most free GPUs in one node over the largest node.";
    EmptyNodes "empty_node_fraction" [""] 0.0..1.0, Linear(1.0), "Nodes without any job over all nodes.";
    NumPending "num_pending" [""] 0.0..1e6, Log(4.0), "Jobs that wait.";
    PendingGpus "pending_gpus_ratio" [""] 0.0..1e4, Log(2.0), "GPUs that waiting jobs ask for over all GPUs.";
    NumRunning "num_running" [""] 0.0..1e6, Log(3.0), "Jobs that run.";
    NextFinishS "next_finish_s" ["s"] 0.0..1e8, Log(6.0), "Believed time until the next running job ends.";
    IsReserved "is_reserved" [""] 0.0..1.0, Linear(1.0), "1 if GPUs are held back for a job in this pass.";
    ReservationS "reservation_s" ["s"] 0.0..1e8, Log(6.0), "Believed time until the reserved job starts.";
    ReservationExtra "reservation_extra_fraction" [""] 0.0..1.0, Linear(1.0), "GPUs that others may take beside the reservation, over all GPUs.";
    SmallestGpuTime "smallest_gpu_time_gpu_s" ["GPU s"] 0.0..1e10, Log(8.0), "Least believed GPU time of a waiting job.";
    OldestWaitS "oldest_wait_s" ["s"] 0.0..1e8, Log(6.0), "Waiting time of the oldest waiting job.";
    FreeFastest "free_fastest_fraction" [""] 0.0..1.0, Linear(1.0), "Free GPUs of the type on which the average class is fastest, over all of that type.";
    BelievedDrainS "believed_drain_s" ["s"] 0.0..1e8, Log(6.0), "Believed GPU time of all waiting jobs over the number of GPUs.";
}
