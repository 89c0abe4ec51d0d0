//! Reading a server without storing anything: what the setup shows before a server is kept.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::McpFaultDocument;
use super::args::take_secrets;
use super::spec::{self, McpServerSpec, check_name};
use super::sync::{McpServerInfo, info, of_group, proposed_description};
use crate::core::catalog::{Catalog, CatalogTool, Incoming};
use crate::core::id::Scope;
use crate::core::warning::Warning;
use crate::mcp::{McpBounds, McpListing};
use crate::service::{Error, Toolrack, blocking};

/// What to read.
#[derive(Debug)]
pub struct McpToolsRequest {
    /// For whom it is set up; a stored server of this name lends its headers or variables.
    pub scope: Scope,
    pub name: String,
    pub server: McpServerSpec,
    /// Time for everything.
    pub within: Duration,
}

/// The tools of a server.
#[derive(Debug, Serialize, ToSchema)]
pub struct McpToolsAnswer {
    /// Whether the server listed its tools.
    pub ok: bool,
    /// As an upload takes them, with the server's name as their group.
    #[schema(value_type = Vec<Object>)]
    pub tools: Vec<Box<RawValue>>,
    pub server: McpServerInfo,
    /// A description of the group out of the server's instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_description: Option<String>,
    /// Why the server listed nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<McpFaultDocument>,
    /// Among others, the tools that could not be used.
    pub warnings: Vec<Warning>,
}

impl Toolrack {
    /// Lists the tools of a server; nothing is stored.
    ///
    /// # Errors
    /// What a write of this server would be refused for, below `/server`. What goes wrong with the server is an answer.
    pub async fn mcp_tools(&self, request: McpToolsRequest) -> Result<McpToolsAnswer, Error> {
        let McpToolsRequest { scope, name, server, within } = request;
        check_name(&name)?;
        let mut read = spec::read(server, "/server")?;
        self.check_mcp(&read.stored, "/server")?;
        let before = self.0.store.mcp_server(&scope, &name).await?;
        let mut warnings = Vec::new();
        self.keep_args(before.as_ref(), &mut read, "/server")?;
        let args = take_secrets(&mut read.stored);
        let mut texts = self.kept_texts(before.as_ref(), &read, "/server", &mut warnings);
        texts.extend(args);
        let address = read.stored.address(texts);
        let bounds = self.mcp_bounds();
        let bounds = McpBounds { time: bounds.time.min(within), ..bounds };
        match self.0.tool_source.list(&address, bounds, &|_| {}).await {
            Ok(listing) => self.looked_at(&name, listing, warnings).await,
            Err(failure) => Ok(McpToolsAnswer {
                ok: false,
                tools: Vec::new(),
                server: McpServerInfo::default(),
                group_description: None,
                fault: Some(failure.into()),
                warnings,
            }),
        }
    }

    /// The tools as the service would keep and show them.
    async fn looked_at(
        &self,
        group: &str,
        listing: McpListing,
        mut warnings: Vec<Warning>,
    ) -> Result<McpToolsAnswer, Error> {
        let McpListing { tools, server_name, server_version, instructions } = listing;
        let entries = tools.iter().map(|tool| of_group(tool, group)).collect();
        let upload = self.read_tools(entries, "/tools").await?;
        warnings.extend(upload.warnings);
        let documents = blocking(move || {
            let incoming = upload.tools.into_values().map(|tool| Incoming { tool, counts: None }).collect();
            let (catalog, told) = Catalog::build(incoming, &[]);
            let document = |tool: &Arc<CatalogTool>| {
                let mut json = String::new();
                tool.write_document(&mut json);
                RawValue::from_string(json).ok()
            };
            (catalog.tools().iter().filter_map(document).collect::<Vec<_>>(), told)
        });
        let (tools, told) = documents.await?;
        warnings.extend(told);
        Ok(McpToolsAnswer {
            ok: true,
            tools,
            server: info(server_name.as_deref(), server_version.as_deref()),
            group_description: instructions.as_deref().and_then(proposed_description),
            fault: None,
            warnings,
        })
    }
}
