//! HTTP clients.

use std::path::Path;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};

use crate::{Error, tls};

/// Returns a client builder for a host.
///
/// Certificates are verified, against those in `ca_file` as well. Local hosts bypass the proxy.
/// Redirects are not followed, because they would send secrets to an address that was not
/// configured.
pub fn client_builder(host: &str, ca_file: Option<&Path>, connect_timeout: Duration) -> Result<ClientBuilder, Error> {
    let builder = Client::builder()
        .tls_backend_preconfigured(tls::client_config(ca_file)?)
        .connect_timeout(connect_timeout)
        .redirect(Policy::none())
        .user_agent(concat!("querymend/", env!("CARGO_PKG_VERSION")));
    Ok(if tls::is_loopback(host) { builder.no_proxy() } else { builder })
}

/// Returns whether a request failed because of TLS.
///
/// The certificate is not trusted, or the server does not support TLS.
pub fn is_tls_error(error: &(dyn std::error::Error + 'static)) -> bool {
    // Wrapping errors do not always expose the inner error as their source.
    let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    error.is::<rustls::Error>()
        || inner.is_some_and(|inner| is_tls_error(inner))
        || error.source().is_some_and(is_tls_error)
}
