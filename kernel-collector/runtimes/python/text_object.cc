#include "kernel-collector/runtimes/python/text_object.h"

#include <algorithm>
#include <cstring>

#include "base/status.h"
#include "elf/elf_format.h"

namespace tributary {
namespace {

constexpr uint32_t kReplacement = 0xfffd;

uint32_t CharacterAt(std::string_view characters, size_t index, uint8_t width) {
  uint32_t value = 0;
  std::memcpy(&value, characters.data() + index * width, width);
  return value;
}

// Returns the number of bytes, at most 4.
size_t Encode(uint32_t c, char* out) {
  bool is_surrogate = c >= 0xd800 && c <= 0xdfff;
  bool is_control = c < 0x20 || (c >= 0x7f && c < 0xa0);
  if (is_surrogate || is_control || c > 0x10ffff) c = kReplacement;
  auto put = [&](size_t i, uint32_t value) { out[i] = static_cast<char>(value); };
  auto rest = [&](unsigned shift) { return 0x80 | (c >> shift & 0x3f); };
  if (c < 0x80) {
    put(0, c);
    return 1;
  }
  if (c < 0x800) {
    put(0, 0xc0 | c >> 6);
    put(1, rest(0));
    return 2;
  }
  if (c < 0x10000) {
    put(0, 0xe0 | c >> 12);
    put(1, rest(6));
    put(2, rest(0));
    return 3;
  }
  put(0, 0xf0 | c >> 18);
  put(1, rest(12));
  put(2, rest(6));
  put(3, rest(0));
  return 4;
}

}  // namespace

absl::StatusOr<PythonText> ParsePythonText(const PythonLayout& layout, std::string_view object) {
  if (object.size() < layout.text_ascii) return Error(absl::StatusCode::kInvalidArgument, "str: too few bytes");
  PythonText text;
  text.length = ReadElfStruct<uint64_t>(object, layout.text_length);
  text.hash = ReadElfStruct<uint64_t>(object, layout.walk.name_hash);
  const uint32_t state = ReadElfStruct<uint32_t>(object, layout.text_state) >> layout.text_kind_shift;
  text.width = state & 7;
  text.compact = (state >> 3 & 1) != 0;
  const bool is_ascii = (state >> 4 & 1) != 0;
  // Width 0 is a str of before 3.3's representation that no one has read yet. Names never are.
  bool width_known = text.width == 1 || text.width == 2 || text.width == 4;
  if (!width_known || (is_ascii && text.width != 1) || text.length > INT64_MAX / 4) {
    return Error(absl::StatusCode::kInvalidArgument, "str: impossible length or state");
  }
  text.data_offset = text.compact && is_ascii ? layout.text_ascii : layout.text_compact;
  return text;
}

std::string PythonTextToUtf8(std::string_view characters, uint8_t width, size_t bytes_max) {
  std::string out;
  const size_t count = characters.size() / width;
  out.reserve(std::min(count, bytes_max));
  char encoded[4];
  for (size_t i = 0; i < count; ++i) {
    size_t size = Encode(CharacterAt(characters, i, width), encoded);
    if (out.size() + size > bytes_max) break;
    out.append(encoded, size);
  }
  return out;
}

}  // namespace tributary
