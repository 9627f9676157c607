#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "elf/elf_image_testing.h"
#include "elf/go_table.h"

namespace tributary::testing {

// A handwritten Go program with three functions, in the format that Go versions with the table form `form` write:
//   main.main, 56 bytes of code and 8 of padding:
//     0: main.go:10   12: main.go:12   16: other.go:4, outer   20: other.go:5, outer   24: other.go:2, inner in outer
//     32: other.go:6, outer   48: main.go:13
//   runtime.goexit1 and runtime.goexit, 32 bytes each, without lines.
struct GoImage {
  GoTableForm form = GoTableForm::kGo20;
  bool module = true;         // has runtime.moduledata
  bool loaded_later = false;  // pointers are zero in the file; their values are in a table of relocations
  bool symbols = false;       // has symbols for the addresses in GoModule
  std::string section = ".gopclntab";
  uint16_t machine = kElfMachineX86_64;
  // Data that tests change.
  std::vector<std::pair<uint32_t, uint32_t>> records = {{0, 12}, {1, 20}, {1, 20}};  // called function, instruction
  std::vector<std::pair<uint32_t, int32_t>> calls = {{16, -1}, {24, 0}, {32, 1}, {48, 0}, {56, -1}};  // end, record

  static constexpr uint64_t kMainBytes = 64, kFunctionBytes = 32;
  static constexpr uint32_t kTreesPlace = 16;  // offset of the first tree in go:func.*

  struct File {
    std::string bytes;
    uint64_t text = 0, table = 0, trees = 0, module = 0;  // addresses
    size_t offset_of(uint64_t address) const { return address - ElfImage::kBase; }
  };
  File Write() const;
};

// Writes a GoImage in two passes. The first pass finds the addresses of the sections.
class GoImageWriter : GoImage {
 public:
  explicit GoImageWriter(const GoImage& image) : GoImage(image) {}

  File WriteFile() {
    File out;
    for (int pass = 0; pass < 2; ++pass) WriteOnce(&out);
    return out;
  }

 private:
  // Bytes of a section, and the pointers in these bytes.
  struct Part {
    std::string bytes;
    std::vector<std::pair<uint64_t, uint64_t>> pointers;
    bool later = false;

    template <typename T>
    void Add(T value) {
      ElfImage::Append(bytes, value);
    }
    void AddPointer(uint64_t value) {
      pointers.emplace_back(bytes.size(), value);
      Add(later ? uint64_t{0} : value);
    }
    void Pad(size_t to) { bytes.resize((bytes.size() + to - 1) / to * to); }
  };

  bool relative() const { return form >= GoTableForm::kGo18; }
  uint32_t quantum() const { return machine == kElfMachineArm64 ? 4 : 1; }

  static void Varint(std::string& out, uint32_t value) {
    for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
    out += static_cast<char>(value);
  }
  std::string Steps(const std::vector<std::pair<uint32_t, int32_t>>& steps) const {
    std::string out;
    uint32_t at = 0;
    int32_t value = -1;
    for (const auto& [end, next] : steps) {
      const int32_t change = next - value;
      Varint(out, static_cast<uint32_t>(change) << 1 ^ static_cast<uint32_t>(change >> 31));
      Varint(out, (end - at) / quantum());
      at = end;
      value = next;
    }
    return out + '\0';
  }

  std::string Trees() const {
    Part out;
    out.bytes.resize(kTreesPlace);
    for (const auto& [name, place] : records) {
      const uint32_t name_place = name == 0 ? 10 : 21;  // offset in NameBytes
      if (form == GoTableForm::kGo20) {
        for (uint32_t word : {0u, name_base_ + name_place, place, 7u}) out.Add(word);
      } else {
        for (uint32_t word : {0xffffu, 0u, 0u, name_base_ + name_place, place}) out.Add(word);
      }
    }
    return out.bytes;
  }
  static std::string NameBytes() {
    using namespace std::string_literals;
    return "main.main\0main.outer\0main.inner\0runtime.goexit1\0runtime.goexit\0"s;
  }

