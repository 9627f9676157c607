#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

struct ZSTD_DCtx_s;

namespace tributary {

// Decompresses data that is too large to be kept in memory as a whole. The input may be hostile. Needs less than 1 MiB
// for what ZstdCompress has made at level 1, and at most 9 MiB for other frames.
class ZstdReader {
 public:
  // The data is one or more zstd frames that decompress to exactly `raw_size` bytes.
  explicit ZstdReader(uint64_t raw_size);
  ~ZstdReader();
  ZstdReader(const ZstdReader&) = delete;
  ZstdReader& operator=(const ZstdReader&) = delete;

  // Takes the next part of the data, and passes what it decompresses to, in pieces, to `write`. Returns InvalidArgument
  // if the data is damaged or longer than stated, or the error of `write`. The object must not be used after an error.
  absl::Status Push(std::string_view stored, absl::FunctionRef<absl::Status(std::string_view raw)> write);
  // Returns InvalidArgument if the data is cut off, or shorter than stated.
  absl::Status Finish() const;

 private:
  struct Free {
    void operator()(ZSTD_DCtx_s* context) const;
  };

  const std::unique_ptr<ZSTD_DCtx_s, Free> context_;
  std::string piece_;
  uint64_t left_;  // raw bytes that are still to come
  bool in_frame_ = true;
};

}  // namespace tributary
