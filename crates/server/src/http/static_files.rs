//! Static files: the embedded web app, built from `web/`, and Pyodide, which its worker loads.

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

use crate::problem::ApiError;
use crate::service::Service;

/// Embedded file with its precompressed variants.
struct StaticFile {
    path: &'static str,
    plain: &'static [u8],
    brotli: Option<&'static [u8]>,
    gzip: Option<&'static [u8]>,
}

include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// Paths of client-side routes, for which `index.html` is served.
const CLIENT_ROUTES: &[&str] = &["/", "/ask", "/sql", "/schema", "/teach", "/operations"];

/// Content Security Policy of the web app: only files and requests of this server are allowed.
const PAGE_CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
    connect-src 'self'; worker-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

/// Path prefix of the worker that runs model-written programs. Only this worker may compile
/// WebAssembly, and it can reach only the Pyodide files.
const WORKER_PATH_PREFIX: &str = "/assets/analysis-worker";

/// Maximum size of a Pyodide file, in bytes; five times the largest one.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Maximum number of cached files. Pyodide loads some fifteen, for pandas and its dependencies.
const MAX_CACHED_FILES: usize = 64;

/// Returns whether the web app is embedded in this binary.
pub fn has_page() -> bool {
    FILES.iter().any(|file| file.path == "/index.html")
}

/// Serves an embedded file, or `index.html` for client-side routes.
pub async fn serve(request: Request) -> Response {
    let path = request.uri().path();
    let nothing = || ApiError::from(Problem::new(ProblemCode::NotFound, "there is nothing at this path"));
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return nothing().into_response();
    }
    let view = CLIENT_ROUTES.contains(&path);
    let wanted = if view { "/index.html" } else { path };
    match FILES.iter().find(|file| file.path == wanted) {
        Some(file) => file_response(file, &request),
        None if view => {
            let problem = Problem::new(ProblemCode::NotFound, "this build does not include the web app");
            ApiError::from(problem.hint("run scripts/page.sh and build again; GET /openapi.json describes the API"))
                .into_response()
        }
        None => nothing().into_response(),
    }
}

fn file_response(file: &StaticFile, request: &Request) -> Response {
    let accepted =
        request.headers().get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let accepts = |name: &str| {
        accepted.split(',').any(|one| {
            let mut parts = one.split(';').map(str::trim);
            parts.next() == Some(name) && !parts.any(|weight| matches!(weight, "q=0" | "q=0.0"))
        })
    };
    let (encoding, bytes) = match (file.brotli, file.gzip) {
        (Some(bytes), _) if accepts("br") => (Some("br"), bytes),
        (_, Some(bytes)) if accepts("gzip") => (Some("gzip"), bytes),
        _ => (None, file.plain),
    };
    let mut response = Response::new(Body::from(bytes));
    // Asset names contain a content hash. The worker is revalidated because its CSP is not part of
    // its content and may change.
    let worker = file.path.starts_with(WORKER_PATH_PREFIX);
    let cache_control =
        if file.path.starts_with("/assets/") && !worker { "public, max-age=31536000, immutable" } else { "no-cache" };
    let policy = if worker { worker_csp(request) } else { HeaderValue::from_static(PAGE_CSP) };
    let all = response.headers_mut();
    all.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type(file.path)));
    all.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache_control));
    all.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    all.insert(header::CONTENT_SECURITY_POLICY, policy);
    if let Some(encoding) = encoding {
        all.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    add_security_headers(all);
    response
}

/// Adds the security headers common to all static responses.
fn add_security_headers(headers: &mut HeaderMap) {
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

/// Returns the Content Security Policy of the worker, which runs model-written programs.
///
/// It may compile WebAssembly and load Pyodide files from this server, and reach nothing else.
fn worker_csp(request: &Request) -> HeaderValue {
    let named = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let host = request.uri().authority().map(|authority| authority.as_str()).or(named);
    let host = host.filter(|host| host.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:-[]".contains(&b)));
    // Without a valid host name, the worker can load nothing.
    let from = host.map_or("'none'".to_owned(), |host| format!("http://{host}/pyodide/ https://{host}/pyodide/"));
    let policy =
        format!("default-src 'none'; script-src {from} 'wasm-unsafe-eval'; connect-src {from}; base-uri 'none'");
    HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

fn content_type(path: &str) -> &'static str {
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

/// Serves a Pyodide file from the configured directory. No authentication is required.
pub async fn pyodide(State(service): State<Arc<Service>>, Path(name): Path<String>) -> Result<Response, ApiError> {
    let not_found = || {
        let problem = Problem::new(ProblemCode::NotFound, "Pyodide file not found");
        ApiError::from(problem.hint(
            "download Pyodide with scripts/pyodide.sh, and set `server.pyodide` or `serve --pyodide` to its folder",
        ))
    };
    // Prevent path traversal.
    let is_plain_name =
        name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-+".contains(&b)) && !name.starts_with('.');
    let folder = service.pyodide_dir().filter(|_| is_plain_name).ok_or_else(not_found)?;
    let bytes = read_cached(&folder.join(&name)).await.ok_or_else(not_found)?;
    let mut response = Response::new(Body::from(bytes));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type(&name)));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=86400"));
    add_security_headers(headers);
    Ok(response)
}

/// Cached file and its modification time.
struct CachedFile {
    modified: SystemTime,
    bytes: Bytes,
}

/// Reads a regular file of bounded size through a cache.
///
/// The cached bytes are shared between responses, because unauthenticated clients may request files
/// often and read them slowly.
async fn read_cached(path: &FilePath) -> Option<Bytes> {
    static READ: Mutex<BTreeMap<PathBuf, CachedFile>> = Mutex::new(BTreeMap::new());
    let metadata = tokio::fs::symlink_metadata(path).await.ok()?;
    if !metadata.is_file() || metadata.len() > MAX_FILE_BYTES {
        return None;
    }
    let modified = metadata.modified().ok()?;
    let unchanged = |file: &CachedFile| (file.modified == modified).then(|| file.bytes.clone());
    if let Some(bytes) = READ.lock().unwrap_or_else(PoisonError::into_inner).get(path).and_then(unchanged) {
        return Some(bytes);
    }
    let bytes = Bytes::from(tokio::fs::read(path).await.ok()?);
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if read.len() >= MAX_CACHED_FILES {
        read.clear();
    }
    read.insert(path.to_owned(), CachedFile { modified, bytes: bytes.clone() });
    Some(bytes)
}
