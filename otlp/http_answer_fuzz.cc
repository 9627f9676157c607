#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/status.h"
#include "otlp/http_answer.h"
#include "schemas/otlp/profiles_service.pb.h"

// The first line is the status, the second one Content-Type, the third one Retry-After, and the fourth one Date. The
// rest is the body.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tributary;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto line = [&text] {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string out(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    return out;
  };
  otlp::HttpAnswer answer;
  answer.status = atol(line().substr(0, 4).c_str());
  answer.content_type = line();
  answer.retry_after = line();
  answer.date = line();
  answer.body = text;
  opentelemetry::proto::collector::profiles::v1development::ExportProfilesServiceResponse response;
  const UnixNs now{1'700'000'000 * kNsPerSecond};
  const otlp::CallResult result = otlp::ReadHttpAnswer(answer, now, &response);
  TRIBUTARY_CHECK(!result.status.ok() || (answer.status >= 200 && answer.status < 300));
  TRIBUTARY_CHECK(result.status.message().size() <= 1200);
  TRIBUTARY_CHECK(result.retry_after_ns.value_or(0) >= 0 && result.retry_after_ns.value_or(0) <= 3600 * kNsPerSecond);
  return 0;
}
