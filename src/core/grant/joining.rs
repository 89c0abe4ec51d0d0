//! Joining the catalogs of a grant: one definition for each stored name, one name on the wire for each tool.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use super::{BridgeTool, Catalogs};
use crate::core::catalog::{Catalog, CatalogTool};
use crate::core::management::ManagementTool;
use crate::core::profile::Profile;
use crate::core::warning::Warning;

/// A tool of a catalog with the catalog's number and its place in it.
pub(super) type Joined<'a> = (u8, usize, &'a Arc<CatalogTool>);

/// Joins user and project by stored name, sorted: the user's definition stays, unless the project's tool overrides
/// and the user's config does not have that tool in `core`. Every clash is a warning.
pub(super) fn join<'a>(
    catalogs: &'a Catalogs,
    in_user_core: impl Fn(&CatalogTool) -> bool,
    warnings: &mut Vec<Warning>,
) -> Vec<Joined<'a>> {
    let numbered = |part: u8, catalog: &'a Arc<Catalog>| {
        (0..).zip(catalog.tools()).map(move |(at, tool)| (part, at, tool))
    };
    let (user, project) = match catalogs {
        Catalogs::Inline(catalog) => return numbered(0, catalog).collect(),
        Catalogs::Stored { user, project } => (user, project),
    };
    let mut joined: Vec<Joined<'a>> = Vec::with_capacity(user.len() + project.len());
    let mut theirs = numbered(1, project).peekable();
    for mine in numbered(0, user) {
        while let Some(next) = theirs.next_if(|next| next.2.stored_name < mine.2.stored_name) {
            joined.push(next);
        }
        let Some(clash) = theirs.next_if(|next| next.2.stored_name == mine.2.stored_name) else {
            joined.push(mine);
            continue;
        };
        let project_wins = clash.2.tool.overrides() && !in_user_core(mine.2);
        let who = if project_wins { "project's (it says override)" } else { "user's" };
        let detail =
            format!("user and project both have `{}`; the {who} definition is used", mine.2.stored_name);
        warnings.push(Warning::new("catalog_clash", detail).for_tool(&*mine.2.stored_name));
        joined.push(if project_wins { clash } else { mine });
    }
    joined.extend(theirs);
    joined
}

/// Wire names of joined tools that must differ from the catalog's own, because the bridge, the management tools or another
/// tool has it. Management names are taken whether the config has these tools or not, so that switching them on renames nothing.
///
/// Names that were changed already, and those of tools that are called like one of ours, claim theirs first: a tool that
/// is called like another one's wire name must not take it over.
pub(super) fn unique_wire_names(
    joined: &[Joined<'_>],
    bridge_prefix: &str,
    profile: Profile,
) -> Vec<Option<String>> {
    let bridge = BridgeTool::ALL.iter().map(|tool| tool.name(bridge_prefix));
    let management = ManagementTool::ALL.iter().map(|tool| tool.name(bridge_prefix));
    let own: Vec<String> = bridge.chain(management).collect();
    let mut taken: HashSet<Cow<'_, str>> = own.iter().map(|name| Cow::Borrowed(name.as_str())).collect();
    let place = |at: &usize| {
        let tool = joined[*at].2;
        let changed = tool.wire_name() != &*tool.stored_name;
        match (changed, own.iter().any(|name| name == tool.wire_name())) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => 2,
        }
    };
    let mut order: Vec<usize> = (0..joined.len()).collect();
    order.sort_by_key(place);
    let mut renamed = vec![None; joined.len()];
    for at in order {
        let tool = joined[at].2;
        let usual = tool.wire_name();
        let wanted = if profile.limits().names.fits(usual) {
            Cow::Borrowed(usual)
        } else {
            profile.wire_name(&tool.stored_name)
        };
        if taken.insert(wanted.clone()) {
            renamed[at] = (wanted != usual).then(|| wanted.into_owned());
            continue;
        }
        let numbered = (1..).map(|n| match n {
            1 => profile.with_suffix(&tool.stored_name),
            n => profile.with_suffix(&format!("{}#{n}", tool.stored_name)),
        });
        renamed[at] = numbered.into_iter().find(|name| taken.insert(Cow::Owned(name.clone())));
    }
    renamed
}
