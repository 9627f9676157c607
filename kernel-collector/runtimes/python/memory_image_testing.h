#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "elf/byte_reader.h"
#include "kernel-collector/processes/runtime_binary.h"

namespace tributary::testing {

// A part of the memory of a process, as a test or a recording has it: pieces of bytes by address. As text: for each
// piece its address (8 bytes), size (4 bytes) and bytes.
class MemoryImage : public ProcessMemory {
 public:
  static constexpr size_t kPiecesMax = 1024;

  MemoryImage() = default;
  explicit MemoryImage(std::string_view text) {
    for (ByteReader reader(text); !reader.at_end() && pieces_.size() < kPiecesMax;) {
      const auto address = reader.Fixed<uint64_t>();
      const auto size = reader.Fixed<uint32_t>();
      std::string_view bytes = reader.rest().substr(0, size);
      reader.Bytes(bytes.size());
      pieces_[address] = bytes;
    }
  }
  void Set(uint64_t address, std::string bytes) { pieces_[address] = std::move(bytes); }
  std::string& piece(uint64_t address) { return pieces_[address]; }
  std::string Text() const {
    std::string out;
    for (const auto& [address, bytes] : pieces_) {
      const auto size = static_cast<uint32_t>(bytes.size());
      out.append(reinterpret_cast<const char*>(&address), sizeof(address));
      out.append(reinterpret_cast<const char*>(&size), sizeof(size));
      out += bytes;
    }
    return out;
  }

  absl::Status Read(std::span<const Part> parts) override {
    TRIBUTARY_CHECK(parts.size() <= kPartsMax);
    ++reads;
    size_t total = 0;
    for (const Part& part : parts) {
      total += part.to.size();
      TRIBUTARY_CHECK(total <= RuntimeBinary::kObjectBytesMax);
      if (!part.to.empty() && !Copy(part)) return Error(absl::StatusCode::kDataLoss, "not mapped");
    }
    return absl::OkStatus();
  }

  size_t reads = 0;

 private:
  // Copies from the piece that contains the part's first byte. Pieces may overlap.
  bool Copy(const Part& part) {
    auto after = pieces_.upper_bound(part.address);
    while (after != pieces_.begin()) {
      const auto& [address, bytes] = *--after;
      const uint64_t offset = part.address - address;
      if (offset >= bytes.size() || bytes.size() - offset < part.to.size()) continue;
      std::memcpy(part.to.data(), bytes.data() + offset, part.to.size());
      return true;
    }
    return false;
  }

  std::map<uint64_t, std::string> pieces_;
};

}  // namespace tributary::testing
