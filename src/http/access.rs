//! What a role may ask: the table of `core::keys`, by the routes of the API document. A route that is not in both is refused.

use std::collections::HashMap;

use axum::http::{HeaderValue, Method, header};
use utoipa::openapi::OpenApi;

use crate::core::keys::{Access, Role, operation};
use crate::http::openapi::operations_by_method;
use crate::http::problem::{Code, Problem};

/// Routes with who may ask them.
#[derive(Debug, Default)]
pub(crate) struct RouteTable(HashMap<String, Vec<(Method, Access)>>);

impl RouteTable {
    /// Of the operations of a document. One without a row in the table of roles stays out.
    pub(crate) fn of(document: &OpenApi) -> Self {
        let mut table = Self::default();
        for (path, item) in &document.paths.paths {
            for (method, documented) in operations_by_method(item) {
                let row = documented.operation_id.as_deref().and_then(operation);
                if let Some(row) = row {
                    table.add(method, path, row.access);
                }
            }
        }
        table
    }

    pub(crate) fn add(&mut self, method: Method, path: &str, access: Access) {
        self.0.entry(path.to_owned()).or_default().push((method, access));
    }

    /// Whether a role may ask a route; a path that leads nowhere is the router's to answer.
    pub(crate) fn check(&self, route: Option<&str>, method: &Method, role: Role) -> Result<(), Problem> {
        let Some(route) = route else { return Ok(()) };
        let refuse = |detail: String| Err(Problem::new(Code::Forbidden, detail));
        let Some(methods) = self.0.get(route) else {
            return refuse("this route is open to no role".to_owned());
        };
        // A HEAD is answered by the handler of GET.
        let asked = if method == Method::HEAD { &Method::GET } else { method };
        match methods.iter().find(|(known, _)| known == asked) {
            Some((_, access)) if access.allows(role) => Ok(()),
            Some(_) => refuse(format!("a key of the role {role} may not ask this")),
            None => Err(not_taken(method, methods)),
        }
    }
}

fn not_taken(method: &Method, methods: &[(Method, Access)]) -> Problem {
    let mut names: Vec<&str> = methods.iter().map(|(method, _)| method.as_str()).collect();
    if names.contains(&"GET") {
        names.push("HEAD");
    }
    let problem = Problem::method_not_allowed(method);
    match HeaderValue::from_str(&names.join(",")) {
        Ok(allow) => problem.with_header(header::ALLOW, allow),
        Err(_) => problem,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::core::keys::OPERATIONS;
    use crate::http::auth::is_open;
    use crate::http::openapi;

    fn code(table: &RouteTable, route: &str, method: Method, role: Role) -> Option<Code> {
        table.check(Some(route), &method, role).err().map(|problem| problem.code())
    }

    #[test]
    fn every_operation_stands_in_the_table_and_nothing_else() {
        let document = openapi::document();
        let mut documented = HashSet::new();
        for (path, item) in &document.paths.paths {
            for (_, documented_operation) in operations_by_method(item) {
                let id = documented_operation.operation_id.as_deref().unwrap();
                let row = operation(id).unwrap_or_else(|| panic!("{id} has no row in OPERATIONS"));
                assert_eq!(row.access == Access::Open, is_open(path), "{id}");
                documented.insert(row.id);
            }
        }
        for row in OPERATIONS {
            assert!(documented.contains(row.id), "{} is no operation", row.id);
        }
    }

    #[test]
    fn what_is_not_listed_is_refused() {
        let table = RouteTable::of(&openapi::document());
        assert_eq!(code(&table, "/v1/search", Method::POST, Role::Agent), None);
        assert_eq!(code(&table, "/v1/search", Method::POST, Role::Metrics), Some(Code::Forbidden));
        assert_eq!(code(&table, "/v1/search", Method::GET, Role::Admin), Some(Code::MethodNotAllowed));
        assert_eq!(code(&table, "/v1/limits", Method::HEAD, Role::Setup), None);
        assert_eq!(code(&table, "/v1/limits", Method::HEAD, Role::Metrics), Some(Code::Forbidden));
        assert_eq!(code(&table, "/v1/secret", Method::GET, Role::Admin), Some(Code::Forbidden));
        assert_eq!(
            code(&table, "/v1/users/{user}/config", Method::OPTIONS, Role::Admin),
            Some(Code::MethodNotAllowed)
        );
        assert!(table.check(None, &Method::GET, Role::Metrics).is_ok(), "a 404 tells nothing");
    }
}
