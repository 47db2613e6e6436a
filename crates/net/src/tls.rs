//! TLS for all network access.
//!
//! Certificates are verified against Mozilla's roots, with `ring` as the only provider.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::Error;

/// Returns the TLS configuration; `ca_file` contains additional trusted certificates.
pub fn client_config(ca_file: Option<&Path>) -> Result<rustls::ClientConfig, Error> {
    let mut roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(file) = ca_file {
        for certificate in load_certificates(file)? {
            roots.add(certificate).map_err(|why| tls_error(&why))?;
        }
    }
    Ok(rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|why| tls_error(&why))?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

/// Returns whether a host is this machine.
pub fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Error for a TLS configuration that is invalid.
pub fn tls_error(why: &dyn std::fmt::Display) -> Error {
    Error::new(format!("cannot set up TLS: {why}"), "check `ca_file`, if there is one")
}

fn load_certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let shown = file.display();
    let wrong = |why: &dyn std::fmt::Display| {
        Error::new(format!("the certificates in {shown} cannot be read: {why}"), "check `ca_file`")
    };
    let all: Result<Vec<_>, _> = CertificateDer::pem_file_iter(file).map_err(|why| wrong(&why))?.collect();
    match all {
        Ok(all) if all.is_empty() => Err(wrong(&"the file has none")),
        Ok(all) => Ok(all),
        Err(why) => Err(wrong(&why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_loopback_hosts() {
        for (host, expected) in [
            ("127.0.0.1", true),
            ("localhost", true),
            ("[::1]", true),
            ("localhost.example", false),
            ("10.0.0.1", false),
        ] {
            assert_eq!(is_loopback(host), expected, "{host}");
        }
    }
}
