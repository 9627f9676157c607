#include <llvm/Demangle/Demangle.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/number.h"
#include "symbols/demangle_internal.h"

namespace tributary {
namespace {

struct Escape {
  std::string_view code, text;
};
constexpr std::array<Escape, 8> kEscapes = {
    {{"SP", "@"}, {"BP", "*"}, {"RF", "&"}, {"LT", "<"}, {"GT", ">"}, {"LP", "("}, {"RP", ")"}, {"C", ","}}};

void AppendUtf8(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out.push_back(static_cast<char>(0xc0 | c >> 6));
    out.push_back(static_cast<char>(0x80 | (c & 0x3f)));
  } else if (c < 0x10000) {
    out.push_back(static_cast<char>(0xe0 | c >> 12));
    out.push_back(static_cast<char>(0x80 | (c >> 6 & 0x3f)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3f)));
  } else {
    out.push_back(static_cast<char>(0xf0 | c >> 18));
    out.push_back(static_cast<char>(0x80 | (c >> 12 & 0x3f)));
    out.push_back(static_cast<char>(0x80 | (c >> 6 & 0x3f)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3f)));
  }
}

// `code` stands between two `$`: a letter code, or `u` and a code point in hex. Returns false if it is not an escape.
bool AppendEscape(std::string& out, std::string_view code) {
  for (const Escape& escape : kEscapes) {
    if (code == escape.code) {
      out += escape.text;
      return true;
    }
  }
  if (code.size() < 2 || code.size() > 7 || code[0] != 'u') return false;
  const std::optional<uint32_t> c = ParseNumber<uint32_t>(code.substr(1), 16);
  if (!c || *c < 0x20 || *c == 0x7f || *c > 0x10ffff || (*c >= 0xd800 && *c < 0xe000)) return false;
  AppendUtf8(out, *c);
  return true;
}

void AppendLegacyPart(std::string& out, std::string_view part) {
  // An identifier may not begin with an escape, so a `_` precedes the escape.
  if (part.starts_with("_$")) part.remove_prefix(1);
  while (!part.empty()) {
    if (part.starts_with("..")) {
      out += "::";
      part.remove_prefix(2);
      continue;
    }
    size_t end = part[0] == '$' ? part.find('$', 1) : std::string_view::npos;
    if (end != std::string_view::npos && AppendEscape(out, part.substr(1, end - 1))) {
      part.remove_prefix(end + 1);
      continue;
    }
    out.push_back(part[0]);
    part.remove_prefix(1);
  }
}

bool IsLegacyHash(std::string_view part) {
  return part.size() == 17 && part[0] == 'h' && part.find_first_not_of("0123456789abcdef", 1) == std::string_view::npos;
}

// Removes the suffix that compilers append to a function they split or made local. Readers of Rust do not need it.
std::string_view WithoutLlvmSuffix(std::string_view name) { return name.substr(0, name.find(".llvm.")); }

// Returns an upper bound of the length of a v0 name's text, before anything is written. `B<base-62>_` refers to an
// earlier position. Its text comes from the stretch between that position and the reference, and costs at most as much
// as that stretch. Every letter `B` that could be such a reference counts as one.
uint64_t RustV0BytesMax(std::string_view name) {
  constexpr uint64_t kBytesPerLetter = 16;
  constexpr uint64_t kEnough = uint64_t{1} << 40;
  std::vector<uint64_t> cost_before(name.size() + 1, 0);
  for (size_t i = 0; i < name.size(); ++i) {
    uint64_t cost = kBytesPerLetter;
    if (name[i] == 'B') {
      // Base 62: "_" is 0, "0_" is 1. Positions count from after "_R".
      uint64_t target = 0;
      size_t j = i + 1;
      for (; j < name.size() && name[j] != '_' && target < name.size(); ++j) {
        char c = name[j];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'z' ? c - 'a' + 10
                    : c >= 'A' && c <= 'Z' ? c - 'A' + 36
                                           : -1;
        if (digit < 0) break;
        target = target * 62 + static_cast<uint64_t>(digit);
      }
      bool complete = j < name.size() && name[j] == '_';
      if (j > i + 1) ++target;
      target += 2;
      if (complete && target < i) cost += cost_before[i] - cost_before[target];
    }
    cost_before[i + 1] = std::min(cost_before[i] + cost, kEnough);
  }
  return cost_before.back();
}

struct Free {
  void operator()(char* p) const { free(p); }
};

}  // namespace

std::optional<std::string> DemangleRustLegacy(std::string_view name) {
  name = WithoutLlvmSuffix(name);
  if (!name.starts_with("_ZN") || !name.ends_with('E')) return std::nullopt;
  name = name.substr(3, name.size() - 4);
  std::vector<std::string_view> parts;
  while (!name.empty()) {
    const std::optional<size_t> length = TakeNumber<size_t>(name);
    if (!length || *length == 0 || *length > name.size()) return std::nullopt;
    parts.push_back(name.substr(0, *length));
    name.remove_prefix(*length);
  }
  if (parts.size() < 2 || !IsLegacyHash(parts.back())) return std::nullopt;
  parts.pop_back();
  std::string out;
  for (std::string_view part : parts) {
    if (!out.empty()) out += "::";
    AppendLegacyPart(out, part);
  }
  return out;
}

std::optional<std::string> DemangleRustV0(std::string_view name) {
  name = WithoutLlvmSuffix(name);
  if (RustV0BytesMax(name) > kDemangledBytesMax) return std::nullopt;
  std::unique_ptr<char, Free> text(llvm::rustDemangle(name));
  if (!text) return std::nullopt;
  return std::string(text.get());
}

}  // namespace tributary
