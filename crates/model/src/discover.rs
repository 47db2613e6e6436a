//! Discovery of model servers on this machine.

use std::time::Duration;

use reqwest::Url;
use serde::Deserialize;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::choose::LocalServer;
use crate::http::client;
use crate::providers::{Provider, Providers};

/// Timeout of a probe, short enough to go unnoticed.
const PROBE_TIMEOUT: Duration = Duration::from_millis(300);

/// Maximum size of a model list.
const MAX_RESPONSE_BYTES: usize = 1 << 20;

/// Probes all discoverable providers concurrently; returns those that respond, by priority.
///
/// A server that does not return a list of models in time is treated as absent.
pub async fn discover_servers(providers: &Providers) -> Vec<LocalServer> {
    discover_servers_within(providers, PROBE_TIMEOUT).await
}

async fn discover_servers_within(providers: &Providers, probe_timeout: Duration) -> Vec<LocalServer> {
    let mut probes = JoinSet::new();
    for (at, (name, provider)) in providers.by_priority().into_iter().enumerate() {
        if provider.discover {
            let (name, provider) = (name.to_owned(), provider.clone());
            probes.spawn(async move {
                let models = timeout(probe_timeout, fetch_models(&provider)).await.ok().flatten();
                models.map(|models| (at, LocalServer { provider: name, base: provider.base, models }))
            });
        }
    }
    let mut servers: Vec<_> = probes.join_all().await.into_iter().flatten().collect();
    servers.sort_by_key(|(at, _)| *at);
    servers.into_iter().map(|(_, served)| served).collect()
}

#[derive(Deserialize)]
struct ModelList {
    data: Vec<ModelListItem>,
}

#[derive(Deserialize)]
struct ModelListItem {
    id: String,
}

/// Lists the models of an OpenAI-compatible server.
///
/// No key is sent: a server that requires one must be configured explicitly.
async fn fetch_models(provider: &Provider) -> Option<Vec<String>> {
    let url = Url::parse(&format!("{}/models", provider.base.trim_end_matches('/'))).ok()?;
    let mut answer = client(provider, &url).ok()?.get(url).send().await.ok()?;
    if !answer.status().is_success() {
        return None;
    }
    let mut body = Vec::new();
    while let Some(bytes) = answer.chunk().await.ok()? {
        body.extend_from_slice(&bytes);
        if body.len() > MAX_RESPONSE_BYTES {
            return None;
        }
    }
    let list: ModelList = serde_json::from_slice(&body).ok()?;
    // Names with control characters could inject terminal escape sequences.
    Some(list.data.into_iter().map(|listed| listed.id).filter(|id| !id.chars().any(char::is_control)).collect())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use querymend_testing::hang_timeout;

    use super::*;

    /// Starts a server that sends this response to every request; returns its URL.
    fn server(body: Option<&'static str>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut request = [0; 4096];
                // The client may have timed out already.
                let Ok(read @ 1..) = stream.read(&mut request) else { continue };
                assert!(request[..read].starts_with(b"GET /v1/models "));
                match body {
                    Some(body) => {
                        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).ok();
                    }
                    // Sends nothing until the client disconnects.
                    None => drop(stream.read_to_end(&mut Vec::new())),
                }
            }
        });
        format!("http://{address}/v1")
    }

    #[tokio::test]
    async fn finds_live_servers_and_skips_silent_ones() {
        let good = server(Some(
            r#"{"object": "list", "data": [{"id": "nomic-embed-text"}, {"id": "a:7b"}, {"id": "b\u001b"}]}"#,
        ));
        let page = server(Some("<html>hello</html>"));
        let silent = server(None);
        let text = format!(
            "[ollama]\nbase = '{page}'\n[llamacpp]\nbase = '{silent}'\n[lmstudio]\nbase = 'http://127.0.0.1:1/v1'\n[vllm]\nbase = '{good}'"
        );
        let providers = Providers::builtin().unwrap().merge_text(&text, "test").unwrap();
        // One of them never responds. The time that the others need depends on the machine.
        let mut patience = PROBE_TIMEOUT;
        let found = loop {
            let found =
                timeout(patience + hang_timeout(), discover_servers_within(&providers, patience)).await.unwrap();
            if !found.is_empty() || patience > hang_timeout() {
                break found;
            }
            patience *= 2;
        };
        let models = vec!["nomic-embed-text".to_owned(), "a:7b".to_owned()];
        assert_eq!(found, [LocalServer { provider: "vllm".to_owned(), base: good, models }]);
    }
}
