#include "kernel-collector/runtimes/python/code_object.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "elf/elf_format.h"
#include "kernel-collector/runtimes/python/line_table.h"
#include "kernel-collector/runtimes/python/text_object.h"

namespace tributary {
namespace {

constexpr uint64_t kAddressMax = uint64_t{1} << 56;
static_assert(256 + 4 * 96 * 2 + 4 * (kPythonFileBytesMax + 2 * kPythonNameBytesMax) + kPythonLineTableBytesMax <
              RuntimeBinary::kObjectBytesMax);

class PythonFunction : public RuntimeFunction {
 public:
  explicit PythonFunction(PythonLines lines) : lines_(std::move(lines)) {}
  uint32_t LineAt(int32_t position) const override { return lines_.LineAt(position); }
  bool HasLinesOf(const RuntimeFunction& other) const override {
    const auto* function = dynamic_cast<const PythonFunction*>(&other);
    return function != nullptr && function->lines_ == lines_;
  }
  size_t bytes() const override { return sizeof(*this) + name.capacity() + file.capacity() + lines_.bytes(); }

 private:
  const PythonLines lines_;
};

absl::Status Changed(std::string_view what) {
  return Error(absl::StatusCode::kDataLoss, fmt::format("code object: {}", what));
}
absl::Status Malformed(std::string_view what) {
  return Error(absl::StatusCode::kInvalidArgument, fmt::format("code object: {}", what));
}

// One attempt to read one code object.
class Reader {
 public:
  Reader(const PythonLayout& layout, const PythonTypes& types, ProcessMemory& memory, const CodeObject& object)
      : layout_(layout), types_(types), memory_(memory), object_(object), code_(layout.code_bytes, '\0') {}

  absl::StatusOr<std::shared_ptr<const RuntimeFunction>> Run() {
    RETURN_IF_ERROR(ReadCode());
    RETURN_IF_ERROR(ReadHeaders());
    RETURN_IF_ERROR(ReadContents());
    const auto line = static_cast<int32_t>(Code<uint32_t>(layout_.code_first_line));
    const uint32_t first_line = line > 0 ? static_cast<uint32_t>(line) : 0;
    auto function = std::make_shared<PythonFunction>(
        PythonLines(layout_.lines, lines_.content, first_line, lines_.content.size() < lines_.size));
    const Text& name = layout_.code_qualified_name != 0 ? qualified_name_ : name_;
    function->name = PythonTextToUtf8(name.content, name.parsed.width, kPythonNameBytesMax);
    if (function->name.empty()) function->name = "<unnamed>";
    function->file = PythonTextToUtf8(file_.content, file_.parsed.width, kPythonFileBytesMax);
    function->first_line = first_line;
    function->is_hidden = IsHelper() && function->LineAt(0) == 0;
    return function;
  }

 private:
  using Part = ProcessMemory::Part;
  struct Text {
    uint64_t address = 0;
    std::string header;
    PythonText parsed;
    uint64_t data = 0;  // address of the characters
    std::string content;
  };
  struct Bytes {
    uint64_t address = 0;
    std::string header;
    uint64_t size = 0;
    std::string content;
  };

  template <typename T>
  T Code(uint16_t offset) const {
    return ReadElfStruct<T>(code_, offset);
  }
  absl::Status LinkAt(uint16_t offset, uint64_t* address) const {
    *address = Code<uint64_t>(offset);
    bool possible = *address != 0 && *address % 8 == 0 && *address < kAddressMax;
    return possible ? absl::OkStatus() : Malformed("an impossible link");
  }

  absl::Status ReadCode() {
    if (object_.address == 0 || object_.address >= kAddressMax) return Malformed("an impossible address");
    const Part part{object_.address, code_};
    RETURN_IF_ERROR(memory_.Read({&part, 1}));
    if (types_.code != 0 && Code<uint64_t>(layout_.type) != types_.code) return Changed("the type is another one");
    // Python's allocator writes a link over the count of references when it frees an object. Free-threaded objects
    // have other fields there. Bits from 48 on are flags.
    const uint64_t references = Code<uint64_t>(static_cast<uint16_t>(layout_.type - 8)) << 16 >> 16;
    const bool was_freed = layout_.counts_references && (references == 0 || references >> 40 != 0);
    return was_freed ? Changed("it was freed") : absl::OkStatus();
  }

  // The check's words are the fields of the code object in ascending order, then the hash of co_name.
  uint32_t Check() const {
    uint64_t hash = 0;
    for (unsigned i = 0; i < layout_.walk.check_bytes; i += 8) {
      hash = TRIB_CHECK_ADD(hash, Code<uint64_t>(static_cast<uint16_t>(layout_.walk.check_first + i)));
    }
    hash = TRIB_CHECK_ADD(hash, name_.parsed.hash);
    return static_cast<uint32_t>(hash >> 32);
  }

  std::vector<Text*> Texts() {
    std::vector<Text*> texts = {&name_, &file_};
    if (layout_.code_qualified_name != 0) texts.push_back(&qualified_name_);
    return texts;
  }

  // From 3.12 on, a class that is called gets a frame between the caller and __init__, with a code object of the
  // interpreter's own (_Py_InitCleanup). One object is its file, its name and its qualified name, and it has no lines.
  bool IsHelper() const {
    return qualified_name_.address == name_.address && file_.address == name_.address && name_.parsed.length != 0;
  }

