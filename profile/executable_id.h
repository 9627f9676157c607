#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/hash/hash.h"

namespace tributary {

// An executable id identifies the code of a file, independently of its path and host. It is the file's GNU build-id,
// which 99.3% of the executables of a Debian system have. For a Go program without a GNU build-id, the id is a hash of
// the Go build id. For all other files, it is a hash of the file's first bytes, last bytes and size.
enum class ExecutableIdKind : uint8_t {
  kNone = 0,        // unknown: the code is in anonymous memory or in an unreadable file
  kGnuBuildId = 1,  // of the note NT_GNU_BUILD_ID: 1–20 bytes, which is also the kernel's limit
  kGoBuildId = 2,   // first 16 bytes of the SHA-256 of the Go build id (a string of about 80 characters)
  kContentHash =
      3,  // htlhash of the OpenTelemetry profiles spec: SHA-256(first 4096 B, last 4096 B, size as BE64)[:16]
};

// An executable id: its kind and its bytes. The object has 22 bytes.
class ExecutableId {
 public:
  static constexpr size_t kSizeMax = 20;

  ExecutableId() = default;
  // Returns nullopt if `kind` is not one of the kinds above, or if `bytes` has a wrong size. For kNone the size must be
  // 0, for all other kinds 1 to kSizeMax.
  static std::optional<ExecutableId> Make(ExecutableIdKind kind, std::span<const uint8_t> bytes);
  static std::optional<ExecutableId> Make(ExecutableIdKind kind, std::string_view bytes);

  ExecutableIdKind kind() const { return kind_; }
  std::span<const uint8_t> bytes() const { return {bytes_.data(), size_}; }
  std::string_view view() const { return {reinterpret_cast<const char*>(bytes_.data()), size_}; }
  bool known() const { return kind_ != ExecutableIdKind::kNone; }
  // Returns "6ecd6ec21e…" for a GNU build-id, "go:…" for a Go build id, "htl:…" for a content hash, and "unknown" for
  // kNone.
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
  std::array<uint8_t, kSizeMax> bytes_{};  // the bytes from size_ on are zero
};

}  // namespace tributary
