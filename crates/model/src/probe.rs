//! Looks for model servers that run on this machine.

use std::time::Duration;

use reqwest::Url;
use serde::Deserialize;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::choose::Served;
use crate::http::client;
use crate::providers::{Provider, Providers};

/// Nobody should notice that servers are looked for.
const PATIENCE: Duration = Duration::from_millis(300);

/// A longer list is something else.
const LARGEST: usize = 1 << 20;

/// Asks all providers that are looked for what they serve, at once. Who does not answer in time, or not with a list of models, is
/// not there. They come back in the order in which they are taken.
pub async fn servers(providers: &Providers) -> Vec<Served> {
    servers_within(providers, PATIENCE).await
}

async fn servers_within(providers: &Providers, patience: Duration) -> Vec<Served> {
    let mut asked = JoinSet::new();
    for (at, (name, provider)) in providers.in_order().into_iter().enumerate() {
        if provider.look {
            let (name, provider) = (name.to_owned(), provider.clone());
            asked.spawn(async move {
                let models = timeout(patience, models(&provider)).await.ok().flatten();
                models.map(|models| (at, Served { provider: name, base: provider.base, models }))
            });
        }
    }
    let mut found: Vec<_> = asked.join_all().await.into_iter().flatten().collect();
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, served)| served).collect()
}

#[derive(Deserialize)]
struct List {
    data: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    id: String,
}

/// What a server that speaks like OpenAI serves. No key is sent: who wants one is not simply there.
async fn models(provider: &Provider) -> Option<Vec<String>> {
    let url = Url::parse(&format!("{}/models", provider.base.trim_end_matches('/'))).ok()?;
    let mut answer = client(provider, &url).ok()?.get(url).send().await.ok()?;
    if !answer.status().is_success() {
        return None;
    }
    let mut body = Vec::new();
    while let Some(bytes) = answer.chunk().await.ok()? {
        body.extend_from_slice(&bytes);
        if body.len() > LARGEST {
            return None;
        }
    }
    let list: List = serde_json::from_slice(&body).ok()?;
    // A name with control characters in it would end up on a terminal.
    Some(list.data.into_iter().map(|listed| listed.id).filter(|id| !id.chars().any(char::is_control)).collect())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use querymend_testing::hang_timeout;

    use super::*;

    /// A server that answers every request with this, and where it is.
    fn server(body: Option<&'static str>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut request = [0; 4096];
                // Whoever lost patience may be gone already.
                let Ok(read @ 1..) = stream.read(&mut request) else { continue };
                assert!(request[..read].starts_with(b"GET /v1/models "));
                match body {
                    Some(body) => {
                        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).ok();
                    }
                    // Nothing comes until the other side hangs up.
                    None => drop(stream.read_to_end(&mut Vec::new())),
                }
            }
        });
        format!("http://{address}/v1")
    }

    #[tokio::test]
    async fn f07_servers_that_answer_are_found_and_others_cost_no_time() {
        let good = server(Some(
            r#"{"object": "list", "data": [{"id": "nomic-embed-text"}, {"id": "a:7b"}, {"id": "b\u001b"}]}"#,
        ));
        let page = server(Some("<html>hello</html>"));
        let silent = server(None);
        let text = format!(
            "[ollama]\nbase = '{page}'\n[llamacpp]\nbase = '{silent}'\n[lmstudio]\nbase = 'http://127.0.0.1:1/v1'\n[vllm]\nbase = '{good}'"
        );
        let providers = Providers::builtin().unwrap().and_text(&text, "test").unwrap();
        // One of them never answers. How soon the others do is a matter of the machine.
        let mut patience = PATIENCE;
        let found = loop {
            let found = timeout(patience + hang_timeout(), servers_within(&providers, patience)).await.unwrap();
            if !found.is_empty() || patience > hang_timeout() {
                break found;
            }
            patience *= 2;
        };
        let models = vec!["nomic-embed-text".to_owned(), "a:7b".to_owned()];
        assert_eq!(found, [Served { provider: "vllm".to_owned(), base: good, models }]);
    }
}
