//! Elicitation: sends a clarifying question to the client's user during a tool call.

use std::time::Duration;

use querymend::{CancellationToken, Clarification};
use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitationAction, ElicitationSchema, ProtocolVersion,
    ServerRequest,
};
use rmcp::{Peer, RoleServer};
use serde_json::{Map, Value, json};

/// Maximum time for the user to choose an option.
const CHOICE_TIMEOUT: Duration = Duration::from_secs(300);
/// Interval at which a waiting call checks for cancellation.
const CANCEL_INTERVAL: Duration = Duration::from_millis(50);

/// Returns whether a client supports form elicitation.
///
/// From protocol 2026-07-28 on, servers send no requests.
pub fn is_supported(peer: &Peer<RoleServer>) -> bool {
    let info = peer.peer_info();
    let older = info.as_ref().filter(|info| info.protocol_version < ProtocolVersion::V_2026_07_28);
    let capability = older.and_then(|info| info.capabilities.elicitation.as_ref());
    // A client that declares no mode supports forms.
    capability.is_some_and(|capability| capability.form.is_some() || capability.url.is_none())
}

/// Returns the query of the option that the user chose.
///
/// Returns `None` without an answer; the options are then returned as text.
pub async fn choose(
    peer: &Peer<RoleServer>,
    clarification: &Clarification,
    cancel: &CancellationToken,
) -> Option<String> {
    let params = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message(clarification),
        requested_schema: schema(clarification)?,
    };
    let request = ElicitRequest::new(params);
    let sent = peer.send_request(ServerRequest::ElicitRequest(request));
    let cancelled = async {
        while !cancel.is_cancelled() {
            tokio::time::sleep(CANCEL_INTERVAL).await;
        }
    };
    let replied = tokio::select! {
        replied = tokio::time::timeout(CHOICE_TIMEOUT, sent) => replied.ok()?,
        () = cancelled => return None,
    };
    match replied {
        Ok(ClientResult::ElicitResult(result)) if result.action == ElicitationAction::Accept => {
            chosen_sql(result.content.as_ref()?, clarification)
        }
        Ok(_) => None,
        Err(error) => {
            tracing::debug!("elicitation failed: {error}");
            None
        }
    }
}

/// Returns the question with a preview of every option, because forms show little more than labels.
fn message(clarification: &Clarification) -> String {
    let mut text = clarification.question.clone();
    for choice in &clarification.options {
        let rows: Vec<String> = choice.preview.rows.iter().map(|row| json!(row).to_string()).collect();
        text.push_str(&format!("\n{}: {}", choice.label, rows.join(" ")));
    }
    text
}

fn schema(clarification: &Clarification) -> Option<ElicitationSchema> {
    let labels: Vec<&str> = clarification.options.iter().map(|choice| choice.label.as_str()).collect();
    let choice =
        json!({ "type": "string", "title": clarification.question, "enum": labels, "default": labels.first() });
    let mut object = Map::new();
    object.insert("type".into(), "object".into());
    object.insert("properties".into(), json!({ "choice": choice }));
    object.insert("required".into(), json!(["choice"]));
    ElicitationSchema::from_json_schema(object).ok()
}

fn chosen_sql(content: &Value, clarification: &Clarification) -> Option<String> {
    let label = content["choice"].as_str()?;
    let choice = clarification.options.iter().find(|choice| choice.label == label)?;
    Some(choice.sql.clone())
}
