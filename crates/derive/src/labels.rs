//! The code of an enum that is a field of labels.

use esker_format::labels::Labels;
use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, Result};

use crate::attributes::Attributes;

/// What stands for the code of labels that are refused, so that what uses them is no error, too.
pub(crate) fn stand_in(input: &DeriveInput) -> TokenStream {
    let name = &input.ident;
    let (generics, arguments, conditions) = input.generics.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #generics ::esker::FieldType for #name #arguments #conditions {
            const DATA_TYPE: ::core::option::Option<::esker::DataType> =
                ::core::option::Option::Some(::esker::DataType::Enum);

            fn to_value(&self) -> ::esker::Result<::esker::Value> {
                ::core::result::Result::Ok(::esker::Value::Null)
            }

            fn from_value(_: ::esker::ValueRef<'_>) -> ::core::option::Option<Self> {
                ::core::option::Option::None
            }
        }
    }
}

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    Attributes::parse(&input.attrs)?.allow(&[])?;
    let name = &input.ident;
    let Data::Enum(data) = &input.data else {
        let message = "labels are the variants of an enum; for a struct derive `esker::Record`";
        return Err(Error::new(name.span(), message));
    };
    if let Some(parameter) = input.generics.params.first() {
        let message = "labels have no parameters";
        return Err(Error::new(parameter.span(), message));
    }
    let (mut variants, mut labels) = (Vec::new(), Vec::new());
    for variant in &data.variants {
        let attributes = Attributes::parse(&variant.attrs)?;
        attributes.allow(&["rename"])?;
        if !matches!(variant.fields, Fields::Unit) {
            let message = "a label has no fields; `#[esker(json)]` stores any enum";
            return Err(Error::new(variant.ident.span(), message));
        }
        labels.push(match attributes.name {
            Some(label) => label.value(),
            None => variant.ident.unraw().to_string(),
        });
        variants.push(&variant.ident);
    }
    Labels::new(&labels).map_err(|e| Error::new(name.span(), e))?;
    Ok(quote! {
        #[automatically_derived]
        #[allow(deprecated)]
        impl ::esker::FieldType for #name {
            const DATA_TYPE: ::core::option::Option<::esker::DataType> =
                ::core::option::Option::Some(::esker::DataType::Enum);
            const LABELS: &'static [&'static ::core::primitive::str] = &[#(#labels),*];

            fn to_value(&self) -> ::esker::Result<::esker::Value> {
                ::core::result::Result::Ok(::esker::Value::from(match self {
                    #(Self::#variants => #labels),*
                }))
            }

            fn from_value(value: ::esker::ValueRef<'_>) -> ::core::option::Option<Self> {
                match ::esker::record::label_of(value)? {
                    #(#labels => ::core::option::Option::Some(Self::#variants),)*
                    _ => ::core::option::Option::None,
                }
            }
        }
    })
}
