//! A service for one database, from the options that questions are asked with.

use std::sync::Arc;

use querymend::Config;
use querymend::guard::Breakers;
use querymend_model::Model;
use querymend_server::audit::Audit;
use querymend_server::service::{self, Setup};
use querymend_server::shelf::Here;
use querymend_server::{Service, user};
use tokio::runtime::Runtime;

use crate::chosen::{self, Unnamed};
use crate::failure::Failure;
use crate::missing::Missing;
use crate::out::Out;
use crate::remember::{self, Remembering};
use crate::setup::{Asking, Database, tell_idle};
use crate::state;

/// The options that a service is made from.
pub struct Options<'o> {
    /// The database.
    pub database: &'o Database,
    /// The model.
    pub asking: &'o Asking,
    /// The memory.
    pub remembering: &'o Remembering,
}

/// A service for whoever started this command: nobody signs in.
pub fn service(options: &Options<'_>, config: Config, runtime: &Runtime, out: &Out) -> Result<Service, Failure> {
    let engine = options.database.open(&config)?;
    tell_idle(&config, &*engine, runtime, out);
    let address = options.database.address(&config).unwrap_or_default();
    let identity = remember::identity(&*engine, &address);
    let store = match runtime.block_on(options.remembering.store(false, &config)) {
        Err(failure) if options.remembering.store.is_none() => {
            out.note(&format!("note: nothing is remembered: {}", failure.what));
            None
        }
        store => store?,
    };
    let audit = match &config.server.audit {
        Some(file) => Audit::open(file).map_err(|error| {
            Failure::new(format!("{} cannot be written: {error}", file.display()))
                .hint("change `server.audit` in the configuration")
        })?,
        None => Audit::default(),
    };
    let limits = &config.server.limits;
    let runs = state::runs(&config).map(|folder| (folder, config.trace.keep as usize));
    let shelf = Here::new(limits.sessions, limits.session_age, runs);
    let breakers = Breakers::new(config.circuit_breaker);
    let setup = Setup {
        model: model(options.asking, &config, out),
        databases: vec![service::Database { name: name(&address), engine, identity }],
        store,
        gate: Arc::new(user::Open::default()),
        config,
    };
    Ok(Service::new(setup, Arc::new(breakers), Arc::new(shelf), audit))
}

/// The model; where there is none, one that says so. Everything but questions works without.
fn model(asking: &Asking, config: &Config, out: &Out) -> Arc<dyn Model> {
    chosen::model(asking, &Unnamed { yes: false }, config, out).unwrap_or_else(|failure| {
        out.note(&format!("note: questions cannot be answered: {}", failure.what));
        let hint = failure.hint.unwrap_or_else(|| "`querymend doctor` says more".to_owned());
        Arc::new(Missing::new(failure.what, hint))
    })
}

/// What clients call the database at an address: the name of its file or of its database, in letters that need no quoting.
pub fn name(address: &str) -> String {
    let path = address.split(['?', '#']).next().unwrap_or_default().trim_end_matches(['/', '\\']);
    let last = path.rsplit(['/', '\\', ':']).next().unwrap_or_default();
    let stem = last.rsplit_once('.').map_or(last, |(stem, _)| stem);
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = stem.chars().take(64).map(plain).collect();
    // Who asks, and a port, are no names.
    if name.trim_matches('_').is_empty() || last.contains('@') || name.bytes().all(|b| b.is_ascii_digit()) {
        return "main".to_owned();
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_are_called_by_what_stands_last_in_their_address() {
        for (address, called) in [
            ("shop.db", "shop"),
            ("/data/my shop.sqlite3", "my_shop"),
            ("sqlite:shop.db", "shop"),
            ("postgres://ann@host:5432/sales?sslmode=require", "sales"),
            ("mysql://ann@host", "main"),
            ("mysql://host:3306", "main"),
            ("trino://host/hive/web", "web"),
            ("folder/", "folder"),
            (":memory:", "main"),
            ("", "main"),
        ] {
            assert_eq!(name(address), called, "{address}");
        }
    }
}
