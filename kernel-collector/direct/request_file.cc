#include "kernel-collector/direct/request_file.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <charconv>

#include "base/little_endian.h"
#include "base/status.h"
#include "base/varint.h"
#include "schemas/otlp/logs_service.pb.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary {
namespace {

constexpr uint32_t kMagic = 0x51425254;  // "TRBQ"
constexpr uint32_t kVersion = 1;
constexpr std::string_view kNameBegin = "request-", kNameEnd = ".trq";
constexpr size_t kIdDigits = 16;
constexpr size_t kSenderBytesMax = 1024, kTypesMax = 65;

// Offsets in the prefix. The header's checksum covers everything before it, and the header.
constexpr size_t kVersionAt = 4, kHeaderBytesAt = 8, kBodyBytesAt = 12, kBodyChecksumAt = 16, kHeaderChecksumAt = 24;

absl::Status Damaged(std::string_view why) { return Error(absl::StatusCode::kInvalidArgument, why); }

// The id is a seed, so that the content of another file is not accepted. So is the version: a damaged version field
// does not look like a newer release.
uint64_t HeaderChecksum(std::string_view prefix, std::string_view header, RequestId id, uint32_t version) {
  std::string covered(prefix.substr(0, kHeaderChecksumAt));
  covered.append(header);
  return XXH3_64bits_withSeed(covered.data(), covered.size(), id ^ uint64_t{version} << 56);
}

void AppendCounts(std::string& out, const SampleCounts& counts) {
  AppendVarint(out, counts.total());
  AppendVarint(out, counts.parts().size());
  for (const auto& [type, records] : counts.parts()) {
    AppendVarint(out, static_cast<uint64_t>(type));
    AppendVarint(out, records);
  }
}

bool ReadCounts(VarintReader& reader, SampleCounts* out) {
  uint64_t total = 0, parts = 0;
  if (!reader.Read(&total) || !reader.Read(&parts) || parts > kTypesMax) return false;
  *out = SampleCounts(total);
  for (uint64_t i = 0; i < parts; ++i) {
    uint64_t type = 0, records = 0;
    if (!reader.Read(&type) || !reader.Read(&records) || type > UINT8_MAX) return false;
    if (!out->Split(static_cast<SampleType>(type), records)) return false;
  }
  return true;
}

bool ReadHeader(std::string_view bytes, RequestHeader* out) {
  VarintReader reader(bytes);
  uint64_t has_events = 0, sender_bytes = 0;
  std::string_view sender, session;
  if (!reader.Read(&has_events) || has_events > 1 || !reader.Read(&sender_bytes) || sender_bytes > kSenderBytesMax ||
      !reader.ReadBytes(sender_bytes, &sender) || !reader.ReadBytes(out->identity.session.size(), &session) ||
      !reader.Read(&out->identity.first) || !reader.Read(&out->dropped_strings) || !reader.Read(&out->request_bytes) ||
      out->request_bytes > kRequestBytesMax || !ReadCounts(reader, &out->counts)) {
    return false;
  }
  out->has_events = has_events == 1;
  out->identity.sender = sender;
  std::copy(session.begin(), session.end(), out->identity.session.begin());
  return true;
}

}  // namespace

std::string RequestName(RequestId id) { return fmt::format("{}{:016x}{}", kNameBegin, id, kNameEnd); }

std::optional<RequestId> ParseRequestName(std::string_view name) {
  if (name.size() != kNameBegin.size() + kIdDigits + kNameEnd.size() || !name.starts_with(kNameBegin)) {
    return std::nullopt;
  }
  RequestId id = 0;
  const char* begin = name.data() + kNameBegin.size();
  const auto [end, error] = std::from_chars(begin, begin + kIdDigits, id, 16);
  // Other spellings of a number, such as capital letters, are not names of requests.
  if (error != std::errc() || id == UINT64_MAX || RequestName(id) != name) return std::nullopt;
  return id;
}

