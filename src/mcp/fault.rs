//! What can go wrong with a server: one closed table.

use crate::core::text::{clip, one_line};

/// Longest account of a failure, in characters: parts of it are the server's own words.
const DETAIL_CHARS: usize = 400;

macro_rules! faults {
    ($($variant:ident $name:literal $help:literal)*) => {
        /// Why a server's tools could not be read.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum McpFault {
            $(#[doc = $help] $variant,)*
        }

        impl McpFault {
            /// All faults.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The stable name, for example `not_mcp`.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// What an administrator can do, in a sentence.
            pub const fn help(self) -> &'static str {
                match self {
                    $(Self::$variant => $help,)*
                }
            }
        }
    };
}

faults! {
    Unreachable "unreachable"
        "Check that the server runs, and that its host and port can be reached from this service."
    RefusedAddress "refused_address"
        "The operator allows private addresses, plain http and single hosts in the settings (rerank.allow_private, rerank.allowed_hosts)."
    NotMcp "not_mcp"
        "Check the path of the URL: streamable HTTP is wanted there (often /mcp), not a web page, a redirect or the older SSE."
    Unauthorized "unauthorized"
        "Send the header that the server asks for, usually Authorization: Bearer KEY; check that its key is still valid."
    Timeout "timeout"
        "Try again; a server that needs longer to start or to list needs a larger mcp.timeout_ms in the settings."
    TooLarge "too_large"
        "Have the server offer fewer tools, or let the operator raise limits.tools_per_catalog."
    CommandNotAllowed "command_not_allowed"
        "The operator names the commands that may be run in the settings (mcp.allow_commands); none is by default."
    CommandFailed "command_failed"
        "Check command, arguments and variables; the end of what it wrote to standard error stands above."
    Protocol "protocol"
        "The server broke the protocol or refused to list its tools; its own log should tell why."
}

/// A fault with what happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpFailure {
    pub fault: McpFault,
    /// What happened, without a full stop; never a body that was not MCP, and never a header.
    pub detail: String,
}

impl McpFailure {
    /// `detail` may hold words of the server: it is put on one line, cleaned and clipped.
    pub fn new(fault: McpFault, detail: impl AsRef<str>) -> Self {
        let line = one_line(detail.as_ref());
        let detail = clip(line.trim_end_matches('.'), DETAIL_CHARS).into_owned();
        Self { fault, detail }
    }
}
