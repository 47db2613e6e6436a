//! A service, made from options and the configuration: what `serve` and `mcp` offer to others.

use std::sync::Arc;

use querymend::Config;
use querymend::guard::Breakers;
use querymend_model::Model;
use querymend_server::audit::Audit;
use querymend_server::service::{self, Setup};
use querymend_server::shelf::Here;
use querymend_server::user::Gate;
use querymend_server::{Service, user};
use tokio::runtime::Runtime;

use crate::chosen::{self, Unnamed};
use crate::failure::Failure;
use crate::missing::Missing;
use crate::out::Out;
use crate::remember::{self, Remembering};
use crate::setup::{self, Asking, Database, tell_idle};
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
    let address = options.database.address(&config)?.unwrap_or_default();
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
        model: model(options.asking, None, &config, out),
        databases: vec![service::Database { name: name(&address), engine, identity }],
        store,
        gate: Arc::new(user::Open::default()),
        config,
    };
    Ok(Service::new(setup, Arc::new(breakers), Arc::new(shelf), audit))
}

/// The model; where there is none, one that says so. Everything but questions works without.
pub fn model(asking: &Asking, unnamed: Option<&Unnamed>, config: &Config, out: &Out) -> Arc<dyn Model> {
    chosen::model(asking, unnamed, config, out).unwrap_or_else(|failure| {
        out.note(&format!("note: questions cannot be answered: {}", failure.what));
        let hint = failure.hint.unwrap_or_else(|| "`querymend doctor` says more".to_owned());
        Arc::new(Missing::new(failure.what, hint))
    })
}

/// The databases that are named, each with the name that clients use: `NAME=ADDRESS`, or an address alone.
fn databases(named: &[String], config: &Config) -> Result<Vec<service::Database>, Failure> {
    let mut pairs: Vec<(String, String)> = named.iter().map(|text| pair(text)).collect();
    if pairs.is_empty() {
        pairs = config.server.databases.iter().map(|(name, address)| (name.clone(), address.clone())).collect();
    }
    if pairs.is_empty() {
        let one = setup::variable("QUERYMEND_DB").or_else(|| config.database.clone());
        pairs.extend(one.map(|address| (name(&address), address)));
    }
    if pairs.is_empty() {
        return Err(Failure::new("no database is named")
            .hint("name one with --db, or several as `server.databases` in querymend.yaml"));
    }
    let mut databases: Vec<service::Database> = Vec::new();
    for (name, address) in pairs {
        if databases.iter().any(|known| known.name == name) {
            return Err(Failure::new(format!("two databases are called `{name}`")).hint("name them: --db NAME=ADDRESS"));
        }
        let engine: Arc<dyn querymend_engine::Engine> = Arc::from(querymend_engine::open(&address)?);
        let identity = remember::identity(&*engine, &address);
        databases.push(service::Database { name, engine, identity });
    }
    Ok(databases)
}

fn pair(text: &str) -> (String, String) {
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    match text.split_once('=').filter(|(name, _)| is_name(name)) {
        Some((name, address)) => (name.to_owned(), address.to_owned()),
        None => (name(text), text.to_owned()),
    }
}

/// Everything that can be changed while a service runs.
pub async fn setup(
    named: &[String],
    model: Arc<dyn Model>,
    remembering: &Remembering,
    config: Config,
    gate: Arc<dyn Gate>,
    out: &Out,
) -> Result<Setup, Failure> {
    let databases = databases(named, &config)?;
    let store = match remembering.store(true, &config).await {
        Ok(store) => store,
        Err(failure) if remembering.store.is_some() || config.memory.store.is_some() => return Err(failure),
        Err(failure) => {
            out.note(&format!("note: nothing is remembered: {}", failure.what));
            None
        }
    };
    Ok(Setup { config, model, databases, store, gate })
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

    #[test]
    fn databases_may_be_given_names() {
        let of = |text: &str| pair(text);
        let address = "postgres://u@h/x?sslmode=require";
        assert_eq!(of(&format!("shop={address}")), ("shop".to_owned(), address.to_owned()));
        assert_eq!(of(address), ("x".to_owned(), address.to_owned()));
    }
}
