#include "otlp/grpc_answer.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/types.h"
#include "schemas/otlp/profiles_service.pb.h"

// The first line is the status of HTTP. Then come the headers up to an empty line, the trailers up to an empty line,
// and the body.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tributary;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto line = [&text] {
    const std::string_view out = text.substr(0, std::min(text.find('\n'), text.size()));
    text.remove_prefix(std::min(out.size() + 1, text.size()));
    return out;
  };
  otlp::PostAnswer answer;
  answer.status = atol(std::string(line().substr(0, 4)).c_str());
  for (std::string_view header = line(); !header.empty(); header = line()) answer.AddHeaderLine(header);
  answer.AddHeaderLine("\r\n");
  for (std::string_view trailer = line(); !trailer.empty(); trailer = line()) answer.AddHeaderLine(trailer);
  answer.AddBody(text);
  opentelemetry::proto::collector::profiles::v1development::ExportProfilesServiceResponse response;
  const otlp::CallResult result = otlp::ReadGrpcAnswer(answer, &response);
  TRIBUTARY_CHECK(!result.status.ok() || (answer.status == 200 && !otlp::DecidesGrpcCall(answer)));
  TRIBUTARY_CHECK(result.status.ok() || !response.has_partial_success());
  TRIBUTARY_CHECK(result.status.message().size() <= 1200);
  TRIBUTARY_CHECK(result.retry_after_ns.value_or(0) >= 0 && result.retry_after_ns.value_or(0) <= 3600 * kNsPerSecond);
  return 0;
}
