//! Arguments of commands that hold secrets: sealed beside the variables, masked in all that is stored and shown in clear.

use secrecy::{ExposeSecret as _, SecretString};

use super::Toolrack;
use super::spec::{ReadSpec, StoredSpec};
use super::{Error, McpServerRow, stored_spec};
use crate::core::secret_args::{MASK, masked};

/// Names with their texts.
type Texts = Vec<(String, SecretString)>;

/// What an argument is called among the sealed texts: no variable has such a name.
const PREFIX: &str = "/args/";

/// Takes the secret arguments out of a spec.
pub(super) fn take_secrets(stored: &mut StoredSpec) -> Texts {
    let shown = masked(&stored.args);
    let pairs = stored.args.iter().zip(&shown).enumerate();
    let secrets = pairs.filter(|(_, (arg, shown))| arg != shown);
    let secrets =
        secrets.map(|(at, (arg, _))| (format!("{PREFIX}{at}"), SecretString::from(arg.as_str()))).collect();
    stored.args = shown;
    secrets
}

/// All arguments as they are run with, and the texts that are none.
pub(super) fn opened(args: &[String], texts: Texts) -> (Vec<String>, Texts) {
    let (sealed, others): (Texts, Texts) = texts.into_iter().partition(|(name, _)| name.starts_with(PREFIX));
    let mut args = args.to_vec();
    for (name, text) in sealed {
        let at = name[PREFIX.len()..].parse().ok();
        if let Some(arg) = at.and_then(|at: usize| args.get_mut(at)) {
            text.expose_secret().clone_into(arg);
        }
    }
    (args, others)
}

impl Toolrack {
    /// Puts the stored arguments in the place of those that are sent back masked, where the command and all that is not masked
    /// is the same: a secret goes nowhere else than it was set for.
    ///
    /// # Errors
    /// A masked argument that nothing is stored for.
    pub(super) fn keep_args(
        &self,
        before: Option<&McpServerRow>,
        read: &mut ReadSpec,
        root: &str,
    ) -> Result<(), Error> {
        let stored = &mut read.stored;
        if !stored.args.iter().any(|arg| arg.contains(MASK)) {
            return Ok(());
        }
        let shown = masked(&stored.args);
        let known = before.and_then(|row| {
            let spec = stored_spec(row).ok().filter(|spec| spec.command == stored.command)?;
            let (known, _) = opened(&spec.args, self.open_texts(row)?);
            (masked(&known) == shown).then_some(known)
        });
        for (at, arg) in stored.args.iter_mut().enumerate().filter(|(_, arg)| arg.contains(MASK)) {
            let kept = known.as_ref().and_then(|known| known.get(at)).filter(|kept| !kept.contains(MASK));
            let Some(kept) = kept else {
                let detail = format!(
                    "`{MASK}` stands for a stored value, and none is stored for this command line; send the value itself"
                );
                return Err(Error::invalid(format!("{root}/args/{at}"), "missing_value", detail));
            };
            kept.clone_into(arg);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_arguments_come_back_in_their_places() {
        let args: Vec<String> = ["-y", "tool", "--api-key", "x", "--token=y"].map(str::to_owned).to_vec();
        let mut stored = StoredSpec { args: args.clone(), ..StoredSpec::default() };
        let mut texts = take_secrets(&mut stored);
        assert_eq!(stored.args, ["-y", "tool", "--api-key", "***", "--token=***"]);
        texts.push(("HOME".to_owned(), SecretString::from("/h")));
        let (full, others) = opened(&stored.args, texts);
        assert_eq!(full, args);
        assert_eq!(others.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["HOME"]);
    }
}
