//! The code of a struct that is a row.

use esker_format::suggest::near_or_all;
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, Ident, Result, Type};

use crate::attributes::{Attributes, Declared, Default, OfStruct};
use crate::target::Target;

/// One field of the struct.
struct Member<'a> {
    field: &'a syn::Field,
    attributes: Attributes,
}

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let of_struct = OfStruct::parse_all(&input.attrs)?;
    let members = members(input)?;
    let indexes = indexes(&members, &of_struct)?;
    let references = references(&members, &of_struct)?;
    let (name, text) = (&input.ident, input.ident.unraw().to_string());
    let kept = || members.iter().filter(|member| !member.attributes.is_skipped);
    let is_indexed = |member: &Member<'_>| {
        let is_it = |name: &Ident| member.field.ident.as_ref() == Some(name);
        of_struct.iter().any(|index| index.is_index() && index.fields.iter().any(is_it))
    };
    let fields = kept().map(|member| declaration(member, is_indexed(member)));
    let fields = fields.collect::<Result<Vec<_>>>()?;
    let writes = kept().map(write);
    let reads = members.iter().map(read);
    Ok(quote! {
        const _: () = {
            #[automatically_derived]
            #[allow(deprecated)]
            impl ::esker::Record for #name {
                const NAME: &'static ::core::primitive::str = #text;
                const FIELDS: &'static [::esker::record::RecordField] = &[#(#fields),*];
                const INDEXES: &'static [::esker::record::RecordIndex] = &[#(#indexes),*];
                const REFERENCES: &'static [::esker::record::RecordReference] =
                    &[#(#references),*];

                fn write(
                    &self,
                    values: &mut ::esker::record::RecordWriter,
                ) -> ::esker::Result<()> {
                    #(#writes)*
                    ::core::result::Result::Ok(())
                }

                fn read(
                    values: &mut ::esker::record::RecordReader<'_>,
                ) -> ::esker::Result<Self> {
                    ::core::result::Result::Ok(Self { #(#reads),* })
                }
            }

            // The compiler checks the fields here, used or not.
            const _: &[::esker::record::RecordField] = <#name as ::esker::Record>::FIELDS;
        };
    })
}

/// What stands for the code of a record that is refused, so that what uses it is no error, too.
pub(crate) fn stand_in(input: &DeriveInput) -> TokenStream {
    let (name, text) = (&input.ident, input.ident.unraw().to_string());
    let (generics, arguments, conditions) = input.generics.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #generics ::esker::Record for #name #arguments #conditions {
            const NAME: &'static ::core::primitive::str = #text;
            const FIELDS: &'static [::esker::record::RecordField] = &[];

            fn write(&self, _: &mut ::esker::record::RecordWriter) -> ::esker::Result<()> {
                ::core::result::Result::Ok(())
            }

            fn read(_: &mut ::esker::record::RecordReader<'_>) -> ::esker::Result<Self> {
                loop {}
            }
        }
    }
}