  absl::Status ReadHeaders() {
    RETURN_IF_ERROR(LinkAt(layout_.code_name, &name_.address));
    RETURN_IF_ERROR(LinkAt(layout_.code_filename, &file_.address));
    if (layout_.code_qualified_name != 0) {
      RETURN_IF_ERROR(LinkAt(layout_.code_qualified_name, &qualified_name_.address));
    }
    RETURN_IF_ERROR(LinkAt(layout_.code_line_table, &lines_.address));
    std::vector<Part> parts;
    for (Text* text : Texts()) {
      text->header.resize(layout_.text_ascii);
      parts.push_back({text->address, text->header});
    }
    lines_.header.resize(layout_.bytes_size + 8u);
    parts.push_back({lines_.address, lines_.header});
    RETURN_IF_ERROR(memory_.Read(parts));
    return ParseHeaders();
  }

  absl::Status ParseHeaders() {
    // The hash is all that the check needs. Compare the checks before the rest is judged.
    name_.parsed.hash = ReadElfStruct<uint64_t>(name_.header, layout_.walk.name_hash);
    if (Check() != object_.check) return Changed("it is another one");
    for (Text* text : Texts()) {
      ASSIGN_OR_RETURN(text->parsed, ParsePythonText(layout_, text->header));
      // A name may be of a class that is derived from str, but then it is not compact.
      bool right_type = !text->parsed.compact || types_.text == 0 ||
                        ReadElfStruct<uint64_t>(text->header, layout_.type) == types_.text;
      if (!right_type) return Malformed("a name is no str");
    }
    if (types_.bytes != 0 && ReadElfStruct<uint64_t>(lines_.header, layout_.type) != types_.bytes) {
      return Malformed("the line table is no bytes object");
    }
    lines_.size = ReadElfStruct<uint64_t>(lines_.header, layout_.bytes_size);
    if (lines_.size > INT64_MAX) return Malformed("the line table has an impossible size");
    return absl::OkStatus();
  }

  // Finds the characters of texts that are not stored in the object itself.
  absl::Status FollowTexts() {
    std::vector<Part> parts;
    for (Text* text : Texts()) {
      text->data = text->address + text->parsed.data_offset;
      if (text->parsed.compact) continue;
      parts.push_back({text->data, {reinterpret_cast<char*>(&text->data), sizeof(text->data)}});
    }
    if (parts.empty()) return absl::OkStatus();
    RETURN_IF_ERROR(memory_.Read(parts));
    for (const Text* text : Texts()) {
      if (text->data == 0 || text->data >= kAddressMax) return Malformed("an impossible link");
    }
    return absl::OkStatus();
  }

  // Reads the contents, and after them the headers and the code object again, in this order. If these are as before,
  // the contents belong to the code object, which owns its names and its line table.
  absl::Status ReadContents() {
    RETURN_IF_ERROR(FollowTexts());
    std::vector<Part> parts;
    for (Text* text : Texts()) {
      size_t limit = text == &file_ ? kPythonFileBytesMax : kPythonNameBytesMax;
      if (text == &name_ && layout_.code_qualified_name != 0) limit = 0;  // not used
      text->content.resize(std::min<uint64_t>(text->parsed.length, limit) * text->parsed.width);
      parts.push_back({text->data, text->content});
    }
    lines_.content.resize(std::min<uint64_t>(lines_.size, kPythonLineTableBytesMax));
    parts.push_back({lines_.address + layout_.bytes_data, lines_.content});
    std::array<std::string, 3> headers;
    for (size_t i = 0; Text * text : Texts()) {
      headers[i].resize(text->header.size());
      parts.push_back({text->address, headers[i++]});
    }
    std::string lines_header(lines_.header.size(), '\0'), code(code_.size(), '\0');
    parts.push_back({lines_.address, lines_header});
    parts.push_back({object_.address, code});
    RETURN_IF_ERROR(memory_.Read(parts));

    const auto same = [](const std::string& a, const std::string& b, size_t first, size_t size) {
      return std::string_view(a).substr(first, size) == std::string_view(b).substr(first, size);
    };
    for (size_t i = 0; Text * text : Texts()) {
      auto again = ParsePythonText(layout_, headers[i++]);
      if (!again.ok() || again->length != text->parsed.length || again->width != text->parsed.width ||
          again->data_offset != text->parsed.data_offset) {
        return Changed("a name changed");
      }
    }
    // The words from the type on, which is before every other field.
    if (!same(lines_.header, lines_header, layout_.type, std::string::npos) ||
        !same(code_, code, layout_.walk.check_first, layout_.walk.check_bytes) ||
        !same(code_, code, layout_.type, sizeof(uint64_t))) {
      return Changed("it changed");
    }
    return absl::OkStatus();
  }

  const PythonLayout& layout_;
  const PythonTypes& types_;
  ProcessMemory& memory_;
  const CodeObject object_;
  std::string code_;
  Text name_, file_, qualified_name_;
  Bytes lines_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const RuntimeFunction>> ReadPythonFunction(const PythonLayout& layout,
                                                                          const PythonTypes& types,
                                                                          ProcessMemory& memory,
                                                                          const CodeObject& object) {
  return Reader(layout, types, memory, object).Run();
}

}  // namespace tributary
