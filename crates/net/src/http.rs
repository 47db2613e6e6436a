//! Clients of HTTP servers.

use std::path::Path;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};

use crate::{Error, tls};

/// Begins a client for one host: certificates are checked, `ca_file` holds some that are trusted beside the usual ones, and this
/// machine is not asked for over a proxy. No redirect is followed: it would carry secrets to an address that nobody has
/// written down.
pub fn client(host: &str, ca_file: Option<&Path>, connect: Duration) -> Result<ClientBuilder, Error> {
    let builder = Client::builder()
        .tls_backend_preconfigured(tls::config(ca_file)?)
        .connect_timeout(connect)
        .redirect(Policy::none())
        .user_agent(concat!("querymend/", env!("CARGO_PKG_VERSION")));
    Ok(if tls::is_loopback(host) { builder.no_proxy() } else { builder })
}

/// Whether a request failed because there was no secure connection: a certificate that is not trusted, or no TLS at all.
pub fn is_tls(error: &(dyn std::error::Error + 'static)) -> bool {
    // What wraps another error does not always name it as its source.
    let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    error.is::<rustls::Error>() || inner.is_some_and(|inner| is_tls(inner)) || error.source().is_some_and(is_tls)
}
