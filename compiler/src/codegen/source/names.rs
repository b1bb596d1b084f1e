//! Identifiers of C and C++ made from the names of types.

/// Names that a struct of a CUDA header cannot have: words of C11 and C++20, what CUDA and compilers define everywhere, and its own
/// members.
const RESERVED: &str = "\
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class co_await co_return co_yield \
compl concept const const_cast consteval constexpr constinit continue decltype default delete do double dynamic_cast else enum explicit \
export extern false float for friend goto if inline int long main mutable namespace new noexcept not not_eq nullptr operator or or_eq \
private protected public register reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast std \
struct switch template this thread_local throw true try typedef typeid typename typeof union unsigned using virtual void volatile wchar_t \
while xor xor_eq \
blockDim blockIdx dim3 gridDim linux ptrdiff_t size_t threadIdx unix warpSize \
Index PACK Word extent move move_words pack place size true_lb true_ub unpack";

/// CUDA's vectors are named after these, with a number from 1 to 4.
const VECTORS: &str = "char uchar short ushort int uint long ulong longlong ulonglong float double";

fn is_reserved(name: &str) -> bool {
    let vector =
        name.strip_suffix(['1', '2', '3', '4']).is_some_and(|kind| VECTORS.split(' ').any(|word| word == kind));
    vector || RESERVED.split(' ').any(|word| word == name)
}

/// The identifier that a type's name becomes: letters, digits and single underscores of ASCII, and no name that C, C++ or CUDA
/// uses.
///
/// Every other character becomes an underscore, so that two names may become one.
///
/// ```
/// use dtc_compiler::codegen::source::identifier;
/// assert_eq!(identifier("face-x"), "face_x");
/// assert_eq!(identifier("3d face.v2"), "type_3d_face_v2");
/// assert_eq!(identifier("class"), "type_class");
/// assert_eq!(identifier("double4"), "type_double4");
/// assert_eq!(identifier("größe"), "gr_e");
/// assert_eq!(identifier("--"), "type");
/// ```
pub fn identifier(name: &str) -> String {
    let words: Vec<&str> =
        name.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let plain = words.join("_");
    match plain.chars().next() {
        None => "type".to_owned(),
        Some(first) if first.is_ascii_digit() || is_reserved(&plain) => format!("type_{plain}"),
        Some(_) => plain,
    }
}
