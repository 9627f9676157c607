#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/hash/hash.h"

namespace tributary {

// Identifies a file's code independently of its path and host. 99.3% of the executables of a Debian system have a GNU
// build-id. Of the others, Go programs have a Go build id, and any file has a hash of its contents.
enum class ExecutableIdKind : uint8_t {
  kNone = 0,        // unknown: anonymous or unreadable memory
  kGnuBuildId = 1,  // NT_GNU_BUILD_ID note, 1–20 bytes (also the kernel's limit); the kernel's own id is one too
  kGoBuildId = 2,   // first 16 bytes of SHA-256 of the Go build id string (about 80 characters, in .note.go.buildid)
  kContentHash =
      3,  // htlhash of the OpenTelemetry profiles spec: SHA-256(first 4096 B, last 4096 B, size as BE64)[:16]
};

// A kind and its bytes. 22 bytes, compared and hashed by value.
class ExecutableId {
 public:
  static constexpr size_t kSizeMax = 20;

  ExecutableId() = default;
  // Returns nullopt if `bytes` is empty (unless kind is kNone), longer than kSizeMax, or if kind is not one of the
  // above.
  static std::optional<ExecutableId> Make(ExecutableIdKind kind, std::span<const uint8_t> bytes);
  static std::optional<ExecutableId> Make(ExecutableIdKind kind, std::string_view bytes);

  ExecutableIdKind kind() const { return kind_; }
  std::span<const uint8_t> bytes() const { return {bytes_.data(), size_}; }
  std::string_view view() const { return {reinterpret_cast<const char*>(bytes_.data()), size_}; }
  bool known() const { return kind_ != ExecutableIdKind::kNone; }
  // "6ecd6ec21e…" for a GNU build-id, "go:…" and "htl:…" for the others, "unknown" for none.
  std::string ToString() const;
  static std::optional<ExecutableId> FromString(std::string_view text);

  friend auto operator<=>(const ExecutableId&, const ExecutableId&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ExecutableId& id) {
    return H::combine(H::combine_contiguous(std::move(h), id.bytes_.data(), id.size_), id.kind_, id.size_);
  }

 private:
  ExecutableIdKind kind_ = ExecutableIdKind::kNone;
  uint8_t size_ = 0;
  std::array<uint8_t, kSizeMax> bytes_{};  // zero after size_
};

}  // namespace tributary
