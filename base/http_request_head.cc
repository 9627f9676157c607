#include "base/http_request_head.h"

#include <algorithm>
#include <optional>

#include "base/ascii_case.h"
#include "base/trim.h"

namespace tributary {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// RFC 9110, 5.6.2.
bool IsTokenByte(char c) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || kMarks.find(c) != kMarks.npos;
}

bool IsToken(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), IsTokenByte); }

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// Returns true if a list such as "keep-alive, Upgrade" contains `word`.
bool ListHas(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    if (EqualsIgnoringCase(Trim(list.substr(0, comma), kHttpBlanks), word)) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

// Returns "/metrics" for "/metrics?x=1" and for "http://host:1/metrics". Returns nullopt if `target` has neither form.
std::optional<std::string> PathOf(std::string_view target) {
  constexpr std::string_view kScheme = "http://";
  if (target.size() > kScheme.size() && EqualsIgnoringCase(target.substr(0, kScheme.size()), kScheme)) {
    target.remove_prefix(kScheme.size());
    target.remove_prefix(std::min(target.find_first_of("/?"), target.size()));
    if (!target.starts_with('/')) return "/";
  }
  if (!target.starts_with('/')) return std::nullopt;
  return std::string(target.substr(0, target.find('?')));
}

// Reads the lines of one head in order.
class HeadParser {
 public:
  HttpHeadResult Parse(std::string_view bytes) {
    std::string_view rest = bytes;
    while (rest.starts_with('\n') || rest.starts_with("\r\n")) rest.remove_prefix(rest.starts_with('\n') ? 1 : 2);
    bool is_first = true;
    while (result_.error == 0) {
      const size_t end = rest.find('\n');
      if (end == rest.npos) {
        Incomplete(rest, is_first, bytes.size());
        break;
      }
      std::string_view line = rest.substr(0, end);
      rest.remove_prefix(end + 1);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (is_first && line.size() > kHttpRequestLineBytesMax) {
        Refuse(414, "The request line is longer than 4096 bytes.");
      } else if (bytes.size() - rest.size() > kHttpHeadBytesMax) {
        Refuse(431, "The request line and the headers together are longer than 8192 bytes.");
      } else if (is_first) {
        RequestLine(line);
      } else if (line.empty()) {
        Finish(bytes.size() - rest.size());
        break;
      } else {
        Header(line);
      }
      is_first = false;
    }
    return std::move(result_);
  }

 private:
  void Refuse(int status, std::string_view problem) {
    result_.error = status;
    result_.problem = problem;
  }

  // The last line has no end yet. An error that is already visible is reported at once: invalid input may never contain
  // a line end.
  void Incomplete(std::string_view line, bool is_first, size_t size) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (is_first && std::any_of(line.begin(), line.end(), [](char c) { return IsControl(c) || (c & 0x80) != 0; })) {
      Refuse(400, "This is not an HTTP request. This port accepts HTTP/1.0 and HTTP/1.1, without TLS.");
    } else if (is_first && line.size() > kHttpRequestLineBytesMax) {
      Refuse(414, "The request line is longer than 4096 bytes.");
    } else if (size >= kHttpHeadBytesMax) {
      Refuse(431, "The request line and the headers together are longer than 8192 bytes.");
    }
  }

  void RequestLine(std::string_view line) {
    const size_t method_end = line.find(' '), target_end = line.rfind(' ');
    if (method_end == line.npos || method_end == target_end || !IsToken(line.substr(0, method_end))) {
      return Refuse(400, "This is not an HTTP request. This port accepts HTTP/1.0 and HTTP/1.1, without TLS.");
    }
    const std::string_view target = line.substr(method_end + 1, target_end - method_end - 1);
    const std::string_view version = line.substr(target_end + 1);
    if (version.size() != 8 || !version.starts_with("HTTP/") || !IsDigit(version[5]) || version[6] != '.' ||
        !IsDigit(version[7])) {
      return Refuse(400, "This is not an HTTP request. This port accepts HTTP/1.0 and HTTP/1.1, without TLS.");
    }
    if (version[5] != '1') return Refuse(505, "This server supports only HTTP/1.0 and HTTP/1.1.");
    is_http_1_0_ = version[7] == '0';
    const bool is_clean =
        std::none_of(target.begin(), target.end(), [](char c) { return c == ' ' || IsControl(c) || (c & 0x80) != 0; });
    const std::optional<std::string> path = is_clean ? PathOf(target) : std::nullopt;
    if (!path) return Refuse(400, "The request's target is neither a path nor an http:// URL, or has invalid bytes.");
    result_.head.method = line.substr(0, method_end);
    result_.head.path = *path;
  }

  void Header(std::string_view line) {
    const size_t colon = line.find(':');
    if (colon == line.npos || !IsToken(line.substr(0, colon))) return Refuse(400, "A header line is malformed.");
    const std::string_view name = line.substr(0, colon), value = Trim(line.substr(colon + 1), kHttpBlanks);
    if (std::any_of(value.begin(), value.end(), [](char c) { return IsControl(c) && c != '\t'; })) {
      return Refuse(400, "A header has control bytes.");
    }
    if (EqualsIgnoringCase(name, "Host")) ++hosts_;
    if (EqualsIgnoringCase(name, "Connection")) {
      close_ |= ListHas(value, "close");
      keep_alive_ |= ListHas(value, "keep-alive");
    }
    if (EqualsIgnoringCase(name, "Transfer-Encoding")) has_chunks_ = true;
    if (EqualsIgnoringCase(name, "Content-Length")) Length(value);
  }

  void Length(std::string_view value) {
    const bool is_number = !value.empty() && std::all_of(value.begin(), value.end(), IsDigit);
    if (!is_number || (length_ && *length_ != value))
      return Refuse(400, "The Content-Length is not a number, or two headers contradict each other.");
    length_ = value;
  }

  void Finish(size_t size) {
    if (has_chunks_ && length_)
      return Refuse(400, "A request must not have both Content-Length and Transfer-Encoding.");
    if (hosts_ > 1 || (hosts_ == 0 && !is_http_1_0_)) return Refuse(400, "A request must have one Host header.");
    const bool is_empty = length_ && length_->find_first_not_of('0') == length_->npos;
    result_.head.has_body = has_chunks_ || (length_ && !is_empty);
    result_.head.keep_alive = !close_ && (!is_http_1_0_ || keep_alive_);
    result_.size = size;
  }

  HttpHeadResult result_;
  bool is_http_1_0_ = false, close_ = false, keep_alive_ = false, has_chunks_ = false;
  int hosts_ = 0;
  std::optional<std::string_view> length_;
};

}  // namespace

HttpHeadResult ParseHttpRequestHead(std::string_view bytes) { return HeadParser().Parse(bytes); }

}  // namespace tributary
