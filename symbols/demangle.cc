#include "symbols/demangle.h"

#include "symbols/demangle_internal.h"

namespace tributary {
namespace {

constexpr size_t kLinkageNameBytesMax = 8192;

}  // namespace

std::string Demangle(std::string_view linkage_name) {
  std::optional<std::string> name;
  if (linkage_name.size() <= kLinkageNameBytesMax) {
    if (linkage_name.starts_with("_R")) {
      name = DemangleRustV0(linkage_name);
    } else if (linkage_name.starts_with("_Z")) {
      // Legacy Rust names are also valid C++ names, but C++ demangling shows less of them. So Rust is tried first.
      name = DemangleRustLegacy(linkage_name);
      if (!name) name = DemangleItanium(linkage_name);
    }
  }
  return name ? *std::move(name) : std::string(linkage_name);
}

}  // namespace tributary
