#include "reducer/web/http_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <optional>
#include <utility>

#include "base/percent.h"

namespace tributary {
namespace {

namespace http = boost::beast::http;

// A body that appends its pieces to a string. Unlike Beast's string_body, it reserves no memory for the length that the
// client claims.
struct PieceBody {
  using value_type = std::string;
  class reader {
   public:
    template <bool kIsRequest, class Fields>
    reader(http::header<kIsRequest, Fields>&, value_type& out) : out_(out) {}
    void init(const boost::optional<uint64_t>&, boost::system::error_code& error) { error = {}; }
    template <class Buffers>
    size_t put(const Buffers& buffers, boost::system::error_code& error) {
      error = {};
      size_t size = 0;
      for (auto at = boost::asio::buffer_sequence_begin(buffers); at != boost::asio::buffer_sequence_end(buffers);
           ++at) {
        const boost::asio::const_buffer buffer(*at);
        out_.append(static_cast<const char*>(buffer.data()), buffer.size());
        size += buffer.size();
      }
      return size;
    }
    void finish(boost::system::error_code& error) { error = {}; }

   private:
    value_type& out_;
  };
};

std::string_view View(boost::beast::string_view text) { return {text.data(), text.size()}; }

std::string Lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

bool IsHexDigit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

bool HasBadEscape(std::string_view text) {
  for (size_t at = text.find('%'); at != std::string_view::npos; at = text.find('%', at + 1)) {
    if (at + 2 >= text.size() || !IsHexDigit(text[at + 1]) || !IsHexDigit(text[at + 2])) return true;
  }
  return false;
}

std::string DecodeParam(std::string_view text) {
  std::string spaced(text);
  std::replace(spaced.begin(), spaced.end(), '+', ' ');
  return PercentDecoded(spaced);
}

}  // namespace

struct HttpParser::Impl {
  http::request_parser<PieceBody> parser;
};

HttpParser::HttpParser(size_t head_bytes_max, uint64_t body_bytes_max)
    : head_bytes_max_(head_bytes_max), body_bytes_max_(body_bytes_max), impl_(std::make_unique<Impl>()) {
  // CheckLines enforces the limit of the head. Beast's limit must only not be lower.
  impl_->parser.header_limit(static_cast<uint32_t>(std::min<size_t>(head_bytes_max, UINT32_MAX - 1) + 1));
  impl_->parser.body_limit(body_bytes_max);
}
HttpParser::~HttpParser() = default;

size_t HttpParser::Fail(int status, std::string message) {
  error_status_ = status;
  error_ = std::move(message);
  return 0;
}

// Looks at the lines that have arrived, each byte once. Returns false if one of them is refused.
bool HttpParser::CheckLines(std::string_view bytes) {
  while (head_size_ == 0) {
    const size_t end = bytes.find('\n', scanned_);
    const size_t seen = (end == std::string_view::npos ? bytes.size() : end + 1) - head_begin_;
    if (lines_ == 0 && seen > kWebRequestLineBytesMax) {
      Fail(414, fmt::format("the request line is longer than {} bytes", kWebRequestLineBytesMax));
      return false;
    }
    if (seen > head_bytes_max_) {
      Fail(431, fmt::format("the request line and the headers have more than {} bytes", head_bytes_max_));
      return false;
    }
    // The first byte shows whether the client uses another protocol. Such a client must not wait for the time-out.
    if (lines_ == 0 && line_begin_ == head_begin_ && head_begin_ < bytes.size() && bytes[head_begin_] != '\r' &&
        bytes[head_begin_] != '\n' && (bytes[head_begin_] <= ' ' || bytes[head_begin_] > '~')) {
      Fail(400, "this is not an HTTP request");
      return false;
    }
    // A line that begins with a space or tab continues the header before it.
    if (lines_ > 0 && line_begin_ < bytes.size() && (bytes[line_begin_] == ' ' || bytes[line_begin_] == '\t')) {
      Fail(400, "a header continues on the next line");
      return false;
    }
    if (end == std::string_view::npos) {
      scanned_ = bytes.size();
      return true;
    }
    if (end == line_begin_ || bytes[end - 1] != '\r') {
      Fail(400, "a line ends without CR");
      return false;
    }
    const bool is_empty = end == line_begin_ + 1;
    scanned_ = line_begin_ = end + 1;
    if (!is_empty) {
      ++lines_;
    } else if (lines_ > 0) {
      head_size_ = end + 1;
    } else if (end + 1 > head_bytes_max_) {
      Fail(400, "the request begins with too many empty lines");
      return false;
    } else {
      head_begin_ = end + 1;  // RFC 9112, 2.2: empty lines before the request are ignored
    }
  }
  return true;
}

bool HttpParser::TakeTarget(std::string_view target) {
  if (!target.starts_with('/')) {
    Fail(400, "the URL must begin with '/'");
    return false;
  }
  if (HasBadEscape(target)) {
    Fail(400, "the URL has a '%' without two hexadecimal digits after it; write %25 for a percent sign");
    return false;
  }
  const size_t question = target.find('?');
  request_.path = PercentDecoded(target.substr(0, question));
  std::string_view query = question == std::string_view::npos ? "" : target.substr(question + 1);
  while (!query.empty()) {
    const size_t end = query.find('&');
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(end == std::string_view::npos ? query.size() : end + 1);
    const size_t equals = pair.find('=');
    if (pair.empty()) continue;
    request_.params.try_emplace(DecodeParam(pair.substr(0, equals)),
                                equals == std::string_view::npos ? "" : DecodeParam(pair.substr(equals + 1)));
  }
  return true;
}

// Refuses messages whose end a proxy could see elsewhere (request smuggling; RFC 9112, 6.3).
bool HttpParser::CheckFraming() {
  const auto& message = impl_->parser.get();
  const size_t lengths = message.count(http::field::content_length);
  const size_t encodings = message.count(http::field::transfer_encoding);
  const std::string encoding = Lower(View(message[http::field::transfer_encoding]));
  if (lengths + encodings > 1) {
    Fail(400, "the request has more than one Content-Length or Transfer-Encoding");
  } else if (encodings == 1 && (encoding != "chunked" || message.version() < 11)) {
    Fail(400, "the only Transfer-Encoding that is allowed is chunked, in HTTP/1.1");
  } else {
    const auto length = impl_->parser.content_length();
    has_body_ = encodings == 1 || (length && *length > 0);
  }
  return error_status_ == 0;
}

size_t HttpParser::ReadHead(std::string_view bytes) {
  if (error_status_ != 0 || !CheckLines(bytes) || head_size_ == 0) return 0;
  const std::string_view head = bytes.substr(head_begin_, head_size_ - head_begin_);
  if (head.find('\0') != std::string_view::npos) return Fail(400, "the request has a NUL byte");
  boost::system::error_code error;
  // Stops at the end of the head, because the parser is not eager.
  impl_->parser.put(boost::asio::buffer(head.data(), head.size()), error);
  if (error == http::error::body_limit)
    return Fail(413, fmt::format("the body has more than {} bytes", body_bytes_max_));
  if (error == http::error::bad_version) return Fail(505, "only HTTP/1.0 and HTTP/1.1 are supported");
  if (error || !impl_->parser.is_header_done()) return Fail(400, "the request is malformed");
  const auto& message = impl_->parser.get();
  request_.method = std::string(View(message.method_string()));
  if (!TakeTarget(View(message.target()))) return 0;
  if (message.version() != 10 && message.version() != 11) return Fail(505, "only HTTP/1.0 and HTTP/1.1 are supported");
  if (!CheckFraming()) return 0;
  for (const auto& field : message) {
    request_.headers.emplace_back(Lower(View(field.name_string())), std::string(View(field.value())));
  }
  if (message.count(http::field::host) == 1) request_.host = std::string(View(message[http::field::host]));
  keep_alive_ = message.keep_alive();
  if (message.count(http::field::expect) > 0 && message.version() == 11) {
    if (Lower(View(message[http::field::expect])) != "100-continue")
      return Fail(417, "only 100-continue can be expected");
    expects_continue_ = has_body_;
  }
  return head_size_;
}

size_t HttpParser::ReadBody(std::string_view bytes, std::string* piece) {
  // The last chunk with its trailer has at least this size. Beast 1.81 aborts (BOOST_ASSERT in parse_chunk_header) if
  // it gets the last chunk twice with fewer bytes. Until the body is complete, at least this many bytes are still to
  // come.
  const size_t needed = impl_->parser.chunked() ? std::string_view("0\r\n\r\n").size() : 1;
  size_t used = 0;
  while (error_status_ == 0 && !body_is_complete() && bytes.size() - used >= needed) {
    boost::system::error_code error;
    const size_t size = impl_->parser.put(boost::asio::buffer(bytes.data() + used, bytes.size() - used), error);
    used += size;
    if (error == http::error::need_more) break;
    if (error) {
      Fail(error == http::error::body_limit ? 413 : 400, "the body is malformed or too long");
    } else if (size == 0) {
      break;
    }
  }
  piece->append(impl_->parser.get().body());
  impl_->parser.get().body().clear();
  return used;
}

bool HttpParser::body_is_complete() const { return impl_->parser.is_done(); }

}  // namespace tributary
