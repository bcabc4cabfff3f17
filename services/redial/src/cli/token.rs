//! What `redial token` is told.

use clap::{Args, Subcommand};
use redial_proto::{ApiToken, Tenant, TokenExpiry, TokenId, User, UserRole, token::TOKEN_VALIDITY_S};

use super::values;

/// How long a token may be valid, in words.
const EXPIRIES: &str = "allowed: 1m to 3650days, such as 30days, or never";

#[derive(Subcommand, Debug)]
pub(crate) enum TokenCommand {
    /// Create a token and print it; it is not shown again
    ///
    /// Needs the role admin. If dispatchers have an access file, it must give the user of the token all of its roles.
    Create(TokenCreateArgs),
    /// List tokens, newest first; never their secrets
    List(TokenListArgs),
    /// Revoke a token, and those that were created with it: within seconds no gateway accepts them any more
    ///
    /// Needs the role admin. Prints which tokens were created with it, or with one of those.
    Revoke {
        /// The token's id, or the whole token
        #[arg(value_parser = id)]
        id: TokenId,
        /// Leave the tokens valid that were created with it
        #[arg(long)]
        keep_descendants: bool,
    },
}

#[derive(Args, Debug)]
pub(crate) struct TokenCreateArgs {
    /// The user that it stands for; of another tenant, as TENANT.USER, only for admins of the tenant default [default: who asks]
    #[arg(long = "for", value_name = "USER", value_parser = owner)]
    pub(crate) owner: Option<Owner>,
    /// What it may do: a list of submit, inline, read, operate, admin, tokens
    #[arg(long, value_name = "ROLES", value_delimiter = ',', default_value = "submit,read", value_parser = values::user_role())]
    pub(crate) roles: Vec<UserRole>,
    /// How long it is valid: 1m to 3650days, or never
    #[arg(long, value_name = "DURATION", default_value = "90days", value_parser = expiry)]
    pub(crate) expires: TokenExpiry,
    /// What it is for, in up to 100 characters
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct TokenListArgs {
    /// Include revoked and expired ones, which are kept for 90 days
    #[arg(long)]
    pub(crate) all: bool,
    /// Only tokens of this user
    #[arg(long = "for", value_name = "USER")]
    pub(crate) owner: Option<User>,
    /// Maximum number of entries
    #[arg(long, default_value_t = 50, value_parser = values::number(1..=u32::MAX))]
    pub(crate) limit: u32,
    /// Only tokens created before this one: the next page
    #[arg(long, value_name = "ID")]
    pub(crate) before: Option<TokenId>,
    /// Print all columns and exact times, however long lines get
    #[arg(long)]
    pub(crate) wide: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Owner {
    pub(crate) tenant: Option<Tenant>,
    pub(crate) user: User,
}

fn owner(text: &str) -> Result<Owner, String> {
    let (tenant, user) = match text.split_once('.') {
        Some((tenant, user)) => (Some(tenant.parse()?), user),
        None => (None, text),
    };
    Ok(Owner { tenant, user: user.parse()? })
}

fn expiry(text: &str) -> Result<TokenExpiry, String> {
    if text == "never" {
        return Ok(TokenExpiry::Never);
    }
    let seconds = redial_proto::duration::parse(text).ok().map(|duration| duration.as_secs());
    let seconds = seconds.filter(|seconds| TOKEN_VALIDITY_S.contains(seconds));
    seconds.map(TokenExpiry::AfterSeconds).ok_or_else(|| EXPIRIES.to_owned())
}

/// Reads an id; of a token that was found somewhere, people have the whole text.
fn id(text: &str) -> Result<TokenId, String> {
    text.parse().or_else(|wrong| text.parse::<ApiToken>().map(|token| token.id).map_err(|_| wrong))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_tokens_are_read() {
        assert_eq!(expiry("never"), Ok(TokenExpiry::Never));
        assert_eq!(expiry("30days"), Ok(TokenExpiry::AfterSeconds(2_592_000)));
        for wrong in ["", "30", "59s", "11years", "soon"] {
            assert_eq!(expiry(wrong).unwrap_err(), EXPIRIES, "{wrong:?}");
        }
        let read =
            |text: &str| owner(text).map(|owner| (owner.tenant.map(|name| name.to_string()), owner.user.to_string()));
        assert_eq!(read("alice"), Ok((None, "alice".to_owned())));
        assert_eq!(read("acme.alice"), Ok((Some("acme".to_owned()), "alice".to_owned())));
        assert!(read("a.b.c").is_err() && read("").is_err() && read(".b").is_err());
        let token = ApiToken::of_random(&[7; 40]);
        assert_eq!(id(&token.text()), Ok(token.id.clone()));
        assert_eq!(id(token.id.as_str()), Ok(token.id));
        assert!(id("rdl_x_y").unwrap_err().contains("are allowed"));
    }
}
