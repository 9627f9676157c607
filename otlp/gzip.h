#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct libdeflate_compressor;

namespace tributary::otlp {

// Compresses to gzip (RFC 1952). Uses one compressor for all calls, so only one thread at a time may use it.
class GzipCompressor {
 public:
  GzipCompressor();

  // Returns `reserved` zero bytes, and after them `bytes` in gzip. The caller may write a header into the reserved
  // bytes.
  std::string Compress(std::string_view bytes, size_t reserved = 0);

 private:
  struct Free {
    void operator()(libdeflate_compressor* compressor) const;
  };
  const std::unique_ptr<libdeflate_compressor, Free> compressor_;
};

// Returns the content of a gzip file with one member. Returns nullopt if the content has more than `bytes_max` bytes,
// if the file is malformed or cut, or if there are bytes after its end.
std::optional<std::string> Gunzip(std::string_view gzip, size_t bytes_max);

}  // namespace tributary::otlp
