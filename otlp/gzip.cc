#include "otlp/gzip.h"

#include <libdeflate.h>

#include "base/status.h"

namespace tributary::otlp {
namespace {

constexpr int kLevel = 6;  // the default of gzip(1): higher levels save little and cost much more time

struct FreeDecompressor {
  void operator()(libdeflate_decompressor* decompressor) const { libdeflate_free_decompressor(decompressor); }
};

}  // namespace

void GzipCompressor::Free::operator()(libdeflate_compressor* compressor) const {
  libdeflate_free_compressor(compressor);
}

GzipCompressor::GzipCompressor() : compressor_(libdeflate_alloc_compressor(kLevel)) {
  TRIBUTARY_CHECK(compressor_ != nullptr);
}

std::string GzipCompressor::Compress(std::string_view bytes, size_t reserved) {
  std::string out(reserved + libdeflate_gzip_compress_bound(compressor_.get(), bytes.size()), '\0');
  out.resize(reserved + libdeflate_gzip_compress(compressor_.get(), bytes.data(), bytes.size(), out.data() + reserved,
                                                 out.size() - reserved));
  return out;
}

std::optional<std::string> Gunzip(std::string_view gzip, size_t bytes_max) {
  const std::unique_ptr<libdeflate_decompressor, FreeDecompressor> decompressor(libdeflate_alloc_decompressor());
  TRIBUTARY_CHECK(decompressor != nullptr);
  std::string out(bytes_max, '\0');
  size_t bytes_read = 0, bytes_written = 0;
  if (libdeflate_gzip_decompress_ex(decompressor.get(), gzip.data(), gzip.size(), out.data(), out.size(), &bytes_read,
                                    &bytes_written) != LIBDEFLATE_SUCCESS ||
      bytes_read != gzip.size()) {
    return std::nullopt;
  }
  out.resize(bytes_written);
  return out;
}

}  // namespace tributary::otlp
