//! Embedders against references and servers. `tests/embed/reference.json` is written by `scripts/embedder/reference.py`.

use querymend_model::{
    Embedder, Error, MiniLm, ProviderProtocol, Providers, StaticEmbedder, open_embedder, similarity,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::common::{Act, Pauses, SECRET, Server};

#[derive(Deserialize)]
struct Reference {
    texts: Vec<String>,
    minilm: Vec<Vec<f32>>,
    fixed: Vec<Vec<f32>>,
}

fn reference() -> Reference {
    serde_json::from_str(include_str!("../embed/reference.json")).unwrap()
}

/// The reference is kept in few digits, so its vectors are only nearly of length one.
fn cosine(a: &[f32], b: &[f32]) -> f32 {
    similarity(a, b) / (similarity(a, a) * similarity(b, b)).sqrt()
}

#[test]
fn builtin_embedder_equals_its_reference() {
    let Reference { texts, fixed, .. } = reference();
    let embedder = StaticEmbedder::builtin().unwrap();
    for (text, expected) in texts.iter().zip(&fixed) {
        let cosine = cosine(&embedder.vector(text), expected);
        assert!(cosine > 0.999, "{text}: {cosine}");
    }
}

#[test]
fn minilm_equals_its_reference() {
    let Some(folder) = std::env::var_os("QUERYMEND_MINILM") else {
        eprintln!("skipped: QUERYMEND_MINILM names no folder with all-MiniLM-L6-v2");
        return;
    };
    let Reference { texts, minilm, .. } = reference();
    let model = MiniLm::read(folder.as_ref()).unwrap();
    let texts: Vec<&str> = texts.iter().map(String::as_str).chain([" "]).collect();
    let vectors = model.vectors(&texts).unwrap();
    for ((text, vector), expected) in texts.iter().zip(&vectors).zip(&minilm) {
        let cosine = cosine(vector, expected);
        assert!(cosine > 0.9999, "{text}: {cosine}");
    }
    assert!(vectors.last().unwrap().iter().all(|number| *number == 0.0));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let async_ones = runtime.block_on(model.embed(&texts)).unwrap();
    assert_eq!(async_ones.len(), vectors.len());
    // Alone and among others, a text has the same vector.
    let alone = model.vectors(&texts[..1]).unwrap();
    assert!(similarity(&alone[0], &vectors[0]) > 0.9999);
    let long = "how many ".repeat(2000);
    assert_eq!(model.vectors(&[&long]).unwrap()[0].len(), 384);
}

#[test]
fn reports_files_that_are_not_minilm() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = r###"{"version":"1.0","added_tokens":[],"model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,"vocab":{"[UNK]":0}}}"###;
    // A header that promises more than there is, one that is no JSON, one that is endless, and one without tensors.
    let weights: [&[u8]; 6] = [
        b"",
        b"short",
        b"\xff\xff\xff\xff\xff\xff\xff\x7f{}",
        b"\x02\0\0\0\0\0\0\0{}",
        b"\x04\0\0\0\0\0\0\0nope",
        b"\x3e\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"F32\",\"shape\":[99999],\"data_offsets\":[0,399996]}}",
    ];
    for bytes in weights {
        std::fs::write(folder.path().join("tokenizer.json"), tokenizer).unwrap();
        std::fs::write(folder.path().join("model.safetensors"), bytes).unwrap();
        let error = MiniLm::read(folder.path()).unwrap_err();
        assert!(error.to_string().contains("does not contain all-MiniLM-L6-v2"), "{error}");
    }
    std::fs::write(folder.path().join("tokenizer.json"), "{").unwrap();
    assert!(MiniLm::read(folder.path()).is_err());
}

fn answer(body: &Value) -> Act {
    Act::Status(200, "content-type: application/json\r\n", body.to_string())
}

