//! Protocol handler: tools and resources.

use std::pin::pin;
use std::sync::Arc;

use querymend::{CancellationToken, Problem};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, Resource, ResourceContents, ResourceTemplate, ServerCapabilities, ServerConfig,
    Tool as ToolDescription, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::sync::RwLock;

use super::caller::McpCaller;
use super::elicitation;
use super::progress::ProgressReporter;
use super::render::ToolOutput;
use super::resources::{self, RULE_URI, RULES_URI, SCHEMA_URI};
use super::tools::{self, INSTRUCTIONS, TOOLS, Tool, ToolCall};
use crate::service::Service;
use crate::wire_name::wire_name;

/// Handler for one MCP client.
pub struct McpHandler {
    service: Arc<Service>,
    /// Read-locked by each call while it runs, so that a writer can wait for all of them.
    running_calls: Arc<RwLock<()>>,
}

impl McpHandler {
    /// Creates a handler of the service.
    pub fn new(service: Arc<Service>) -> Self {
        Self { service, running_calls: Arc::default() }
    }

    /// Returns the lock that can be write-locked as soon as no call is running.
    pub fn running_calls(&self) -> Arc<RwLock<()>> {
        Arc::clone(&self.running_calls)
    }

    async fn run_tool(&self, tool: &Tool, arguments: Value, context: RequestContext<RoleServer>) -> ToolOutput {
        let _running = self.running_calls.read().await;
        let caller = match McpCaller::from_request(&context, &self.service).await {
            Ok(caller) => caller,
            Err(problem) => return ToolOutput::from(problem),
        };
        let cancel = CancellationToken::new();
        let progress = ProgressReporter::from_request(&context);
        let output = {
            let mut on_event = |event: &_| progress.on_event(event);
            let elicitation_peer = Some(&context.peer).filter(|peer| elicitation::is_supported(peer));
            let call = ToolCall { service: &self.service, caller: &caller, cancel: &cancel, elicitation_peer };
            let mut work = pin!(call.run(tool, arguments, &mut on_event));
            // If the client cancels, the work is cancelled but still awaited, so that it reaches
            // the audit log.
            tokio::select! {
                output = &mut work => output,
                () = context.ct.cancelled() => {
                    cancel.cancel();
                    work.await
                }
            }
        };
        progress.finish().await;
        output
    }
}

fn tool_description(tool: &Tool) -> ToolDescription {
    let hints =
        ToolAnnotations::new().read_only(true).destructive(false).idempotent(tool.is_idempotent).open_world(false);
    ToolDescription::new(tool.name, tool.description, (tool.input_schema)()).with_annotations(hints)
}

/// Converts a problem to a JSON-RPC error.
///
/// Unlike tools, resources have no error result of their own.
fn resource_error(problem: Problem) -> ErrorData {
    let data = json!({ "code": wire_name(&problem.code), "hint": problem.hint });
    ErrorData::internal_error(problem.message, Some(data))
}

impl ServerHandler for McpHandler {
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
        Ok(ListToolsResult::with_all_items(TOOLS.iter().map(tool_description).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<ToolDescription> {
        tools::find_tool(name).map(tool_description)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = tools::find_tool(&request.name) else {
            let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
            let message = format!("unknown tool; available tools: {}", names.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        };
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let output = self.run_tool(tool, arguments, context).await;
        let content = vec![ContentBlock::text(output.text)];
        let mut result =
            if output.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
        result.structured_content = Some(output.data);
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let caller = McpCaller::from_request(&context, &self.service).await.map_err(resource_error)?;
        let databases = self.service.databases(caller.user()).into_iter().map(|database| {
            Resource::new(format!("{SCHEMA_URI}{}", database.name), format!("schema of {}", database.name))
                .with_description(format!("Tables of {} ({})", database.name, database.dialect))
                .with_mime_type("application/sql")
        });
        let rules = Resource::new(RULES_URI, "rules")
            .with_description("All rules of the static analyzer")
            .with_mime_type("text/markdown");
        Ok(ListResourcesResult::with_all_items(databases.chain([rules]).collect()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let schema = ResourceTemplate::new(format!("{SCHEMA_URI}{{database}}"), "schema")
            .with_description("Tables of a database, as CREATE TABLE")
            .with_mime_type("application/sql");
        let rule = ResourceTemplate::new(format!("{RULE_URI}{{code}}"), "rule")
            .with_description("Documentation of a rule")
            .with_mime_type("text/markdown");
        Ok(ListResourceTemplatesResult::with_all_items(vec![schema, rule]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let caller = McpCaller::from_request(&context, &self.service).await.map_err(resource_error)?;
        let read =
            resources::read_resource(&self.service, caller.user(), &request.uri).await.map_err(resource_error)?;
        let Some(read) = read else {
            let data = Some(json!({ "uri": request.uri }));
            return Err(ErrorData::resource_not_found("there is no such resource", data));
        };
        let contents = ResourceContents::text(read.text, request.uri).with_mime_type(read.mime_type);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}