/// The indexes that the fields and the struct declare.
fn indexes(members: &[Member<'_>], of_struct: &[OfStruct]) -> Result<Vec<TokenStream>> {
    let mut seen: Vec<Vec<String>> = Vec::new();
    let mut declared = Vec::new();
    let mut declare = |names: Vec<String>, unique: bool, span| {
        if seen.contains(&names) {
            let message = format!("an index on {} is there already", names.join(", "));
            return Err(Error::new(span, message));
        }
        declared.push(quote! {
            ::esker::record::RecordIndex { fields: &[#(#names),*], unique: #unique }
        });
        seen.push(names);
        Ok(())
    };
    for member in members {
        let Attributes { is_indexed, is_unique, .. } = member.attributes;
        if is_indexed || is_unique {
            declare(vec![member.name()], is_unique, member.field.ident.span())?;
        }
    }
    for of_struct in of_struct {
        if let Declared::Index { is_unique } = of_struct.declared {
            declare(names_of(members, of_struct)?, is_unique, of_struct.span)?;
        }
    }
    Ok(declared)
}

/// The references that the fields and the struct declare.
fn references(members: &[Member<'_>], of_struct: &[OfStruct]) -> Result<Vec<TokenStream>> {
    let (mut seen, mut declared) = (Vec::new(), Vec::new());
    let mut declare = |names: Vec<String>, target: &Target, span| {
        let it = (names, target.table.clone());
        if seen.contains(&it) {
            let message =
                format!("a reference of {} to {} is there already", it.0.join(", "), it.1);
            return Err(Error::new(span, message));
        }
        declared.push(target.declaration(&it.0));
        seen.push(it);
        Ok(())
    };
    for member in members {
        if let Some(target) = &member.attributes.target {
            declare(vec![member.name()], target, member.field.ident.span())?;
        }
    }
    for of_struct in of_struct {
        if let Declared::Reference(target) = &of_struct.declared {
            declare(names_of(members, of_struct)?, target, of_struct.span)?;
        }
    }
    Ok(declared)
}

/// The names in the table of the fields that an attribute of the struct is about.
fn names_of(members: &[Member<'_>], of_struct: &OfStruct) -> Result<Vec<String>> {
    of_struct.fields.iter().map(|field| named(members, field)).collect()
}

/// The name in the table of a field of the struct.
fn named(members: &[Member<'_>], field: &Ident) -> Result<String> {
    let kept = || members.iter().filter(|member| !member.attributes.is_skipped);
    if let Some(member) = kept().find(|member| member.field.ident.as_ref() == Some(field)) {
        return Ok(member.name());
    }
    let names: Vec<_> = kept().filter_map(|member| member.field.ident.as_ref()).collect();
    let names: Vec<_> = names.iter().map(|name| name.unraw().to_string()).collect();
    let name = field.unraw().to_string();
    let near = near_or_all(&name, "fields", names.iter().map(String::as_str));
    Err(Error::new(field.span(), format!("unknown field `{name}`{near}")))
}

fn members(input: &DeriveInput) -> Result<Vec<Member<'_>>> {
    let refused = |message: &str| Err(Error::new(input.ident.span(), message));
    let Data::Struct(data) = &input.data else {
        return refused(
            "a row is a struct with named fields; for an enum without fields derive \
             `esker::FieldType`",
        );
    };
    let Fields::Named(fields) = &data.fields else {
        return refused("a row is a struct with named fields: their names are those of the table");
    };
    if let Some(parameter) = input.generics.params.first() {
        let message = "a row owns its values and has no parameters";
        return Err(Error::new(parameter.span(), message));
    }
    let member = |field| Ok(Member { field, attributes: attributes_of(field)? });
    let members = fields.named.iter().map(member).collect::<Result<Vec<_>>>()?;
    if members.iter().all(|member| member.attributes.is_skipped) {
        return refused("a row has at least one field");
    }
    Ok(members)
}

fn attributes_of(field: &syn::Field) -> Result<Attributes> {
    Attributes::parse(&field.attrs)
}

impl Member<'_> {
    fn name(&self) -> String {
        match (&self.attributes.name, &self.field.ident) {
            (Some(name), _) => name.value(),
            (None, Some(name)) => name.unraw().to_string(),
            (None, None) => String::new(),
        }
    }
}

/// The declaration of a field, whose checks the compiler runs.
fn declaration(member: &Member<'_>, is_indexed: bool) -> Result<TokenStream> {
    let (attributes, rust_type, name) = (&member.attributes, &member.field.ty, member.name());
    esker_format::schema::validate_name("field", &name).map_err(|e| {
        let span = attributes.name.as_ref().map_or(member.field.ident.span(), |n| n.span());
        Error::new(span, e)
    })?;
    let labels = &attributes.labels;
    let declared =
        if labels.is_empty() { attributes.data_type } else { Some(esker_format::DataType::Enum) };
    let declared = match declared {
        Some(declared) => {
            let written: TokenStream = match declared {
                esker_format::DataType::List(of) => {
                    format!("List(::esker::ListElement::{of:?})").parse()?
                }
                other => format!("{other:?}").parse()?,
            };
            quote!(::core::option::Option::Some(::esker::DataType::#written))
        }
        None => quote!(::core::option::Option::None),
    };
    let span = at_type(member);
    let mut field = if attributes.is_json {
        let takes_null = is_option(rust_type);
        quote_spanned!(span=> ::esker::record::RecordField::json(#name, #takes_null))
    } else {
        quote_spanned!(span=>
            ::esker::record::RecordField::new::<#rust_type>(#name, #declared))
    };
    if !labels.is_empty() {
        field = quote_spanned!(span=> #field.labels(&[#(#labels),*]));
    }
    if let Some(length) = attributes.length_max {
        field = quote_spanned!(span=> #field.max(#length));
    }
    if let Some(default) = &attributes.default {
        let default = match default {
            Default::Literal(text) => quote!(Literal(#text)),
            Default::Sequence(name) => quote!(Sequence(#name)),
            Default::Computed("now") => quote!(Now),
            Default::Computed(_) => quote!(Uuid),
        };
        field = quote_spanned!(span=>
            #field.default_value(::esker::record::RecordDefault::#default));
    }
    if attributes.is_key {
        field = quote_spanned!(span=> #field.key());
    }
    if is_indexed || attributes.is_indexed || attributes.is_unique {
        field = quote_spanned!(span=> #field.indexed());
    }
    Ok(field)
}

/// Where the type of a field stands, for errors. Names resolve as in all code that is made here:
/// the type may come from somewhere else, such as an argument of a macro that writes the struct.
fn at_type(member: &Member<'_>) -> Span {
    Span::call_site().located_at(member.field.ty.span())
}

/// True where a type is written as an `Option`: serde decides what JSON says for it, so that it
/// cannot be called.
fn is_option(rust_type: &Type) -> bool {
    let Type::Path(path) = rust_type else { return false };
    path.path.segments.last().is_some_and(|segment| segment.ident == "Option")
}

fn write(member: &Member<'_>) -> TokenStream {
    let (name, span) = (&member.field.ident, at_type(member));
    if member.attributes.is_json {
        quote_spanned!(span=> values.json(&self.#name)?;)
    } else {
        quote_spanned!(span=> values.field(&self.#name)?;)
    }
}

fn read(member: &Member<'_>) -> TokenStream {
    let (name, span) = (member.field.ident.to_token_stream(), at_type(member));
    if member.attributes.is_skipped {
        quote_spanned!(span=> #name: ::core::default::Default::default())
    } else if member.attributes.is_json {
        quote_spanned!(span=> #name: values.json()?)
    } else {
        quote_spanned!(span=> #name: values.field()?)
    }
}
