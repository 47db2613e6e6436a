//! The page: files that were built from `web/` and travel in the program, and what its worker loads to compute with.

use std::collections::BTreeMap;
use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use querymend::{Problem, ProblemCode};

use super::problem::Refused;
use crate::service::Service;

/// A file of the page, as it is and as browsers like it packed.
struct File {
    path: &'static str,
    plain: &'static [u8],
    brotli: Option<&'static [u8]>,
    gzip: Option<&'static [u8]>,
}

include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// Addresses that are views of the page: the browser shows the right one.
const VIEWS: &[&str] = &["/", "/ask", "/sql", "/schema", "/teach", "/operations"];

/// What a browser may do with the page: load our own files and ask this server, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
    connect-src 'self'; worker-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

/// The worker that runs programs of a model, and it alone, may compile WebAssembly; it can reach only what it computes with.
const WORKER: &str = "/assets/analysis-worker";

/// Bytes of one file that Pyodide loads; the largest has a fifth of it.
const LONGEST_FILE: u64 = 64 << 20;

/// Files that Pyodide loads, for pandas and what it needs: there are some fifteen.
const MOST_FILES: usize = 64;

/// Whether this program carries the page.
pub fn has_page() -> bool {
    FILES.iter().any(|file| file.path == "/index.html")
}

/// A file of the page, or the page itself where the address is one of its views.
pub async fn serve(request: Request) -> Response {
    let path = request.uri().path();
    let nothing = || Refused::from(Problem::new(ProblemCode::NotFound, "there is nothing at this address"));
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return nothing().into_response();
    }
    let view = VIEWS.contains(&path);
    let wanted = if view { "/index.html" } else { path };
    match FILES.iter().find(|file| file.path == wanted) {
        Some(file) => written(file, &request),
        None if view => {
            let problem = Problem::new(ProblemCode::NotFound, "this build has no page");
            Refused::from(
                problem.hint("run scripts/page.sh and build again; GET /openapi.json describes what can be asked"),
            )
            .into_response()
        }
        None => nothing().into_response(),
    }
}

fn written(file: &File, request: &Request) -> Response {
    let accepted =
        request.headers().get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let takes = |name: &str| {
        accepted.split(',').any(|one| {
            let mut parts = one.split(';').map(str::trim);
            parts.next() == Some(name) && !parts.any(|weight| matches!(weight, "q=0" | "q=0.0"))
        })
    };
    let (encoding, bytes) = match (file.brotli, file.gzip) {
        (Some(bytes), _) if takes("br") => (Some("br"), bytes),
        (_, Some(bytes)) if takes("gzip") => (Some("gzip"), bytes),
        _ => (None, file.plain),
    };
    let mut response = Response::new(Body::from(bytes));
    // Names of assets change with what is in them. What the worker may do is not in it, and may change.
    let worker = file.path.starts_with(WORKER);
    let keep =
        if file.path.starts_with("/assets/") && !worker { "public, max-age=31536000, immutable" } else { "no-cache" };
    let policy = if worker { worker_policy(request) } else { HeaderValue::from_static(POLICY) };
    let all = response.headers_mut();
    all.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind(file.path)));
    all.insert(header::CACHE_CONTROL, HeaderValue::from_static(keep));
    all.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    all.insert(header::CONTENT_SECURITY_POLICY, policy);
    if let Some(encoding) = encoding {
        all.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    guarded(all);
    response
}

/// What is true of everything that browsers are given here.
fn guarded(headers: &mut HeaderMap) {
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
}

/// A program that a model wrote runs in the worker: it may compile, and load what it computes with from here, and reach nothing else.
fn worker_policy(request: &Request) -> HeaderValue {
    let named = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let host = request.uri().authority().map(|authority| authority.as_str()).or(named);
    let host = host.filter(|host| host.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:-[]".contains(&b)));
    // Where this server is not known by a name that can stand here, nothing is computed.
    let from = host.map_or("'none'".to_owned(), |host| format!("http://{host}/pyodide/ https://{host}/pyodide/"));
    let policy =
        format!("default-src 'none'; script-src {from} 'wasm-unsafe-eval'; connect-src {from}; base-uri 'none'");
    HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

fn kind(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "json" | "webmanifest" => "application/json",
        "wasm" => "application/wasm",
        "png" => "image/png",
        "woff2" => "font/woff2",
        "zip" | "whl" => "application/zip",
        _ => "application/octet-stream",
    }
}

/// What the page's worker computes with: files of a folder of this machine, which anybody may have.
pub async fn pyodide(State(service): State<Arc<Service>>, Path(name): Path<String>) -> Result<Response, Refused> {
    let none = || {
        let problem = Problem::new(ProblemCode::NotFound, "this server has no such file to compute with");
        Refused::from(
            problem.hint("scripts/pyodide.sh fetches them; `server.pyodide` or `serve --pyodide` names their folder"),
        )
    };
    // No name leads out of the folder.
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-+".contains(&b)) && !name.starts_with('.');
    let folder = service.pyodide().filter(|_| plain).ok_or_else(none)?;
    let bytes = read(&folder.join(&name)).await.ok_or_else(none)?;
    let mut response = Response::new(Body::from(bytes));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind(&name)));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=86400"));
    guarded(headers);
    Ok(response)
}

/// A file as it was when it was read.
struct Kept {
    changed: SystemTime,
    bytes: Bytes,
}

/// A plain file, unless it is far too long. It is read once and shared: anybody may ask for it, as often and as slowly as they like.
async fn read(path: &FilePath) -> Option<Bytes> {
    static READ: Mutex<BTreeMap<PathBuf, Kept>> = Mutex::new(BTreeMap::new());
    let about = tokio::fs::symlink_metadata(path).await.ok()?;
    if !about.is_file() || about.len() > LONGEST_FILE {
        return None;
    }
    let changed = about.modified().ok()?;
    let known = |kept: &Kept| (kept.changed == changed).then(|| kept.bytes.clone());
    if let Some(bytes) = READ.lock().unwrap_or_else(PoisonError::into_inner).get(path).and_then(known) {
        return Some(bytes);
    }
    let bytes = Bytes::from(tokio::fs::read(path).await.ok()?);
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if read.len() >= MOST_FILES {
        read.clear();
    }
    read.insert(path.to_owned(), Kept { changed, bytes: bytes.clone() });
    Some(bytes)
}
