//! A client that others made, in another language: `scripts/grpc_client.py`.

use std::path::Path;

use querymend_testing::hang_timeout;
use serde_json::{Value, json};
use tokio::process::Command;

use super::support::{GOOD, MENDABLE, server};
use crate::timing;

#[tokio::test]
async fn python_client_reaches_the_whole_service() {
    if std::env::var("QUERYMEND_TEST_CLIENTS").is_ok_and(|clients| clients == "none") {
        return;
    }
    let hopeless = ["SELECT flurb FROM products", "SELECT blorp FROM products", "SELECT wibble FROM products"];
    let lines = [MENDABLE, MENDABLE, GOOD].into_iter().chain(hopeless);
    let server = server(lines, timing::config().with_fallback(false)).await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/grpc_client.sh");
    let client = Command::new(script).arg("run").arg(server.address.to_string()).kill_on_drop(true).output();
    // It may have to be fetched first.
    let ran = tokio::time::timeout(3 * hang_timeout(), client).await.expect("it does not end").unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "the client in Python fails (QUERYMEND_TEST_CLIENTS=none leaves it out):\n{said}");
    let seen: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(
        seen,
        json!({
            "sql": "SELECT product_id, price FROM products WHERE category = 'Electronics'",
            "rows": seen["rows"],
            "stages": [
                "schema_discovery", "pattern_selection", "generation", "guardrail_check", "self_correction", "tool_execution",
                "completed",
            ],
            "pages": [100, 100, 100, 100, 71],
            "tables": ["customers", "order_items", "orders", "products", "reviews"],
            "unanswered": ["FAILED_PRECONDITION", "max_retries_exceeded"],
            "refused": ["INVALID_ARGUMENT", "preflight_validation_failed", "writes-data"],
            "too_long": ["RESOURCE_EXHAUSTED", "too_large"],
            "forgotten": "NOT_FOUND",
            "unknown": "UNIMPLEMENTED",
            "services": [
                "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection", "querymend.v1.Querymend",
            ],
        })
    );
    assert!(seen["rows"].as_u64().is_some_and(|rows| rows > 0));
    server.running(0).await;
}
