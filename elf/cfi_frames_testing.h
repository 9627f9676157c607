#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "elf/elf_image_testing.h"

namespace tributary::testing {

// Writes a section of call frame information, one entry after the other. Pointers are absolute, so the address of the
// section does not matter.
class Frames {
 public:
  struct Common {
    std::string augmentation = "";
    std::string augmentation_data = "";  // if the augmentation has a "z", its size is written before it
    uint8_t version = 1;
    std::string code_alignment = "\x01";
    std::string data_alignment = "\x78";  // -8
    std::string return_address = "\x10";
    std::string instructions = std::string("\x0c\x07\x08\x90\x01", 5);  // CFA = rsp+8, ra at CFA-8
  };
  struct Function {
    uint64_t common = 0;  // offset of the CIE, as returned by AddCommon
    uint64_t begin = 0, size = 0;
    std::string instructions = "";
    std::string augmentation_data = "";  // raw
  };

  explicit Frames(bool eh_frame = true, bool wide = false) : eh_frame_(eh_frame), wide_(wide) {}

  uint64_t AddCommon(const Common& common) {
    std::string body(1, static_cast<char>(common.version));
    body += common.augmentation + '\0';
    if (common.version == 4) body += std::string("\x08\0", 2);
    body += common.code_alignment + common.data_alignment + common.return_address;
    if (common.augmentation.starts_with('z')) {
      body += static_cast<char>(common.augmentation_data.size());
      body += common.augmentation_data;
    }
    body += common.instructions;
    return Add(eh_frame_ ? 0 : UINT64_MAX, body);
  }
  uint64_t AddFunction(const Function& function) {
    std::string body;
    ElfImage::Append(body, function.begin);
    ElfImage::Append(body, function.size);
    body += function.augmentation_data + function.instructions;
    uint64_t reference = eh_frame_ ? bytes_.size() + (wide_ ? 12 : 4) - function.common : function.common;
    uint64_t offset = Add(reference, body);
    index_.emplace_back(function.begin, offset);
    return offset;
  }
  // Adds an entry with this second word (`reference`) and body. Returns the offset of the entry.
  uint64_t Add(uint64_t reference, std::string body) {
    uint64_t offset = bytes_.size();
    size_t reference_bytes = wide_ && !eh_frame_ ? 8 : 4;
    body.resize((body.size() + 7) & ~size_t{7});
    if (wide_) {
      ElfImage::Append(bytes_, UINT32_MAX);
      ElfImage::Append(bytes_, uint64_t{body.size() + reference_bytes});
    } else {
      ElfImage::Append(bytes_, static_cast<uint32_t>(body.size() + reference_bytes));
    }
    bytes_.append(reinterpret_cast<const char*>(&reference), reference_bytes);
    bytes_ += body;
    return offset;
  }
  void AddEndMark() { ElfImage::Append(bytes_, uint32_t{0}); }

  const std::string& bytes() const { return bytes_; }
  // Returns a pair for each function: its address and the offset of its entry. The pairs are in the order in which the
  // entries were added.
  const std::vector<std::pair<uint64_t, uint64_t>>& index() const { return index_; }

 private:
  bool eh_frame_, wide_;
  std::string bytes_;
  std::vector<std::pair<uint64_t, uint64_t>> index_;
};

// Returns an image with 64 KiB of code and one section of frames.
inline ElfImage ImageWith(std::string_view section, const std::string& frames, uint64_t flags = 0) {
  ElfImage image;
  image.AddSection(".text", 1, std::string(64 << 10, '\x90'), 6);
  image.AddSection(section, 1, frames, flags);
  return image;
}

// The first address at which tests place functions in the code of such an image.
constexpr uint64_t kCode = ElfImage::kBase + 0x1000;

// Returns a file with 64 KiB of code, the section .eh_frame with `frames`, and a search table with the pairs of
// `index`. The header of the table states `count` pairs.
inline std::string FileWithTable(const Frames& frames, std::vector<std::pair<uint64_t, uint64_t>> index,
                                 uint32_t count) {
  // The table is before the frames. The address of the frames follows from the sizes, because sections are padded to 16
  // bytes.
  std::string table("\x01\x1b\x03\x3b", 4);
  size_t size = 12 + 8 * index.size(), padded = (size + 15) & ~size_t{15};
  ElfImage::Append(table, static_cast<int32_t>(padded - 4));
  ElfImage::Append(table, count);
  // Section .text begins after the file header and two program headers.
  uint64_t header_bytes = (sizeof(ElfHeader) + 2 * sizeof(ElfProgramHeader) + 15) & ~uint64_t{15};
  uint64_t address = ElfImage::kBase + header_bytes + (64 << 10);
  for (const auto& [begin, offset] : index) {
    ElfImage::Append(table, static_cast<int32_t>(begin - address));
    ElfImage::Append(table, static_cast<int32_t>(padded + offset));
  }
  ElfImage image;
  image.AddSection(".text", 1, std::string(64 << 10, '\x90'), 6);
  image.set_unwind_table(image.AddSection(".eh_frame_hdr", 1, table));
  image.AddSection(".eh_frame", 1, frames.bytes());
  return image.Write();
}

}  // namespace tributary::testing