absl::StatusOr<std::string> EncodeRequest(RequestId id, const DirectRequest& request, otlp::GzipCompressor& gzip) {
  const std::string body =
      request.events != nullptr ? request.events->SerializeAsString() : request.samples->SerializeAsString();
  const std::string compressed = gzip.Compress(body);
  if (body.size() > kRequestBytesMax || compressed.size() > kRequestFileBytesMax - kRequestHeaderBytesMax) {
    return Error(absl::StatusCode::kResourceExhausted, "the request is too large for the spool");
  }
  std::string header;
  AppendVarint(header, request.events != nullptr ? 1 : 0);
  const std::string_view sender = std::string_view(request.identity.sender).substr(0, kSenderBytesMax);
  AppendVarint(header, sender.size());
  header.append(sender);
  header.append(request.identity.session.begin(), request.identity.session.end());
  AppendVarint(header, request.identity.first);
  AppendVarint(header, request.dropped_strings);
  AppendVarint(header, body.size());
  AppendCounts(header, request.counts);

  std::string out(kRequestPrefixBytes, '\0');
  StoreLittleEndian<uint32_t>(out.data(), kMagic);
  StoreLittleEndian<uint32_t>(&out[kVersionAt], kVersion);
  StoreLittleEndian<uint32_t>(&out[kHeaderBytesAt], static_cast<uint32_t>(header.size()));
  StoreLittleEndian<uint32_t>(&out[kBodyBytesAt], static_cast<uint32_t>(compressed.size()));
  StoreLittleEndian<uint64_t>(&out[kBodyChecksumAt], XXH3_64bits(compressed.data(), compressed.size()));
  StoreLittleEndian<uint64_t>(&out[kHeaderChecksumAt], HeaderChecksum(out, header, id, kVersion));
  out[kRequestMarkOffset] = RequestMark(request.in_doubt).front();
  return out + header + compressed;
}

absl::StatusOr<RequestHeader> DecodeRequestHeader(RequestId id, std::string_view start, uint64_t file_bytes) {
  if (start.size() < kRequestPrefixBytes || LoadLittleEndian<uint32_t>(start.data()) != kMagic) {
    return Damaged("the header is damaged");
  }
  const auto version = LoadLittleEndian<uint32_t>(&start[kVersionAt]);
  const auto header_bytes = LoadLittleEndian<uint32_t>(&start[kHeaderBytesAt]);
  if (header_bytes > kRequestHeaderBytesMax || header_bytes > start.size() - kRequestPrefixBytes) {
    return Damaged("the header is cut");
  }
  const std::string_view header = start.substr(kRequestPrefixBytes, header_bytes);
  if (HeaderChecksum(start, header, id, version) != LoadLittleEndian<uint64_t>(&start[kHeaderChecksumAt])) {
    return Damaged("the header is damaged");
  }
  if (version > kVersion) {
    return Error(absl::StatusCode::kFailedPrecondition,
                 fmt::format("a newer release wrote it (version {}): use that release, or remove the file", version));
  }
  RequestHeader out;
  if (!ReadHeader(header, &out)) return Damaged("the header is malformed");
  out.in_doubt = start[kRequestMarkOffset] != RequestMark(false).front();
  out.body_offset = kRequestPrefixBytes + header_bytes;
  out.is_whole = file_bytes <= kRequestFileBytesMax &&
                 file_bytes - out.body_offset == LoadLittleEndian<uint32_t>(&start[kBodyBytesAt]);
  return out;
}

absl::StatusOr<DirectRequest> DecodeRequest(RequestId id, std::string_view file) {
  ASSIGN_OR_RETURN(RequestHeader header, DecodeRequestHeader(id, file, file.size()));
  if (!header.is_whole) return Damaged("the request is cut, or too large");
  const std::string_view compressed = file.substr(header.body_offset);
  if (XXH3_64bits(compressed.data(), compressed.size()) != LoadLittleEndian<uint64_t>(&file[kBodyChecksumAt])) {
    return Damaged("the request is damaged");
  }
  const std::optional<std::string> body = otlp::Gunzip(compressed, header.request_bytes);
  if (!body) return Damaged("the request is not gzip");
  DirectRequest out;
  bool parsed = false;
  if (header.has_events) {
    out.events.reset(new otlp::LogsRequest);
    parsed = out.events->ParseFromString(*body);
  } else {
    out.samples.reset(new otlp::ProfilesRequest);
    parsed = out.samples->ParseFromString(*body);
  }
  if (!parsed) return Damaged("the request is not OTLP");
  out.identity = std::move(header.identity);
  out.counts = std::move(header.counts);
  out.dropped_strings = header.dropped_strings;
  out.in_doubt = header.in_doubt;
  return out;
}

}  // namespace tributary
