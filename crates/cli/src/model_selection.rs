//! Model selection: gathers the facts that [`choose_model`] decides on, also if no model is named.

use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::Arc;

use querymend::Config;
use querymend::sql_api::NO_MODEL;
use querymend_model::{
    Consent, Model, ModelCache, ModelChoice, ModelEntry, ModelEnvironment, Providers, choose_model, discover_servers,
};

use crate::args::env::env_var;
use crate::args::model::{AutoPullArgs, MODEL_SPEC_HINT, ModelArgs, load_providers};
use crate::error::CliError;
use crate::model_download::{describe_model, download_model, user_cache};
use crate::output::Out;
use crate::output::text::format_bytes;
use crate::runtime::build_runtime;

/// Opens the configured model, or else a detected one, without sending it a request.
///
/// If the command has no [`AutoPullArgs`], error messages do not mention these options.
pub fn select_model(
    model_args: &ModelArgs,
    auto_pull: Option<&AutoPullArgs>,
    config: &Config,
    out: &Out,
) -> Result<Arc<dyn Model>, CliError> {
    let providers = load_providers(config)?;
    let none = || no_model_found(&providers, auto_pull.is_some());
    let model_cache = ModelCache::user_default();
    let is_here = |entry: &ModelEntry| model_cache.as_ref().is_some_and(|cache| cache.has(entry));
    let mut facts = ModelEnvironment::from_keys_and_files(&providers, is_here);
    facts.configured = model_args.model_spec(config);
    if facts.configured.as_deref() == Some(NO_MODEL) {
        return Err(CliError::new("the model is disabled (`none`)").hint(MODEL_SPEC_HINT));
    }
    facts.consent = download_consent(auto_pull);
    if facts.needs_server_discovery() {
        facts.servers = build_runtime()?.block_on(discover_servers(&providers));
    }
    let spec = match choose_model(&facts) {
        ModelChoice::Configured(spec) => spec,
        ModelChoice::Detected { spec, because } => {
            out.note(&format!("note: no model is configured; using {spec}, because {because}"));
            spec
        }
        ModelChoice::Pull(name) => pull_model(&name, &providers, out)?,
        ModelChoice::AskToPull(name) => {
            let entry = providers.registry.get(&name)?;
            if !confirm(&format!("no model is configured or found; pull {}? [Y/n] ", describe_model(entry))) {
                return Err(none());
            }
            pull_model(&name, &providers, out)?
        }
        ModelChoice::NoModel => return Err(none()),
    };
    Ok(querymend_model::open(&spec, &providers)?)
}

/// Downloads a model and returns its specification.
fn pull_model(name: &str, providers: &Providers, out: &Out) -> Result<String, CliError> {
    if download_model(providers.registry.get(name)?, &user_cache()?, out)?.is_none() {
        return Err(CliError::interrupted(format!("there is no model yet: the pull of {name} was stopped")));
    }
    out.note(&format!("note: no model is configured; using local:{name}, because it was pulled just now"));
    Ok(format!("local:{name}"))
}

fn download_consent(auto_pull: Option<&AutoPullArgs>) -> Consent {
    if auto_pull.is_some_and(|unnamed| unnamed.yes)
        || env_var("QUERYMEND_AUTO_PULL").is_some_and(|value| value.trim() == "1")
    {
        Consent::Granted
    } else if io::stdin().is_terminal() && io::stderr().is_terminal() {
        Consent::CanAsk
    } else {
        Consent::Unavailable
    }
}

/// Asks for confirmation on the terminal. End of input counts as no.
fn confirm(question: &str) -> bool {
    let mut stderr = io::stderr().lock();
    if write!(stderr, "{question}").and_then(|()| stderr.flush()).is_err() {
        return false;
    }
    let mut answer = String::new();
    match io::stdin().lock().read_line(&mut answer) {
        Ok(0) | Err(_) => false,
        Ok(_) => matches!(answer.trim().to_lowercase().as_str(), "" | "y" | "yes"),
    }
}

/// Returns the error if no model is found, with all ways to get one.
fn no_model_found(providers: &Providers, yes: bool) -> CliError {
    let keyed = providers.by_priority().into_iter().filter(|(_, provider)| provider.default_model.is_some());
    let keys: Vec<&str> = keyed.filter_map(|(_, provider)| provider.key_variable.as_deref()).collect();
    let local = match providers.registry.default_entry() {
        Some(entry) => format!(
            "; or let `querymend model pull {}` fetch one that runs here without any of these ({}, {}; {} as well)",
            entry.name,
            format_bytes(entry.size),
            entry.licence,
            if yes { "--yes and QUERYMEND_AUTO_PULL=1 do so" } else { "QUERYMEND_AUTO_PULL=1 does so" }
        ),
        None => String::new(),
    };
    CliError::new("no model is configured").hint(format!(
        "{MODEL_SPEC_HINT}; or set a key ({}); or start Ollama, llama.cpp, LM Studio or vLLM on this machine{local}",
        keys.join(", ")
    ))
}
