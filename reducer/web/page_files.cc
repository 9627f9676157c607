#include "reducer/web/page_files.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/hex.h"
#include "base/sha256.h"
#include "reducer/web/http_compression.h"

namespace tributary {
namespace {

constexpr size_t kETagBytes = 16;

std::string EntityTag(std::string_view bytes) {
  const Sha256Digest digest = Sha256(bytes);
  return ToHex(std::span<const uint8_t>(digest).first(kETagBytes));
}

// Compares weakly (RFC 9110, 13.1.2).
bool Matches(std::string_view if_none_match, std::string_view etag) {
  while (!if_none_match.empty()) {
    const size_t comma = if_none_match.find(',');
    std::string_view item = if_none_match.substr(0, comma);
    if_none_match.remove_prefix(comma == std::string_view::npos ? if_none_match.size() : comma + 1);
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    if (item.starts_with("W/")) item.remove_prefix(2);
    if (item == "*" || item == etag) return true;
  }
  return false;
}

}  // namespace

PageFiles::PageFiles(std::span<const PageFile> files) {
  for (const PageFile& file : files) {
    files_.push_back(std::make_unique<File>());
    files_.back()->file = file;
  }
}

std::optional<WebResponse> PageFiles::Find(const WebRequest& request) const {
  const std::string_view name = request.path == "/" ? "index.html" : std::string_view(request.path).substr(1);
  File* found = nullptr;
  for (const std::unique_ptr<File>& file : files_) {
    if (file->file.path == name) found = file.get();
  }
  if (found == nullptr) return std::nullopt;
  std::call_once(found->once, [found] {
    const std::string_view bytes = found->file.bytes;
    found->etag_value = EntityTag(bytes);
    found->gzip = Gzip(bytes, kGzipLevelSmall);
    if (found->gzip.size() >= bytes.size()) found->gzip.clear();
  });
  const bool compressed = !found->gzip.empty() && AcceptsGzip(request.Header("accept-encoding"));
  // A strong tag belongs to one representation, so the compressed one has another.
  const std::string etag = fmt::format("\"{}{}\"", found->etag_value, compressed ? "-gzip" : "");
  WebResponse response{.content_type = std::string(found->file.content_type)};
  response.headers = {{"ETag", etag}, {"Vary", "Accept-Encoding"}, {"Cache-Control", "no-cache"}};
  if (Matches(request.Header("if-none-match"), etag)) {
    response.status = 304;
    return response;
  }
  response.body = compressed ? found->gzip : std::string(found->file.bytes);
  if (compressed) response.headers.emplace_back("Content-Encoding", "gzip");
  return response;
}

}  // namespace tributary
