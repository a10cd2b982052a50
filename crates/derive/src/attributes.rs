//! What `#[esker(…)]` says of one field or variant, and of the struct.

use esker_format::DataType;
use esker_format::labels::Labels;
use esker_format::suggest::near_or_all;
use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Expr, ExprLit, ExprUnary, Ident, Lit, LitInt, LitStr, Result, Token, UnOp,
};

use crate::target::Target;

/// Of a field; the last excludes all others.
const KNOWN: [&str; 11] =
    ["key", "rename", "type", "max", "labels", "default", "json", "index", "unique", "ref", "skip"];

/// Of a struct.
const OF_STRUCT: [&str; 3] = ["index", "unique", "ref"];

/// What others call a field that refers to a row of another table.
const REFERENCES: [&str; 3] = ["references", "foreign", "foreign_key"];

/// What a field gets in a row that is written without a value for it.
pub(crate) enum Default {
    /// A literal, as text.
    Literal(String),
    /// A function without arguments: `now` or `uuid`.
    Computed(&'static str),
    /// The next value of the sequence of a name.
    Sequence(String),
}

/// The attributes of one field.
#[derive(std::default::Default)]
pub(crate) struct Attributes {
    pub is_key: bool,
    pub is_json: bool,
    pub is_skipped: bool,
    pub is_indexed: bool,
    pub is_unique: bool,
    pub name: Option<LitStr>,
    pub data_type: Option<DataType>,
    pub length_max: Option<u32>,
    pub labels: Vec<String>,
    pub default: Option<Default>,
    pub target: Option<Target>,
    /// Where each of them stands.
    seen: Vec<(&'static str, Span)>,
}

impl Attributes {
    pub fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut found = Self::default();
        for attribute in attributes.iter().filter(|a| a.path().is_ident("esker")) {
            attribute.parse_nested_meta(|meta| found.take(&meta))?;
        }
        found.check()?;
        Ok(found)
    }

    fn take(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let name = known(meta, &KNOWN)?;
        if self.span(name).is_some() {
            return Err(meta.error(format!("`{name}` is given twice")));
        }
        self.seen.push((name, meta.path.span()));
        match name {
            "key" => self.is_key = true,
            "json" => self.is_json = true,
            "skip" => self.is_skipped = true,
            "index" | "unique" | "ref" if meta.input.peek(syn::token::Paren) => {
                let message = format!("`{name}` of several fields stands at the struct");
                return Err(meta.error(message));
            }
            "index" => self.is_indexed = true,
            "unique" => self.is_unique = true,
            "rename" => self.name = Some(meta.value()?.parse()?),
            "type" => {
                let text: LitStr = meta.value()?.parse()?;
                self.data_type = Some(data_type(&text)?);
            }
            "max" => {
                let number: LitInt = meta.value()?.parse()?;
                let length = number.base10_parse().ok().filter(|length| *length > 0);
                let expected = format!("expected a length of 1 to {}", u32::MAX);
                self.length_max = Some(length.ok_or_else(|| Error::new(number.span(), expected))?);
            }
            "labels" => self.labels = labels(meta)?,
            "ref" => self.target = Some(Target::parse(&meta.value()?.parse()?, 1)?),
            _ => self.default = Some(default(meta)?),
        }
        Ok(())
    }

    fn span(&self, name: &str) -> Option<Span> {
        self.seen.iter().find(|(seen, _)| *seen == name).map(|(_, span)| *span)
    }

    /// Refuses what does not go together.
    fn check(&self) -> Result<()> {
        let excluding = [
            ("skip", &KNOWN[..10]),
            ("json", &["key", "type", "max", "labels", "default", "index", "unique", "ref"]),
            ("labels", &["type", "max"]),
            ("unique", &["index"]),
        ];
        for (one, others) in excluding {
            let together = others.iter().find_map(|other| Some((other, self.span(other)?)));
            if let (Some(_), Some((other, span))) = (self.span(one), together) {
                let message = format!("`{other}` has no meaning beside `{one}`");
                return Err(Error::new(span, message));
            }
        }
        Ok(())
    }

    /// Refuses all attributes but some.
    pub fn allow(&self, allowed: &[&str]) -> Result<()> {
        match self.seen.iter().find(|(name, _)| !allowed.contains(name)) {
            Some((name, span)) => Err(Error::new(*span, format!("`{name}` has no meaning here"))),
            None => Ok(()),
        }
    }
}

/// Which of the known attributes one is.
fn known(meta: &ParseNestedMeta<'_>, known: &[&'static str]) -> Result<&'static str> {
    let written = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
    if let Some(name) = known.iter().find(|known| **known == written) {
        return Ok(name);
    }
    let is = |names: &[&str]| names.contains(&written.as_str());
    Err(meta.error(if is(&REFERENCES) {
        format!("unknown attribute `{written}`: a reference is written `ref = \"table\"`")
    } else if is(&KNOWN) {
        format!("`{written}` has no meaning here: it stands at a field")
    } else {
        let near = near_or_all(&written, "attributes", known.iter().copied());
        format!("unknown attribute `{written}`{near}")
    }))
}

