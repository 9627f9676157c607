#include "intake/metadata/packed_attributes.h"

#include "base/varint.h"

namespace tributary::intake {
namespace {

void AppendText(std::string& out, std::string_view text) {
  AppendVarint(out, text.size());
  out += text;
}

}  // namespace

uint32_t AttributePacker::NumberOf(std::string_view key) {
  if (const auto found = numbers_.find(key); found != numbers_.end()) return found->second;
  if (keys_.size() >= kKeysMax) return 0;
  keys_.emplace_back(key);
  return numbers_[keys_.back()] = static_cast<uint32_t>(keys_.size());
}

// Writes a key's number, or 0 and the key; then the value.
std::string AttributePacker::Pack(const Attributes& attributes) {
  std::string out;
  for (const Attribute& attribute : attributes) {
    const uint32_t number = NumberOf(attribute.key);
    AppendVarint(out, number);
    if (number == 0) AppendText(out, attribute.key);
    AppendText(out, attribute.value);
  }
  out.shrink_to_fit();
  return out;
}

Attributes AttributePacker::Unpack(std::string_view packed) const {
  Attributes out;
  out.reserve(16);
  VarintReader reader(packed);
  const auto read_text = [&reader] {
    uint64_t size = 0;
    std::string_view text;
    reader.Read(&size);
    reader.ReadBytes(size, &text);
    return std::string(text);
  };
  while (reader.ok() && !reader.AtEnd()) {
    uint64_t number = 0;
    reader.Read(&number);
    Attribute& attribute = out.emplace_back();
    attribute.key = number == 0 ? read_text() : keys_[number - 1];
    attribute.value = read_text();
  }
  return out;
}

}  // namespace tributary::intake
