#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "elf/elf_format.h"

namespace tributary::testing {

// Writes a small well-formed ELF64 file, which tests then change. The file has a header, one executable PT_LOAD that
// covers the whole file (address = kBase + offset), optional note segments, and sections.
class ElfImage {
 public:
  static constexpr uint64_t kBase = 0x400000;

  ElfImage() { sections_.push_back({{}, {}}); }

  // Returns the index of the new section.
  uint16_t AddSection(std::string_view name, uint32_t type, std::string_view bytes, uint64_t flags = 0,
                      uint32_t link = 0, uint64_t entry_size = 0) {
    ElfSectionHeader header{.type = type, .flags = flags, .size = bytes.size(), .link = link, .entry_size = entry_size};
    sections_.push_back({header, std::string(bytes)});
    names_.emplace_back(name);
    return static_cast<uint16_t>(sections_.size() - 1);
  }
  // Returns the header of an added section. The caller may change it.
  ElfSectionHeader& header(uint16_t section) { return sections_[section].header; }
  void AddNoteSegment(std::string_view bytes, uint64_t alignment = 4) { notes_.emplace_back(bytes, alignment); }
  void set_machine(uint16_t machine) { machine_ = machine; }
  void set_type(uint16_t type) { type_ = type; }
  // Sets the section that the segment PT_GNU_EH_FRAME covers.
  void set_unwind_table(uint16_t section) { unwind_table_ = section; }
  void set_entry(uint64_t address) { entry_ = address; }

  // Returns the whole file. The address of a section is kBase + its offset, or 0 in a relocatable file.
  std::string Write() const {
    std::vector<Part> sections = sections_;
    std::string section_names(1, '\0');
    for (size_t i = 1; i < sections.size(); ++i) {
      sections[i].header.name = static_cast<uint32_t>(section_names.size());
      section_names += names_[i - 1] + '\0';
    }
    ElfSectionHeader names_header{.name = static_cast<uint32_t>(section_names.size()), .type = 3};
    section_names += ".shstrtab";
    section_names += '\0';
    names_header.size = section_names.size();
    sections.push_back({names_header, section_names});

    size_t segment_count = 1 + notes_.size() + (unwind_table_ != 0 ? 1 : 0);
    std::string out(sizeof(ElfHeader) + segment_count * sizeof(ElfProgramHeader), '\0');
    std::vector<ElfProgramHeader> segments(1);
    for (const auto& [bytes, alignment] : notes_) {
      Pad(out);
      segments.push_back(
          {.type = kElfSegmentNote, .offset = out.size(), .file_size = bytes.size(), .alignment = alignment});
      out += bytes;
    }
    for (size_t i = 1; i < sections.size(); ++i) {
      Pad(out);
      sections[i].header.offset = out.size();
      if (type_ != kElfTypeRelocatable) sections[i].header.address = kBase + out.size();
      out += sections[i].bytes;
    }
    Pad(out);
    if (unwind_table_ != 0) {
      const ElfSectionHeader& table = sections[unwind_table_].header;
      segments.push_back({.type = kElfSegmentUnwindTable,
                          .offset = table.offset,
                          .address = table.address,
                          .file_size = table.size,
                          .memory_size = table.size});
    }
    ElfHeader header{.ident = {0x7f, 'E', 'L', 'F', 2, 1, 1},
                     .type = type_,
                     .machine = machine_,
                     .version = 1,
                     .entry = entry_,
                     .program_header_offset = sizeof(ElfHeader),
                     .section_header_offset = out.size(),
                     .header_size = sizeof(ElfHeader),
                     .program_header_size = sizeof(ElfProgramHeader),
                     .program_header_count = static_cast<uint16_t>(segment_count),
                     .section_header_size = sizeof(ElfSectionHeader),
                     .section_header_count = static_cast<uint16_t>(sections.size()),
                     .section_names_index = static_cast<uint16_t>(sections.size() - 1)};
    for (const Part& section : sections) Append(out, section.header);
    segments[0] = {.type = kElfSegmentLoad,
                   .flags = kElfSegmentExecutable | 4,
                   .offset = 0,
                   .address = kBase,
                   .file_size = out.size(),
                   .memory_size = out.size(),
                   .alignment = 4096};
    std::memcpy(out.data(), &header, sizeof(header));
    std::memcpy(out.data() + sizeof(header), segments.data(), segments.size() * sizeof(ElfProgramHeader));
    return out;
  }

  template <typename T>
  static void Append(std::string& out, const T& value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  static std::string Note(std::string_view owner, uint32_t type, std::string_view descriptor) {
    std::string out;
    Append(out, static_cast<uint32_t>(owner.size() + 1));
    Append(out, static_cast<uint32_t>(descriptor.size()));
    Append(out, type);
    (out += owner) += '\0';
    out.resize((out.size() + 3) & ~size_t{3});
    out += descriptor;
    out.resize((out.size() + 3) & ~size_t{3});
    return out;
  }

 private:
  struct Part {
    ElfSectionHeader header;
    std::string bytes;
  };
  static void Pad(std::string& out) { out.resize((out.size() + 15) & ~size_t{15}); }

  std::vector<Part> sections_;  // [0] is the null section
  std::vector<std::string> names_;
  std::vector<std::pair<std::string, uint64_t>> notes_;
  uint16_t machine_ = kElfMachineX86_64;
  uint16_t type_ = kElfTypeShared;
  uint16_t unwind_table_ = 0;
  uint64_t entry_ = 0;
};

}  // namespace tributary::testing
