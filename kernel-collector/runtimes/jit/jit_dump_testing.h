#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tributary {

// Writes jitdumps for tests.
class JitDumpText {
 public:
  struct Header {
    uint32_t magic = 0x4A695444, version = 1, size = 40;
    uint64_t flags = 0;
  };
  JitDumpText() : JitDumpText(Header()) {}
  explicit JitDumpText(const Header& header) {
    Put(header.magic), Put(header.version), Put(header.size), Put(uint32_t{62}), Put(uint32_t{0}), Put(uint32_t{42});
    Put(uint64_t{1}), Put(header.flags);
  }
  JitDumpText& Load(uint64_t time, uint64_t start, uint64_t size, std::string_view name) {
    Record(0, static_cast<uint32_t>(56 + name.size() + 1 + size), time);
    Put(uint32_t{42}), Put(uint32_t{42}), Put(start), Put(start), Put(size), Put(index_++);
    bytes.append(name).push_back('\0');
    bytes.append(size, '\x90');
    return *this;
  }
  JitDumpText& Move(uint64_t time, uint64_t from, uint64_t to, uint64_t size) {
    Record(1, 64, time);
    Put(uint32_t{42}), Put(uint32_t{42}), Put(to), Put(from), Put(to), Put(size), Put(uint64_t{0});
    return *this;
  }
  struct Line {
    uint64_t address;
    uint32_t line;
    std::string_view file;
  };
  JitDumpText& Lines(uint64_t start, const std::vector<Line>& lines) {
    size_t size = 32;
    for (const Line& line : lines) size += 16 + line.file.size() + 1;
    Record(2, static_cast<uint32_t>(size), 1);
    Put(start), Put(uint64_t{lines.size()});
    for (const Line& line : lines) {
      Put(line.address), Put(line.line), Put(uint32_t{0});
      bytes.append(line.file).push_back('\0');
    }
    return *this;
  }
  // A record that no parser needs.
  JitDumpText& Other(uint32_t kind, uint32_t size) {
    Record(kind, 16 + size, 1);
    bytes.append(size, 'u');
    return *this;
  }

  template <typename T>
  void Put(T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void Record(uint32_t kind, uint32_t size, uint64_t time) { Put(kind), Put(size), Put(time); }

  std::string bytes;

 private:
  uint64_t index_ = 0;
};

}  // namespace tributary
