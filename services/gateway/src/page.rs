//! Pages of lists: `page_size`, `page_token`, `next_page_token`.
//!
//! A token says where the list goes on. It is sealed: it is good for the same list, filter and tenant, and whoever has it learns
//! nothing from it. Every gateway reads the tokens of all others, because the key is in the database.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac};
use redial_proto::Tenant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use sha2::Sha256;

use crate::{gateway::Gateway, identity::Identity, problem::Problem};

const SIZE: u32 = 50;
pub(crate) const LARGEST: u32 = 1_000;
/// Bytes of a page: it ends where its entries take more, but has one at least.
pub(crate) const BYTES: usize = 4 * 1024 * 1024;
const SEAL: usize = 16;

/// Which page of a list that is not filtered.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageQuery {
    /// Entries of a page: 1 to 1,000. Default 50.
    page_size: Option<u32>,
    /// `next_page_token` of the answer before.
    page_token: Option<String>,
}

/// The same of a list whose pages are bounded by their bytes, too.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LongPageQuery {
    /// Entries of a page: 1 to 1,000. Default 50. A page has fewer if they are long.
    page_size: Option<u32>,
    /// `next_page_token` of the answer before.
    page_token: Option<String>,
}

/// What a request wants to see of a list, whose positions are `P`.
pub(crate) struct Page<P> {
    pub(crate) size: u32,
    pub(crate) after: Option<P>,
    /// Everything of the list matches.
    pub(crate) is_unfiltered: bool,
    pages: Pages,
}

/// One list, as one tenant filters it.
struct Pages {
    key: Vec<u8>,
    scope: String,
}

impl<P: Serialize + DeserializeOwned> Page<P> {
    /// Reads the page of this list from `page_size` and `page_token`; the other fields of the query are the filter.
    pub(crate) async fn of(
        gateway: &Gateway,
        who: &Identity,
        list: &str,
        query: &impl Serialize,
    ) -> Result<Self, Problem> {
        #[derive(Default, Deserialize)]
        struct Asked {
            page_size: Option<u32>,
            page_token: Option<String>,
        }
        let query = serde_json::to_value(query).unwrap_or_default();
        let Asked { page_size, page_token } = Asked::deserialize(&query).unwrap_or_default();
        let size = page_size.unwrap_or(SIZE);
        if !(1..=LARGEST).contains(&size) {
            return Err(Problem::invalid(format!("page_size is {size}; allowed: 1 to {LARGEST}")));
        }
        let filter = filter(query);
        let is_unfiltered = filter.is_empty();
        let pages = Pages { key: gateway.page_key().await?.to_vec(), scope: scope(&who.tenant, list, filter) };
        let token = page_token.filter(|token| !token.is_empty());
        let after = token.map(|token| pages.open(&token).ok_or_else(wrong_token));
        Ok(Self { size, after: after.transpose()?, is_unfiltered, pages })
    }

    /// Returns the token of the next page; empty if there is none.
    pub(crate) fn next(&self, position: Option<&P>) -> String {
        position.map(|position| self.pages.seal(position)).unwrap_or_default()
    }
}

fn wrong_token() -> Problem {
    Problem::invalid(
        "page_token is not of this list; allowed: next_page_token of an answer to the same request, whose filter must not change",
    )
}

impl Gateway {
    async fn page_key(&self) -> Result<&[u8], Problem> {
        let key = self.page_key.get_or_try_init(|| self.store.page_key()).await?;
        Ok(key)
    }
}

/// Returns the fields of a query that narrow the list.
fn filter(query: Value) -> Map<String, Value> {
    let Value::Object(mut fields) = query else { return Map::new() };
    let narrows = |value: &Value| !value.is_null() && value.as_array().is_none_or(|values| !values.is_empty());
    fields.retain(|name, value| !matches!(name.as_str(), "page_size" | "page_token" | "look_ms") && narrows(value));
    fields
}

/// Names the list: the token of a page is not good for another one.
fn scope(tenant: &Tenant, list: &str, filter: Map<String, Value>) -> String {
    format!("{tenant}\n{list}\n{}", Value::Object(filter))
}

