#include "base/json.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "base/utf8.h"

namespace tributary {

void JsonWriter::Separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (has_items_.back()) out_ += ',';
  has_items_.back() = true;
}

void JsonWriter::Open(char c) {
  Separate();
  out_ += c;
  has_items_.push_back(false);
}

void JsonWriter::Close(char c) {
  has_items_.pop_back();
  out_ += c;
}

void JsonWriter::Key(std::string_view key) {
  String(key);
  out_ += ':';
  after_key_ = true;
}

void JsonWriter::String(std::string_view value) {
  Separate();
  out_ += '"';
  while (!value.empty()) {
    size_t n = Utf8SequenceLength(value);
    auto c = static_cast<unsigned char>(value.front());
    if (n == 0) {
      out_ += "\\ufffd";
      n = 1;
    } else if (c == '"' || c == '\\') {
      out_ += '\\';
      out_ += static_cast<char>(c);
    } else if (c < 0x20 || c == 0x7f || c == '<' || c == '>' || c == '&') {
      fmt::format_to(std::back_inserter(out_), "\\u{:04x}", c);
    } else if (n == 2 && c == 0xc2 && static_cast<unsigned char>(value[1]) < 0xa0) {  // C1 controls
      fmt::format_to(std::back_inserter(out_), "\\u{:04x}", static_cast<unsigned char>(value[1]));
    } else {
      out_.append(value.substr(0, n));
    }
    value.remove_prefix(n);
  }
  out_ += '"';
}

void JsonWriter::Number(uint64_t value) {
  Separate();
  fmt::format_to(std::back_inserter(out_), "{}", value);
}
void JsonWriter::Number(int64_t value) {
  Separate();
  fmt::format_to(std::back_inserter(out_), "{}", value);
}
void JsonWriter::Number(double value) {
  Separate();
  if (std::isfinite(value)) {
    fmt::format_to(std::back_inserter(out_), "{}", value);
  } else {
    out_ += "null";
  }
}
void JsonWriter::Bool(bool value) {
  Separate();
  out_ += value ? "true" : "false";
}
void JsonWriter::Null() {
  Separate();
  out_ += "null";
}

}  // namespace tributary
