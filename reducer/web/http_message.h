#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tributary {

// The body of an upload request.
class HttpBody {
 public:
  virtual ~HttpBody() = default;
  // Passes the body to `take` in pieces. Stops if `take` returns false. Returns true if the whole body was passed.
  virtual bool Read(const std::function<bool(std::string_view piece)>& take) = 0;
};

using HttpFields = std::vector<std::pair<std::string, std::string>>;
// Compares the name exactly.
bool HasField(const HttpFields& fields, std::string_view name);

struct WebRequest {
  std::string method;                         // as sent: "GET", "HEAD", "POST"…
  std::string path;                           // decoded, without the query
  std::string host;                           // the Host header; "" when there is none, or more than one
  std::map<std::string, std::string> params;  // of the URL, decoded; if a name is given twice, its first value
  HttpBody* body = nullptr;                   // for a PUT to HttpServer::Options::upload_path
  HttpFields headers;                         // all headers as sent, with names in lower case
  std::string peer;                           // the address of the client with its port: "127.0.0.1:54321"
  // The names in the client's verified TLS certificate. Empty: it has presented none.
  std::vector<std::string> certificate_names;
  int64_t certificate_ends_s = 0;  // unix time: the certificate is not valid after it
  // Becomes true when the client has disconnected, or when the server stops. nullptr: never.
  const std::atomic<bool>* cancelled = nullptr;

  bool is_cancelled() const { return cancelled != nullptr && cancelled->load(std::memory_order_relaxed); }
  // Returns the values of all headers with this name (in lower case), joined by ", ". Returns "" if there is none.
  std::string Header(std::string_view name) const;
};

struct WebResponse {
  int status = 200;
  std::string content_type;
  std::string body;
  HttpFields headers;
};

// If the handler throws an exception, the answer has status 500.
using HttpHandler = std::function<WebResponse(const WebRequest&)>;

// Returns an answer with the JSON object {"error": message}.
WebResponse HttpError(int status, std::string_view message);

// Returns the status line and the headers of an answer, with the empty line after them.
std::string HttpAnswerHead(const WebResponse& response, bool is_last);

}  // namespace tributary
