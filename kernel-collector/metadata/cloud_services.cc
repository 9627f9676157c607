#include "kernel-collector/metadata/cloud_services.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/status.h"

namespace tributary {

absl::StatusOr<HttpResponse> AskOk(const HttpAsk& ask, const HttpRequest& request) {
  auto response = ask(request);
  if (!response.ok()) return WithContext(response.status(), request.path);
  if (response->status == 200) return response;
  return Error(response->status == 404 ? absl::StatusCode::kNotFound : absl::StatusCode::kUnavailable,
               fmt::format("{}: HTTP status {}", request.path, response->status));
}

void SetIdentifier(Attributes& attributes, std::string_view key, std::string_view value) {
  const bool printable = std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c < 0x7f; });
  if (printable && !value.empty() && value.size() <= 255) SetAttribute(attributes, key, value);
}

}  // namespace tributary
