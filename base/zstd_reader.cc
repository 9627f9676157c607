#include "base/zstd_reader.h"

#include <zstd.h>

#include "base/status.h"

namespace tributary {
namespace {

constexpr int kWindowLogMax = 23;  // 8 MiB

absl::Status Invalid(std::string_view why) {
  return Error(absl::StatusCode::kInvalidArgument, std::string("zstd: ").append(why));
}

}  // namespace

void ZstdReader::Free::operator()(ZSTD_DCtx_s* context) const { ZSTD_freeDCtx(context); }

ZstdReader::ZstdReader(uint64_t raw_size)
    : context_(ZSTD_createDCtx()), piece_(ZSTD_DStreamOutSize(), '\0'), left_(raw_size) {
  TRIBUTARY_CHECK(context_ != nullptr);
  ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kWindowLogMax);
}

ZstdReader::~ZstdReader() = default;

absl::Status ZstdReader::Push(std::string_view stored, absl::FunctionRef<absl::Status(std::string_view raw)> write) {
  ZSTD_inBuffer in{stored.data(), stored.size(), 0};
  bool is_full = false;  // then the context may contain more
  while (in.pos < in.size || is_full) {
    ZSTD_outBuffer out{piece_.data(), piece_.size(), 0};
    const size_t result = ZSTD_decompressStream(context_.get(), &out, &in);
    if (ZSTD_isError(result)) return Invalid(ZSTD_getErrorName(result));
    in_frame_ = result != 0;
    is_full = in_frame_ && out.pos == out.size;
    if (out.pos > left_) return Invalid("the data is longer than stated");
    left_ -= out.pos;
    if (out.pos > 0) RETURN_IF_ERROR(write(std::string_view(piece_).substr(0, out.pos)));
  }
  return absl::OkStatus();
}

absl::Status ZstdReader::Finish() const {
  if (in_frame_) return Invalid("the data is cut off");
  return left_ == 0 ? absl::OkStatus() : Invalid("the data is shorter than stated");
}

}  // namespace tributary
