#include "elf/xz.h"

#include <lzma.h>

#include <algorithm>

#include "base/status.h"

namespace tributary {
namespace {

constexpr size_t kFirstBytes = 256u << 10;

struct Decoder {
  lzma_stream stream = LZMA_STREAM_INIT;
  ~Decoder() { lzma_end(&stream); }
};

absl::Status TooLarge() {
  return Error(absl::StatusCode::kResourceExhausted, "xz: the uncompressed size is over the limit");
}

absl::Status Corrupt(std::string_view what) {
  return Error(absl::StatusCode::kInvalidArgument, "xz: " + std::string(what));
}

}  // namespace

absl::StatusOr<std::string> XzDecompress(std::string_view stored, uint64_t bytes_max) {
  Decoder decoder;
  lzma_stream& stream = decoder.stream;
  if (lzma_stream_decoder(&stream, kXzMemoryBytesMax, 0) != LZMA_OK) {
    return Error(absl::StatusCode::kResourceExhausted, "xz: no memory");
  }
  stream.next_in = reinterpret_cast<const uint8_t*>(stored.data());
  stream.avail_in = stored.size();
  std::string raw;
  while (true) {
    if (stream.avail_out == 0) {
      const size_t used = raw.size();
      if (used > bytes_max) return TooLarge();
      raw.resize(std::min<uint64_t>(bytes_max + 1, std::max(kFirstBytes, used * 2)));
      stream.next_out = reinterpret_cast<uint8_t*>(raw.data() + used);
      stream.avail_out = raw.size() - used;
    }
    const lzma_ret result = lzma_code(&stream, LZMA_FINISH);
    if (result == LZMA_STREAM_END) break;
    if (result == LZMA_MEMLIMIT_ERROR || result == LZMA_MEM_ERROR) {
      return Error(absl::StatusCode::kResourceExhausted, "xz: the decoder needs too much memory");
    }
    if (result != LZMA_OK) return Corrupt("stream is corrupt or cut off");
  }
  if (stream.avail_in != 0) return Corrupt("there are bytes after the end of the stream");
  if (stream.total_out > bytes_max) return TooLarge();
  raw.resize(stream.total_out);
  return raw;
}

}  // namespace tributary