fn test_embedder(server: &Server, pauses: &Pauses) -> std::sync::Arc<dyn Embedder> {
    open_embedder("test:priced", &server.providers(pauses, "")).unwrap()
}

#[tokio::test]
async fn requests_vectors_from_a_server() {
    let body = json!({"data": [{"index": 1, "embedding": [0, 2]}, {"index": 0, "embedding": [3.0, 4.0]}]});
    let server = Server::start(ProviderProtocol::OpenAi, [answer(&body)]).await;
    let embedder = test_embedder(&server, &Pauses::default());
    assert_eq!((embedder.name(), embedder.dimensions()), ("test:priced", None));
    let vectors = embedder.embed(&["a", "", "b"]).await.unwrap();
    assert_eq!(vectors, [[0.6, 0.8], [0.0, 0.0], [0.0, 1.0]]);
    assert_eq!(embedder.dimensions(), Some(2));
    let (head, body) = server.asked().remove(0);
    assert!(head.starts_with("post /v1/embeddings http"), "{head}");
    assert!(head.contains(&format!("authorization: bearer {SECRET}")), "{head}");
    assert_eq!(body, json!({"model": "priced", "input": ["a", "b"], "encoding_format": "float"}));
}

#[tokio::test]
async fn splits_texts_into_batches_and_retries() {
    let part = |count: usize| json!({"data": vec![json!({"embedding": [1.0, 0.0]}); count]});
    let acts = [Act::Status(503, "", String::new()), answer(&part(96)), answer(&part(4))];
    let server = Server::start(ProviderProtocol::OpenAi, acts).await;
    let pauses = Pauses::default();
    let texts = vec!["x"; 100];
    assert_eq!(test_embedder(&server, &pauses).embed(&texts).await.unwrap().len(), 100);
    assert_eq!((server.asked().len(), pauses.all().len()), (3, 1));
}

#[tokio::test]
async fn reports_responses_without_vectors() {
    for (body, said) in [
        (json!({"data": []}), "0 vectors for 1 texts"),
        (json!({"data": [{"embedding": []}]}), "0 dimensions"),
        (json!({"data": [{"index": 7, "embedding": [1.0]}]}), "not numbered"),
        (json!({"data": [{"embedding": "AAAA"}]}), "no vectors"),
        (json!({"choices": SECRET}), "no vectors"),
    ] {
        let server = Server::start(ProviderProtocol::OpenAi, [answer(&body)]).await;
        let error = test_embedder(&server, &Pauses::default()).embed(&["x"]).await.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::BadResponse { .. }) && text.contains(said) && !text.contains(SECRET), "{text}");
    }
    let refused = Act::Status(401, "", json!({"error": {"message": format!("wrong key {SECRET}")}}).to_string());
    let server = Server::start(ProviderProtocol::OpenAi, [refused]).await;
    let error = test_embedder(&server, &Pauses::default()).embed(&["x"]).await.unwrap_err();
    assert!(matches!(error, Error::Auth { .. }) && !error.to_string().contains(SECRET), "{error}");
}

/// A real llama.cpp server that was started with `--embeddings`.
#[tokio::test]
async fn real_server_returns_vectors() {
    let Ok(url) = std::env::var("QUERYMEND_EMBEDDINGS_URL") else {
        eprintln!("skipped: QUERYMEND_EMBEDDINGS_URL names no server");
        return;
    };
    let providers = Providers::builtin().unwrap().with_variables(|_| None);
    let embedder = open_embedder(&format!("{url}#any"), &providers).unwrap();
    let vectors = embedder.embed(&["How many singers?", "Number of singers", "The sky is blue"]).await.unwrap();
    assert!(vectors.iter().all(|vector| Some(vector.len()) == embedder.dimensions()));
    assert!(vectors.iter().all(|vector| (similarity(vector, vector) - 1.0).abs() < 1e-3));
    assert!(similarity(&vectors[0], &vectors[1]) > similarity(&vectors[0], &vectors[2]));
}
