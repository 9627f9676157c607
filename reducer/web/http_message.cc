#include "reducer/web/http_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/status.hpp>

#include "base/json.h"

namespace tributary {

bool HasField(const HttpFields& fields, std::string_view name) {
  return std::any_of(fields.begin(), fields.end(), [name](const auto& field) { return field.first == name; });
}

std::string WebRequest::Header(std::string_view name) const {
  std::string joined;
  bool found = false;
  for (const auto& [field, value] : headers) {
    if (field != name) continue;
    if (found) joined += ", ";
    joined += value;
    found = true;
  }
  return joined;
}

WebResponse HttpError(int status, std::string_view message) {
  JsonWriter json;
  json.BeginObject();
  json.Field("error", message);
  json.EndObject();
  return WebResponse{
      .status = status, .content_type = "application/json; charset=utf-8", .body = std::move(json).Take()};
}

std::string HttpAnswerHead(const WebResponse& response, bool is_last) {
  const auto reason =
      boost::beast::http::obsolete_reason(boost::beast::http::int_to_status(static_cast<unsigned>(response.status)));
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", response.status, std::string_view(reason.data(), reason.size()));
  if (!response.content_type.empty()) head += fmt::format("Content-Type: {}\r\n", response.content_type);
  // RFC 9110, 15.4.5: the length in a 304 would be that of the 200, so it is left out.
  if (response.status != 304) head += fmt::format("Content-Length: {}\r\n", response.body.size());
  for (const auto& [name, value] : response.headers) head += fmt::format("{}: {}\r\n", name, value);
  if (is_last) head += "Connection: close\r\n";
  return head + "\r\n";
}

}  // namespace tributary
