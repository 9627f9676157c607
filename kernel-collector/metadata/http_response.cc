#include "kernel-collector/metadata/http_response.h"

#include <algorithm>

#include "base/number.h"
#include "base/status.h"
#include "base/trim.h"

namespace tributary {
namespace {

// The limit of a chunk-size line, including the rarely used extensions.
constexpr size_t kChunkLineBytesMax = 256;

absl::Status Bad(std::string_view why) { return Error(absl::StatusCode::kInvalidArgument, why); }
absl::Status TooLarge() { return Error(absl::StatusCode::kResourceExhausted, "the answer is too large"); }

std::string LowerCase(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

}  // namespace

std::string_view HttpResponse::Header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

absl::Status HttpResponseReader::Feed(std::string_view bytes) {
  buffer_ += bytes;
  for (bool more = true; more && part_ != Part::kDone;) RETURN_IF_ERROR(Step(&more));
  return absl::OkStatus();
}

absl::Status HttpResponseReader::End() {
  if (part_ == Part::kBodyToEnd) part_ = Part::kDone;
  return done() ? absl::OkStatus() : Bad("the connection was closed before the answer was complete");
}

// `more`: whether the rest of the buffer may hold another step.
absl::Status HttpResponseReader::Step(bool* more) {
  *more = false;
  if (part_ == Part::kBody || part_ == Part::kBodyToEnd || part_ == Part::kChunk) {
    RETURN_IF_ERROR(TakeBody());
    *more = part_ == Part::kChunkEnd;
    return absl::OkStatus();
  }
  if (part_ == Part::kHead) {
    const size_t end = buffer_.find("\r\n\r\n");
    if (std::min(end, buffer_.size()) > kHeadBytesMax) return TooLarge();
    if (end == std::string::npos) return absl::OkStatus();
    RETURN_IF_ERROR(ParseHead(std::string_view(buffer_).substr(0, end)));
    buffer_.erase(0, end + 4);
    *more = true;
    return ChooseBody();
  }
  const size_t end = buffer_.find("\r\n");
  if (std::min(end, buffer_.size()) > kChunkLineBytesMax) return Bad("a chunk without a valid size line");
  if (end == std::string::npos) return absl::OkStatus();
  const std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 2);
  *more = true;
  if (part_ == Part::kChunkSize) return TakeChunkSize(line);
  if (part_ == Part::kChunkEnd) {
    part_ = Part::kChunkSize;
    return line.empty() ? absl::OkStatus() : Bad("a chunk is longer than its size line says");
  }
  trailer_bytes_ += line.size();
  if (trailer_bytes_ > kHeadBytesMax) return TooLarge();
  if (line.empty()) part_ = Part::kDone;
  return absl::OkStatus();
}

absl::Status HttpResponseReader::ParseHead(std::string_view head) {
  const std::string_view line = head.substr(0, head.find("\r\n"));
  if (!line.starts_with("HTTP/1.") || line.size() < 12 || line[8] != ' ' || (line.size() > 12 && line[12] != ' ')) {
    return Bad("not an HTTP answer");
  }
  const std::optional<uint16_t> status = ParseNumber<uint16_t>(line.substr(9, 3));
  if (!status) return Bad("not an HTTP answer");
  response_.status = *status;
  for (head.remove_prefix(line.size()); !head.empty();) {
    head.remove_prefix(2);  // the line break before this one
    const std::string_view field = head.substr(0, head.find("\r\n"));
    head.remove_prefix(field.size());
    const size_t colon = field.find(':');
    if (colon == 0 || colon == std::string_view::npos) return Bad("a line is not an HTTP header");
    response_.headers.emplace_back(LowerCase(field.substr(0, colon)), Trim(field.substr(colon + 1), kHttpBlanks));
  }
  return absl::OkStatus();
}

absl::Status HttpResponseReader::ChooseBody() {
  const std::string coding = LowerCase(response_.Header("transfer-encoding"));
  const std::string_view length = response_.Header("content-length");
  if (response_.status < 200) return Bad("an unexpected informational answer (status 1xx)");
  if (response_.status == 204 || response_.status == 304) {
    part_ = Part::kDone;
  } else if (!coding.empty()) {
    if (coding != "chunked" || !length.empty())
      return Bad("the Transfer-Encoding is not chunked, or the answer has a Content-Length, too");
    part_ = Part::kChunkSize;
  } else if (!length.empty()) {
    const std::optional<uint64_t> bytes = ParseNumber<uint64_t>(length);
    if (!bytes) return Bad("the Content-Length is not a number");
    left_ = *bytes;
    if (left_ > body_bytes_max_) return TooLarge();
    part_ = left_ == 0 ? Part::kDone : Part::kBody;
  } else {
    part_ = Part::kBodyToEnd;
  }
  return absl::OkStatus();
}

absl::Status HttpResponseReader::TakeChunkSize(std::string_view line) {
  const std::optional<uint64_t> bytes = ParseNumber<uint64_t>(Trim(line.substr(0, line.find(';')), kHttpBlanks), 16);
  if (!bytes) return Bad("a chunk without a valid size line");
  left_ = *bytes;
  if (left_ > body_bytes_max_ - response_.body.size()) return TooLarge();
  part_ = left_ == 0 ? Part::kTrailer : Part::kChunk;
  return absl::OkStatus();
}

absl::Status HttpResponseReader::TakeBody() {
  const bool to_end = part_ == Part::kBodyToEnd;
  const size_t taken = to_end ? buffer_.size() : static_cast<size_t>(std::min<uint64_t>(left_, buffer_.size()));
  if (taken > body_bytes_max_ - response_.body.size()) return TooLarge();
  response_.body.append(buffer_, 0, taken);
  buffer_.erase(0, taken);
  if (to_end) return absl::OkStatus();
  left_ -= taken;
  if (left_ == 0) part_ = part_ == Part::kChunk ? Part::kChunkEnd : Part::kDone;
  return absl::OkStatus();
}

}  // namespace tributary
