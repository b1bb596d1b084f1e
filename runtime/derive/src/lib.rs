//! `#[derive(Record)]` of dtc-runtime, which exports it and documents it beside the trait.
//!
//! A struct without parameters needs little of Rust's grammar, so this reads tokens itself: dtc-runtime gets no further dependency.

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};
use std::iter::Peekable;

type Tokens = Peekable<proc_macro::token_stream::IntoIter>;

/// Implements `dtc_runtime::Record` for a struct whose fields are records: numbers, arrays and structs of them.
#[proc_macro_derive(Record)]
pub fn derive_record(item: TokenStream) -> TokenStream {
    let text = match Struct::read(item) {
        Ok(found) => found.implementation(),
        Err(message) => format!("::core::compile_error!({message:?});"),
    };
    text.parse().expect("the text is Rust")
}

/// What an implementation needs of a struct.
struct Struct {
    name: String,
    /// Names, or numbers, and types of the fields.
    fields: Vec<(String, String)>,
}

impl Struct {
    fn read(item: TokenStream) -> Result<Struct, String> {
        let mut tokens = item.into_iter().peekable();
        skip_attributes(&mut tokens);
        let expected = |found: &str| format!("derive(Record): expected a struct, found {found}");
        match tokens.next() {
            Some(TokenTree::Ident(word)) if word.to_string() == "struct" => {}
            found => return Err(expected(&found.map_or_else(|| "nothing".to_owned(), |token| token.to_string()))),
        }
        let name = tokens.next().map(|name| name.to_string()).ok_or_else(|| expected("no name"))?;
        let fields = match tokens.next() {
            Some(TokenTree::Group(group)) => fields(&group),
            Some(TokenTree::Punct(mark)) if mark.as_char() == ';' => Vec::new(),
            _ => {
                return Err(format!(
                    "derive(Record): expected {name} without parameters and where clauses, found some"
                ));
            }
        };
        Ok(Struct { name, fields })
    }

    fn implementation(&self) -> String {
        let Struct { name, fields } = self;
        let field = |(field, of): &(String, String)| {
            format!("(::core::mem::offset_of!({name}, {field}), <{of} as ::dtc_runtime::Record>::datatype()?),")
        };
        let fields: String = fields.iter().map(field).collect();
        format!(
            "// SAFETY: the datatype has the fields at their offsets and no other byte. Each is a record, so its bytes are initialised, and
            // any others make a value of it.
            #[automatically_derived]
            unsafe impl ::dtc_runtime::Record for {name} {{
                fn datatype() -> ::core::result::Result<
                    ::dtc_runtime::datatype::Datatype,
                    ::dtc_runtime::datatype::DatatypeError,
                > {{
                    ::dtc_runtime::record::of_fields::<Self>(::std::vec![{fields}])
                }}
            }}"
        )
    }
}

/// The fields in braces or parentheses.
fn fields(group: &Group) -> Vec<(String, String)> {
    let has_names = group.delimiter() == Delimiter::Brace;
    let mut tokens = group.stream().into_iter().peekable();
    let mut fields = Vec::new();
    loop {
        skip_attributes(&mut tokens);
        if tokens.peek().is_none() {
            return fields;
        }
        let name = if has_names {
            let name = tokens.next().map(|name| name.to_string()).unwrap_or_default();
            // The colon.
            tokens.next();
            name
        } else {
            fields.len().to_string()
        };
        fields.push((name, field_type(&mut tokens)));
    }
}

/// Takes a type up to the comma behind it.
fn field_type(tokens: &mut Tokens) -> String {
    let (mut taken, mut depth, mut before) = (TokenStream::new(), 0, ' ');
    for token in tokens {
        let mark = if let TokenTree::Punct(mark) = &token { mark.as_char() } else { ' ' };
        match mark {
            ',' if depth == 0 => break,
            '<' => depth += 1,
            // Not the arrow of a function.
            '>' if before != '-' => depth -= 1,
            _ => {}
        }
        before = mark;
        taken.extend([token]);
    }
    taken.to_string()
}

/// Skips attributes and the visibility.
fn skip_attributes(tokens: &mut Tokens) {
    while let Some(token) = tokens.peek() {
        match token {
            // `#` and its brackets.
            TokenTree::Punct(mark) if mark.as_char() == '#' => {
                tokens.next();
                tokens.next();
            }
            TokenTree::Ident(word) if word.to_string() == "pub" => {
                tokens.next();
                if matches!(tokens.peek(), Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis)
                {
                    // Of `pub(crate)`; the type of a tuple's field may be in parentheses, too, which a record cannot be.
                    tokens.next();
                }
            }
            _ => return,
        }
    }
}