  Part Table(const File& at) {
    using namespace std::string_literals;
    const std::string names = NameBytes(), first_file = "/src/main.go\0"s, files = first_file + "/src/other.go\0"s;
    const int32_t first_number = form == GoTableForm::kGo2 ? 1 : 0;
    const std::string file_steps = Steps({{16, first_number}, {48, first_number + 1}, {56, first_number}});
    const std::string line_steps = Steps({{12, 10}, {16, 12}, {20, 4}, {24, 5}, {32, 2}, {48, 6}, {56, 13}});
    const std::string call_steps = Steps(calls);
    const std::string steps = "\0"s + file_steps + line_steps + call_steps;
    Part out{.later = loaded_later && !relative()};
    const uint32_t magics[] = {0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1};
    out.Add(magics[static_cast<size_t>(form)]);
    out.bytes += std::string("\0\0", 2) + static_cast<char>(quantum()) + '\x08';
    out.Add(uint64_t{3});
    // In the first form, all offsets are from the start of the table, and all other data follows the functions.
    const bool first_form = form == GoTableForm::kGo2;
    size_t parts[5];  // names, units, files, steps, functions
    const size_t head = first_form ? 16 : relative() ? 72 : 64;
    const size_t functions_bytes = relative() ? 3 * 8 + 4 : 3 * 16 + 8;
    const size_t data_bytes = 3 * 112;
    const size_t data = first_form ? (head + functions_bytes + 4 + 7) / 8 * 8 : (functions_bytes + 7) / 8 * 8;
    size_t next = first_form ? data + data_bytes : head;
    const size_t sizes[] = {names.size(), 8, files.size() + 12, steps.size()};
    for (size_t i = 0; i < 4; ++i) {
      parts[i] = next;
      next = (next + sizes[i] + 7) / 8 * 8;
    }
    parts[4] = first_form ? head : next;
    if (!first_form) {
      out.Add(uint64_t{2});
      if (relative()) out.Add(uint64_t{0});
      for (size_t part : parts) out.Add(uint64_t{part});
    }
    const uint32_t name_base = first_form ? static_cast<uint32_t>(parts[0]) : 0;
    const uint32_t step_base = first_form ? static_cast<uint32_t>(parts[3]) : 0;
    auto add_parts = [&] {
      out.bytes.resize(parts[0]);
      out.bytes += names;
      out.bytes.resize(parts[1]);
      for (uint32_t file : {0u, static_cast<uint32_t>(first_file.size())}) out.Add(file);
      out.bytes.resize(parts[2]);
      if (first_form) {
        out.Add(uint32_t{3});
        const auto begin = static_cast<uint32_t>(parts[2] + 12);
        for (uint32_t file : {begin, begin + static_cast<uint32_t>(first_file.size())}) out.Add(file);
      }
      out.bytes += files;
      out.bytes.resize(parts[3]);
      out.bytes += steps;
    };
    if (!first_form) add_parts();
    out.bytes.resize(parts[4]);
    const uint64_t begins[] = {0, kMainBytes, kMainBytes + kFunctionBytes, kMainBytes + 2 * kFunctionBytes};
    auto address = [&](uint64_t offset) {
      if (relative()) {
        out.Add(static_cast<uint32_t>(offset));
      } else {
        out.AddPointer(at.text + offset);
      }
    };
    for (size_t i = 0; i < 3; ++i) {
      address(begins[i]);
      if (relative()) {
        out.Add(static_cast<uint32_t>(data + i * 112));
      } else {
        out.Add(uint64_t{data + i * 112});
      }
    }
    address(begins[3]);
    if (first_form) out.Add(static_cast<uint32_t>(parts[2]));
    const uint32_t name_places[] = {0, 32, 48};
    for (size_t i = 0; i < 3; ++i) {
      out.bytes.resize((first_form ? 0 : parts[4]) + data + i * 112);
      const bool is_main = i == 0;
      address(begins[i]);
      const auto files_at = static_cast<uint32_t>(step_base + 1);
      const auto lines_at = static_cast<uint32_t>(files_at + file_steps.size());
      const auto calls_at = static_cast<uint32_t>(lines_at + line_steps.size());
      for (uint32_t word : {name_base + name_places[i], 0u, 0u, 0u, is_main ? files_at : 0, is_main ? lines_at : 0,
                            is_main ? 3u : 0u}) {
        out.Add(word);
      }
      if (!first_form) out.Add(uint32_t{0});                 // unit
      if (form == GoTableForm::kGo20) out.Add(uint32_t{9});  // line of its start
      const uint8_t trees = first_form ? 5 : 4;
      out.Add(is_main ? uint32_t{trees} << 24 : 0u);
      if (!is_main) continue;
      for (uint32_t word : {0u, 0u, calls_at}) out.Add(word);
      if (!relative()) out.Pad(8);
      for (uint8_t tree = 0; tree + 1 < trees; ++tree) {
        if (relative()) {
          out.Add(UINT32_MAX);
        } else {
          out.Add(uint64_t{0});
        }
      }
      if (relative()) {
        out.Add(kTreesPlace);
      } else {
        out.AddPointer(at.trees + kTreesPlace);
      }
    }
    if (first_form) {
      add_parts();
      name_base_ = name_base;
    }
    out.Pad(8);
    functions_ = parts[4];
    names_ = parts[0];
    return out;
  }

