//! What the targets beside the decoders share, and addresses of databases.

use querymend_testing::{Counted, Fuzz, peak, text};

/// A length that a server or a file claims is seen when it is asked for, not when the memory is used up.
#[global_allocator]
static COUNTED: Counted = Counted;

/// Does something that may take so many bytes at once, and no more.
pub(crate) fn within<T>(most: usize, work: impl FnOnce() -> T) -> T {
    let (done, held) = peak(work);
    assert!(held <= most, "{held} bytes were held at once");
    done
}

/// Stands for a password.
const PASSWORD: &str = "hunter2";

#[test]
fn fuzz_addresses() {
    let seeds = [
        "postgres://me:hunter2@localhost:5432/shop?sslmode=require",
        "mysql://me:hunter2@127.0.0.1/shop",
        "trino://me:hunter2@localhost:8080/memory/default",
        "presto://me@localhost/hive",
        "spark://me:hunter2@localhost:10000/default?auth=nosasl&tls=false",
        "hive://me:hunter2@[::1]:10000/shop",
        "sqlite:shop.db",
        "file:shop.csv",
    ];
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
    let target = Fuzz::new("addresses", env!("CARGO_MANIFEST_DIR")).seeds(seeds).inputs(2_000);
    target.run(&mut |random, pool| text(random, pool, &words), &|input| {
        let address = String::from_utf8_lossy(input);
        let told = match crate::open(&address) {
            Ok(engine) => engine.name().to_owned(),
            Err(error) => format!("{error} {error:?} {:?}", error.hint()),
        };
        // Behind a user and before a host it is a password, whatever else is wrong with the address.
        let written = ["postgres", "mysql", "trino", "presto", "spark", "hive"]
            .iter()
            .any(|scheme| address.trim().starts_with(&format!("{scheme}://me:{PASSWORD}@")));
        let once = address.matches(PASSWORD).count() == 1;
        assert!(!(written && once && told.contains(PASSWORD)), "a password is shown: {told}");
    });
}
