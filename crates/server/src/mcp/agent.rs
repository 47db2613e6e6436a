//! The server's side of the protocol: what a client may ask, and how it is told.

use std::pin::pin;
use std::sync::Arc;

use querymend::{Cancel, Problem};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, Resource, ResourceContents, ResourceTemplate, ServerCapabilities, ServerConfig,
    Tool as Described, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::sync::RwLock;

use super::elicitation;
use super::progress::Progress;
use super::resources::{self, RULE, RULES_LIST, SCHEMA};
use super::telling::Told;
use super::tools::{self, Call, INSTRUCTIONS, TOOLS, Tool};
use super::who::Who;
use crate::service::{Service, word};

/// One client of the service.
pub struct Agent {
    service: Arc<Service>,
    /// Read by each call as long as it runs, so that one can wait for all of them.
    calls: Arc<RwLock<()>>,
}

impl Agent {
    /// A client of this service.
    pub fn new(service: Arc<Service>) -> Self {
        Self { service, calls: Arc::default() }
    }

    /// Can be written as soon as no call runs.
    pub fn calls(&self) -> Arc<RwLock<()>> {
        Arc::clone(&self.calls)
    }

    async fn call(&self, tool: &Tool, arguments: Value, context: RequestContext<RoleServer>) -> Told {
        let _running = self.calls.read().await;
        let who = match Who::sent(&context, &self.service).await {
            Ok(who) => who,
            Err(problem) => return Told::from(problem),
        };
        let cancel = Cancel::new();
        let progress = Progress::of(&context);
        let told = {
            let mut tell = |event: &_| progress.hear(event);
            let person = Some(&context.peer).filter(|peer| elicitation::is_supported(peer));
            let call = Call { service: &self.service, who: &who, cancel: &cancel, person };
            let mut work = pin!(call.run(tool, arguments, &mut tell));
            // A client that no longer wants an answer stops what runs for it; what ran is still written down.
            tokio::select! {
                told = &mut work => told,
                () = context.ct.cancelled() => {
                    cancel.cancel();
                    work.await
                }
            }
        };
        progress.end().await;
        told
    }
}

fn described(tool: &Tool) -> Described {
    let hints = ToolAnnotations::new().read_only(true).destructive(false).idempotent(tool.idempotent).open_world(false);
    Described::new(tool.name, tool.description, (tool.takes)()).with_annotations(hints)
}

/// What cannot be read has no form of its own, unlike a tool that fails.
fn unreadable(problem: Problem) -> ErrorData {
    let data = json!({ "code": word(&problem.code), "hint": problem.hint });
    ErrorData::internal_error(problem.message, Some(data))
}

impl ServerHandler for Agent {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_resources().build())
            .with_server_info(Implementation::new("querymend", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(TOOLS.iter().map(described).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Described> {
        tools::named(name).map(described)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = tools::named(&request.name) else {
            let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
            let message = format!("there is no such tool; there are {}", names.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        };
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let told = self.call(tool, arguments, context).await;
        let content = vec![ContentBlock::text(told.text)];
        let mut result = if told.failed { CallToolResult::error(content) } else { CallToolResult::success(content) };
        result.structured_content = Some(told.data);
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let who = Who::sent(&context, &self.service).await.map_err(unreadable)?;
        let databases = self.service.databases(who.user()).into_iter().map(|database| {
            Resource::new(format!("{SCHEMA}{}", database.name), format!("schema of {}", database.name))
                .with_description(format!("Tables of {} ({})", database.name, database.dialect))
                .with_mime_type("application/sql")
        });
        let rules = Resource::new(RULES_LIST, "rules")
            .with_description("Every finding that a check can have")
            .with_mime_type("text/markdown");
        Ok(ListResourcesResult::with_all_items(databases.chain([rules]).collect()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let schema = ResourceTemplate::new(format!("{SCHEMA}{{database}}"), "schema")
            .with_description("Tables of a database, as CREATE TABLE")
            .with_mime_type("application/sql");
        let rule = ResourceTemplate::new(format!("{RULE}{{code}}"), "rule")
            .with_description("What a finding means and how it is mended")
            .with_mime_type("text/markdown");
        Ok(ListResourceTemplatesResult::with_all_items(vec![schema, rule]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let who = Who::sent(&context, &self.service).await.map_err(unreadable)?;
        let read = resources::read(&self.service, who.user(), &request.uri).await.map_err(unreadable)?;
        let Some(read) = read else {
            let data = Some(json!({ "uri": request.uri }));
            return Err(ErrorData::resource_not_found("there is no such resource", data));
        };
        let contents = ResourceContents::text(read.text, request.uri).with_mime_type(read.kind);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}
