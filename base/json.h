#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tributary {

// Writes JSON (RFC 8259) into a string. Adds the commas, and escapes strings. Ill-formed UTF-8 becomes U+FFFD. Control
// characters, `<`, `>` and `&` are written as \u00XX, so the text is safe in a terminal and inside an HTML page.
// Integers are written with all their digits. A program that reads numbers as doubles gets only integers up to 2^53
// exactly.
//
//   JsonWriter json;
//   json.BeginObject();
//   json.Key("total"); json.Number(42);
//   json.EndObject();
//   std::move(json).Take();
class JsonWriter {
 public:
  void BeginObject() { Open('{'); }
  void EndObject() { Close('}'); }
  void BeginArray() { Open('['); }
  void EndArray() { Close(']'); }
  void Key(std::string_view key);
  void String(std::string_view value);
  void Number(uint64_t value);
  void Number(int64_t value);
  void Number(uint32_t value) { Number(uint64_t{value}); }
  void Number(int32_t value) { Number(int64_t{value}); }
  void Number(double value);  // NaN and infinities become null
  void Bool(bool value);
  void Null();

  template <typename T>
  void Field(std::string_view key, const T& value) {
    Key(key);
    if constexpr (std::is_same_v<T, bool>) {
      Bool(value);
    } else if constexpr (std::is_arithmetic_v<T>) {
      Number(value);
    } else {
      String(value);
    }
  }

  std::string Take() && { return std::move(out_); }

 private:
  void Open(char c);
  void Close(char c);
  void Separate();

  std::string out_;
  std::vector<bool> has_items_{false};
  bool after_key_ = false;
};

}  // namespace tributary