  Part Module(const File& at) const {
    Part out{.later = loaded_later};
    const size_t words = form == GoTableForm::kGo18 ? 39 : 41;
    for (size_t i = 0; i < words; ++i) {
      switch (i * 8) {
        case 0:
          out.AddPointer(at.table);
          break;
        case 8:
          out.AddPointer(at.table + names_);
          break;
        case 104:
          out.AddPointer(at.table + functions_);
          break;
        case 176:
          out.AddPointer(at.text);
          break;
        case 304:
        case 320:
          if (i + 1 == words) {
            out.AddPointer(at.trees);
            break;
          }
          [[fallthrough]];
        default:
          out.Add(uint64_t{i});
      }
    }
    return out;
  }

  std::string Code() const {
    std::string code(kMainBytes + 2 * kFunctionBytes, '\xcc');
    std::string goexit("\x90\xe8\0\0\0\0\x90", 7);
    const size_t at = kMainBytes + kFunctionBytes;
    int32_t distance = -static_cast<int32_t>(kFunctionBytes) - 6;
    std::memcpy(goexit.data() + 2, &distance, sizeof(distance));
    if (machine == kElfMachineArm64) {
      const uint32_t words[] = {0xaa0003e0, 0x94000000 | (static_cast<uint32_t>((-32 - 4) / 4) & 0x3ffffff)};
      goexit.assign(reinterpret_cast<const char*>(words), sizeof(words));
    }
    return code.replace(at, goexit.size(), goexit);
  }

  void WriteOnce(File* out) {
    ElfImage image;
    image.set_machine(machine);
    const std::string code = Code();
    Part table = Table(*out), trees{.bytes = Trees()}, pointers = Module(*out);
    image.AddSection(".text", 1, code, kElfSectionExecutable);
    image.AddSection(".rodata", 1, trees.bytes);
    image.AddSection(section, 1, table.bytes);
    if (module && relative()) image.AddSection(".go.module", 1, pointers.bytes);
    if (section != ".gopclntab") image.AddSection(".go.buildinfo", 1, "x");
    if (loaded_later) {
      Part relocations;
      const uint64_t relative_type = machine == kElfMachineArm64 ? 1027 : 8;
      auto add = [&](uint64_t address, const Part& part) {
        for (const auto& [offset, value] : part.pointers) {
          for (uint64_t word : {address + offset, relative_type, value}) relocations.Add(word);
        }
      };
      if (!relative()) add(out->table, table);
      if (relative() && module) add(out->module, pointers);
      image.AddSection(".rela.dyn", 4, relocations.bytes);
    }
    if (symbols) {
      const std::string strings = std::string("\0go:func.*\0runtime.text\0\0\0\0\0\0\0\0\0", 32);
      Part table_of_symbols;
      table_of_symbols.bytes.resize(sizeof(ElfSymbol));
      table_of_symbols.Add(ElfSymbol{.name = 1, .info = 1, .section = 2, .value = out->trees});
      table_of_symbols.Add(ElfSymbol{.name = 11, .info = 1, .section = 1, .value = out->text});
      const uint16_t index = image.AddSection(".strtab", 3, strings);
      image.AddSection(".symtab", kElfSectionSymtab, table_of_symbols.bytes, 0, index, sizeof(ElfSymbol));
    }
    out->bytes = image.Write();
    auto address_of = [&](const std::string& bytes) { return ElfImage::kBase + out->bytes.find(bytes); };
    out->text = address_of(code);
    out->trees = address_of(trees.bytes);
    out->table = address_of(table.bytes);
    out->module = address_of(pointers.bytes);
  }

  // Table() sets these members.
  uint32_t name_base_ = 0;
  size_t functions_ = 0, names_ = 0;
};

inline GoImage::File GoImage::Write() const { return GoImageWriter(*this).WriteFile(); }

}  // namespace tributary::testing
