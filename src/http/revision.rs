//! The `X-Toolrack-Revision` header: which state of a user's and a project's config and catalog an answer shows, and which one a
//! request wants to see at least, whoever answers it. A dictionary (RFC 9651) of whole numbers: `user=12, project=3`.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use crate::http::problem::{Code, Problem};
use crate::service::Revisions;

const REVISION: HeaderName = HeaderName::from_static("x-toolrack-revision");

/// What a request wants to see: one number for a name at most.
pub(super) fn wanted(headers: &HeaderMap) -> Result<Revisions, Problem> {
    let mut wanted = Revisions::default();
    for value in headers.get_all(REVISION) {
        let text = value.to_str().map_err(|_| refused())?;
        for member in text.split(',').map(str::trim).filter(|member| !member.is_empty()) {
            let (name, number) = member.split_once('=').ok_or_else(refused)?;
            let known = match name {
                "user" => &mut wanted.user,
                "project" => &mut wanted.project,
                _ => return Err(refused()),
            };
            let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            let number = number.parse().ok().filter(|_| is_number).ok_or_else(refused)?;
            if known.replace(number).is_some() {
                return Err(refused());
            }
        }
    }
    Ok(wanted)
}

fn refused() -> Problem {
    let detail = "the header X-Toolrack-Revision is not one that an answer had: `user=NUMBER`, `project=NUMBER`, or both \
        with a comma between them, each once";
    Problem::new(Code::InvalidRequest, detail)
}

/// Tells what an answer shows, where that is asked of the database.
pub(super) fn write(shown: &Revisions, headers: &mut HeaderMap) {
    if *shown != Revisions::default()
        && let Ok(value) = HeaderValue::from_str(&shown.to_string())
    {
        headers.insert(REVISION, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_answer_told_is_read_back() {
        let read = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(REVISION, HeaderValue::from_str(value).unwrap());
            }
            wanted(&headers).map_err(|problem| problem.code())
        };
        let both = Revisions { user: Some(12), project: Some(3) };
        let mut headers = HeaderMap::new();
        write(&Revisions::default(), &mut headers);
        assert!(headers.is_empty());
        write(&both, &mut headers);
        assert_eq!(headers[REVISION], "user=12, project=3");
        assert_eq!(wanted(&headers).map_err(|problem| problem.code()), Ok(both));
        assert_eq!(read(&[]), Ok(Revisions::default()));
        assert_eq!(read(&["project=3", "user=12 ,"]), Ok(both));
        assert_eq!(read(&["user=7, user=12"]), Err(Code::InvalidRequest), "which one?");
        assert_eq!(read(&["user=12", "project=3, user=12"]), Err(Code::InvalidRequest));
        for odd in
            ["12", "user", "user=", "user=-1", "user=+1", "user=1.5", "team=1", "user=99999999999999999999"]
        {
            assert_eq!(read(&[odd]), Err(Code::InvalidRequest), "{odd}");
        }
    }
}