impl Pages {
    /// Seals a position with a MAC of its text, which is hidden by a stream that depends on the seal.
    fn seal(&self, position: &impl Serialize) -> String {
        let mut text = serde_json::to_vec(position).unwrap_or_default();
        let mut token = self.mac(&text).to_vec();
        self.mask(&token, &mut text);
        token.extend(text);
        URL_SAFE_NO_PAD.encode(token)
    }

    fn open<P: DeserializeOwned>(&self, token: &str) -> Option<P> {
        let token = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (seal, text) = token.split_at_checked(SEAL)?;
        let mut text = text.to_vec();
        self.mask(seal, &mut text);
        (self.mac(&text) == seal).then(|| serde_json::from_slice(&text).ok())?
    }

    fn mac(&self, text: &[u8]) -> [u8; SEAL] {
        let mac = hmac(&self.key, &[b"seal", &[0], self.scope.as_bytes(), &[0], text]);
        let mut seal = [0; SEAL];
        seal.copy_from_slice(&mac[..SEAL]);
        seal
    }

    fn mask(&self, seal: &[u8], text: &mut [u8]) {
        for (n, block) in text.chunks_mut(32).enumerate() {
            let stream = hmac(&self.key, &[b"mask", seal, &n.to_be_bytes()]);
            for (byte, mask) in block.iter_mut().zip(stream) {
                *byte ^= mask;
            }
        }
    }
}

/// Computes HMAC-SHA256 of the parts, one behind the other.
fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    // Shorter and longer keys are padded and hashed (RFC 2104), so every length is allowed.
    let Ok(mac) = Hmac::<Sha256>::new_from_slice(key) else { return [0; 32] };
    parts.iter().fold(mac, Mac::chain_update).finalize().into_bytes().into()
}

/// Reads long entries a few at a time, so that a page is bounded by its bytes and not only by their number. `read` gets
/// the position and a number of entries. Returns the entries, and where the next page begins.
pub(crate) async fn by_bytes<T: Serialize, P: Clone, F>(
    page: &Page<P>,
    position: impl Fn(&T) -> P,
    read: impl Fn(Option<P>, u32) -> F,
) -> Result<(Vec<T>, Option<P>), Problem>
where
    F: Future<Output = Result<Vec<T>, Problem>>,
{
    const AT_ONCE: u32 = 50;
    let (mut entries, mut after, mut bytes) = (Vec::new(), page.after.clone(), 0);
    loop {
        let left = page.size - u32::try_from(entries.len()).unwrap_or(page.size);
        if left == 0 {
            return Ok((entries, after));
        }
        let wanted = left.min(AT_ONCE);
        let found = read(after.clone(), wanted).await?;
        let ended = found.len() < wanted as usize;
        for entry in found {
            bytes += serde_json::to_vec(&entry).map_or(0, |json| json.len());
            if bytes > BYTES && !entries.is_empty() {
                return Ok((entries, after));
            }
            after = Some(position(&entry));
            entries.push(entry);
        }
        if ended {
            return Ok((entries, None));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(scope: &str) -> Pages {
        Pages { key: vec![7; 32], scope: scope.to_owned() }
    }

    #[test]
    fn a_token_is_good_for_its_list_only_and_hides_its_position() {
        let position = "01a1f813-c80f-740d-a05c-89d86eeddd01 and more than one block of the mask".to_owned();
        let token = pages("acme").seal(&position);
        assert_eq!(pages("acme").open::<String>(&token), Some(position.clone()));
        assert_eq!(token, pages("acme").seal(&position), "any gateway makes the same");
        assert_eq!(pages("globex").open::<String>(&token), None);
        assert_eq!(pages("acme").open::<u64>(&token), None);
        let decoded = URL_SAFE_NO_PAD.decode(&token).unwrap();
        assert!(!decoded.windows(4).any(|bytes| bytes == b"01a1"));
        for n in 0..decoded.len() {
            let mut changed = decoded.clone();
            changed[n] ^= 1;
            assert_eq!(pages("acme").open::<String>(&URL_SAFE_NO_PAD.encode(changed)), None, "{n}");
        }
        for text in ["", "x", "!!!", "AAAAAAAAAAAAAAAAAAAAAA"] {
            assert_eq!(pages("acme").open::<String>(text), None, "{text}");
        }
    }
}