/// What an attribute of a struct declares of several of its fields.
pub(crate) struct OfStruct {
    pub declared: Declared,
    /// The fields, by their names in Rust.
    pub fields: Vec<Ident>,
    pub span: Span,
}

/// What is declared of several fields.
pub(crate) enum Declared {
    Index { is_unique: bool },
    Reference(Target),
}

impl OfStruct {
    /// What the attributes of a struct say.
    pub fn parse_all(attributes: &[Attribute]) -> Result<Vec<Self>> {
        let mut found = Vec::new();
        for attribute in attributes.iter().filter(|a| a.path().is_ident("esker")) {
            attribute.parse_nested_meta(|meta| {
                found.push(Self::parse(&meta)?);
                Ok(())
            })?;
        }
        Ok(found)
    }

    fn parse(meta: &ParseNestedMeta<'_>) -> Result<Self> {
        let name = known(meta, &OF_STRUCT)?;
        let example = match name {
            "ref" => "ref(city, street) = \"places(city, street)\"".to_owned(),
            _ => format!("{name}(city, born)"),
        };
        let expected = format!("expected the fields of the struct: `{example}`");
        if !meta.input.peek(syn::token::Paren) {
            return Err(meta.error(expected));
        }
        let content;
        syn::parenthesized!(content in meta.input);
        let fields = Punctuated::<Ident, Token![,]>::parse_terminated(&content);
        let fields = fields.map_err(|e| Error::new(e.span(), &expected))?;
        let fields: Vec<Ident> = fields.into_iter().collect();
        if fields.is_empty() {
            return Err(meta.error(expected));
        }
        let declared = match name {
            "ref" => {
                let text = meta.value().and_then(|value| value.parse());
                let text = text.map_err(|e| Error::new(e.span(), &expected))?;
                Declared::Reference(Target::parse(&text, fields.len())?)
            }
            _ => Declared::Index { is_unique: name == "unique" },
        };
        Ok(Self { declared, fields, span: meta.path.span() })
    }

    /// Whether it is an index.
    pub fn is_index(&self) -> bool {
        matches!(self.declared, Declared::Index { .. })
    }
}

fn data_type(text: &LitStr) -> Result<DataType> {
    let found = text.value().parse().map_err(|e| Error::new(text.span(), e))?;
    match found {
        DataType::Enum => {
            let message = "an enum has labels: `#[esker(labels(small, large))]`";
            Err(Error::new(text.span(), message))
        }
        found => Ok(found),
    }
}

/// `(small, "very large")`.
fn labels(meta: &ParseNestedMeta<'_>) -> Result<Vec<String>> {
    let mut labels = Vec::new();
    let content;
    syn::parenthesized!(content in meta.input);
    while !content.is_empty() {
        let label = match content.peek(LitStr) {
            true => content.parse::<LitStr>()?.value(),
            false => content.parse::<Ident>()?.unraw().to_string(),
        };
        labels.push(label);
        if !content.is_empty() {
            content.parse::<Token![,]>()?;
        }
    }
    Labels::new(&labels).map_err(|e| meta.error(e))?;
    Ok(labels)
}

fn default(meta: &ParseNestedMeta<'_>) -> Result<Default> {
    let value: Expr = meta.value()?.parse()?;
    let computed = match &value {
        Expr::Path(path) => ["now", "uuid"].into_iter().find(|name| path.path.is_ident(name)),
        Expr::Call(call) if is_sequence(&call.func) => match call.args.first() {
            Some(Expr::Lit(ExprLit { lit: Lit::Str(name), .. })) if call.args.len() == 1 => {
                return Ok(Default::Sequence(name.value()));
            }
            _ => return Err(Error::new(call.span(), "expected `sequence(\"name\")`")),
        },
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => {
            if let Some(text) = number(expr) {
                return Ok(Default::Literal(format!("-{text}")));
            }
            None
        }
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => {
            return Ok(Default::Literal(text.value()));
        }
        Expr::Lit(ExprLit { lit: Lit::Bool(value), .. }) => {
            return Ok(Default::Literal(value.value.to_string()));
        }
        other => match number(other) {
            Some(text) => return Ok(Default::Literal(text)),
            None => None,
        },
    };
    computed.map(Default::Computed).ok_or_else(|| {
        let message = "expected a literal such as `3` or `\"text\"`, or `now`, `uuid` or \
                       `sequence(\"name\")`";
        Error::new(value.span(), message)
    })
}

fn is_sequence(function: &Expr) -> bool {
    matches!(function, Expr::Path(path) if path.path.is_ident("sequence"))
}

fn number(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => Some(number.base10_digits().into()),
        Expr::Lit(ExprLit { lit: Lit::Float(number), .. }) => Some(number.base10_digits().into()),
        _ => None,
    }
}
