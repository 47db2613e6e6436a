//! The server explored by its own description, with requests that nobody thought of.

use std::path::Path;
use std::sync::Arc;

use querymend::Config;
use querymend_model::Script;
use tokio::process::Command;

use crate::house::open;

#[tokio::test(flavor = "multi_thread")]
#[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
async fn l09_l10_no_request_makes_the_server_fail_or_break_its_word() {
    if std::env::var("QUERYMEND_TEST_CLIENTS").is_ok_and(|clients| clients == "none") {
        eprintln!("skipped: QUERYMEND_TEST_CLIENTS=none");
        return;
    }
    let mut config = Config::default();
    config.server.limits.per_minute = 0;
    let says = std::iter::repeat_n("SELECT count(*) FROM products", 20_000);
    let house = open(Arc::new(Script::new(says)), config).await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/schemathesis.sh");
    let ran = Command::new(script).args(["run", &house.url("")]).output().await.unwrap();
    let said = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "QUERYMEND_TEST_CLIENTS=none leaves this out:\n{said}");
}
