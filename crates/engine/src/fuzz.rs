//! Shared helpers of the fuzz targets, and the fuzz target for database addresses.

use querymend_testing::{CountingAllocator, FuzzTarget, mutate_text, peak_memory};

use crate::DRIVERS;

/// Catches an oversized allocation when it is requested, not when the memory is used.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Runs work and asserts that its peak memory does not exceed `max_bytes`.
pub(crate) fn assert_peak_memory<T>(max_bytes: usize, work: impl FnOnce() -> T) -> T {
    let (done, held) = peak_memory(work);
    assert!(held <= max_bytes, "{held} bytes were held at once");
    done
}

/// Placeholder password.
const PASSWORD: &str = "hunter2";

#[test]
fn fuzz_addresses() {
    // Addresses of files are shown whole: they have no password.
    let with_password: Vec<String> = DRIVERS
        .iter()
        .filter(|driver| driver.url_format.contains("USER@"))
        .flat_map(|driver| driver.schemes)
        .map(|scheme| format!("{scheme}://me:{PASSWORD}@"))
        .collect();
    let mut seeds: Vec<String> = with_password.iter().map(|start| format!("{start}localhost/shop")).collect();
    seeds.extend(
        [
            "postgres://me:hunter2@localhost:5432/shop?sslmode=require",
            "mysql://me:hunter2@127.0.0.1/shop",
            "trino://me:hunter2@localhost:8080/memory/default",
            "presto://me@localhost/hive",
            "spark://me:hunter2@localhost:10000/default?auth=nosasl&tls=false",
            "hive://me:hunter2@[::1]:10000/shop",
            "sqlite:shop.db",
            "file:shop.csv",
        ]
        .map(str::to_owned),
    );
    let words = [
        "hunter2",
        "://",
        "@",
        ":",
        "/",
        "?",
        "&",
        "=",
        "%40",
        "%",
        "%zz",
        "%00",
        "[::1]",
        "sslmode",
        "host=/run",
        "tls=true",
        "xn--",
    ];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _inside = runtime.enter();
    let target = FuzzTarget::new("addresses", env!("CARGO_MANIFEST_DIR")).seeds(seeds).inputs(2_000);
    target.run(&mut |random, pool| mutate_text(random, pool, &words), &|input| {
        let address = String::from_utf8_lossy(input);
        let told = match crate::open(&address) {
            Ok(engine) => engine.name().to_owned(),
            Err(error) => format!("{error} {error:?} {:?}", error.hint()),
        };
        // Between a user and a host, it is a password even if the rest of the address is invalid.
        let written = with_password.iter().any(|start| address.trim().starts_with(start));
        let once = address.matches(PASSWORD).count() == 1;
        assert!(!(written && once && told.contains(PASSWORD)), "a password is shown: {told}");
    });
}
