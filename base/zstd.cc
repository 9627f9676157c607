#include "base/zstd.h"

#include <zstd.h>

#include <memory>

#include "base/status.h"

namespace tributary {
namespace {

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// Each thread keeps one context of each kind. Making a context (160 KB to read, half a megabyte to write at level 1)
// costs more than most frames do. The context for a larger input is not kept.
constexpr size_t kKeptRawBytesMax = 1u << 20;

ZSTD_DCtx& Decompressor() {
  thread_local std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  TRIBUTARY_CHECK(context != nullptr);
  return *context;
}

size_t Compress(std::string_view raw, int level, bool checksum, std::string& to) {
  thread_local std::unique_ptr<ZSTD_CCtx, FreeContext> kept;
  std::unique_ptr<ZSTD_CCtx, FreeContext> own;
  std::unique_ptr<ZSTD_CCtx, FreeContext>& context = raw.size() <= kKeptRawBytesMax ? kept : own;
  if (context == nullptr) context.reset(ZSTD_createCCtx());
  TRIBUTARY_CHECK(context != nullptr);
  ZSTD_CCtx_reset(context.get(), ZSTD_reset_session_and_parameters);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, checksum ? 1 : 0);
  return ZSTD_compress2(context.get(), to.data(), to.size(), raw.data(), raw.size());
}

// The largest window that a frame may request. It limits the memory that decoding allocates in addition to the output.
constexpr int kWindowLogMax = 27;

// A stored byte can represent at most about 64 KiB of raw bytes. A size that claims more is false, and nothing is
// allocated for it.
constexpr size_t kRatioMax = 1u << 17;

}  // namespace

namespace {

std::string CompressAll(std::string_view raw, int level, bool checksum) {
  constexpr size_t kChecksumBytes = 4;
  std::string stored(ZSTD_compressBound(raw.size()) + kChecksumBytes, '\0');
  const size_t size = Compress(raw, level, checksum, stored);
  TRIBUTARY_CHECK(!ZSTD_isError(size));  // the destination is large enough for any input
  stored.resize(size);
  return stored;
}

}  // namespace

std::string ZstdCompress(std::string_view raw, int level) { return CompressAll(raw, level, /*checksum=*/false); }

std::string ZstdCompressWithChecksum(std::string_view raw) { return CompressAll(raw, 1, /*checksum=*/true); }

absl::StatusOr<std::string> ZstdDecompress(std::string_view stored, size_t raw_size) {
  if (raw_size / kRatioMax > stored.size())
    return Error(absl::StatusCode::kInvalidArgument,
                 "zstd: the stated uncompressed size is too large for the compressed size");
  // zstd decodes an empty input without an error. But even empty content needs a frame.
  if (stored.empty()) return Error(absl::StatusCode::kInvalidArgument, "zstd: the input is empty");
  ZSTD_DCtx& context = Decompressor();
  ZSTD_DCtx_reset(&context, ZSTD_reset_session_and_parameters);
  ZSTD_DCtx_setParameter(&context, ZSTD_d_windowLogMax, kWindowLogMax);
  std::string raw(raw_size, '\0');
  size_t size = ZSTD_decompressDCtx(&context, raw.data(), raw.size(), stored.data(), stored.size());
  if (ZSTD_isError(size)) {
    return Error(absl::StatusCode::kInvalidArgument, std::string("zstd: ") + ZSTD_getErrorName(size));
  }
  if (size != raw_size)
    return Error(absl::StatusCode::kInvalidArgument, "zstd: the uncompressed size differs from the stated size");
  return raw;
}

}  // namespace tributary
