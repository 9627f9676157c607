#include "base/zstd.h"

#include <zstd.h>

#include <memory>

#include "base/status.h"

namespace tributary {
namespace {

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// The largest window a frame may ask for. It bounds what decoding allocates beside the output.
constexpr int kWindowLogMax = 27;

// A stored byte can stand for about 64 KiB of raw ones at most; what claims more is a lie and allocates nothing.
constexpr size_t kRatioMax = 1u << 17;

}  // namespace

std::string ZstdCompress(std::string_view raw, int level) {
  std::string stored(ZSTD_compressBound(raw.size()), '\0');
  size_t size = ZSTD_compress(stored.data(), stored.size(), raw.data(), raw.size(), level);
  TRIBUTARY_CHECK(!ZSTD_isError(size));  // the destination has room for any input
  stored.resize(size);
  return stored;
}

absl::StatusOr<std::string> ZstdDecompress(std::string_view stored, size_t raw_size) {
  if (raw_size / kRatioMax > stored.size())
    return Error(absl::StatusCode::kInvalidArgument, "zstd: raw size too large");
  // zstd decodes nothing at all from no bytes without an error; a frame is there even for no content.
  if (stored.empty()) return Error(absl::StatusCode::kInvalidArgument, "zstd: no frame");
  std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  TRIBUTARY_CHECK(context != nullptr);
  ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, kWindowLogMax);
  std::string raw(raw_size, '\0');
  size_t size = ZSTD_decompressDCtx(context.get(), raw.data(), raw.size(), stored.data(), stored.size());
  if (ZSTD_isError(size)) {
    return Error(absl::StatusCode::kInvalidArgument, std::string("zstd: ") + ZSTD_getErrorName(size));
  }
  if (size != raw_size) return Error(absl::StatusCode::kInvalidArgument, "zstd: raw size is not the one stated");
  return raw;
}

}  // namespace tributary
