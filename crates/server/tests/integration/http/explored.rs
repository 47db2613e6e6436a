//! The server explored by its own description, with requests that nobody thought of.

use std::path::Path;
use std::sync::Arc;

use querymend_model::ScriptedModel;
use querymend_testing::is_full_suite;
use tokio::process::Command;

use super::house::open;
use crate::timing;

#[tokio::test(flavor = "multi_thread")]
async fn generated_requests_never_break_the_openapi_contract() {
    if std::env::var("QUERYMEND_TEST_CLIENTS").is_ok_and(|clients| clients == "none") {
        eprintln!("skipped: QUERYMEND_TEST_CLIENTS=none");
        return;
    }
    let mut config = timing::config();
    config.server.limits.requests_per_minute = 0;
    let says = std::iter::repeat_n("SELECT count(*) FROM products", 20_000);
    let house = open(Arc::new(ScriptedModel::new(says)), config).await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/schemathesis.sh");
    // Requests that are made up for each route, besides those that its description asks for.
    let number = if is_full_suite() { "15" } else { "4" };
    let examples = std::env::var("EXAMPLES").unwrap_or_else(|_| number.to_owned());
    let ran = Command::new(script).args(["run", &house.url("")]).env("EXAMPLES", examples).output().await.unwrap();
    let said = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "QUERYMEND_TEST_CLIENTS=none leaves this out:\n{said}");
}
