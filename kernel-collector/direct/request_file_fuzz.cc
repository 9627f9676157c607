#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/little_endian.h"
#include "base/status.h"
#include "kernel-collector/direct/request_file.h"
#include "schemas/otlp/logs_service.pb.h"
#include "schemas/otlp/profiles_service.pb.h"

// The bytes are a file with the id 1. Then its checksums are made right, so that the code behind them is reached, too.
// A request that was decoded can be encoded, and is then decoded to the same.

namespace tributary {
namespace {

constexpr RequestId kId = 1;

void Check(std::string_view file) {
  const absl::StatusOr<RequestHeader> header = DecodeRequestHeader(kId, file, file.size());
  const absl::StatusOr<DirectRequest> request = DecodeRequest(kId, file);
  if (!request.ok()) return;
  TRIBUTARY_CHECK(header.ok() && header->is_whole && header->counts == request->counts && !request->empty());
  otlp::GzipCompressor gzip;
  const absl::StatusOr<std::string> again = EncodeRequest(kId, *request, gzip);
  TRIBUTARY_CHECK(again.ok());
  const absl::StatusOr<DirectRequest> same = DecodeRequest(kId, *again);
  TRIBUTARY_CHECK(same.ok() && same->identity == request->identity && same->counts == request->counts);
}

// Sets the lengths and the checksums.
std::string Mended(std::string_view bytes) {
  std::string file(bytes);
  if (file.size() < kRequestPrefixBytes) return file;
  const size_t rest = file.size() - kRequestPrefixBytes;
  const size_t header = std::min<size_t>(LoadLittleEndian<uint32_t>(&file[8]), rest);
  const std::string_view body = std::string_view(file).substr(kRequestPrefixBytes + header);
  StoreLittleEndian<uint32_t>(file.data(), 0x51425254);
  StoreLittleEndian<uint32_t>(&file[4], 1);
  StoreLittleEndian<uint32_t>(&file[8], static_cast<uint32_t>(header));
  StoreLittleEndian<uint32_t>(&file[12], static_cast<uint32_t>(body.size()));
  StoreLittleEndian<uint64_t>(&file[16], XXH3_64bits(body.data(), body.size()));
  const std::string covered = file.substr(0, 24) + file.substr(kRequestPrefixBytes, header);
  StoreLittleEndian<uint64_t>(&file[24], XXH3_64bits_withSeed(covered.data(), covered.size(), kId ^ uint64_t{1} << 56));
  return file;
}

}  // namespace
}  // namespace tributary

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  tributary::Check(bytes);
  tributary::Check(tributary::Mended(bytes));
  return 0;
}
