//! Past runs, kept, read and let go of by sixty-four threads at once.

use std::sync::atomic::{AtomicUsize, Ordering};

use querymend::{Event, Stage, TraceStore};
use querymend_testing::is_full_suite;
use querymend_testing::watchdog::{THREADS, run_concurrently, run_watched};

/// Runs that the folder keeps.
const KEPT: usize = 100;

/// Ids sort by time, and so do these.
fn id(number: usize) -> String {
    format!("{number:08x}-0000-7000-8000-000000000000")
}

#[test]
fn keeps_newest_traces_intact_under_concurrent_reads() {
    run_watched("past runs", || {
        // Runs that each thread keeps. The disk is waited for after each.
        let each = if is_full_suite() { 25 } else { 6 };
        let folder = tempfile::tempdir().unwrap();
        let traces = TraceStore::new(folder.path().join("runs"), KEPT);
        let run: Vec<Event> = (1..=9).map(|attempt| Event::Stage { stage: Stage::Generation, attempt }).collect();
        let read = AtomicUsize::new(0);
        run_concurrently(|thread| {
            for n in 0..each {
                traces.save(&id(n * THREADS + thread), &run).unwrap();
                // One that another thread lets go of in this moment is not there any more, and that is all.
                for known in traces.ids().unwrap().iter().take(3) {
                    if let Some(events) = traces.read(known).unwrap() {
                        assert_eq!(events.len(), run.len(), "a run is there as a whole or not at all");
                        read.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        });
        // Each thread leaves its own newest run, also where others have kept newer ones by then.
        traces.prune().unwrap();
        let newest: Vec<String> = (THREADS * each - KEPT..THREADS * each).map(id).collect();
        assert_eq!(traces.ids().unwrap(), newest);
        assert!(newest.iter().all(|id| traces.read_exact(id).unwrap().is_some_and(|events| events.len() == run.len())));
        assert_eq!(std::fs::read_dir(folder.path().join("runs")).unwrap().count(), KEPT, "nothing is left beside them");
        println!("{} runs kept, {} read meanwhile", THREADS * each, read.into_inner());
    });
}
